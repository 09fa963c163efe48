"""Answers of a given form: which ids may follow the answer's ids.

The law of a constrained answer at each position: logits → mask by the ids before → penalty → temperature →
filters. Every row of a round is masked, the one after the proposal too. A drawn guess that is not allowed
stays in the proposal and is rejected; forgetting it would change the law of what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sampling import Logits, highest


class Constraint:
    """The form of one answer, at the ids read so far. The engine alone moves it, once a round, by `read`. A
    subclass has `allowed`, `step` and `back`; each depends on the ids alone."""

    end: int  # the one id that may end the answer
    _rows: NDArray[Any] | None = None  # of `masked`

    def allowed(self) -> NDArray[np.bool_]:
        """[T]: which ids may come next; at least one."""
        raise NotImplementedError

    def step(self, token: int) -> None:
        """Read one id that `allows` accepts."""
        raise NotImplementedError

    def back(self, count: int) -> None:
        """Forget the newest `count` ids."""
        raise NotImplementedError

    def forced(self, most: int) -> list[int]:
        """At most so many ids that must come next; none where there is a choice."""
        return []

    def allows(self, token: int) -> bool:
        return bool(self.allowed()[token])

    def legal(self, ids: Sequence[int]) -> int:
        """How many of these ids may follow, from the first. Changes nothing."""
        count = 0
        for token in ids:
            if not self.allows(token):
                break
            count += 1
            if token == self.end:
                break
            self.step(token)
        self.back(count - int(count > 0 and ids[count - 1] == self.end))
        return count

    def masked(self, logits: Logits, proposal: Sequence[int]) -> NDArray[Any]:
        """The rows [m + 1, T] of a proposal of m ids, each masked by the ids before it, until the next call.
        Rows behind the first id that is not allowed, or behind an end, are never judged and stay as they
        are."""
        steps, going = 0, True
        if self._rows is None or len(self._rows) < len(logits) or self._rows.dtype != logits.dtype:
            self._rows = np.empty_like(logits)  # fresh memory for each round would take as long as the masks
        rows = self._rows[: len(logits)]
        for index, row in enumerate(logits):
            if not going:
                rows[index] = row
                continue
            self.mask(row, rows[index])
            going = index < len(proposal) and rows[index, proposal[index]] > -np.inf
            if going := going and proposal[index] != self.end:
                self.step(proposal[index])
                steps += 1
        self.back(steps)
        return rows

    def mask(self, row: NDArray[Any], into: NDArray[Any]) -> None:
        """Write logits [T] with −∞ for all ids that may not come next."""
        np.copyto(into, row)
        into[~self.allowed()] = -np.inf

    def read(self, ids: Sequence[int], logits: Logits | None = None) -> int:
        """Read the ids that were written. Returns how many of them stand where the likeliest id of the
        unmasked `logits` was not allowed. RuntimeError for an id that is not allowed."""
        changed = 0
        for index, token in enumerate(ids):
            if logits is not None and (best := highest(logits[index])) != token:
                changed += not self.allows(best)
            if not self.allows(token):
                raise RuntimeError("the answer left its form, which is a fault of this program; report it")
            if token != self.end:
                self.step(token)
        return changed
