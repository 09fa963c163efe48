"""The distillation loss `L = L_DM + λ · L_NG` on traces; pure functions of logits (OmniDraft, equations 2, 3
and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from omnidemo.core.records import Trace

Divergence = Literal["forward", "reverse", "jsd", "tv", "acceptance", "nll"]
NgramLoss = Literal["nll", "dynamic", "kl"]
MASKED = -1e4  # logit of a masked id: finite, so that no gradient is NaN
LOG_FLOOR = -60.0  # smallest log-probability of the rest bucket, below which it has no gradient
P_FLOOR = 1e-8  # smallest target probability in a reverse KL
P_NOISE = 1e-6  # a rest bucket below this is rounding of float32 sums


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """The n counted positions of a batch of traces, and the r drafter tokens that spell them in the same
    order. First come `direct` positions that one token spells, in reading order, then the n-grams.

    `rows` [r, 2]: (index of the trace, logits row that predicts the token). `ids` [r]: the tokens to predict.
    `owner` [r]: their positions. `first` [n]: the first token of each position. `top_ids` [n, K]: drafter ids
    (−1: padding), and `top_p` [n, K] the target's raw probabilities of them. `ngram_p` [n]: that of the
    n-gram (0: none). `temperature` [n]: of the request. `first_ids` and `first_p` [n, F]: drafter ids and the
    raw probabilities that the target's text continues with them, n-grams included; None where a trace has
    none.
    """

    rows: Tensor
    ids: Tensor
    owner: Tensor
    first: Tensor
    top_ids: Tensor
    top_p: Tensor
    ngram_p: Tensor
    temperature: Tensor
    direct: int
    first_ids: Tensor | None = None
    first_p: Tensor | None = None

    def __len__(self) -> int:
        return len(self.first)

    def to(self, device: torch.device) -> Positions:
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "direct"}
        return replace(
            self, **{name: tensor.to(device) for name, tensor in given.items() if tensor is not None}
        )


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Scalars in nats ("tv": none): `total` = `direct` + λ · `ngram`, per position of `direct_loss` and per
    n-gram. With "dynamic" the target's probability of each n-gram replaces λ."""

    total: Tensor
    direct: Tensor
    ngram: Tensor


def spelled(trace: Trace) -> np.ndarray:
    """Which positions [n] have a spelling, and a row before it that predicts it (`starts` ≥ 1)."""
    return (
        (trace.starts >= 1) & (trace.lengths >= 1) & (trace.starts + trace.lengths <= len(trace.drafter_ids))
    )


def positions(traces: Sequence[Trace], errors_only: bool = False) -> Positions:
    """The spelled positions of one trace or more; errors_only: without accepted proposals."""
    width = max(trace.top_ids.shape[1] for trace in traces)
    widths = [0 if trace.first_ids is None else trace.first_ids.shape[1] for trace in traces]
    firsts = max(widths) if all(widths) else 0  # `first_ids` count where all traces have them
    found: list[dict[str, np.ndarray]] = []
    for index, trace in enumerate(traces):
        inside = spelled(trace) & ~trace.accepted if errors_only else spelled(trace)
        padding = ((0, 0), (0, width - trace.top_ids.shape[1]))
        part = {
            "trace": np.full(len(inside), index),
            "starts": trace.starts,
            "lengths": trace.lengths,
            "ngram_p": np.where(trace.lengths > 1, trace.p, 0.0),
            "top_ids": np.pad(trace.top_ids, padding, constant_values=-1),
            "top_p": np.pad(trace.top_p, padding),
            "temperature": np.full(len(inside), trace.temperature),
        }
        if firsts:
            padding = ((0, 0), (0, firsts - trace.first_ids.shape[1]))  # type: ignore[union-attr]
            part["first_ids"] = np.pad(trace.first_ids, padding, constant_values=-1)  # type: ignore[arg-type]
            part["first_p"] = np.pad(trace.first_p, padding)  # type: ignore[arg-type]
        found.append({name: values[inside] for name, values in part.items()})
    joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    single = joined["lengths"] == 1
    order = np.argsort(~single, kind="stable")  # the n-grams last
    joined = {name: values[order] for name, values in joined.items()}
    lengths = joined["lengths"]
    first = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)
    source, token = joined["trace"][owner], joined["starts"][owner] + np.arange(len(owner)) - first[owner]
    # where each trace begins among the drafter tokens of all
    begins = np.cumsum([0, *(len(trace.drafter_ids) for trace in traces)])
    ids = np.concatenate([trace.drafter_ids for trace in traces])[begins[source] + token]
    rows = np.stack([source, token - 1], axis=1)
    integers = {"rows": rows, "ids": ids, "owner": owner, "first": first, "top_ids": joined["top_ids"]}
    floats = {name: joined[name] for name in ("top_p", "ngram_p", "temperature")}
    if firsts:
        integers["first_ids"], floats["first_p"] = joined["first_ids"], joined["first_p"]
    return Positions(
        **{name: torch.from_numpy(values.astype(np.int64)) for name, values in integers.items()},
        **{name: torch.from_numpy(values.astype(np.float32)) for name, values in floats.items()},
        direct=int(single.sum()),
    )


