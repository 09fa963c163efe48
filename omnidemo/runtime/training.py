"""One update of the drafter: a pure function on a LoRA model, and the niced child process that runs it.

`transformers` and `peft` are imported where a model is built: the parent of the child process needs neither.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from omnidemo.core import losses
from omnidemo.records import Trace, TrainStep
from omnidemo.runtime.adapters import AdapterState, OptimiserState

Batches = Sequence[Sequence[Trace]]
Update = tuple[AdapterState, OptimiserState, list[TrainStep]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to train. `window`: most drafter tokens read per trace (less where the drafter's own context is shorter)."""

    rank: int = 128
    learning_rate: float = 5e-4
    warmup: int = 48  # steps at the start of a line with a growing rate: a full rate overfits the first few answers
    ngram_weight: float | Literal["dynamic"] = 0.2
    divergence: losses.Divergence = "forward"
    clip: float = 1.0
    memory: float = 0.98  # of the running average of the weights over steps, which is what is published
    window: int = 1024
    seed: int = 0


class Learner:
    """The base drafter with trainable LoRA matrices on every linear layer; scratch space of `train`."""

    def __init__(self, folder: Path, rank: int, seed: int = 0, device: str = "cpu") -> None:
        """Reads safetensors from a local folder, never code. Raises OSError or ValueError where there is no such model."""
        from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, local_files_only=True, trust_remote_code=False
        )
        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = get_peft_model(base, config).to(device).eval()  # eval: no dropout, so that a step is deterministic
        self.device = torch.device(device)
        self.parameters = {name.replace(".default.", "."): p for name, p in self.model.named_parameters() if p.requires_grad}
        self.initial = AdapterState(_copy(get_peft_model_state_dict(self.model)), _plain_config(config))
        self.base: Any = self.model.get_base_model()
        self.context = int(getattr(base.config, "max_position_embeddings", None) or 1 << 30)
        self._head_is_linear = self._check_head()

    def logits(self, ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [rows, D] of (batch, position) pairs `rows` [rows, 2]; only these rows pass the output layer."""
        if not self._head_is_linear:
            return self.base(input_ids=ids, use_cache=False).logits[rows[:, 0], rows[:, 1]]
        hidden = self.base.base_model(input_ids=ids, use_cache=False).last_hidden_state
        return self.base.get_output_embeddings()(hidden[rows[:, 0], rows[:, 1]])

    @torch.no_grad()
    def _check_head(self) -> bool:
        """Whether hidden state → output layer is all there is: some models scale or cap their logits afterwards."""
        self._head_is_linear = True
        ids = torch.arange(4, device=self.device)[None] % self.base.config.vocab_size
        rows = torch.tensor([[0, 1], [0, 3]], device=self.device)
        full = self.base(input_ids=ids, use_cache=False).logits[0, [1, 3]]
        try:
            return torch.allclose(self.logits(ids, rows), full, atol=1e-4, rtol=1e-4)
        except (AttributeError, TypeError, RuntimeError):
            return False


def train(learner: Learner, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches, plan: Plan) -> Update:
    """One AdamW step per batch, starting from `adapter` (None: a fresh one): the new adapter, optimiser state, and the steps.

    The adapter is the running average of the weights over all steps of its line: steps on the few answers of a chat are noisy, and
    their average drafts better than any of them. The weights themselves go on in the optimiser's state. Nothing given is changed,
    and nothing of an earlier call counts. A batch with a loss or gradient that is not finite changes nothing and is reported with
    its loss NaN.
    """
    start = adapter or learner.initial
    state = optimiser or OptimiserState(0, {})
    average = {name: start.weights[name].to(learner.device, copy=True) for name in learner.parameters}
    with torch.no_grad():
        for name, parameter in learner.parameters.items():
            parameter.copy_(state.moments.get(f"weight.{name}", start.weights[name]))
    adamw = _adamw(learner, state, plan)
    steps: list[TrainStep] = []
    for number, batch in enumerate(batches, state.step + 1):
        for group in adamw.param_groups:
            group["lr"] = plan.learning_rate * min(1.0, number / max(1, plan.warmup))
        steps.append(_step(learner, adamw, batch, number, plan))
        # The first steps weigh more, or the average would begin as the untrained weights.
        forget = 1.0 - min(plan.memory, number / (number + 10))
        torch._foreach_lerp_(list(average.values()), [parameter.detach() for parameter in learner.parameters.values()], forget)
    adamw.zero_grad()
    moments = {
        f"{kind}.{name}": adamw.state[parameter][kind].detach().cpu().clone()
        for name, parameter in learner.parameters.items()
        if parameter in adamw.state
        for kind in ("exp_avg", "exp_avg_sq")
    }
    moments |= {f"weight.{name}": parameter.detach().cpu().clone() for name, parameter in learner.parameters.items()}
    return AdapterState(_copy(average), start.config), OptimiserState(state.step + len(steps), moments), steps


def _step(learner: Learner, adamw: torch.optim.Optimizer, batch: Sequence[Trace], number: int, plan: Plan) -> TrainStep:
    began = time.perf_counter()
    traces = [losses.newest(trace, min(plan.window, learner.context)) for trace in batch]
    at = losses.positions(traces).to(learner.device)
    length = max(len(trace.drafter_ids) for trace in traces)
    ids = torch.zeros(len(traces), length, dtype=torch.int64)  # right-padded: attention is causal, so no mask is needed
    for row, trace in zip(ids, traces, strict=True):
        row[: len(trace.drafter_ids)] = torch.from_numpy(trace.drafter_ids.astype("int64"))
    logits = learner.logits(ids.to(learner.device), torch.cat([at.direct, at.sub]))
    found = losses.distillation(logits[: len(at.direct)], logits[len(at.direct) :], at, plan.ngram_weight, plan.divergence)
    adamw.zero_grad()
    norm = math.nan
    if found.total.isfinite() and len(at):
        found.total.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(learner.parameters.values(), plan.clip))
        if math.isfinite(norm):
            adamw.step()
    whole = math.isfinite(norm)
    total, direct, ngram = (float(value.detach()) if whole else math.nan for value in (found.total, found.direct, found.ngram))
    return TrainStep(number, total, direct, ngram, norm, adamw.param_groups[0]["lr"], time.perf_counter() - began)


def _adamw(learner: Learner, state: OptimiserState, plan: Plan) -> torch.optim.AdamW:
    adamw = torch.optim.AdamW(learner.parameters.values(), lr=plan.learning_rate)
    for name, parameter in learner.parameters.items():
        if f"exp_avg.{name}" in state.moments:
            moments = {kind: state.moments[f"{kind}.{name}"].to(learner.device, copy=True) for kind in ("exp_avg", "exp_avg_sq")}
            adamw.state[parameter] = {"step": torch.tensor(float(state.step))} | moments
    return adamw


def _copy(weights: Any) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}


def _plain_config(config: Any) -> dict[str, Any]:
    values = config.to_dict() | {"inference_mode": True}
    return json.loads(json.dumps(values, default=lambda one: sorted(one) if isinstance(one, set) else str(one)))


# --- the child process -----------------------------------------------------------------------------------------------------


class ChildError(RuntimeError):
    """The child process could not train; the sentence says why."""


class Child:
    """Runs `train` in a process of its own, started when needed and again after it died. It keeps the model, never a state:
    every request carries adapter and optimiser, so nothing is lost with it. Requests come from one thread."""

    def __init__(self, threads: int = 1, nice: int = 10) -> None:
        self.threads, self.nice = threads, nice
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def train(self, folder: Path, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches, plan: Plan) -> Update:
        """`train` on the drafter in `folder`. Raises ChildError where the process died or reports an error."""
        process = self._started()
        assert process.stdin and process.stdout
        try:
            pickle.dump((str(folder), adapter, optimiser, batches, plan), process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self._stop(process)
            raise ChildError(f"The training process ended unexpectedly (exit status {process.returncode}); it is started again.") from error
        if isinstance(answer, str):
            raise ChildError(answer)
        return answer

    def close(self) -> None:
        """End the process; a `train` in flight raises ChildError."""
        with self._lock:
            self._closed = True
            process = self._process
        if process:
            self._stop(process)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise ChildError("Training has been closed.")
            if self._process is None or self._process.poll() is not None:
                # Not `multiprocessing`: its spawn would import the app's main module, and gradio with it.
                command = [sys.executable, "-c", f"from omnidemo.runtime.training import serve; serve({self.nice})"]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment())
            return self._process

    def _environment(self) -> dict[str, str]:
        """Thread limits have to stand before torch is imported; the allocator's, so that big blocks are used again."""
        root = str(Path(__file__).resolve().parents[2])
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(self.threads))
        allocator = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_ARENA_MAX": "1"}
        own = {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", "")))), "PYTHONWARNINGS": "ignore"}
        return os.environ | limits | allocator | own | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

    @staticmethod
    def _stop(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.5)
        with contextlib.suppress(OSError, ValueError):
            if process.stdin:
                process.stdin.close()


def serve(nice: int = 10) -> None:
    """The child: answer requests from standard input until it ends, that is, until the parent is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up between the answers
    if hasattr(os, "nice"):
        os.nice(nice)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    learners: dict[tuple[str, int], Learner] = {}
    while True:
        folder, adapter, optimiser, batches, plan = requests.get()
        try:
            learner = learner_for(learners, folder, adapter, plan)
            answer: Update | str = train(learner, adapter, optimiser, batches, plan)
        except Exception as error:  # whatever it is, the parent tells it
            answer = f"Training failed: {type(error).__name__}: {error}"
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def learner_for(known: dict[tuple[str, int], Learner], folder: Path | str, adapter: AdapterState | None, plan: Plan) -> Learner:
    """The learner of a drafter folder, built when first needed; an adapter keeps the rank that it was started with."""
    rank = int(adapter.config["r"]) if adapter else plan.rank
    key = (str(folder), rank)
    if key not in known:
        known.clear()  # one model in memory at a time
        known[key] = Learner(Path(folder), rank, plan.seed)
    return known[key]


def _listen(requests: queue.SimpleQueue[Any]) -> None:
    """Read requests beside the training, so that the parent's end is noticed within a step, not after an update."""
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
