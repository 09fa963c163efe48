"""What runs in the training process: requests come in on standard input, answers leave on standard output."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from omnidemo.processes import end_with_parent

if TYPE_CHECKING:
    from omnidemo.distill.train_step import Learner
    from omnidemo.probes.probe import Prober


BEAT, BEAT_SECONDS = "beat", 2.0  # what the process says while it is alive, and how often
_speaking = threading.Lock()  # in the child: an answer is written whole


def main(nice: int, parent: int) -> None:
    """Answer requests from standard input until it ends, that is, until the process `parent` is gone."""
    end_with_parent(parent)
    if hasattr(os, "nice"):
        os.nice(nice)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up between the answers
    _answer(answers, "ready")
    threading.Thread(target=_beat, args=(answers,), daemon=True).start()

    import torch

    from omnidemo.distill import train_step

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    learners: dict[tuple[str, int], Learner] = {}
    stage: Prober | None = None
    while True:
        verb, folder, *values = requests.get()
        try:
            if verb == "train":
                adapter, optimiser, batches, plan, head_batches = values
                learner = train_step.learner_for(learners, folder, adapter, plan)
                answer: Any = train_step.train(learner, adapter, optimiser, batches, plan, head_batches)
            elif verb == "agree":
                state, traces, plan = values
                answer = train_step.agree(train_step.learner_for(learners, folder, state, plan), state, traces, plan.window)
            elif verb == "replay":
                stage = stage or _stage()
                answer = stage.replay(*values)
            else:
                states, traces, plan = values
                known = next((state for state in states if state), None)
                answer = train_step.judge(train_step.learner_for(learners, folder, known, plan), states, traces, plan.window)
        except Exception as error:  # whatever it is, the parent tells it
            answer = f"Training failed: {type(error).__name__}: {error}"
        _answer(answers, answer)


def _stage() -> Prober:
    from omnidemo.probes.probe import Prober

    return Prober(compiled=False)


def _answer(answers: Any, answer: Any) -> None:
    with _speaking:
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _beat(answers: Any) -> None:
    with contextlib.suppress(OSError):
        while True:
            time.sleep(BEAT_SECONDS)
            _answer(answers, BEAT)


def _listen(requests: queue.SimpleQueue[Any]) -> None:
    """Read requests beside the training, so that the parent's end is noticed within a step, not after an update."""
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
