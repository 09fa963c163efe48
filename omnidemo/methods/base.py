"""What every decoding method is: two verbs, `draft` and `settle`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from omnidemo.core.ahead import DRAWS, Course, Order, Rollout, Turn, token_by_token
from omnidemo.core.contexts import DrafterContext
from omnidemo.core.draft_length import DraftLength, State
from omnidemo.core.ngrams import NgramCache
from omnidemo.core.peaks import Peaks
from omnidemo.core.sampling import (
    Chooser,
    Law,
    Sampler,
    Warp,
    as_array,
    as_tensor,
    chosen,
    draw_known,
    fetch,
    highest,
    highest_each,
    on_host,
)
from omnidemo.core.shares import share, warm
from omnidemo.core.tandem import NUMBERS, Tandem
from omnidemo.core.vocabulary import VocabularyMap


class NotFinite(ArithmeticError):
    """The drafter's numbers are not finite here, so nothing can be drawn from them."""


@dataclass(slots=True)
class Slot:
    """One proposed target token. `target_id` is −1 for ∅: the drafter drew, but nothing complete came of it.

    `pieces` are the drafter ids that spell the token; none where its end falls inside a drafter token, whose ids then belong to a
    later slot. `q` is the probability (or an upper bound of it) with which the slot proposes the token, above temperature 0; `base` the
    number of drafter ids before the slot; `laws` the drafter's laws [D] along the paths that have been looked at, by path; `sure` the
    drafter's probability of each piece, nothing where the token is spelled otherwise than it was drawn.
    """

    target_id: int
    pieces: tuple[int, ...]
    q: float
    base: int
    limit: int = 0
    laws: dict[tuple[int, ...], Law] = field(default_factory=dict)
    sure: Sequence[float] = ()


@dataclass(slots=True)
class Draft:
    slots: list[Slot] = field(default_factory=list)
    drafted: int = 0

    @property
    def proposal(self) -> list[int]:
        return [slot.target_id for slot in self.slots if slot.target_id >= 0]


@dataclass(slots=True)
class Settlement:
    """`accepted` slots were kept; `token` is what the target wrote after them, None after an accepted end token.

    `accepts` holds the acceptance probability of each judged slot; `rejected` tells a correction from a bonus token.
    """

    accepted: int
    token: int | None
    rejected: bool
    accepts: list[float]


