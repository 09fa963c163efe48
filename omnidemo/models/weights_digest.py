"""By what a model's weights are told apart, also where it keeps its name: a hash of everything in its files
that its numbers come from."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from omnidemo.models.gguf.header import read_header
from omnidemo.models.model_files import weight_files

DIGITS = 12


def weights_digest(files: Path) -> str:
    """The first digits of a sha256 of the weights and what they mean; `files`: a model's folder, or its GGUF
    file. About a second for each GB, once for files that stay as they are. OSError where they are gone,
    ModelError for a GGUF file that is none."""
    read = [*read_header(files).parts] if files.is_file() else [files / "config.json", *weight_files(files)]
    stamps = [path.stat() for path in read]
    return _hash(
        tuple(
            (str(path), one.st_ino, one.st_size, one.st_mtime_ns)
            for path, one in zip(read, stamps, strict=True)
        )
    )


@cache
def _hash(files: tuple[tuple[str, int, int, int], ...]) -> str:
    found = hashlib.sha256()
    for path, *_ in files:
        with open(path, "rb") as opened:
            # of each file, for where one ends is part of it
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()[:DIGITS]
