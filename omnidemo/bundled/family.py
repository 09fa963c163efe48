"""The family of bundled models: their shapes, their flat parameter layout, and the way from there to `transformers` and back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets" / "models"
RUNS = ROOT / "runs" / "bundled"
NAMES = ("drafter", "a", "b", "c", "large")  # the order in which they are trained
SHARD = "9MB"  # of a weights file: small enough for every git host without large-file storage


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Llama body with tied embeddings."""

    vocab: int
    layers: int = 8
    hidden: int = 256
    heads: int = 4
    head_dim: int = 64
    inter: int = 704

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names and shapes in flat order: embedding, then matrices (fused as they are multiplied), then all norms."""
        yield "embed", (self.vocab, self.hidden)
        for layer in range(self.layers):
            yield f"{layer}.qkv", (3, self.inner, self.hidden)
            yield f"{layer}.out", (1, self.hidden, self.inner)
            yield f"{layer}.gate_up", (2, self.inter, self.hidden)
            yield f"{layer}.down", (1, self.hidden, self.inter)
        yield "norms", (2 * self.layers + 1, self.hidden)

    def trained(self, frozen: int = 0) -> list[str]:
        """The names of the tensors that are trained where the `frozen` lowest layers, and the embedding below them, stay as they are.

        The norms are one tensor, of which the rows of higher layers are trained.
        """
        kept = {"embed", *(f"{layer}.{name}" for layer in range(frozen) for name in ("qkv", "out", "gate_up", "down"))} if frozen else set()
        return [name for name, _ in self.tensors() if name not in kept]

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


def shape_of(name: str, vocab: int) -> Shape:
    """The shape of a member of the family, given the size of its vocabulary."""
    if name == "drafter":
        return Shape(vocab, layers=2, hidden=160, heads=5, head_dim=32, inter=432)
    if name == "large":
        return Shape(vocab, hidden=512, heads=8, inter=1408)
    return Shape(vocab)


def initial(shape: Shape, seed: int) -> Tensor:
    """Flat float32 weights to start from; the matrices that write to the residual stream begin at a smaller scale."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.empty(shape.numel()).normal_(0.0, 0.02, generator=generator)
    views = shape.views(flat)
    views["norms"].fill_(1.0)
    for layer in range(shape.layers):
        for name in ("out", "down"):
            views[f"{layer}.{name}"].mul_((2 * shape.layers) ** -0.5)
    return flat


def config_of(shape: Shape, tokenizer: PreTrainedTokenizerBase) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.inter,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head_dim,
        max_position_embeddings=2048,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _pairs(shape: Shape, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
    """`transformers` parameter names with the views of the flat buffer that hold them."""
    views = shape.views(flat)
    yield "model.embed_tokens.weight", views["embed"]
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}."
        for index, part in enumerate("qkv"):
            yield f"{prefix}self_attn.{part}_proj.weight", views[f"{layer}.qkv"][index]
        yield prefix + "self_attn.o_proj.weight", views[f"{layer}.out"][0]
        for index, part in enumerate(("gate", "up")):
            yield f"{prefix}mlp.{part}_proj.weight", views[f"{layer}.gate_up"][index]
        yield prefix + "mlp.down_proj.weight", views[f"{layer}.down"][0]
        yield prefix + "input_layernorm.weight", views["norms"][2 * layer]
        yield prefix + "post_attention_layernorm.weight", views["norms"][2 * layer + 1]
    yield "model.norm.weight", views["norms"][-1]


@torch.no_grad()
def to_transformers(shape: Shape, flat: Tensor, tokenizer: PreTrainedTokenizerBase) -> LlamaForCausalLM:
    """A `transformers` model with the weights of a flat buffer."""
    model = LlamaForCausalLM(config_of(shape, tokenizer))
    parameters = dict(model.named_parameters())
    for name, view in _pairs(shape, flat):
        parameters.pop(name).copy_(view)
    if parameters:
        raise ValueError(f"not set: {sorted(parameters)}")
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=False
    )
    return model.eval()


@torch.no_grad()
def from_transformers(shape: Shape, model: LlamaForCausalLM) -> Tensor:
    """The flat float32 weights of a `transformers` model."""
    flat = torch.empty(shape.numel())
    parameters = dict(model.named_parameters())
    for name, view in _pairs(shape, flat):
        view.copy_(parameters[name])
    return flat


def save(name: str, shape: Shape, flat: Tensor, tokenizer: PreTrainedTokenizerBase, folder: Path = ASSETS) -> Path:
    """Write a model in bfloat16 with its tokenizer; the old folder is replaced only when the new one is complete."""
    final, fresh, old = folder / name, folder / f".{name}.new", folder / f".{name}.old"
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    to_transformers(shape, flat, tokenizer).bfloat16().save_pretrained(fresh, max_shard_size=SHARD)
    tokenizer.save_pretrained(fresh)
    if final.exists():
        os.replace(final, old)
    os.replace(fresh, final)
    shutil.rmtree(old, ignore_errors=True)
    return final
