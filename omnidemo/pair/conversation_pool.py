"""The conversations of a pair with their KV caches: running ones, and idle ones that can be continued."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.backends.thread_pool import pick_size
from omnidemo.decoding.contexts import DrafterContext, common_prefix
from omnidemo.decoding.state import CHUNK, DecodingState, TargetContext
from omnidemo.storage.visitors import owned
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

DOMAIN = "default"
IDLE_CONVERSATIONS = 8  # most idle ones
WORK = (
    22e9  # parameters × ids that a core reads in half a second to a second: smaller pieces cost more in all
)
LEAST, LEAST_BY_TORCH = 16, 64  # fewest ids of a chunk, because each chunk reads all weights


def chunk_size(runner: Runner) -> int:
    """The size of a prefill chunk: what takes about a second at most, so that prefill can be stopped and
    others get their turn. It depends on model and cores alone, because the place of a cut may change the last
    bits of the results."""
    if runner.device.type != "cpu":
        return CHUNK
    least = LEAST if isinstance(runner, FusedLlama) else LEAST_BY_TORCH
    fits = int(WORK * (pick_size() + 1) / max(1, runner.parameters)) // 8 * 8
    return max(least, min(CHUNK, fits))


class Conversations:
    """Running and idle conversations. The pair holds its lock around each call.

    The newest idle one is kept, and others while all caches take at most `most` bytes. Spare buffers of the
    runners count too, and are freed first. Running conversations do not count.
    """

    def __init__(self, target: Runner, vocabulary_map: VocabularyMap, most: int) -> None:
        self._target, self._map, self._most = target, vocabulary_map, most
        self._runners: WeakSet[Runner] = WeakSet([target])
        self._idle: list[DecodingState] = []
        self.running: list[DecodingState] = []
        self._former: WeakSet[DecodingState] = WeakSet()  # of another runner

    def take(self, ids: Sequence[int], reuse: bool, domain: str, drafter: Runner) -> DecodingState:
        """The idle conversation with the longest common prefix, or a new one. It runs until `give_back`."""
        state = self._known(ids, domain) if reuse else None
        if state is None:
            state = self.fresh(drafter, domain)
        elif state.domain != domain:
            state.domain = domain
            state.drafter.read_again(drafter.new_cache())
        self.running.append(state)
        return state

    def change(self, target: Runner) -> None:
        """Use another runner of the target. Idle conversations are dropped now, running ones when they
        end."""
        self._target, self._idle, self._former = target, [], WeakSet(self.running)
        self._runners.add(target)

    def resume(self, state: DecodingState) -> bool:
        """Take an idle conversation; False if it is no longer idle."""
        kept = [other for other in self._idle if other is not state]
        if len(kept) == len(self._idle):
            return False
        self._idle = kept
        self.running.append(state)
        return True

    def fresh(self, drafter: Runner, domain: str = DOMAIN) -> DecodingState:
        """A new state, neither idle nor running."""
        self._runners.add(drafter)
        return DecodingState(
            TargetContext(self._target.new_cache(), chunk_size(self._target)),
            DrafterContext(drafter.new_cache(), self._map),
            domain,
        )

    def _known(self, ids: Sequence[int], domain: str) -> DecodingState | None:
        # Only the same visitor continues a visitor's conversation: else the time to the first token would
        # reveal what others wrote. A conversation with less than half of its read ids in common is left to
        # another chat.
        best, longest = -1, -1
        for place, state in enumerate(self._idle):
            mine = state.domain == domain or not (owned(domain) or owned(state.domain))
            read = state.target.ids[: state.target.cache.length]  # fewer than all if the prefill was stopped
            common = common_prefix(read, ids) if mine else -1
            if common > longest and 2 * common >= len(read):
                best, longest = place, common
        return self._idle.pop(best) if best >= 0 else None

    def give_back(self, state: DecodingState) -> None:
        """End a running conversation and keep it idle; the oldest idle ones are dropped."""
        self.end(state)
        if state in self._former:
            return
        self._idle.append(state)
        del self._idle[:-IDLE_CONVERSATIONS]
        while (room := self._most - sum(idle.nbytes for idle in self._idle)) < 0 and len(self._idle) > 1:
            del self._idle[0]
        for runner in self._runners:
            room -= runner.spare(max(0, room))

    def end(self, state: DecodingState) -> None:
        """End a running conversation without keeping it."""
        self.running = [other for other in self.running if other is not state]

    def drop(self, domain: str) -> None:
        """Forget the idle conversations of a domain."""
        self._idle = [state for state in self._idle if state.domain != domain]

    def read_again(self, domain: str, drafter: Runner) -> None:
        """Reset the drafter contexts of a domain, so that new weights read the texts again."""
        for state in (*self._idle, *self.running):
            if state.domain == domain:
                state.drafter.read_again(drafter.new_cache())
