"""Domain `code`: small Python functions with a docstring, each with tests that a reference computes."""

from __future__ import annotations

import random
from functools import partial

from . import code_edits
from . import code_tasks_lists as lists
from . import code_tasks_numbers as numbers
from . import code_tasks_words as words
from .base import Example, Pattern
from .code_tasks_numbers import Slots, Task
from .lexicon import a, plural

GROUPS: dict[str, tuple[Task, ...]] = {
    "number": numbers.ARITHMETIC,
    "check": numbers.PREDICATES,
    "convert": numbers.CONVERSIONS,
    "text": numbers.STRINGS,
    "numbers": lists.NUMBER_LISTS,
    "items": lists.ITEM_LISTS,
    "words": lists.WORD_LISTS,
    "dict": lists.DICTIONARIES,
    "loop": lists.LOOPS,
}
# Phrasing -> (template, whether the prompt gives the function's name). {does} is the task with "adds", {do} with "add".
PHRASINGS: dict[str, tuple[str, bool]] = {
    "plain": ("Write a Python function that {does}.", False),
    "called": ("Write a function called {name} that {does}.", True),
    "named": ("Write a Python function named {name} that takes {inputs} and returns {doc}.", True),
    "need": ("I need a Python function to {do}.", False),
    "given": ("Given {inputs}, write a Python function that returns {doc}.", False),
    "signature": ("Write the Python function {name}({params}). It should {do}.", True),
    "how": ("How do I {do} in Python?", False),
    "finish": ('Finish this Python function.\ndef {name}({params}):\n    """Return {doc}."""', True),
}
_POOLS = {"x": words.NUMBER_NOUNS, "y": words.NUMBER_NOUNS, "w": words.TEXT_NOUNS, "v": words.TEXT_NOUNS, "i": words.ITEM_NOUNS}
# What people say most when they do not care about the noun.
_COMMON = {"x": ("number",), "w": ("word", "string", "text"), "i": ("item",)}
_PLURALS = {noun: plural(noun) for pool in (*_POOLS.values(), *_COMMON.values()) for noun in pool}
_ARTICLES = {noun: a(noun) for noun in _PLURALS}
_SEPARATORS = (
    ("a comma", ","),
    ("a space", " "),
    ("a dash", "-"),
    ("a colon", ":"),
    ("a dot", "."),
    ("a slash", "/"),
    ("a plus sign", "+"),
    ("an underscore", "_"),
)
_NTH = (("second", 2), ("third", 3), ("fourth", 4), ("fifth", 5), ("sixth", 6))
_CONSTANTS = ("k", "j", "s", "t", "c", "d", "yes", "no", "hello")


def _third(verb: str) -> str:
    """The verb with he, she or it."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")


def _draw(task: Task, rng: random.Random) -> Slots:
    """The nouns and constants of one example."""
    slots: Slots = {}
    for token in task.spec.split():
        key, _, bounds = token.partition(":")
        if bounds:
            low, _, high = bounds.partition(":")
            slots[key] = rng.randint(int(low), int(high))
        elif key in _POOLS:
            noun = rng.choice(_COMMON[key] if key in _COMMON and rng.random() < 0.28 else _POOLS[key])
            while noun in slots.values():
                noun = rng.choice(_POOLS[key])
            several = _PLURALS[noun]
            slots.update({key: noun, key + "s": several, "a_" + key: _ARTICLES[noun], "the_" + key: "the " + noun})
            slots["list_" + key] = "a list" if noun == "item" else "a list of " + several
        elif key in "st":
            literal = rng.choice(words.LITERALS)
            while literal in slots.values():
                literal = rng.choice(words.LITERALS)
            slots[key] = literal
        elif key in "cd":
            slots[key] = rng.choice([letter for letter in words.LETTERS if letter not in slots.values()])
    if task.options:
        slots.update(rng.choice(task.options))
    if task.name == "join":
        slots["sep"], slots["join"] = rng.choice(_SEPARATORS)
    if task.name == "every":
        slots["nth"], slots["k"] = rng.choice(_NTH)
    return slots


def _given_name(rng: random.Random, derived: str, params: str) -> str:
    """A function name for the prompt to give: one to three words, or the regular one."""
    while True:
        draw = rng.random()
        if draw < 0.2:
            return derived
        noun = rng.choice(words.NAME_NOUNS)
        if draw < 0.3:
            name = noun
        elif draw < 0.65:
            name = f"{rng.choice(words.NAME_VERBS)}_{noun}"
        elif draw < 0.8:
            name = f"{rng.choice(words.NAME_ADJECTIVES)}_{noun}"
        else:
            name = f"{rng.choice(words.NAME_VERBS)}_{rng.choice(words.NAME_ADJECTIVES)}_{noun}"
        if name not in params:
            return name


def _careless(prompt: str, rng: random.Random) -> str:
    """The prompt as somebody in a hurry would type it."""
    lowered = prompt if prompt.startswith("I ") else prompt[0].lower() + prompt[1:]
    form = rng.randrange(4)
    if "\n" in prompt:
        return f"Please {lowered}" if form < 2 else lowered
    if form == 0:
        return lowered[:-1]
    if form == 1:
        return lowered
    if not prompt.startswith("Write"):
        return f"Hi, {lowered}" if form == 2 else prompt[:-1]
    if form == 2 or ". " in prompt:
        return f"Please {lowered}"
    return f"Can you {lowered[:-1]}?"


def _make(name: str, task: Task, template: str, gives_name: bool, rng: random.Random) -> Example:
    slots = _draw(task, rng)
    do, doc, params = (part.format_map(slots) for part in (task.say, task.doc, task.params))
    derived = task.function.format_map(slots)
    function = _given_name(rng, derived, params) if gives_name else derived
    verb, _, rest = do.partition(" ")
    prompt = template.format(
        does=f"{_third(verb)} {rest}", do=do, doc=doc, name=function, params=params, inputs=task.inputs.format_map(slots)
    )
    if task.hint:
        head, newline, tail = prompt.partition("\n")
        prompt = f"{head} {task.hint}{newline}{tail}"
    if rng.random() < 0.15:
        prompt = _careless(prompt, rng)
    body = "\n".join("    " + line for line in task.body.format_map(slots).split("\n"))
    answer = f'def {function}({params}):\n    """Return {doc}."""\n{body}'
    tests: dict[str, None] = {}
    for attempt in range(24):
        if attempt >= 4 and len(tests) >= 2:
            break
        arguments = task.arguments(rng, slots)
        call = ", ".join(map(repr, arguments))
        tests[f"assert {function}({call}) == {task.reference(slots, *arguments)!r}"] = None
    constants = [str(slots[key]) for key in _CONSTANTS if key in slots]
    facts = [function] * gives_name + [text for text in constants if text in prompt and text in answer]
    return Example("code", name, ((prompt, answer),), tuple(dict.fromkeys(facts)), tests=tuple(tests))


def _patterns() -> dict[str, Pattern]:
    patterns: dict[str, Pattern] = {}
    for group, tasks in GROUPS.items():
        for task in tasks:
            for variant, (template, gives_name) in PHRASINGS.items():
                name = f"code/{group}_{task.name}/{variant}"
                patterns[name] = partial(_make, name, task, template, gives_name)
    return patterns


PATTERNS: dict[str, Pattern] = {**_patterns(), **code_edits.PATTERNS}
