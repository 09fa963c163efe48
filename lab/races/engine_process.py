"""A process that holds one engine of a race, so that the threads and the memory of one library never slow
another one down."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from lab.races.engines import MAKERS, Engine, Facts
from omnidemo.core.processes import end_with_parent

WARM_UP = 3  # untimed passes of each width in a turn
# seconds of untimed passes at the beginning of a turn: a processor that rested is slow at first
WAKE = 0.25


class EngineFailed(RuntimeError):
    """An engine that cannot be loaded or has ended. The message is one sentence."""


class EngineProcess:
    """An engine in a process of its own. EngineFailed, also when it is made, where it cannot answer."""

    def __init__(self, kind: str, **given: Any) -> None:
        root = str(Path(__file__).parents[2])  # it may not be installed
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        command = [sys.executable, "-c", f"from lab.races.engine_process import main; main({os.getpid()})"]
        environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}
        self._name = kind
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, process_group=0
        )  # which the terminal's Ctrl-C does not reach
        try:
            self.facts: Facts = self._ask(kind, given, WAKE)
        except BaseException:
            self.close()
            raise

    def passes(
        self, behind: Sequence[int], widths: Mapping[int, Sequence[int]], count: int
    ) -> dict[int, list[float]]:
        """Seconds of `count` passes of each width (rows → their ids) behind these ids, with logits for every
        row."""
        found: dict[int, list[float]] = self._ask("passes", behind, widths, count)
        return found

    def prompt(self, ids: Sequence[int]) -> float:
        """Seconds in which a prompt is read, with logits for its last token."""
        return float(self._ask("prompt", ids))

    def decode(self, ids: Sequence[int], count: int) -> tuple[list[int], float]:
        """The greedy answer of `count` tokens to a prompt, and the seconds that it took, the prompt
        included."""
        found: tuple[list[int], float] = self._ask("decode", ids, count)
        return found

    def close(self) -> None:
        self._process.kill()
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError), self._process.stdin, self._process.stdout:
            self._process.wait()

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise EngineFailed(
                f"{self._name} ended unexpectedly (exit status {self._process.wait()})"
            ) from error
        if isinstance(answer, EngineFailed):
            raise answer
        return answer


def main(parent: int) -> None:
    """Answer requests from standard input until it ends."""
    end_with_parent(parent)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    engine: Timed | None = None
    with contextlib.suppress(EOFError):
        while True:
            name, *given = pickle.load(sys.stdin.buffer)
            try:
                if engine is None:
                    engine = Timed(MAKERS[name](**given[0]), given[1])
                    answer: Any = engine.engine.facts
                else:
                    answer = getattr(engine, name)(*given)
            except Exception as error:  # whatever a library raises; the race goes on without it
                answer = EngineFailed(" ".join(str(error).split()) or type(error).__name__)
            pickle.dump(answer, answers)
            answers.flush()


class Timed:
    """The methods of `EngineProcess`, on its own side."""

    def __init__(self, engine: Engine, wake: float) -> None:
        self.engine, self._for = engine, wake
        self._behind: list[int] = []  # what it has read, while that is known

    def passes(
        self, behind: Sequence[int], widths: Mapping[int, Sequence[int]], count: int
    ) -> dict[int, list[float]]:
        found: dict[int, list[float]] = {}
        if self._behind != list(behind):
            self.engine.trim(0)
            self.engine.read(behind, 1)
            self._behind = list(behind)
        self._wake(behind[:1], len(behind))
        for rows, ids in widths.items():
            times = []
            for _ in range(WARM_UP + count):
                began = perf_counter()
                self.engine.read(ids, rows)
                times.append(perf_counter() - began)
                self.engine.trim(len(behind))
            found[rows] = times[WARM_UP:]
        return found

    def prompt(self, ids: Sequence[int]) -> float:
        self._behind = []
        self.engine.trim(0)
        self._wake(ids[:1], 0)
        began = perf_counter()
        self.engine.read(ids, 1)
        return perf_counter() - began

    def decode(self, ids: Sequence[int], count: int) -> tuple[list[int], float]:
        self._behind = []
        self.engine.trim(0)
        self._wake(ids[:1], 0)
        began = perf_counter()
        found = self.engine.decode(ids, count)
        return found, perf_counter() - began

    def _wake(self, ids: Sequence[int], length: int) -> None:
        """Read `ids` behind the first `length` tokens, and forget them again, for a while."""
        until = perf_counter() + self._for
        while perf_counter() < until:
            self.engine.read(ids, 1)
            self.engine.trim(length)
