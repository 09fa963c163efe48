"""Measured repetitions of an answer for the races on the page: by the target alone, or by a line as it was
before its first answer and as it is now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from omnidemo.core.config import GREEDY
from omnidemo.core.records import Generation
from omnidemo.decoding.methods import BASELINE, METHODS, make_method
from omnidemo.models.catalogue import reading
from omnidemo.pair.in_turns import Budget, middle, passes_of
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_pool import PairPool

# `check_domain` refuses this name: nothing is ever published for it, so the base drafter drafts
FRESH_LINE = "\x00fresh"
WARM_UP = 8  # tokens before the clock counts
PATIENCE = 10.0  # seconds to wait while the pair answers others
TRIES = 3  # attempts of a run: a request that arrives ends it
LOOK_SECONDS = 0.05
BUDGET = Budget(passes=3, seconds=5.0)  # a page waits
LONG_BUDGET = Budget(passes=3, seconds=20.0)  # of two lanes, between which a small difference counts


class Beside:
    """Measured runs that are neither recorded nor learned from. A run begins while the pair is idle and ends
    when a request arrives, so that neither slows the other. RuntimeError or ValueError, one sentence, where
    it cannot be made."""

    def __init__(self, pool: PairPool) -> None:
        self._pool = pool

    def plain(
        self, *, target: str, drafter: str, messages: Sequence[Mapping[str, str]], max_new_tokens: int,
        seed: int | None = None, **sampling: float | None,
    ) -> list[Generation]:  # fmt: skip
        """Runs of the target alone, one token a round; the median run comes first. Options that `sampling`
        leaves out come from the target's defaults (`Manner`)."""
        with self._pool.using(target, drafter) as (pair, _):
            prompt = newest(pair, messages, reading(pair.target.name), max_new_tokens).messages
            options = {"max_new_tokens": max_new_tokens, "seed": seed, **sampling}
            return _often(BUDGET, plain=partial(_alone, pair, prompt, method=BASELINE, **options))[0]

    def fresh_and_today(
        self, *, target: str, drafter: str, messages: Sequence[Mapping[str, str]], method: str,
        max_new_tokens: int, domain: str,
    ) -> tuple[list[Generation], list[Generation]]:  # fmt: skip
        """An answer of a repeated task by its line before the first answer (base drafter, empty memory), and
        by its line `domain` now. The options are those of a task (`options_of`). Runs
        alternate; the median run of each comes first. A method that does not draft is replaced by "auto"."""
        with self._pool.using(target, drafter) as (pair, lines):
            prompt = newest(pair, messages, reading(pair.target.name), max_new_tokens).messages
            drafting = method in METHODS and METHODS[method].drafts and not METHODS[method].refusal(pair.map)
            options: dict[str, Any] = {
                "method": method if drafting else make_method("auto", pair.map).name,
                "draft_policy": "chance", "max_new_tokens": max_new_tokens, **GREEDY.options,
                "recall": True,
            }  # fmt: skip
            if domain not in lines.names():  # a comparison must not create one
                raise ValueError(
                    "There is no answer of this line yet, so there is nothing to compare. Let it answer"
                    " first."
                )
            with lines.using(domain):
                before, after = _often(
                    LONG_BUDGET,
                    before=partial(_alone, pair, prompt, domain=FRESH_LINE, **options),
                    after=partial(_alone, pair, prompt, domain=domain, **options),
                )
                return before, after


def _often(budget: Budget, **lanes: Callable[[], Generation]) -> list[list[Generation]]:
    """The runs of each lane, the median run of each first."""
    passes = passes_of(lanes, budget, time.monotonic)
    return [_middle_first([made[name] for made in passes]) for name in lanes]


def _middle_first(runs: list[Generation]) -> list[Generation]:
    shown = middle(runs, lambda run: sum(done.seconds["total"] for done in run.rounds))
    return [shown, *(run for run in runs if run is not shown)]


def _alone(pair: Pair, prompt: Sequence[Mapping[str, str]], **options: Any) -> Generation:
    """Generate while the pair answers nobody else; start again where a request arrived meanwhile."""
    unasked: dict[str, Any] = {
        "learn": False,
        "note": False,
        "reuse": False,
        "cancelled": lambda: pair.in_flight > 1,
    }
    for _ in range(TRIES):
        until = time.monotonic() + PATIENCE
        while pair.in_flight:
            if time.monotonic() > until:
                raise RuntimeError("Others are being answered right now; try again in a moment.")
            time.sleep(LOOK_SECONDS)
        pair.generate(prompt, **options | unasked | {"max_new_tokens": WARM_UP})
        made = pair.generate(prompt, **options | unasked)
        if made.finish_reason != "cancelled":
            return made
    raise RuntimeError(
        "Others asked something meanwhile, so nothing could be measured; try again in a moment."
    )
