"""An answer whose listener may go away: it still ends, and is recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator

from omnidemo.records import Generation, Round


def _listen(
    rounds: Generator[Round, None, Generation], gone: threading.Event, finish: Callable[[Generation], None]
) -> Iterator[Round | Generation]:
    """Yield the rounds and the generation, which `finish` gets first, also where nobody listens any more."""
    generation: Generation | None = None
    try:
        while generation is None:
            try:
                yield next(rounds)
            except StopIteration as finished:
                generation = finished.value
    except GeneratorExit:
        gone.set()
        partial = _finish(rounds)
        if partial is not None:
            finish(partial)
        raise
    finish(generation)
    yield generation


def _finish(rounds: Generator[Round, None, Generation]) -> Generation | None:
    """What a cancelled generation has come to; it ends at its next round."""
    while True:
        try:
            next(rounds)
        except StopIteration as finished:
            generation: Generation = finished.value
            return generation
        except Exception:  # nobody listens any more; the engine's own trouble was told before
            return None
