"""A trained body under another vocabulary: new embedding rows are made of the rows of the old vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from .family import Shape
from .tokenizers import SPECIALS, encode_bytes, token_bytes


@torch.no_grad()
def transplanted(flat: Tensor, old: Shape, old_tokens: PreTrainedTokenizerFast, new: Shape, new_tokens: PreTrainedTokenizerFast) -> Tensor:
    """Flat weights for `new`: the body of `old`; a token of the same bytes (or special name) keeps its row, any other gets a mean.

    The mean is that of the rows of the pieces that the old, byte-level tokenizer splits the token into.
    """
    made = torch.empty(new.numel())
    sources, targets = old.views(flat), new.views(made)
    for name, view in targets.items():
        if name != "embed":
            view.copy_(sources[name])
    rows = sources["embed"]
    index_of = {data: index for index, data in enumerate(token_bytes(old_tokens)) if data is not None}
    named = {old_tokens.convert_tokens_to_ids(token): new_tokens.convert_tokens_to_ids(token) for token in SPECIALS}
    targets["embed"].copy_(rows.mean(0, keepdim=True).expand_as(targets["embed"]))
    for index, data in enumerate(token_bytes(new_tokens)):
        if data is not None:
            same = index_of.get(data)
            targets["embed"][index] = rows[same] if same is not None else rows[encode_bytes(old_tokens, data)].mean(0)
    for source, target in named.items():
        targets["embed"][target] = rows[source]
    return made
