"""Muon for the matrices and Adam for the rest, split over the workers so that no worker waits for one
optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor
from torch.optim import Adam, Muon, Optimizer

from .flat_llama import EMBEDDING, Shape

MOMENTUM, BETAS, EPS = 0.95, (0.9, 0.95), 1e-10
DECAY = 0.01  # of the matrices, times the learning rate


@dataclass(frozen=True, slots=True)
class Rates:
    """Peak learning rates (Muon's in its original scale) and the lengths of warm-up and decay."""

    muon: float = 0.02
    adam: float = 3e-3
    warmup: int = 60
    decay: float = 0.3

    def factor(self, step: int, progress: float) -> float:
        """Short warm-up, a constant phase (from which a run can be extended), a linear decay to zero."""
        return max(0.0, min(1.0, (step + 1) / max(1, self.warmup), (1.0 - progress) / max(1e-9, self.decay)))


class Share:
    """The part of the parameters that one of `workers` workers updates, as views of the shared buffers
    (`training_loop.py`)."""

    def __init__(
        self, shape: Shape, rank: int, workers: int, buffers: Mapping[str, Tensor], step: int
    ) -> None:
        """`step`: those that were made before."""
        self.buffers = buffers
        tensors = list(shape.tensors())
        starts = accumulate((torch.Size(size).numel() for _, size in tensors), initial=0)
        matrices: list[tuple[int, tuple[int, ...]]] = []  # (place in the flat buffer, size)
        others: list[tuple[int, tuple[int, ...]]] = []
        for (name, size), at in zip(tensors, starts, strict=False):
            if name == EMBEDDING:
                low, high = (size[0] * part // workers for part in (rank, rank + 1))
                others.append((low * size[1], (high - low, size[1])))
            elif len(size) == 2:
                matrices.append((at, size))
            elif rank == workers - 1:
                others.append((at, size))
        matrices.sort(key=lambda one: -torch.Size(one[1]).numel())
        self.pieces: list[slice] = []
        self.muon = Muon([{"params": []}], weight_decay=DECAY, momentum=MOMENTUM)
        self.adam = Adam([{"params": []}], betas=BETAS, eps=EPS)
        self._give(self.muon, matrices[rank::workers], momentum_buffer="first")
        self._give(self.adam, others, exp_avg="first", exp_avg_sq="second")
        for state in self.adam.state.values():
            state["step"] = torch.tensor(float(step))

    def _give(
        self, optimiser: Optimizer, tensors: Sequence[tuple[int, tuple[int, ...]]], **moments: str
    ) -> None:
        """Have an optimiser update these tensors; its moments are in shared buffers too, so that one worker
        can write a checkpoint."""
        for at, size in tensors:
            piece = slice(at, at + torch.Size(size).numel())
            parameter = self.buffers["master"][piece].view(size)
            parameter.grad = self.buffers["gradients"][0, piece].view(size)
            optimiser.param_groups[0]["params"].append(parameter)
            optimiser.state[parameter] = {
                name: self.buffers[buffer][piece].view(size) for name, buffer in moments.items()
            }
            self.pieces.append(piece)

    def gather(self) -> float:
        """Sum the workers' gradients of this share into the first row; returns the squared norm."""
        total = 0.0
        for piece in self.pieces:
            summed = self.buffers["gradients"][:, piece].sum(0)
            self.buffers["gradients"][0, piece] = summed
            total += float(summed.double().square().sum())
        return total

    def update(self, rates: Rates, factor: float, clip: float) -> None:
        """One step of both optimisers on this share; leaves the gradients at zero and the bfloat16 weights
        current."""
        for piece in self.pieces:
            self.buffers["gradients"][0, piece] *= clip
        self.muon.param_groups[0]["lr"], self.adam.param_groups[0]["lr"] = (
            rates.muon * factor,
            rates.adam * factor,
        )
        self.muon.step()
        self.adam.step()
        for piece in self.pieces:
            self.buffers["weights"][piece] = self.buffers["master"][piece].to(self.buffers["weights"].dtype)
            self.buffers["gradients"][:, piece] = 0.0
