"""A lean Llama for training on a CPU: fused projections, one thread per worker, and a cross-entropy that
keeps no logits.

It computes what `transformers` computes, with one addition: a token sees only the chat that it belongs to,
though many are packed in a row. Because rotary positions are relative, that is exactly what it sees when the
chat stands alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lab.drafters.spelling import WHOLE

from .flat_llama import EMBEDDING, LAST_NORM, Shape, parts_of

BLOCK = 128  # queries at a time
ROWS = 256  # rows of logits at a time

Function = Callable[..., Any]


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


def _look(q: Tensor, k: Tensor, v: Tensor, place: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Mixed values and attention weights of a block of queries (heads, queries, size) over keys; places count
    from the first key."""
    scores = torch.bmm(q, k.transpose(1, 2)).float()
    keys = torch.arange(k.shape[1])
    seen = (keys <= place[:, None]) & (keys >= start[:, None])
    scores = torch.where(seen, scores, -1e30)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = (weights / weights.sum(-1, keepdim=True)).to(v.dtype)
    return torch.bmm(weights, v), weights


def _look_back(
    gradient: Tensor, weights: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values of `_look`."""
    exact = weights.float()
    scores = exact * torch.bmm(gradient, v.transpose(1, 2)).float()
    scores = (scores - exact * scores.sum(-1, keepdim=True)).to(q.dtype)
    return (
        torch.bmm(scores, k),
        torch.bmm(scores.transpose(1, 2), q),
        torch.bmm(weights.transpose(1, 2), gradient),
    )


class _Attention(torch.autograd.Function):
    """Causal attention that reaches back to `start` of each position.

    Blocks of queries are multiplied with the keys from the beginning of their chats on, and not with other
    chats of the row. Plain products: the fused kernel of PyTorch is slower on a CPU.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, start: Tensor, look: Function, look_back: Function
    ) -> Tensor:
        length = q.shape[2]
        q, k, v = (q * q.shape[-1] ** -0.5).contiguous(), k.contiguous(), v.contiguous()
        out, place, blocks = torch.empty_like(q), torch.arange(length), []
        for row, low in itertools.product(range(len(q)), range(0, length, BLOCK)):
            high, first = min(low + BLOCK, length), int(start[row, low]) // BLOCK * BLOCK
            seen = place[low:high] - first, start[row, low:high] - first
            out[row, :, low:high], weights = look(
                q[row, :, low:high], k[row, :, first:high], v[row, :, first:high], *seen
            )
            blocks.append((row, low, high, first, weights))
        ctx.save_for_backward(q, k, v)
        ctx.blocks, ctx.look_back = blocks, look_back
        return out

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        gradient = outer[0].contiguous()
        of_q, of_k, of_v = (
            torch.empty_like(q),
            torch.zeros_like(k, dtype=torch.float32),
            torch.zeros_like(v, dtype=torch.float32),
        )
        for row, low, high, first, weights in ctx.blocks:
            queries, keys = (row, slice(None), slice(low, high)), (row, slice(None), slice(first, high))
            of_q[queries], key_part, value_part = ctx.look_back(
                gradient[queries], weights, q[queries], k[keys], v[keys]
            )
            of_k[keys] += key_part
            of_v[keys] += value_part
        return of_q * q.shape[-1] ** -0.5, of_k.to(k.dtype), of_v.to(v.dtype), None, None, None


