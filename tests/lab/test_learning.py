"""An adapter line on recorded answers: what it is taught it guesses better, one set after all of them or
again and again, and a still one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.drafters import learning
from lab.drafters.learning import Reading
from lab.drafters.prompt_sets import Prompt
from omnidemo.api import load_pair
from omnidemo.core.config import Settings
from omnidemo.core.records import Trace
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import UNREAD, questions

TEXTS = questions(UNREAD, 4)
PROMPTS = [Prompt(str(number), text) for number, text in enumerate(TEXTS)]
SETTINGS = Settings(lora_rank=8, learning_rate=2e-2, batch_size=2, steps_per_update=4)


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    pair = load_pair(TARGET, DRAFTER, device="cpu")
    found = learning.recorded(pair, PROMPTS, 4, 24)
    assert not pair.learners and all(trace.first_ids is not None for trace in found)
    return found


@pytest.fixture(scope="module")
def folder() -> Path:
    return load_pair(TARGET, DRAFTER, device="cpu").drafter.folder


def test_what_was_taught_is_guessed_better(traces: list[Trace], folder: Path) -> None:
    sets = {"one": traces[:2], "two": traces[2:]}
    fresh, readings = _learned(learning.learn(folder, SETTINGS, sets, sets, 16, 8, 0))
    assert [one.source for one in fresh] == ["one", "two"] and min(one.means[0] for one in fresh) > 0
    assert [(one.requests, one.source) for one in readings] == [
        (8, "one"), (8, "two"), (16, "one"), (16, "two"),
    ]  # fmt: skip
    assert min(one.means[0] for one in readings[2:]) > 0.01
    assert learning.table(readings).count("\n") >= 5
    slow = SETTINGS.model_copy(update={"learning_rate": 1e-12})
    still = _learned(learning.learn(folder, slow, sets, sets, 8, 8, 0, direct=True))[1]
    assert [one.means[0] for one in still] == pytest.approx([0, 0], abs=1e-5)


def test_one_set_goes_on_behind_all(traces: list[Trace], folder: Path) -> None:
    marked = {
        name: [replace(one, key=f"{name}{number}") for number, one in enumerate(given)]
        for name, given in {"one": traces[:3], "two": traces[3:]}.items()
    }
    keys = [one.key for one in learning._in_turns(marked, 4, 0, "one", 4)]
    assert sorted(key[:3] for key in keys[:4]) == ["one", "one", "two", "two"]
    assert len({key for key in keys if key.startswith("one")}) == 3
    behind = [key for key in keys[:4] if key.startswith("one")] + keys[4:]
    assert behind[:3] == behind[3:] and len(behind) == 6, "in the order that the set had begun"
    _, readings = _learned(learning.learn(folder, SETTINGS, marked, marked, 8, 100, 0, then=("one", 8)))
    assert [one.requests for one in readings] == [8, 8, 16, 16]
    assert readings[2].means[0] > readings[0].means[0], "what came last was learned further"


def test_offline_reads_all_again_and_again(traces: list[Trace], folder: Path) -> None:
    sets = {"one": traces}
    settings = SETTINGS.model_copy(update={"lora_rank": 0})
    _, readings = _learned(learning.learn(folder, settings, sets, sets, 1, 1, 0, epochs=6))
    assert [one.requests for one in readings] == [4, 8, 12, 16, 20, 24]
    assert readings[-1].means[0] > max(0.02, readings[0].means[0])


def test_kept_answers_are_not_written_again(tmp_path: Path) -> None:
    pair = load_pair(TARGET, DRAFTER, device="cpu")
    first = learning.recorded(pair, PROMPTS[:1], 1, 16, tmp_path)
    written = [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    again = learning.recorded(pair, PROMPTS[:1], 1, 16, tmp_path)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == written and len(written) == 1
    for name in ("drafter_ids", "starts", "p", "top_ids", "first_ids", "first_p", "temperature"):
        assert np.array_equal(getattr(first[0], name), getattr(again[0], name)), name


def _learned(found: Iterator[Reading]) -> tuple[list[Reading], list[Reading]]:
    """The readings of the fresh drafter, and the others."""
    readings = list(found)
    return [one for one in readings if not one.requests], [one for one in readings if one.requests]
