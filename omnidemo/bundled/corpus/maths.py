"""Primary-school maths: word problems and bare sums with worked steps, ending in a last line `#### n`."""

from __future__ import annotations

import random
import re
from functools import partial
from string import Formatter

from . import lexicon
from . import maths_words as words
from .base import Example, Pattern
from .maths_steps import BARE, MORE_STEPS
from .maths_texts import ONE_STEP, Task

_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_THINGS = {"any": words.SMALL + words.SWEET_FOODS, "small": words.SMALL, "food": words.SWEET_FOODS}
_PEOPLE = ("n", "m", "k")
# Words that an answer repeats from its prompt; numbers are judged by the last line instead.
_FACT_SLOTS = (
    "n", "m", "k", "ts", "us", "t", "u", "boxes", "town", "what", "seats", "mover", "food", "dish", "ride", "whole", "group", "show",
)

# Slots that hold the word of another slot behind an article.
_SAME = {"at": "t", "At": "t", "au": "u", "Au": "u", "Awhole": "whole", "event": "show", "Event": "show"}


def _openings(ops: str) -> tuple[str, ...]:
    """The sentences that name the operations before they are done."""
    verbs = [_VERBS[op] for op in ops]
    for i in range(len(verbs) - 1, 0, -1):
        if verbs[i] == verbs[i - 1]:
            verbs[i] += " again"
    if len(verbs) == 1:
        return f"To answer this, we {verbs[0]}.", f"Here we need to {verbs[0]}.", f"This takes one step: we {verbs[0]}."
    if len(verbs) == 2:
        return (f"First we {verbs[0]}, then we {verbs[1]}.", f"This takes two steps: we {verbs[0]} and then {verbs[1]}.",
                f"We {verbs[0]} first and {verbs[1]} after that.")
    return (f"First we {verbs[0]}, then we {verbs[1]} and at last we {verbs[2]}.",
            f"This takes three steps: we {verbs[0]}, {verbs[1]} and then {verbs[2]}.")


def _slots(template: str) -> frozenset[str]:
    return frozenset(_SAME.get(name, name) for _, name, _, _ in Formatter().parse(template) if name)


def _facts_of(task: Task, prompt: str) -> tuple[str, ...]:
    """The word slots of this prompt that every shape of some part of the answer holds."""
    parts = (*task.steps, task.closings)
    sure = frozenset().union(*(frozenset.intersection(*map(_slots, shapes)) for shapes in parts))
    return tuple(slot for slot in _FACT_SLOTS if slot in sure and slot in _slots(prompt))


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _fill_people(rng: random.Random, slots: dict[str, object]) -> None:
    n, m, k = (lexicon.person(rng) for _ in _PEOPLE)
    while m.name == n.name:
        m = lexicon.person(rng)
    while k.name in (n.name, m.name):
        k = lexicon.person(rng)
    slots.update(n=n.name, he=n.he, his=n.his, He=_upper(n.he), m=m.name, k=k.name)


def _fill_things(rng: random.Random, slots: dict[str, object], table: tuple[str, ...]) -> None:
    t, u = rng.sample(table, 2)
    slots.update(t=t, ts=lexicon.plural(t), u=u, us=lexicon.plural(u))


def _fill_rest(rng: random.Random, slots: dict[str, object]) -> None:
    slots["box"], slots["boxes"] = rng.choice(words.CONTAINERS)
    slots["task"], slots["task2"] = rng.choice(words.TASKS)
    slots["does"], slots["do"], slots["what"] = rng.choice(words.HABITS)
    for slot, table in _TABLES.items():
        slots[slot] = rng.choice(table)
    event = str(slots["event"])
    slots["Event"], slots["show"] = _upper(event), event.removeprefix("a ")
    slots["Awhole"] = _upper(lexicon.a(str(slots["whole"])))
    slots["dish1"] = _upper(str(slots["dish"]))


_TABLES: dict[str, tuple[str, ...]] = {
    "place": tuple(lexicon.PLACES), "town": tuple(lexicon.TOWNS), "game": words.GAMES, "seats": words.SEATS, "mover": words.MOVERS,
    "dish": words.DISHES, "food": words.INGREDIENTS, "event": words.EVENTS, "ride": words.VEHICLES, "group": words.GROUPS,
    "whole": words.WHOLES, "topic": words.TOPICS,
}


def _articles(slots: dict[str, object]) -> None:
    at, au = lexicon.a(str(slots["t"])), lexicon.a(str(slots["u"]))
    slots.update(at=at, au=au, At=_upper(at), Au=_upper(au))


def _careless(rng: random.Random, text: str, lowerable: bool) -> str:
    """The prompt as a hasty user would type it; names keep their capitals because they are facts."""
    lower = text[0].lower() + text[1:] if lowerable else text
    form = rng.randrange(6)
    if form == 0:
        return lower.rstrip(" .?")
    if form == 1:
        return lower
    if form == 2:
        return f"Please help me with this: {text}"
    if form == 3:
        return f"Can you solve this? {text}"
    if form == 4:
        return f"{text} Please show the steps."
    return f"can you work this out: {lower}"


def _make(rng: random.Random, task: Task, prompt: str, name: str, facts: tuple[str, ...]) -> Example:
    slots: dict[str, object] = {}
    if not task.name.startswith("bare"):
        _fill_people(rng, slots)
        _fill_things(rng, slots, _THINGS[task.things])
        _fill_rest(rng, slots)
    slots.update(task.draw(rng))
    if "t" in slots:
        slots.setdefault("u", slots["t"])
        _articles(slots)
    asked = _upper(prompt.format_map(slots))
    if rng.random() < 0.15:
        # A capital first letter that belongs to a name stays.
        asked = _careless(rng, asked, not re.match(r"\{(n|m|k)\}", prompt))
    sentences = [] if task.name.startswith("bare") else [rng.choice(_openings(task.ops))]
    sentences += [_upper(rng.choice(shapes).format_map(slots)) for shapes in task.steps]
    sentences.append(rng.choice(task.closings).format_map(slots))
    answer = f"{' '.join(sentences)}\n#### {slots['z']}"
    found = tuple(dict.fromkeys(str(slots[slot]) for slot in facts))
    return Example("maths", name, ((asked, answer),), facts=found, number=str(slots["z"]))


def _patterns() -> dict[str, Pattern]:
    made: dict[str, Pattern] = {}
    for task in (*ONE_STEP, *MORE_STEPS, *BARE):
        for i, prompt in enumerate(task.prompts):
            name = f"maths/{task.name}/{i}"
            made[name] = partial(_make, task=task, prompt=prompt, name=name, facts=_facts_of(task, prompt))
    return made


PATTERNS: dict[str, Pattern] = _patterns()
