"""From logits to probabilities: repetition penalty, temperature, top-k, top-p, min-p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omnidemo.vocabulary.vocabulary_map import VocabularyMap

# One row [V] or several [R, V] in float32 on the host: scores before softmax, and distributions. No torch:
# after a pass has emptied the caches one of its calls takes 10 to 30 µs, one of numpy's a quarter of that.
Logits = NDArray[np.float32]
Probs = NDArray[np.floating[Any]]  # the rest of a correction may be float64


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Repetition penalty, temperature, top-k, top-p and min-p, applied in this order to target and drafter
    alike, in float32.

    temperature 0 is greedy: all probability is on the argmax (the lowest id among equals). top_k 0, top_p 1,
    min_p 0 and repetition_penalty 1 are off. min_p removes tokens below this fraction of the highest
    probability. Ties at the cut-off keep the lowest ids. `penalty_scope`: which tokens
    are penalised, those of prompt and answer ("text", as in `transformers`) or of the answer alone.
    `config.GenerationConfig` checks the values.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    penalty_scope: Literal["text", "answer"] = "text"

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def plain(self) -> bool:
        """Whether top-k, top-p and min-p are off, or the temperature is 0. Says nothing of the penalty, and
        has nothing to do with plain decoding."""
        return self.greedy or (self.top_k == 0 and self.top_p == 1.0 and self.min_p == 0.0)

    @property
    def penalises(self) -> bool:
        return self.repetition_penalty != 1.0

    @property
    def numbers(self) -> tuple[float, int, float, float, float]:
        """The numbers in order, for compiled code."""
        return (
            float(self.temperature),
            int(self.top_k),
            float(self.top_p),
            float(self.min_p),
            float(self.repetition_penalty),
        )

    def penalised(self, logits: Logits, seen: NDArray[np.bool_]) -> Logits:
        """Logits [..., V] where those of `seen` [..., V] tokens are divided by the penalty, or multiplied if
        negative (Keskar et al. 2019)."""
        less = np.where(logits > 0, logits / self.repetition_penalty, logits * self.repetition_penalty)
        return np.where(seen, less, logits)

    def probs(self, logits: Logits) -> Probs:
        """Probabilities [..., V] of logits [..., V]. A logit of −inf has probability 0; a row of −inf alone
        is an error."""
        if self.greedy:
            probs = np.zeros(logits.shape, np.float32)
            np.put_along_axis(probs, logits.argmax(-1, keepdims=True), 1.0, -1)
            return probs
        with np.errstate(all="ignore"):  # the draw notices NaN
            scores = logits / self.temperature
            if 0 < self.top_k < scores.shape[-1]:
                least = np.partition(scores, -self.top_k)[..., -self.top_k, None]
                scores = np.where(_best(scores, least, self.top_k), scores, -np.inf)
            probs = softmax(scores)
            if self.top_p < 1.0:
                probs = _nucleus(probs, self.top_p)
                probs = probs / probs.sum(-1, keepdims=True)
            if self.min_p > 0.0:
                probs = np.where(probs < self.min_p * probs.max(-1, keepdims=True), 0.0, probs)
                probs = probs / probs.sum(-1, keepdims=True)
        return probs


def softmax(rows: Logits) -> Probs:
    """The softmax of each row of [..., V]."""
    found = np.exp(rows - rows.max(-1, keepdims=True))
    found /= found.sum(-1, keepdims=True)
    return found


def highest(logits: Logits) -> int:
    """The argmax of logits [V], the lowest index among equals."""
    return int(logits.argmax())


def highest_each(logits: Logits) -> list[int]:
    """The argmax of each row of [R, V]."""
    found: list[int] = logits.argmax(-1).tolist()
    return found


def chosen(rows: Probs, ids: Sequence[int]) -> list[float]:
    """The probability of one token in each of the first rows of [R, V]."""
    return [float(probs[token]) for probs, token in zip(rows, ids, strict=False)]


def total(probs: Probs, ids: Sequence[int]) -> float:
    """The sum of some tokens' probabilities under a distribution [V]."""
    return float(probs[ids].sum())


