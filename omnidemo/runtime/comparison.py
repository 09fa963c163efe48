"""Several methods on the same prompts, interleaved, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from omnidemo.core.draft_length import Policy
from omnidemo.methods import make_method
from omnidemo.records import Generation, Prompt
from omnidemo.runtime.pair import Pair

BASELINE = "autoregressive"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One method on one prompt. `speedup`: tokens/s over the baseline's on the same prompt; `identical`: the same ids as the
    baseline's at temperature 0. Both are None where the baseline did not run, `identical` also above temperature 0."""

    prompt_index: int
    prompt: str
    method: str
    generation: Generation
    identical: bool | None
    speedup: float | None


def compare(
    pair: Pair,
    prompts: Sequence[Prompt],
    methods: Sequence[str],
    *,
    max_new_tokens: int = 128,
    temperature: float = 0.0,
    top_p: float = 1.0,
    draft_length: int = 4,
    draft_policy: Policy = "fixed",
    longest_draft: int = 14,
    confidence: float = 0.4,
    gamma: float = 0.7,
    domain: str = "default",
    seed: int | None = 0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Comparison]:
    """Yield one `Comparison` for each prompt and method. Nothing is learned, so that every method meets the same drafter and
    cache; each reads the prompt afresh; the order of the methods turns from prompt to prompt. The baseline, where it is among the
    methods, always runs first. ValueError, before anything runs, for no method, an unknown one, or one that this pair cannot use."""
    names = list(dict.fromkeys(make_method(name, pair.map).name for name in methods))
    if not names:
        raise ValueError("choose at least one method to compare")
    others = [name for name in names if name != BASELINE]
    if prompts:
        for name in names:  # warm-up, untimed
            pair.generate(prompts[0], method=name, max_new_tokens=8, temperature=temperature, learn=False, reuse=False)
    for index, prompt in enumerate(prompts):
        turn = index % max(1, len(others))
        order = ([BASELINE] if BASELINE in names else []) + others[turn:] + others[:turn]
        baseline: Generation | None = None
        for name in order:
            if cancelled():
                return
            generation = pair.generate(
                prompt,
                method=name,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_p=top_p,
                draft_length=draft_length,
                draft_policy=draft_policy,
                longest_draft=longest_draft,
                confidence=confidence,
                gamma=gamma,
                domain=domain,
                seed=seed,
                cancelled=cancelled,
                learn=False,
                reuse=False,
            )
            if generation.finish_reason == "cancelled":
                return
            baseline = generation if name == BASELINE else baseline
            speedup = identical = None
            if baseline is not None:
                rate, plain = generation.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
                speedup = rate / plain if rate and plain else None
                identical = generation.token_ids == baseline.token_ids if temperature == 0 else None
            yield Comparison(index, prompt if isinstance(prompt, str) else str(prompt), name, generation, identical, speedup)
