"""Which tokens a text holds, for a repetition penalty."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from omnidemo.vocab.vocabulary import VocabularyMap


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
