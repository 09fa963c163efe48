"""A checkout beside a commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.guards import against


class FakeSide:
    """A checkout whose answers are ids of the prompt; `slow` in its folder's name takes twice as long."""

    def __init__(self, folder: Path, target: str) -> None:
        self.methods, self._folder = ["ngram-exact", "union"], folder.name

    def answer(self, prompt: str, **options: Any) -> tuple[list[int], float]:
        ids = [len(prompt), options.get("seed", 0), "wrong" in self._folder and options.get("seed") == 1]
        return [int(one) for one in ids], 2.0 if "slow" in self._folder else 1.0

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against, "Side", FakeSide)


def compared(folder: Path) -> Sequence[against.Answered]:
    folder.mkdir()
    return list(against.ids(str(folder), ["smollm2"], 8, 4))


def test_ids_that_differ_are_found(tmp_path: Path) -> None:
    same, other = compared(tmp_path / "same"), compared(tmp_path / "wrong")
    assert len(same) == len(other) == 16 and all(one.equal for one in same)
    assert [one.manner for one in other if not one.equal] == ["greedy", "seeded"]
    assert {one.method for one in same} == {"ngram-exact", "union"}


def test_a_slower_checkout_breaks_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow").mkdir()
    found = list(against.speeds(str(tmp_path / "slow"), ["smollm2"], 3, 4, "chance"))
    assert [(one.lane, one.ratio, one.held) for one in found] == [
        ("drafted", 2.0, True),
        ("plain", 2.0, True),
    ]
    monkeypatch.setattr(against, "ROOT", tmp_path / "slow")
    (tmp_path / "fast").mkdir()
    monkeypatch.setattr(against, "prompts", lambda count: ["a"] * count)
    assert not any(one.held for one in against.speeds(str(tmp_path / "fast"), ["smollm2"], 3, 4, "chance"))


def test_kept_hashes_are_of_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against, "processor", lambda: "another one")
    with pytest.raises(ValueError, match="name the commit with --against"):
        list(against.ids(None, ["smollm2"], 8, 4))
    assert len(set(against.prompts(24))) == 24


def test_a_commit_that_git_does_not_know_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="git cannot check out nowhere"), against.checkout("nowhere"):
        pass
