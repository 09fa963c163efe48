"""A trained body under another vocabulary: new embedding rows are made of the rows of the old vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from omnidemo.vocab.vocabulary import read_vocabulary

from .family import EMBEDDING, Shape
from .tokenizers import encode_bytes, ids_of


@torch.no_grad()
def transplanted(flat: Tensor, old: Shape, old_tokens: PreTrainedTokenizerFast, new: Shape, new_tokens: PreTrainedTokenizerFast) -> Tensor:
    """Flat weights for `new`: the body of `old`; a token of the same bytes (or special name) keeps its row, any other gets a mean.

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
            targets[EMBEDDING][index] = rows[same] if same is not None else rows[encode_bytes(known, data)].mean(0)
    targets[EMBEDDING][ids_of(new_tokens)] = rows[ids_of(old_tokens)]
    return made
