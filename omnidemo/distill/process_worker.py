"""The niced process in which training runs on a CPU: started when needed, and again after it died; it can be paused.

Only the standard library is imported here at first: the process lowers its priority before it loads torch.
"""

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
from typing import TYPE_CHECKING, Any

from omnidemo.distill.worker_process import BEAT

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.adapters.version_folders import AdapterState, OptimiserState
    from omnidemo.distill.train_step import Batches, Plan, Update
    from omnidemo.probes.probe import ProbeRequest
    from omnidemo.records import Agreement, Replayed, Trace

POLL_SECONDS = 0.25  # how exactly the running time of a request is kept
END = "end"  # the process has ended
SILENT_SECONDS = 60.0  # without a word, pauses not counted, after which it hangs: loading torch on a busy machine takes less


class WorkerError(RuntimeError):
    """The child process could not do what it was asked; the sentence says why."""


def training_environment(threads: int) -> dict[str, str]:
    """Environment of a process that trains. Thread limits have to stand before torch is imported. The C library's allocator would hand
    big blocks back after every step, and the system clear them again: nearly half of the time."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return limits | {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_ARENA_MAX": "1"}


class ProcessWorker:
    """Runs `training.py`, and replays of `probing.py`, in a process of its own. It keeps the model, never a state: every request carries
    all that it needs, so nothing is lost with the process. Any thread may ask; one request runs at a time, the others wait.
    """

    def __init__(self, threads: int = 1, nice: int = 10, timeout: float = 600.0, patience: float = SILENT_SECONDS) -> None:
        """`timeout`: seconds of running time, pauses not counted, after which a request is given up and the process replaced; `patience`:
        those without a sign of life."""
        self.threads, self.nice, self.timeout, self.patience = threads, nice, timeout, patience
        self._sign = time.monotonic()  # when the process was heard of last, or could not be
        self._asked = False
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._turn = threading.Lock()  # held for a request
        self._state = threading.Lock()  # guards process, paused and closed; held for microseconds
        self._paused = self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process and process.poll() is None else None

    @property
    def silent(self) -> float:
        """Seconds since the process that works on a request was heard of, 0 where none does or it was stopped on purpose."""
        return time.monotonic() - self._sign if self._asked and not self._paused else 0.0

    @property
    def paused(self) -> bool:
        return self._paused

    def train(
        self,
        folder: Path,
        adapter: AdapterState | None,
        optimiser: OptimiserState | None,
        batches: Batches,
        plan: Plan,
        head_batches: Batches = (),
    ) -> Update:
        """`training.train` on the drafter in `folder`. Raises ChildError where the process died, took too long or reports an error."""
        update: Update = self._ask("train", str(folder), adapter, optimiser, batches, plan, head_batches)
        return update

    def judge(self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: Plan) -> list[np.ndarray]:
        """`training.judge` on the drafter in `folder`. Raises ChildError as `train` does."""
        judged: list[np.ndarray] = self._ask("judge", str(folder), list(states), list(traces), plan)
        return judged

    def agree(self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: Plan) -> list[Agreement]:
        """`training.agree` on the drafter in `folder`. Raises ChildError as `train` does."""
        agreed: list[Agreement] = self._ask("agree", str(folder), state, list(traces), plan)
        return agreed

    def replay(self, scene: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]) -> list[Replayed]:
        """`Prober.replay` of `probing.py`. Raises ChildError as `train` does."""
        replayed: list[Replayed] = self._ask("replay", "", scene, adapter, list(prompts))
        return replayed

    def pause(self) -> None:
        """Stop the process where it is, until `go_on`; without effect where the system cannot do that (Windows)."""
        self._signal(True)

    def go_on(self) -> None:
        self._signal(False)

    def close(self) -> None:
        """End the process, also a paused one; a request in flight raises ChildError."""
        with self._state:
            self._closed = True
            process = self._process
        if process:
            _kill(process)

    def _ask(self, *request: Any) -> Any:
        with self._turn:
            process = self._started()
            # A process that hangs does not read either, and its pipe is soon full: nobody may wait for that.
            threading.Thread(target=_send, args=(process, request, self._answers), name="training request", daemon=True).start()
            answer = self._wait(process)
            if isinstance(answer, str) and answer == END:
                _kill(process)
                raise WorkerError(f"The training process ended unexpectedly (exit status {process.returncode}); it is started again.")
        if isinstance(answer, str):
            raise WorkerError(answer)
        return answer

    def _wait(self, process: subprocess.Popen[bytes]) -> Any:
        left, self._sign, self._asked = self.timeout, time.monotonic(), True
        try:
            while True:
                began = time.monotonic()
                with contextlib.suppress(queue.Empty):
                    return self._answers.get(timeout=POLL_SECONDS)
                if self._paused:
                    self._sign = time.monotonic()
                else:
                    left -= time.monotonic() - began
                if self.silent > self.patience:
                    _kill(process)
                    raise WorkerError(f"The training process gave no sign of life for {self.patience:g} seconds and was replaced.")
                if left <= 0:
                    _kill(process)
                    raise WorkerError(f"Training took longer than {self.timeout:g} seconds and was stopped; use fewer or smaller steps.")
        finally:
            self._asked = False

    def _started(self) -> subprocess.Popen[bytes]:
        with self._state:
            if self._closed:
                raise WorkerError("Training has been closed.")
            process = self._process
        if process is not None and process.poll() is None:
            return process
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers = answers
        threading.Thread(target=self._keep, args=(answers,), name="training process", daemon=True).start()
        process = answers.get()
        if not isinstance(process, subprocess.Popen):
            raise WorkerError(f"The training process could not be started: {process}")
        with self._state:
            self._process = process
            if self._closed:
                _kill(process)
                raise WorkerError("Training has been closed.")
            if self._paused:
                _tell(process, True)
        return process

    def _keep(self, answers: queue.SimpleQueue[Any]) -> None:
        """Start the process, hand it over, then its answers. A thread that lasts as long as the process has to do this: Linux ends
        the process together with the thread that started it (see `main`)."""
        # Not `multiprocessing`: its spawn would import the app's main module, and gradio with it.
        command = [sys.executable, "-c", f"from omnidemo.distill.worker_process import main; main({self.nice}, {os.getpid()})"]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment())
            assert process.stdout
            pickle.load(process.stdout)  # it is ready: from here on it may be paused
        except Exception as error:  # whatever it is, the one who asked tells it
            answers.put(str(error) or type(error).__name__)
            return
        answers.put(process)
        with contextlib.suppress(Exception), process.stdout:
            while True:
                answer = pickle.load(process.stdout)
                self._sign = time.monotonic()
                if not (isinstance(answer, str) and answer == BEAT):
                    answers.put(answer)
        answers.put(END)

    def _signal(self, paused: bool) -> None:
        with self._state:
            self._paused = paused
            if self._process and self._process.poll() is None:
                _tell(self._process, paused)

    def _environment(self) -> dict[str, str]:
        root = str(Path(__file__).resolve().parents[2])
        own = {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))), "PYTHONWARNINGS": "ignore"}
        own |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
        return os.environ | training_environment(self.threads) | own


def _send(process: subprocess.Popen[bytes], request: Any, answers: queue.SimpleQueue[Any]) -> None:
    try:
        assert process.stdin
        pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
        process.stdin.flush()
    except (OSError, ValueError):  # its end of the pipe is gone
        answers.put(END)
    except Exception as error:  # what cannot be pickled
        answers.put(f"The training request could not be sent: {error}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.5)
    with contextlib.suppress(OSError, ValueError):
        if process.stdin:
            process.stdin.close()


def _tell(process: subprocess.Popen[bytes], paused: bool) -> None:
    if hasattr(signal, "SIGSTOP"):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)


# --- in the child ----------------------------------------------------------------------------------------------------------
