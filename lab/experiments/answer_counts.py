"""How many answers jobs in processes of their own have made so far. Imports little, so that such a process
starts at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

made: Any = None  # in a worker: the number that all workers and whoever started them share


def share(number: Any) -> None:
    """In a worker, before its first job."""
    global made
    made = number


def run(call: Callable[[], Iterator[None]]) -> None:
    """Run a job that yields after each answer."""
    for _ in call():
        with made.get_lock():
            made.value += 1
