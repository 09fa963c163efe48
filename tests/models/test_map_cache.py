"""Vocabulary maps on disk: read back whole, or built anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load, save, save_file

from omnidemo.models.map_cache import load_or_build
from omnidemo.vocab import vocabulary_map
from omnidemo.vocab.vocabulary import Vocabulary
from omnidemo.vocab.vocabulary_map import VocabularyMap
from tests.support.worlds import vocabulary

TARGET, DRAFTER = vocabulary([b"a", b"b", b"ab", "é".encode(), None], end=4), vocabulary([b"b", b"a", None], end=2)


def equal(left: VocabularyMap, right: VocabularyMap) -> bool:
    tables = [(t.to_drafter.tolist(), t.to_target.tolist(), t.draftable.tolist(), t.drafters, t.targets) for t in (left, right)]
    types = [(t.to_drafter.dtype, t.to_target.dtype, t.draftable.dtype) for t in (left, right)]
    spellings = [[t.spelling(i) for i in range(len(t.drafters))] for t in (left, right)]
    return tables[0] == tables[1] and types[0] == types[1] and spellings[0] == spellings[1] and left.summary() == right.summary()


def forbid_building(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, *args: object) -> None:
        raise AssertionError("the map was built though it was kept")

    monkeypatch.setattr(vocabulary_map.VocabularyMap, "__init__", refuse)


def test_a_kept_map_is_the_built_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = VocabularyMap(TARGET, DRAFTER, 7, 4)
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path / "new" / "maps"), fresh)
    assert [path.suffix for path in (tmp_path / "new" / "maps").iterdir()] == [".safetensors"]  # nothing half written beside it
    forbid_building(monkeypatch)
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path / "new" / "maps"), fresh)


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4), VocabularyMap(TARGET, DRAFTER, 7, 4))
    assert not list(tmp_path.iterdir())


def test_each_pair_and_size_has_its_own_file(tmp_path: Path) -> None:
    other = vocabulary([b"a", b"b", b"ab", "è".encode(), None], end=4)
    cases = [(TARGET, DRAFTER, 7, 4), (DRAFTER, TARGET, 4, 7), (TARGET, DRAFTER, 8, 4), (TARGET, DRAFTER, 7, 5), (other, DRAFTER, 7, 4)]
    for count, (target, drafter, target_rows, drafter_rows) in enumerate(cases, 1):
        assert equal(
            load_or_build(target, drafter, target_rows, drafter_rows, "cpu", tmp_path),
            VocabularyMap(target, drafter, target_rows, drafter_rows),
        )
        assert len(list(tmp_path.iterdir())) == count


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)


def other_tensors(path: Path) -> None:
    save_file({name + "x": tensor for name, tensor in load(path.read_bytes()).items()}, path)


def no_seal(path: Path) -> None:
    path.write_bytes(save(load(path.read_bytes())))


def another_pair(path: Path) -> None:
    load_or_build(DRAFTER, TARGET, 4, 7, "cpu", path.parent / "other")
    path.write_bytes(next((path.parent / "other").iterdir()).read_bytes())


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], None]] = [truncate, flip_a_bit, other_tensors, no_seal, another_pair, empty]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_file_is_built_anew(
    damage: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path)
    path = next(tmp_path.glob("*.safetensors"))
    whole = path.read_bytes()
    damage(path)
    assert path.read_bytes() != whole
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path), fresh)
    assert "built again" in caplog.text
    assert path.read_bytes() == whole
    forbid_building(monkeypatch)
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path), fresh)


def test_a_folder_in_the_place_of_the_file_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fresh = load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path)
    folder(next(tmp_path.glob("*.safetensors")))
    assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", tmp_path), fresh)
    assert "cannot be kept" in caplog.text
    assert not list(tmp_path.glob(".new-*"))


def test_a_folder_that_cannot_be_written_to_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_the_way = tmp_path / "maps"
    in_the_way.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        assert equal(load_or_build(TARGET, DRAFTER, 7, 4, "cpu", in_the_way), VocabularyMap(TARGET, DRAFTER, 7, 4))
    assert "cannot be kept" in caplog.text and in_the_way.read_text() == "a file where the folder should be"


def test_a_pair_that_shares_nothing_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="share no token"):
        load_or_build(vocabulary([b"a"]), vocabulary([b"b"]), 1, 1, "cpu", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_digest_follows_all_that_a_map_is_made_from() -> None:
    def digest(tokens: list[bytes | None], winner: int | None = None, **roles: int) -> str:
        made = vocabulary(tokens, **roles)
        return Vocabulary(made.tokens, made.roles, lambda data: None if winner is None else [winner]).digest

    base = digest([b"a", b"bc", b"a", None], end=3)
    assert base == digest([b"a", b"bc", b"a", None], end=3) and len(base) == 64
    others = [
        digest([b"ab", b"c", b"a", None], end=3),  # the same bytes, cut elsewhere
        digest([b"a", b"bc", b"a", b""], end=3),
        digest([b"a", b"bc", b"a", None, None], end=3),
        digest([b"a", b"bc", b"a", None], pad=3),
        digest([b"a", b"bc", b"a", None], end=1),
        digest([b"a", b"bc", b"a", None], end=3, winner=2),  # the tokenizer emits the other one of two equal tokens
    ]
    assert len({base, *others}) == len(others) + 1
