"""A pair on trial: the figures of a short interleaved run on sample prompts, beside the modelled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnidemo.decoding.methods import BASELINE
from omnidemo.serving.advisor.advice import modelled_speedup
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.measuring.compare_methods import summarise

PROMPTS, TOKENS, SECONDS = 20, 64, 120.0
METHODS = (BASELINE, "auto")


@dataclass(frozen=True, slots=True)
class Trial:
    """Means over `prompts`. `acceptance` is α, the accepted share of judged guesses. `per_round`: tokens per
    pass of the target. `plain` and `speculative`: tokens/s. `modelled`: the formula at this α. None: nothing
    was guessed."""

    acceptance: float | None
    per_round: float | None
    plain: float | None
    speculative: float | None
    speedup: float | None
    modelled: float | None
    prompts: int
    source: str


def prompts_in(results: Sequence[Comparison]) -> int:
    """How many prompts all METHODS have answered."""
    return len(results) // len(METHODS)


def summed_up(results: Sequence[Comparison], draft_length: int, cost: float, topic: str) -> Trial:
    """The figures of a comparison of METHODS with drafts of a fixed length, over the prompts that all of them
    have answered. RuntimeError where there is none."""
    prompts = prompts_in(results)
    if not prompts:
        raise RuntimeError(
            "nothing was measured, for the run was stopped before the first prompt was done; try again"
        )
    plain, drafted = summarise(results[: prompts * len(METHODS)])
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
