"""The state of one generation: the text in both models' tokens, with their KV caches."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field

from omnidemo.decoding.backend import KVCache, Pass, RoundResult
from omnidemo.decoding.contexts import DrafterContext, common_prefix
from omnidemo.decoding.row_ops import token_prob
from omnidemo.decoding.sources.text_index import TextIndex

# most ids of a prefill chunk: between two chunks other requests get their turn, and a closed one ends
CHUNK = 512


@dataclass(slots=True, eq=False, weakref_slot=True)
class DecodingState:
    """The contexts of both models. Kept between answers, so that a chat's history is prefilled only once."""

    target: TargetContext
    drafter: DrafterContext
    domain: str = "default"  # the adapter line whose drafter reads
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    # index of the target's ids for prompt lookup
    text: TextIndex = field(default_factory=TextIndex)

    @property
    def nbytes(self) -> int:
        """Bytes of both caches and of the index."""
        return self.target.cache.nbytes + self.drafter.cache.nbytes + self.text.nbytes

    def start(self, prompt: Sequence[int]) -> None:
        """Make `prompt` the text, and prefill all but its last id."""
        self.begin(prompt)
        while self.target.read_chunk():
            pass

    def begin(self, prompt: Sequence[int]) -> int:
        """`start` without the prefill: `target.read_chunk` does it, and the next pass reads the rest. Returns
        how many ids are kept from before."""
        kept = self.target.begin(prompt)
        self.drafter.start(prompt, kept)
        self.text.trim(kept)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return kept

    def commit(self, start: int, result: RoundResult) -> None:
        """Apply a round that began at `start` drafter ids."""
        ids, accepted = result.ids, result.accepted
        self.target.append(ids)
        # Accepted tokens after the last one that ends with a drafter token are spelled anew.
        while accepted and not result.slots[accepted - 1].draft_ids:
            accepted -= 1
        self.drafter.commit(start, [len(slot.draft_ids) for slot in result.slots[:accepted]], ids)


class TargetContext:
    """The target's ids, and a cache of all of them but the newest, which the next pass reads. `chunk`: ids of
    a prefill chunk."""

    def __init__(self, cache: KVCache, chunk: int = CHUNK) -> None:
        self.cache, self.chunk = cache, chunk
        self.ids: list[int] = []

    def start(self, prompt: Sequence[int]) -> int:
        """Make `prompt` the context, and prefill all but its last id. Returns how many ids are kept."""
        kept = self.begin(prompt)
        while self.read_chunk():
            pass
        return kept

    def begin(self, prompt: Sequence[int]) -> int:
        """Make `prompt` the context without the prefill. Returns how many ids are kept."""
        kept = self.cache.trim(min(common_prefix(self.ids, prompt), self.cache.length, len(prompt) - 1))
        self.ids = list(prompt)
        return kept

    def read_chunk(self) -> bool:
        """Prefill the next chunk of all ids but the last. Returns whether any are left."""
        if chunk := self.ids[self.cache.length : min(self.cache.length + self.chunk, len(self.ids) - 1)]:
            self.cache.forward(chunk, 0)
        return self.cache.length < len(self.ids) - 1

    def verify(self, proposal: Sequence[int], temperature: float = 1.0) -> Pass:
        """One forward pass over the unread ids and the draft (m target ids): rows [m + 1, T], one for each
        draft token and one after them. `temperature`: that of the row statistics."""
        return self.cache.forward([*self.unread, *proposal], len(proposal) + 1, temperature)

    @property
    def unread(self) -> list[int]:
        """The ids that the cache lacks."""
        return self.ids[self.cache.length :]

    def append(self, ids: Sequence[int]) -> None:
        """Append the emitted ids, and roll the cache back to all but the newest."""
        self.ids.extend(ids)
        self.cache.trim(min(self.cache.length, len(self.ids) - 1))

    @property
    def free_positions(self) -> int:
        """Tokens that still fit into the target's window."""
        return self.cache.max_positions - len(self.ids)


def target_probs(read: Pass, proposal: Sequence[int], written: Sequence[int]) -> list[float]:
    """The target's probability of each proposed token, and of the last written token, before temperature."""
    accepted = min(len(proposal), len(written) - 1)
    rows = [*range(len(proposal)), accepted]
    tokens = [*proposal, written[-1]]
    if read.stats is not None:
        return [*read.stats.token_probs(proposal), *read.stats.token_probs(tokens[-1:], accepted)]
    return [token_prob(read.logits[row], token) for row, token in zip(rows, tokens, strict=True)]
