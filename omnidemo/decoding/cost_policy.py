"""The draft length that pays for itself, by measured times and acceptance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from omnidemo.decoding.cost_model import FIRST_WAIT, FITTED_EVERY, LONGEST_WAIT, STRETCH, TRY, CostModel
from omnidemo.decoding.draft_policy import AdaptivePolicy, Look, Policy, State, StopRule

BLIND_EVERY = 3  # refusals after which a try is made all the same, for times change
PLAIN_EVERY, NEAR_EVERY = 64, 16  # rounds to each plain one of a pair that wins, by which it is known what they take; the second where
CLEAR = 1.2  # its gain is below this, for a machine changes its pace
EARLY = 16  # rounds before the first of them; four times as many before each of the next, until they are that seldom
ENOUGH_DRAFTS = 24  # a multiple of `FITTED_EVERY`, before it is judged whether a pair loses
MARGIN = 1.02  # estimated gain above which a pair that had given up drafts again


class CostPolicy(AdaptivePolicy):
    """Draft on while the next slot is expected to gain more time than it costs, and not at all where plain decoding is faster.

    A slot that is accepted saves the time of a token, so it pays when P(all before it and it are accepted) · t_token exceeds its
    drafter tokens and its row of the verification. At the best speed (Dinkelbach's condition) t_token is the time a token takes now.
    P is calibrated: what became of slots that the drafter was as sure of. Plain rounds are tried now and then while drafting wins. While
    it loses, the drafter reads what was written meanwhile and tells what it would have guessed; drafts are tried where that promises a
    gain, and seldom without.
    """

    def budget(self, index: int, look: Look) -> int:
        known, self._reach = self.knowledge, 1.0
        self._plain = self._plain_now() if known.speculating else 0
        if known.speculating:
            return 0 if self._plain else self.longest
        if known.left > 0:
            known.left -= 1
            return 0
        if known.pause > 0:
            known.pause -= 1
            return 0
        return self.longest if known.tries or self._promising(look) else 0

    def plain_lookahead(self) -> int:
        known = self.knowledge
        return super().plain_lookahead() if known.speculating else max(known.left, known.pause)

    def drafting(self) -> int:
        known = self.knowledge
        if not known.speculating:
            return max(0, TRY - known.tries - 1)
        soonest = known.drafting + STRETCH - known.drafting % STRETCH
        return max(soonest, self._most_drafts()) - known.drafting - 1

    def _plain_now(self) -> int:
        """How many rounds from this one on are plain, to learn what that costs. Counted over all answers, for short ones would never see
        any."""
        known = self.knowledge
        if self._plain > 1:
            return self._plain - 1
        known.drafting += 1
        if known.drafting % STRETCH or known.drafting < self._most_drafts():
            return 0
        known.drafting = 0
        return STRETCH

    def _most_drafts(self) -> int:
        """Rounds from one stretch of plain ones to the next; a multiple of `STRETCH`."""
        known = self.knowledge
        near = known.speedup is not None and known.speedup < CLEAR
        return min(EARLY * 4 ** (known.plain_rounds // STRETCH), (NEAR_EVERY if near else PLAIN_EVERY) * STRETCH)

    def _promising(self, look: Look) -> bool:
        """Whether a try that is due is made: where the newest tokens say that it can win."""
        known = self.knowledge
        if known.refused == BLIND_EVERY - 1:
            known.doubt()
        if known.plain_seconds is None or known.doubts:
            known.refused = 0
            return True
        seen, seconds = look()
        if not seen:  # the answer has only begun
            known.left -= STRETCH
            if known.left < -LONGEST_WAIT:
                return True
            known.pause = STRETCH - 1
            return False
        if known.promises(seen):
            return True
        known.refused += 1
        known.rest(seconds)
        return False

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        known, slot = self.knowledge, math.prod(sure)
        self._reach *= known.sure(slot)
        worth = known.token_seconds
        if worth <= 0.0:
            return self._reach > 0.3  # until the first times are there
        return self._reach * known.next(slot) * worth > known.slot_seconds

    def until(self) -> StopRule:
        known, worth = self.knowledge, self.knowledge.token_seconds
        if worth <= 0.0:
            lines = known.lines.copy()
            lines[:, 3:] = 1.0, 0.0
            return StopRule(self._reach, price=0.3, lines=lines)
        return StopRule(self._reach, price=known.slot_seconds / worth, lines=known.lines)

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        known = self.knowledge
        known.learn(sures, accepts)
        if known.speculating and (known.drafts < ENOUGH_DRAFTS or known.drafts % FITTED_EVERY):
            return  # nothing has changed since it was judged
        speedup = known.speedup
        if speedup is None or known.plain_rounds < 3:
            return
        if known.speculating:
            if speedup < 1.0:
                known.reconsider()
        elif known.left <= 0:
            known.tries += 1
            if known.tries >= TRY and speedup > MARGIN:
                known.speculating, known.wait = True, FIRST_WAIT
            elif known.tries >= TRY:
                known.rest(known.lost)


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a pair drafts now, for people. `calibration`: (predicted, observed, observations) of P(accepted) by classes."""

    policy: Policy
    length: float
    speculating: bool
    estimated_speedup: float | None
    sentence: str
    calibration: list[tuple[float, float, float]]


def describe(policy: Policy, known: CostModel, has_head: bool, draft_length: int = 4) -> Drafting:
    """Say how a pair drafts."""
    losing = policy == "cost" and not known.speculating
    estimated = known.speedup if losing else known.gain
    if losing:
        # While it is tried again the newest estimate may be a gain already.
        shown = f" ({estimated:.2f}×)" if estimated is not None and estimated < 0.995 else ""
        sentence = f"Guessing ahead was slower than plain decoding lately{shown}. It is paused here; it tries again soon."
    elif policy == "fixed" and draft_length == 0:
        sentence = "Guessing is switched off: the draft length is 0."
    elif policy == "head" and not has_head:
        sentence = "The acceptance head is not trained yet; the drafter's own probabilities stand in for it."
    elif known.length:
        sentence = f"The newest drafts had {known.length:.1f} drafter tokens."
    else:
        sentence = "Nothing has been drafted yet."
    table = known.head if policy == "head" and has_head else known.sure
    length = float(draft_length) if policy == "fixed" else known.length
    return Drafting(policy, length, not losing, estimated, sentence, table.rows())