def restricted(probs: Probs, ids: Sequence[int], keep: bool) -> Probs | None:
    """The distribution [V] over these tokens alone (`keep`), or over all others, renormalised; None where
    nothing is left."""
    others = probs.copy()
    others[ids] = 0.0
    rest = probs - others if keep else others
    mass = float(rest.sum())
    return rest / mass if mass > 0.0 else None


# tokens that nearly always hold the mass of top-p; sorting the whole vocabulary takes 100 times as long
FIRST = 256


def _nucleus(probs: Probs, mass: float) -> Probs:
    """Top-p: `probs` [..., V] with 0 for all but the most probable tokens. A token stays while the mass
    before it is below `mass`, so at least one does. Among equals the lowest ids stay."""
    few = min(FIRST, probs.shape[-1])
    best = -np.sort(-np.partition(probs, -few)[..., -few:])
    if few < probs.shape[-1] and (best.sum(-1) < mass).any():
        best = -np.sort(-probs)
    # 0 only if the distribution is NaN
    stay = np.maximum((best.cumsum(-1, dtype=np.float64) - best < mass).sum(-1, keepdims=True), 1)
    return np.where(_best(probs, np.take_along_axis(best, stay - 1, -1), stay), probs, 0.0)


def _best(rows: NDArray[Any], least: NDArray[Any], count: NDArray[Any] | int) -> NDArray[np.bool_]:
    """[..., V] bool: the `count` [..., 1] largest numbers of [..., V], the smallest of which is `least` [...,
    1]. Among equals the lowest ids."""
    equal = rows == least
    among = count - (rows > least).sum(-1, keepdims=True)
    found: NDArray[np.bool_] = (rows > least) | (equal & (equal.cumsum(-1) <= among))
    return found


class Seen:
    """Marks the tokens of a vocabulary [V] that a text contains from a place on. Only new ids update it, so
    nothing in a round is O(context)."""

    def __init__(self, tokens: int, begin: int = 0) -> None:
        self.there = np.zeros(tokens, np.bool_)  # [V]
        self._order = np.zeros(1 + tokens, np.int64)  # how many are marked, and which, the newest last
        # ids that stay for good or are skipped, and the tokens marked for them
        self._read, self._settled = begin, 0

    @property
    def arrays(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """For compiled code, which may mark more tokens: the marks [V], and [1 + V] their number and the
        marked tokens in order."""
        return self.there, self._order

    def hold(self, ids: Sequence[int], start: int) -> Seen:
        """Mark these ids and no others. Those before `start` stay for good; the next call removes the others,
        and what compiled code has marked."""
        self.there[self._order[1 + self._settled : 1 + self._order[0]]] = False
        self._order[0] = self._settled
        if start > self._read:
            self._add(ids[self._read : start])
            self._read, self._settled = start, int(self._order[0])
        self._add(ids[max(start, self._read) :])
        return self

    def _add(self, ids: Sequence[int]) -> None:
        new = [token for token in dict.fromkeys(ids) if not self.there[token]]
        first = 1 + int(self._order[0])
        self._order[first : first + len(new)] = new
        self._order[0] += len(new)
        self.there[new] = True


class RepetitionPenalty:
    """The tokens that the text contains from a place on, as target ids and as drafter ids."""

    def __init__(self, vocabulary: VocabularyMap, begin: tuple[int, int] = (0, 0)) -> None:
        self.target = Seen(len(vocabulary.to_drafter), begin[0])
        self.drafter = Seen(len(vocabulary.to_target), begin[1])

    def of_target(self, ids: Sequence[int], proposal: Sequence[int]) -> NDArray[np.bool_]:
        """[m + 1, T]: the tokens before each row of a verification of m proposed tokens."""
        rows = np.tile(self.target.hold(ids, len(ids)).there, (len(proposal) + 1, 1))
        for position, token_id in enumerate(proposal):
            rows[position + 1 :, token_id] = True
        return rows
