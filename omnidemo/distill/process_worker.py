"""The niced process in which training runs on a CPU: started when needed, and again after it died; it can be paused."""

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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omnidemo.distill.worker import TrainingPlan, TrainRequest, WorkerError
from omnidemo.distill.worker_process import BEAT

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.adapters.version_folders import AdapterState
    from omnidemo.distill.worker import Trained
    from omnidemo.probes.probe import ProbeRequest
    from omnidemo.records import Agreement, Replayed, Trace

POLL_SECONDS = 0.25  # resolution of the running time of a request
END = "end"  # the process has ended
SILENT_SECONDS = 60.0  # without a sign of life, pauses not counted, after which it hangs: loading torch on a busy machine takes less


def training_environment(threads: int) -> dict[str, str]:
    """Environment of a process that trains. Thread limits must be set before torch is imported. By default glibc returns big blocks to the
    system after every step, which then zeroes them again: nearly half of the time."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return limits | {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_ARENA_MAX": "1"}


class ProcessWorker:
    """A `Worker` in a process of its own (`worker_process.py`). Every request carries its state, so nothing is lost with the process.

    Every method raises WorkerError where the process died, took too long or reports an error.
    """

    def __init__(self, threads: int = 1, nice: int = 10, timeout: float = 600.0, patience: float = SILENT_SECONDS) -> None:
        """`timeout`: seconds of running time, pauses not counted, after which a request is given up and the process replaced; `patience`:
        those without a sign of life."""
        self.threads, self.nice, self.timeout, self.patience = threads, nice, timeout, patience
        self._last_sign = time.monotonic()  # of life
        self._in_request = False
        self._process: subprocess.Popen[bytes] | None = None
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._request_lock = threading.Lock()  # held for a request
        self._state_lock = threading.Lock()  # guards process, paused and closed; held for microseconds
        self._paused = self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.poll() is None else None

    @property
    def silent(self) -> float:
        """Seconds since the last sign of life during a request; 0 without a request, and while the process is paused."""
        return time.monotonic() - self._last_sign if self._in_request and not self._paused else 0.0

    @property
    def paused(self) -> bool:
        return self._paused

    def train(self, request: TrainRequest) -> Trained:
        return cast("Trained", self._call("train", request))

    def evaluate(
        self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[np.ndarray]:
        return cast("list[np.ndarray]", self._call("evaluate", folder, list(states), list(traces), plan))

    def agree(self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: TrainingPlan) -> list[Agreement]:
        return cast("list[Agreement]", self._call("agree", folder, state, list(traces), plan))

    def replay(self, request: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]) -> list[Replayed]:
        return cast("list[Replayed]", self._call("replay", request, adapter, list(prompts)))

    def pause(self) -> None:
        """Stop the process where it is, until `resume`; without effect where the system cannot do that (Windows)."""
        self._set_paused(True)

    def resume(self) -> None:
        self._set_paused(False)

    def close(self) -> None:
        """End the process, also a paused one; a request in flight raises WorkerError."""
        with self._state_lock:
            self._closed = True
            process = self._process
        if process:
            _kill(process)

    def _call(self, *request: Any) -> Any:
        with self._request_lock:
            process = self._started()
            # A process that hangs does not read either, and its pipe is soon full: nobody may wait for that.
            threading.Thread(target=_send, args=(process, request, self._results), name="training request", daemon=True).start()
            result = self._wait(process)
            if isinstance(result, str) and result == END:
                _kill(process)
                raise WorkerError(f"The training process ended unexpectedly (exit status {process.returncode}); it is started again.")
        if isinstance(result, str):  # the sentence of an error
            raise WorkerError(result)
        return result

    def _wait(self, process: subprocess.Popen[bytes]) -> Any:
        left, self._last_sign, self._in_request = self.timeout, time.monotonic(), True
        try:
            while True:
                began = time.monotonic()
                with contextlib.suppress(queue.Empty):
                    return self._results.get(timeout=POLL_SECONDS)
                if self._paused:
                    self._last_sign = time.monotonic()
                else:
                    left -= time.monotonic() - began
                if self.silent > self.patience:
                    _kill(process)
                    raise WorkerError(f"The training process gave no sign of life for {self.patience:g} seconds and was replaced.")
                if left <= 0:
                    _kill(process)
                    raise WorkerError(f"Training took longer than {self.timeout:g} seconds and was stopped; use fewer or smaller steps.")
        finally:
            self._in_request = False

    def _started(self) -> subprocess.Popen[bytes]:
        with self._state_lock:
            if self._closed:
                raise WorkerError("Training has been closed.")
            process = self._process
        if process is not None and process.poll() is None:
            return process
        results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._results = results
        threading.Thread(target=self._run, args=(results,), name="training process", daemon=True).start()
        process = results.get()
        if not isinstance(process, subprocess.Popen):
            raise WorkerError(f"The training process could not be started: {process}")
        with self._state_lock:
            self._process = process
            if self._closed:
                _kill(process)
                raise WorkerError("Training has been closed.")
            if self._paused:
                _signal(process, True)
        return process

    def _run(self, results: queue.SimpleQueue[Any]) -> None:
        """Start the process, put it into `results`, then what it returns. This thread lasts as long as the process, because Linux ends
        the process together with the thread that started it (see `main`)."""
        # Not `multiprocessing`: its spawn would import the app's main module, and gradio with it.
        command = [sys.executable, "-c", f"from omnidemo.distill.worker_process import main; main({self.nice}, {os.getpid()})"]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment())
            assert process.stdout
            pickle.load(process.stdout)  # it is ready: from here on it may be paused
        except Exception as error:  # raised as WorkerError by the caller
            results.put(str(error) or type(error).__name__)
            return
        results.put(process)
        with contextlib.suppress(Exception), process.stdout:
            while True:
                result = pickle.load(process.stdout)
                self._last_sign = time.monotonic()
                if not (isinstance(result, str) and result == BEAT):
                    results.put(result)
        results.put(END)

    def _set_paused(self, paused: bool) -> None:
        with self._state_lock:
            self._paused = paused
            if self._process and self._process.poll() is None:
                _signal(self._process, paused)

    def _environment(self) -> dict[str, str]:
        root = str(Path(__file__).resolve().parents[2])
        own = {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))), "PYTHONWARNINGS": "ignore"}
        own |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
        return os.environ | training_environment(self.threads) | own


def _send(process: subprocess.Popen[bytes], request: Any, results: queue.SimpleQueue[Any]) -> None:
    try:
        assert process.stdin
        pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
        process.stdin.flush()
    except (OSError, ValueError):  # its end of the pipe is gone
        results.put(END)
    except Exception as error:  # what cannot be pickled
        results.put(f"The training request could not be sent: {error}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.5)
    with contextlib.suppress(OSError, ValueError):
        if process.stdin:
            process.stdin.close()


def _signal(process: subprocess.Popen[bytes], paused: bool) -> None:
    if hasattr(signal, "SIGSTOP"):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)
