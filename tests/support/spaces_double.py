"""A stand-in for the package `spaces` as ZeroGPU has it, where there is none; as strict as its code and
documentation say it is.

* What is decorated runs in a forked process. It is forked anew, or an old one is used again with whatever it
  remembers: `kept` says how many answers a process may write, and the oldest one that is left goes first, so
  that it is as stale as can be.
* Arguments and whatever is yielded are pickled. An exception that is not Gradio's arrives as the name of its
  class.
* The process of the app has no CUDA: no runner may be made there, and nothing may be computed with a model
  (`forbid`).
* An app without a decorated function ends when it is launched, with the sentence that ZeroGPU says.
* `held` is locked while a process is forked, and stays locked in it for ever, as a lock that another thread
  happened to hold would be.

The real GPU, its scheduling and its quotas are not here; `refusal` is raised in place of an answer, as an
empty quota is.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from typing import Any

import gradio as gr

SENTENCE = "No @spaces.GPU function detected during startup"
FORK = multiprocessing.get_context("fork")

decorated: list[Callable[..., Any]] = []
durations: list[float] = []  # what was asked for, call by call
kept = 1  # answers that a process may write
held: Any = None
refusal: Exception | None = None
forks = 0
_app = os.getpid()
_idle: list[_Process] = []


class _Process:
    def __init__(self, task: Callable[..., Any]) -> None:
        global forks
        forks += 1
        self.written = 0
        self.ours, theirs = FORK.Pipe()
        self.stopping = FORK.Event()
        with held or nullcontext():
            self.process = FORK.Process(target=self._run, args=(task, theirs), daemon=True)
            self.process.start()
        theirs.close()

    def _run(self, task: Callable[..., Any], theirs: Any) -> None:
        self.ours.close()
        while True:
            try:
                args = pickle.loads(theirs.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            self.stopping.clear()
            thread = threading.Thread(target=self._write, args=(task, args, theirs))  # never the main one
            thread.start()
            thread.join()
            theirs.send_bytes(pickle.dumps(("end", None)))

    def _write(self, task: Callable[..., Any], args: tuple[Any, ...], theirs: Any) -> None:
        steps = task(*args)
        try:
            for value in steps:
                if self.stopping.is_set():
                    steps.close()
                    return
                theirs.send_bytes(pickle.dumps(("value", value)))
        except gr.Error as error:
            theirs.send_bytes(pickle.dumps(("gradio", str(error.message))))
        except Exception as error:
            theirs.send_bytes(pickle.dumps(("error", type(error).__name__)))

    def end(self) -> None:
        self.ours.close()
        self.process.terminate()
        self.process.join()


def GPU(task: Any = None, *, duration: Any = None, size: str | None = None) -> Any:
    if not callable(task):
        return functools.partial(GPU, duration=task if duration is None else duration, size=size)

    @functools.wraps(task)
    def asked(*args: Any) -> Generator[Any, None, None]:
        durations.append(duration(*args) if callable(duration) else duration)
        if refusal is not None:
            raise refusal
        process = _idle.pop(0) if _idle else _Process(task)
        if not process.process.is_alive():
            process = _Process(task)
        process.ours.send_bytes(pickle.dumps(args))
        try:
            yield from _values(process)
        except GeneratorExit:
            process.stopping.set()
            for _ in _values(process):
                pass
            raise
        finally:
            process.written += 1
            if process.written < kept and process.process.is_alive():
                _idle.append(process)
            else:
                process.end()

    decorated.append(asked)
    return asked


def _values(process: _Process) -> Iterator[Any]:
    while True:
        try:
            kind, value = pickle.loads(process.ours.recv_bytes())
        except (EOFError, OSError):
            process.process.join()
            raise gr.Error("GPU task aborted", print_exception=False) from None
        if kind == "end":
            return
        if kind != "value":
            raise gr.Error(value, print_exception=False)
        yield value


def reset() -> None:
    """As if the app had just begun."""
    global kept, held, refusal, forks
    for process in _idle:
        process.end()
    _idle.clear()
    decorated.clear()
    durations.clear()
    kept, held, refusal, forks = 1, None, None, 0


def forbid(patch: Callable[[Any, str, Any], None]) -> None:
    """Have everything that computes with a model refuse in this process. patch: `setattr`, or one that takes
    it back."""
    import torch.nn.functional as functional

    from omnidemo.backends.fused_llama import FusedLlama
    from omnidemo.models.transformers_runner import TransformersRunner

    app = os.getpid()

    def only_there(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **options: Any) -> Any:
            if os.getpid() == app:
                raise RuntimeError("Low-level CUDA init reached in the process of the app")
            return original(*args, **options)

        return call

    patch(FusedLlama, "__init__", only_there(FusedLlama.__init__))
    patch(TransformersRunner, "__init__", only_there(TransformersRunner.__init__))
    patch(functional, "linear", only_there(functional.linear))


def _watch_launch() -> None:
    launch = gr.Blocks.launch

    @functools.wraps(launch)
    def watched(*args: Any, **options: Any) -> Any:
        if not decorated and os.getpid() == _app:
            raise SystemExit(SENTENCE)
        return launch(*args, **options)

    gr.Blocks.launch = watched  # type: ignore[method-assign]


if os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true"):
    _watch_launch()
