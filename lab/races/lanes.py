"""Every method on sets of prompts and on repeated tasks, greedy and in the target's own manner.

A cell is one prompt in one manner, answered by all methods in turns, and a file in the folder of results. A
run goes on with the cells that are not there, one of each set after the other, so that it may be stopped at
any time and the table has every set. The n-gram cache is full from the beginning and learns nothing. Answers
to a prompt know no other answer. Those to a task know the plain answers of its earlier cells in the same
manner. The chances of the policy `cost` begin anew with each run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lab.drafters import prompt_sets
from lab.races.gains import LEAST, seconds_of
from omnidemo.core.config import GREEDY
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import Generation, Prompt
from omnidemo.core.tasks import task
from omnidemo.decoding.methods import BASELINE, METHODS, fitting, make_method
from omnidemo.pair.copy_memory import TAIL
from omnidemo.pair.in_turns import Budget, in_turns
from omnidemo.pair.pair import Pair
from omnidemo.pair.repeated_task import prompt_of
from omnidemo.serving.measuring.prompt_files import check_writable
from omnidemo.serving.measuring.report_tables import Stage

MANNERS = ("greedy", "own")
ABOUT = "arena.json"  # in the folder: what all its cells were made with


@dataclass(frozen=True, slots=True)
class ArenaRequest:
    """sets: name → prompts. tasks: names of repeated tasks, each with its first `inputs`. methods: [] for all
    that fit the pair. `minutes`: after so many no other cell begins."""

    target: str
    out: Path
    sets: Mapping[str, Sequence[str]]
    tasks: Sequence[str] = ()
    inputs: int = 12
    manners: Sequence[str] = MANNERS
    methods: Sequence[str] = ()
    max_new_tokens: int = 96
    policy: str = "cost"
    minutes: float = float("inf")

    def __post_init__(self) -> None:
        """ValueError for a task or a manner that there is not."""
        for name in self.tasks:
            task(name)
        if not self.manners or not set(self.manners) <= set(MANNERS):
            raise ValueError(f"--manner is greedy, own or both, not {','.join(self.manners)!r}")


@dataclass(frozen=True, slots=True)
class Lane:
    """What a method made of a cell, without its first round, which waits for the prompt. `same`: the ids of
    plain decoding; None where they need not be the same. `variation`: summed over the answer's tokens; None
    of a method that does not measure it. `ids`: the whole answer's."""

    tokens: int
    rounds: int
    seconds: float
    proposed: int
    accepted: int
    same: bool | None
    variation: float | None
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Cell:
    """`set`: that of the prompt, or the task. `number`: its place there, from 1. `end`: the last ids of the
    prompt."""

    set: str
    manner: str
    number: int
    end: Sequence[int]
    lanes: Mapping[str, Lane]

    @property
    def tells(self) -> bool:
        """Whether every answer is long enough to be timed."""
        return all(lane.tokens >= LEAST for lane in self.lanes.values())


