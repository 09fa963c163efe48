"""What people wrote: the training prompts with the answers of their data sets, as a target would read and
write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.drafters.prompt_sets import OWN, OWN_TRAINING, SOURCES, training
from lab.drafters.shards import Recorded


def human_texts(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(set, prompt, answer or an empty text) of each training prompt, and of our own ones."""
    allowed = {name: {prompt.id for prompt in prompts} for name, prompts in training(folder).items()}
    files = [(name, folder / source.file) for name, source in SOURCES.items()] + [
        ("own", OWN / name) for name in OWN_TRAINING
    ]
    for name, path in files:
        with path.open(encoding="utf-8") as file:
            for record in map(json.loads, file):
                if record["id"] in allowed[name]:
                    yield name, record["prompt"], record["answer"].replace("\t", "    ").replace("\r", "")


def as_answers(
    folder: Path, target: str, spell: Callable[[str], list[int]], encode: Callable[[str], list[int]], end: int
) -> Iterator[Recorded]:
    """The same in a target's ids."""
    for number, (name, prompt, answer) in enumerate(human_texts(folder)):
        ids = [*encode(answer), end] if answer else []
        yield Recorded(name, f"people/{name}/{number}", target, 0.0, "end", spell(prompt), ids)
