"""Whether a conversation harms the answers: each prompt asked in a fresh chat and as a turn of a chat that changes its topic.

    python -m omnidemo.bundled.conversations bundled/large --reading 1 --reading 2 --reading 0

prints one row for each number of turns that the target is given (0: all that fit); without `--reading`, what the catalogue says of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from omnidemo.bundled import write_prompts
from omnidemo.config import TARGET, Settings
from omnidemo.models.catalogue import Reading, reading
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import Message, newest
from omnidemo.serving.pair_loading import build_pair

from .corpus import mixer

TURNS, CONVERSATIONS, SEED = 10, 30, 7
LONGEST = 300  # tokens of an answer
EXAMPLES, TALK = 0.2, 0.15  # shares of a conversation's turns: the page's examples, small talk
SMALL_TALK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("hello", ()),
    ("Good morning!", ()),
    ("Who are you?", ("OmniDemo",)),
    ("What can you do?", ("small Python functions",)),
    ("How are you?", ()),
    ("Thanks!", ("welcome",)),
    ("Thank you!", ("welcome",)),
)
Record = dict[str, object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Turns asked; right in a fresh chat; of those, right in the conversation; and right there though wrong before."""

    asked: int
    fresh: int
    kept: int
    gained: int

    def __str__(self) -> str:
        share = f" ({self.kept / self.fresh:.1%})" if self.fresh else ""
        return (
            f"{self.asked} turns, {self.fresh} right in a fresh chat, {self.kept} of them in the conversation{share}, {self.gained} gained"
        )


def small_talk() -> list[Record]:
    empty: Record = {"domain": "chat", "pattern": "chat/small", "answer": "", "number": None, "tests": []}
    return [{"id": f"talk-{at}", "prompt": prompt, "facts": list(facts), **empty} for at, (prompt, facts) in enumerate(SMALL_TALK)]


def conversations(count: int = CONVERSATIONS, turns: int = TURNS, seed: int = SEED) -> list[list[Record]]:
    """Chats of test prompts, the page's examples and small talk; no topic twice in a row, no prompt twice in a chat."""
    rng = random.Random(seed)
    tests = {domain: write_prompts.read(write_prompts.FOLDER / f"{domain}.jsonl") for domain in mixer.DOMAINS}
    examples, talk = write_prompts.read(write_prompts.FOLDER / "examples.jsonl"), small_talk()

    def draw(before: Sequence[Record]) -> Record:
        while True:
            kind = rng.random()
            source = examples if kind < EXAMPLES else talk if kind < EXAMPLES + TALK else tests[rng.choice(mixer.DOMAINS)]
            record = rng.choice(source)
            if not before or (record["domain"] != before[-1]["domain"] and record not in before):
                return record

    made = []
    for _ in range(count):
        chat: list[Record] = []
        while len(chat) < turns:
            chat.append(draw(chat))
        made.append(chat)
    return made


def answers(chat: Sequence[Record], answer: Callable[[list[Message]], str]) -> Iterator[tuple[Record, str]]:
    """The turns of one chat, each with its answer; every answer is part of what the next one may read."""
    messages: list[Message] = []
    for record in chat:
        messages.append({"role": "user", "content": str(record["prompt"])})
        text = answer(messages)
        messages.append({"role": "assistant", "content": text})
        yield record, text


def compare(chats: Sequence[Sequence[Record]], fresh: Callable[[list[Message]], str], talk: Callable[[list[Message]], str]) -> Outcome:
    """Judge every turn twice: answered alone by `fresh`, and within its chat by `talk`."""
    known: dict[str, bool] = {}
    asked = right = kept = gained = 0
    for chat in chats:
        for record, text in answers(chat, talk):
            example = write_prompts.from_record(record)
            key = str(record["prompt"])
            if key not in known:
                known[key] = mixer.check(example, fresh([{"role": "user", "content": key}]))
            now = mixer.check(example, text)
            asked, right, kept, gained = asked + 1, right + known[key], kept + (known[key] and now), gained + (now and not known[key])
    return Outcome(asked, right, kept, gained)


def reader(pair: Pair, limits: Reading) -> Callable[[list[Message]], str]:
    """Greedy answers of the target alone to what it is given of a chat."""

    def answer(messages: list[Message]) -> str:
        given = newest(pair, messages, limits, LONGEST)
        return pair.generate(given, method="autoregressive", max_new_tokens=LONGEST, learn=False).text

    return answer


def main(
    target: Annotated[str, typer.Argument(help="bundled name, Hub id or folder")] = TARGET,
    turns: Annotated[list[int] | None, typer.Option("--reading", help="turns that the target is given; 0: all that fit")] = None,
    tokens: Annotated[int | None, typer.Option(help="and so many tokens at most")] = None,
    count: Annotated[int, typer.Option(help="conversations")] = CONVERSATIONS,
) -> None:
    """Score a target in conversations against fresh chats."""
    pair = build_pair(target, "bundled/drafter", Settings(device="cpu"))
    wanted = [Reading(number or None, tokens) for number in turns] if turns else [reading(target)]
    chats = conversations(count)
    for limits in wanted:
        shown = f"{limits.turns or 'all'} turns, {limits.tokens or 'all'} tokens"
        typer.echo(f"{target}, reads {shown}: {compare(chats, reader(pair, Reading(1)), reader(pair, limits))}")


if __name__ == "__main__":
    typer.run(main)
