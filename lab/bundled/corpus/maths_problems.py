"""Word problems and bare sums with worked steps, ending in a sentence whose last number is the result."""

from __future__ import annotations

import random
import re
from functools import partial
from string import Formatter
from typing import NamedTuple

from . import lexicon
from . import maths_speech as speech
from . import maths_words as words
from .base import Example, Pattern
from .maths_more_one import MORE_ONE_STEP
from .maths_more_steps import MORE_OF_STEPS
from .maths_steps import BARE, MORE_STEPS
from .maths_texts import ONE_STEP, Task

_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_THINGS = {"any": words.SMALL + words.SWEET_FOODS, "small": words.SMALL, "food": words.SWEET_FOODS}
_PEOPLE = ("n", "m", "k")
# Words that an answer repeats from its prompt; numbers are judged by the last one of the answer instead.
_FACT_SLOTS = (
    "n",
    "m",
    "k",
    "ts",
    "us",
    "t",
    "u",
    "boxes",
    "town",
    "what",
    "seats",
    "mover",
    "food",
    "dish",
    "ride",
    "whole",
    "group",
    "show",
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
        return (
            f"First we {verbs[0]}, then we {verbs[1]}.",
            f"This takes two steps: we {verbs[0]} and then {verbs[1]}.",
            f"We {verbs[0]} first and {verbs[1]} after that.",
        )
    return (
        f"First we {verbs[0]}, then we {verbs[1]} and at last we {verbs[2]}.",
        f"This takes three steps: we {verbs[0]}, {verbs[1]} and then {verbs[2]}.",
    )


def _slots(template: str) -> frozenset[str]:
    return frozenset(_SAME.get(name, name) for _, name, _, _ in Formatter().parse(template) if name)


def _facts_of(task: Task, prompt: str) -> tuple[str, ...]:
    """The word slots of this prompt that every shape of some part of the answer holds."""
    parts = (*task.steps, task.closings)
    sure = frozenset().union(*(frozenset.intersection(*map(_slots, shapes)) for shapes in parts))
    return tuple(slot for slot in _FACT_SLOTS if slot in sure and slot in _slots(prompt))


def _fill_people(rng: random.Random, slots: dict[str, object]) -> None:
    n, m, k = (lexicon.person(rng) for _ in _PEOPLE)
    while m.name == n.name:
        m = lexicon.person(rng)
    while k.name in (n.name, m.name):
        k = lexicon.person(rng)
    slots.update(n=n.name, he=n.he, his=n.his, He=speech.upper(n.he), m=m.name, k=k.name)


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
    slots["Event"], slots["show"] = speech.upper(event), event.removeprefix("a ")
    slots["Awhole"] = speech.upper(lexicon.a(str(slots["whole"])))
    slots["dish1"] = speech.upper(str(slots["dish"]))


_TABLES: dict[str, tuple[str, ...]] = {
    "place": tuple(lexicon.PLACES),
    "town": tuple(lexicon.TOWNS),
    "game": words.GAMES,
    "seats": words.SEATS,
    "mover": words.MOVERS,
    "dish": words.DISHES,
    "food": words.INGREDIENTS,
    "event": words.EVENTS,
    "ride": words.VEHICLES,
    "group": words.GROUPS,
    "whole": words.WHOLES,
    "topic": words.TOPICS,
}


def _articles(slots: dict[str, object]) -> None:
    at, au = lexicon.a(str(slots["t"])), lexicon.a(str(slots["u"]))
    slots.update(at=at, au=au, At=speech.upper(at), Au=speech.upper(au))


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
    """A phrasing of the first kind: a name in it, and every shape of the steps fits."""
    values: dict[str, object] = {}
    if not task.name.startswith("bare"):
        _fill_people(rng, values)
        _fill_things(rng, values, _THINGS[task.things])
        _fill_rest(rng, values)
    values.update(task.draw(rng))
    if "t" in values:
        values.setdefault("u", values["t"])
        _articles(values)
    asked = speech.upper(prompt.format_map(values))
    if rng.random() < 0.15:
        # A capital first letter that belongs to a name stays.
        asked = _careless(rng, asked, not re.match(r"\{(n|m|k)\}", prompt))
    sentences = [] if task.name.startswith("bare") else [rng.choice(_openings(task.ops))]
    sentences += [_said(rng, shapes, values) for shapes in (*task.steps, task.closings)]
    found = tuple(dict.fromkeys(str(values[slot]) for slot in facts))
    return Example("maths", name, ((asked, " ".join(sentences)),), facts=found, number=str(values["z"]))


def _said(rng: random.Random, shapes: tuple[str, ...], values: dict[str, object], person: str = "name") -> str:
    return speech.upper(speech.verbs(rng.choice(shapes), person).format_map(values))


def _fill_person(values: dict[str, object], person: str) -> None:
    """Put the one whom the prompt is about into its slots: a name, "I" or "you"."""
    if person == "I":
        values.update(n="I", he="I", He="I", his="my", no="me", ns="my", does=values["do"])
    elif person == "you":
        values.update(n="you", he="you", He="You", his="your", no="you", ns="your", does=values["do"])
    else:
        values.update(no=values["n"], ns=f"{values['n']}'s")


def _spell(rng: random.Random, text: str, values: dict[str, object]) -> dict[str, object]:
    """The slots with some of the numbers of the prompt in words."""
    said = dict(values)
    every = rng.random() < 0.5
    for slot in "abcd":
        number = values.get(slot)
        if isinstance(number, int) and number <= 100 and (every or rng.random() < 0.5):
            dozen = number == 12 and re.search(rf"(have|has|had|are|buys?|gets?|bakes?) \{{{slot}\}} \{{ts\}}", text)
            said[slot] = "a dozen" if dozen else speech.spelt(number)
    return said


class Worded(NamedTuple):
    """An example, the sentences of its answer, and what a follow-up needs: the slots, and who is named (nobody: "")."""

    example: Example
    sentences: list[str]
    values: dict[str, object]
    person: str


def worded(rng: random.Random, task: Task, prompt: str, name: str, tidy: bool = False) -> Worded:
    """A phrasing that may be said by anybody; a tidy one is about somebody with a name, in neat writing."""
    values: dict[str, object] = {}
    _fill_people(rng, values)
    _fill_things(rng, values, _THINGS[task.things])
    _fill_rest(rng, values)
    values.update(task.draw(rng))
    values.setdefault("u", values["t"])
    _articles(values)
    text = speech.choose(rng, prompt.removeprefix(speech.APART))
    said = speech.slots(text)
    told = said - {"n", "m", "k", "town"} if prompt.startswith(speech.APART) else said
    person = rng.choice(("name", "name", "name", "I", "you")) if "<" in text and "n" in said and not tidy else "name"
    third = person == "name"
    _fill_person(values, person)
    asked = speech.verbs(text, person)
    asked = asked.format_map(_spell(rng, asked, values) if rng.random() < 0.12 and not tidy else values)
    asked = speech.sentences(speech.upper(asked))
    if rng.random() < 0.06 and not tidy and asked.endswith((".", "?")):
        asked = f"{rng.choice(speech.IDLE)} {asked}"
    if rng.random() < 0.25 and not tidy:
        # Without a name there is no capital that the answer must repeat.
        asked = speech.careless(rng, asked, not said & {"n", "m", "k", "town"} or (person != "name" and not said & {"m", "k", "town"}))
    answered = person if third else "you"
    _fill_person(values, answered)
    sentences = []
    for i, shapes in enumerate(task.steps):
        sentences.append(_said(rng, speech.fitting(shapes, told, not third) or speech.plain(shapes, i == 0), values, answered))
    closings = speech.fitting(task.closings, told, not third) or speech.plain_closings(speech.unit(task.closings))
    sentences.append(_said(rng, closings, values, answered))
    answer = " ".join([rng.choice(_openings(task.ops)), *sentences])
    facts = tuple(dict.fromkeys(str(values[slot]) for slot in _FACT_SLOTS if slot in said and str(values[slot]) in answer))
    if not third:
        facts = tuple(fact for fact in facts if fact != "you")
    example = Example("maths", name, ((asked, answer),), facts=facts, number=str(values["z"]))
    return Worded(example, sentences, values, person if "n" in said else "")


def _worded(rng: random.Random, task: Task, prompt: str, name: str) -> Example:
    return worded(rng, task, prompt, name).example


TASKS: dict[str, Task] = {task.name: task for task in (*ONE_STEP, *MORE_STEPS, *BARE)}


def _patterns() -> dict[str, Pattern]:
    made: dict[str, Pattern] = {}
    for task in TASKS.values():
        for i, prompt in enumerate(task.prompts):
            name = f"maths/{task.name}/{i}"
            made[name] = partial(_make, task=task, prompt=prompt, name=name, facts=_facts_of(task, prompt))
        for i, prompt in enumerate(MORE.get(task.name, ()), len(task.prompts)):
            name = f"maths/{task.name}/{i}"
            made[name] = partial(_worded, task=task, prompt=prompt, name=name)
    return made


# Further phrasings by task; they follow the ones that stand beside the steps.
MORE: dict[str, tuple[str, ...]] = {**MORE_ONE_STEP, **MORE_OF_STEPS}
PATTERNS: dict[str, Pattern] = _patterns()
