"""An adapter line on recorded answers: what it is taught it guesses better, and a still one changes
nothing."""

from __future__ import annotations

import pytest

from lab.drafters import learning
from lab.drafters.prompt_sets import Prompt
from omnidemo.api import load_pair
from omnidemo.config import Settings
from omnidemo.records import Trace
from tests.support.models import needs

pytestmark = needs("a", "drafter")
TEXTS = (
    "How much is 18 divided by 6?",
    "Tell me a story with a duck.",
    "How do I boil an egg?",
    "Write a function that doubles a number.",
)


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    pair = load_pair("bundled/a", "bundled/drafter", device="cpu")
    found = learning.recorded(pair, [Prompt(str(number), text) for number, text in enumerate(TEXTS)], 4, 24)
    assert not pair.learners and all(trace.first_ids is not None for trace in found)
    return found


def test_what_was_taught_is_guessed_better(traces: list[Trace]) -> None:
    folder = load_pair("bundled/a", "bundled/drafter", device="cpu").drafter.folder
    settings = Settings(lora_rank=8, learning_rate=3e-3, batch_size=2, steps_per_update=4)
    sets = {"one": traces[:2], "two": traces[2:]}
    readings = list(learning.learn(folder, settings, sets, sets, 16, 8, 0))
    assert [(one.requests, one.source) for one in readings] == [
        (8, "one"),
        (8, "two"),
        (16, "one"),
        (16, "two"),
    ]
    assert min(one.means[0] for one in readings[2:]) > 0.02
    assert learning.table(readings).count("\n") >= 5
    still = learning.learn(
        folder, settings.model_copy(update={"learning_rate": 1e-12}), sets, sets, 8, 8, 0, direct=True
    )
    assert [one.means[0] for one in still] == pytest.approx([0, 0], abs=1e-5)
