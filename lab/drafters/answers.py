"""Answers of a target to the training prompts, in shards that a later run goes on from: `python -m lab
answers`.

A shard is `TARGET-NUMBER.jsonl`, one answer a line, and `TARGET-NUMBER.npz`: the most probable tokens at each
of its answers' tokens.
"""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.drafters.batched import LOOPS, Answer, BatchedWriter, Order
from lab.drafters.prompt_sets import Prompt, in_turns
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Manner
from omnidemo.core.private_folders import replacing
from omnidemo.models.chat_template import Speller
from omnidemo.models.load import LanguageModel

FREE = "free"  # the set of texts that a model writes of itself, from its start token on
SAMPLED = 0.8  # temperature of the answers that are drawn
SHARD = 64  # answers
LONGEST = 256  # tokens of such a text
LENGTH = 192  # tokens of an answer
# what texts begin with, in models whose own begin token begins a turn of a chat
START = ("<|endoftext|>", "<|begin|>")


def seed_of(name: str) -> int:
    return zlib.crc32(name.encode())


def done(folder: Path, target: str) -> dict[str, int]:
    """The orders that finished shards of a target hold, with the tokens of each answer."""
    records = (
        json.loads(line)
        for path in sorted(folder.glob(f"{target}-*.jsonl"))
        for line in path.read_text().splitlines()
    )
    return {record["order"]: len(record["answer"]) for record in records}


def by_set(finished: Mapping[str, int]) -> str:
    """How much there is of each set, a line each."""
    answers, tokens = Counter[str](), Counter[str]()
    for order, count in finished.items():
        name = order.split("/")[1]
        answers[name] += 1
        tokens[name] += count
    return "\n".join(
        f"{name}: {answers[name]:,} answers, {tokens[name]:,} tokens" for name in sorted(answers)
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is written to each prompt: a greedy answer, and `rounds` drawn ones, in `manner` or at temperature
    `SAMPLED`; without `rounds` one answer, greedy for every other prompt by its name; after every prompt of each set `free` texts without a prompt. `part` (i, n): every nth prompt
    from the ith on, and texts numbered so. `cut`: an answer ends once it loops."""

    length: int = LENGTH
    rounds: int = 1
    manner: Manner | None = None
    free: int = 0
    part: tuple[int, int] = (0, 1)
    cut: bool = True


def work(
    sets: Mapping[str, Sequence[Prompt]], target: str, spell: Callable[[str], list[int]], start: list[int],
    finished: Container[str],
    wanted: Wanted,
) -> Iterator[tuple[list[int], list[Order]]]:  # fmt: skip
    """What is to be written, the sets in turns. `start`: the ids that texts without a prompt begin with; none
    are written without."""

    def order(name: str, temperature: float, length: int) -> Order:
        manner = wanted.manner if temperature > 0 else None
        if manner is None:
            return Order(name, temperature, seed_of(name), length)
        filters = manner.top_p, manner.repetition_penalty, manner.top_k
        return Order(name, manner.temperature, seed_of(name), length, *filters)

    def orders(name: str, temperatures: Sequence[float], length: int) -> list[Order]:
        every = (order(f"{target}/{name}/{turn}", heat, length) for turn, heat in enumerate(temperatures))
        return [one for one in every if one.id not in finished]

    number, since = wanted.part[0], 0
    for name, prompt in in_turns(sets):
        if since == 0:
            for _ in range(wanted.free if start else 0):
                if texts := orders(f"{FREE}/{number}", [SAMPLED], LONGEST):
                    yield start, texts
                number += wanted.part[1]
        since = (since + 1) % len(sets)
        heats = [0.0, *[SAMPLED] * wanted.rounds]
        if not wanted.rounds:
            heats = [SAMPLED * (seed_of(prompt.id) % 2)]
        if answers := orders(f"{name}/{prompt.id}", heats, wanted.length):
            yield spell(prompt.text), answers


def start_of(model: LanguageModel) -> list[int]:
    names = model.tokenizer.get_vocab()
    return [names[name] for name in START if name in names][:1]


def write_answers(
    model: LanguageModel, name: str, sets: Mapping[str, Sequence[Prompt]], folder: Path, rows: int,
    tokens: int, wanted: Wanted,
    report: Callable[[str], None], pause: Path | None = None, clock: Callable[[], float] = time.monotonic,
) -> int:  # fmt: skip
    """Write shards of a target's answers until there are so many tokens of them in the folder, and return how
    many there are. `pause`: see `BatchedWriter`."""
    folder.mkdir(parents=True, exist_ok=True)
    runner = model.runner
    if not isinstance(runner, FusedLlama):
        raise ValueError(f"{model.name} has no Llama or Qwen shape; answers are written by models that have")
    finished = done(folder, name)
    total = sum(finished.values())
    if total >= tokens:
        return total
    runner.threads = torch.get_num_threads()  # so many as OMP_NUM_THREADS says
    speller = Speller(model.tokenizer, model.vocabulary)

    def spell(text: str) -> list[int]:
        return speller.messages([{"role": "user", "content": text}])

    writer = BatchedWriter(
        runner, model.vocabulary.roles["end"], rows, loops=LOOPS if wanted.cut else 0, pause=pause
    )
    pending: list[Answer] = []
    before, began = total, clock()
    try:
        for answer in writer.write(work(sets, name, spell, start_of(model), finished, wanted)):
            pending.append(answer)
            total += len(answer.ids)
            if len(pending) == SHARD:
                save(folder, name, pending)
                pending = []
                report(f"{total:,} tokens, {(total - before) / (clock() - began):.0f} a second")
                if total >= tokens:
                    break
    finally:  # stopped by the user, too
        if pending:
            save(folder, name, pending)
    return total


def save(folder: Path, target: str, answers: Sequence[Answer]) -> None:
    """A new shard; its arrays first, for the lines say that it is whole."""
    number = len(list(folder.glob(f"{target}-*.jsonl")))
    lines, arrays = (folder / f"{target}-{number:05d}.{kind}" for kind in ("jsonl", "npz"))
    with replacing(arrays) as partial, partial.open("wb") as file:
        top, logprobs = (
            np.concatenate([one.top for one in answers]),
            np.concatenate([one.logprobs for one in answers]),
        )
        np.savez_compressed(file, top=top, logprobs=logprobs)
    with replacing(lines) as partial:
        partial.write_text("".join(json.dumps(line_of(target, answer)) + "\n" for answer in answers))


def line_of(target: str, answer: Answer) -> dict[str, Any]:
    order = answer.order
    source = order.id.split("/")[1]
    return {
        "order": order.id, "set": source, "target": target, "temperature": order.temperature,
        "seed": order.seed, "top_p": order.top_p, "top_k": order.top_k, "penalty": order.penalty,
        "reason": answer.reason, "prompt": answer.prompt, "answer": answer.ids,
    }  # fmt: skip
