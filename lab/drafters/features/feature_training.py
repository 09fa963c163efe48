"""Training a feature drafter along recorded answers: each guess further from its own state, as it drafts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.drafters.features.layer import Features
from lab.drafters.features.recorder import Walk, matrices, walks
from lab.drafters.training.optimiser import BETAS, DECAY, MOMENTUM, Rates
from lab.drafters.training.pause import hold
from lab.drafters.training.plan import Plan, Reporter

AHEAD = 4  # guesses in a row that are learned
SHARP = 0.6  # the share of a run behind which the second loss is learned
MATRICES = ("own", "read", "gate", "up", "down", "enter")  # that Muon updates; Adam the rest
NOTHING = 1e-6  # least agreement before a logarithm


@dataclass(frozen=True, slots=True)
class Steps:
    """All places of all answers in a row: `states` [n, H], `tokens` [n], the labels' places among the kept
    tokens [n, TOP] and their probabilities (0 for what is not kept), and of which answer each is. The last
    place of an answer has no label."""

    states: Tensor
    tokens: Tensor
    labels: Tensor
    probs: Tensor
    answers: Tensor

    @classmethod
    def of(cls, found: Sequence[Walk], places: Tensor) -> Steps:
        states, tokens, top, probs, answers = [], [], [], [], []
        for number, walk in enumerate(found):
            assert walk.answer.top is not None and walk.answer.logprobs is not None
            states.append(walk.states)
            tokens.append(np.array(walk.ids))
            top.append(np.pad(walk.answer.top, ((0, 1), (0, 0))))
            probs.append(np.pad(np.exp(walk.answer.logprobs.astype(np.float32)), ((0, 1), (0, 0))))
            answers.append(np.full(len(walk.ids), number))
        labels = places[torch.from_numpy(np.concatenate(top).astype(np.int64))]
        known = labels < int(places.max())
        given = torch.from_numpy(np.concatenate(probs))
        return cls(
            torch.from_numpy(np.concatenate(states)), torch.from_numpy(np.concatenate(tokens)),
            torch.where(known, labels, 0), torch.where(known, given, 0.0),
            torch.from_numpy(np.concatenate(answers)),
        )  # fmt: skip

    def chains(self, starts: Tensor) -> list[tuple[Tensor, Tensor]]:
        """(places, whether each is of the same answer still and has a label) of each guess of the chains that
        begin at `starts`."""
        found = []
        for ahead in range(AHEAD):
            places = (starts + ahead).clamp(max=len(self.tokens) - 1)
            same = (self.answers[places] == self.answers[starts]) & (self.probs[places].sum(-1) > 0)
            found.append((places, same))
        return found


def beginning(
    kept: Tensor, embedding: NDArray[Any], head: NDArray[Any], width: int, inner: int
) -> dict[str, Tensor]:
    """Weights that have the target's own embedding and output layer, as far as so many dimensions hold
    them."""

    def drawn(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns) * columns**-0.5

    of_head, of_table = (torch.from_numpy(one[kept.numpy()].astype(np.float32)) for one in (head, embedding))
    basis = torch.linalg.eigh(of_head.T @ of_head)[1][:, -width:]  # [H, W]
    table = of_table @ basis
    return {
        "kept": kept.int(), "table": torch.cat([table, table.mean(0, keepdim=True)]),
        "head": of_head @ basis, "enter": basis.T.contiguous(), "own": drawn(width, width),
        "read": drawn(width, width), "gate": drawn(inner, width), "up": drawn(inner, width),
        "down": 0.1 * drawn(width, inner), "scale": torch.ones(width),
    }  # fmt: skip


def loss_of(model: Features, steps: Steps, starts: Tensor, sharp: bool) -> Tensor:
    """The mean over guesses of the cross-entropy with the target's probabilities, or of −log Σ min(p, q)
    where `sharp`."""
    states, total = model.enters(steps.states[starts].float()), torch.zeros(())
    for places, same in steps.chains(starts):
        states, logits = model.step(states, steps.tokens[places])
        logits = logits.float()
        log_q = logits.gather(-1, steps.labels[places]) - logits.logsumexp(-1, keepdim=True)
        p = steps.probs[places]
        if sharp:
            each = -torch.minimum(p, log_q.exp()).sum(-1).clamp(min=NOTHING).log()
        else:
            each = -(p * log_q).sum(-1) / p.sum(-1).clamp(min=NOTHING)
        total = total + (each * same).sum() / same.sum().clamp(min=1) / AHEAD
    return total


def most_frequent(found: Sequence[Walk], count: int) -> Tensor:
    """The tokens that answers have most often, written or among the three likeliest, in their order."""
    seen = Counter[int]()
    for walk in found:
        assert walk.answer.top is not None
        seen.update(walk.answer.ids)
        seen.update(walk.answer.top[:, :3].ravel().tolist())
    return torch.tensor(sorted(token for token, _ in seen.most_common(count)))


def train(
    shards: Path, target: str, states: Path, kept: int, width: int, inner: int, plan: Plan, rates: Rates,
    report: Callable[[str], None], pause: Path | None = None,
) -> Features:  # fmt: skip
    """Train until the plan's tokens or minutes are over. Its rows have length 1: places where a chain of
    guesses begins."""
    torch.manual_seed(7)
    found = list(walks(shards, target, states))
    if not found:
        raise ValueError(f"{states} has no states of {target}; let `feature-rows` record some")
    embedding, head = matrices(states)
    named = beginning(most_frequent(found, kept), embedding, head, width, inner)
    learned = {name: one.requires_grad_() for name, one in named.items() if name != "kept"}
    model = Features(named, len(embedding))
    steps = Steps.of(found, model.places)
    report(f"{len(found):,} answers, {sum(one.numel() for one in learned.values()):,} parameters")
    large = [learned[name] for name in MATRICES]
    muon = torch.optim.Muon(large, lr=rates.muon, weight_decay=DECAY, momentum=MOMENTUM)
    others = [one for name, one in learned.items() if name not in MATRICES]
    adam = torch.optim.AdamW(others, lr=rates.adam, betas=BETAS, weight_decay=DECAY)
    reporter, order, at = Reporter(target, 0, plan.batch), torch.randperm(len(steps.tokens)), 0
    step, progress, began = 0, 0.0, time.monotonic()
    while progress < 1.0:
        began += hold(pause)
        if at + plan.batch > len(order):
            order, at = torch.randperm(len(steps.tokens)), 0
        starts, at = order[at : at + plan.batch], at + plan.batch
        factor = rates.factor(step, progress)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, steps, starts, progress > SHARP)
        loss.backward()
        size = float(torch.nn.utils.clip_grad_norm_(list(learned.values()), 1.0))
        for optimiser, rate in ((muon, rates.muon), (adam, rates.adam)):
            optimiser.param_groups[0]["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad()
        step += 1
        progress = plan.progress(step, time.monotonic() - began)
        reporter.step(step, progress, loss.item(), size, factor)
    return Features({name: one.detach() for name, one in named.items()}, len(embedding))
