"""Warping of logits and the one place where random choices are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.vocab.vocabulary_map import VocabularyMap

# Logits or probabilities, as rows or as one. On the host they are numpy's wherever nothing has to be done with them that only torch can:
# a call of torch behind a pass that has used up the caches takes 10 to 30 µs, one of numpy a quarter of it.
Law = Tensor | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Repetition penalty, temperature, top-k, top-p and min-p, in this order, applied alike to target and drafter, in float32.

    temperature 0 is greedy: the law is a point on the argmax (lowest id among equals). top_k 0, top_p 1, min_p 0 and
    repetition_penalty 1 are off. min_p: tokens less probable than this share of the most probable one are left out.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}; 0 is greedy decoding")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more, not {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}; 1 switches it off")
        if not 0.0 <= self.min_p <= 1.0:
            raise ValueError(f"min_p must lie between 0 and 1, not {self.min_p}; 0 switches it off")
        if not 0.0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty must be above 0, not {self.repetition_penalty}; 1 switches it off")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def plain(self) -> bool:
        """Whether the law of given logits is the softmax at a temperature, or greedy."""
        return self.top_k == 0 and self.top_p == 1.0 and self.min_p == 0.0

    @property
    def penalises(self) -> bool:
        return self.repetition_penalty != 1.0

    def penalised(self, given: Law, seen: Tensor) -> Tensor:
        """Logits [..., V] with those of tokens in the text so far (`seen` [..., V] bool) divided by the penalty, or multiplied by
        it where negative (Keskar et al. 2019)."""
        logits = as_tensor(given)
        less = torch.where(logits > 0, logits / self.repetition_penalty, logits * self.repetition_penalty)
        return torch.where(seen, less, logits)

    def law(self, given: Law) -> Tensor:
        """Probabilities [..., V] of logits [..., V]; entries of −inf have probability 0. A row of −inf only is an error."""
        logits = as_tensor(given)
        if self.greedy:
            return torch.zeros_like(logits, dtype=torch.float32).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
        scores = logits if logits.dtype == torch.float64 else logits.float()
        if self.temperature != 1.0:
            scores = scores / self.temperature
        if 0 < self.top_k < scores.shape[-1]:
            kept = scores.topk(self.top_k).indices
            scores = torch.full_like(scores, float("-inf")).scatter_(-1, kept, scores.gather(-1, kept))
        law = torch.softmax(scores, -1)
        if self.top_p < 1.0:
            law = _nucleus(law, self.top_p)
            law = law / law.sum(-1, keepdim=True)
        if self.min_p > 0.0:
            law = law.masked_fill(law < self.min_p * law.amax(-1, keepdim=True), 0.0)
            law = law / law.sum(-1, keepdim=True)
        return law


def on_host(law: Law) -> bool:
    """Whether its numbers can be read at once. Elsewhere each reading waits until the device has done all it was told."""
    return isinstance(law, np.ndarray) or law.device.type == "cpu"


def as_array(law: Law) -> NDArray[Any]:
    """Of one on the host."""
    return law if isinstance(law, np.ndarray) else law.numpy()


def as_tensor(law: Law) -> Tensor:
    return torch.from_numpy(law) if isinstance(law, np.ndarray) else law


def highest(logits: Law) -> int:
    """The index of the largest of the logits [V], the lowest among equals."""
    # A CPU's vectors are made use of by numpy's search, not by torch's.
    return int(as_array(logits).argmax() if on_host(logits) else logits.argmax())


def highest_each(logits: Law) -> list[int]:
    """The same for each row of [R, V]."""
    found: list[int] = (as_array(logits).argmax(-1) if on_host(logits) else logits.argmax(-1)).tolist()
    return found


def chosen(laws: Law, ids: Sequence[int]) -> list[float]:
    """Of each of the first rows of laws [R, V], the probability of one token."""
    if on_host(laws):
        return [float(law[token]) for law, token in zip(as_array(laws), ids, strict=False)]
    there = as_tensor(laws)
    places = torch.arange(len(ids), device=there.device)
    found: list[float] = there[places, torch.tensor(ids, dtype=torch.long, device=there.device)].tolist()
    return found


def total(law: Law, ids: Sequence[int]) -> float:
    """The probability of some tokens under a law [V]."""
    if on_host(law):
        return float(as_array(law)[ids].sum())
    there = as_tensor(law)
    return float(there[torch.tensor(ids, dtype=torch.long, device=there.device)].sum())


def totals(wanted: Sequence[tuple[Law, Sequence[int]]]) -> list[float]:
    """The same for several laws [V] and tokens of each; on a device with one wait."""
    if not wanted or on_host(wanted[0][0]):
        return [total(law, ids) for law, ids in wanted]
    there = [(as_tensor(law), ids) for law, ids in wanted]
    sums = [law[torch.tensor(ids, dtype=torch.long).to(law.device, non_blocking=True)].sum() for law, ids in there]
    found: list[float] = torch.stack(sums).tolist()
    return found


def without(law: Law, ids: Sequence[int]) -> Law | None:
    """The law [V] among all tokens but these; None where nothing is left."""
    rest: Any = as_array(law).copy() if on_host(law) else as_tensor(law).clone()
    rest[ids if on_host(law) else torch.tensor(ids, dtype=torch.long, device=rest.device)] = 0.0
    mass = float(rest.sum())
    left: Law | None = rest / mass if mass > 0.0 else None
    return left


def among(law: Law, ids: Sequence[int]) -> Law | None:
    """The law [V] among these tokens alone; None where they have no probability."""
    there: Any = ids if on_host(law) else torch.tensor(ids, dtype=torch.long, device=as_tensor(law).device)
    rest: Any = np.zeros_like(as_array(law)) if on_host(law) else torch.zeros_like(as_tensor(law))
    rest[there] = law[there]
    mass = float(rest.sum())
    left: Law | None = rest / mass if mass > 0.0 else None
    return left


def fetch(index: Tensor, number: Tensor) -> tuple[int, float]:
    """An index [1] below 2³¹ and a number [1], in float32, by one transfer: as bits, for float32 does not hold every index."""
    both = torch.cat([index.int(), number.float().view(torch.int32)]).cpu().numpy()
    return int(both[0]), float(both.view(np.float32)[1])


def drawn_at(laws: Tensor, uniform: Tensor | float) -> tuple[Tensor, Tensor]:
    """(index [..., 1], its probability [..., 1]) of laws [..., V]: where their sums first exceed `uniform` [..., 1] in [0, 1)."""
    sums = laws.cumsum(-1, dtype=torch.float32 if laws.device.type == "mps" else torch.float64)  # Apple's GPUs have no float64
    drawn = torch.searchsorted(sums, sums[..., -1:] * uniform, right=True).clamp_(max=laws.shape[-1] - 1)
    return drawn, laws.gather(-1, drawn)


def fetch_all(indices: Tensor, *numbers: Tensor) -> tuple[Any, ...]:
    """Indices [n] below 2³¹ and numbers [n], in float32, as lists by one transfer."""
    bits = torch.stack([indices.int(), *(one.float().view(torch.int32) for one in numbers)]).cpu().numpy()
    return bits[0].tolist(), *(row.view(np.float32).tolist() for row in bits[1:])


FIRST = 256  # tokens that nearly always hold the mass of top-p; sorting a whole vocabulary takes a hundred times as long


def _nucleus(law: Tensor, mass: float) -> Tensor:
    """The law [..., V] with 0 for all but the most probable tokens: one stays while the mass before it is below `mass`, so at least one
    does. Among equals those with the lowest ids stay."""
    if on_host(law):
        best = law.topk(min(FIRST, law.shape[-1])).values
        if bool((best.sum(-1) < mass).any()) and best.shape[-1] < law.shape[-1]:
            best = law.sort(descending=True).values
    else:  # asking whether the first are enough would wait longer than sorting takes
        best = law.sort(descending=True).values
    stay = (best.cumsum(-1) - best < mass).sum(-1, keepdim=True).clamp_(min=1)  # 0 only where the law is no number
    least = best.gather(-1, stay - 1)  # the smallest probability that stays, for some of those that have it
    equal = law == least
    among = stay - (law > least).sum(-1, keepdim=True)
    return law.masked_fill(~((law > least) | (equal & (equal.cumsum(-1) <= among))), 0.0)


class RepetitionPenalty:
    """Both views of which tokens the text has, kept up with the contexts' ids and never counted anew."""

    def __init__(self, vocabulary: VocabularyMap) -> None:
        self.device = vocabulary.to_drafter.device
        self._target = torch.zeros(len(vocabulary.to_drafter), dtype=torch.bool, device=self.device)
        self._drafter = torch.zeros(len(vocabulary.to_target), dtype=torch.bool, device=self.device)
        self._read = [0, 0]  # ids that are marked, of target and drafter

    def of_drafter(self, ids: Sequence[int], start: int) -> Tensor:
        """[D] bool: what a text of drafter ids has, of which those from `start` on may be taken back."""
        seen = self._follow(1, self._drafter, ids, start)
        if len(ids) > start:
            seen = seen.clone()
            seen[torch.tensor(ids[start:], device=self.device)] = True
        return seen

    def of_target(self, ids: Sequence[int], proposal: Sequence[int]) -> Tensor:
        """[m + 1, T] bool: what each row of a verification has before it, which grows with the proposal."""
        rows = self._follow(0, self._target, ids, len(ids)).repeat(len(proposal) + 1, 1)
        for position, token_id in enumerate(proposal):
            rows[position + 1 :, token_id] = True
        return rows

    def _follow(self, side: int, seen: Tensor, ids: Sequence[int], end: int) -> Tensor:
        if end > self._read[side]:
            seen[torch.tensor(ids[self._read[side] : end], dtype=torch.long, device=self.device)] = True
            self._read[side] = end
        return seen
