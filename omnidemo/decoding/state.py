"""The state of one generation."""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from omnidemo.decoding.backend import KVCache, Pass, RoundResult
from omnidemo.decoding.contexts import DrafterContext, common_prefix
from omnidemo.decoding.cost_model import Hindsight
from omnidemo.decoding.draft_policy import ENOUGH


@dataclass(slots=True)
class DecodingState:
    """All state of one generation: two contexts of the same text. Kept from answer to answer, so that a prompt is read once."""

    target: TargetContext
    drafter: DrafterContext | None = None
    domain: str = "default"  # the adapter line whose drafter reads
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def start(self, prompt: Sequence[int]) -> None:
        kept = self.target.start(prompt)
        if self.drafter is not None:
            self.drafter.start(prompt, kept)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def commit(self, start: int, result: RoundResult, ids: Sequence[int], accepted: int) -> None:
        """Take in what a round that began at `start` drafter ids emits: `ids`, of which the first `accepted` were proposed."""
        self.target.append(ids)
        if self.drafter is not None:
            # Those accepted tokens stay in the drafter's context as they were drafted that end where a drafter token ends.
            while accepted and not result.slots[accepted - 1].pieces:
                accepted -= 1
            self.drafter.commit(start, [len(slot.pieces) for slot in result.slots[:accepted]], ids)

    def replayed_acceptance(self, target_probs: Sequence[float], greedy: bool) -> Hindsight:
        """How drafts would have done on the newest tokens, whose probabilities by the target are given: of each its number of drafter
        tokens and min(1, q/p), which is on average what the acceptance of the drafter's own proposals would have been. Costs the drafter's
        pass over what it has not read, which a draft need not make again."""
        if self.drafter is None or len(target_probs) < ENOUGH:
            return []
        found = self.drafter.score_history(ENOUGH, len(target_probs), greedy)[::-1]
        # A drafter whose numbers are not finite would have guessed nothing.
        products = [product if q and math.isfinite(product := math.prod(q)) else 0.0 for q in found]
        each = [(len(q), min(1.0, product / max(p, 1e-30))) for q, product, p in zip(found, products, reversed(target_probs), strict=False)]
        return each[::-1]


class TargetContext:
    """The target's ids, and a cache that holds all of them but the newest, which the next pass reads."""

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache
        self.ids: list[int] = []
        self.passes = 0  # that were made from here: what a backend has read further is overwritten by them

    def start(self, prompt: Sequence[int]) -> int:
        """Make `prompt` the context, reading all but its last id; returns how many ids were kept from before."""
        self.passes += 1
        kept = self.cache.trim(min(common_prefix(self.ids, prompt), self.cache.length, len(prompt) - 1))
        self.ids = list(prompt)
        if kept < len(prompt) - 1:
            self.cache.forward(self.ids[kept:-1], 0)
        return kept

    def verify(self, proposal: Sequence[int], temperature: float = 1.0) -> Pass:
        """One pass over what is unread and all of the proposal: a row for each proposed token, and one for the token after all of them.
        `temperature`: what they will be judged at."""
        self.passes += 1
        return self.cache.forward([*self.unread, *proposal], len(proposal) + 1, temperature)

    @property
    def unread(self) -> list[int]:
        """The ids that the cache lacks."""
        return self.ids[self.cache.length :]

    def append(self, ids: Sequence[int]) -> None:
        """Take the emitted tokens. What the cache read beyond all but the newest is forgotten."""
        self.ids.extend(ids)
        self.cache.trim(min(self.cache.length, len(self.ids) - 1))

    @property
    def room(self) -> int:
        """Tokens that still fit into the target's window."""
        return self.cache.limit - len(self.ids)
