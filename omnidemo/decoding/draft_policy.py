"""How long a draft gets: fixed, as long as the drafter is sure, by the acceptance head, or as long as it pays for itself.

All rules are asked between two slots, after a slot was drawn and never about a token that was, and know only what came before. So the
law of what is emitted does not depend on them: a draft that ends early is a draft with a smaller budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.cost_model import FIRST_WAIT, FITTED_EVERY, LONGEST_WAIT, STRETCH, TRY, Hindsight, Knowledge

Policy = Literal["fixed", "confidence", "cost", "head"]
State = NDArray[np.float32]  # [H]: what the drafter's output layer read when it predicted a token
Head = Callable[[State, float], float]  # (state, log q of the token drawn) → P(accepted)
Look = Callable[[], tuple[Hindsight, float]]  # what is seen, and the seconds that it took

LOOK, ENOUGH = 96, 16  # newest tokens by which it is judged beforehand whether a try can win, and fewest that tell anything
BLIND_EVERY = 3  # refusals after which a try is made all the same, for times change
PLAIN_EVERY, NEAR_EVERY = 64, 16  # rounds to each plain one of a pair that wins, by which it is known what they take; the second where
CLEAR = 1.2  # its gain is below this, for a machine changes its pace
EARLY = 16  # rounds before the first of them; four times as many before each of the next, until they are that seldom
ENOUGH_DRAFTS = 24  # a multiple of `FITTED_EVERY`, before it is judged whether a pair loses
MARGIN = 1.02  # estimated gain above which a pair that had given up drafts again


@dataclass(slots=True)
class StopRule:
    """What a rule will probably say between two slots, for those who draw several before they can ask it.

    After a slot that was drawn with probability s, `reach` is multiplied by a + b·s, and another one follows where s ≥ `least` and
    `reach` · (c + d·s) > `price`. `lines` [n, 5] are (from which s on, a, b, c, d).
    """

    reach: float = 1.0
    least: float = 0.0
    price: float = -1.0
    lines: NDArray[np.float64] = field(default_factory=lambda: np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]))


NEVER = StopRule()
AS_SURE = np.array([[0.0, 0.0, 1.0, 1.0, 0.0]])  # lines by which a slot is accepted as often as the drafter thinks


class DraftLength(Protocol):
    """The rule of one generation. `reads_states`: `goes_on` wants the drafter's states; `watches`: it wants to be asked at all."""

    watches: bool
    reads_states: bool

    def budget(self, index: int, look: Look) -> int:
        """Drafter tokens that the draft of round `index` may use; 0 is plain decoding. `look` has nothing to tell of fewer than ENOUGH
        tokens, else it costs the drafter's pass over what it has not read, which a draft then need not make again."""
        ...

    def resting(self) -> int:
        """After a budget of 0: how many more rounds will probably have none."""
        ...

    def drafting(self) -> int:
        """After a budget above 0: how many more rounds will probably have the same."""
        ...

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        """Whether another slot is drafted after one whose tokens were drawn with these probabilities."""
        ...

    def until(self) -> StopRule:
        """A guess of what `goes_on` will say from here on."""
        ...

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        """What came of a draft: with which probabilities the tokens of each slot were drawn (nothing where it was spelled otherwise), and
        the acceptance probabilities of those that were judged."""
        ...


def stretch(index: int, every: int) -> int:
    """How many rounds from round `index` on are plain where one in `every` is (0: none), which tells what a plain one costs. They come
    `STRETCH` in a row, first after `every` − 1 rounds."""
    place = index % (every * STRETCH) - every + 1 if every else -1
    return STRETCH - place if 0 <= place < STRETCH else 0


def until_stretch(index: int, every: int) -> int:
    """How many rounds after round `index`, which is none of them, come before the next plain one."""
    return (every - 2 - index) % (every * STRETCH) if every else LOOK


@dataclass(slots=True)
class Fixed:
    """Always k drafter tokens, but for one in `probe_every` rounds (0: none) without; see `stretch`."""

    k: int
    probe_every: int = 0
    watches: bool = False
    reads_states: bool = False
    _plain: int = field(default=0, init=False)
    _drafts: int = field(default=0, init=False)

    def budget(self, index: int, look: Look) -> int:
        self._plain, self._drafts = stretch(index, self.probe_every), until_stretch(index, self.probe_every)
        return 0 if self._plain else self.k

    def resting(self) -> int:
        return max(0, self._plain - 1) if self.k else LOOK

    def drafting(self) -> int:
        return self._drafts

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        return True

    def until(self) -> StopRule:
        return NEVER

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        pass


class Watching:
    """What the rules that watch have in common: up to `longest` drafter tokens, and what they find out about them."""

    watches = True
    reads_states = False

    def __init__(self, longest: int, knowledge: Knowledge, probe_every: int = 0) -> None:
        self.longest, self.knowledge, self.probe_every = longest, knowledge, probe_every
        self._plain = 0  # rounds without a draft from this one on
        self._drafts = 0  # with one after this one, if this one has one
        self._reach = 1.0  # P(all slots so far are accepted)

    def budget(self, index: int, look: Look) -> int:
        self._reach = 1.0
        self._plain, self._drafts = stretch(index, self.probe_every), until_stretch(index, self.probe_every)
        return 0 if self._plain else self.longest

    def resting(self) -> int:
        return max(0, self._plain - 1)

    def drafting(self) -> int:
        return self._drafts

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        raise NotImplementedError

    def until(self) -> StopRule:
        raise NotImplementedError

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        self.knowledge.learn(sures, accepts)


class Confidence(Watching):
    """Stop after a slot that the drafter itself gave less than `threshold`."""

    def __init__(self, longest: int, knowledge: Knowledge, threshold: float, probe_every: int = 0) -> None:
        super().__init__(longest, knowledge, probe_every)
        self.threshold = threshold

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        return math.prod(sure) >= self.threshold

    def until(self) -> StopRule:
        return StopRule(least=self.threshold)


class ByHead(Watching):
    """Stop when 1 − Π P(accepted) > γ, with P from the acceptance head (SpecDec++; OmniDraft, equation 7).

    A slot of several drafter tokens is accepted as a whole, with the product of theirs. `head` None: none is trained yet, and the
    drafter's own probabilities stand in for it.
    """

    reads_states = True

    def __init__(self, longest: int, knowledge: Knowledge, gamma: float, head: Head | None, probe_every: int = 0) -> None:
        super().__init__(longest, knowledge, probe_every)
        self.gamma, self.head = gamma, head
        self.reads_states = head is not None
        self._predicted: list[float] = []

    def budget(self, index: int, look: Look) -> int:
        self._predicted = []
        return super().budget(index, look)

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        predicted = sure
        if self.head is not None and len(states) == len(sure):
            predicted = [self.head(state, math.log(max(q, 1e-30))) for state, q in zip(states, sure, strict=True)]
        self._predicted += predicted
        self._reach *= math.prod(predicted)
        return 1.0 - self._reach <= self.gamma

    def until(self) -> StopRule:
        return StopRule(self._reach, price=1.0 - self.gamma, lines=AS_SURE)

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        super().learn(sures, accepts)
        if self.head is None:
            return
        at = 0
        for sure, accepted in zip(sures, accepts, strict=False):
            if sure:
                self.knowledge.head.learn(math.prod(self._predicted[at : at + len(sure)]), accepted)
            at += len(sure)


class ByCost(Watching):
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

    def resting(self) -> int:
        known = self.knowledge
        return super().resting() if known.speculating else max(known.left, known.pause)

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


def describe(policy: Policy, known: Knowledge, has_head: bool, draft_length: int = 4) -> Drafting:
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
