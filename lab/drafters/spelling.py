"""What a drafter reads and should say where a target has written: the target's ids in the drafter's own, with
soft labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.tracing import NoCache
from omnidemo.vocabulary.vocabulary import Vocabulary
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

LABELS = 8  # most labels of a position
WHOLE = 65535  # the sum of a position's labels, as integers


@dataclass(slots=True)
class Spelled:
    """Drafter ids of a prompt and its answer, the first `first` of the prompt. `owners` [n] and `starts` [n +
    1] say which of the answer's target tokens begins where. `label_ids` and `label_weights` [ids, LABELS]
    uint16: what should come in the place of each id; weights sum to `WHOLE`."""

    ids: list[int]
    first: int
    owners: list[int]
    starts: list[int]
    label_ids: NDArray[np.uint16]
    label_weights: NDArray[np.uint16]


class Spelling:
    """From the ids of one target to those of one drafter, just as a pair's context spells them."""

    def __init__(self, target: Vocabulary, drafter: Vocabulary, target_rows: int | None = None) -> None:
        self.map = VocabularyMap(target, drafter, target_rows or len(target), len(drafter))

    def spell(
        self,
        prompt: Sequence[int],
        answer: Sequence[int],
        labels: NDArray[Any] | None = None,
        probs: NDArray[Any] | None = None,
    ) -> Spelled:
        """`labels` and `probs` [answer, K]: the target's most probable tokens; without them each position has
        one label, what is there."""
        cache: Any = NoCache()
        context = DrafterContext(cache, self.map)
        context.start(prompt, 0)
        first = len(context.ids)
        context.follow(answer)
        ends = dict(context.alignment)
        owners, starts = [], []
        for place in range(len(answer)):
            begin, end = ends.get(len(prompt) + place), ends.get(len(prompt) + place + 1)
            if begin is not None and end is not None and end > begin:
                owners.append(place)
                starts.append(begin)
        starts.append(len(context.ids))
        ids = np.array(context.ids)
        label_ids, weights = np.zeros((len(ids), LABELS), np.uint16), np.zeros((len(ids), LABELS), np.uint16)
        label_ids[:, 0], weights[:, 0] = ids, WHOLE
        if labels is not None and probs is not None:
            for place, begin in zip(owners, starts, strict=False):
                self._label(
                    context.ids,
                    begin,
                    ends[len(prompt) + place + 1],
                    labels[place].tolist(),
                    probs[place].tolist(),
                    label_ids,
                    weights,
                )
        return Spelled(context.ids, first, owners, starts, label_ids, weights)

    def _label(
        self, ids: list[int], begin: int, end: int, top: list[int], probs: list[float],
        label_ids: NDArray[np.uint16],
        weights: NDArray[np.uint16],
    ) -> None:  # fmt: skip
        """Labels of the ids that spell one target token: at each, what the target's probable tokens go on
        with that agree so far."""
        spellings = [
            (spelled, p)
            for one, p in zip(top, probs, strict=True)
            if p and (spelled := self.map.spelling(one))
        ]
        for place in range(begin, end):
            done = tuple(ids[begin:place])
            next_ids: dict[int, float] = {}
            for spelled, p in spellings:
                if len(spelled) > len(done) and spelled[: len(done)] == done:
                    next_ids[spelled[len(done)]] = next_ids.get(spelled[len(done)], 0.0) + p
            best = sorted(next_ids.items(), key=lambda item: -item[1])[:LABELS]
            total = sum(p for _, p in best)
            if total <= 0 or ids[place] not in next_ids:
                continue  # what was written is none of the probable ones
            shares = np.array([p for _, p in best]) / total
            whole = np.floor(shares * WHOLE).astype(np.int64)
            whole[0] += WHOLE - whole.sum()
            label_ids[place], weights[place] = 0, 0
            label_ids[place, : len(best)], weights[place, : len(best)] = [one for one, _ in best], whole
