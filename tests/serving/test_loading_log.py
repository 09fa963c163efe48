"""Who watches the log of `serve` sees a model being loaded, and that it is ready."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnidemo.core.config import Settings
from omnidemo.serving.pair_pool import PairPool
from omnidemo.storage.store import Store


def test_the_log_says_how_far_a_pair_is(
    models: tuple[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "omnidemo")
    store = Store(f"sqlite:///{tmp_path / 'test.db'}")
    pool = PairPool(Settings(storage=tmp_path / "storage", training="off"), store)
    try:
        for target, end in ((models[0], "ready"), (str(tmp_path / "nowhere"), "failed")):
            pool.load(target, models[1])
            while pool.state(target, models[1]).stage not in ("ready", "failed"):
                time.sleep(0.02)
            assert pool.state(target, models[1]).stage == end
        said = [record.getMessage() for record in caplog.records]
        stages = [text for text in said if text.startswith(f"loading {models[0]} with")]
        assert len(stages) >= 4
        assert sum("is ready after" in text for text in said) == 1
        assert sum("cannot be loaded: " in text for text in said) == 1
    finally:
        pool.close()
        store.close()


def test_the_command_shows_them() -> None:
    code = "import logging; from omnidemo.cli.common import log_to_stderr; log_to_stderr()\n"
    code += "logging.getLogger('omnidemo.serving.pair_pool').info('loading %s', 'x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == "loading x\n"
