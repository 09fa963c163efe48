"""An answer is finished and recorded also where its page is closed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress

from omnidemo.records import Generation, Round, drain


def listen(
    rounds: Generator[Round, None, Generation], gone: threading.Event, finish: Callable[[Generation], None]
) -> Iterator[Round | Generation]:
    """Yield the rounds and then the generation. `finish` is called with the generation before that, also where the caller stops iterating:
    then `gone` is set, which ends the answer early."""
    generation: Generation | None = None
    try:
        while generation is None:
            try:
                yield next(rounds)
            except StopIteration as finished:
                generation = finished.value
    except GeneratorExit:
        gone.set()
        with suppress(Exception):  # the page is closed
            generation = drain(rounds)
        if generation is not None:
            finish(generation)
        raise
    finish(generation)
    yield generation
