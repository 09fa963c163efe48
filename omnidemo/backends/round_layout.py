"""The packed results of compiled rounds: an array of whole numbers and one of floats, of one round after another, with nothing in between.

The whole numbers of a round are its header (`HEADER` of them, see below); then the proposals; of each of their slots its first draw, and
the number of drafter tokens up to its end; the drafter tokens themselves, of which there are as many as the last slot's end says, or as
were read, if these are more; and where only the host can finish the round, the draws' places and ids. The floats are three times, at which
the round began, had been drafted and ended; the acceptance probabilities of the proposals, as far as they were judged; the probabilities of
the proposals, and that of the token written; each slot's q; and the probabilities of the draws.
"""

DRAWN, READ, PASSES, SLOTS, PROPOSED, ACCEPTED, WRITTEN, USED, SPENT = range(9)
# Draws; tokens read that are left, and all that were; slots; proposals, those accepted, the token written; and uniform numbers used before
# and in the round.
HEADER = 9
UNFINISHED, NONE = -2, -1  # instead of a token or a number of them: only the host can compute it; there is none
