"""The rule without a seed, which accepts by p / q and corrects: both backends emit the same from the same
stream of numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.sides import STORY, TEXTS, Sides
from tests.support.worlds import use_streams

pytestmark = pytest.mark.usefixtures("streams")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    use_streams(monkeypatch)


@pytest.mark.parametrize(
    "method",
    ["autoregressive", "ngram-exact", "token-intersection", "union", "speculative", "string-exact-match"],
)
def test_every_method_at_every_temperature(sides: Sides, method: str) -> None:
    if not sides.serve(method):
        pytest.skip(f"{method} does not serve this pair, on either backend")
    for seed, temperature in enumerate((0.2, 0.7, 1.0)):
        sides.ask(STORY, method=method, temperature=temperature, seed=seed, max_new_tokens=24)


@pytest.mark.parametrize(
    "options", [{"top_k": 20}, {"top_p": 0.9}, {"min_p": 0.05}, {"repetition_penalty": 1.2}], ids=str
)
def test_filters_and_penalties(sides: Sides, options: dict[str, Any]) -> None:
    for seed, text in enumerate(TEXTS):
        sides.ask(text, temperature=0.9, seed=seed, max_new_tokens=24, **options)
