"""Killed at any moment, nothing published is lost and nothing is half-written."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnidemo import load_pair
from omnidemo.storage.store import Store
from tests.support.crash_child import PROMPTS, distil
from tests.support.learning import Owner, until
from tests.support.models import save

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork and SIGKILL"
)
KILLS = int(os.environ.get("CRASH_KILLS", "6"))
ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMNIDEMO_BACKEND": "reference", "OMP_NUM_THREADS": "1"}


@pytest.mark.timeout(600)
def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    """The environment variable CRASH_KILLS sets another number of kills. Of three lives one ends soon after a
    version, one soon after requests were noted, one at any moment. Every third time an answer is written,
    too."""
    storage = tmp_path / "storage"
    storage.mkdir()
    target, drafter = (
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    pair = load_pair(target, drafter)
    expected = pair.generate(PROMPTS[0], max_new_tokens=20, method="autoregressive").token_ids
    script = [sys.executable, "-m", "tests.support.crash_child", target, drafter, str(storage)]
    draw = random.Random(0)
    # Errors go to a file: a pipe that nobody reads would fill up and stop the process.
    with (
        open(tmp_path / "errors", "w") as errors,
        subprocess.Popen(
            script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT
        ) as forker,
    ):
        assert forker.stdin and forker.stdout
        try:
            for kill in range(1, KILLS + 1):
                forker.stdin.write("\n")
                forker.stdin.flush()
                pid = int(forker.stdout.readline())
                wait_for(storage / "log", ("", "version", "requests")[kill % 3])
                time.sleep(draw.uniform(0.0, 0.4))
                os.kill(pid, signal.SIGKILL)
                assert forker.stdout.readline() == "gone\n"
                check(storage, kill % 3 == 0, pair, expected)
        finally:
            forker.kill()
    told = (storage / "log").read_text()
    assert told.count("version") > KILLS / 2 and "requests" in told  # there was something to lose


def wait_for(log: Path, word: str) -> None:
    """Until the log has one more line that begins so; "": not at all."""

    def count() -> int:
        return log.read_text().count(f"{word} ") if log.exists() else 0

    before = count()
    if word:
        until(lambda: count() > before)


def check(storage: Path, chat: bool, pair: object, expected: tuple[int, ...]) -> None:
    """A new start finds everything that the log calls certain."""
    text = (storage / "log").read_text() if (storage / "log").exists() else ""
    told = [line.split() for line in text.splitlines()]
    least = {
        name: max((int(value) for key, value in told if key == name), default=0)
        for name in ("requests", "ngrams")
    }
    published = next((int(value) for key, value in reversed(told) if key == "version"), 0)

    database = storage / "omnidemo.db"
    if database.exists():
        with sqlite3.connect(database) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
    store = Store(f"sqlite:///{database}")
    owner = Owner()
    learner = distil(pair, storage, store, owner.publish)  # type: ignore[arg-type]
    try:
        version = learner.restore()
        # A version is on disk before it is published: the kill may have come between the two.
        assert version == published or version > published, (
            f"version {published} was published, {version} is back"
        )
        assert learner.status().error is None and not list(learner.versions.folder.glob(".new-*"))
        for number in learner.versions.numbers():
            # every checksum
            learner.versions.load(number)
        entries = store.load_ngrams(pair.target.name, pair.drafter.name)  # type: ignore[attr-defined]
        assert len(entries) >= least["ngrams"] and all(len(entry.drafter_ids) > 1 for entry in entries)
        requests = store.requests(limit=None)
        assert store.status.ok and len(requests) >= least["requests"]
        if requests:
            with sqlite3.connect(database) as connection:
                rounds = dict(
                    connection.execute(
                        "SELECT request_id, COUNT(*) FROM rounds GROUP BY request_id"
                    ).fetchall()
                )
            connection.close()
            assert all(rounds[row["id"]] == row["metrics"]["rounds"] for row in requests)
        if chat:
            for number, weights in owner.published:
                pair.publish(number, weights, {})  # type: ignore[attr-defined]
            pair.attach(store)  # type: ignore[attr-defined]
            done = pair.generate(PROMPTS[0], max_new_tokens=20)  # type: ignore[attr-defined]
            assert done.token_ids == expected and done.adapter_version == version
    finally:
        learner.close()
        store.close()
