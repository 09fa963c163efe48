"""Real models that some tests read: where their files are, or why such a test is skipped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from omnidemo.core.config import Settings
from omnidemo.models.gguf import sources
from omnidemo.models.gguf.sources import NotHere

MARKED = {"smollm2": "smollm2", "qwen": "qwen2.5-coder-1.5b"}  # marker → the file's name in the catalogue


@cache
def file_of(name: str) -> Path | None:
    try:
        return sources.find(name, Settings().folders).path
    except NotHere:
        return None


def needed(name: str) -> Path:
    if (path := file_of(name)) is None:
        pytest.skip(f"its file is not here; `python -m omnidemo fetch {name}` brings it")
    return path


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    """The file of SmolLM2-135M-Instruct; goes with the marker `smollm2`."""
    return needed(MARKED["smollm2"])


@pytest.fixture(scope="session")
def qwen_file() -> Path:
    """The file of Qwen2.5-Coder-1.5B-Instruct; goes with the marker `qwen`."""
    return needed(MARKED["qwen"])
