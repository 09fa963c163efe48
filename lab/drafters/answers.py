"""Answers of a target to prompts, in shards that a later run goes on from: `python -m lab answers`."""

from __future__ import annotations

import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from lab.drafters.prompt_sets import Prompt, in_turns
from lab.drafters.shards import done, save
from lab.drafters.training.pause import hold
from omnidemo.backends.batched_writer import LOOPS, BatchedWriter, Order, WrittenAnswer, order_of
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Manner
from omnidemo.models.chat_template import Speller
from omnidemo.models.load import LanguageModel

SHARD = 128  # answers
LENGTH = 256  # tokens of an answer


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is written to each prompt: an answer of at most `length` tokens with at most `labels` at each, for
    every other prompt, by its name, a greedy one, else one in the target's manner; or `both`, which do not
    end in a loop. `part` (i, n): to every nth prompt from the ith on."""

    length: int = LENGTH
    labels: int = 4
    both: bool = False
    part: tuple[int, int] = (0, 1)


def by_set(finished: Mapping[str, int]) -> str:
    """How much there is of each set, a line each."""
    answers, tokens = Counter(order.split("/")[0] for order in finished), Counter[str]()
    for order, count in finished.items():
        tokens[order.split("/")[0]] += count
    return "\n".join(
        f"{name}: {answers[name]:,} answers, {tokens[name]:,} tokens" for name in sorted(answers)
    )


def work(
    sets: Mapping[str, Sequence[Prompt]], spell: Callable[[str], list[int]], finished: Container[str],
    manner: Manner, wanted: Wanted,
) -> Iterator[tuple[list[int], list[Order]]]:  # fmt: skip
    """What is to be written, the sets in turns."""
    filters = manner.temperature, manner.top_p, manner.repetition_penalty, manner.top_k
    first, each = wanted.part
    for number, (name, prompt) in enumerate(in_turns(sets)):
        if number % each != first:
            continue
        seed = zlib.crc32(f"{name}/{prompt.id}".encode())
        greedy, drawn = (Order(name, prompt.id, seed, wanted.length, *given) for given in ((), filters))
        orders = [greedy, drawn] if wanted.both else [drawn if seed % 2 else greedy]
        missing = [one for one in orders if order_of(name, prompt.id, one.temperature) not in finished]
        if missing:
            yield spell(prompt.text), missing


def write_answers(
    model: LanguageModel, name: str, sets: Mapping[str, Sequence[Prompt]], source: str, folder: Path,
    rows: int, tokens: int, wanted: Wanted, report: Callable[[str], None], pause: Path | None = None,
) -> int:  # fmt: skip
    """Write shards of a target's answers until there are so many tokens of them in the folder, and return how
    many there are. `source`: where the prompts are from. `pause`: see `BatchedWriter`."""
    runner, manner = model.runner, model.manner
    if not isinstance(runner, FusedLlama):
        raise ValueError(f"{model.name} has no Llama or Qwen shape; answers are written by models that have")
    finished = done(folder)
    total = before = sum(finished.values())
    speller = Speller(model.tokenizer, model.vocabulary)

    def spell(text: str) -> list[int]:
        return speller.messages([{"role": "user", "content": text}])

    runner.threads = 1  # a process each keeps a core busier than threads that wait for each other
    loops, positions = (0, 1024) if wanted.both else (LOOPS, 512)
    writer = BatchedWriter(
        runner, model.vocabulary.roles["end"], rows, positions, wanted.labels, loops,
        partial(hold, pause),
    )  # fmt: skip
    revision = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    facts = {
        "target": name, "prompts": source, "commit": revision, "manner": asdict(manner),
        "seed": "crc32 of set/id", "length": wanted.length, "labels": wanted.labels,
    }  # fmt: skip
    pending: list[WrittenAnswer] = []
    began = time.monotonic(), time.process_time()
    try:
        for answer in writer.write(work(sets, spell, finished, manner, wanted)):
            pending.append(answer)
            total += len(answer.ids)
            if len(pending) == SHARD or total >= tokens:
                save(folder, facts, pending)
                pending, new = [], total - before
                seconds, busy = time.monotonic() - began[0], time.process_time() - began[1]
                costs = f"{new / seconds:.0f} a second, {1e3 * busy / new:.1f} ms of a core each"
                report(f"{total:,} tokens, {costs}")
                if total >= tokens:
                    break
    finally:  # stopped by the user, too
        if pending:
            save(folder, facts, pending)
    return total
