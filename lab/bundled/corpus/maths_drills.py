"""Lists of bare sums: many results in few words, so that a small model learns its tables."""

from __future__ import annotations

import random
from collections.abc import Callable

from . import maths_numbers as num
from .base import Example, Pattern

_SIGNS: dict[str, Callable[[random.Random], num.Numbers]] = {"+": num.add, "-": num.sub, "*": num.mul, "/": num.div}
# Which operations a drill is about, and how often each is drawn.
_DRILLS = {"mixed": "++--**//", "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "tables": "**/"}
_PROMPTS = (
    "Work out these sums: {sums}.",
    "Please solve: {sums}",
    "What are the results of {sums}?",
    "Calculate {sums}.",
    "I need to check my homework. What is {sums}?",
    "Solve these one by one: {sums}.",
)


def _sum(rng: random.Random, signs: str) -> tuple[str, int]:
    sign = rng.choice(signs)
    numbers = _SIGNS[sign](rng)
    return f"{numbers['a']} {sign} {numbers['b']}", int(str(numbers["z"]))


def _drill(kind: str, phrasing: int) -> Pattern:
    def pattern(rng: random.Random) -> Example:
        sums = [_sum(rng, _DRILLS[kind]) for _ in range(rng.randint(4, 12))]
        asked = ", ".join(text for text, _ in sums[:-1]) + f" and {sums[-1][0]}"
        answer = "\n".join(f"{text} = {result}" for text, result in sums)
        result = str(sums[-1][1])
        turns = ((_PROMPTS[phrasing].format(sums=asked), answer),)
        return Example("maths", f"maths/drill_{kind}/{phrasing}", turns, number=result)

    return pattern


PATTERNS: dict[str, Pattern] = {
    f"maths/drill_{kind}/{phrasing}": _drill(kind, phrasing) for kind in _DRILLS for phrasing in range(len(_PROMPTS))
}
