"""The training process: pickled requests on standard input, pickled results on standard output. Only the
standard library is imported at first, because the process lowers its priority before it loads torch."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
from typing import Any

from omnidemo.core.processes import end_with_parent

BEAT_SECONDS = 2.0  # between two signs of life
_writing = threading.Lock()  # a result is written whole


def main(nice: int, parent: int) -> None:
    """Serve requests (method name of `Worker`, arguments) until standard input ends with the process
    `parent`."""
    end_with_parent(parent)
    if hasattr(os, "nice"):
        os.nice(nice)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that libraries print must not get between the results
    threading.Thread(target=_beat, args=(results,), daemon=True).start()

    import torch

    from omnidemo.learning.distill.in_process_worker import InProcessWorker
    from omnidemo.learning.distill.worker import WorkerError

    torch.set_num_threads(1)
    worker = InProcessWorker()
    with contextlib.suppress(EOFError):
        while True:
            method, *values = pickle.load(sys.stdin.buffer)
            try:
                result: Any = getattr(worker, method)(*values)
            except Exception as error:  # raised again in the process that sent the request
                result = WorkerError(f"Training failed: {type(error).__name__}: {error}")
            _send(results, result)


def _send(results: Any, result: Any) -> None:
    with _writing:
        pickle.dump(result, results, pickle.HIGHEST_PROTOCOL)
        results.flush()


def _beat(results: Any) -> None:
    """Give signs of life; the first says that the process may be paused. Exit where nobody reads them."""
    with contextlib.suppress(OSError):
        while True:
            _send(results, None)
            time.sleep(BEAT_SECONDS)
    os._exit(0)
