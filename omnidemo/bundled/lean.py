"""A lean Llama for training on a CPU: fused projections, one thread per worker, and a cross-entropy that keeps no logits.

It computes what `transformers` computes, with one addition: a token sees only the chat that it belongs to, though many are packed in a row.
Because rotary positions are relative, that is exactly what it sees when the chat stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .family import Shape

BLOCK = 128  # queries at a time: keys after them are never multiplied
ROWS = 256  # rows of logits at a time


def rope(length: int, head_dim: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary positions, as Llama has them."""
    inverse = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(length).float(), inverse)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def _norm(x: Tensor, weight: Tensor) -> Tensor:
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(weight.dtype)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)


def _attend(q: Tensor, k: Tensor, v: Tensor, start: Tensor) -> Tensor:
    """Causal attention that reaches back to `start` of each position. Plain products: the fused kernel is slower on a CPU."""
    batch, heads, length, size = q.shape
    q = (q * size**-0.5).reshape(-1, length, size)
    k, v = k.reshape(-1, length, size), v.reshape(-1, length, size)
    place = torch.arange(length)
    out = []
    for low in range(0, length, BLOCK):
        high = min(low + BLOCK, length)
        scores = torch.bmm(q[:, low:high], k[:, :high].transpose(1, 2)).float().view(batch, heads, high - low, high)
        seen = (place[None, None, :high] <= place[None, low:high, None]) & (place[None, None, :high] >= start[:, low:high, None])
        scores = torch.where(seen[:, None], scores, -1e30)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = (weights / weights.sum(-1, keepdim=True)).to(v.dtype)
        out.append(torch.bmm(weights.view(-1, high - low, high), v[:, :high]))
    return torch.cat(out, 1).view(batch, heads, length, size)


def block(
    x: Tensor, qkv: Tensor, out: Tensor, gate_up: Tensor, down: Tensor, before: Tensor, after: Tensor,
    cos: Tensor, sin: Tensor, start: Tensor, heads: int = 1,
) -> Tensor:  # fmt: skip
    """One layer. The residual stream stays float32, products run in the type of the weights."""
    batch, length, hidden = x.shape
    inner = qkv.shape[1]
    projected = F.linear(_norm(x, before), qkv.reshape(3 * inner, hidden))
    q, k, v = projected.view(batch, length, 3, heads, inner // heads).permute(2, 0, 3, 1, 4).unbind(0)
    mixed = _attend(_turn(q, cos, sin), _turn(k, cos, sin), v, start)
    x = x + F.linear(mixed.transpose(1, 2).reshape(batch, length, inner), out[0])
    gate, up = F.linear(_norm(x, after), gate_up.reshape(-1, hidden)).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down[0])


class _Loss(torch.autograd.Function):
    """Summed cross-entropy of tied logits; the gradient of the embedding is added to `sink` directly, in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, embed: Tensor, target: Tensor, sink: Tensor, scale: float) -> Tensor:
        total, gradient = x.new_zeros((), dtype=torch.float32), torch.empty_like(x)
        for low in range(0, len(x), ROWS):
            rows, goal = x[low : low + ROWS], target[low : low + ROWS, None]
            logits = (rows @ embed.T).float()
            norm = logits.logsumexp(-1, keepdim=True)
            total += (norm - logits.gather(1, goal)).sum()
            share = logits.sub_(norm).exp_()
            share.scatter_add_(1, goal, torch.full_like(goal, -1, dtype=share.dtype))
            share = share.mul_(scale).to(x.dtype)
            gradient[low : low + ROWS] = share @ embed
            sink += share.T @ rows
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[0], None, None, None, None


class Lean:
    """Runs microbatches on weights that live in a flat buffer and adds their gradients to another."""

    def __init__(self, shape: Shape, weights: Tensor, gradient: Tensor, compiled: bool) -> None:
        self.shape = shape
        self.leaves = {name: view.detach().requires_grad_() for name, view in shape.views(weights).items()}
        self.sinks = shape.views(gradient)
        self.block: Callable[..., Tensor] = torch.compile(block, dynamic=False) if compiled else block

    def hidden(self, tokens: Tensor, start: Tensor) -> Tensor:
        """The normalised last hidden states of rows of tokens."""
        leaves, shape = self.leaves, self.shape
        cos, sin = rope(tokens.shape[1], shape.head_dim)
        x = F.embedding(tokens, leaves["embed"]).float()
        for layer in range(shape.layers):
            parts = [leaves[f"{layer}.{name}"] for name in ("qkv", "out", "gate_up", "down")]
            norms = [leaves["norms"][2 * layer], leaves["norms"][2 * layer + 1]]
            x = self.block(x, *parts, *norms, cos, sin, start, heads=shape.heads)
        return _norm(x, leaves["norms"][-1])

    def step(self, tokens: Tensor, mask: Tensor, start: Tensor, scale: float) -> float:
        """Forward and backward; `scale` is one over the number of loss tokens of the whole batch. Returns the summed loss."""
        x = self.hidden(tokens, start)[:, :-1]
        rows = mask[:, 1:].bool()
        loss = _Loss.apply(x[rows], self.leaves["embed"].detach(), tokens[:, 1:][rows], self.sinks["embed"], scale)
        loss.backward()
        for name, leaf in self.leaves.items():
            assert leaf.grad is not None
            self.sinks[name].add_(leaf.grad)
            leaf.grad = None
        return float(loss.detach())
