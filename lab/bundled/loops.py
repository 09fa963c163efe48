"""Whether a model loops: free questions, each in a fresh chat and in the model's own manner, and how often a
group of tokens comes again.

    python -m lab loops HuggingFaceTB/SmolLM2-135M-Instruct
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from omnidemo.config import DRAFTER, Settings
from omnidemo.lines.sample_prompts import FOLDER
from omnidemo.measuring.prompt_files import read_prompts
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation
from omnidemo.serving.pair_loading import build_pair

QUESTIONS = FOLDER / "free.jsonl"
GROUP, TIMES = 4, 5  # an answer loops where a group of so many tokens comes so many times
TOKENS = 120


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, and how many times its most frequent group of GROUP tokens is in it."""

    question: str
    answer: Generation
    repeats: int

    @property
    def loops(self) -> bool:
        return self.repeats >= TIMES


def repeats(ids: Sequence[int], size: int = GROUP) -> int:
    """How many times the most frequent run of `size` ids is in them, overlapping ones too; 0 where there are
    fewer ids."""
    found = Counter(tuple(ids[start : start + size]) for start in range(len(ids) - size + 1))
    return max(found.values(), default=0)


def ask(pair: Pair, questions: Sequence[str], tokens: int = TOKENS, **options: Any) -> Iterator[Told]:
    """Answer each question in a chat of its own, with its number as the seed. The options are those of
    `Pair.generate`; of the sampling what they leave out is as the target's manner has it."""
    for seed, question in enumerate(questions):
        chat = [{"role": "user", "content": question}]
        made = pair.generate(chat, seed=seed, max_new_tokens=tokens, learn=False, reuse=False, **options)
        yield Told(question, made, repeats(made.token_ids))


def main(
    target: Annotated[str, typer.Argument(help="bundled name, Hub id or folder")],
    drafter: Annotated[str, typer.Option(help="drafter, likewise")] = DRAFTER,
    prompts: Annotated[Path, typer.Option(help="JSON Lines of questions")] = QUESTIONS,
    tokens: Annotated[int, typer.Option(help="longest answer")] = TOKENS,
    temperature: Annotated[float | None, typer.Option(help="in place of the model's own")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="in place of the model's own")] = None,
    show: Annotated[bool, typer.Option(help="print the answers, too")] = False,
) -> None:
    """Count the answers that loop."""
    pair = build_pair(target, drafter, Settings(target=target, drafter=drafter, training="off"))
    told = []
    for one in ask(
        pair, read_prompts(prompts), tokens, temperature=temperature, repetition_penalty=repetition_penalty
    ):
        told.append(one)
        typer.echo(f"{one.repeats:3} {'loops' if one.loops else '     '} {one.question[:90]}")
        if show:
            typer.echo(f"\n{one.answer.text}\n")
    asked = pair.asked(temperature=temperature, repetition_penalty=repetition_penalty)
    manner = (
        f"temperature {asked.temperature:g}, top-p {asked.top_p:g}, top-k {asked.top_k}, min-p"
        f" {asked.min_p:g}"
    )
    typer.echo(
        f"{sum(one.loops for one in told)} of {len(told)} answers have a group of {GROUP} tokens {TIMES}"
        f" times or more: {manner}, repetition penalty {asked.repetition_penalty:g}, at most {tokens} tokens"
        " each."
    )
