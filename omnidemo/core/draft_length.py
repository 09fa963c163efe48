"""How long a draft gets: fixed, as long as the drafter is sure, by the acceptance head, or as long as it pays for itself.

All rules are asked between two slots, after a slot was drawn and never about a token that was, and know only what came before. So the
law of what is emitted does not depend on them: a draft that ends early is a draft with a smaller budget.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Policy = Literal["fixed", "confidence", "cost", "head"]
State = NDArray[np.float32]  # [H]: what the drafter's output layer read when it predicted a token
Head = Callable[[State, float], float]  # (state, log q of the token drawn) → P(accepted)
# Of each of the newest target tokens: how many drafter tokens spell it, and with which probability it would have been accepted.
Hindsight = Sequence[tuple[int, float]]
Look = Callable[[], Hindsight]

EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # of the classes of a calibration
FORGET = 0.99  # weight of what a class knew, per new observation in it
BELIEF = 5.0  # observations that the drafter's own probability is worth at first
RECENT = 0.975  # the same for tokens and seconds of drafting rounds: 40 rounds are remembered
FIRST_WAIT, LONGEST_WAIT = 24, 96  # plain rounds between two looks or tries of a pair that loses, and more where those are dear:
SPEND = 0.01  # the share of plain decoding's time that they may take
TRY = 6  # rounds of a try
LOOK, ENOUGH = 96, 16  # newest tokens by which it is judged beforehand whether a try can win, and fewest that tell anything
MOST_SLOTS = 8  # of the drafts that are looked for
PROMISE = 1.1  # gain that makes a try worth it: this is the best of several lengths, afterwards
BLIND_EVERY = 8  # refusals after which a try is made all the same, for times change
PLAIN_EVERY = 64  # rounds to each plain one of a pair that wins, from which the time of a plain round is known
STRETCH = 8  # plain rounds in a row: a small target writes them in one go, and a single one among drafts takes longer
FEW = 5  # plain rounds below this are sought earlier
EARLY = 16  # rounds before the first of them
ENOUGH_DRAFTS = 24  # before a pair gives up: an answer's first ones tell little, and what lasted long is not measured again then
LEAST, MOST = 0.5, 1.3  # bounds of t_1, in mean times of a drafter token, which hold what a draft costs once
TIMES = 15  # newest times of each kind, whose median counts: one slow round must not
MARGIN = 1.02  # estimated gain below which a pair gives up


class Calibration:
    """P(accepted) by classes of what was predicted, from what came of it. The prediction itself counts as `BELIEF` observations."""

    def __init__(self, prior: float | None = None, lines: NDArray[np.float64] | None = None) -> None:
        self.prior = prior  # believed instead of the prediction
        # (a, b) of each class: P is a + b · prediction.
        self.lines = np.zeros((len(EDGES) + 1, 2)) if lines is None else lines
        self.weight = [0.0] * (len(EDGES) + 1)
        self.accepted = [0.0] * (len(EDGES) + 1)
        self.predicted = [0.0] * (len(EDGES) + 1)
        for at in range(len(self.lines)):
            self._draw(at)

    def __call__(self, predicted: float) -> float:
        at = bisect_right(EDGES, predicted)
        believed = predicted if self.prior is None else self.prior
        return (self.accepted[at] + BELIEF * believed) / (self.weight[at] + BELIEF)

    def learn(self, predicted: float, accepted: float) -> None:
        """Take note of an acceptance (0 or 1, or its probability)."""
        at = bisect_right(EDGES, predicted)
        self.weight[at] = FORGET * self.weight[at] + 1.0
        self.accepted[at] = FORGET * self.accepted[at] + accepted
        self.predicted[at] = FORGET * self.predicted[at] + predicted
        self._draw(at)

    def _draw(self, at: int) -> None:
        seen, line = self.weight[at] + BELIEF, self.lines[at]
        line[0] = (self.accepted[at] + (0.0 if self.prior is None else BELIEF * self.prior)) / seen
        line[1] = BELIEF / seen if self.prior is None else 0.0

    def rows(self) -> list[tuple[float, float, float]]:
        """(mean prediction, acceptance observed, weight of the observations) of each class that has any: a reliability plot."""
        seen = zip(self.predicted, self.accepted, self.weight, strict=True)
        return [(predicted / weight, accepted / weight, weight) for predicted, accepted, weight in seen if weight > 0]


class Knowledge:
    """What a pair has found out about drafting, over all its requests: how sure the drafter is when it is right, and what things cost.

    A round of d drafter tokens is taken to last t_0 + d·t_1 seconds, fitted to medians of the newest times of each d: t_1 is what one
    more token costs both models. A plain round lasts t_plain, a median of means: the first one of a stretch takes longer than the others.
    """

    def __init__(self) -> None:
        self.lines = np.zeros((len(EDGES) + 1, 5))  # of `Until`, by the calibrations
        self.lines[1:, 0] = EDGES
        self.sure = Calibration(lines=self.lines[:, 1:3])  # by the drafter's own probability of a slot
        self.head = Calibration()  # by the head's
        # Of the slot after one that was accepted, by how sure the drafter was of that one.
        self.next = Calibration(prior=0.6, lines=self.lines[:, 3:])
        self.rounds = 0
        self.forget_times()

    def forget_times(self) -> None:
        """Begin anew with what things cost: passes are made in another way from now on."""
        self.speculating = True
        self.wait, self.left, self.tries, self.refused = FIRST_WAIT, 0, 0, 0
        self.lost = 0.0  # seconds in the tries since the last rest
        self.drafting = 0  # rounds since the last stretch of plain ones
        self.pause = 0  # rounds until it is looked again, where there was nothing to see yet
        self.drafts = 0  # rounds with one
        self._tokens = self._seconds = self._drafted = self._proposed = self._weight = 0.0  # of drafting rounds, old ones fading
        self._times: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=TIMES))  # by number of drafter tokens
        self._each: deque[float] = deque(maxlen=TIMES)
        self._plain: deque[float] = deque(maxlen=TIMES)  # means of `STRETCH` rounds each
        self._newest: list[float] = []  # of plain rounds since
        self.first_seconds = self.draft_seconds = 0.0  # t_0 and t_1
        self.plain_seconds: float | None = None
        self._plain_then: float | None = None  # t_plain when something was drafted last: a machine that changes its pace changes all times

    @property
    def length(self) -> float:
        """Drafter tokens of a drafting round, on average over the newest."""
        return self._drafted / self._weight if self._weight else 0.0

    @property
    def plain_rounds(self) -> int:
        return STRETCH * len(self._plain) + len(self._newest)

    @property
    def speedup(self) -> float | None:
        """Tokens per second of drafting rounds over those of plain ones, estimated from the newest drafts and plain rounds of that time."""
        plain = self._plain_then or self.plain_seconds
        return self._tokens / self._seconds * plain if plain is not None and self._seconds > 0 else None

    def renew(self) -> None:
        """Have a pair that loses look at once whether it can win: its drafter has changed."""
        self.wait, self.left, self.pause = FIRST_WAIT, 0, 0

    def promises(self, seen: Hindsight) -> bool:
        """Whether drafts of some fixed length would have been faster than plain decoding on these tokens."""
        plain = self._plain_then or self.plain_seconds or 0.0
        pieces, accept = np.array(seen).T
        each, reach, tokens = float(pieces.mean()) * self.slot_seconds, accept, 1.0
        for length in range(1, min(MOST_SLOTS, len(seen)) + 1):
            tokens += float(reach.mean())  # P(this many are accepted), from wherever a draft begins
            if tokens * plain > PROMISE * (self.first_seconds + length * each):
                return True
            reach = reach[:-1] * accept[length:]
        return False

    def rest(self, spent: float) -> None:
        """Decode plainly for a while: twice as long as the last time, and so long that these seconds are a small share of it."""
        self.wait = min(LONGEST_WAIT, 2 * self.wait)
        bearable = spent / (SPEND * self.plain_seconds) if self.plain_seconds else 0.0
        self.left, self.tries, self.lost = max(self.wait, min(int(bearable), 10 * LONGEST_WAIT)), 0, 0.0

    @property
    def token_seconds(self) -> float:
        """What a token costs at the better of both speeds, so what one more accepted token is worth; 0 while nothing is known."""
        drafting = self._seconds / self._tokens if self._tokens > 0 else math.inf
        best = min(drafting, self.plain_seconds or math.inf)
        return best if math.isfinite(best) else 0.0

    @property
    def slot_seconds(self) -> float:
        """What one more slot costs, drafter tokens that are drawn for nothing included."""
        return self.draft_seconds * max(1.0, self._drafted / self._proposed if self._proposed else 1.0)

    def learn(self, sure: Sequence[float], accepts: Sequence[float]) -> None:
        """Take the judged slots of a draft: how sure the drafter was of each, and with which probability it was accepted."""
        for index, (predicted, accepted) in enumerate(zip(sure, accepts, strict=False)):
            self.sure.learn(predicted, accepted)
            if index:
                self.next.learn(sure[index - 1], accepted)

    def begin(self, drafted: int, draft_seconds: float) -> None:
        """Take how long the first draft of an answer lasted, which also reads the prompt: drafting has to make up for that too."""
        if drafted and self._weight:
            self._seconds += max(0.0, draft_seconds - drafted * self.draft_seconds)

    def time(self, budget: int, drafted: int, proposed: int, tokens: int, draft_seconds: float, seconds: float) -> None:
        """Take what a round did, and how long its draft and all of it lasted."""
        self.rounds += 1
        if budget == 0:
            self._newest.append(seconds)
            if len(self._newest) == STRETCH:
                self._plain.append(sum(self._newest) / STRETCH)
                self._newest = []
            self._settle_plain()
            return
        if not drafted:
            return
        self.drafts, self._plain_then = self.drafts + 1, self.plain_seconds
        if not self.speculating and self.plain_seconds:
            self.lost += seconds - tokens * self.plain_seconds
        self._times[drafted].append(seconds)
        self._each.append(draft_seconds / drafted)
        if self.rounds % 8 == 0 or not self.first_seconds:
            self._fit()
        lasted = self.first_seconds + drafted * self.draft_seconds
        self._tokens, self._seconds = RECENT * self._tokens + tokens, RECENT * self._seconds + lasted
        self._drafted, self._weight = RECENT * self._drafted + drafted, RECENT * self._weight + 1.0
        self._proposed = RECENT * self._proposed + proposed

    def _fit(self) -> None:
        """t_0 and t_1 by least squares over the medians, weighted by how many times there are."""
        points = [(drafted, median(times), len(times)) for drafted, times in self._times.items()]
        total = sum(weight for _, _, weight in points)
        x = sum(weight * drafted for drafted, _, weight in points) / total
        y = sum(weight * seconds for _, seconds, weight in points) / total
        spread = sum(weight * (drafted - x) ** 2 for drafted, _, weight in points)
        slope = sum(weight * (drafted - x) * (seconds - y) for drafted, seconds, weight in points) / spread if spread >= FEW else 0.0
        # A busy machine bends the line, so the slope is kept near what drafting alone takes per token.
        each = median(self._each)
        self.draft_seconds = min(max(slope, LEAST * each), MOST * each)
        self.first_seconds = max(0.0, y - self.draft_seconds * x)
        self._settle_plain()

    def _settle_plain(self) -> None:
        """t_plain: a plain round does less than one with a draft of one token, so a burst of load among its few times is seen through."""
        if self.plain_rounds:
            plain, shortest = median(self._plain or self._newest), self.first_seconds + self.draft_seconds
            self.plain_seconds = min(plain, shortest) if shortest > 0 else plain


@dataclass(slots=True)
class Until:
    """What a rule will probably say between two slots, for those who draw several before they can ask it.

    After a slot that was drawn with probability s, `reach` is multiplied by a + b·s, and another one follows where s ≥ `least` and
    `reach` · (c + d·s) > `price`. `lines` [n, 5] are (from which s on, a, b, c, d).
    """

    reach: float = 1.0
    least: float = 0.0
    price: float = -1.0
    lines: NDArray[np.float64] = field(default_factory=lambda: np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]))


NEVER = Until()
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

    def until(self) -> Until:
        """A guess of what `goes_on` will say from here on."""
        ...

    def learn(self, pieces: Sequence[int], accepts: Sequence[float]) -> None:
        """What came of a draft: drafter tokens of each slot, and acceptance probabilities of those that were judged."""
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

    def until(self) -> Until:
        return NEVER

    def learn(self, pieces: Sequence[int], accepts: Sequence[float]) -> None:
        pass


class Watching:
    """What the rules that watch have in common: up to `longest` drafter tokens, and how sure the drafter was of each so far."""

    watches = True
    reads_states = False

    def __init__(self, longest: int, knowledge: Knowledge, probe_every: int = 0) -> None:
        self.longest, self.knowledge, self.probe_every = longest, knowledge, probe_every
        self._plain = 0  # rounds without a draft from this one on
        self._drafts = 0  # with one after this one, if this one has one
        self._sure: list[float] = []  # of each drafter token in this round
        self._reach = 1.0  # P(all slots so far are accepted)

    def budget(self, index: int, look: Look) -> int:
        self._sure, self._reach = [], 1.0
        self._plain, self._drafts = self._plain_from(index), until_stretch(index, self.probe_every)
        return 0 if self._plain else self.longest

    def _plain_from(self, index: int) -> int:
        """How many rounds from this one on are plain, to learn what that costs."""
        return stretch(index, self.probe_every)

    def resting(self) -> int:
        return max(0, self._plain - 1)

    def drafting(self) -> int:
        return self._drafts

    def goes_on(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        self._sure += sure
        return self._pays(sure, states)

    def _pays(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        raise NotImplementedError

    def until(self) -> Until:
        raise NotImplementedError

    def learn(self, pieces: Sequence[int], accepts: Sequence[float]) -> None:
        self.knowledge.learn(_by_slot(self._sure, pieces), accepts)


class Confidence(Watching):
    """Stop after a slot that the drafter itself gave less than `threshold`."""

    def __init__(self, longest: int, knowledge: Knowledge, threshold: float, probe_every: int = 0) -> None:
        super().__init__(longest, knowledge, probe_every)
        self.threshold = threshold

    def _pays(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        return math.prod(sure) >= self.threshold

    def until(self) -> Until:
        return Until(least=self.threshold)


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

    def _pays(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        predicted = list(sure)
        if self.head is not None and len(states) == len(sure):
            predicted = [self.head(state, math.log(max(q, 1e-30))) for state, q in zip(states, sure, strict=True)]
        self._predicted += predicted
        self._reach *= math.prod(predicted)
        return 1.0 - self._reach <= self.gamma

    def until(self) -> Until:
        return Until(self._reach, price=1.0 - self.gamma, lines=AS_SURE)

    def learn(self, pieces: Sequence[int], accepts: Sequence[float]) -> None:
        super().learn(pieces, accepts)
        for predicted, accepted in zip(_by_slot(self._predicted, pieces), accepts, strict=False):
            self.knowledge.head.learn(predicted, accepted)


class ByCost(Watching):
    """Draft on while the next slot is expected to gain more time than it costs, and not at all where plain decoding is faster.

    A slot that is accepted saves the time of a token, so it pays when P(all before it and it are accepted) · t_token exceeds its
    drafter tokens and its row of the verification. At the best speed (Dinkelbach's condition) t_token is the time a token takes now.
    P is calibrated: what became of slots that the drafter was as sure of. Plain rounds are tried now and then while drafting wins. While
    it loses, the drafter reads what was written meanwhile and tells what it would have guessed; drafts are tried where that promises a
    gain, and seldom without.
    """

    def budget(self, index: int, look: Look) -> int:
        longest, known = super().budget(index, look), self.knowledge
        if known.speculating:
            return longest
        if known.left > 0:
            known.left -= 1
            return 0
        if known.pause > 0:
            known.pause -= 1
            return 0
        return longest if known.tries or self._promising(look) else 0

    def resting(self) -> int:
        known = self.knowledge
        return super().resting() if known.speculating else max(known.left, known.pause)

    def drafting(self) -> int:
        known = self.knowledge
        return self._most_drafts() - known.drafting - 1 if known.speculating else max(0, TRY - known.tries - 1)

    def _plain_from(self, index: int) -> int:
        """Counted over all answers, for short ones would never see any."""
        known, left = self.knowledge, max(0, self._plain - 1)
        if not known.speculating:
            return 0
        if left:
            return left
        known.drafting += 1
        if known.drafting < self._most_drafts():
            return 0
        known.drafting = 0
        return STRETCH

    def _most_drafts(self) -> int:
        """Rounds from one stretch of plain ones to the next."""
        return EARLY if self.knowledge.plain_rounds < FEW else PLAIN_EVERY * STRETCH

    def _promising(self, look: Look) -> bool:
        """Whether a try that is due is made: where the newest tokens say that it can win."""
        known = self.knowledge
        if known.plain_seconds is None or known.refused % BLIND_EVERY == BLIND_EVERY - 1:
            known.refused = 0
            return True
        began = perf_counter()
        seen = look()
        if not seen:  # the answer has only begun
            known.left -= STRETCH
            if known.left < -LONGEST_WAIT:
                return True
            known.pause = STRETCH - 1
            return False
        if known.promises(seen):
            return True
        known.refused += 1
        known.rest(perf_counter() - began)
        return False

    def _pays(self, sure: Sequence[float], states: Sequence[State]) -> bool:
        known, slot = self.knowledge, math.prod(sure)
        self._reach *= known.sure(slot)
        worth = known.token_seconds
        if worth <= 0.0:
            return self._reach > 0.3  # until the first times are there
        return self._reach * known.next(slot) * worth > known.slot_seconds

    def until(self) -> Until:
        known, worth = self.knowledge, self.knowledge.token_seconds
        if worth <= 0.0:
            lines = known.lines.copy()
            lines[:, 3:] = 1.0, 0.0
            return Until(self._reach, price=0.3, lines=lines)
        return Until(self._reach, price=known.slot_seconds / worth, lines=known.lines)

    def learn(self, pieces: Sequence[int], accepts: Sequence[float]) -> None:
        super().learn(pieces, accepts)
        known = self.knowledge
        speedup = known.speedup
        if speedup is None or known.plain_rounds < 3:
            return
        if known.speculating:
            if speedup < MARGIN and known.drafts >= ENOUGH_DRAFTS:
                known.speculating, known.left, known.tries = False, known.wait, 0
        elif known.left <= 0:
            known.tries += 1
            if speedup > MARGIN:
                known.speculating, known.wait = True, FIRST_WAIT
            elif known.tries >= TRY:
                known.rest(known.lost)


def _by_slot(each: Sequence[float], pieces: Sequence[int]) -> list[float]:
    """Products over the drafter tokens of each slot; as many as there are tokens for."""
    found, at = [], 0
    for count in pieces:
        if at + count > len(each):
            break
        found.append(math.prod(each[at : at + count]))
        at += count
    return found


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a pair drafts now, for people. `calibration`: (predicted, observed, observations) of P(accepted) by classes."""

    policy: Policy
    length: float
    speculating: bool
    estimated_speedup: float | None
    sentence: str
    calibration: list[tuple[float, float, float]]


def describe(policy: Policy, known: Knowledge, has_head: bool) -> Drafting:
    """Say how a pair drafts."""
    estimated = known.speedup
    losing = policy == "cost" and not known.speculating
    if losing:
        # While it is tried again the newest estimate may be a gain already.
        shown = f" ({estimated:.2f}×)" if estimated is not None and estimated < 0.995 else ""
        sentence = f"Guessing ahead was slower than plain decoding lately{shown}, so the target writes alone; whether drafts would win "
        sentence += f"again is looked at after {known.left} more tokens." if known.left > 1 else "again is looked at soon."
    elif policy == "head" and not has_head:
        sentence = "The acceptance head is not trained yet; the drafter's own probabilities stand in for it."
    elif known.length:
        sentence = f"The newest drafts had {known.length:.1f} drafter tokens."
    else:
        sentence = "Nothing has been drafted yet."
    table = known.head if policy == "head" and has_head else known.sure
    return Drafting(policy, known.length, not losing, estimated, sentence, table.rows())
