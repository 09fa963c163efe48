"""A trained body at twice the width that computes the same: where the training of a wider model begins.

Every row that writes (of the embedding and of all matrices) is there twice, so each hidden state is the old one two times over. Every
column that reads is split into two parts, α·w for one copy and (1 − α)·w for the other, with an α of its own. Equal halves would get equal
gradients for ever; unequal ones part from the first step on, and no noise is needed. Heads are copied whole, so that rotary positions and
the scale of attention stay; the last norm is split, since the tied embedding reads both copies.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from .family import EMBEDDING, LAST_NORM, Shape

LEAST, MOST = 0.3, 0.7  # of a column's weight that goes to the first copy


def widened(shape: Shape) -> Shape:
    """The shape with twice the hidden size, heads and inner size; layers, head size and vocabulary stay."""
    return replace(shape, hidden=2 * shape.hidden, heads=2 * shape.heads, inter=2 * shape.inter)


@torch.no_grad()
def grown(flat: Tensor, shape: Shape, seed: int) -> Tensor:
    """Flat float32 weights of `widened(shape)` with the logits of `flat` (of `shape`), but for rounding."""
    generator = torch.Generator().manual_seed(seed)

    def split(columns: Tensor) -> Tensor:
        share = torch.empty(columns.shape[-1]).uniform_(LEAST, MOST, generator=generator)
        return torch.cat([columns * share, columns * (1 - share)], -1)

    made = torch.empty(widened(shape).numel())
    sources, targets = shape.views(flat), widened(shape).views(made)
    for name, source in sources.items():
        wide = torch.cat([source, source], -1) if name == EMBEDDING or (source.dim() == 1 and name != LAST_NORM) else split(source)
        targets[name].copy_(torch.cat([wide, wide]) if source.dim() == 2 and name != EMBEDDING else wide)
    return made
