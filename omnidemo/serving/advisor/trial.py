"""Try a pair: what a short interleaved run on sample prompts measures, beside what was modelled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from omnidemo.decoding.methods import BASELINE
from omnidemo.serving.advisor.advice import modelled_speedup
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.measuring.compare_methods import summarise

PROMPTS, TOKENS, SECONDS = 20, 64, 120.0
METHODS = (BASELINE, "auto")


@dataclass(frozen=True, slots=True)
class Trial:
    """`acceptance` is α, the share of judged guesses that were right, `per_round` tokens per pass of the
    target; `plain` and `speculative` are tokens/s, and all are means over `prompts`. `modelled`: the formula
    at this α. None: nothing was guessed."""

    acceptance: float | None
    per_round: float | None
    plain: float | None
    speculative: float | None
    speedup: float | None
    modelled: float | None
    prompts: int
    source: str


def whole_prompts(
    measured: Iterable[Comparison], seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[list[Comparison]]:
    """Draw from `measured` (METHODS on each prompt, drafts of a fixed length) for about so many seconds, and
    at least one prompt: after each prompt all results so far."""
    until, results = clock() + seconds, list[Comparison]()
    for one in measured:
        results.append(one)
        if one.method != BASELINE:
            yield list(results)
            if clock() > until:
                return


def summed_up(results: Sequence[Comparison], draft_length: int, cost: float, topic: str) -> Trial:
    """What whole prompts show. RuntimeError where there is none."""
    prompts = len(results) // len(METHODS)
    if not prompts:
        raise RuntimeError(
            "nothing was measured, for the run was stopped before the first prompt was done; try again"
        )
    plain, drafted = summarise(results)
    alpha = drafted.figures["alpha"].mean
    return Trial(
        acceptance=alpha,
        per_round=drafted.figures["block_efficiency"].mean,
        plain=plain.figures["tokens_per_second"].mean,
        speculative=drafted.figures["tokens_per_second"].mean,
        speedup=drafted.figures["speedup"].mean,
        modelled=None if alpha is None else modelled_speedup(alpha, draft_length, cost),
        prompts=prompts,
        source=(
            f"measured here: {prompts} prompt{'' if prompts == 1 else 's'}, topic {topic}, {drafted.method},"
            f" policy fixed with {draft_length} guesses a round, greedy, at most {TOKENS} tokens each"
        ),
    )
