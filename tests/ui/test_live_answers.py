"""The answers of a line one by one: whose tokens they are, where versions changed, and a recorded run before
the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidemo.learning.lines.router import DEFAULT
from omnidemo.ui import live_answers
from omnidemo.ui.live_answers import answers_json, version_marks

COUNTS = ("memory", "chat", "guessed", "own")


def row(index: int, version: int = 0, domain: str = DEFAULT, **more: Any) -> dict[str, Any]:
    counts = {"tokens": 40, "accepted": 30.0, "copied": 18, "copied_earlier": 12.0}
    figures = {"block_efficiency": 2.5, "alpha": 0.75}
    about = {"index": index, "created_at": "2026-11-27T20:00:00+00:00", "adapter_version": version}
    return {**counts, **figures, **about, "domain": domain, **more}


def test_an_answers_tokens_are_of_the_memory_the_chat_the_small_model_and_the_big_one() -> None:
    (one,) = answers_json([row(7)], DEFAULT, 0)["answers"]
    assert [one[name] for name in COUNTS] == [12, 6, 12, 10] and sum(one[name] for name in COUNTS) == 40
    assert (one["number"], one["steps"], one["alpha"], one["version"]) == (7, 2.5, 0.75, 0)
    (one,) = answers_json([row(7, speedup=1.5, draft_length=3.25)], DEFAULT, 0)["answers"]
    assert (one["speed"], one["length"]) == (1.5, 3.25)


def test_of_an_older_record_no_share_is_claimed() -> None:
    (one,) = answers_json([row(7, copied_earlier=None, alpha=None)], DEFAULT, 0)["answers"]
    assert [one[name] for name in COUNTS] == [None] * 4 and one["steps"] == 2.5 and one["alpha"] is None


def test_versions_are_marked_where_they_were_published_and_taken_back() -> None:
    rows = [row(index, version) for index, version in enumerate((0, 0, 1, 3, 2, 2), 1)]
    assert answers_json(rows, DEFAULT, 4)["marks"] == [
        {"before": 2, "kind": "published", "version": 1},
        {"before": 3, "kind": "published", "version": 3},
        {"before": 4, "kind": "rolled back", "version": 3},
        {"before": 6, "kind": "published", "version": 4},  # no answer met it
    ]
    assert version_marks([]) == version_marks([5]) == []


def test_the_line_that_is_looked_at_is_shown_and_one_without_answers_gives_way_to_the_newest() -> None:
    rows = [row(1, 1, "maths"), row(2), row(3, 0, "maths")]
    shown = answers_json(rows, DEFAULT, 0)
    assert shown["line"] == DEFAULT and [one["number"] for one in shown["answers"]] == [2]
    shown = answers_json(rows, "code", 9)
    assert shown["line"] == "maths" and [one["number"] for one in shown["answers"]] == [1, 3]
    assert [mark["kind"] for mark in shown["marks"]] == ["rolled back"], "the live version is of another line"


def test_only_the_newest_answers_are_sent() -> None:
    shown = answers_json([row(index) for index in range(1, 301)], DEFAULT, 0)
    assert [shown["answers"][place]["number"] for place in (0, -1)] == [201, 300]


def test_before_the_first_answer_there_is_a_recorded_run_with_target_and_date() -> None:
    shown = answers_json([], DEFAULT, 0)
    about = shown["recorded"]
    assert about["title"] == "Qwen2.5-Coder 1.5B Instruct" and about["date"].startswith("2026-")
    answers = shown["answers"]
    assert [one["number"] for one in answers] == list(range(1, 11)) and shown["marks"]
    for one in answers:
        assert sum(one[name] for name in (*COUNTS, "forced")) == one["tokens"] and one["steps"] >= 1
        assert 0 <= one["alpha"] <= 1 and one["nothing_learned"] >= 1
    assert answers[0]["memory"] == 0 < answers[-1]["memory"]


def test_without_the_file_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for text in (None, "{", '{"answers": []}'):
        file = tmp_path / "recorded.json"
        if text is not None:
            file.write_text(text)
        monkeypatch.setattr(live_answers, "RECORDED", file)
        shown = live_answers.recorded.__wrapped__()
        assert shown["answers"] == [] and shown["recorded"] is None
