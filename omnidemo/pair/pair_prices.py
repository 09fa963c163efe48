"""The cost table of a pair on this machine: a guess, the table that a file has for this machine and weight
format, or a measured one. Rounds correct it (`decoding/cost_table.py`)."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from omnidemo.backends import processor
from omnidemo.backends.choice import arithmetic_of, kind_of
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.core.private_folders import replacing
from omnidemo.decoding.cost_table import CostTable
from omnidemo.models.gguf.places import models_root

if TYPE_CHECKING:
    from omnidemo.models.load import LanguageModel

FILE = "prices.json"
LISTS = 64  # newest tables that a file keeps
KEEP_SECONDS = 60.0  # between two writings of a corrected table
MOST_SECONDS = 3.0  # of a measurement
PASSES = 5  # of each number of rows, within the time
READ = 8  # ids of prefill before passes are measured
ORDER = (1, 4, 8, 2, 16, 6)  # numbers of rows, the most important first
# For a guess: bytes and multiply-adds of weights per second, and the host's seconds per pass, of two
# processor cores and of a data centre's GPU, rounded. Ratios decide, and rounds correct the list soon.
PROCESSOR = {"bytes": 12e9, "multiply_adds": 80e9, "host": 3e-4}
GPU = {"bytes": 1.5e12, "multiply_adds": 5e13, "host": 1e-3}
INTEGERS = 2.5  # factor on multiply-adds per second of products in int8
PASS_OF_GPU = 2e-3  # least seconds of a pass on a GPU


class PairPrices:
    """The cost table of a pair and its file. `list` stays the same object."""

    def __init__(self, target: LanguageModel, drafter: LanguageModel) -> None:
        self.target, self.drafter = target, drafter
        self.file: Path | None = None
        self._written = 0.0  # UNIX time of the file's list
        self._form = self.form
        self.list = guessed(target.runner, drafter.runner)

    @property
    def form(self) -> str:
        """The machine and weight format for which a table holds."""
        models = [f"{model.name} {_form_of(model.runner)}" for model in (self.target, self.drafter)]
        return " | ".join([_machine(self.target.runner), *models])

    def keep_in(self, folder: Path | None) -> None:
        """Keep the table in a folder (None: the user's cache), and load the one that is kept there."""
        self.file = (folder or cache_folder()) / FILE
        self.look(changed=True)

    def look(self, changed: bool = False) -> None:
        """Take the kept list, or a guess, where passes are computed in another form than before, or the file
        was `changed`."""
        if not changed and self.form == self._form:
            return
        changed, self._form = changed and self.form == self._form, self.form
        found = CostTable.from_file(self._all().get(self._form))
        if found is not None:
            self.list.become(found)
        elif not changed:
            self.list.become(guessed(self.target.runner, self.drafter.runner))

    def measure(self, clock: Callable[[], float], at: float, seconds: float = MOST_SECONDS) -> None:
        """Measure passes for at most so many seconds, and keep the list. On a GPU nothing is measured,
        because a pass ends after its call; rounds correct the guess there. `at`: the UNIX time."""
        target, drafter = self.target.runner, self.drafter.runner
        if any(runner.device.type != "cpu" for runner in (target, drafter)):
            return
        until = clock() + seconds
        steps = _passes(drafter, (1,), clock, clock() + seconds / 4)
        times = _passes(target, ORDER, clock, until)
        if 1 not in times or 1 not in steps:
            return
        guess = guessed(target, drafter)
        passes, most = dict[int, float](), 0.0
        for rows, each in times.items():
            most = max(most, median(each))  # a pass costs at least as much as one of fewer rows
            passes[rows] = PROCESSOR["host"] + most
        step, scale = median(steps[1]), median(times[1]) / guess.price(1)
        self.list.become(CostTable(passes, step, guess.attention * scale, step, "measured", at))
        self.keep()

    def keep(self) -> None:
        """Write a known table to its file; errors are ignored."""
        if self.file is None or not self.list.known or self.list.at is None:
            return
        self._written = self.list.at
        kept = self._all() | {self._form: self.list.to_file()}
        newest = sorted(kept, key=lambda form: _at(kept[form]))[-LISTS:]
        with suppress(OSError), replacing(self.file) as partial:
            partial.write_text(json.dumps({form: kept[form] for form in newest}, indent=1), encoding="utf-8")

    def keep_now_and_then(self) -> None:
        """Write the corrected table if the file's is KEEP_SECONDS older."""
        if self.list.at is not None and self.list.at - self._written >= KEEP_SECONDS:
            self.keep()

    def _all(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            if self.file is not None:
                found = json.loads(self.file.read_text(encoding="utf-8"))
                return found if isinstance(found, dict) else {}
        return {}


def cache_folder() -> Path:
    """The folder above that of the fetched models."""
    return models_root().parent


def guessed(target: Runner, drafter: Runner) -> CostTable:
    """A guess from the bytes that a pass reads and the multiply-adds of a row."""
    gpu = target.device.type != "cpu"
    speed, least = (GPU, PASS_OF_GPU) if gpu else (PROCESSOR, 0.0)

    def reading(runner: Runner) -> float:
        return max(least, _read_of(runner)[0] / speed["bytes"])

    times = INTEGERS if arithmetic_of(target) == "int8" else 1.0
    row = _read_of(target)[1] / (times * speed["multiply_adds"])
    step = reading(drafter) + _read_of(drafter)[1] / speed["multiply_adds"]
    attention = 0.0
    if isinstance(target, FusedLlama):
        attention = 8.0 * target.depth * target.kv_heads * target.head_dim / speed["bytes"]
    first = speed["host"] + reading(target) + row
    return CostTable.linear(first, row, step, attention=attention, beside=step)


def _read_of(runner: Runner) -> tuple[float, float]:
    """The bytes that a pass reads, and the multiply-adds of one of its rows."""
    if isinstance(runner, FusedLlama) and runner.passes is not None:
        return float(runner.passes.nbytes), float(runner.passes.weights)
    return float(runner.parameters * runner.dtype.itemsize), float(runner.parameters)


def _form_of(runner: Runner) -> str:
    form = runner.form if isinstance(runner, FusedLlama) and runner.passes is not None else "whole"
    threads = getattr(runner, "threads", 0)
    number = arithmetic_of(runner) or str(runner.dtype)
    return f"{runner.parameters} {kind_of(runner)} {form} {number} {threads}"


def _machine(runner: Runner) -> str:
    if runner.device.type != "cpu":
        return f"{platform.node()} {runner.device}"
    vectors = [name for name in ("avx2", "avx512f", "avx512vnni", "avxvnni", "amx-int8") if _has(name)]
    return " ".join([platform.node(), platform.machine(), str(os.cpu_count()), *vectors])


@cache
def _has(name: str) -> bool:
    with suppress(ImportError):
        return processor.has(name)
    return False


def _passes(
    runner: Runner, rows: Sequence[int], clock: Callable[[], float], until: float
) -> dict[int, list[float]]:
    """Seconds of up to PASSES passes of each number of rows, in turns, so that background load slows all
    equally. The first of each has cold caches, and counts only if it is the only one."""
    cache, times = runner.new_cache(), dict[int, list[float]]()
    read = max(1, min(READ, cache.max_positions - max(rows) - 1))
    cache.forward([1] * read, 0)
    for _ in range(1 + PASSES):
        for count in rows:
            known = times.get(count)
            if clock() + (known[-1] if known else 0.0) > until or read + count > cache.max_positions:
                break
            began = clock()
            cache.forward([1] * count, count, 1.0)
            took = clock() - began
            cache.trim(read)
            times.setdefault(count, []).append(took)
    return {count: each[1:] or each for count, each in sorted(times.items())}


def _at(kept: Any) -> float:
    at = kept.get("at") if isinstance(kept, dict) else None
    return float(at) if isinstance(at, int | float) else 0.0
