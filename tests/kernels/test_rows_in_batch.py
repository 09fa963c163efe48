"""A row's logits have the same bits alone and in any batch: what makes a draft lossless, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from omnidemo.backends import compiled_passes
from tests.kernels.test_packed_passes import TYPES, logits, runner_of, written

COMPANY, WINDOW, ROWS = 16, 125, 10_000


def cut(rng: np.random.Generator, count: int) -> Iterator[slice]:
    """Pieces of 1 to COMPANY rows, and now and then a long one, as prompts are."""
    begin = 0
    while begin < count:
        most = count if rng.random() < 0.05 else COMPANY
        end = min(count, begin + int(rng.integers(1, most + 1)))
        yield slice(begin, end)
        begin = end


@pytest.mark.long
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_no_bit_differs_in_ten_thousand_rows(
    kind: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one thread and by two, for each form of packed weights and in float32."""
    runner = runner_of(written(tmp_path, kind), packed)
    assert (runner.form == "packed") == packed
    rng, differing, rows = np.random.default_rng(7), 0, 0

    def by_threads(threads: int) -> None:
        monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0 if threads == 2 else 10**12)
        monkeypatch.setattr(compiled_passes.thread_pool, "pick_size", lambda given=0: threads - 1)

    while rows < ROWS:
        ids = rng.integers(0, runner.rows, WINDOW).tolist()
        by_threads(1)
        alone = np.concatenate(logits(runner, [[token] for token in ids])).view(np.uint32)
        for threads in (1, 2):
            by_threads(threads)
            found = np.concatenate(logits(runner, [ids[piece] for piece in cut(rng, WINDOW)]))
            differing += int((found.view(np.uint32) != alone).sum())
        rows += WINDOW
    assert differing == 0, f"{differing} of {2 * rows * runner.rows}"
