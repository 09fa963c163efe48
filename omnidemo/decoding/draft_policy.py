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

from omnidemo.decoding.cost_model import STRETCH, CostModel, Hindsight

Policy = Literal["fixed", "confidence", "cost", "head"]
State = NDArray[np.float32]  # [H]: what the drafter's output layer read when it predicted a token
Head = Callable[[State, float], float]  # (state, log q of the token drawn) → P(accepted)
Look = Callable[[], tuple[Hindsight, float]]  # what is seen, and the seconds that it took

LOOK, ENOUGH = 96, 16  # newest tokens by which it is judged beforehand whether a try can win, and fewest that tell anything


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


class DraftPolicy(Protocol):
    """The rule of one generation. `reads_states`: `goes_on` wants the drafter's states; `watches`: it wants to be asked at all."""

    watches: bool
    reads_states: bool

    def budget(self, index: int, look: Look) -> int:
        """Drafter tokens that the draft of round `index` may use; 0 is plain decoding. `look` has nothing to tell of fewer than ENOUGH
        tokens, else it costs the drafter's pass over what it has not read, which a draft then need not make again."""
        ...

    def plain_lookahead(self) -> int:
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
class FixedPolicy:
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

    def plain_lookahead(self) -> int:
        return max(0, self._plain - 1) if self.k else LOOK

    def drafting(self) -> int:
        return self._drafts

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        return True

    def until(self) -> StopRule:
        return NEVER

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        pass


class AdaptivePolicy:
    """What the rules that watch have in common: up to `longest` drafter tokens, and what they find out about them."""

    watches = True
    reads_states = False

    def __init__(self, longest: int, knowledge: CostModel, probe_every: int = 0) -> None:
        self.longest, self.knowledge, self.probe_every = longest, knowledge, probe_every
        self._plain = 0  # rounds without a draft from this one on
        self._drafts = 0  # with one after this one, if this one has one
        self._reach = 1.0  # P(all slots so far are accepted)

    def budget(self, index: int, look: Look) -> int:
        self._reach = 1.0
        self._plain, self._drafts = stretch(index, self.probe_every), until_stretch(index, self.probe_every)
        return 0 if self._plain else self.longest

    def plain_lookahead(self) -> int:
        return max(0, self._plain - 1)

    def drafting(self) -> int:
        return self._drafts

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        raise NotImplementedError

    def until(self) -> StopRule:
        raise NotImplementedError

    def learn(self, sures: Sequence[Sequence[float]], accepts: Sequence[float]) -> None:
        self.knowledge.learn(sures, accepts)


class ConfidencePolicy(AdaptivePolicy):
    """Stop after a slot that the drafter itself gave less than `threshold`."""

    def __init__(self, longest: int, knowledge: CostModel, threshold: float, probe_every: int = 0) -> None:
        super().__init__(longest, knowledge, probe_every)
        self.threshold = threshold

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        return math.prod(sure) >= self.threshold

    def until(self) -> StopRule:
        return StopRule(least=self.threshold)


class HeadPolicy(AdaptivePolicy):
    """Stop when 1 − Π P(accepted) > γ, with P from the acceptance head (SpecDec++; OmniDraft, equation 7).

    A slot of several drafter tokens is accepted as a whole, with the product of theirs. `head` None: none is trained yet, and the
    drafter's own probabilities stand in for it.
    """

    reads_states = True

    def __init__(self, longest: int, knowledge: CostModel, gamma: float, head: Head | None, probe_every: int = 0) -> None:
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