@dataclass(slots=True)
class Memory:
    """What answers to tasks may copy from: the plain answers of the cells that there are. It takes the place
    of a history's stored answers."""

    pair: Pair
    texts: dict[str, list[list[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pair.copies.restore = lambda domain, asked: threading.Thread(
            target=self._fill, args=(domain, asked), daemon=True
        ).start()

    def add(self, cell: Cell) -> None:
        domain = f"{cell.set} {cell.manner}"
        self.texts.setdefault(domain, []).append([*cell.end, *cell.lanes[BASELINE].ids])
        self.pair.copies.forget(domain)  # so that the next answer asks for all of them

    def _fill(self, domain: str, asked: threading.Event) -> None:
        try:
            self.pair.copies.put_before(domain, asked, self.texts.get(domain, []))
        finally:
            asked.set()


def kept_sets(folder: Path, names: Sequence[str], tasks: Sequence[str], most: int) -> dict[str, list[str]]:
    """Prompts of kept sets, each taken evenly. A set with the name of a task is called otherwise. ValueError
    for a set that there is not."""
    known = prompt_sets.kept(folder)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no set {unknown[0]!r}; there are {', '.join(known)}")
    return {
        f"{name} set" if name in tasks else name: [one.text for one in prompt_sets.some(known[name], most)]
        for name in names
    }


def read(folder: Path) -> list[Cell]:
    """The cells of a folder, in the order of their numbers."""
    found = []
    for path in folder.glob("*/*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        found.append(Cell(**kept | {"lanes": {name: Lane(**one) for name, one in kept["lanes"].items()}}))
    return sorted(found, key=lambda cell: (cell.number, cell.set, cell.manner))


def run(
    order: ArenaRequest, pair: Pair, clock: Callable[[], float] = time.monotonic
) -> Iterator[Stage | Cell]:
    """Yield how far it is, and each new cell when its file is there. ValueError, before anything is timed,
    for what cannot be."""
    names = [*dict.fromkeys([BASELINE, *(order.methods or fitting(pair.map))])]
    methods = [*dict.fromkeys(make_method(name, pair.map).name for name in names)]
    about = {
        "target": pair.target.name, "drafter": pair.drafter.name, "policy": order.policy,
        "max_new_tokens": order.max_new_tokens, "methods": methods,
        "arithmetic": str(pair.summary().get("target_arithmetic", "")),
    }  # fmt: skip
    check_about(order.out, about)
    there = {(cell.set, cell.manner, cell.number): cell for cell in read(order.out)}
    coming = list(_cells(order, pair))
    for _, _, prompt, _ in coming:
        pair.prompt_ids(prompt)
    pair.fill_cache()
    pair.warm_up()
    memory, began = Memory(pair), clock()
    for count, (name, number, prompt, learn) in enumerate(coming):
        for manner in order.manners:
            cell = there.get((name, manner, number))
            if cell is None:
                if clock() - began > 60 * order.minutes:
                    return
                yield Stage(f"{order.target}: prompts", count, len(coming))
                cell = _answered(order, pair, methods, (name, manner, number), prompt, learn)
                _save(order.out, cell)
                yield cell
            if learn:
                memory.add(cell)


def check_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write down what the cells of a folder are made with. ValueError where it has others."""
    path = folder / ABOUT
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(path)
    if not path.exists():
        path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    if changed := [name for name in about if before.get(name) != about[name]]:
        raise ValueError(
            f"{folder} was measured with another {changed[0]} ({before.get(changed[0])}); name another folder"
            " with --out"
        )


def _cells(order: ArenaRequest, pair: Pair) -> Iterator[tuple[str, int, Prompt, bool]]:
    """(set, number, prompt, whether earlier answers are known), one of each set after the other."""
    sets: dict[str, list[Prompt]] = {name: list(texts) for name, texts in order.sets.items()}
    for name in order.tasks:
        one = task(name)
        sets[name] = [prompt_of(pair, one, text) for text in one.inputs(order.inputs, 1)]
    for number in range(max(map(len, sets.values()), default=0)):
        for name, prompts in sets.items():
            if number < len(prompts):
                yield name, number + 1, prompts[number], name in order.tasks


def _answered(
    order: ArenaRequest, pair: Pair, methods: Sequence[str], place: tuple[str, str, int], prompt: Prompt,
    learn: bool,
) -> Cell:  # fmt: skip
    name, manner, number = place
    options: dict[str, Any] = {"max_new_tokens": order.max_new_tokens, "seed": number, "learn": learn}
    options |= {"remember": False, "domain": f"{name} {manner}"} if learn else {}
    options |= GREEDY.options if manner == "greedy" else {"repetition_penalty": 1.0} if learn else {}
    lanes = {
        method: partial(
            pair.generate, prompt, method=method, draft_policy=order.policy, copying=method != BASELINE,
            **options,
        )
        for method in methods
    }  # fmt: skip
    made = {lane: answer for _, lane, answer in in_turns(lanes, Budget(1), time.monotonic, number)}
    plain = made[BASELINE].token_ids
    found = {}
    for method in methods:
        fixed = manner == "greedy" or METHODS[method].coupled
        found[method] = _lane(made[method], made[method].token_ids == plain if fixed else None)
    return Cell(name, manner, number, pair.prompt_ids(prompt)[-TAIL:], found)


def _lane(made: Generation, same: bool | None) -> Lane:
    rounds = made.rounds[1:]
    variations = [one.variation for one in rounds if one.variation is not None]
    return Lane(
        sum(len(one.tokens) for one in rounds), len(rounds), seconds_of(made),
        sum(one.proposed for one in rounds), sum(one.accepted for one in rounds), same,
        sum(variations) if variations else None, list(map(int, made.token_ids)),
    )  # fmt: skip


def _save(folder: Path, cell: Cell) -> None:
    path = folder / f"{cell.set}-{cell.manner}" / f"{cell.number:03d}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial_file:
        partial_file.write_text(json.dumps(asdict(cell)), encoding="utf-8")
