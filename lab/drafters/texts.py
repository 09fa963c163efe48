"""What people wrote: the training prompts with the answers of their data sets, as a target would read and
write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from lab.drafters.prompt_sets import training
from lab.drafters.shards import Recorded


def human_texts(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(set, prompt, answer or an empty text) of each training prompt. Our own have no answers."""
    for name, prompts in training(folder).items():
        for prompt in prompts:
            yield name, prompt.text, prompt.answer.replace("\t", "    ").replace("\r", "")


def as_answers(
    folder: Path, target: str, spell: Callable[[str], list[int]], encode: Callable[[str], list[int]], end: int
) -> Iterator[Recorded]:
    """The same in a target's ids."""
    for number, (name, prompt, answer) in enumerate(human_texts(folder)):
        ids = [*encode(answer), end] if answer else []
        yield Recorded(name, f"people/{name}/{number}", target, 0.0, "end", spell(prompt), ids)
