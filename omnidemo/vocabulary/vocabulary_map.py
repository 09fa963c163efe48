"""The map between two vocabularies: which drafter tokens spell each target token."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from omnidemo.vocabulary.vocabulary import Vocabulary

UNKNOWN = -2  # a spelling that was never asked for


class VocabularyMap:
    """The map between a target's and a drafter's vocabulary.

    to_drafter [|T|], to_target [|D|]: the directly mapped id or −1, a bijection between the mapped ids of
    both sides; `drafters`, `targets` and `may_draft` are `to_drafter`, `to_target` and `draftable` as lists.
    draftable [|D|]: drafter ids that may be proposed directly (text, and the end of a turn; no other role).
    Sizes are those of the models' logit rows; ids beyond a tokenizer have no bytes and no map.
    """

    def __init__(
        self,
        target: Vocabulary,
        drafter: Vocabulary,
        target_rows: int,
        drafter_rows: int,
    ) -> None:
        to_drafter, draftable = _matches(target, drafter, target_rows, drafter_rows)
        self.target, self.drafter = target, drafter
        mapped = np.flatnonzero(to_drafter >= 0)
        to_target = np.full(len(draftable), -1)
        to_target[to_drafter[mapped]] = mapped
        self.to_drafter, self.to_target, self.draftable = to_drafter, to_target, draftable
        # as plain ints, which are faster to index one by one
        self.drafters: list[int] = to_drafter.tolist()
        self.targets: list[int] = to_target.tolist()
        self.may_draft: list[bool] = draftable.tolist()
        self._spellings: dict[int, tuple[int, ...] | None] = {}
        # cache of `first_tokens`
        self._firsts = np.full(len(to_drafter), UNKNOWN, np.int64)

    @cached_property
    def mapped(self) -> NDArray[np.bool_]:
        """[|D|] bool: drafter ids with a direct map."""
        return self.to_target >= 0

    @cached_property
    def mapped_targets(self) -> NDArray[np.int64]:
        """Target ids [M] with a draftable direct map, ascending; `mapped_drafters` are their drafter ids."""
        mapped = np.flatnonzero(self.to_drafter >= 0)
        return mapped[self.draftable[self.to_drafter[mapped]]]

    @cached_property
    def readable(self) -> NDArray[np.bool_]:
        """[|D|] bool: drafter ids that may be drawn inside an n-gram: those that write bytes, and draftable
        ones."""
        readable, writes = self.draftable.copy(), np.array([bool(token) for token in self.drafter.tokens])
        readable[: len(writes)] |= writes[: len(readable)]
        return readable

    @cached_property
    def readable_logit_mask(self) -> NDArray[np.float32]:
        """[|D|] float32: 0 where `readable`, −∞ elsewhere, to be added to logits."""
        return logit_mask(self.readable)

    @cached_property
    def draftable_logit_mask(self) -> NDArray[np.float32]:
        """[|D|] float32: 0 where `draftable`, −∞ elsewhere."""
        return logit_mask(self.draftable)

    @cached_property
    def directly(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(drafter ids with a direct map, their target ids)."""
        ids = np.flatnonzero(self.mapped)
        return ids, self.to_target[ids]

    @cached_property
    def mapped_drafters(self) -> NDArray[np.int64]:
        return self.to_drafter[self.mapped_targets]

    def spelling(self, target_id: int) -> tuple[int, ...] | None:
        """The drafter ids that spell one target token: the directly mapped one, else its bytes as a
        continuation. () for a special token without a counterpart; None for bytes that the drafter cannot
        spell, which stay pending in its context. Cached."""
        if target_id in self._spellings:
            return self._spellings[target_id]
        direct = self.drafters[target_id]
        spelled: tuple[int, ...] | None
        if direct >= 0:
            spelled = (direct,)
        else:
            data = self.target.writes(target_id)
            spelled = self.drafter.spell(data) if data else ()
        self._spellings[target_id] = spelled
        return spelled

    def first_tokens(self, target_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first drafter id of each target token's spelling; −1 where the drafter cannot spell it.
        Cached."""
        new = target_ids[self._firsts[target_ids] == UNKNOWN]
        for target_id in np.unique(new).tolist():
            spelled = self.spelling(target_id)
            self._firsts[target_id] = spelled[0] if spelled else -1
        return self._firsts[target_ids]

    def ngram(self, target_id: int) -> tuple[int, ...] | None:
        """The n-gram (n ≥ 2) of a target token without a direct map, or None."""
        spelled = self.spelling(target_id)
        if not spelled or len(spelled) < 2:
            return None
        data = self.target.writes(target_id)
        return spelled if data and self.target.by_bytes.get(data) == target_id else None

    def summary(self) -> dict[str, int | float]:
        """Sizes of the map, and the share of the target's text tokens without a direct map."""
        spelled = [i for i, data in enumerate(self.target.tokens) if data]
        direct = sum(1 for i in spelled if self.drafters[i] >= 0)
        return {
            "target_tokens": len(self.target),
            "drafter_tokens": len(self.drafter),
            # as `lab/vocabularies.py` counts them
            "mapped": sum(drafter_id >= 0 for drafter_id in self.drafters),
            "ngram_share": 1 - direct / max(1, len(spelled)),
        }


def logit_mask(allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
    """A mask [V] to add to logits: 0 for allowed tokens, −∞ for others."""
    return np.where(allowed, np.float32(0.0), np.float32(-np.inf))


def _matches(
    target: Vocabulary, drafter: Vocabulary, target_rows: int, drafter_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """`to_drafter` and `draftable` of a `VocabularyMap`: tokens of the same bytes, then those of the same
    role. ValueError where there are none."""
    texts = [
        (target.by_bytes[data], drafter_id)
        for data, drafter_id in drafter.by_bytes.items()
        if data in target.by_bytes
    ]
    texts = [
        (target_id, drafter_id)
        for target_id, drafter_id in texts
        if target_id < target_rows and drafter_id < drafter_rows
    ]
    if not texts:
        raise ValueError(
            "the two vocabularies share no token, not even a single byte; choose another drafter for this"
            " target"
        )
    to_drafter, draftable = np.full(target_rows, -1), np.zeros(drafter_rows, np.bool_)
    target_ids, drafter_ids = np.array(texts).T
    to_drafter[target_ids] = drafter_ids
    draftable[drafter_ids] = True
    taken = set(drafter_ids.tolist())
    # The end comes first: GPT-2 begins, ends and pads with one id, which may be proposed only as an end.
    for role in sorted(drafter.roles, key=lambda role: role != "end"):
        for target_id, drafter_id in zip(target.roles.get(role, ()), drafter.roles[role], strict=False):
            if (
                target_id < target_rows
                and drafter_id < drafter_rows
                and to_drafter[target_id] < 0
                and drafter_id not in taken
            ):
                to_drafter[target_id] = drafter_id
                draftable[drafter_id] = role == "end"
                taken.add(drafter_id)
    return to_drafter, draftable
