"""Greedy answers of a bundled model to generated prompts, checked: results of sums, tests of code, repeated
facts.

Four kinds of prompts: of the patterns that were trained on (but no prompt that was), of held-out patterns,
follow-ups in a chat whose first answer is given, and prompts at each turn of long chats with changing topics,
in which the model reads its own answers.
"""

from __future__ import annotations

import ast
import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer

from lab.bundled import write_prompts as prompts
from lab.drafters.training.family import ASSETS, NAMES, RUNS
from omnidemo.config import DRAFTER, GREEDY, Settings
from omnidemo.models.catalogue import Reading, reading
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_loading import build_pair

from .corpus import mixer
from .corpus.base import Example

LIMIT = 400  # tokens of an answer
TURNS = 10  # of a long chat
SEED = 77
COUNT = 300  # prompts a row
_FENCE = re.compile(r"```[a-z]*\n(.*?)(?:```|\Z)", re.DOTALL)

Kind = Literal["test", "held-out", "follow-up", "turn 1", "turn 10", "turn 10 alone"]
Messages = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Score:
    """Shares over the prompts of a domain; `parses` is for code alone."""

    model: str
    domain: str  # "all" for the turns of long chats
    kind: Kind
    prompts: int
    right: float
    ended: float
    parses: float | None
    mean_tokens: float


@dataclass(frozen=True, slots=True)
class Answer:
    example: Example
    text: str
    tokens: int
    ended: bool
    right: bool


class Model:
    """A pair's target as the page runs it, answering greedily one chat after another: of each it reads only
    what is new."""

    def __init__(self, pair: Pair, read: Reading, limit: int = LIMIT) -> None:
        """read: how much of a chat the target is given; limit: tokens of an answer."""
        self.pair, self.reading, self.limit = pair, read, limit

    def answer(self, example: Example, chat: Messages | None = None) -> Answer:
        """The answer to a chat, by default that of the example up to its last question, judged by the
        example."""
        given = newest(self.pair, asked(example) if chat is None else chat, self.reading, self.limit).messages
        made = self.pair.generate(
            given, method="autoregressive", **GREEDY.options, max_new_tokens=self.limit, learn=False
        )
        return Answer(
            example,
            made.text,
            len(made.token_ids),
            made.finish_reason == "end",
            mixer.check(example, made.text),
        )


def asked(example: Example) -> Messages:
    """The chat of an example up to its last question."""
    pairs = [
        ({"role": "user", "content": user}, {"role": "assistant", "content": answer})
        for user, answer in example.turns
    ]
    return [message for pair in pairs for message in pair][:-1]


def singles(domain: str, held_out: bool, count: int) -> list[Example]:
    """Prompts of one turn, none of them trained on; the same in each run. Fewer where a domain has not so
    many."""
    place = mixer.DOMAINS.index(domain)
    return list(prompts.single(SEED + place, "test", domain, held_out, count))


def follow_ups(count: int) -> list[Example]:
    """Chats of two or three turns whose last one refers to those before. Of prompts that no training has, but
    for small talk."""
    rng, made = random.Random(SEED), list[Example]()
    tasks = [
        name
        for domain in mixer.DOMAINS
        for name in mixer.patterns(domain, False)
        if name.split("/")[1].startswith("follow_")
    ]
    while tasks and len(made) < count:
        example = mixer.make(rng, rng.choice(tasks))
        if example.domain == "chat" or mixer.split_of(example) == "test":
            made.append(example)
    return made


def long_chats(count: int) -> list[list[Example]]:
    """So many chats of ten questions each with changing topics, small talk among them."""
    rng = random.Random(SEED + 1)
    pools = {domain: singles(domain, False, 3 * count) for domain in mixer.DOMAINS}
    talk = [mixer.sample(rng, "chat") for _ in range(3 * count)]
    pools["chat"] = [
        example
        for pair in zip(pools["chat"], talk, strict=False)
        for example in pair
        if len(example.turns) == 1
    ]
    return [[rng.choice(pools[rng.choice(mixer.DOMAINS)]) for _ in range(TURNS)] for _ in range(count)]


def converse(model: Model, chats: Sequence[Sequence[Example]]) -> list[list[Answer]]:
    """The answers of each chat, turn by turn; the model reads what it answered before."""
    found = []
    for chat in chats:
        messages, given = Messages(), list[Answer]()
        for example in chat:
            messages.append({"role": "user", "content": example.turns[0][0]})
            given.append(model.answer(example, messages))
            messages.append({"role": "assistant", "content": given[-1].text})
        found.append(given)
    return found


