"""The acceptance head: a small network that says how likely the target accepts a drafted token (SpecDec++;
OmniDraft, equation 5).

Its weights are a plain mapping of float32 tensors: `block0.weight` [H+1, H+1] and `block0.bias` [H+1] of a
residual block, `out.weight` [H+1] and `out.bias` [] of the output. H is the width of the drafter's hidden
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1e-6  # added to the mean square of a hidden state
CERTAIN = -1e-20  # largest log-probability of a slot, so that the log of its complement is finite
# of the first logit over log q: a fresh head gives P(accepted) ≈ q within 0.2, as a calibrated drafter has it
SLOPE, LEVEL = 2.0, 1.5


def fresh(width: int, seed: int = 0) -> dict[str, Tensor]:
    """Weights of an untrained head for hidden states of `width` numbers: a block near the identity,
    P(accepted) near q."""
    size = width + 1
    return {
        "block0.weight": torch.randn(size, size, generator=torch.Generator().manual_seed(seed)) * 0.01,
        "block0.bias": torch.zeros(size),
        "out.weight": torch.zeros(size).index_fill(0, torch.tensor([width]), SLOPE),
        "out.bias": torch.tensor(LEVEL),
    }


def fits(weights: Mapping[str, Tensor], width: int) -> bool:
    """Whether these are whole, finite weights of a head for hidden states of `width` numbers."""
    wanted = fresh(width)
    return wanted.keys() == weights.keys() and all(
        weights[name].shape == tensor.shape and bool(weights[name].isfinite().all())
        for name, tensor in wanted.items()
    )


def logit(weights: Mapping[str, Tensor], hidden: Tensor, log_q: Tensor) -> Tensor:
    """Logit [n] of P(accepted) from hidden states [n, H] and log q [n] of the tokens drawn from them.

    x = [h / rms(h), log q], then x + SiLU(W·x + b), then a linear layer: the scale of h differs between
    models, and a learning rate should suit all of them.
    """
    hidden = hidden.float()
    rms = hidden.square().mean(-1, keepdim=True).add(SMALLEST).sqrt()
    x = torch.cat([hidden / rms, log_q.float()[:, None]], dim=-1)
    x = x + torch.nn.functional.silu(
        torch.nn.functional.linear(x, weights["block0.weight"], weights["block0.bias"])
    )
    return x @ weights["out.weight"] + weights["out.bias"]


def slot_log_probability(logits: Tensor, slot: Tensor, slots: int) -> Tensor:
    """log P(accepted) [slots]: a slot is accepted as a whole, with the product over its tokens; `slot` [n]
    numbers them."""
    return logits.new_zeros(slots).index_add(0, slot, torch.nn.functional.logsigmoid(logits))


def slot_loss(logits: Tensor, slot: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy in nats, mean over the slots, of logits [n] of drafted tokens that belong to slots
    `slot` [n].

    `labels` [slots] are probabilities of acceptance. SpecDec++ gives the part of the rejections more weight,
    which makes a head more careful than the truth; here both count alike, so that it stays calibrated.
    """
    log_p = slot_log_probability(logits, slot, len(labels))
    rejected = torch.log(-torch.expm1(log_p.clamp(max=CERTAIN)))
    return -(labels * log_p + (1 - labels) * rejected).mean()


class NumpyHead:
    """The head for drafting: one token at a time, without torch's overhead."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        plain = {
            name: np.array(tensor.detach().cpu().numpy(), dtype=np.float32, order="C")
            for name, tensor in weights.items()
        }
        self._weight, self._inner_bias = plain["block0.weight"], plain["block0.bias"]
        self._out, self._bias = plain["out.weight"], float(plain["out.bias"])

    def __call__(self, hidden: np.ndarray, log_q: float) -> float:
        """P(accepted) of a token with log q, drawn from the hidden state [H] (float32)."""
        width = len(hidden)
        x = np.empty(width + 1, dtype=np.float32)
        np.multiply(hidden, (float(np.dot(hidden, hidden)) / width + SMALLEST) ** -0.5, out=x[:width])
        x[width] = log_q
        inner = self._weight.dot(x)
        inner += self._inner_bias
        x = x + inner * (0.5 + 0.5 * np.tanh(0.5 * inner))  # SiLU, without an overflow
        value = float(self._out.dot(x)) + self._bias
        return cast(float, 1 / (1 + np.exp(-value))) if value > -80 else 0.0
