"""Where the training of another model begins: a trained body under another vocabulary, or at twice the width.

At twice the width it computes the same. Every row that writes (of the embedding and of all matrices) is there
twice, so each hidden state is the old one two times over. Every column that reads is split into two parts,
α·w for one copy and (1 − α)·w for the other, with an α of its own. Equal halves would get equal gradients for
ever; unequal ones part from the first step on, and no noise is needed. Heads are copied whole, so that rotary
positions and the scale of attention stay; the last norm is split, since the tied embedding reads both copies.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from lab.drafters.training.family import EMBEDDING, LAST_NORM, Shape
from lab.drafters.training.tokenizers import encode_bytes, ids_of
from omnidemo.vocab.vocabulary import read_vocabulary

LEAST, MOST = 0.3, 0.7  # of a column's weight that goes to the first copy


@torch.no_grad()
def transplanted(
    flat: Tensor,
    old: Shape,
    old_tokens: PreTrainedTokenizerFast,
    new: Shape,
    new_tokens: PreTrainedTokenizerFast,
) -> Tensor:
    """Flat weights for `new`: the body of `old`; a token of the same bytes (or special name) keeps its row,
    any other gets a mean.

    The mean is that of the rows of the pieces that the old, byte-level tokenizer splits the token into.
    """
    made = torch.empty(new.numel())
    sources, targets = old.views(flat), new.views(made)
    for name, view in targets.items():
        if name != EMBEDDING:
            view.copy_(sources[name])
    rows = sources[EMBEDDING]
    known = read_vocabulary(old_tokens)
    targets[EMBEDDING].copy_(rows.mean(0, keepdim=True).expand_as(targets[EMBEDDING]))
    for index, data in enumerate(read_vocabulary(new_tokens).tokens):
        if data is not None:
            same = known.by_bytes.get(data)
            targets[EMBEDDING][index] = (
                rows[same] if same is not None else rows[encode_bytes(known, data)].mean(0)
            )
    targets[EMBEDDING][ids_of(new_tokens)] = rows[ids_of(old_tokens)]
    return made


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
        wide = (
            torch.cat([source, source], -1)
            if name == EMBEDDING or (source.dim() == 1 and name != LAST_NORM)
            else split(source)
        )
        targets[name].copy_(torch.cat([wide, wide]) if source.dim() == 2 and name != EMBEDDING else wide)
    return made
