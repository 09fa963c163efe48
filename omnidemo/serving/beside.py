"""Measured repetitions of an answer: by the target alone, or with the base drafter and with the present one,
for the races on the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omnidemo.core.records import Generation
from omnidemo.decoding.methods import BASELINE, METHODS, make_method
from omnidemo.models.catalogue import reading
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_pool import PairPool

# no line can have this name: nothing is ever published for it, so the base drafter drafts
FRESH_LINE = "\x00fresh"
# of the runs before and after: a fixed length, so that no draft policy enters the comparison
DRAFT_LENGTH = 4
WARM_UP = 8  # tokens before the clock counts
PATIENCE = 10.0  # seconds to wait while the pair answers others
TRIES = 3  # attempts of a run: a request that arrives ends it
LOOK_SECONDS = 0.05
RUNS, RUN_SECONDS = 3, 1.5  # most runs of a kind, and seconds after which no other one begins


class Beside:
    """Measured runs that are neither recorded nor learned from. They begin while the pair is idle and end as
    soon as a request arrives, so that neither slows the other. RuntimeError or ValueError, one sentence,
    where they cannot be made."""

    def __init__(self, pool: PairPool) -> None:
        self._pool = pool

    def plain(
        self, *, target: str, drafter: str, messages: Sequence[Mapping[str, str]], max_new_tokens: int,
        seed: int | None = None, **sampling: float | None,
    ) -> list[Generation]:  # fmt: skip
        """Runs of the target alone, one token a round; the median run comes first. `sampling`: the options of
        that name; what it leaves out is as the target's manner has it."""
        with self._pool.using(target, drafter) as (pair, _):
            prompt = newest(pair, messages, reading(target), max_new_tokens).messages
            options = {"max_new_tokens": max_new_tokens, "seed": seed, **sampling}
            return _often(lambda: (_alone(pair, prompt, method=BASELINE, **options),))[0]

    def fresh_and_today(
        self, *, target: str, drafter: str, messages: Sequence[Mapping[str, str]], method: str,
        max_new_tokens: int, domain: str,
    ) -> tuple[list[Generation], list[Generation]]:  # fmt: skip
        """The answer with the base drafter and with what drafts for `domain` now: at temperature 0, else in
        the target's manner, with four guesses a round and nothing copied, so that the drafters alone are
        compared. Runs alternate; the median run of each comes first. A method that does not draft is replaced
        by the one that suits the pair."""
        with self._pool.using(target, drafter) as (pair, lines):
            prompt = newest(pair, messages, reading(target), max_new_tokens).messages
            drafting = method in METHODS and METHODS[method].drafts and not METHODS[method].refusal(pair.map)
            options: dict[str, Any] = {
                "method": method if drafting else make_method("auto", pair.map).name,
                "draft_policy": "fixed", "draft_length": DRAFT_LENGTH, "copying": False,
                "max_new_tokens": max_new_tokens, "temperature": 0.0, "seed": 0,
            }  # fmt: skip
            if domain not in lines.names():  # a comparison must not create one
                raise ValueError(
                    "The topic memory that drafted this answer is not there any more, so there is nothing to"
                    " compare with."
                )
            with lines.using(domain):
                before, after = _often(
                    lambda: tuple(
                        _alone(pair, prompt, domain=line, **options) for line in (FRESH_LINE, domain)
                    )
                )
                return before, after


def _often(make: Callable[[], tuple[Generation, ...]]) -> list[list[Generation]]:
    """Up to RUNS runs of each kind, alternating, as long as they are short, the middle one of each first, so
    that a short disturbance of the machine does not decide."""
    until, made = time.monotonic() + RUN_SECONDS, [make()]
    while len(made) < RUNS and time.monotonic() < until:
        made.append(make())
    return [_middle_first(list(runs)) for runs in zip(*made, strict=True)]


def _middle_first(runs: list[Generation]) -> list[Generation]:
    runs.sort(key=lambda run: sum(done.seconds["total"] for done in run.rounds))
    return [runs.pop((len(runs) - 1) // 2), *runs]


def _alone(pair: Pair, prompt: Sequence[Mapping[str, str]], **options: Any) -> Generation:
    """Generate while the pair answers nobody else; started again where a request came in between."""
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
