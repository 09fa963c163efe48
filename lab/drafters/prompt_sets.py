"""The prompts that a drafter may learn from, and those that are kept to score it.

A prompt that stands in a kept part, or has a paragraph in common with one (an article, a database schema), is
no training prompt.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from omnidemo.core.tasks import TASKS, task
from omnidemo.learning.lines.sample_prompts import FOLDER as OWN
from omnidemo.learning.lines.sample_prompts import TOPICS

SHARED = 80  # characters from which on a paragraph belongs to a subject, and not to a manner of asking


@dataclass(frozen=True, slots=True)
class Prompt:
    """`answer`: what its data set has; empty where that is nothing. `system`: the prompt of a task, which is
    asked at temperature 0; None for every other prompt."""

    id: str
    text: str
    answer: str = ""
    system: str | None = None

    def messages(self) -> list[dict[str, str]]:
        """The chat that asks for an answer."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.text}]

    def plain(self) -> str:
        """The same as a text, for a target without a chat template."""
        return self.text if self.system is None else f"{self.system}\n\n{self.text}\n\n"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of prompts as JSON lines, and which of its lines teach: those before `stop` (from the end where
    negative), or none."""

    file: str
    stop: int | None


SOURCES: Mapping[str, Source] = {
    "gsm8k": Source("gsm8k_train_3000.jsonl", None),
    "mbpp": Source("mbpp.jsonl", None),
    "dolly": Source("dolly_prompts.jsonl", -100),
    "summaries": Source("dolly_summarization.jsonl", -40),
    "tasks": Source("self_instruct.jsonl", -40),
    "sql": Source("spider_dev.jsonl", 600),
}
# prompts of many kinds, each of which is a set; some teach, others are kept
KINDS, KEPT_KINDS = "prompts-more.jsonl", "prompts-more-heldout.jsonl"
KEPT_FILES: Mapping[str, str] = {"gsm8k_test": "gsm8k_test.jsonl", "humaneval": "humaneval.jsonl"}
OWN_TRAINING = tuple(f"train/{topic}.jsonl" for topic in TOPICS)
OWN_KEPT = tuple(f"{name}.jsonl" for name in ("probes", "examples", "edits", "free", *TOPICS))


def read_lines(path: Path) -> list[Prompt]:
    """The prompts of a file. FileNotFoundError, ValueError or KeyError for one that is no such file."""
    with path.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    return [
        Prompt(str(record.get("id", f"{path.stem}-{number}")), record["prompt"], record.get("answer", ""))
        for number, record in enumerate(records)
    ]


def by_kind(path: Path) -> dict[str, list[Prompt]]:
    """The prompts of a file whose lines name their kinds; none without the file."""
    sets: dict[str, list[Prompt]] = {}
    if path.exists():
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            sets.setdefault(f"more-{record['kind']}", []).append(Prompt(record["id"], record["prompt"]))
    return sets


def own(names: Sequence[str]) -> list[Prompt]:
    """The prompts of files of our own."""
    return [
        replace(prompt, id="-".join([*Path(name).parent.parts, prompt.id]))
        for name in names
        for prompt in read_lines(OWN / name)
    ]


def marks(text: str) -> set[str]:
    """What two prompts on the same thing have in common: their whole text, or a long paragraph; spaces and
    capitals do not count."""
    parts = [text, *(part for part in text.split("\n\n") if len(part) >= SHARED)]
    return {" ".join(part.split()).casefold() for part in parts}


def kept(folder: Path) -> dict[str, list[Prompt]]:
    """The prompts of each set that are only to score with."""
    sets = {name: read_lines(folder / file) for name, file in KEPT_FILES.items()}
    for name, source in SOURCES.items():
        if source.stop is not None:
            sets[name] = read_lines(folder / source.file)[source.stop :]
    sets["own"] = own(OWN_KEPT)
    return sets | by_kind(folder / KEPT_KINDS)


def training(folder: Path) -> dict[str, list[Prompt]]:
    """The prompts of each set that may teach."""
    scored = {mark for prompts in kept(folder).values() for prompt in prompts for mark in marks(prompt.text)}
    sets = {name: read_lines(folder / source.file)[: source.stop] for name, source in SOURCES.items()}
    sets["own"] = own(OWN_TRAINING)
    sets |= by_kind(folder / KINDS)
    return {
        name: [prompt for prompt in prompts if not scored & marks(prompt.text)]
        for name, prompts in sets.items()
    }


def everything(folder: Path) -> dict[tuple[str, str], str]:
    """Every prompt, whatever it may do, by set and id."""
    return {
        (name, prompt.id): prompt.text
        for sets in (training(folder), kept(folder))
        for name, prompts in sets.items()
        for prompt in prompts
    }


def some(prompts: Sequence[Prompt], most: int) -> list[Prompt]:
    """At most so many of them, evenly from the first to the last."""
    count = min(most, len(prompts))
    return [prompts[number * len(prompts) // count] for number in range(count)]


def in_turns(sets: Mapping[str, Sequence[Prompt]], seed: int = 0) -> Iterator[tuple[str, Prompt]]:
    """(set, prompt), one of each set after the other, each set in an order of its own, until the longest
    ends."""
    orders = {
        name: random.Random(f"{seed} {name}").sample(list(prompts), len(prompts))
        for name, prompts in sets.items()
    }
    for number in range(max(map(len, orders.values()), default=0)):
        for name, prompts in orders.items():
            if number < len(prompts):
                yield name, prompts[number]


def repeated_tasks(taught: int, told: int, seed: int = 1) -> tuple[dict[str, list[Prompt]], ...]:
    """Inputs of each task that ships with the project, as the sets `task-json` and so on: those that teach,
    and others that tell."""
    found = {
        f"task-{one.name}": [
            Prompt(f"{one.name}-{number}", one.ask + text, system=one.system)
            for number, text in enumerate(one.inputs(taught + told, seed))
        ]
        for one in map(task, TASKS)
    }
    teaching = {name: prompts[:taught] for name, prompts in found.items()}
    return teaching, {name: prompts[taught:] for name, prompts in found.items()}


def taught_and_told(folder: Path, count: int, told: int) -> tuple[dict[str, list[Prompt]], ...]:
    """Prompts that teach, and those of the same sets that tell: GSM8K's test part for GSM8K, HumanEval for
    MBPP, later inputs of a task for `count` first ones."""
    telling = kept(folder)
    telling |= {"gsm8k": telling["gsm8k_test"], "mbpp": telling["humaneval"]}
    first, later = repeated_tasks(count, told)
    return training(folder) | first, telling | later
