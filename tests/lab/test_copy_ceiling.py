"""The ceiling of copying: by dynamic programming what trying everything gives, and a report of it."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from lab.races.copy_ceiling import MOST_ROWS, best, ceiling, right_runs
from tests.support.cli import Cli, refused


def by_trying(runs: list[int], seconds: list[float], at: int = 0) -> float:
    """The least seconds from a token on, over all ways to copy."""
    if at >= len(runs):
        return 0.0
    return min(
        seconds[1 + copied] + by_trying(runs, seconds, at + 1 + copied) for copied in range(runs[at] + 1)
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_what_trying_everything_finds(seed: int) -> None:
    draw = random.Random(seed)
    runs = [min(draw.randrange(4), 9 - at) for at in range(10)]
    seconds = [0.0, *itertools.accumulate(draw.random() + 0.1 for _ in range(5))]
    gain, rounds = best(runs, seconds)
    assert gain == pytest.approx(len(runs) * seconds[1] / by_trying(runs, seconds)) and 1 <= rounds <= len(
        runs
    )


def test_a_text_that_is_repeated_is_copied_as_far_as_it_is_right() -> None:
    prompt, free = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0], [0.0, *[1.0] * MOST_ROWS]
    drafted, anywhere = right_runs(prompt, [1, 2, 3, 4, 5, 11, 12])
    assert drafted == anywhere == [0, 3, 2, 1, 0, 0], (
        "from the second token on the newest two stand in the prompt"
    )
    found = ceiling("x", prompt, [1, 2, 3, 4, 5, 11, 12], free)
    assert found.tokens_per_round == 2.0 and found.gain == found.any_gain == 2.0
    assert (
        ceiling("x", prompt, [1, 2, 3, 4, 5, 11, 12], [float(rows) for rows in range(MOST_ROWS + 1)]).gain
        == 1.0
    ), "rows may be too dear"


def test_the_command_writes_a_table(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    prompts, out = tmp_path / "ducks.jsonl", tmp_path / "out"
    prompts.write_text(json.dumps({"prompt": "the duck swims and the duck swims"}) + "\n")
    asked = (
        "bench",
        *names,
        "--only",
        "copies",
        "--prompts",
        prompts,
        "--max-new-tokens",
        12,
        "--passes",
        1,
        "--out",
        out,
    )
    for more in ((), ("--own-manner",)):
        result = lab_cli(*asked, *more)
        assert result.code == 0 and "ducks" in result.out
        made = json.loads((out / "ceiling.json").read_text())
        assert len(made["answers"]) == 1 and len(made["pass_ms"]) == MOST_ROWS, made
        assert made["answers"][0]["gain"] >= 0.999, made
        assert "| ducks | 1 |" in (out / "ceiling.md").read_text()
    refused(lab_cli("bench", *names, "--only", "copy"), "--only is rows, answers or copies")
