"""Several methods on the same prompts, interleaved, so that other load on the machine slows all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnidemo.config import SAMPLING
from omnidemo.methods import BASELINE, METHODS, make_method
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation, Prompt
from omnidemo.serving import beside

FRESH = "fresh"  # not a method of its own: TODAY with the drafter as it was before it learned anything
TODAY = "ngram-exact"  # it serves every pair, so that these two lanes differ by what was learned alone


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run of a method on one prompt. `speedup`: tokens/s over the baseline's of the same prompt and run; `identical`: the same ids as
    the baseline's. Both are None where the baseline did not run, `identical` also where ids need not be the same: above temperature 0
    without a seed, or by a lossy method."""

    prompt_index: int
    prompt: str
    method: str
    generation: Generation
    identical: bool | None
    speedup: float | None
    run: int = 0


def compare(
    pair: Pair,
    prompts: Sequence[Prompt],
    methods: Sequence[str],
    *,
    max_new_tokens: int = 128,
    temperature: float = 0.0,
    domain: str = "default",
    seed: int | None = 0,
    warm: bool = False,
    runs: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Iterator[Comparison]:
    """Yield one `Comparison` for each prompt, run and method: the `runs` of a prompt are interleaved, all methods of one before the next.
    Nothing is learned from them; earlier answers may still bring a version or n-grams
    meanwhile (`adapter_version` says so). Each reads the whole prompt; the order of the methods rotates from run to run. The
    baseline, where it is among the methods, always runs first. `warm`: answer every prompt once before, untimed, so that its n-grams are in
    the cache as they would be in a longer chat. The `options` are those of `Pair.stream`. The name FRESH
    stands for TODAY with the base drafter and, for a visitor of a public app, with the n-grams that all share instead of the visitor's own.
    ValueError, before anything runs, for no method, an unknown one, or one that this pair cannot use."""
    names = list(dict.fromkeys(name if name == FRESH else make_method(name, pair.map).name for name in methods))
    drafting = {name: (TODAY, beside.FRESH_LINE) if name == FRESH else (name, domain) for name in names}
    if not names:
        raise ValueError("choose at least one method to compare")
    others = [name for name in names if name != BASELINE]
    sampling = {name: options[name] for name in SAMPLING if name in options}
    if prompts:
        for name in names:  # warm-up, untimed
            if cancelled():
                return
            method, line = drafting[name]
            short: dict[str, Any] = {**sampling, "max_new_tokens": 8, "temperature": temperature, "learn": False, "reuse": False}
            pair.generate(prompts[0], method=method, domain=line, cancelled=cancelled, **short)
    for index, prompt in enumerate(prompts):
        if warm:
            _warm_cache(pair, prompt, max_new_tokens, domain, cancelled, **sampling)
        for run in range(runs):
            shift = (index + run) % max(1, len(others))
            order = ([BASELINE] if BASELINE in names else []) + others[shift:] + others[:shift]
            baseline: Generation | None = None
            for name in order:
                if cancelled():
                    return
                method, line = drafting[name]
                generation = pair.generate(
                    prompt,
                    method=method,
                    max_new_tokens=max_new_tokens,
                    temperature=temperature,
                    domain=line,
                    seed=seed,
                    cancelled=cancelled,
                    learn=False,
                    reuse=False,
                    **options,
                )
                if generation.finish_reason == "cancelled":
                    return
                baseline = generation if name == BASELINE else baseline
                speedup = identical = None
                if baseline is not None:
                    rate, plain = generation.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
                    speedup = rate / plain if rate and plain else None
                    fixed = temperature == 0 or (seed is not None and METHODS[generation.method].lossless)
                    identical = generation.token_ids == baseline.token_ids if fixed else None
                yield Comparison(index, prompt if isinstance(prompt, str) else str(prompt), name, generation, identical, speedup, run)


def _warm_cache(pair: Pair, prompt: Prompt, max_new_tokens: int, domain: str, cancelled: Callable[[], bool], **sampling: Any) -> None:
    """Answer a prompt at temperature 0 and keep the n-grams that the answer needs; as after any answer, the cost model knows its times."""
    options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "domain": domain, "learn": False, "reuse": False, "cancelled": cancelled}
    for done in pair.stream(prompt, method=make_method("auto", pair.map).name, temperature=0.0, **sampling, **options):
        pair.remember(done, domain)
