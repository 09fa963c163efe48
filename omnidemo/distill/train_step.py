"""One update of the drafter and of its acceptance head: pure functions on a scratch copy of the model.
`worker.py` says who runs them.

`transformers` and `peft` are imported where a model is built, and so only by the process that trains.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from omnidemo.adapters.adapter_state import AdapterState, OptimiserState
from omnidemo.distill import losses, trace_agreement
from omnidemo.distill.head_training import HeadTrainer, moments_of, resume
from omnidemo.distill.worker import TrainingPlan
from omnidemo.records import Agreement, Trace, TrainStep

Batches = Sequence[Sequence[Trace]]
Trained = tuple[AdapterState, OptimiserState, list[TrainStep]]
FULL: dict[str, Any] = {"peft_type": "FULL"}  # the configuration of a full fine-tuning
EVALUATED_AT_ONCE = 8  # traces in a forward pass of `evaluate`


class Learner:
    """The base drafter with trainable LoRA matrices on every linear layer but the last, which gives the
    logits, or (rank 0) all of its parameters; scratch space."""

    def __init__(self, folder: Path, rank: int, seed: int = 0, device: str = "cpu") -> None:
        """Reads safetensors from a local folder, never code. Raises OSError or ValueError where there is no
        such model."""
        from omnidemo.models.read_weights import read_model  # transformers takes a second to import

        base = read_model(folder, dtype=torch.float32, local_files_only=True)
        self.device = torch.device(device)
        self.base: Any = base
        if rank:
            self.parameters, self.initial = self._with_lora(rank, seed)
        else:
            self.base.to(device).eval().requires_grad_(True)
            # Tied matrices are one parameter, under the name that comes first.
            self.parameters = dict(self.base.named_parameters())
            self.initial = AdapterState(_copy(self.parameters), FULL)
        self.context = int(getattr(base.config, "max_position_embeddings", None) or 1 << 30)
        self._head_is_linear = self._check_head()

    def _with_lora(self, rank: int, seed: int) -> tuple[dict[str, Tensor], AdapterState]:
        from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # eval: no dropout, so that a step is deterministic
            model = get_peft_model(self.base, config).to(self.device).eval()
        self.base = model.get_base_model()
        named: dict[str, Tensor] = {
            name.replace(".default.", "."): p for name, p in model.named_parameters() if p.requires_grad
        }
        return named, AdapterState(_copy(get_peft_model_state_dict(model)), _plain_config(config))

    def read(self, ids: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """States [n, H] that the output layer reads, and logits [n, D], of (batch, position) pairs `rows` [n,
        2]."""
        if self._head_is_linear:  # only these rows have to pass the output layer
            states = self.base.base_model(input_ids=ids, use_cache=False).last_hidden_state[
                rows[:, 0], rows[:, 1]
            ]
            return states, self.base.get_output_embeddings()(states)
        seen: list[Tensor] = []
        hook = self.base.get_output_embeddings().register_forward_pre_hook(
            lambda module, given: seen.append(given[0])
        )
        try:
            logits = self.base(input_ids=ids, use_cache=False).logits
        finally:
            hook.remove()
        return seen[-1][rows[:, 0], rows[:, 1]], logits[rows[:, 0], rows[:, 1]]

    def completed(self, adapter: AdapterState | None) -> AdapterState:
        """The adapter with fresh LoRA matrices (which change nothing) where it has none, as one from
        elsewhere may."""
        if adapter is None:
            return self.initial
        if not adapter.weights.keys() <= self.initial.weights.keys():
            return adapter  # of another drafter: `load` says so
        return replace(adapter, weights={**self.initial.weights, **adapter.weights})

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Put these weights in place. Raises ValueError where they belong to another drafter or another
        rank."""
        for name, parameter in self.parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ValueError(
                    f"The adapter does not fit this drafter at {name}: it has another rank, or belongs to"
                    " another drafter."
                )
            parameter.copy_(weights[name])

    @torch.no_grad()
    def _check_head(self) -> bool:
        """Whether hidden state → output layer is all there is: some models scale or cap their logits
        afterwards. The head is here this layer; the acceptance head has nothing to do with it."""
        self._head_is_linear = True
        ids = torch.arange(4, device=self.device)[None] % self.base.config.vocab_size
        rows = torch.tensor([[0, 1], [0, 3]], device=self.device)
        full = self.base(input_ids=ids, use_cache=False).logits[0, [1, 3]]
        try:
            return torch.allclose(self.read(ids, rows)[1], full, atol=1e-4, rtol=1e-4)
        except (AttributeError, TypeError, RuntimeError):
            return False


