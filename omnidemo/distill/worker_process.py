"""What runs in the training process: pickled requests come in on standard input, pickled results leave on standard output.

Only the standard library is imported at first: the process lowers its priority before it loads torch.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import sys
import threading
import time
from typing import Any

from omnidemo.processes import end_with_parent

BEAT, BEAT_SECONDS = "beat", 2.0  # sign of life, and the time between two
_writing = threading.Lock()  # a result is written whole


def main(nice: int, parent: int) -> None:
    """Serve requests (method name of `Worker`, arguments) until standard input ends, that is, until the process `parent` is gone."""
    end_with_parent(parent)
    if hasattr(os, "nice"):
        os.nice(nice)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up between the results
    _send(results, "ready")
    threading.Thread(target=_beat, args=(results,), daemon=True).start()

    import torch

    from omnidemo.distill.in_process_worker import InProcessWorker

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    worker = InProcessWorker(compiled=False)  # compiling takes minutes, a replay half a second
    while True:
        method, *values = requests.get()
        try:
            result: Any = getattr(worker, method)(*values)
        except Exception as error:  # raised again, as a sentence, in the process that sent the request
            result = f"Training failed: {type(error).__name__}: {error}"
        _send(results, result)


def _send(results: Any, result: Any) -> None:
    with _writing:
        pickle.dump(result, results, pickle.HIGHEST_PROTOCOL)
        results.flush()


def _beat(results: Any) -> None:
    with contextlib.suppress(OSError):
        while True:
            time.sleep(BEAT_SECONDS)
            _send(results, BEAT)


def _receive(requests: queue.SimpleQueue[Any]) -> None:
    """Read requests beside the training, so that the parent's end is noticed within a step, not after an update."""
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
