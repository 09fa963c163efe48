"""The draft length that pays for itself, by measured times and acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnidemo.copying.copier import CopiedDraft
from omnidemo.decoding.cost_model import FIRST_WAIT, FITTED_EVERY, LONGEST_WAIT, STRETCH, TRY, CostModel
from omnidemo.decoding.draft_policy import AdaptivePolicy, Look, Policy, StopRule

# every third try is made without a replay that promises a gain, because the measured times may be out of date
BLIND_EVERY = 3
# rounds per plain probe round while drafting wins; the second while the speedup is below CLEAR,
PLAIN_EVERY, NEAR_EVERY = 64, 16
CLEAR = 1.2  # because a machine that changes its pace could turn so small a gain into a loss
# rounds before the first probes; four times as many before each next block, up to the figures above
EARLY = 16
ENOUGH_DRAFTS = 24  # drafts (a multiple of `FITTED_EVERY`) before it is decided whether drafting loses,
CLEAR_LOSS = 0.65  # unless the speedup is below this: then `FITTED_EVERY` of them are enough
# plain rounds that a copied draft has to be expected to save, because times and chances are estimates
WORTH = 0.1
UNTIMED = 0.4  # chance from which on a copied id is proposed while no times are known
MARGIN = 1.02  # estimated speedup above which a pair that had given up drafts again


class CostPolicy(AdaptivePolicy):
    """Draft on while the next slot is expected to save more time than it costs, and not at all where plain
    decoding is faster.

    An accepted slot saves the time of one token, so it pays when P(all slots before it and itself are
    accepted) · t_token exceeds the cost of its drafter tokens and its row of the verification. At the best
    speed (Dinkelbach's condition) t_token is the time a token takes now. P is calibrated by what became of
    slots with similar probabilities. While drafting wins, plain rounds are probed now and then. While it
    loses, the drafter replays what was written meanwhile; drafts are tried where that replay promises a gain,
    and sometimes without.
    """

    def copies(self, index: int, copied: CopiedDraft, drafts: bool) -> int:
        """As many as are expected to save the most time, where that is more than what a draft of the drafter
        saves."""
        known, plain = self.cost_model, self.cost_model.plain_seconds
        if plain is None:
            return sum(chance > UNTIMED for chance in copied.chances)
        worth, costs = known.token_seconds, known.copy_times.costs(plain)
        count, most, gain = 0, max(known.draft_gain if drafts else 0.0, WORTH * plain), 0.0
        for place, chance in enumerate(copied.chances, 1):
            gain += chance * worth
            if gain - costs[place] > most:
                count, most = place, gain - costs[place]
        return count

    def budget(self, index: int, look: Look) -> int:
        known, self._rule = self.cost_model, None
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
        known = self.cost_model
        return super().plain_lookahead() if known.speculating else max(known.left, known.pause)

    def draft_lookahead(self) -> int:
        known = self.cost_model
        if not known.speculating:
            return max(0, TRY - known.tries - 1)
        soonest = known.rounds_since_plain + STRETCH - known.rounds_since_plain % STRETCH
        return max(soonest, self._most_drafts()) - known.rounds_since_plain - 1

    def _plain_now(self) -> int:
        """How many rounds from this one on are plain, to time them. Counted over all answers, because a short
        one alone would never have any."""
        known = self.cost_model
        if self._plain > 1:
            return self._plain - 1
        known.rounds_since_plain += 1
        if known.rounds_since_plain % STRETCH or known.rounds_since_plain < self._most_drafts():
            return 0
        known.rounds_since_plain = 0
        return STRETCH

    def _most_drafts(self) -> int:
        """Rounds from one block of plain ones to the next; a multiple of `STRETCH`."""
        known = self.cost_model
        near = known.speedup is not None and known.speedup < CLEAR
        return min(
            EARLY * 4 ** (known.plain_rounds // STRETCH), (NEAR_EVERY if near else PLAIN_EVERY) * STRETCH
        )

    def _promising(self, look: Look) -> bool:
        """Whether a try that is due is made: where a replay on the newest tokens promises a gain."""
        known = self.cost_model
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

    def _new_rule(self) -> StopRule:
        known, worth = self.cost_model, self.cost_model.token_seconds
        if worth <= 0.0:  # until the first times are known
            segments = known.segments.copy()
            segments[:, 3:] = 1.0, 0.0
            return StopRule(price=0.3, segments=segments)
        return StopRule(price=known.slot_seconds / worth, segments=known.segments)

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        super().learn(draft_probs, accept_probs)
        known = self.cost_model
        if known.speculating and (not known.drafts or known.drafts % FITTED_EVERY):
            return  # no new fit since the last decision
        speedup = known.speedup
        if speedup is None or known.plain_rounds < 3:
            return
        if known.speculating:
            if speedup < (1.0 if known.drafts >= ENOUGH_DRAFTS else CLEAR_LOSS):
                known.reconsider()
        elif known.left <= 0:
            known.tries += 1
            if known.tries >= TRY and speedup > MARGIN:
                known.speculating, known.wait = True, FIRST_WAIT
            elif known.tries >= TRY:
                known.rest(known.lost)


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a pair drafts now, for the page. `calibration`: (predicted, observed, observations) of P(accepted)
    by classes."""

    policy: Policy
    length: float
    speculating: bool
    estimated_speedup: float | None
    sentence: str
    calibration: list[tuple[float, float, float]]


def describe(policy: Policy, known: CostModel, has_head: bool, draft_length: int = 4) -> Drafting:
    """How a pair drafts now, with a sentence for the page."""
    losing = policy == "cost" and not known.speculating
    estimated = known.speedup if losing else known.gain
    if losing:
        sentence = (
            "The small model's guesses cost more time than they saved lately, so it rests; it tries again"
            " soon."
        )
    elif policy == "fixed" and draft_length == 0:
        sentence = "Guessing is switched off: the draft length is 0."
    elif policy == "head" and not has_head:
        sentence = "The acceptance head is not trained yet; the drafter's own probabilities stand in for it."
    elif known.length:
        sentence = f"The newest drafts had {known.length:.1f} drafter tokens."
    else:
        sentence = "Nothing has been drafted yet."
    table = known.head if policy == "head" and has_head else known.acceptance
    length = float(draft_length) if policy == "fixed" else known.length
    return Drafting(policy, length, not losing, estimated, sentence, table.rows())
