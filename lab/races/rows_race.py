"""What a pass of several rows costs, engine beside engine on the same weights. This cost decides what
drafting can gain.

Each engine has a process of its own. They take turns, and the others rest meanwhile. Medians over all turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

from lab.measured_rows import make_writable, markdown_list, markdown_table, report
from lab.races.engine_process import EngineFailed, EngineProcess
from lab.races.engines import LLAMA_CPP, OURS, TRANSFORMERS, Facts
from lab.races.machine import facts
from omnidemo.core.config import Settings
from omnidemo.core.resources import usable_cores
from omnidemo.decoding.contexts import common_prefix
from omnidemo.models.gguf.sources import is_gguf
from omnidemo.models.load import pick_device
from omnidemo.models.names import gguf_file, known_settings, resolve
from omnidemo.pair.in_turns import rotated
from omnidemo.serving.measuring.report_tables import Stage

ROWS = (1, 2, 4, 6, 8, 12)
BEHIND = (64, 1024)
PROMPT = 512
TEXT = "Write a short story about a lighthouse keeper and a lost whale."
PEERS = (LLAMA_CPP, TRANSFORMERS)
TURNS, ANSWERS = 5, 3  # that each engine has of passes and prompts, and of answers
REST = 0.3  # seconds before a turn, in which the threads of the one before fall asleep
WIDTHS = (f"{rows} rows" if rows > 1 else "1 row" for rows in ROWS)
HEADINGS = ("engine", "weights", "behind", *WIDTHS, f"prompt of {PROMPT}", "tokens/s", "same ids")
NOTE = (
    "ms of one pass behind so many tokens by its rows, with logits for every row; of a prompt; tokens/s of a"
    " plain greedy answer, the prompt included. Medians, engines in turns, each in a process of its own with"
    " as many threads. Below: ours over each."
)


@dataclass(frozen=True, slots=True)
class RaceRequest:
    """A target and what it races: `peers` of PEERS; llama.cpp reads the target's own GGUF file, and each of
    `peer_files` of the same model. passes: timed ones of each width, at least; tokens: of an answer. seconds:
    after which no turn begins but the first of each kind, so that a large model has fewer passes."""

    target: str
    out: Path
    peers: Sequence[str] = PEERS
    peer_files: Sequence[str] = ()
    passes: int = 25
    tokens: int = 128
    seconds: float = 300.0
    command: str = ""


@dataclass(slots=True)
class Raced:
    """An engine's seconds. `passes`: positions before → rows → seconds of each pass; `same`: how many ids its
    answer begins with that ours does."""

    engine: str
    weights: str
    version: str
    passes: dict[int, dict[int, list[float]]] = field(default_factory=dict)
    prompt: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    tokens: int = 0
    same: int = 0

    def pass_ms(self, behind: int, rows: int) -> float | None:
        return _ms(self.passes.get(behind, {}).get(rows, ()))

    @property
    def prompt_ms(self) -> float | None:
        return _ms(self.prompt)

    @property
    def tokens_per_second(self) -> float | None:
        return self.tokens / median(self.answers) if self.answers else None

    def figures(self) -> dict[str, Any]:
        """For JSON: medians, and all times that they are of."""
        medians = {
            str(behind): {str(rows): _ms(times) for rows, times in found.items()}
            for behind, found in self.passes.items()
        }
        said = {"pass_ms": medians, "prompt_ms": self.prompt_ms, "tokens_per_second": self.tokens_per_second}
        named = {"engine": self.engine, "weights": self.weights, "version": self.version}
        return {**named, **said, "seconds": asdict(self)}


def _ms(times: Sequence[float]) -> float | None:
    return median(times) * 1e3 if times else None


class Race:
    """The engines of a target, loaded. ModelError or ValueError for a wrong request; EngineFailed where ours
    cannot be loaded. `left_out`: who does not take part, a sentence each."""

    def __init__(self, order: RaceRequest, settings: Settings) -> None:
        self.order, self.left_out, self.found = order, list[str](), list[Raced]()
        self._settings = known_settings(settings.model_copy(update={"target": order.target}))
        self.threads = settings.threads or usable_cores()
        self._wanted = self._entries()
        self._processes: list[EngineProcess] = []
        self._answer: list[int] = []  # ours

    def _entries(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(name, kind of engine, what it is made with) of each engine, ours first."""
        order, target = self.order, self._settings.target
        common = {"target": target, "threads": self.threads, "settings": self._settings.model_dump_json()}
        entries: list[tuple[str, str, dict[str, Any]]] = [(OURS, OURS, common | {"text": TEXT})]
        files = [_file(name, self._settings) for name in order.peer_files]
        if LLAMA_CPP in order.peers:
            where = resolve(target, self._settings).where
            own = gguf_file(where, hub=self._settings.trust_hub) if is_gguf(where) else None
            paths = list(dict.fromkeys([*([own] if own is not None else []), *files]))
            on_cpu = pick_device(self._settings.device) == "cpu"
            if find_spec("llama_cpp") is None:
                self.left_out.append("llama.cpp is not installed; `pip install llama-cpp-python` adds it")
            elif not on_cpu:
                self.left_out.append("llama.cpp is raced on a CPU only; set OMNIDEMO_DEVICE=cpu")
            elif not paths:
                self.left_out.append(
                    f"llama.cpp needs a GGUF file, and {target} is none; name one of the same model with"
                    " --peer-file"
                )
            else:
                entries += [
                    (f"{LLAMA_CPP}, {path.stem}", LLAMA_CPP, {"path": str(path), "threads": self.threads})
                    for path in paths
                ]
        if TRANSFORMERS in order.peers:
            entries.append((TRANSFORMERS, TRANSFORMERS, common))
        return entries

    def run(self) -> Iterator[Stage]:
        """Load all engines, then yield after each number of rows, prompt and answer. `found` has the figures,
        of unfinished turns too."""
        target, loading = self._settings.target, f"{self._settings.target}: loading engines"
        with ExitStack() as stack:
            yield Stage(loading, 0, len(self._wanted))
            for number, (name, kind, given) in enumerate(self._wanted, 1):
                try:
                    process = EngineProcess(kind, **given)
                except EngineFailed as error:
                    if kind == OURS:
                        raise
                    self.left_out.append(f"{name} does not take part: {error}")
                    continue
                stack.callback(process.close)
                if self._processes and process.facts.vocabulary != self._processes[0].facts.vocabulary:
                    own = self._processes[0].facts.vocabulary
                    raise ValueError(
                        f"{name} has {process.facts.vocabulary:,} tokens where {target} has {own:,}; name a"
                        " file of the same model"
                    )
                self._processes.append(process)
                self.found.append(Raced(name, process.facts.weights, process.facts.version))
                yield Stage(loading, number, len(self._wanted))
            ours = self._processes[0].facts
            window = min(process.facts.window for process in self._processes)
            lengths = [behind for behind in BEHIND if behind + max(ROWS) <= window]
            kinds = [("passes", behind, TURNS) for behind in lengths]
            kinds += [("prompt", 0, TURNS if window >= PROMPT else 0), ("answers", 0, ANSWERS)]
            done, total = 0, len(self._processes) * sum(turns * _steps(what) for what, _, turns in kinds)
            stage = f"{target}: rows, prompts and answers of each engine"
            yield Stage(stage, 0, total)
            for what, behind, turns in kinds:
                until = time.monotonic() + self.order.seconds / len(kinds)
                end = done + len(self._processes) * turns * _steps(what)
                for turn in range(turns):
                    if turn and time.monotonic() > until:
                        break
                    # whose answer is ours comes first
                    for which in rotated(range(len(self._processes)), 0 if what == "answers" else turn):
                        time.sleep(REST)
                        for rows in ROWS[: _steps(what)]:
                            self._take(which, what, behind, rows, ours)
                            done += 1
                            yield Stage(stage, done, total)
                if done < end:
                    done = end
                    yield Stage(stage, done, total)

    def _take(self, which: int, what: str, behind: int, rows: int, ours: Facts) -> None:
        process, found = self._processes[which], self.found[which]
        vocabulary, prompt = ours.vocabulary, ours.prompt
        if what == "passes":
            widths = {rows: _ids(rows, vocabulary, behind + 1)}
            times = process.passes(_ids(behind, vocabulary), widths, -(-self.order.passes // TURNS))
            found.passes.setdefault(behind, {}).setdefault(rows, []).extend(times[rows])
        elif what == "prompt":
            found.prompt.append(process.prompt(_ids(PROMPT, vocabulary)))
        else:
            ids, seconds = process.decode(prompt, len(self._answer) or self.order.tokens)
            self._answer = self._answer or ids
            found.answers.append(seconds)
            found.tokens, found.same = len(ids), common_prefix(ids, self._answer)


def run(order: RaceRequest, settings: Settings) -> Iterator[Stage | Race]:
    """Yield how far it is, at last the race, when `rows.json` and `rows.md` are in the folder `out`. Errors
    as those of `Race`."""
    make_writable(order.out / "rows.json")
    if unknown := sorted(set(order.peers) - set(PEERS)):
        raise ValueError(f"there is no peer {unknown[0]!r}; choose from {', '.join(PEERS)}, or none")
    race = Race(order, settings)
    yield from race.run()
    about = {
        "command": order.command,
        **facts(torch.device(pick_device(settings.device))),
        "threads": race.threads,
    }
    said = {
        "target": order.target,
        **about,
        "left out": race.left_out,
        "engines": [one.figures() for one in race.found],
    }
    (order.out / "rows.json").write_text(
        json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    versions = {one.engine: one.version for one in race.found}
    parts = [markdown_table(HEADINGS, table(race.found)), markdown_list(race.left_out)]
    (order.out / "rows.md").write_text(
        report(f"Rows of {order.target}", NOTE, about | {"versions": versions}, parts), encoding="utf-8"
    )
    yield race


def table(found: Sequence[Raced]) -> list[list[str]]:
    """Lines under `HEADINGS`: each engine behind each length, then ours over each other one."""
    lines = [line for one in found for line in _lines(one, found[0])]
    for other in found[1:]:
        for number, behind in enumerate(other.passes):
            ratios = [_ratio(found[0].pass_ms(behind, rows), other.pass_ms(behind, rows)) for rows in ROWS]
            rest = [
                _ratio(found[0].prompt_ms, other.prompt_ms),
                _ratio(found[0].tokens_per_second, other.tokens_per_second),
            ]
            lines.append(
                [f"ours ÷ {other.engine}", "", str(behind), *ratios, *(rest if not number else ["", ""]), ""]
            )
    return lines


def _lines(one: Raced, ours: Raced) -> Iterator[list[str]]:
    whole = [
        _cell(one.prompt_ms, ".0f"),
        _cell(one.tokens_per_second, ".1f"),
        "" if one is ours else f"{one.same}/{ours.tokens}",
    ]
    for number, behind in enumerate(one.passes or (0,)):
        cells = [_cell(one.pass_ms(behind, rows), ".1f") for rows in ROWS]
        yield [one.engine, one.weights, str(behind), *cells, *(whole if not number else [""] * len(whole))]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _ratio(mine: float | None, other: float | None) -> str:
    return "–" if mine is None or not other else f"{mine / other:.2f}"


def _steps(what: str) -> int:
    """What one turn of an engine is told in: its passes by their rows."""
    return len(ROWS) if what == "passes" else 1


def _ids(count: int, vocabulary: int, shift: int = 0) -> list[int]:
    """Ids that are all over the vocabulary; what they say does not change what a pass costs."""
    return [(997 * (shift + place) + 5) % vocabulary for place in range(count)]


def _file(name: str, settings: Settings) -> Path:
    """The file that --peer-file names."""
    where = resolve(name, settings).where
    path = gguf_file(where, hub=settings.trust_hub)
    if path is None:
        raise ValueError(
            f"{name} is no GGUF file, and llama.cpp reads no others; name a .gguf file of the same model"
        )
    return path
