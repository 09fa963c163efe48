"""Muon for the matrices and AdamW for the rest, split over the workers so that no worker waits for one optimiser.

`torch.optim.Muon` orthogonalises one matrix after the other; here equal shapes go through one batched product.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .family import Shape

MOMENTUM, BETAS, EPS = 0.95, (0.9, 0.95), 1e-10
DECAY = 0.01  # of the matrices, times the learning rate
POLYNOMIAL, ROUNDS = (3.4445, -4.775, 2.0315), 5


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


def orthogonal(batch: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the directions of a batch of (wide or square) ones: Newton-Schulz in bfloat16."""
    first, second, third = POLYNOMIAL
    x = batch.to(torch.bfloat16)
    x = x / x.float().flatten(1).norm(dim=1).clamp(min=1e-7).to(x.dtype)[:, None, None]
    for _ in range(ROUNDS):
        gram = torch.bmm(x, x.transpose(1, 2))
        gram = torch.baddbmm(gram, gram, gram, beta=second, alpha=third)
        x = torch.baddbmm(x, gram, x, beta=first)
    return x


@dataclass
class Share:
    """The part of the parameters that one of `workers` workers updates, as views of the shared buffers."""

    shape: Shape
    rank: int
    workers: int
    master: Tensor
    weights: Tensor
    first: Tensor
    second: Tensor
    gradients: Tensor  # (workers, n)
    frozen: int = 0  # lowest layers that stay as they are, and the embedding with them
    ranges: list[tuple[int, int]] = field(default_factory=list)
    groups: dict[tuple[int, int], list[tuple[int, tuple[int, int]]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        at, matrices, trained = 0, [], self.shape.trained(self.frozen)
        for name, size in self.shape.tensors():
            count = torch.Size(size).numel()
            if name not in trained:
                pass
            elif name == "embed":
                edges = [size[0] * part // self.workers * size[1] for part in range(self.workers + 1)]
                self.ranges.append((edges[self.rank], edges[self.rank + 1]))
            elif name == "norms":
                if self.rank == self.workers - 1:
                    self.ranges.append((at + 2 * self.frozen * size[1], at + count))
            else:
                each = size[1] * size[2]
                matrices += [(at + index * each, (size[1], size[2])) for index in range(size[0])]
            at += count
        matrices.sort(key=lambda item: -item[1][0] * item[1][1])
        for offset, size in matrices[self.rank :: self.workers]:
            self.groups[(min(size), max(size))].append((offset, size))

    def _pieces(self) -> list[tuple[int, int]]:
        return self.ranges + [(offset, offset + size[0] * size[1]) for group in self.groups.values() for offset, size in group]

    def gather(self) -> float:
        """Sum the workers' gradients of this share into the first row; returns the squared norm."""
        total = 0.0
        for low, high in self._pieces():
            summed = self.gradients[:, low:high].sum(0)
            self.gradients[0, low:high] = summed
            total += float(summed.double().square().sum())
        return total

    def update(self, step: int, rates: Rates, factor: float, clip: float) -> None:
        """One step of both optimisers on this share; leaves the gradients at zero and the bfloat16 weights current."""
        for low, high in self.ranges:
            gradient = self.gradients[0, low:high] * clip
            first, second = self.first[low:high], self.second[low:high]
            first.lerp_(gradient, 1 - BETAS[0])
            second.lerp_(gradient.square(), 1 - BETAS[1])
            root = (second / (1 - BETAS[1] ** (step + 1))).sqrt_().add_(EPS)
            self.master[low:high].addcdiv_(first, root, value=-rates.adam * factor / (1 - BETAS[0] ** (step + 1)))
        for group in self.groups.values():
            moved = []
            for offset, size in group:
                gradient = self.gradients[0, offset : offset + size[0] * size[1]] * clip
                first = self.first[offset : offset + len(gradient)]
                first.lerp_(gradient, 1 - MOMENTUM)
                wanted = gradient.lerp(first, MOMENTUM).view(size)
                moved.append(wanted.T if size[0] > size[1] else wanted)
            for (offset, size), direction in zip(group, orthogonal(torch.stack(moved)), strict=True):
                direction = direction.T if size[0] > size[1] else direction
                target = self.master[offset : offset + size[0] * size[1]].view(size)
                target.mul_(1 - rates.muon * factor * DECAY)
                target.add_(direction.float(), alpha=-rates.muon * factor * max(1.0, size[0] / size[1]) ** 0.5)
        for low, high in self._pieces():
            self.weights[low:high] = self.master[low:high].to(self.weights.dtype)
            self.gradients[:, low:high] = 0.0
