"""The niced process that trains on a CPU: started on first use, restarted after its death, and paused for
answers."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from omnidemo.learning.distill.worker import Worker, WorkerError

NICE = 10  # of a training process
POLL_SECONDS = 0.25  # resolution of the running time of a request
SILENT_SECONDS = 60.0  # without a sign of life, after which it is replaced: loading torch takes less
# Thread limits must be set before torch is imported. By default glibc returns big blocks to the system after
# every step, and zeroing them again would take nearly half of the time.
TRAINING_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
TRAINING_ENVIRONMENT |= {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_ARENA_MAX": "1",
}


class ProcessWorker(Worker):
    """A `Worker` in a process of its own (`worker_process.py`). Requests carry all state, so nothing is lost
    with the process. Methods raise WorkerError where it died, took too long or reports an error."""

    can_pause = hasattr(signal, "SIGSTOP")  # not on Windows

    def __init__(
        self, nice: int | None = None, timeout: float = 600.0, patience: float = SILENT_SECONDS
    ) -> None:
        """`nice`: of the process, by default NICE. After `timeout` seconds of a request, or `patience`
        seconds without a sign of life, both without pauses, the process is replaced."""
        super().__init__()
        self.nice, self.timeout, self.patience = NICE if nice is None else nice, timeout, patience
        self._last_sign = time.monotonic()  # of life; time that it stood still does not count
        self._stopped_at: float | None = None  # since when it stands still
        self._in_request = False
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False  # whether the process has started and may be paused
        self._requests: queue.SimpleQueue[tuple[Future[Any], Any]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._request_lock = threading.Lock()  # held for a request
        self._state_lock = threading.Lock()  # guards process, paused and closed; held for microseconds
        self._paused = self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.poll() is None else None

    @property
    def silent(self) -> float:
        return time.monotonic() - self._last_sign if self._in_request and self._stopped_at is None else 0.0

    def pause(self) -> None:
        """Stop the process where it is, until `resume`."""
        self._set_paused(True)

    def resume(self) -> None:
        self._set_paused(False)

    def close(self) -> None:
        """End the process, paused or not; a running request raises WorkerError."""
        with self._state_lock:
            self._closed = True
        self._kill()

    def _call(self, name: str, *given: Any) -> Any:
        with self._request_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="training process", daemon=True)
                self._thread.start()
            answer: Future[Any] = Future()
            self._last_sign, self._in_request = time.monotonic(), True
            self._requests.put((answer, (name, *given)))
            try:
                return self._wait(answer)
            except TimeoutError as error:
                self._kill()
                raise WorkerError(str(error)) from None
            finally:
                self._in_request = False

    def _wait(self, answer: Future[Any]) -> Any:
        """The result. TimeoutError, one sentence, where it takes too long."""
        left = self.timeout
        while True:
            began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                return answer.result(POLL_SECONDS)
            if self._stopped_at is None:
                left -= time.monotonic() - began
            if self.silent > self.patience:
                raise TimeoutError(
                    f"The training process gave no sign of life for {self.patience:g} seconds and was"
                    " replaced."
                )
            if left <= 0:
                raise TimeoutError(
                    f"Training took longer than {self.timeout:g} seconds and was stopped; use fewer or"
                    " smaller steps."
                )

    def _serve(self) -> None:
        """Answer requests one by one, in one thread: Linux ends the process together with the thread that
        started it (`processes.end_with_parent`). Only this thread waits at the full pipe of a process that
        hangs."""
        while True:
            # a call of its own, so that a finished request is freed
            self._fulfil(*self._requests.get())

    def _fulfil(self, answer: Future[Any], request: Any) -> None:
        try:
            answer.set_result(self._answer(self._started(), request))
        except WorkerError as error:
            answer.set_exception(error)

    def _answer(self, process: subprocess.Popen[bytes], request: Any) -> Any:
        assert process.stdin and process.stdout
        try:
            pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            while (result := pickle.load(process.stdout)) is None:
                self._last_sign = time.monotonic()
        except Exception as error:  # the process has closed its pipe
            raise self._ended(process) from error
        if isinstance(result, WorkerError):
            raise result
        return result

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise WorkerError("Training has been closed.")
        if self._process is not None and self._process.poll() is None:
            return self._process
        # Spawning by `multiprocessing` would import the main module, which may be a script that calls
        # `load_pair`.
        command = [
            sys.executable,
            "-c",
            f"from omnidemo.learning.distill.worker_process import main; main({self.nice}, {os.getpid()})",
        ]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(), process_group=0
            )  # a group of its own, which the terminal's Ctrl-C does not reach
        except Exception as error:  # no further process is possible
            raise WorkerError(
                f"The training process could not be started: {str(error) or type(error).__name__}"
            ) from error
        with self._state_lock:  # from here on `_kill` finds it
            self._process, self._ready, closed = process, False, self._closed
            self._stopped_at = None
        if closed:
            self._kill()
        assert process.stdout
        try:
            pickle.load(process.stdout)
        except Exception as error:
            raise self._ended(process) from error
        with self._state_lock:
            self._ready = True
            if self._paused:
                self._stop(process, True)
        return process

    def _ended(self, process: subprocess.Popen[bytes]) -> WorkerError:
        """What is said of a process that closed its pipe. It is made sure that it has ended."""
        self._kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe
                pipe.close()
        return WorkerError(
            f"The training process ended unexpectedly (exit status {process.returncode}); it is started"
            " again."
        )

    def _kill(self) -> None:
        if process := self._process:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.5)

    def _set_paused(self, paused: bool) -> None:
        with self._state_lock:
            self._paused = paused
            if self._process and self._ready and self._process.poll() is None:
                self._stop(self._process, paused)

    def _stop(self, process: subprocess.Popen[bytes], still: bool) -> None:
        """Stop the process, or let it go on. The state lock is held."""
        now = time.monotonic()
        if still and self._stopped_at is None:
            self._stopped_at = now
        elif not still and self._stopped_at is not None:
            self._last_sign = min(now, self._last_sign + now - self._stopped_at)
            self._stopped_at = None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP if still else signal.SIGCONT)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))),
        "PYTHONWARNINGS": "ignore",
    }
    own |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    return os.environ | TRAINING_ENVIRONMENT | own