def _enter(
    x: Tensor, qkv: Sequence[Tensor], before: Tensor, cos: Tensor, sin: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a layer, each (batch, heads, length, size). The three matrices are
    multiplied as one."""
    batch, length, _ = x.shape
    projected = F.linear(_norm(x, before), torch.cat(list(qkv)))
    q, k, v = projected.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    return _turn(q, cos, sin), _turn(k, cos, sin), v


def _leave(
    x: Tensor, mixed: Tensor, out: Tensor, gate_up: Sequence[Tensor], down: Tensor, after: Tensor
) -> Tensor:
    """The residual stream after a layer. It stays float32; products run in the type of the weights."""
    x = x + F.linear(mixed.transpose(1, 2).reshape(*x.shape[:2], -1), out)
    gate, up = F.linear(_norm(x, after), torch.cat(list(gate_up))).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


class _Loss(torch.autograd.Function):
    """Summed cross-entropy of tied logits with labels [n, K], ids and their weights, which sum to 1 in each
    row; the gradient of the embedding is added to `sink` directly, in float32."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, embed: Tensor, labels: Tensor, weights: Tensor, sink: Tensor, scale: float
    ) -> Tensor:
        total, gradient = x.new_zeros((), dtype=torch.float32), torch.empty_like(x)
        for low in range(0, len(x), ROWS):
            rows, goal, weight = (part[low : low + ROWS] for part in (x, labels, weights))
            logits = (rows @ embed.T).float()
            norm = logits.logsumexp(-1, keepdim=True)
            total += norm.sum() - (weight * logits.gather(1, goal)).sum()
            share = logits.sub_(norm).exp_()
            share.scatter_add_(1, goal, -weight)
            share = share.mul_(scale).to(x.dtype)
            gradient[low : low + ROWS] = share @ embed
            sink += share.T @ rows
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[0], None, None, None, None, None


def labels_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The labels [batch, length, K] of each token and their weights, which sum to 1, from rows [batch,
    channels, length]. Channels: ids, mask, beginning of the chat, K labels, K weights as parts of `WHOLE`."""
    ids, weights = rows[:, 3:].chunk(2, 1)
    return ids.transpose(1, 2), weights.transpose(1, 2).float() / WHOLE


class TrainingLlama:
    """Runs microbatches on weights that live in a flat buffer and adds their gradients to another."""

    def __init__(self, shape: Shape, weights: Tensor, gradient: Tensor, compiled: bool) -> None:
        self.shape = shape
        self.leaves = {name: view.detach().requires_grad_() for name, view in shape.views(weights).items()}
        self.sinks = shape.views(gradient)
        # a kernel for each number of keys: up to 16 in rows of 2,048 tokens, and their last, shorter blocks
        if compiled:
            torch._dynamo.config.cache_size_limit = 64

        def fast(function: Function) -> Function:
            return torch.compile(function, dynamic=False) if compiled else function

        self.enter, self.leave, self.look, self.look_back = (
            fast(_enter),
            fast(_leave),
            fast(_look),
            fast(_look_back),
        )

    def hidden(self, tokens: Tensor, start: Tensor) -> Tensor:
        """The normalised last hidden states of rows of tokens."""
        leaves, shape = self.leaves, self.shape
        cos, sin = rope(tokens.shape[1], shape.head_dim)
        x = F.embedding(tokens, leaves[EMBEDDING]).float()
        for layer in range(shape.layers):
            *qkv, out, gate, up, down, before, after = (leaves[name] for name in parts_of(layer))
            q, k, v = self.enter(x, qkv, before, cos, sin, shape.heads)
            mixed = _Attention.apply(q, k, v, start, self.look, self.look_back)
            x = self.leave(x, mixed, out, (gate, up), down, after)
        return _norm(x, leaves[LAST_NORM])

    def step(self, rows: Tensor, scale: float) -> float:
        """Forward and backward of rows [batch, channels, length] (see `labels_of`); `scale` is one over the
        number of loss tokens of the whole batch. Returns the summed loss."""
        tokens, learned = rows[:, 0], rows[:, 1, 1:].bool()
        x = self.hidden(tokens, rows[:, 2])[:, :-1]
        labels, weights = (part[:, 1:][learned] for part in labels_of(rows))
        embed, sink = self.leaves[EMBEDDING].detach(), self.sinks[EMBEDDING]
        loss = _Loss.apply(x[learned], embed, labels, weights, sink, scale)
        loss.backward()
        for name, leaf in self.leaves.items():
            assert leaf.grad is not None
            self.sinks[name].add_(leaf.grad)
            leaf.grad = None
        return float(loss.detach())
