"""The database that the torture is tested with, and recorded answers."""

from __future__ import annotations

import numpy as np
import pytest

from lab.drafters.corpus import vocabulary_of
from omnidemo.backends.batched_writer import WrittenAnswer
from tests.support.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture
def answers() -> list[WrittenAnswer]:
    """Two greedy answers of `bundled/large`, and one that counts as drawn."""
    target, answers = vocabulary_of("bundled/large"), list[WrittenAnswer]()
    for number, heat in enumerate((0.0, 0.8, 0.0)):
        ids = list(target.encode(b"Two ducks wait near the old lighthouse.") or ())
        labels = np.array([[one, 0] for one in ids], np.int32)
        probs = np.full(labels.shape, 0.6, np.float32)
        answers.append(WrittenAnswer("s", str(number), heat, "end", [5, 6], ids, labels, probs))
    return answers
