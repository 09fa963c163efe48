"""The backend that docs/architecture.md shows, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from omnidemo.backends.choice import make_backend
from tests.contract.sides import STORY, Sides

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def example() -> str:
    code = next(
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
        if "def judge" in block
    )
    assert len(code.strip().splitlines()) <= 30
    return str(code)


OPTIONS: list[dict[str, Any]] = [
    {"draft_length": 0},
    {"method": "autoregressive"},
    {"temperature": 0.7, "seed": 2},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_example_writes_what_the_reference_writes(trained: Sides, options: dict[str, Any]) -> None:
    served: list[bool] = []
    there: dict[str, Any] = {"pair": trained.reference}
    exec(example(), there)
    original = there["GreedyPlain"].judge

    def noted(self: Any, *given: Any) -> Any:
        result = original(self, *given)
        served.append(result is not None)
        return result

    there["GreedyPlain"].judge = noted
    given: dict[str, Any] = {"max_new_tokens": 24, "learn": False, "reuse": False} | options
    try:
        made = trained.reference.generate(STORY, **given)
    finally:
        trained.reference.make_backend = make_backend
    wanted = trained.reference.generate(STORY, **given)
    assert made.token_ids == wanted.token_ids
    assert [token.source for one in made.rounds for token in one.tokens] == [
        token.source for one in wanted.rounds for token in one.tokens
    ]
    probabilities = [[token.p for one in answer.rounds for token in one.tokens] for answer in (made, wanted)]
    assert probabilities[0] == pytest.approx(probabilities[1], rel=1e-5)
    assert any(served) is ("temperature" not in options) and all(served) is (
        "method" in options or "draft_length" in options
    )
    assert trained.fast.generate(STORY, **given).token_ids == wanted.token_ids