@dataclass(slots=True)
class Hand:
    """What a method works with during one round. Trie and weights do not change while it is out."""

    drafter: DrafterContext
    map: VocabularyMap
    ngrams: NgramCache
    warp: Warp
    chooser: Chooser
    end_ids: frozenset[int]
    seen: Tensor | None = None  # [D] bool: drafter ids in the text before the round, where a repetition penalty wants to know
    start: int = 0  # number of those ids
    length: DraftLength | None = None  # when a draft ends before its budget is used up
    peaks: Peaks | None = None  # of the rows to settle by, where they are known
    # What the device has drawn ahead, in order: the number of ids before it, the id, its probability and law.
    _foreseen: deque[tuple[int, int, float, Law]] = field(default_factory=deque, init=False, repr=False)
    _blind: bool = field(default=False, init=False, repr=False)  # nothing can be drawn ahead in this round
    _decided: bool = field(default=False, init=False, repr=False)  # where the draft ends was found when it was made in advance

    def logits(self) -> Tensor:
        """The drafter's logits [D] after all its ids, with the repetition penalty."""
        logits = as_tensor(self.drafter.logits())
        if self.seen is None:
            return logits
        seen = self.seen
        if len(self.drafter.ids) > self.start:
            seen = seen.clone()
            seen[torch.tensor(self.drafter.ids[self.start :], device=seen.device)] = True
        return self.warp.penalised(logits, seen)

    def masked(self, bars: Tensor) -> Tensor:
        """The logits [D] and `bars` [D], which are −∞ for what may not be drawn and 0 for the rest. They come before the warp, so that
        top-k counts what may be drawn."""
        return self.logits() + bars

    def law(self, bars: Tensor) -> Law:
        """The drafter's law [D] among what the `bars` [D] leave, renormalised."""
        if self.seen is None and self.warp.plain and not self.warp.greedy and on_host(logits := self.drafter.logits()):
            return warm(as_array(logits) + as_array(bars), self.warp.temperature)
        return self.warp.law(self.masked(bars))

    def draw(self, bars: Callable[[], Tensor]) -> tuple[int, float, Law]:
        """Draw the next drafter token among what the bars [D] leave, if it has not been drawn ahead: (id, its probability, the law [D]). At
        temperature 0 the law is the masked logits, and the probability what it would be at temperature 1.
        NotFinite where there is no law."""
        drawn, q, law = self._drawn(bars)
        if not 0.0 < q <= 2.0:  # beyond rounding: what is not a number, and what infinite logits come to
            raise NotFinite
        return drawn, q, law

    def _drawn(self, bars: Callable[[], Tensor]) -> tuple[int, float, Law]:
        if self._foreseen and (foreseen := self._take_foreseen()) is not None:
            return foreseen
        if self.warp.greedy:
            logits = self.masked(bars())
            if on_host(logits):
                drawn = highest(logits)
                return drawn, share(logits.numpy(), drawn), logits
            best = logits.argmax(-1, keepdim=True)
            return *fetch(best, logits.softmax(-1).gather(-1, best)), logits
        law = self.law(bars())
        return *draw_known(self.chooser, law), law

    def readable_bars(self) -> Tensor:
        """Those of draws within a text."""
        return self.map.readable_bars

    def look_ahead(self, course: Callable[[Hand], Course], left: int) -> None:
        """Between two slots: have the draws of the next ones made where the drafter computes, all at once. `draw` then
        gives them out. `course` says how they go on, `left` for how many drafter tokens. Does nothing where it cannot be done."""
        if self._blind or (self._foreseen and self._foreseen[0][0] == len(self.drafter.ids)):
            return
        self._foreseen.clear()
        greedy = self.warp.greedy
        self._blind = self.seen is not None or not self.drafter.rolls or not (greedy or isinstance(self.chooser, Sampler))
        if self._blind:
            return
        uniforms = self.chooser.look_ahead(DRAWS) if isinstance(self.chooser, Sampler) and not greedy else None
        rule = self._watching
        until, states = (rule.until(), rule.reads_states) if rule is not None else (None, False)
        rollout = self.drafter.roll_out(Order(course(self), self.warp, left, uniforms, until, states))
        if rollout is None or not rollout.ids:
            self._blind = True
            return
        self._foresee(rollout)

    def _foresee(self, rollout: Rollout) -> None:
        """Have these draws given out, which were made after all ids."""
        places = [len(self.drafter.ids) + place for place in rollout.places]
        self._foreseen.extend(zip(places, rollout.ids, rollout.probabilities, rollout.laws, strict=True))

    def in_advance(self, tandem: Tandem, course: Course, budget: int) -> Turn | None:
        """This round, if it has been made in advance or can be now, and further ones with it. None where only the host can tell what it
        writes; then `draw` gives out what was drawn for it."""
        sampler, rule = self.chooser if isinstance(self.chooser, Sampler) and not self.warp.greedy else None, self._watching
        if not (self.warp.greedy or sampler is not None) or not self.drafter.rolls or (rule is not None and rule.reads_states):
            return None
        turn = tandem.next(course, budget, sampler.look_ahead(1)[0] if sampler is not None else 0.0)
        if turn is None:
            uniforms = sampler.look_ahead(NUMBERS) if sampler is not None else None
            more = self.length.drafting() if self.length is not None else 0
            turn = tandem.make(Order(course, self.warp, budget, uniforms, rule.until() if rule is not None else None), more)
        if turn is not None and turn.written is None:
            if turn.rollout is not None:
                self._foresee(turn.rollout)
            self._decided = turn.proposal is not None
            return None
        return turn

    def take(self, turn: Turn) -> Draft:
        """The draft of a round whose tokens are known; the drafter has its pieces then."""
        slots, base = [], 0
        start, sure, drafted = len(self.drafter.ids), turn.sure, turn.drafted
        for target_id, first, stop, q in zip(turn.proposal or (), turn.firsts, turn.stops, turn.bounds, strict=False):
            slots.append(Slot(target_id, tuple(drafted[base:stop]), q, start + base, sure=sure[first : first + stop - base]))
            base = stop
        self.drafter.ids += drafted[:base]
        if isinstance(self.chooser, Sampler) and not self.warp.greedy:
            self.chooser.skip(turn.spent)
        return Draft(slots, len(sure))

    @property
    def _watching(self) -> DraftLength | None:
        return self.length if self.length is not None and self.length.watches else None

    def _take_foreseen(self) -> tuple[int, float, Law] | None:
        """The next draw that was made ahead; None where it is not one after the ids that are there now."""
        place, drawn, q, law = self._foreseen.popleft()
        if place != len(self.drafter.ids):
            self._foreseen.clear()
            return None
        if isinstance(self.chooser, Sampler) and not self.warp.greedy:
            self.chooser.uniform()  # the number that it was drawn with
        return drawn, q, law

    def goes_on(self, slot: Slot) -> bool:
        """Whether another slot is drafted after this one, whose pieces are the drafter's last ids."""
        if self.length is None or not self.length.watches:
            return True
        going = bool(slot.sure) and self._goes_on(slot.base, slot.sure)  # without them nobody knows how sure the drafter was
        return bool(self._foreseen) if self._decided else going

    def _goes_on(self, base: int, sure: Sequence[float]) -> bool:
        assert self.length is not None
        states: list[State] = []
        if self.length.reads_states:
            found = [self.drafter.state(base + depth) for depth in range(len(sure))]
            states = [state for state in found if state is not None]
        return self.length.goes_on(sure, states)

    def draw_freely(self, budget: int) -> tuple[list[int], list[float], list[Law]]:
        """Draw and push up to `budget` drafter tokens, as far as the end of the answer: their ids, probabilities and laws [D]."""
        drawn: list[int] = []
        q: list[float] = []
        laws: list[Law] = []
        while len(drawn) < budget and not (drawn and self.map.targets[drawn[-1]] in self.end_ids):
            self.look_ahead(_freely, budget - len(drawn))
            try:
                token, probability, law = self.draw(self.readable_bars)
            except NotFinite:
                break
            drawn.append(token)
            q.append(probability)
            laws.append(law)
            self.drafter.push(token)
            if self.length is not None and self.length.watches and not self._goes_on(len(self.drafter.ids) - 1, [probability]):
                break
        return drawn, q, laws


