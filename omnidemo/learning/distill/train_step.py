"""One update of the drafter and of its acceptance head, and evaluations: pure functions on a scratch copy of
the model, which the workers of `worker.py` run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from omnidemo.core.records import Agreement, Trace, TrainStep
from omnidemo.learning.distill import losses, rehearsal, trace_agreement
from omnidemo.learning.distill.head_training import HeadTrainer, moments_of, resume
from omnidemo.learning.distill.learner import Learner, copied
from omnidemo.learning.distill.worker import TrainingPlan
from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState

Batches = Sequence[Sequence[Trace]]
Trained = tuple[AdapterState, OptimiserState, list[TrainStep]]
READ_AT_ONCE = 2  # traces in a training pass, which keeps all that its gradients need
EVALUATED_AT_ONCE = 8  # traces in a forward pass of `evaluate`


def train(
    learner: Learner,
    adapter: AdapterState | None,
    optimiser: OptimiserState | None,
    batches: Batches,
    plan: TrainingPlan,
    head_batches: Batches = (),
) -> Trained:
    """Take one AdamW step per batch from `adapter` (None: a fresh one) on. Returns the new adapter, the
    optimiser state and the steps. The arguments stay unchanged, and earlier calls have no influence.

    The adapter is the running average of the weights over all steps of its line: steps on the few answers of
    a chat are noisy, and their average drafts better than any of them. The weights themselves stay in the
    optimiser's state. A batch whose loss or gradient is not finite moves no weight, only the average; its
    loss is NaN. A batch without counted positions has loss 0.

    The acceptance head learns on the same batches (`plan.head` "joint"; OmniDraft, algorithm 3), or before
    them on `head_batches` with the published weights ("interleaved"; algorithm 4). `head_batches` should be
    answers that no update has read. The paper draws them from all earlier ones, but a drafter guesses better
    on what it has learned, so such a head promises too much (measured: 1.0 nats on new answers, untrained
    0.57, trained on unseen answers 0.54). The drafter's update stays where the head's steps fail.
    """
    start, state = learner.completed(adapter), optimiser or OptimiserState(0, {})
    average = {name: start.weights[name].to(learner.device, copy=True) for name in learner.parameters}
    head = HeadTrainer(start.head, state.moments, plan.head_rate, plan.clip, plan.seed)
    loss_head = math.nan
    if plan.head == "interleaved" and head_batches:
        loss_head = _interleaved(learner, start, head, head_batches, plan)
    if plan.rehearsal:
        _ = learner.rehearsed  # written before the line's weights are loaded
    before, own = state.moments, start.weights
    learner.load({name: before.get(f"weight.{name}", own[name]) for name in learner.parameters})
    adamw = torch.optim.AdamW(learner.parameters.values(), lr=plan.learning_rate)
    resume(adamw, learner.parameters, before, state.step)
    steps: list[TrainStep] = []
    for number, batch in enumerate(batches, state.step + 1):
        for group in adamw.param_groups:
            group["lr"] = plan.rate(number)
        steps.append(_step(learner, adamw, batch, number, plan, head if plan.head == "joint" else None))
        # The plain mean of all steps and the first weights, until `memory` forgets: first changes are mostly
        # noise.
        forget = 1.0 - min(plan.memory, number / (number + 1))
        current = [parameter.detach() for parameter in learner.parameters.values()]
        torch._foreach_lerp_(list(average.values()), current, forget)
    adamw.zero_grad()
    weights = {f"weight.{name}": tensor for name, tensor in copied(learner.parameters).items()}
    moments = moments_of(adamw, learner.parameters) | weights
    if plan.head == "interleaved":
        steps[-1:] = [replace(step, loss_head=loss_head) for step in steps[-1:]]
    trained = AdapterState(copied(average), start.config, head.weights())
    return trained, OptimiserState(state.step + len(steps), moments | head.moments()), steps


def evaluate(
    learner: Learner, states: Sequence[AdapterState | None], traces: Sequence[Trace], window: int = 1024
) -> list[np.ndarray]:
    """For each state (None: the base drafter) the probabilities [positions] that its proposals would be
    accepted (`trace_agreement.expected`), at the spelled positions of each trace's newest `window` tokens, in
    one order for all states. ValueError for a state that does not fit the learner."""
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
    """How far the drafter with a state (None: the base drafter) agrees with the target on each trace
    (`trace_agreement.agreement`). ValueError for a state that does not fit the learner."""
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
    # padded on the right: attention is causal, so no mask is needed
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
    adamw.zero_grad()
    if head is None:
        states = logits = at = None
        total, direct, ngram, count = _gradients_in_parts(learner, batch, plan)
    else:  # the head learns from the whole batch at once
        states, logits, at = _forward(learner, batch, plan.window, plan.errors_only)
        loss = _loss(logits, at, plan)
        total, direct, ngram = (float(value.detach()) for value in (loss.total, loss.direct, loss.ngram))
        count = len(at)
        if math.isfinite(total) and count:
            loss.total.backward()
    norm = 0.0 if not count else math.nan
    if math.isfinite(total) and count:
        if plan.rehearsal and learner.rehearsed:
            (plan.rehearsal * rehearsal.loss(learner, learner.rehearsed, number)).backward()
        norm = float(torch.nn.utils.clip_grad_norm_(learner.parameters.values(), plan.clip))
        if math.isfinite(norm):
            adamw.step()
    if not math.isfinite(norm):
        total = direct = ngram = math.nan
    loss_head = math.nan
    if head is not None and states is not None and logits is not None and at is not None:
        with head.guarded():
            if plan.errors_only:  # the head needs accepted positions too
                with torch.no_grad():
                    states, logits, at = _forward(learner, batch, plan.window)
            loss_head = head.step(states.detach(), head.slots(logits.detach(), at, number))
    rate, seconds = adamw.param_groups[0]["lr"], time.perf_counter() - began
    return TrainStep(number, total, direct, ngram, norm, rate, seconds, loss_head)


def _loss(logits: Tensor, at: losses.Positions, plan: TrainingPlan) -> losses.Losses:
    return losses.distillation(logits, at, plan.ngram_weight, plan.divergence, plan.ngram_loss, plan.jsd_beta)


def _gradients_in_parts(
    learner: Learner, batch: Sequence[Trace], plan: TrainingPlan
) -> tuple[float, float, float, int]:
    """Add the gradients of a batch's loss for READ_AT_ONCE traces at a time, so that memory does not grow
    with the batch; the loss, its two terms, and the number of positions. The terms are means, and a part
    counts by its share of them, so the sum is the loss of the whole batch."""
    traces = [losses.newest(trace, min(plan.window, learner.context)) for trace in batch]
    if any(trace.first_ids is None for trace in traces):
        traces = [replace(trace, first_ids=None, first_p=None) for trace in traces]
    parts = [traces[start : start + READ_AT_ONCE] for start in range(0, len(traces), READ_AT_ONCE)]
    counts = [losses.positions(part, plan.errors_only) for part in parts]
    firsts = sum(losses.first_positions(at, plan.ngram_loss) for at in counts)
    ngrams = sum(len(at) - at.direct for at in counts)
    total = direct = ngram = 0.0
    for part, known in zip(parts, counts, strict=True):
        if not len(known):
            continue
        _, logits, at = _forward(learner, part, plan.window, plan.errors_only)
        loss = _loss(logits, at, plan)
        of_direct = losses.first_positions(at, plan.ngram_loss) / max(1, firsts)
        of_ngrams = (len(at) - at.direct) / max(1, ngrams)
        share = of_direct * loss.direct + of_ngrams * (loss.total - loss.direct)
        share.backward()
        total, direct = total + float(share.detach()), direct + of_direct * float(loss.direct.detach())
        ngram += of_ngrams * float(loss.ngram.detach())
    return total, direct, ngram, sum(len(at) for at in counts)


def _interleaved(
    learner: Learner, start: AdapterState, head: HeadTrainer, batches: Batches, plan: TrainingPlan
) -> float:
    """`plan.head_steps` steps of the head alone, with one forward pass per batch; the mean loss, NaN without
    a step."""
    taken: list[float] = []
    with head.guarded():
        learner.load(start.weights)
        with torch.no_grad():
            ready = [_forward(learner, batch, plan.window) for batch in batches[: plan.head_steps]]
        for number in range(plan.head_steps):
            states, logits, at = ready[number % len(ready)]
            taken.append(head.step(states, head.slots(logits, at, head.taken)))
    return float(np.mean(taken)) if taken else math.nan
