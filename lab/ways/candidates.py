"""A drafter's likeliest candidates at each token of a recorded answer, and what chance one of them has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.drafters.guesses import at_places, penalised, places_of, trace_of
from lab.drafters.shards import Recorded
from lab.drafters.spelling import Spelling
from omnidemo.learning.distill.losses import Positions, positions

WIDTH = 3  # candidates of a place
DRAWS = 4  # draws of the noise of a seed


@dataclass(slots=True)
class Candidates:
    """Of one answer's n tokens. `place` [n]: which candidate of the drafter was written, from 1; 0: none. A
    candidate is one of its `WIDTH` likeliest tokens, followed by the likeliest ones where a token of the
    target needs several. `sure` [n, WIDTH]: their probabilities, each of its first token. `steps`: drafter
    tokens for one of the target. `given` [n]: the target's probability of the first candidate, at the
    temperature of the answer and among its 16 most probable tokens; `share` [n]: that ÷ the highest one.
    `bounds` [n, 3 · WIDTH]: see `bounds_of`."""

    answer: Recorded
    place: NDArray[np.int64]
    sure: NDArray[np.float64]
    steps: float
    given: NDArray[np.float64]
    share: NDArray[np.float64]
    bounds: NDArray[np.float64]


@torch.inference_mode()
def candidates(model: Any, answer: Recorded, spelling: Spelling) -> Candidates | None:
    """None for an answer that the drafter cannot spell. `model` is one of `transformers`."""
    found = trace_of(answer, spelling)
    if found is None:
        return None
    trace, first = found
    at = positions([trace])
    raw = model(torch.from_numpy(trace.drafter_ids.astype(np.int64))[None]).logits[0].float()
    logits = penalised(raw, trace.drafter_ids, first, answer.penalty)[at.rows[:, 1]]
    sure, likeliest = logits[at.first].softmax(-1).topk(WIDTH)
    missed = (logits.argmax(-1) != at.ids).long()
    missed[at.first] = 0
    whole = missed.new_zeros(len(at)).index_add(0, at.owner, missed) == 0
    right = (likeliest == at.ids[at.first][:, None]) & whole[:, None]
    place = torch.where(right.any(-1), right.long().argmax(-1) + 1, 0)
    given, share = _allowed(answer.temperature, at, likeliest[:, 0], place == 1)
    places, bounds = places_of(trace), bounds_of(raw[at.rows[:, 1]], at)
    spread, steps = partial(at_places, places, len(trace.starts)), float(trace.lengths[places].mean())
    return Candidates(
        answer, spread(place).astype(np.int64), spread(sure), steps, spread(given), spread(share),
        spread(bounds),
    )  # fmt: skip


def _allowed(temperature: float, at: Positions, guess: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """([n] the target's probability of a guess, [n] that ÷ its highest one)."""
    p = torch.cat([torch.where(at.top_ids >= 0, at.top_p, 0.0), at.ngram_p[:, None]], 1)
    p = p ** (1 / (temperature or 1.0))
    p = p / p.sum(-1, keepdim=True).clamp(min=1e-30)
    ngram = right & (at.ngram_p > 0)
    named = torch.where(at.top_ids == guess[:, None], p[:, :-1], 0.0).sum(-1)
    given = torch.where(ngram, p[:, -1], torch.where(at.ngram_p > 0, 0.0, named))
    return given, given / p.max(-1).values.clamp(min=1e-30)


def bounds_of(logits: Tensor, at: Positions) -> Tensor:
    """[n, 3 · WIDTH], the chance that one of 1 … `WIDTH` candidates is accepted, at temperature 1. First the
    most that any lossless scheme can accept of candidates drawn independently (optimal transport, SpecTr): 1
    + min over sets H of tokens of p(H) − q(H)^count. Then of a drafter's likeliest ones. Then with a seed:
    both sides add one noise to their log-probabilities, and the target's winner is among the drafter's
    first. A token that needs several drafter tokens counts with their product."""
    q = logits[at.first].softmax(-1)
    own = logits.log_softmax(-1).gather(1, at.ids[:, None]).squeeze(1)
    product = own.new_zeros(len(at)).index_add(0, at.owner, own).exp()
    product[: at.direct] = 0.0
    # the n-gram as one more token, which takes its part from the first token of its spelling
    q = q.scatter_add(1, at.ids[at.first][:, None], -product[:, None]).clamp(min=0.0)
    q = torch.cat([q, product[:, None]], 1)
    p = torch.zeros_like(q).scatter_add(
        1, at.top_ids.clamp(min=0), torch.where(at.top_ids >= 0, at.top_p, 0.0)
    )
    p[:, -1] = at.ngram_p
    _, order = (q / p.clamp(min=1e-30)).sort(-1, descending=True)
    of_p, of_q = p.gather(1, order).cumsum(-1), q.gather(1, order).cumsum(-1).clamp(max=1.0)
    counts = range(1, WIDTH + 1)
    best = [1 + (of_p - of_q**count).amin(-1).clamp(max=0.0) for count in counts]
    likeliest = p.gather(1, q.topk(WIDTH).indices).cumsum(-1)
    hits = torch.zeros(len(at), WIDTH)
    rest = (1 - p.sum(-1, keepdim=True)).clamp(min=0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(DRAWS):
        noise = -torch.empty_like(q).exponential_(generator=generator).log()
        other = -torch.empty_like(rest).exponential_(generator=generator).log()
        scored = torch.cat([p.log() + noise, rest.log() + other], 1)
        drafted = (q.log() + noise).topk(WIDTH).indices
        hits += (drafted == scored.argmax(-1)[:, None]).float().cumsum(-1)
    return torch.cat([torch.stack(best, 1), likeliest, hits / DRAWS], 1)
