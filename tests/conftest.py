"""Shared by all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import pytest

from omnidemo.runtime import compiling

compiling.wait()  # before tests import compiled functions, which would be compiled once more then, into another folder


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Tests run on the passes that users come to run on."""
    assert compiling.wait()
