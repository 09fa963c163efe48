"""The database that the torture is tested with, probes that take little time, and recorded answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.drafters.answers import save
from lab.drafters.batched import Answer, Order
from lab.drafters.corpus import vocabulary_of
from lab.races import machine
from tests.support.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True)
def _short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a probe finds means nothing on cores that tests share; that there is something is all that they
    ask for."""
    monkeypatch.setattr(machine, "SECONDS", 0.005)
    monkeypatch.setattr(machine, "SIZES", (1 << 18, 1 << 20))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """A folder of shards: two greedy answers of `bundled/large`, and one that counts as drawn."""
    target, answers = vocabulary_of("bundled/large"), list[Answer]()
    for number, heat in enumerate((0.0, 0.8, 0.0)):
        ids = list(target.encode(b"Two ducks wait near the old lighthouse.") or ())
        top = np.array([[one, 0] for one in ids], np.int32)
        order = Order(f"t/s/{number}/0", heat, 1, 99)
        answers.append(Answer(order, [5, 6], ids, top, np.full(top.shape, -0.5, np.float16), "end"))
    save(tmp_path, "t", answers)
    return tmp_path
