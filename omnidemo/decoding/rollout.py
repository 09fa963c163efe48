"""Rollouts: several drafter tokens drawn in one call of compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.calibration import StopRule
from omnidemo.decoding.randomness import SharedNoise
from omnidemo.decoding.sampling import Logits, Probs, SamplingParams, Seen
from omnidemo.vocabulary.ngram_cache import no_ngrams
from omnidemo.vocabulary.trie_table import FAR, TrieTable


@dataclass(frozen=True, slots=True, eq=False)  # one is equal to itself alone
class ProposalRule:
    """A method's drafting as data for compiled code: slot by slot, each a walk in a trie (see `NgramExact`).

    `first` [D] int32: the smallest limit (in drafter tokens) of a slot that may begin with each token, FAR
    for none; `inside` [D] int32: the same for further draws of a walk. `alone` [D] bool: tokens that are a
    whole slot by themselves. `overrun`: tokens by which a slot's limit may exceed the rest of the budget.
    """

    first: NDArray[np.int32]
    inside: NDArray[np.int32]
    alone: NDArray[np.bool_]
    trie: TrieTable
    overrun: int = 0


def token_by_token(logit_mask: Logits) -> ProposalRule:
    """The rule by which every draw is its own slot, among the tokens that `logit_mask` [D] allows. Cached by
    mask, which must not change."""
    rule = _known.get(id(logit_mask))
    if rule is None:
        limits = np.where(logit_mask < 0, np.int32(FAR), np.int32(0))  # never, or at any limit
        alone = np.ones(len(limits), np.bool_)
        rule = _known[id(logit_mask)] = ProposalRule(limits, limits, alone, no_ngrams(len(limits)).trie)
        finalize(logit_mask, _known.pop, id(logit_mask))
    return rule


_known: dict[int, ProposalRule] = {}


@dataclass(slots=True)
class RolloutRequest:
    """A rollout: draws of the drafter in a row, for at most `left` drafter tokens.

    `uniforms` [n]: random numbers from [0, 1), one a draw; None at temperature 0, and with shared `noise`:
    then the first slot proposes the token at this `position` of the answer. `names` [D] are the target ids
    that drafter ids propose by themselves, −1 for none. `stop_rule`: when the draft may end before its
    budget; None: never. `seen`: the tokens seen before the first draw, for the repetition penalty; None
    without one.
    """

    rule: ProposalRule
    sampling: SamplingParams
    left: int
    names: NDArray[np.int64]
    uniforms: NDArray[np.float64] | None = None
    stop_rule: StopRule | None = None
    seen: Seen | None = None
    noise: SharedNoise | None = None
    position: int = 0


@dataclass(slots=True)
class Rollout:
    """The draws of a rollout, in order: `places`, the number of further ids before each draw; `ids`;
    `probabilities` (at temperature 0 the softmax of the masked logits); `distributions` [draws, D] (at
    temperature 0 the masked logits).

    `read`: the ids that the cache now holds beyond its length. `rows` [1 + read or more, D] and `states` [1 +
    read or more, H]: logits and the output layer's input before and after each of them.
    """

    places: list[int]
    ids: list[int]
    probabilities: list[float]
    distributions: Probs
    read: list[int]
    rows: Logits
    states: NDArray[np.float32]


# unread tokens that a rollout reads itself; a pass of their own reads more of them with more threads
FEW = 4
DRAWS = 40  # most draws of one rollout, and its uniform numbers
