"""Whether a conversation harms the answers: each prompt asked in a fresh chat and as a turn of a chat that
changes its topic.

    python -m lab conversations bundled/large --reading 1 --reading 2 --reading 0

prints one row for each number of turns that the target is given (0: all that fit); without `--reading`, what
the catalogue says of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from lab.bundled import write_prompts
from omnidemo.config import EMBEDDED_TARGET, Settings
from omnidemo.models.catalogue import Reading, reading
from omnidemo.serving.pair_loading import build_pair

from .corpus import mixer
from .corpus.base import Example
from .evaluate import Model, converse

TURNS, CONVERSATIONS, SEED = 10, 30, 7
LONGEST = 300  # tokens of an answer
EXAMPLES, TALK = 0.2, 0.15  # shares of a conversation's turns: the page's examples, small talk
SMALL_TALK = [
    Example("chat", "chat/small", ((prompt, ""),), facts)
    for prompt, facts in (
        ("hello", ()),
        ("Good morning!", ()),
        ("Who are you?", ("OmniDemo",)),
        ("What can you do?", ("small Python functions",)),
        ("How are you?", ()),
        ("Thanks!", ("welcome",)),
        ("Thank you!", ("welcome",)),
    )
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Turns asked; right in a fresh chat; of those, right in the conversation; and right there though wrong
    before."""

    asked: int
    fresh: int
    kept: int
    gained: int

    def __str__(self) -> str:
        share = f" ({self.kept / self.fresh:.1%})" if self.fresh else ""
        return (
            f"{self.asked} turns, {self.fresh} right in a fresh chat, {self.kept} of them in the"
            f" conversation{share}, {self.gained} gained"
        )


def conversations(count: int = CONVERSATIONS, turns: int = TURNS, seed: int = SEED) -> list[list[Example]]:
    """Chats of test prompts, the page's examples and small talk; no topic twice in a row, no prompt twice in
    a chat."""
    rng = random.Random(seed)
    names = (*mixer.DOMAINS, "examples")
    committed = {
        name: [*map(write_prompts.from_record, write_prompts.read(write_prompts.FOLDER / f"{name}.jsonl"))]
        for name in names
    }
    made = []
    for _ in range(count):
        chat: list[Example] = []
        while len(chat) < turns:
            kind = rng.random()
            talk = SMALL_TALK if kind < EXAMPLES + TALK else committed[rng.choice(mixer.DOMAINS)]
            example = rng.choice(committed["examples"] if kind < EXAMPLES else talk)
            if not chat or (example.domain != chat[-1].domain and example not in chat):
                chat.append(example)
        made.append(chat)
    return made


def compare(chats: Sequence[Sequence[Example]], fresh: Model, talk: Model) -> Outcome:
    """Judge every turn twice: answered alone by `fresh`, and within its chat by `talk`."""
    known: dict[str, bool] = {}
    judged = []  # (right alone, right in its chat)
    for given in converse(talk, chats):
        for answer in given:
            prompt = answer.example.turns[0][0]
            if prompt not in known:
                known[prompt] = fresh.answer(answer.example).right
            judged.append((known[prompt], answer.right))
    fresh_right, kept = sum(alone for alone, _ in judged), sum(alone and now for alone, now in judged)
    return Outcome(len(judged), fresh_right, kept, sum(now for _, now in judged) - kept)


def main(
    target: Annotated[str, typer.Argument(help="bundled name, Hub id or folder")] = EMBEDDED_TARGET,
    turns: Annotated[
        list[int] | None, typer.Option("--reading", help="turns that the target is given; 0: all that fit")
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="and so many tokens at most")] = None,
    count: Annotated[int, typer.Option(help="conversations")] = CONVERSATIONS,
) -> None:
    """Score a target in conversations against fresh chats."""
    pair = build_pair(target, "bundled/drafter", Settings(device="cpu"))
    wanted = [Reading(number or None, tokens) for number in turns] if turns else [reading(target)]
    chats = conversations(count)
    for limits in wanted:
        shown = f"{limits.turns or 'all'} turns, {limits.tokens or 'all'} tokens"
        typer.echo(
            f"{target}, reads {shown}:"
            f" {compare(chats, Model(pair, Reading(1), LONGEST), Model(pair, limits, LONGEST))}"
        )
