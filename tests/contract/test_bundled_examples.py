"""The page's examples for `bundled/large`: the few prompts of its kind that ship, each answered right."""

from __future__ import annotations

from typing import Any

import pytest

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.learning.lines import sample_prompts
from omnidemo.pair.pair import Pair

LONGEST = 300  # tokens
ROWS = sample_prompts._rows("examples_large")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return load_pair("bundled/large", "bundled/drafter", device="cpu", settings=Settings(threads=1))


@pytest.mark.parametrize("row", ROWS, ids=[row["label"] for row in ROWS])
def test_an_example_is_answered_right(pair: Pair, row: dict[str, Any]) -> None:
    chat = [{"role": "user", "content": row["prompt"]}]
    made = pair.generate(chat, temperature=0.0, max_new_tokens=LONGEST, learn=False, reuse=False)
    assert made.finish_reason == "end" and (row.get("facts") or row.get("tests"))
    assert all(fact in made.text for fact in row.get("facts", ())), made.text
    if "tests" in row:
        known: dict[str, Any] = {}
        exec(made.text, known)
        known["f"] = [value for name, value in known.items() if name != "__builtins__"][-1]
        assert all(eval(test, known) for test in row["tests"]), made.text
