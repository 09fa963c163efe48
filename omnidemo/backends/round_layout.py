"""What compiled code tells of the rounds that it made: whole numbers and others, of one round after another, with nothing in between.

The whole numbers of a round are `FACTS`; then the proposals; of each of their slots its first draw, and the number of drafter tokens up to
its end; the drafter tokens themselves, of which there are as many as the last slot's end says, or as were read, if these are more; and
where only the host can tell what the round writes, the draws' places and ids. The others are three times, at which the round began, had
been drafted and ended; the chances with which proposals were accepted, as far as they were judged; the probabilities of the proposals, and
that of the token written; each slot's q; and the draws' shares.
"""

DRAWN, READ, PASSES, SLOTS, PROPOSED, ACCEPTED, WRITTEN, USED, SPENT = range(9)
# Draws; tokens read that are left, and all that were; slots; proposals, those accepted, the token written; and uniform numbers used before
# and in the round.
FACTS = 9
HOST, NONE = -2, -1  # instead of a token or a number of them: only the host can tell; there is none
