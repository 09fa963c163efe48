"""Primary-school maths: word problems, small sums and questions that follow them; the last number of an answer is its result."""

from __future__ import annotations

from . import maths_follow, maths_problems, maths_sums
from .base import Pattern

PATTERNS: dict[str, Pattern] = {**maths_problems.PATTERNS, **maths_sums.PATTERNS, **maths_follow.PATTERNS}
