"""One replica: a process with a pair that writes several answers at once, round by round in turns."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from omnidemo.core.config import Settings
from omnidemo.pair.remote.messages import Call, Message
from omnidemo.pair.remote.writing_pair import WritingPair, told
from omnidemo.serving.pair_loading import build_pair

ANSWERS = WritingPair.lines_kept  # that a replica writes at once; Ray queues further ones
# Rounds of this time share a message, after the first: a message costs the app a millisecond (docs/scale.md).
BATCH_SECONDS = 0.01


class PairReplica:
    """The class of a deployment: its pair gets what others have learned, and measures its own prices.
    `fetch`: gets a value of `RayReplicas.put`."""

    def __init__(self, target: str, drafter: str, settings: Settings, fetch: Callable[[Any], Any]) -> None:
        self._pair = cast(WritingPair, build_pair(target, drafter, settings, make=WritingPair))
        self._pair.fetch = fetch
        self._pair.warm_up()
        self._threads = ThreadPoolExecutor(ANSWERS, "answer")

    async def answer(self, call: Call) -> AsyncIterator[list[Message]]:
        """The messages of an answer in small batches, the first round at once. The answer ends where nobody
        reads on."""
        loop, ready, gone = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        written: deque[Message] = deque()

        def write() -> None:
            for message in told(self._pair.serve(call, gone.is_set), "holds a replica"):
                written.append(message)
                loop.call_soon_threadsafe(ready.set)

        writing = loop.run_in_executor(self._threads, write)
        writing.add_done_callback(lambda _: ready.set())
        try:
            while not (writing.done() and not written):
                await ready.wait()
                ready.clear()
                if batch := [written.popleft() for _ in range(len(written))]:
                    yield batch
                    await asyncio.sleep(BATCH_SECONDS if not writing.done() else 0)
                    ready.set()
        finally:
            gone.set()

    async def process(self) -> int:
        """This process's id."""
        return os.getpid()