def newest(trace: Trace, window: int) -> Trace:
    """The trace cut to its last `window` drafter tokens, without positions that no row predicts then."""
    drop = len(trace.drafter_ids) - window
    return trace if drop <= 0 else _cut(trace, trace.starts > drop, drop, len(trace.drafter_ids))


def _cut(trace: Trace, kept: np.ndarray, drop: int, end: int) -> Trace:
    """The drafter tokens from `drop` to `end`, and the `kept` positions."""
    names = ("lengths", "accepted", "p", "top_ids", "top_p")
    cut: dict[str, np.ndarray | None] = {name: getattr(trace, name)[kept] for name in names}
    for name in ("copied", "first_ids", "first_p"):
        whole = getattr(trace, name)
        cut[name] = None if whole is None else whole[kept]
    return replace(trace, drafter_ids=trace.drafter_ids[drop:end], starts=trace.starts[kept] - drop, **cut)  # type: ignore[arg-type]


def parts(trace: Trace, window: int) -> Iterator[Trace]:
    """The trace in parts of at most `window` drafter tokens. Each spelled position is in one part, with half
    a window before it where the trace has so much."""
    ends, left = trace.starts + trace.lengths, spelled(trace)
    while left.any():
        end = int(ends[left].max())
        drop = max(0, end - window)
        own = left & (trace.starts > (drop + window // 2 if drop else 0))
        if not own.any():  # longer than half a window
            own = left & (ends == end) & (trace.starts > drop)
            if not own.any():
                left &= ends < end
                continue
        yield _cut(trace, own, drop, end)
        left &= ~own


def log_q_with_rest(logits: Tensor, top_ids: Tensor) -> tuple[Tensor, Tensor]:
    """log q of the top ids [m, K] (0 at padding) and of all other ids together [m], from logits [m, D]. The
    latter is the logsumexp of their logits: `log(1 − Σ q)` would lose all digits where Σ q is near 1."""
    valid = top_ids >= 0
    safe = torch.where(valid, top_ids, top_ids[:, :1])  # padding points at an id that is in the top anyway
    total = logits.logsumexp(-1)
    log_q = torch.where(valid, logits.gather(1, safe) - total[:, None], 0.0)
    others = logits.scatter(1, safe, MASKED).logsumexp(-1)
    return log_q, (others - total).clamp(min=LOG_FLOOR)


def direct_divergence(
    logits: Tensor, top_ids: Tensor, top_p: Tensor, kind: Divergence = "forward", beta: float = 0.5
) -> Tensor:
    """Divergence [m] in nats ("tv": none) between drafter (logits [m, D]) and target over K top tokens and
    the rest bucket; with K = vocabulary the full divergence.

    "forward" is D(p ‖ q), "reverse" D(q ‖ p), "tv" ½ Σ |p − q|. "acceptance" is −log Σ min(p, q)
    (2602.23881), whose gradient is largest where little would be accepted. "jsd" is β·D(p ‖ M) + (1 − β)·D(q
    ‖ M) with M = β·p + (1 − β)·q, as in GKD and OSD: β → 0 behaves like the forward KL, β → 1 like the
    reverse one. ValueError for another kind ("nll" needs the emitted token: see `direct_loss`).
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
    # The other kinds treat the rest as one more token. Padding has p = q = 0.
    p = torch.cat([p, rest[:, None]], dim=-1)
    log_q = torch.cat([torch.where(valid, log_q, 2 * LOG_FLOOR), log_q_rest[:, None]], dim=-1)
    q = log_q.exp()
    if kind == "tv":
        return (p - q).abs().sum(-1) / 2
    if kind == "acceptance":
        return -torch.minimum(p.log().clamp(min=2 * LOG_FLOOR), log_q).logsumexp(-1)
    if kind == "jsd":
        mixture = (beta * p + (1 - beta) * q).clamp(min=torch.finfo(q.dtype).tiny).log()
        towards_p = torch.xlogy(p, p) - p * mixture
        return (beta * towards_p + (1 - beta) * q * (log_q - mixture)).sum(-1)
    raise ValueError(
        f"Unknown divergence {kind!r}: use 'forward', 'reverse', 'jsd', 'tv', 'acceptance' or 'nll'."
    )


def first_positions(at: Positions, ngram: NgramLoss = "nll") -> int:
    """The number of positions of `direct_loss`; "kl" does not use `first_ids`."""
    return at.direct if at.first_ids is None or ngram == "kl" else len(at)


def direct_loss(logits: Tensor, at: Positions, kind: Divergence = "forward", beta: float = 0.5) -> Tensor:
    """The loss of each position's first token from logits [r, D]: [n] with `first_ids`, else [m] of the
    directly mapped positions. A divergence, or with "nll" −log q of the emitted token."""
    count = first_positions(at)
    rows = logits[at.first[:count]]
    if kind == "nll":
        return torch.nn.functional.cross_entropy(rows.float(), at.ids[at.first[:count]], reduction="none")
    if at.first_ids is None or at.first_p is None:
        return direct_divergence(rows, at.top_ids[:count], at.top_p[:count], kind, beta)
    return direct_divergence(rows, at.first_ids, at.first_p, kind, beta)


def ngram_divergence(logits: Tensor, at: Positions) -> Tensor:
    """The approximate KL [g] of equation 2, D(q' ‖ p) in nats, at each n-gram; logits [r, D].

    q' gives the n-gram its product Π q(d_j), subtracts that product from the first sub-token, and equals q
    elsewhere. The rest bucket has all ids outside the top, and the remainder of a first sub-token that is not
    in the top.
    """
    m = at.direct  # positions with one token each, so of tokens too
    logits, ids, owner, first = logits[m:].float(), at.ids[m:], at.owner[m:] - m, at.first[m:] - m
    top_ids, p_product = at.top_ids[m:], at.ngram_p[m:]
    log_q_sub = logits.log_softmax(-1).gather(1, ids[:, None]).squeeze(1)
    log_first = log_q_sub[first]
    # log Π of the later sub-tokens
    after = log_q_sub.new_zeros(len(first)).index_add(0, owner, log_q_sub.index_fill(0, first, 0.0))
    log_product = log_first + after
    left = log_first + torch.log(-torch.expm1(after.clamp(max=-1e-6)))  # log of q(d1) − Π q(d_j)

    is_first = top_ids == ids[first][:, None]
    others = torch.where(is_first, -1, top_ids)
    known = torch.cat([ids[first][:, None], others], dim=-1)  # begins with a valid id, as padding needs it
    log_q, log_rest = log_q_with_rest(logits[first], known)
    in_top = is_first.any(-1)
    p = torch.where(top_ids >= 0, at.top_p[m:], 0.0)
    p_rest = 1 - p.sum(-1) - p_product
    p_rest = torch.where(p_rest > P_NOISE, p_rest, 0.0)

    def term(log_value: Tensor, target: Tensor) -> Tensor:
        return log_value.exp() * (log_value - target.clamp(min=P_FLOOR).log())

    top = torch.where(others >= 0, term(log_q[:, 1:], p), 0.0).sum(-1)
    first_p = torch.where(is_first, p, 0.0).sum(-1)
    rest = torch.where(
        in_top, term(left, first_p) + term(log_rest, p_rest), term(torch.logaddexp(left, log_rest), p_rest)
    )
    return top + term(log_product, p_product) + rest


def distillation(
    logits: Tensor,
    at: Positions,
    weight: float = 0.2,
    kind: Divergence = "forward",
    ngram: NgramLoss = "nll",
    beta: float = 0.5,
) -> Losses:
    """The loss of a batch from the logits [r, D] of its rows; 0 for a kind without positions.

    With `first_ids` the drafter's first token at every position is compared with the probability that the
    target's text continues with it, and an n-gram's later tokens with the emitted ones. Without, as in
    OmniDraft, only directly mapped tokens are compared, and the target's probability of n-grams belongs to
    tokens that must not be drafted; a drafter that knows n-grams then unlearns how they begin
    (lab/notebook/loss-on-real-text.md). `weight` is λ. `ngram`: "nll" is −Σ log q(d_j); "dynamic" the same
    with p(t), the target's probability of the n-gram, in place of λ; "kl" is equation 2, without `first_ids`.
    """
    if ngram == "kl":
        at = replace(at, first_ids=None, first_p=None)
    m, ngrams, zero = at.direct, len(at) - at.direct, logits.sum() * 0.0
    direct = direct_loss(logits, at, kind, beta).mean() if m or at.first_ids is not None else zero
    if not ngrams:
        return Losses(direct + zero, direct, zero)
    if ngram == "kl":
        divergence = ngram_divergence(logits, at).mean()
        return Losses(direct + weight * divergence, direct, divergence)
    if ngram not in ("nll", "dynamic"):
        raise ValueError(f"Unknown n-gram loss {ngram!r}: use 'nll', 'dynamic' or 'kl'.")
    nll = torch.nn.functional.cross_entropy(logits[m:].float(), at.ids[m:], reduction="none")
    if at.first_ids is not None:
        nll = nll.index_fill(0, at.first[m:] - m, 0.0)
    likelihood = nll.sum() / ngrams
    weighted = (at.ngram_p[at.owner[m:]] * nll).sum() / ngrams if ngram == "dynamic" else weight * likelihood
    return Losses(direct + weighted, direct, likelihood)
