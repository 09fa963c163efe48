"""What a drafter would guess at each token of a recorded answer, where it has read all that was written
before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from lab.drafters.spelling import Spelling
from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.core.records import Trace
from omnidemo.decoding.tracing import labelled_trace
from omnidemo.learning.distill.losses import Positions, positions, spelled
from omnidemo.learning.distill.trace_agreement import agreement
from omnidemo.models import model_files


@dataclass(slots=True)
class Guesses:
    """Of one answer, all [n] of its tokens: `lengths`, drafter tokens that spell it (0: no guess can be this
    token); `agreed`, Σ min(p, q) at temperature 1; `same`, whether the drafter's most probable tokens spell
    the target's most probable one; `right`, whether they, after the answer's repetition penalty, spell what
    was written; `sure`, the probability that the drafter gives to them."""

    answer: WrittenAnswer
    lengths: NDArray[np.int32]
    agreed: NDArray[np.float64]
    same: NDArray[np.float64]
    right: NDArray[np.bool_]
    sure: NDArray[np.float64]


def load_drafter(name: str) -> Any:
    """A drafter by any of its names, as `transformers` computes it."""
    folder = model_files.find(name, hub=False)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def trace_of(answer: WrittenAnswer, spelling: Spelling) -> tuple[Trace, int] | None:
    """The trace that an answer would have left behind, and how many of its drafter ids are the prompt's; None
    for one that the drafter cannot spell."""
    assert answer.labels is not None and answer.probs is not None
    return labelled_trace(
        spelling.map, answer.prompt, answer.ids, answer.labels, answer.probs, answer.temperature
    )


@torch.inference_mode()
def guess(model: Any, answer: WrittenAnswer, spelling: Spelling) -> Guesses | None:
    """`model` is one of `transformers`."""
    found = trace_of(answer, spelling)
    if found is None:
        return None
    trace, first = found
    at = positions([trace])
    logits = model(torch.from_numpy(trace.drafter_ids.astype(np.int64))[None]).logits[0].float()
    agreed, same = agreement(logits[at.rows[:, 1]], at)
    right, sure = _chosen(penalised(logits, trace.drafter_ids, first, answer.penalty)[at.rows[:, 1]], at)
    places = places_of(trace)
    lengths = np.zeros(len(trace.starts), np.int32)
    lengths[places] = trace.lengths[places]
    spread = partial(at_places, places, len(lengths))
    return Guesses(answer, lengths, spread(agreed), spread(same), spread(right) > 0, spread(sure))


def places_of(trace: Trace) -> NDArray[np.int64]:
    """The tokens that have positions, in the order of `positions`."""
    places = np.flatnonzero(spelled(trace))
    single = trace.lengths[places] == 1
    return np.concatenate([places[single], places[~single]])


def at_places(places: NDArray[np.int64], tokens: int, values: torch.Tensor) -> NDArray[Any]:
    """[tokens, …]: the values [n, …] at their places, 0 elsewhere."""
    whole = np.zeros((tokens, *values.shape[1:]))
    whole[places] = values.numpy()
    return whole


def penalised(logits: torch.Tensor, ids: NDArray[np.int32], first: int, penalty: float) -> torch.Tensor:
    """Logits [ids, D] after a repetition penalty on the ids from `first` on."""
    if penalty == 1.0:
        return logits
    seen = torch.zeros_like(logits)
    seen[torch.arange(first, len(ids)), torch.from_numpy(ids[first:].astype(np.int64))] = 1.0
    return torch.where(
        seen.cumsum(0) > 0, torch.where(logits > 0, logits / penalty, logits * penalty), logits
    )


def _chosen(logits: torch.Tensor, at: Positions) -> tuple[torch.Tensor, torch.Tensor]:
    """([n] whether the most probable tokens spell a position's own, [n] their probability): of an n-gram that
    is left, of its first one."""
    highest, chosen = logits.softmax(-1).max(-1)
    follows = chosen == at.ids
    log = highest.log()
    whole = log.new_zeros(len(at)).index_add(0, at.owner, log).exp()
    right = log.new_zeros(len(at)).index_add(0, at.owner, (~follows).float()) == 0
    return right, torch.where(follows[at.first], whole, highest[at.first])
