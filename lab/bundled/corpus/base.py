"""What every domain of the bundled corpus is made of: an `Example`, and patterns that make one from a random source."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """One generated chat.

    `facts` are strings of the prompt that a right last answer repeats (names, places, numbers); `number` is the result
    that is the last number of a maths answer; `tests` are assertions that a code answer passes.
    """

    domain: str
    pattern: str
    turns: tuple[tuple[str, str], ...]  # (user, assistant), …
    facts: tuple[str, ...] = ()
    number: str | None = None
    tests: tuple[str, ...] = ()


# A pattern draws everything it needs from the random source it is given, so that a seed fixes the corpus.
Pattern = Callable[[random.Random], Example]
