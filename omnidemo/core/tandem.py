"""Several rounds in a row where both models compute, so that the host comes in between only afterwards.

It takes each of them as it comes to it, and goes through the one that only it can settle as though nothing but draws and logits had been
made. Where something is not as it was foreseen, what was made for later rounds is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.ahead import FEW, Course, Order, Rounds, Turn
from omnidemo.core.contexts import DrafterContext, TargetContext
from omnidemo.core.vocabulary import VocabularyMap

NUMBERS = 384  # uniform numbers that are given for all rounds


class Tandem:
    """The rounds of one generation that were made in advance.

    A pass that one of the contexts makes by itself overwrites what is left of them, so both count theirs.
    """

    def __init__(self, target: TargetContext, drafter: DrafterContext, vocabulary: VocabularyMap, ends: Sequence[int]) -> None:
        self.target, self.drafter, self.map, self.ends = target, drafter, vocabulary, np.array(ends, np.int64)
        self.last = np.array([vocabulary.drafters[end] for end in ends if vocabulary.drafters[end] >= 0], np.int64)
        self.left = 0  # see `Rounds`; from the round on that is being drafted
        self.alone = True  # whether no other round is made with it
        self.lead = 0.0  # seconds of the newest draft that were spent on other rounds; below 0: on this one, before
        self._turns: deque[Turn] = deque()
        self._passes = (0, 0)
        self._starts = (0, 0)  # ids before the first of the turns
        self._numbers: NDArray[np.float64] | None = None
        self._course: Course | None = None
        self._written: tuple[int, list[int] | None] = (0, [])  # ids before the newest turn, and what it is thought to write

    def next(self, course: Course, budget: int, number: float) -> Turn | None:
        """This round, if it was made in advance: by this course, with this budget, and with this as the next number."""
        self.lead = 0.0
        if not self._turns:
            return None
        turn, (before, written) = self._turns.popleft(), self._written
        same = (
            course is self._course
            and budget == turn.budget
            and (self._numbers is None or number == self._numbers[turn.used])
            and self._passes == (self.target.passes, self.drafter.passes)
            and self.target.ids[before:] == written
            and self._starts[0] + turn.lengths[0] == len(self.target.ids)
            and self._starts[1] + turn.lengths[1] == len(self.drafter.ids)
        )
        if not same:
            self.lead = -sum(sum(one.seconds) for one in (turn, *self._turns))  # in vain
            self._turns.clear()
            return None
        self.lead = -turn.seconds[0]
        return self._take(turn)

    def make(self, order: Order, more: int) -> Turn | None:
        """Make a round by an order with `NUMBERS` numbers, and up to so many more; the first. None where that is not possible."""
        vain, beginning = self.lead, self.drafter.beginning()
        make = getattr(self.target.cache, "rounds_with", None)
        if make is None or beginning is None:
            return None
        if len(beginning[0]) > FEW:
            self.drafter.logits()
            beginning = self.drafter.beginning()
            assert beginning is not None
        wanted = Rounds(order, 1 if self.alone else 1 + more, self.left, self.map, self.ends, self.last)
        turns = make(self.drafter.cache, wanted, self.target.unread, *beginning)
        if not turns or not turns[0].sure:
            return None
        self._starts, self._numbers, self._course = (len(self.target.ids), len(self.drafter.ids)), order.uniforms, order.course
        self._passes = self.target.passes, self.drafter.passes
        self._turns.extend(turns)
        # Looked at from the outside the draft lasts as long as everything; only its own part is its own, and what nobody's is.
        first = self._turns.popleft()
        self.lead = vain + first.seconds[1] + sum(sum(turn.seconds) for turn in self._turns)
        return self._take(first)

    def _take(self, turn: Turn) -> Turn:
        self._written = len(self.target.ids), turn.written
        self.target.expect(turn)
        self.drafter.expect(turn)
        return turn
