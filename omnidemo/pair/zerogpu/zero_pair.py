"""The app's side of a pair on ZeroGPU."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex

from omnidemo.core.private_folders import temporary_folder
from omnidemo.core.records import Reading, Round
from omnidemo.pair.remote.messages import Call, Insertions, Message, insertions
from omnidemo.pair.remote.remote_pair import RemotePair
from omnidemo.pair.zerogpu.gpu_pair import FixedPair
from omnidemo.vocabulary.ngram_cache import NgramCache

Write = Callable[[Call], Iterator[Message]]  # writes an answer in the process that has the GPU


class ZeroPair(RemotePair):
    """A pair whose answers a process with a GPU writes. RuntimeError, one sentence, where no GPU is free, or
    the answer took longer than requested."""

    where = "ZeroGPU"
    lost = "The process that has the GPU ended before the answer did; ask again."
    # `spaces` raises Gradio's error: no quota, no GPU, a process that was ended
    failed = "ZeroGPU did not answer: {}"

    def __init__(self, fixed: FixedPair, write: Write) -> None:
        super().__init__(fixed.target, fixed.drafter, fixed.limits)
        self._fixed, self._write = fixed, write
        self._stops = temporary_folder() / "stops"
        self._stops.mkdir(exist_ok=True)

    def _ask(self, call: Call, cancelled: Callable[[], bool]) -> Generator[Message, None, None]:
        stop = self._stops / token_hex(12)
        messages = self._write(replace(call, stop=str(stop)))
        try:
            for message in messages:
                if isinstance(message, Reading | Round) and cancelled():
                    stop.touch()
                yield message
        finally:
            if isinstance(messages, Generator):
                with suppress(OSError):
                    stop.touch()
                messages.close()
            stop.unlink(missing_ok=True)

    def _told(self, ngrams: NgramCache) -> Insertions:
        """All n-grams, because the process may be new."""
        return insertions(ngrams, 0)