def parses(text: str) -> bool:
    """Whether the code of an answer is Python."""
    fenced = _FENCE.search(text)
    try:
        ast.parse(fenced.group(1) if fenced else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def score(model: str, domain: str, kind: Kind, given: Sequence[Answer]) -> Score:
    """One row of the table."""
    count = max(1, len(given))
    code = (
        sum(parses(answer.text) for answer in given) / count
        if domain == "code" and kind != "follow-up"
        else None
    )
    right, ended = (
        sum(answer.right for answer in given) / count,
        sum(answer.ended for answer in given) / count,
    )
    return Score(
        model, domain, kind, len(given), right, ended, code, sum(answer.tokens for answer in given) / count
    )


def table(rows: Iterable[Score]) -> str:
    """The scores as Markdown: a line a domain, then the long chats."""
    found = {(row.domain, row.kind): row for row in rows}

    def cell(domain: str, kind: Kind) -> str:
        row = found.get((domain, kind))
        return f"{row.right:.0%} of {row.prompts}" if row and row.prompts else "–"

    lines = [
        (
            "| domain | right, test prompts | right, held-out patterns | right, follow-ups | answers that end"
            " | tokens an answer |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for domain in mixer.DOMAINS:
        row = found[domain, "test"]
        code = f" ({row.parses:.0%} parse)" if row.parses is not None else ""
        right = (cell(domain, "test") + code, cell(domain, "held-out"), cell(domain, "follow-up"))
        lines.append(f"| {domain} | {' | '.join(right)} | {row.ended:.0%} | {row.mean_tokens:.0f} |")
    if ("all", "turn 10") in found:
        first, last, alone = (cell("all", kind) for kind in ("turn 1", "turn 10", "turn 10 alone"))
        said = f"turn 1 {first}, turn {TURNS} {last}, the same prompts alone {alone}"
        lines += ["", f"Right in chats of {TURNS} turns with changing topics: {said}."]
    return "\n".join(lines)


def rounds(name: str, folder: Path, count: int, chats: int) -> Iterator[tuple[str, Kind, list[Answer]]]:
    """Each row's domain and kind with its answers."""
    model = Model(build_pair(str(folder), DRAFTER, Settings(device="cpu")), reading(f"bundled/{name}"))
    for held_out in (False, True):
        for domain in mixer.DOMAINS:
            examples = singles(domain, held_out, count) if mixer.patterns(domain, held_out) else []
            yield domain, "held-out" if held_out else "test", [model.answer(example) for example in examples]
    followed = [model.answer(example) for example in follow_ups(count)]
    for domain in mixer.DOMAINS:
        yield domain, "follow-up", [answer for answer in followed if answer.example.domain == domain]
    if chats:
        answered = converse(model, long_chats(chats))
        yield "all", "turn 1", [chat[0] for chat in answered]
        yield "all", "turn 10", [chat[-1] for chat in answered]
        yield "all", "turn 10 alone", [model.answer(chat[-1].example) for chat in answered]


def evaluate(
    name: str, folder: Path, out: Path, count: int = COUNT, chats: int = COUNT, samples: int = 2
) -> list[Score]:
    """Score one model and write `scores.csv`, `scores.json`, `answers.jsonl`; prints the table and some
    answers unedited."""
    began = time.monotonic()
    rows, kept = list[Score](), list[dict[str, object]]()
    for domain, kind, given in rounds(name, folder, count, chats):
        rows.append(score(name, domain, kind, given))
        typer.echo(f"{kind:14} {domain:8} {rows[-1].right:6.1%} of {len(given)}")
        for place, answer in enumerate(given):
            prompt = answer.example.turns[-1][0]
            line = {
                "kind": kind,
                "pattern": answer.example.pattern,
                "prompt": prompt,
                "answer": answer.text,
                "right": answer.right,
            }
            kept.append(line)
            if place < samples:
                typer.echo(
                    f"--- {answer.example.pattern} {'right' if answer.right else 'WRONG'}\n>"
                    f" {prompt}\n{answer.text}"
                )
    out.mkdir(parents=True, exist_ok=True)
    (out / "scores.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    pd.DataFrame(rows).to_csv(out / "scores.csv", index=False)
    (out / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    typer.echo(table(rows))
    typer.echo(f"{name}: scored in {(time.monotonic() - began) / 60:.1f} min")
    return rows


def main(
    models: Annotated[
        list[str] | None, typer.Argument(help="members of the family, all that are there by default")
    ] = None,
    count: Annotated[
        int, typer.Option(help="prompts a row; fewer for a quick look, which writes no card")
    ] = COUNT,
    chats: Annotated[int, typer.Option(help="long chats; 0 for none")] = COUNT,
    card: Annotated[bool, typer.Option(help="write the model card")] = True,
    runs: Annotated[Path, typer.Option(help="folder of the training runs")] = RUNS,
    folder: Annotated[
        Path | None,
        typer.Option(help="score this folder instead, as a model of the given name; writes no card"),
    ] = None,
) -> None:
    """Score bundled models."""
    from .card import write

    for name in models or [name for name in NAMES if (ASSETS / name / "config.json").exists()]:
        rows = evaluate(name, folder or ASSETS / name, runs / name / "scores", count, chats)
        if card and folder is None and count == chats == COUNT:
            write(name, rows, runs)
