"""Constrained decoding: which ids may come next in an answer of a given form.

At each position: logits → mask by the ids before → penalty → temperature → top-k, top-p, min-p. Every row of
a round is masked, also the one after the draft. A draft token that is not allowed stays in the draft and is
rejected: removing it would change the distribution of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sampling import Logits, highest


class Constraint:
    """The form of one answer, at the ids read so far. Only the engine advances it, once a round, by `read`. A
    subclass has `allowed`, `step` and `back`, which depend on the ids alone."""

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
        """Up to `most` ids that must come next; none if there is a choice."""
        return []

    def allows(self, token: int) -> bool:
        return bool(self.allowed()[token])

    def legal(self, ids: Sequence[int]) -> int:
        """How many of these ids, from the first on, are allowed. Changes nothing."""
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
        """The rows [m + 1, T] of a draft of m ids, each masked by the ids before it; valid until the next
        call. Rows after the first id that is not allowed, or after EOS, are never judged and stay as they
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
        """Write −∞ into logits [T] for all ids that may not come next."""
        np.copyto(into, row)
        into[~self.allowed()] = -np.inf

    def read(self, ids: Sequence[int], logits: Logits | None = None) -> int:
        """Read the emitted ids. Returns at how many of their positions the likeliest id of the unmasked
        `logits` was not allowed. RuntimeError for an id that is not allowed."""
        changed = 0
        for index, token in enumerate(ids):
            if logits is not None and (best := highest(logits[index])) != token:
                changed += not self.allows(best)
            if not self.allows(token):
                raise RuntimeError("the answer left its form, which is a fault of this program; report it")
            if token != self.end:
                self.step(token)
        return changed
