"""How chat is put together: tasks with wordings and answers, prompts typed with and without care, and offers."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

from . import chat_tables as t
from .lexicon import ANIMALS, a
from .story_tables import HERO_TRAITS

# Of the answers that may end in an offer, those that do: nobody wants one with each answer, and what cannot be foreseen teaches nothing.
OFFERED = 0.3
Slots = dict[str, str]
Draw = Callable[[random.Random], Slots]


class Piece(NamedTuple):
    """One question with its answer, and what a right answer contains."""

    asked: str
    answer: str
    facts: tuple[str, ...]


class Task(NamedTuple):
    """One thing to say and how to answer it; every answer fits every wording and contains every fact.

    `{x}` and the like stand for what `slots` draws. `offer` is the share of answers that end in an offer; `lead` says whether a
    few words may stand in front of the question; `typos` is off where each letter counts.
    """

    prompts: tuple[str, ...]
    answers: tuple[str, ...]
    facts: tuple[str, ...]
    slots: Draw = lambda rng: {}
    offer: float = 0.0
    lead: bool = False
    typos: bool = True


class Offer(NamedTuple):
    """Something that the model can do, as "tell you a joke", and the request that asks for it."""

    do: str
    request: str


def offered(rng: random.Random) -> Offer:
    roll = rng.random()
    if roll < 0.35:
        hero = a(f"{rng.choice(HERO_TRAITS)} {rng.choice(ANIMALS)}")
        return Offer(f"tell you a short story about {hero}", f"Tell me a short story about {hero}.")
    if roll < 0.5:
        job = rng.choice(t.PYTHON_JOBS)
        return Offer(f"write a Python function that {job}", f"Write a Python function that {job}.")
    if roll < 0.7:
        task = rng.choice(t.HOWTOS)
        return Offer(f"explain how to {task}", f"How do I {task}?")
    if roll < 0.82:
        task = f"{rng.randint(2, 60)} + {rng.randint(2, 39)}"
        return Offer(f"work out a small sum, such as {task}", f"What is {task}?")
    return Offer("tell you a joke", "Tell me a joke.")


def offer_text(rng: random.Random, answer: str) -> str:
    """An offer to stand after the answer: "But I can ..." only where something was refused."""
    do = offered(rng).do
    refused = re.search(r"\b(?:cannot|do not|have not|was not|not able|no|never)\b", answer) and not re.search(
        r"\bbut I\b(?! do| cannot)", answer
    )
    return rng.choice((f"I can {do}.", f"I can {do}, if you like.", f"But I can {do}." if refused else f"I can {do}."))


# The patterns match words as they are typed with care.
_SHORTER = tuple(
    (re.compile(pattern), shorter)
    for pattern, shorter in (
        (r"\bWhat is\b", ("What's", "Whats")),
        (r"\bwhat is\b", ("what's", "whats")),
        (r"\bWho is\b", ("Who's", "Whos")),
        (r"\bHow is\b", ("How's", "Hows")),
        (r"\b[Tt]hat is\b", ("That's", "Thats")),
        (r"\bYou are\b", ("You're", "Youre", "Ur")),
        (r"\byou are\b", ("you're", "youre", "ur")),
        (r"\bare you\b", ("r u",)),
        (r"\byou\b", ("u",)),
        (r"\b[Pp]lease\b", ("pls", "plz")),
        (r"\bI am\b", ("I'm", "Im")),
        (r"\b([Dd])o not\b", (r"\1on't", r"\1ont")),
        (r"\bcannot\b", ("can't", "cant")),
        (r"\bbecause\b", ("cause",)),
    )
)


def _shortened(rng: random.Random, template: str) -> str:
    for pattern, shorter in rng.sample(_SHORTER, len(_SHORTER)):
        if pattern.search(template):
            return pattern.sub(rng.choice(shorter), template, count=1)
    return template


def _mistyped(rng: random.Random, template: str) -> str:
    """Two letters changed places in one longer word, or one is missing; what stands in braces is left alone."""
    words = list(re.finditer(r"(?<![{\w])[A-Za-z]{5,}(?![}\w])", template))
    if not words:
        return template
    at = rng.choice(words).start() + rng.randint(1, 3)
    swapped = template[at + 1] + template[at] if rng.random() < 0.5 else template[at + 1]
    return template[:at] + swapped + template[at + 2 :]


def typed(rng: random.Random, template: str, slots: Slots, typos: bool = True) -> str:
    """The question as a visitor types it: half with care, else without capitals, signs or all letters."""
    roll = rng.random()
    if typos and rng.random() < 0.14:
        template = _shortened(rng, template)
    elif typos and rng.random() < 0.04:
        template = _mistyped(rng, template)
    if roll < 0.5:
        return fill(template, slots)
    bare = template.rstrip("?.! ") or template
    if roll < 0.62:
        return fill(bare, slots)
    if roll < 0.7:
        low = template if re.match(r"I\b|\{", template) else template[0].lower() + template[1:]
        return fill(low, slots)
    return fill((bare if roll < 0.93 else template).lower(), {name: word.lower() for name, word in slots.items()})


def fill(template: str, slots: Slots) -> str:
    for name, word in slots.items():
        template = template.replace(f"{{{name}}}", word)
    return template


def upper_first(text: str) -> str:
    return text[0].upper() + text[1:]


def piece(rng: random.Random, task: Task, prompt: str) -> Piece:
    slots = task.slots(rng)
    asked = typed(rng, prompt, slots, task.typos)
    if task.lead and rng.random() < 0.1:
        asked = rng.choice(t.LEADS) + (asked if re.match(r"I\b", asked) else asked[0].lower() + asked[1:])
    asked = asked if asked[0].islower() else upper_first(asked)
    answer = upper_first(fill(rng.choice(task.answers), slots))
    if rng.random() < OFFERED * task.offer:
        answer += f" {offer_text(rng, answer)}"
    return Piece(asked, answer, tuple(fill(fact, slots) for fact in task.facts))


def is_trained(prompt: str) -> bool:
    """Whether the prompt belongs to training by the mixer's rule, so that it may stand in a longer chat."""
    words = " ".join(re.sub(r"[^a-z0-9]+", " ", prompt.lower()).split())
    return zlib.crc32(words.encode()) % 100 > 2


def choose(**tables: tuple[str, ...]) -> Draw:
    """A draw of one word from each table."""
    return lambda rng: {name: rng.choice(words) for name, words in tables.items()}
