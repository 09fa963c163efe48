"""The weights of a small Llama in one flat buffer, and the way to `transformers` and back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

WINDOW = (
    1024  # as long as the rows of training; behind more a drafter guesses worse (notebook/drafter-window.md)
)
SHARD = "9MB"  # of a weights file: small enough for every git host without large-file storage
EMBEDDING, LAST_NORM = "model.embed_tokens.weight", "model.norm.weight"
PARTS = (
    *(f"self_attn.{part}_proj" for part in "qkvo"),
    *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
    *(f"{part}_layernorm" for part in ("input", "post_attention")),
)


def parts_of(layer: int) -> list[str]:
    """The names of a layer's tensors: four matrices of the attention, three after it, the norms before
    both."""
    return [f"model.layers.{layer}.{part}.weight" for part in PARTS]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Llama body with tied embeddings."""

    vocab: int
    layers: int
    hidden: int
    heads: int
    head_dim: int
    inter: int

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names, as in `transformers`, and shapes in flat order."""
        inner = self.heads * self.head_dim
        matrices = (
            ((inner, self.hidden),) * 3
            + ((self.hidden, inner),)
            + ((self.inter, self.hidden),) * 2
            + ((self.hidden, self.inter),)
        )
        yield EMBEDDING, (self.vocab, self.hidden)
        for layer in range(self.layers):
            yield from zip(parts_of(layer), (*matrices, (self.hidden,), (self.hidden,)), strict=True)
        yield LAST_NORM, (self.hidden,)

    def numel(self) -> int:
        return sum(torch.Size(shape).numel() for _, shape in self.tensors())

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The named tensors as views of one flat buffer."""
        found, at = {}, 0
        for name, shape in self.tensors():
            size = torch.Size(shape).numel()
            found[name] = flat[at : at + size].view(shape)
            at += size
        return found


def initial(shape: Shape, seed: int) -> Tensor:
    """Flat float32 weights to start from; the matrices that write to the residual stream begin at a smaller
    scale."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.empty(shape.numel()).normal_(0.0, 0.02, generator=generator)
    for name, view in shape.views(flat).items():
        if view.dim() == 1:
            view.fill_(1.0)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            view.mul_((2 * shape.layers) ** -0.5)
    return flat


def config_of(shape: Shape, **tokens: Any) -> LlamaConfig:
    """The configuration of `transformers`; `tokens`: ids of special tokens, such as `eos_token_id`."""
    return LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.inter,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head_dim,
        max_position_embeddings=WINDOW,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        **tokens,
    )


@torch.no_grad()
def to_transformers(shape: Shape, flat: Tensor, tokenizer: PreTrainedTokenizerBase) -> LlamaForCausalLM:
    """A `transformers` model with the weights of a flat buffer."""
    tokens = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model = LlamaForCausalLM(config_of(shape, **tokens))
    for name, parameter in model.named_parameters():
        parameter.copy_(shape.views(flat)[name])
    model.generation_config = GenerationConfig(**tokens, do_sample=False)
    return model.eval()


@torch.no_grad()
def from_transformers(shape: Shape, model: LlamaForCausalLM) -> Tensor:
    """The flat float32 weights of a `transformers` model."""
    flat = torch.empty(shape.numel())
    parameters = dict(model.named_parameters())
    for name, view in shape.views(flat).items():
        view.copy_(parameters[name])
    return flat


def save(shape: Shape, flat: Tensor, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a model in bfloat16 with its tokenizer; a folder that is there is replaced only when the new one
    is complete."""
    fresh, old = (folder.with_name(f".{folder.name}.{part}") for part in ("new", "old"))
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    to_transformers(shape, flat, tokenizer).bfloat16().save_pretrained(fresh, max_shard_size=SHARD)
    tokenizer.save_pretrained(fresh)
    if folder.exists():
        os.replace(folder, old)
    os.replace(fresh, folder)
    shutil.rmtree(old, ignore_errors=True)
