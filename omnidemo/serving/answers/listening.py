"""An answer whose page is closed is still finished and recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from omnidemo.core.records import Generation, Part, Reading, Round, drain


def listen(
    parts: Generator[Reading | Round, None, Generation], gone: threading.Event,
    finish: Callable[[Generation], None],
    began: float,
    dropped: int = 0,
) -> Iterator[Part]:  # fmt: skip
    """Yield the parts, then the generation. `finish` gets the generation before it is yielded. Where the
    caller stops iterating, `gone` is set, which ends the answer early, and `finish` is called too. `began`:
    the time of the request (`perf_counter`), from which the time to the first token counts. `dropped`: the
    generation's `dropped_messages`."""
    generation: Generation | None = None
    first: float | None = None

    def since_request(made: Generation) -> Generation:
        return replace(made, metrics={**made.metrics, "time_to_first_token": first}, dropped_messages=dropped)

    try:
        while generation is None:
            try:
                made = next(parts)
            except StopIteration as finished:
                generation = since_request(finished.value)
            else:
                first = perf_counter() - began if first is None and isinstance(made, Round) else first
                yield made
    except GeneratorExit:
        gone.set()
        with suppress(Exception):  # nobody would see it
            generation = since_request(drain(parts))
        if generation is not None:
            finish(generation)
        raise
    finish(generation)
    yield generation