def train(
    learner: Learner,
    adapter: AdapterState | None,
    optimiser: OptimiserState | None,
    batches: Batches,
    plan: TrainingPlan,
    head_batches: Batches = (),
) -> Trained:
    """Take one AdamW step per batch, starting from `adapter` (None: a fresh one). Returns the new adapter,
    the optimiser state and the steps. Nothing given is changed, and nothing of an earlier call counts.

    The adapter is the running average of the weights over all steps of its line: steps on the few answers of
    a chat are noisy, and their average drafts better than any of them. The weights themselves go on in the
    optimiser's state. A batch whose loss or gradient is not finite moves no weight (but the average, towards
    the weights); its loss is NaN. A batch without anything to learn has loss 0.

    The acceptance head learns on the same batches (`plan.head` "joint"; OmniDraft, algorithm 3), or before
    them on `head_batches`, with the published weights in place ("interleaved"; algorithm 4). `head_batches`
    should be answers that no update has seen. The paper draws them from all earlier ones, but a drafter
    guesses better on what it has learnt, so such a head promises too much (measured: 1.0 nats on new answers,
    untrained 0.57, trained on unseen answers 0.54). The drafter's update stays if the head's steps fail.
    """
    start, state = learner.completed(adapter), optimiser or OptimiserState(0, {})
    average = {name: start.weights[name].to(learner.device, copy=True) for name in learner.parameters}
    head = HeadTrainer(start.head, state.moments, plan.head_rate, plan.clip, plan.seed)
    loss_head = math.nan
    if plan.head == "interleaved" and head_batches:
        loss_head = _interleaved(learner, start, head, head_batches, plan)
    before, own = state.moments, start.weights
    learner.load({name: before.get(f"weight.{name}", own[name]) for name in learner.parameters})
    adamw = torch.optim.AdamW(learner.parameters.values(), lr=plan.learning_rate)
    resume(adamw, learner.parameters, before, state.step)
    steps: list[TrainStep] = []
    for number, batch in enumerate(batches, state.step + 1):
        for group in adamw.param_groups:
            group["lr"] = plan.rate(number)
        steps.append(_step(learner, adamw, batch, number, plan, head if plan.head == "joint" else None))
        # The first steps weigh more, or the average would begin as the untrained weights.
        forget = 1.0 - min(plan.memory, number / (number + 10))
        current = [parameter.detach() for parameter in learner.parameters.values()]
        torch._foreach_lerp_(list(average.values()), current, forget)
    adamw.zero_grad()
    weights = {f"weight.{name}": tensor for name, tensor in _copy(learner.parameters).items()}
    moments = moments_of(adamw, learner.parameters) | weights
    if plan.head == "interleaved":
        steps[-1:] = [replace(step, loss_head=loss_head) for step in steps[-1:]]
    trained = AdapterState(_copy(average), start.config, head.weights())
    return trained, OptimiserState(state.step + len(steps), moments | head.moments()), steps


def evaluate(
    learner: Learner, states: Sequence[AdapterState | None], traces: Sequence[Trace], window: int = 1024
) -> list[np.ndarray]:
    """For each state (None: the base drafter) the probability [positions] that its proposal would be
    accepted, teacher-forced.

    The positions are the spelled ones of each trace's newest `window` tokens, in the same order for every
    state; see `trace_agreement.expected` for the probabilities. Raises ValueError for a state that does not
    fit the learner.
    """
    judged: list[np.ndarray] = []
    for state in states:
        learner.load(learner.completed(state).weights)
        parts = [np.zeros(0, dtype=np.float32)]
        for index in range(0, len(traces), EVALUATED_AT_ONCE):
            with torch.no_grad():
                _, logits, at = _forward(learner, traces[index : index + EVALUATED_AT_ONCE], window)
                parts.append(trace_agreement.expected(logits, at).cpu().numpy())
        judged.append(np.concatenate(parts))
    return judged


