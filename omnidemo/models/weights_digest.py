"""A digest of a model's weights: a hash of everything in its files that its numbers come from. It tells
weights apart where the name stays."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from omnidemo.models.gguf.header import read_header
from omnidemo.models.model_files import weight_files

DIGITS = 12


def weights_digest(files: Path) -> str:
    """The first digits of a sha256 of the weights and their configuration; `files`: a model's folder, or its
    GGUF file. About a second for each GB, once for unchanged files. OSError where they are gone, ModelError
    for an invalid GGUF file."""
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
            # a digest of each file, so that the borders between files count
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()[:DIGITS]
