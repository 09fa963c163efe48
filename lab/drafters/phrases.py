"""Known phrases of a target, out of its recorded answers: `python -m lab phrases`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.decoding.sources.ngram_table import KEPT, LONGEST
from omnidemo.models.known_phrases import ARRAYS

FEWEST = 2  # times that a context was met
MOST = 65_535  # times that count


def count_phrases(answers: Iterable[WrittenAnswer], fewest: int = FEWEST) -> dict[str, NDArray[np.int64]]:
    """The arrays of a file. Contexts reach back into the end of the prompt."""
    found: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for answer in answers:
        before = answer.prompt[-LONGEST:]
        text = [*before, *answer.ids]
        for end in range(len(before), len(text)):
            for length in range(1, min(LONGEST, end) + 1):
                found[tuple(text[end - length : end])][text[end]] += 1
    kept = sorted((context, next_ids) for context, next_ids in found.items() if next_ids.total() >= fewest)
    arrays = {name: np.zeros((len(kept), KEPT), np.int64) for name in ("ids", "counts")}
    arrays["contexts"] = np.full((len(kept), LONGEST), -1)
    arrays["weights"] = np.array([min(next_ids.total(), MOST) for _, next_ids in kept])
    for row, (context, next_ids) in enumerate(kept):
        arrays["contexts"][row, LONGEST - len(context) :] = context
        for place, (token, times) in enumerate(next_ids.most_common(KEPT)):
            arrays["ids"][row, place], arrays["counts"][row, place] = token, min(times, MOST)
    return arrays


def write_phrases(path: Path, arrays: dict[str, NDArray[np.int64]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **{name: arrays[name].astype(kind) for name, kind in ARRAYS.items()})  # type: ignore[arg-type]
