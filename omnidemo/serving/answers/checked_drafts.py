"""Drafts of other machines, which the targets of a pool check."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.draft_checks import Check, Checked, DraftChecker, described, spelled_out
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.speed import Speeds


class CheckedDrafts:
    """Lets the targets of loaded pairs check drafts. Thread-safe. ValueError, one sentence, where a target
    computes in another process."""

    def __init__(self, pool: PairPool, speeds: Speeds) -> None:
        self._pool, self._speeds = pool, speeds
        self._checkers: WeakKeyDictionary[Pair, DraftChecker] = WeakKeyDictionary()

    def check(self, target: str, drafter: str, asked: Check, owner: str = "") -> Checked:
        """As `DraftChecker.check`. Drafts are neither recorded nor learned from."""
        self._speeds.hold()
        with self._pool.using(target, drafter) as (pair, _):
            return self._checkers.setdefault(_here(pair), DraftChecker(pair)).check(asked, owner)

    def describe_target(self, target: str, drafter: str, tokenizer: bool = False) -> dict[str, Any]:
        """A target as `draft_checks.described`, or its tokenizer as `spelled_out`."""
        pair = _here(self._pool.ready(target, drafter)[0])
        return spelled_out(pair) if tokenizer else described(pair, self._pool.conditions(target, drafter))


def _here(pair: Pair) -> Pair:
    if not pair.here:
        raise ValueError(
            "the target computes in other processes here, which check no drafts; serve it without --ray"
        )
    return pair
