"""How far a measurement is. Every measurement yields its rows, and between them these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """So many of so many (None: not known yet) of a stage are done."""

    name: str
    done: int
    total: int | None