def _freely(hand: Hand) -> Course:
    return token_by_token(hand.map.readable_bars)


class Method:
    """A decoding method. Subclasses draft and say from which law a rejected slot is corrected."""

    name: ClassVar[str]
    title: ClassVar[str]
    lossless: ClassVar[bool]
    help: ClassVar[str]
    drafts: ClassVar[bool] = True

    @classmethod
    def refusal(cls, vocabulary: VocabularyMap) -> str | None:
        """Why this method cannot serve a pair; None where it can."""
        return None

    def course(self, hand: Hand) -> Course | None:
        """How its draws go on, where its slots are just those of a course; then whole rounds can be made in advance."""
        return None

    def draft(self, hand: Hand, budget: int) -> Draft:
        """Propose target tokens for at most `budget` drafter tokens."""
        raise NotImplementedError

    def residual(self, hand: Hand, slot: Slot, law: Law) -> int:
        """A token from norm(p − A), where A is the accepted mass of the slot and `law` [T] is p."""
        raise NotImplementedError

    def settle(self, hand: Hand, draft: Draft, logits: Law) -> Settlement:
        """Accept each slot with min(1, p/q), correct the first rejection, add a bonus token after full acceptance.

        `logits` [m + 1, T] are the target's rows at the proposed tokens and after them.
        """
        if hand.warp.greedy:
            return self._settle_greedy(hand, draft, hand.peaks.best() if hand.peaks is not None else highest_each(logits))
        proposal = draft.proposal
        laws: Law | _Laws
        if hand.peaks is not None and hand.warp.plain:
            laws, p = _Laws(hand.peaks), hand.peaks.chances(proposal)
        else:
            laws = hand.warp.law(logits)
            p = chosen(laws, proposal)
        accepts: list[float] = []
        for index, slot in enumerate(draft.slots):
            if slot.target_id < 0:
                return Settlement(index, self.residual(hand, slot, laws[index]), True, accepts)
            accepts.append(min(1.0, p[index] / slot.q) if slot.q > 0 else float(p[index] > 0))
            if not hand.chooser.accept(accepts[-1]):
                return Settlement(index, self.residual(hand, slot, laws[index]), True, accepts)
            if slot.target_id in hand.end_ids:
                return Settlement(index + 1, None, False, accepts)
        return Settlement(len(proposal), hand.chooser.draw(laws[-1]), False, accepts)

    def _settle_greedy(self, hand: Hand, draft: Draft, best: Sequence[int]) -> Settlement:
        accepts: list[float] = []
        for index, slot in enumerate(draft.slots):
            if slot.target_id >= 0:
                accepts.append(float(slot.target_id == best[index]))
            if slot.target_id != best[index]:
                return Settlement(index, best[index], True, accepts)
            if slot.target_id in hand.end_ids:
                return Settlement(index + 1, None, False, accepts)
        return Settlement(len(draft.slots), best[-1], False, accepts)


class _Laws:
    """The laws of rows whose peaks are known, each made when it is asked for: one is, since the rest can do without."""

    def __init__(self, peaks: Peaks) -> None:
        self.peaks = peaks

    def __getitem__(self, row: int) -> Law:
        return self.peaks.law(row % len(self.peaks.rows))


def subtract(chooser: Chooser, law: Tensor, accepted: Tensor) -> int:
    """A draw from norm(max(0, law − accepted)); from `law` itself where rounding leaves nothing."""
    rest = (law - accepted).clamp_(min=0.0)
    mass = float(rest.sum())
    return chooser.draw(rest / mass) if mass > 0 else chooser.draw(law)
