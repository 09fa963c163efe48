"""The process whose forks open stores, write and are killed: importing takes seconds, so it is done once.
Lines on standard input say what to do, how many times at once, and with which database; lines on standard
output tell how it went."""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from omnidemo.core.processes import end_with_parent

ROOT = Path(__file__).parents[2]


class Forker:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, *words: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


@contextmanager
def forker() -> Iterator[Forker]:
    command = [sys.executable, "-m", "tests.support.store_lives"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield Forker(process)
        finally:
            process.kill()


def fork(work: Callable[[], None]) -> int:
    parent, pid = os.getpid(), os.fork()
    if not pid:
        end_with_parent(parent)
        work()
        sys.exit()  # as any process ends, with all that is done at exit
    return pid


def main() -> None:
    for name in ("alembic.command", "psycopg"):  # what a store imports when it opens
        with suppress(ImportError):
            importlib.import_module(name)

    from omnidemo.storage.store import Store
    from tests.store.test_store import record

    def opens(url: str) -> None:
        store = Store(url)
        print(store.status.ok, store.status.message, flush=True)
        store.close()
        os._exit(0)  # nothing is left to do, and to clear up what was imported takes longer than all this

    def writes_for_ever(url: str) -> None:
        store = Store(url)
        print(os.getpid(), flush=True)
        while True:
            store.record_request(record(rounds=40))
            store.flush()

    def leaves_writes(url: str) -> None:
        store = Store(url)
        for _ in range(50):
            store.record_request(record())

    lives: dict[str, Callable[[str], Any]] = {"open": opens, "write": writes_for_ever, "leave": leaves_writes}
    gc.freeze()  # so that collecting garbage does not copy what the forks share
    for line in sys.stdin:
        name, count, url = line.split()
        for pid in [fork(lambda: lives[name](url)) for _ in range(int(count))]:  # noqa: B023  (it is called at once)
            os.waitpid(pid, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
