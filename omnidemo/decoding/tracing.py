"""The trace of an answer for distillation: the target's distributions, from its verification passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from omnidemo.core.records import Trace
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.sampling import Logits, Probs, softmax
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

FIRSTS = 64  # drafter tokens kept of each row that may begin the next token
# least probability of a target token that counts for them; some hundred tokens of a row reach it
LIKELY = 1e-4
BATCH = 32  # rows that are reduced at once: one row costs as much as many


class Tracer:
    """Collects the rows of one answer: `add` keeps rows, `finish` returns the trace."""

    def __init__(self, vocabulary: VocabularyMap, first: int, top_k: int) -> None:
        self.map, self.first = vocabulary, first  # `first`: number of prompt ids on the target's side
        self.top_k = min(top_k, len(vocabulary.mapped_targets))
        self._ids: list[int] = []
        self._accepted: list[bool] = []
        self._copied: list[bool] = []
        self._rows: list[Logits] = []
        self._unreduced = 0  # rows not reduced yet
        self._top: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._firsts: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, logits: Logits, ids: list[int], accepted: int, copied: Sequence[bool] = ()) -> None:
        """Add the target's rows [n, T] at the n emitted tokens, of which the first `accepted` were proposals.
        `copied`: whether each token was copied (empty: none)."""
        self._rows.append(logits)
        self._ids.extend(ids)
        self._accepted.extend(position < accepted for position in range(len(ids)))
        self._copied.extend(copied or [False] * len(ids))
        self._unreduced += len(ids)
        if self._unreduced >= BATCH:
            self._reduce()

    def _reduce(self) -> None:
        """Reduce each collected row to the probabilities of the most probable mapped tokens and of the
        emitted token."""
        probs = softmax(np.concatenate(self._rows))
        values, places = _largest(probs[:, self.map.mapped_targets], self.top_k)
        self._top.append((values, places, probs[np.arange(len(probs)), self._ids[-self._unreduced :]]))
        self._firsts.append(self._first_tokens(probs))
        self._rows, self._unreduced = [], 0

    def _first_tokens(self, probs: Probs) -> tuple[np.ndarray, np.ndarray]:
        """(drafter tokens [R, F] that most probably begin the next token, their probabilities), from
        probabilities [R, T]."""
        places = np.flatnonzero(probs > LIKELY)
        values = probs.reshape(-1)[places]
        rows, tokens = np.divmod(places, probs.shape[1])
        firsts, size = self.map.first_tokens(tokens), len(self.map.targets)
        known = firsts >= 0
        keys, which = np.unique((rows * size + firsts)[known], return_inverse=True)
        return _rows_of(
            keys // size,
            keys % size,
            np.bincount(which, weights=values[known], minlength=len(keys)),
            len(probs),
            min(FIRSTS, size),
        )

    def finish(self, drafter: DrafterContext) -> Trace | None:
        """The trace of the answer; None where nothing was emitted. Length 0 where the drafter read nothing
        before a token."""
        if not self._ids:
            return None
        if self._unreduced:
            self._reduce()
        ends = dict(drafter.alignment)
        starts = np.zeros(len(self._ids), dtype=np.int32)
        lengths = np.zeros(len(self._ids), dtype=np.int32)
        for position in range(len(self._ids)):
            start, end = ends.get(self.first + position), ends.get(self.first + position + 1)
            if start is not None and end is not None and start > 0:
                starts[position], lengths[position] = start, end - start
        first_ids, first_p = (np.concatenate(parts) for parts in zip(*self._firsts, strict=True))
        values, indices, own = (np.concatenate(parts) for parts in zip(*self._top, strict=True))
        return Trace(
            drafter_ids=np.asarray(drafter.ids, dtype=np.int32),
            starts=starts,
            lengths=lengths,
            accepted=np.asarray(self._accepted),
            p=own,
            top_ids=self.map.mapped_drafters[indices].astype(np.int32),
            top_p=values.astype(np.float32),
            copied=np.asarray(self._copied) if any(self._copied) else None,
            first_ids=first_ids,
            first_p=first_p,
        )


class NoCache:
    """What a context asks of a cache where nothing is computed."""

    length, max_positions = 0, 1 << 30

    def trim(self, length: int) -> None: ...


def labelled_trace(
    vocabulary: VocabularyMap, prompt: Sequence[int], ids: Sequence[int], labels: np.ndarray,
    probs: np.ndarray, temperature: float = 0.0,
) -> tuple[Trace, int] | None:  # fmt: skip
    """The trace of an answer of which only the most probable tokens `labels` [n, K] (−1: padding) and their
    raw probabilities [n, K] were kept, and how many of its drafter ids are the prompt's; None for one that
    the drafter cannot spell."""
    cache: Any = NoCache()
    context = DrafterContext(cache, vocabulary)
    context.start(prompt, 0)
    first = len(context.ids)
    context.follow(ids)
    ends, n = dict(context.alignment), len(ids)
    bounds = np.array([ends.get(len(prompt) + place, -1) for place in range(n + 1)])
    spelled = (bounds[:-1] > 0) & (bounds[1:] > bounds[:-1])
    if not spelled.any():
        return None
    drafters, may = np.array(vocabulary.drafters), np.array(vocabulary.may_draft)
    known = (labels >= 0) & (labels < len(drafters))
    top = np.where(known, drafters[np.clip(labels, 0, len(drafters) - 1)], -1)
    top = np.where((top >= 0) & may[top], top, -1)
    # what has no direct map last: padding points at the first
    order = np.argsort(top < 0, axis=1, kind="stable")
    sorted_top, sorted_probs = np.take_along_axis(top, order, 1), np.take_along_axis(probs, order, 1)
    lengths = np.where(spelled, np.diff(bounds), 0)
    lengths[(sorted_top[:, 0] < 0) & (lengths == 1)] = 0
    rows, places = np.nonzero(known)
    firsts, size = vocabulary.first_tokens(labels[rows, places]), len(vocabulary.targets)
    begins = firsts >= 0
    keys, which = np.unique(rows[begins] * size + firsts[begins], return_inverse=True)
    sums = np.bincount(which, weights=probs[rows, places][begins], minlength=len(keys))
    first_ids, first_p = _rows_of(keys // size, keys % size, sums, n, labels.shape[1])
    trace = Trace(
        drafter_ids=np.array(context.ids, np.int32),
        starts=np.where(spelled, bounds[:-1], 0).astype(np.int32),
        lengths=lengths.astype(np.int32),
        accepted=np.zeros(n, bool),
        p=np.where(labels == np.array(ids)[:, None], probs, 0.0).sum(1).astype(np.float32),
        top_ids=sorted_top.astype(np.int32),
        top_p=np.where(sorted_top >= 0, sorted_probs, 0.0).astype(np.float32),
        temperature=temperature,
        first_ids=first_ids,
        first_p=first_p,
    )
    return trace, first


def _rows_of(
    rows: np.ndarray, ids: np.ndarray, values: np.ndarray, count: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Entries (row, id, value) as `count` rows [count, width] of ids and values, the largest first, padded
    with −1 and 0. An empty row begins with id 0, because padding may not stand first."""
    order = np.lexsort((-values, rows))
    rows, ids, values = rows[order], ids[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)  # within its row
    fits = place < width
    found, sums = np.full((count, width), -1, np.int32), np.zeros((count, width), np.float32)
    found[:, 0] = 0
    found[rows[fits], place[fits]], sums[rows[fits], place[fits]] = ids[fits], values[fits]
    return found, sums


def _largest(rows: Probs, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(the k largest numbers of each row of [R, M], their indices), in any order."""
    places = np.argpartition(rows, rows.shape[1] - k, axis=1)[:, rows.shape[1] - k :]
    return np.take_along_axis(rows, places, 1), places
