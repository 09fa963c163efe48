"""The distillation loss `L = L_DM + λ · L_NG` on traces; pure functions of logits (OmniDraft, equations 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from omnidemo.records import Trace

Divergence = Literal["forward", "reverse"]
MASKED = -1e4  # a logit that is as good as gone, and finite, so that no gradient turns into NaN
LOG_FLOOR = -60.0  # smallest log-probability of the rest bucket; below it there is no gradient either
P_FLOOR = 1e-8  # smallest target probability in a reverse KL
P_NOISE = 1e-6  # a rest bucket below this is rounding of float32 sums


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """The positions of a batch of traces that count: m directly mapped ones, s sub-tokens of n-grams.

    `direct` [m, 2] and `sub` [s, 2] hold (index of the trace, logits row that predicts the drafter token). `top_ids` [m, K]
    are drafter ids (−1: padding), `top_p` [m, K] the target's raw probabilities, `sub_ids` [s] the drafter ids to predict,
    `sub_p` [s] the target's probability of the n-gram they belong to, `ngrams` the number of n-grams.
    """

    direct: Tensor
    top_ids: Tensor
    top_p: Tensor
    sub: Tensor
    sub_ids: Tensor
    sub_p: Tensor
    ngrams: int

    def __len__(self) -> int:
        return len(self.direct) + self.ngrams

    def to(self, device: torch.device) -> Positions:
        names = ("direct", "top_ids", "top_p", "sub", "sub_ids", "sub_p")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """`total` = `direct` + λ · `ngram`, scalars in nats: per directly mapped position, and per n-gram (summed over its sub-tokens)."""

    total: Tensor
    direct: Tensor
    ngram: Tensor


def positions(traces: Sequence[Trace]) -> Positions:
    """Collect what counts: positions with a spelling, and with a row before it that predicts it (so `starts` ≥ 1)."""
    width = max((trace.top_ids.shape[1] for trace in traces), default=0)
    direct, top_ids, top_p, sub, sub_ids, sub_p, ngrams = [], [], [], [], [], [], 0
    for index, trace in enumerate(traces):
        inside = (trace.starts >= 1) & (trace.starts + trace.lengths <= len(trace.drafter_ids))
        mapped = np.flatnonzero(inside & (trace.lengths == 1))
        direct.append(np.stack([np.full(len(mapped), index), trace.starts[mapped].astype(np.int64) - 1], axis=1))
        padding = ((0, 0), (0, width - trace.top_ids.shape[1]))
        top_ids.append(np.pad(trace.top_ids[mapped].astype(np.int64), padding, constant_values=-1))
        top_p.append(np.pad(trace.top_p[mapped].astype(np.float32), padding))
        for position in np.flatnonzero(inside & (trace.lengths >= 2)):
            start, length = int(trace.starts[position]), int(trace.lengths[position])
            sub += [(index, start + offset - 1) for offset in range(length)]
            sub_ids += [int(one) for one in trace.drafter_ids[start : start + length]]
            sub_p += [float(trace.p[position])] * length
            ngrams += 1
    return Positions(
        direct=torch.from_numpy(np.concatenate(direct) if direct else np.zeros((0, 2), np.int64)),
        top_ids=torch.from_numpy(np.concatenate(top_ids) if top_ids else np.zeros((0, 0), np.int64)),
        top_p=torch.from_numpy(np.concatenate(top_p) if top_p else np.zeros((0, 0), np.float32)),
        sub=torch.tensor(sub, dtype=torch.int64).reshape(-1, 2),
        sub_ids=torch.tensor(sub_ids, dtype=torch.int64),
        sub_p=torch.tensor(sub_p, dtype=torch.float32),
        ngrams=ngrams,
    )


def newest(trace: Trace, window: int) -> Trace:
    """The trace cut to its last `window` drafter tokens, without the positions that then have no row to predict them."""
    drop = len(trace.drafter_ids) - window
    if drop <= 0:
        return trace
    kept = trace.starts > drop
    fields = ("lengths", "accepted", "p", "top_ids", "top_p")
    cut = {name: getattr(trace, name)[kept] for name in fields}
    return replace(trace, drafter_ids=trace.drafter_ids[drop:], starts=trace.starts[kept] - drop, **cut)


def log_q_with_rest(logits: Tensor, top_ids: Tensor) -> tuple[Tensor, Tensor]:
    """log q of the top ids [m, K] (0 at padding) and of everything else [m]; q is not renormalised. Logits [m, D].

    The rest is the logsumexp of the other logits, never `log(1 − Σ q)`, which loses all digits where Σ q is near 1.
    """
    valid = top_ids >= 0
    safe = torch.where(valid, top_ids, top_ids[:, :1])  # padding points at an id that is in the top anyway
    total = logits.logsumexp(-1)
    log_q = torch.where(valid, logits.gather(1, safe) - total[:, None], 0.0)
    others = logits.scatter(1, safe, MASKED).logsumexp(-1)
    return log_q, (others - total).clamp(min=LOG_FLOOR)


def direct_divergence(logits: Tensor, top_ids: Tensor, top_p: Tensor, kind: Divergence = "forward") -> Tensor:
    """Divergence [m], in nats, between drafter (logits [m, D]) and target over K top tokens and the rest bucket.

    "forward" is D(p ‖ q), "reverse" D(q ‖ p). With K = vocabulary it is the full KL.
    """
    log_q, log_q_rest = log_q_with_rest(logits.float(), top_ids)
    valid = top_ids >= 0
    p = torch.where(valid, top_p.float(), 0.0)
    rest = 1 - p.sum(-1)
    rest = torch.where(rest > P_NOISE, rest, 0.0)
    if kind == "forward":
        return (torch.xlogy(p, p) - p * log_q).sum(-1) + torch.xlogy(rest, rest) - rest * log_q_rest
    if kind == "reverse":
        terms = torch.where(valid, log_q.exp() * (log_q - p.clamp(min=P_FLOOR).log()), 0.0)
        return terms.sum(-1) + log_q_rest.exp() * (log_q_rest - rest.clamp(min=P_FLOOR).log())
    raise ValueError(f"Unknown divergence {kind!r}: use 'forward' or 'reverse'.")


def distillation(
    direct_logits: Tensor,
    sub_logits: Tensor,
    at: Positions,
    weight: float | Literal["dynamic"] = 0.5,
    kind: Divergence = "forward",
) -> Losses:
    """The loss of a batch from the logits of its rows: [m, D] for `at.direct`, [s, D] for `at.sub`.

    `weight` is λ; "dynamic" weighs every n-gram by the target's probability of it, p(t). No positions of a kind: zero.
    """
    zero = direct_logits.sum() * 0.0 + sub_logits.sum() * 0.0
    direct = direct_divergence(direct_logits, at.top_ids, at.top_p, kind).mean() if len(at.direct) else zero
    if not at.ngrams:
        return Losses(direct + zero, direct, zero)
    nll = torch.nn.functional.cross_entropy(sub_logits.float(), at.sub_ids, reduction="none")
    ngram = nll.sum() / at.ngrams
    weighted = (at.sub_p * nll).sum() / at.ngrams if weight == "dynamic" else weight * ngram
    return Losses(direct + weighted, direct, ngram)
