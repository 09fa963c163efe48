"""The committed prompts: 120 of each domain to test with, 240 of held-out patterns, and 400 of five domains
to distil from.

    python -m lab write-prompts --train 1000 FOLDER

writes more of the last elsewhere, of the corpus as it is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NotRequired, TypedDict

import typer

from lab.drafters.training.family import ROOT

from .corpus import mixer
from .corpus.base import Example

FOLDER = ROOT / "assets" / "prompts"
# with enough different prompts to hold out and to play
PLAYED = tuple(domain for domain in mixer.DOMAINS if domain != "chat")
SEED = 99
TEST, HELD_OUT, TRAIN = 120, 48, 400  # of each domain
MOST_DRAWS = 20  # for each prompt that is wanted: small talk of a few patterns has not so many


class Record(TypedDict):
    """One prompt of a file, in JSON."""

    id: str
    domain: str
    pattern: str
    label: NotRequired[str]  # of the page's examples alone
    prompt: str
    answer: str
    facts: list[str]
    number: str | None
    tests: list[str]


def single(seed: int, split: str, domain: str, held_out: bool, count: int) -> Iterator[Example]:
    """So many single-turn examples with different prompts, or as many as there are."""
    prompts: set[str] = set()
    for drawn, example in enumerate(mixer.stream(seed, split, domains=(domain,), held_out=held_out)):
        if len(prompts) == count or drawn == MOST_DRAWS * count:
            return
        if len(example.turns) == 1 and example.turns[0][0] not in prompts:
            prompts.add(example.turns[0][0])
            yield example


def to_record(example: Example, key: str) -> Record:
    prompt, answer = example.turns[0]
    return {
        "id": key, "domain": example.domain, "pattern": example.pattern, "prompt": prompt, "answer": answer,
        "facts": list(example.facts), "number": example.number, "tests": list(example.tests),
    }  # fmt: skip


def from_record(record: Record) -> Example:
    turns = ((record["prompt"], record["answer"]),)
    return Example(
        record["domain"],
        record["pattern"],
        turns,
        tuple(record["facts"]),
        record["number"],
        tuple(record["tests"]),
    )


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, records: list[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_all(
    folder: Annotated[Path, typer.Argument(help="where the files go")] = FOLDER,
    train: Annotated[int, typer.Option(min=1, help="prompts of each domain to distil from")] = TRAIN,
) -> None:
    """Write every prompt file anew; the same corpus gives the same files."""
    held_out: list[Record] = []
    for index, domain in enumerate(mixer.DOMAINS):
        test = single(SEED + index, "test", domain, False, TEST)
        _write(
            folder / f"{domain}.jsonl",
            [to_record(example, f"{domain}-{place}") for place, example in enumerate(test)],
        )
        if domain in PLAYED:
            unseen = single(SEED + index, "test", domain, True, HELD_OUT)
            held_out += [
                to_record(example, f"held-out-{domain}-{place}") for place, example in enumerate(unseen)
            ]
            taught = single(SEED + 100 + index, "train", domain, False, train)
            records = [to_record(example, f"train-{domain}-{place}") for place, example in enumerate(taught)]
            _write(folder / "train" / f"{domain}.jsonl", records)
    _write(folder / "held_out.jsonl", held_out)
