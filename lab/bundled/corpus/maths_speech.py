"""How one text is said in several ways: alternatives, the person who speaks, number words, plain steps, careless typing.

`[a|b|]` is one of its parts, `<have>` is "has" for a third person and "have" for I and you.
A text that begins with `~` is told apart from the steps of its task: its people do something else, so the steps name nobody.
"""

from __future__ import annotations

import random
import re
from string import Formatter

APART = "~"
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_VERB = re.compile(r"<(\w+)>")
_SUM = re.compile(r"(\{\w\}|\d+) ([-+*/]) (\{\w\}|\d+) = \{\w\}")
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "be": "is", "wash": "washes", "carry": "carries", "try": "tries"}
_UNITS = re.compile(r"\{z\} (?:more )?(square metres|\{\w+\}|[a-z]+)")
# Slots that hold the word of another slot behind an article.
SAME = {
    "at": "t", "At": "t", "au": "u", "Au": "u", "Awhole": "whole", "event": "show", "Event": "show", "box": "boxes", "no": "n", "ns": "n",
    "he": "n", "his": "n", "He": "n", "dish1": "dish", "t": "ts", "u": "us", "do": "what", "does": "what", "task2": "task",
}  # fmt: skip
_ALWAYS = frozenset("abcdrsz")

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

IDLE = (
    "It is a sunny day.", "It is raining outside.", "School is over for today.", "The sun is shining.", "Today is a holiday.",
    "It is a windy afternoon.", "Dinner is nearly ready.", "The dog is asleep.", "Everybody is in a good mood.", "It is almost noon.",
)  # fmt: skip
_BEFORE = (
    "Please help me with this: ", "Can you solve this? ", "can you work this out: ", "Hi! ", "Hello, I have a question. ", "Here is one: ",
    "My homework says: ", "Quick question: ", "Next problem: ", "I am stuck. ", "Could you help? ", "Try this: ", "And this one? ",
    "Question: ", "Problem: ", "A riddle for you: ",
)  # fmt: skip
_AFTER = (
    " Please show the steps.",
    " Please explain.",
    " Show me how.",
    " Thanks!",
    " Do you know?",
    " Tell me, please.",
    " Step by step, please.",
)


def upper(text: str) -> str:
    return text[0].upper() + text[1:]


def spelt(number: int) -> str:
    """A number from 0 to 100 in words."""
    if number < 20:
        return _ONES[number]
    if number == 100:
        return "one hundred"
    tens, ones = divmod(number, 10)
    return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")


def choose(rng: random.Random, text: str) -> str:
    """The text with one part of every `[a|b]`, the innermost first."""
    while match := _CHOICE.search(text):
        text = text[: match.start()] + rng.choice(match[1].split("|")) + text[match.end() :]
    # An empty part leaves its blank behind.
    return re.sub(r" +(?=[ .,?])", "", text)


def choices(text: str) -> list[str]:
    """Every text that `choose` can make."""
    if not (match := _CHOICE.search(text)):
        return [text]
    return [made for part in match[1].split("|") for made in choices(text[: match.start()] + part + text[match.end() :])]


def verbs(text: str, person: str) -> str:
    """The text with its `<verb>`s in the form for "I", "you" or a name."""

    def form(match: re.Match[str]) -> str:
        verb = match[1]
        if person in ("I", "you"):
            return {"I": "am", "you": "are"}[person] if verb == "be" else verb
        return _IRREGULAR.get(verb) or verb + ("es" if verb.endswith(("sh", "ch", "ss", "x")) else "s")

    return _VERB.sub(form, text)


def sentences(text: str) -> str:
    """The text with a capital at the beginning of each sentence."""
    return re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def slots(template: str) -> frozenset[str]:
    """The slots of a template, those of one word as one."""
    found = {SAME.get(name, name) for _, name, _, _ in Formatter().parse(template) if name}
    return frozenset(SAME.get(name, name) for name in found)


def unit(closings: tuple[str, ...]) -> str:
    """What the result counts, by the closing sentences."""
    return next((match[1] for text in closings if (match := _UNITS.search(text)) and match[1] not in ("left", "in")), "")


def fitting(shapes: tuple[str, ...], said: frozenset[str], you: bool) -> tuple[str, ...]:
    """The shapes that speak of nothing that the prompt does not name; "of you" is no English."""
    return tuple(shape for shape in shapes if slots(shape) <= said | _ALWAYS and not (you and "of {n}" in shape))


def plain(shapes: tuple[str, ...], first: bool) -> tuple[str, ...]:
    """The same step without a story."""
    found = _SUM.search(shapes[0])
    assert found is not None, shapes
    lead = ("That is", "We have", "It is") if first else ("Then", "And then", "After that,")
    return tuple(f"{word} {found[0]}." for word in lead)


def plain_closings(counted: str) -> tuple[str, ...]:
    tail = f" {counted}" if counted else ""
    return f"So the answer is {{z}}{tail}.", f"That makes {{z}}{tail}.", f"So it is {{z}}{tail}."


def careless(rng: random.Random, text: str, lowerable: bool) -> str:
    """The prompt as a hasty or a polite visitor types it."""
    form = rng.randrange(6)
    lower = text.lower() if lowerable else text
    if form == 0:
        return lower.rstrip(" .?")
    if form == 1:
        return lower
    if form == 2:
        # Two numbers side by side need their comma.
        return re.sub(r"(?<!\d),", "", lower.rstrip(" .?").replace("?", ""))
    if form == 3:
        return f"{text.rstrip(' .?')} pls" if text.endswith("?") else text
    if form == 4:
        return text + rng.choice(_AFTER)
    return rng.choice(_BEFORE) + text
