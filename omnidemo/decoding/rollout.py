"""Drawing several drafter tokens in a row where the model computes, so that the host waits once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from omnidemo.decoding.draft_policy import StopRule
from omnidemo.decoding.sampling import Law, SamplingParams
from omnidemo.vocab.trie_table import FAR, TrieTable, no_ngrams


@dataclass(frozen=True, slots=True, eq=False)  # one is equal to itself alone
class ProposalRule:
    """How a method's draws go on: slot by slot, each a walk in a trie, as `NgramExact` describes it.

    `first` [D] int32 is the least limit (in drafter tokens) of a slot that may begin with each token, FAR for those with which none may;
    `inside` [D] int32 the same for a walk's further draws. `alone` [D] bool: tokens that are a whole slot by themselves. `overrun`: by how
    many tokens a slot's limit exceeds what is left of the budget.
    """

    first: Tensor
    inside: Tensor
    alone: Tensor
    trie: TrieTable
    overrun: int = 0


def least(bars: Tensor) -> Tensor:
    """[D] int32 of bars [D]: 0 for what may always be drawn, FAR for what never may."""
    return (bars < 0).int() * FAR


def token_by_token(bars: Tensor) -> ProposalRule:
    """Every draw is a slot of its own, among what the `bars` [D] leave. Made once for each of them; they must not change."""
    rule: ProposalRule | None = _known.get(bars)
    if rule is None:
        limits = least(bars)
        rule = ProposalRule(limits, limits, torch.ones_like(limits, dtype=torch.bool), no_ngrams(len(bars), bars.device))
        _known[bars] = rule
    return rule


_known = WeakTensorKeyDictionary()


@cache
def anything(tokens: int, device: torch.device) -> ProposalRule:
    """Every draw is a slot of its own, of whatever token."""
    return token_by_token(torch.zeros(tokens, device=device))


@dataclass(slots=True)
class RolloutRequest:
    """What a rollout is asked for: draws for at most `left` drafter tokens.

    `uniforms` are numbers from [0, 1), one for each draw; None at temperature 0. `until`: when somebody may want no further slot; None if
    nobody will. `states`: whether those of the output layer are fetched too. `ends`: tokens after which nobody will, where that can be
    told while drawing.
    """

    rule: ProposalRule
    warp: SamplingParams
    left: int
    uniforms: NDArray[np.float64] | None = None
    until: StopRule | None = None
    states: bool = False
    ends: Sequence[int] = ()


@dataclass(slots=True)
class Rollout:
    """What came of it. Each draw in order: after how many further ids it was made (`places`), the id, its probability (at temperature 0
    that among the masked logits) and the law [D] (at temperature 0 the masked logits).

    `read`: the ids that the cache holds now beyond its length; `rows` [1 + read or more, D] and `states` [1 + read or more, H] are the
    logits and the output layer's input before and after each of them. `vain`: further ids that were read and thrown away, where known.
    """

    places: list[int]
    ids: list[int]
    probabilities: list[float]
    laws: Law
    read: list[int]
    rows: Law
    states: Any  # a tensor on the device, or numpy's where they were fetched
    vain: int = 0


def nothing_drawn(row: Tensor, state: Any) -> Rollout:
    """A rollout that only read, up to the logits `row` [D] and the `state` [H]."""
    return Rollout([], [], [], row[None][:0], [], row[None], state[None])


FEW = 4  # tokens that may be read where something is drawn after them; of more, a pass of their own makes better use of threads
DRAWS = 40  # of one rollout, at most; as many uniform numbers are to be given
