"""Files that are damaged between two starts, as a crash, a full disk or somebody's hand would; the database itself stays whole."""

from __future__ import annotations

import random
import shutil
from pathlib import Path


def _flip(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(max(1, len(data) // 200)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    file.write_bytes(data)


def damage(storage: Path, draw: random.Random) -> str:
    """Damage one thing; what it was."""
    versions = sorted(storage.glob("adapters/*/*/*/v*"))
    lines = sorted(folder for folder in storage.glob("adapters/*/*/*") if folder.is_dir())
    newest = versions[-1] if versions else None
    kind = draw.choice(("weights", "manifest", "half", "notes", "router", "left over", "visitors", "gone"))
    if kind == "weights" and newest:
        _flip(newest / "adapter_model.safetensors", draw)
    elif kind == "manifest" and newest:
        (newest / "manifest.json").write_bytes(draw.choice((b"", b"{", b"[" * 100_000, b"\xff\xfe", b'{"files": {}}')))
    elif kind == "half" and newest:
        file = draw.choice(sorted(newest.iterdir()))
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif kind == "notes" and lines:
        for line in lines:
            (line / "active").write_bytes(draw.choice((b"", b"x", b"999999", b"-1", b"\xff")))
    elif kind == "router":
        (storage / "router").mkdir(exist_ok=True)
        (storage / "router" / "words.safetensors").write_bytes(draw.randbytes(1000))
    elif kind == "left over" and lines:
        (lines[0] / ".new-1-v999999").mkdir(exist_ok=True)
        (lines[0] / ".gone-v000001").mkdir(exist_ok=True)
        (storage / "omnidemo.db.tmp").write_bytes(b"half of a copy")
    elif kind == "visitors":
        for file in storage.glob("visitor*"):
            if file.is_file() and file.stat().st_size:
                _flip(file, draw)
    elif newest:
        kind = "a version gone"
        shutil.rmtree(newest)
    return kind
