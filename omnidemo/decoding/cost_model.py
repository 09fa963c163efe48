"""How far to draft: one state machine, kept over all requests of an adapter line. It needs no model: it is
told what rounds drafted, wrote and took, and chooses between copied text, the drafter and neither.

**What is measured.** `RoundTimes` measures how long plain rounds, rounds with a draft and rounds that copy
last, and how many tokens they bring. Calibrations say how often a slot is accepted, by the probability that
the drafter gave it; `CopyChances` say the same of copied ids.

**What is decided, in this order, and from what.**

1. Copied text (`copied`): as many ids as save the most time, if they save more than the drafter does. An
   accepted id saves the time of a token; each proposed one costs its row of the target's pass.
2. Neither, to time plain rounds (`probes`): now and then, because drafting is held against them.
3. The drafter or neither (`may_draft`): by the state.
4. The end of a draft (`stop_rule`): before the slot that costs more than it is expected to save, which is
   P(it and all before it are accepted) · the time of a token.
5. The next state (`judge`): after each draft, by the estimated speedup.

**The states.**

* *drafting*: rounds draft. If the speedup is below 1 for the second time, it rests.
* *resting*: rounds are plain. After `left` of them it looks.
* *looking*: the drafter replays the newest tokens. If its drafts would have paid, and every third time
  without a replay, it tries; if not, it rests for longer; if there are too few tokens, it waits.
* *waiting*: rounds are plain. After `pause` of them it looks again.
* *trying*: `TRY` rounds draft. If they paid, it is drafting again; if not, it rests for longer.

New weights of the drafter end a rest (`renew`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from omnidemo.copying.copier import CopyChances
from omnidemo.decoding.calibration import EDGES, Calibration, StopRule
from omnidemo.decoding.round_times import FITTED_EVERY, SETTLE, STRETCH, TRY, Look, RoundTimes

State = Literal["drafting", "resting", "looking", "waiting", "trying"]

# plain rounds in a row that are made to be timed
BLOCK = SETTLE + STRETCH
# plain rounds between two replays or tries while drafting loses; more where those are expensive (SPEND)
FIRST_WAIT, LONGEST_WAIT = BLOCK, 96
SPEND = 0.01  # the fraction of plain decoding's time that replays and tries may take
# every third try is made without a replay that promises a gain, because the measured times may be out of date
BLIND_EVERY = 3
# While drafting wins, one round in PLAIN_EVERY is plain, to be timed; while the speedup is below CLEAR one in
# NEAR_EVERY, because a machine that changes its pace could turn so small a gain into a loss. The first block
# of them comes after EARLY rounds, each further one after eight times as many, up to those figures.
PLAIN_EVERY, NEAR_EVERY, CLEAR, EARLY = 64, 8, 1.2, 8
# Drafting is judged after ENOUGH_DRAFTS drafts (a multiple of `FITTED_EVERY`); after `FITTED_EVERY` of them
# where the speedup is below CLEAR_LOSS.
ENOUGH_DRAFTS, CLEAR_LOSS = 16, 0.85
# plain rounds that a copied draft has to be expected to save, because times and chances are estimates
WORTH = 0.1
UNTIMED = 0.4  # chance from which on a copied id is proposed while no times are known
MARGIN = 1.02  # estimated speedup above which a pair that had given up drafts again


class CostModel(RoundTimes):
    """The state machine, with the calibrations and times that it decides by."""

    def __init__(self) -> None:
        self.segments = np.zeros((len(EDGES) + 1, 5))  # of a `StopRule`; the calibrations write into it
        self.segments[1:, 0] = EDGES
        self.acceptance = Calibration(lines=self.segments[:, 1:3])  # by the drafter's probability of a slot
        self.head = Calibration()  # by the head's
        # of the slot after an accepted one, by the drafter's probability of the accepted one
        self.next_acceptance = Calibration(prior=0.6, lines=self.segments[:, 3:])
        self.copies = CopyChances()
        super().__init__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.acceptance.lines = self.segments[:, 1:3]  # views of one array, which a pickle does not know
        self.next_acceptance.lines = self.segments[:, 3:]

    def forget_times(self) -> None:
        super().forget_times()
        self.speculating = True  # the state is "drafting"
        self.lost_before = False  # drafting has seemed to lose once
        self.wait = FIRST_WAIT  # plain rounds of the newest rest
        self.left = 0  # rounds until the next replay or try
        self.pause = 0  # rounds until the next replay, where the last one had too few tokens
        self.refused = 0  # replays since the last try, none of which promised a gain
        self.tries = 0  # drafts of the try under way
        self.lost = 0.0  # seconds lost in the tries since the last rest
        self.rounds_since_plain = 0  # rounds since the last block of plain ones
        self.probing = 0  # rounds left of the block under way

    @property
    def state(self) -> State:
        if self.speculating:
            return "drafting"
        if self.left > 0:
            return "resting"
        return "waiting" if self.pause > 0 else "trying" if self.tries else "looking"

    def copied(self, chances: Sequence[float], drafts: bool) -> int:
        """How many copied ids a round proposes, where the first n are all accepted with `chances[n - 1]`; 0:
        none. `drafts`: whether the drafter can draft instead."""
        plain = self.plain_seconds
        if plain is None:
            return sum(chance > UNTIMED for chance in chances)
        worth, costs = self.token_seconds, self.copy_times.costs(plain)
        count, most, gain = 0, max(self.draft_gain if drafts else 0.0, WORTH * plain), 0.0
        for place, chance in enumerate(chances, 1):
            gain += chance * worth
            if gain - costs[place] > most:
                count, most = place, gain - costs[place]
        return count

    def probes(self) -> int:
        """How many rounds from this one on are plain, to time them. Counted over all answers, because a short
        one alone would never have any."""
        if not self.speculating:
            self.probing = 0
            return 0
        self.probing = max(0, self.probing - 1)
        if not self.probing:
            self.rounds_since_plain += 1
            if self.rounds_since_plain % STRETCH == 0 and self.rounds_since_plain >= self._most_drafts():
                self.rounds_since_plain, self.probing = 0, BLOCK
        return self.probing

    def may_draft(self, look: Look) -> bool:
        """Whether the drafter drafts in this round. `look` replays drafts on the newest tokens."""
        state = self.state
        self.left -= state == "resting"
        self.pause -= state == "waiting"
        return state in ("drafting", "trying") or (state == "looking" and self._promising(look))

    def stop_rule(self) -> StopRule:
        """After which slot a draft ends: where a slot more costs more than it is expected to save. At the
        best speed (Dinkelbach's condition) an accepted slot saves the time that a token takes now."""
        worth = self.token_seconds
        if worth <= 0.0:  # until the first times are known
            segments = self.segments.copy()
            segments[:, 3:] = 1.0, 0.0
            return StopRule(price=0.3, segments=segments)
        return StopRule(price=self.slot_seconds / worth, segments=self.segments)

    def plain_rounds_ahead(self) -> int:
        """How many rounds after this one will probably be plain while drafting loses."""
        return max(self.left, self.pause)

    def drafts_ahead(self) -> int:
        """How many rounds after this one, which drafts, will probably draft."""
        if not self.speculating:
            return max(0, TRY - self.tries - 1)
        soonest = self.rounds_since_plain + STRETCH - self.rounds_since_plain % STRETCH
        return max(soonest, self._most_drafts()) - self.rounds_since_plain - 1

    @property
    def draft_gain(self) -> float:
        """Seconds that a drafting round saves, measured by the newest ones, against a plain round; 0 while
        drafting loses or nothing is known."""
        if not self.speculating or not self._weight or self.plain_seconds is None:
            return 0.0
        more = self._tokens / self._weight - 1.0
        return max(0.0, more * self.token_seconds - (self._seconds / self._weight - self.plain_seconds))

    def _most_drafts(self) -> int:
        """Rounds from one block of plain ones to the next; a multiple of `STRETCH`."""
        near = self.speedup is not None and self.speedup < CLEAR
        later = (NEAR_EVERY if near else PLAIN_EVERY) * BLOCK
        return min(EARLY * 8 ** (self.plain_rounds // STRETCH), later)

    def _promising(self, look: Look) -> bool:
        """Whether a try that is due is made: where a replay on the newest tokens promises a gain."""
        if self.refused == BLIND_EVERY - 1:
            self.doubt()
        if self.plain_seconds is None or self.doubts:
            self.refused = 0
            return True
        replayed, seconds = look()
        if not replayed:  # the answer has only begun
            self.left -= STRETCH
            if self.left < -LONGEST_WAIT:
                return True
            self.pause = STRETCH - 1
            return False
        if self.promises(replayed):
            return True
        self.refused += 1
        self._rest(seconds)
        return False

    def time(
        self, budget: int, drafted: int, proposed: int, tokens: int, draft_seconds: float, seconds: float
    ) -> None:
        """Note a round: its budget, counts of tokens, and the seconds of its draft and of all of it.
        Proposals without a drafter token were copied."""
        if budget and drafted and not self.speculating and self.plain_seconds:
            self.lost += seconds - tokens * self.plain_seconds
        # the first round of a try also reads what was written meanwhile
        timed = self.speculating or self.tries > 1
        self._note(budget, drafted, proposed, tokens, draft_seconds, seconds, timed)

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        """Take the judged slots of a draft: the drafter's probabilities of each slot's tokens (none where it
        did not draw them), and the probability with which each slot was accepted."""
        before = 0.0  # the drafter's probability of the slot before; 0: there is none, or it is not known
        for probs, accepted in zip(draft_probs, accept_probs, strict=False):
            if before:
                self.next_acceptance.learn(before, accepted)
            before = math.prod(probs) if probs else 0.0
            if before:
                self.acceptance.learn(before, accepted)

    def judge(self) -> None:
        """Go to the next state, after a round that drafted."""
        if self.speculating and (not self.drafts or self.drafts % FITTED_EVERY):
            return  # no new fit since the last decision
        speedup = self.speedup
        if speedup is None or self.plain_rounds < 3:
            return
        if self.speculating:
            if speedup < (1.0 if self.drafts >= ENOUGH_DRAFTS else CLEAR_LOSS):
                self._reconsider()
        elif self.left <= 0:
            self.tries += 1
            if self.tries >= TRY and speedup > MARGIN:
                self.speculating, self.wait = True, FIRST_WAIT
            elif self.tries >= TRY:
                self._rest(self.lost)

    def renew(self) -> None:
        """The drafter has changed: where drafting loses, the next replay is made at once, if plain decoding
        has been timed."""
        untimed = BLOCK - self._in_a_row if self.plain_rounds < STRETCH else 0
        self.wait, self.left, self.pause = FIRST_WAIT, max(0, untimed), 0

    def _reconsider(self) -> None:
        """Note that drafting seems to lose. The first time only the measurement starts again, because the
        first rounds of a process are slow; the second time drafting stops. Plain rounds are then timed anew,
        because the machine's pace may have changed."""
        if self.lost_before:
            self.speculating, self.left, self.tries = False, self.wait, 0
            self.forget_plain()
        else:
            self.lost_before, self.drafts = True, 0
        self.doubt()

    def _rest(self, spent: float) -> None:
        """Decode plainly for a while: twice as many rounds as the last time, up to LONGEST_WAIT, or so many
        that the `spent` seconds are at most SPEND of them, up to ten times that."""
        self.wait = min(LONGEST_WAIT, 2 * self.wait)
        needed = spent / (SPEND * self.plain_seconds) if self.plain_seconds else 0.0
        self.left, self.tries, self.lost = max(self.wait, min(int(needed), 10 * LONGEST_WAIT)), 0, 0.0
