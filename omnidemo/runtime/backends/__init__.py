"""Who makes rounds by other means than the reference: see `decoding.backend`."""

from __future__ import annotations

from omnidemo.decoding.backend import Backend, Clock, KVCache
from omnidemo.runtime.backends.cpu import CpuBackend
from omnidemo.runtime.backends.rollout import RolloutBackend
from omnidemo.runtime.lean import LeanCache


def make_backend(target: KVCache, drafter: KVCache | None, clock: Clock) -> Backend | None:
    """A backend for one generation with these caches; None where the reference makes every round."""
    fused = [cache for cache in (target, drafter) if isinstance(cache, LeanCache)]
    if any(cache.runner.passes is not None for cache in fused):
        return CpuBackend(clock)
    return RolloutBackend(clock) if fused else None
