"""Training steps of the acceptance head on states and logits of the drafter's forward pass."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from omnidemo.learning.distill import trace_agreement
from omnidemo.learning.distill.losses import Positions
from omnidemo.learning.distill.trace_agreement import Slots
from omnidemo.models.adapters import acceptance_head

log = logging.getLogger(__name__)
PREFIX = "head."  # of Adam's moments of the head, beside those of the adapter
KINDS = ("exp_avg", "exp_avg_sq")


def resume(
    adam: torch.optim.Optimizer,
    named: Mapping[str, Tensor],
    moments: Mapping[str, Tensor],
    step: int,
    prefix: str = "",
) -> None:
    """Resume Adam after `step` steps with the moments of `moments_of`; weights without moments begin anew."""
    for name, tensor in named.items():
        if all(f"{prefix}{kind}.{name}" in moments for kind in KINDS):
            known = {kind: moments[f"{prefix}{kind}.{name}"].to(tensor.device, copy=True) for kind in KINDS}
            adam.state[tensor] = {"step": torch.tensor(float(step))} | known


def moments_of(
    adam: torch.optim.Optimizer, named: Mapping[str, Tensor], prefix: str = ""
) -> dict[str, Tensor]:
    """Adam's moments of these weights under `<prefix>exp_avg.<weight>` and `<prefix>exp_avg_sq.<weight>`."""
    kept = [
        (name, kind, adam.state[tensor][kind])
        for name, tensor in named.items()
        if tensor in adam.state
        for kind in KINDS
    ]
    return {f"{prefix}{kind}.{name}": tensor.detach().cpu().clone() for name, kind, tensor in kept}


class HeadTrainer:
    """Weights of the acceptance head and Adam's state within one update; without a step both stay as
    given."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        moments: Mapping[str, Tensor],
        rate: float,
        clip: float,
        seed: int,
    ) -> None:
        self.rate, self.clip, self.seed = rate, clip, seed
        self._weights = dict(weights)
        self._moments = {name: tensor for name, tensor in moments.items() if name.startswith(PREFIX)}
        self._adam: torch.optim.Adam | None = None
        self.taken = int(self._moments.get(PREFIX + "step", torch.tensor(0.0)))

    def slots(self, logits: Tensor, at: Positions, number: int) -> Slots:
        """`trace_agreement.slots` of the logits [r, D] of a batch. `number` seeds the draws above temperature
        0."""
        return trace_agreement.slots(
            logits, at, torch.Generator(logits.device).manual_seed(self.seed * 1_000_003 + number)
        )

    def step(self, states: Tensor, seen: Slots) -> float:
        """One step on the states [r, H] of a batch and its slots; the loss in nats per slot. NaN, without a
        change, where there is no slot or a number is not finite."""
        if not len(seen.labels):
            return math.nan
        adam = self._ready(states.shape[1], states.device)
        adam.zero_grad()
        logits = acceptance_head.logit(self._weights, states[seen.rows], seen.log_q)
        loss = acceptance_head.slot_loss(logits, seen.slot, seen.labels)
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self._weights.values(), self.clip))
        if not (loss.isfinite() and math.isfinite(norm)):
            return math.nan
        adam.step()
        self.taken += 1
        return float(loss.detach())

    def weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self._weights.items()}

    def moments(self) -> dict[str, Tensor]:
        """`moments_of` the head with PREFIX, and the number of steps as `head.step`."""
        if self._adam is None:
            return dict(self._moments)
        return moments_of(self._adam, self._weights, PREFIX) | {
            PREFIX + "step": torch.tensor(float(self.taken))
        }

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Log errors of the head, so that the drafter's update still succeeds."""
        try:
            yield
        except Exception:
            log.exception(
                "The acceptance head could not be trained; the drafter's update goes on without it."
            )

    def _ready(self, width: int, device: torch.device) -> torch.optim.Adam:
        if self._adam is None:
            if not acceptance_head.fits(self._weights, width):  # none yet, or one of another drafter
                self._weights, self._moments, self.taken = acceptance_head.fresh(width, self.seed), {}, 0
            self._weights = {
                name: t.detach().to(device, torch.float32, copy=True).requires_grad_()
                for name, t in self._weights.items()
            }
            self._adam = torch.optim.Adam(self._weights.values(), lr=self.rate)
            resume(self._adam, self._weights, self._moments, self.taken, PREFIX)
        return self._adam
