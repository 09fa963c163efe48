"""How often a group of tokens comes again, and the free questions by which it is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.bundled import loops
from omnidemo.measuring.prompt_files import read_prompts
from omnidemo.models.manner import SETTINGS_FILE
from tests.support.models import save


@pytest.mark.parametrize(
    ("ids", "times"),
    [
        ([], 0),
        ([1, 2, 3], 0),
        ([1, 2, 3, 4], 1),
        ([7] * 8, 5),  # overlapping ones count
        ([1, 2, 3, 4, 9] * 5, 5),
        ([1, 2, 3, 4, 9, 1, 2, 3, 5, 9], 1),
        (list(range(200)), 1),
    ],
)
def test_the_most_frequent_group_is_counted(ids: list[int], times: int) -> None:
    assert loops.repeats(ids) == times


def test_there_are_24_questions_of_all_kinds() -> None:
    questions = read_prompts(loops.QUESTIONS)
    assert len(set(questions)) == 24 and all(len(one) > 20 for one in questions)


def test_a_loop_is_found_and_the_models_own_manner_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A penalty far below 1 makes a random model repeat itself, which it does not do by itself."""
    target, drafter = (
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "byte-level", seed=1),
    )
    (tmp_path / "two.jsonl").write_text('{"prompt": "the small duck"}\n{"prompt": "the cat"}\n')
    said = {"repetition_penalty": 0.02}
    for own, found in (({}, 0), (said, 2)):
        (tmp_path / "target" / SETTINGS_FILE).write_text(json.dumps(own))
        loops.main(target, drafter, tmp_path / "two.jsonl", tokens=60)
        shown = capsys.readouterr().out.splitlines()
        assert len(shown) == 3 and shown[-1].startswith(f"{found} of 2 answers"), shown
        assert f"repetition penalty {own.get('repetition_penalty', 1.0):g}" in shown[-1]