def agree(
    learner: Learner, state: AdapterState | None, traces: Sequence[Trace], window: int = 1024
) -> list[Agreement]:
    """How far the drafter with these weights (None: the base drafter) agrees with the target on each trace
    (`trace_agreement.agreement`). Raises ValueError for a state that does not fit the learner."""
    learner.load(learner.completed(state).weights)
    agreements: list[Agreement] = []
    for trace in traces:
        overlap = same = 0.0
        for part in losses.parts(trace, min(window, learner.context)):
            with torch.no_grad():
                _, logits, at = _forward(learner, [part], window)
                shared, first = trace_agreement.agreement(logits, at)
            overlap, same = overlap + float(shared.sum()), same + float(first.sum())
        count = len(trace.p)
        mean = Agreement(overlap / count, same / count, count) if count else Agreement(0.0, 0.0, 0)
        agreements.append(mean)
    return agreements


def _forward(
    learner: Learner, batch: Sequence[Trace], window: int, errors_only: bool = False
) -> tuple[Tensor, Tensor, losses.Positions]:
    """States [r, H], logits [r, D] and the positions of a batch."""
    traces = [losses.newest(trace, min(window, learner.context)) for trace in batch]
    at = losses.positions(traces, errors_only).to(learner.device)
    length = max(len(trace.drafter_ids) for trace in traces)
    # right-padded: attention is causal, so no mask is needed
    ids = torch.zeros(len(traces), length, dtype=torch.int64)
    for row, trace in zip(ids, traces, strict=True):
        row[: len(trace.drafter_ids)] = torch.from_numpy(trace.drafter_ids.astype("int64"))
    states, logits = learner.read(ids.to(learner.device), at.rows)
    return states, logits, at


def _step(
    learner: Learner,
    adamw: torch.optim.Optimizer,
    batch: Sequence[Trace],
    number: int,
    plan: TrainingPlan,
    head: HeadTrainer | None,
) -> TrainStep:
    began = time.perf_counter()
    states, logits, at = _forward(learner, batch, plan.window, plan.errors_only)
    loss = losses.distillation(logits, at, plan.ngram_weight, plan.divergence, plan.ngram_loss, plan.jsd_beta)
    adamw.zero_grad()
    norm = math.nan if len(at) else 0.0
    if loss.total.isfinite() and len(at):
        loss.total.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(learner.parameters.values(), plan.clip))
        if math.isfinite(norm):
            adamw.step()
    whole = math.isfinite(norm)
    total, direct, ngram = (
        float(value.detach()) if whole else math.nan for value in (loss.total, loss.direct, loss.ngram)
    )
    loss_head = math.nan
    if head is not None:
        with head.guarded():
            if plan.errors_only:  # the head has to see what is accepted, too
                with torch.no_grad():
                    states, logits, at = _forward(learner, batch, plan.window)
            loss_head = head.step(states.detach(), head.slots(logits.detach(), at, number))
    rate, seconds = adamw.param_groups[0]["lr"], time.perf_counter() - began
    return TrainStep(number, total, direct, ngram, norm, rate, seconds, loss_head)


def _interleaved(
    learner: Learner, start: AdapterState, head: HeadTrainer, batches: Batches, plan: TrainingPlan
) -> float:
    """`plan.head_steps` steps of the head alone, each batch read only once; the mean loss, NaN where no step
    was taken."""
    taken: list[float] = []
    with head.guarded():
        learner.load(start.weights)
        with torch.no_grad():
            ready = [_forward(learner, batch, plan.window) for batch in batches[: plan.head_steps]]
        for number in range(plan.head_steps):
            states, logits, at = ready[number % len(ready)]
            taken.append(head.step(states, head.slots(logits, at, head.taken)))
    return float(np.mean(taken)) if taken else math.nan


def _copy(weights: Any) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}


def _plain_config(config: Any) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return sorted(value) if isinstance(value, set) else str(value)

    return json.loads(json.dumps(config.to_dict() | {"inference_mode": True}, default=plain))


def learner_for(
    learners: dict[tuple[str, int], Learner], folder: Path | str, adapter: AdapterState | None,
    plan: TrainingPlan, device: str = "cpu",
) -> Learner:  # fmt: skip
    """The learner of a drafter folder, built when first needed and kept in `learners`. An adapter keeps the
    rank that it was started with (0: full)."""
    rank = int(adapter.config.get("r", 0)) if adapter else plan.rank
    key = (str(folder), rank)
    if key not in learners:
        learners.clear()  # one model in memory at a time
        learners[key] = Learner(Path(folder), rank, plan.seed, device)
    return learners[key]
