"""The chat domain: small talk, everyday facts, friendly honest answers to what the model cannot know, and longer conversations."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from .base import Example, Pattern
from .chat_demo import DEMO, FUN
from .chat_facts import FACTS
from .chat_follow import Talk, chains, follow, follow_ups
from .chat_refusals import CLOSED, OUTSIDE
from .chat_style import Piece, Task, piece
from .chat_talk import GREETINGS, IDENTITY, MOODS, PERSONAL

TASKS: dict[str, Task] = {
    **GREETINGS, **IDENTITY, **MOODS, **PERSONAL, **DEMO, **FUN, **FACTS, **CLOSED,
    **{f"out_{name}": task for name, task in OUTSIDE.items()},
}  # fmt: skip
# What a longer chat may end in: the things that a visitor asks again and again between others.
_ENDS: dict[str, tuple[str, ...]] = {
    "who": ("who", "robot", "made", "size", "where"),
    "can": ("can", "example"),
    "thanks": ("thanks", "bye"),
    "again": ("greet", "how_are", "test"),
    "mood": tuple(MOODS),
    "personal": tuple(PERSONAL),
    "fun": tuple(FUN),
    "demo": tuple(DEMO),
    "fact": tuple(FACTS),
    "facts": tuple(FACTS),
    "out": tuple(f"out_{name}" for name in OUTSIDE),
    "outs": tuple(f"out_{name}" for name in OUTSIDE),
    "closed": tuple(CLOSED),
}


def _chat(rng: random.Random, *, pattern: str, make: Callable[[random.Random], list[Piece]]) -> Example:
    pieces = make(rng)
    return Example("chat", pattern, tuple((asked, answer) for asked, answer, _ in pieces), facts=pieces[-1].facts)


def _patterns() -> dict[str, Pattern]:
    makers: dict[str, Callable[[random.Random], list[Piece]]] = {}
    for name, task in TASKS.items():
        for i, prompt in enumerate(task.prompts):
            makers[f"{name}/{i}"] = partial(lambda rng, task, prompt: [piece(rng, task, prompt)], task=task, prompt=prompt)
    talk = Talk(TASKS)
    for name, (wordings, make) in follow_ups(talk, tuple(FACTS)).items():
        for i, wording in enumerate(wordings):
            makers[f"follow_{name}/{i}"] = partial(follow, make=make, wording=wording)
    makers.update(chains(talk, _ENDS))
    return {f"chat/{name}": partial(_chat, pattern=f"chat/{name}", make=make) for name, make in makers.items()}


PATTERNS: dict[str, Pattern] = _patterns()
