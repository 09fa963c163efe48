"""Several methods on the same prompts, interleaved, so that other load on the machine slows all of them
alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnidemo.config import SAMPLING
from omnidemo.methods import BASELINE, METHODS, make_method
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.records import Generation, Prompt
from omnidemo.serving import beside

FRESH = "fresh"  # not a method of its own: TODAY with the drafter as it was before it learned anything
TODAY = "ngram-exact"  # it serves every pair, so that these two lanes differ by what was learned alone


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks in several turns, each behind the answers to those before; `category` is the
    file's."""

    turns: tuple[str, ...]
    category: str = ""


Asked = Prompt | Question


def turns_of(asked: Asked) -> Sequence[Prompt]:
    """The turns of a question; a prompt is one."""
    return asked.turns if isinstance(asked, Question) else (asked,)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run of a method on one prompt, or one turn of a question. `speedup`: tokens/s over the baseline's
    of the same prompt and run; `identical`: the same ids as the baseline's. Both are None where the baseline
    did not run, `identical` also where ids need not be the same: above temperature 0 without a seed, or by a
    method whose text a seed does not fix (`Method.coupled`)."""

    prompt_index: int
    prompt: str
    method: str
    generation: Generation
    identical: bool | None
    speedup: float | None
    run: int = 0
    turn: int = 0
    category: str = ""
    temperature: float | None = 0.0  # None: the target's own


def compare(
    pair: Pair,
    prompts: Sequence[Asked],
    methods: Sequence[str],
    *,
    max_new_tokens: int = 128,
    temperature: float | None = 0.0,
    domain: str = "default",
    seed: int | None = 0,
    warm: bool = False,
    runs: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Iterator[Comparison]:
    """Yield one `Comparison` for each prompt, run and method: the `runs` of a prompt are interleaved, all
    methods of one before the next. A later turn of a question stands, for every method, behind the answer
    that the first of them gave in its first run, so that all read the same; it is left out where it does not
    fit the target's window. Nothing is learned from them; earlier answers may still bring a version or
    n-grams meanwhile (`adapter_version` says so). Each reads the whole prompt; the order of the methods
    rotates from run to run. The baseline, where it is among the methods, always runs first. `warm`: answer
    every prompt once before, untimed, so that its n-grams are in the cache as they would be in a longer chat.
    The `options` are those of `Pair.stream`; sampling that is None or left out is as the target's manner has
    it. The name FRESH stands for TODAY with the base drafter and, for a visitor of a public app, with the
    n-grams that all share instead of the visitor's own. ValueError, before anything runs, for no method, an
    unknown one, or one that this pair cannot use, and for a second turn where the target has no chat
    template."""
    names = list(
        dict.fromkeys(name if name == FRESH else make_method(name, pair.map).name for name in methods)
    )
    drafting = {name: (TODAY, beside.FRESH_LINE) if name == FRESH else (name, domain) for name in names}
    if not names:
        raise ValueError("choose at least one method to compare")
    if not pair.target.chat and any(len(turns_of(asked)) > 1 for asked in prompts):
        raise ValueError(
            f"{pair.target.name} has no chat template, so that it cannot be asked a second turn; give"
            " questions of one turn"
        )
    others = [name for name in names if name != BASELINE]
    sampling = {name: options[name] for name in SAMPLING if name in options}
    if prompts:
        for name in names:  # warm-up, untimed
            if cancelled():
                return
            method, line = drafting[name]
            short: dict[str, Any] = {
                **sampling, "max_new_tokens": 8, "temperature": temperature, "learn": False, "reuse": False,
            }  # fmt: skip
            pair.generate(turns_of(prompts[0])[0], method=method, domain=line, cancelled=cancelled, **short)

    def answers(index: int, prompt: Prompt) -> Iterator[tuple[int, str, Generation, Generation | None]]:
        """(run, method, its answer, the baseline's of the same run); it ends early where `cancelled` says
        so."""
        if warm:
            _warm_cache(pair, prompt, max_new_tokens, domain, cancelled, **sampling)
        for run in range(runs):
            shift = (index + run) % max(1, len(others))
            baseline: Generation | None = None
            for name in ([BASELINE] if BASELINE in names else []) + others[shift:] + others[:shift]:
                if cancelled():
                    return
                method, line = drafting[name]
                made = pair.generate(
                    prompt, method=method, max_new_tokens=max_new_tokens, temperature=temperature,
                    domain=line, seed=seed,
                    cancelled=cancelled, learn=False, reuse=False, **options,
                )  # fmt: skip
                if made.finish_reason == "cancelled":
                    return
                baseline = made if name == BASELINE else baseline
                yield run, name, made, baseline

    for index, asked in enumerate(prompts):
        category = asked.category if isinstance(asked, Question) else ""
        messages: list[dict[str, str]] = []
        for turn, prompt in enumerate(turns_of(asked)):
            if turn:
                messages.append({"role": "user", "content": str(prompt)})
                try:
                    pair.prompt_ids(messages)
                except TooLong:
                    break
            said: str | None = None
            for run, name, made, baseline in answers(index, list(messages) if turn else prompt):
                said = made.text if said is None else said
                speedup = identical = None
                if baseline is not None:
                    rate, plain = made.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
                    speedup = rate / plain if rate and plain else None
                    fixed = temperature == 0 or (seed is not None and METHODS[made.method].coupled)
                    identical = made.token_ids == baseline.token_ids if fixed else None
                shown = prompt if isinstance(prompt, str) else str(prompt)
                yield Comparison(
                    index, shown, name, made, identical, speedup, run, turn, category, temperature
                )
            if said is None or cancelled():
                return
            messages += [{"role": "user", "content": str(prompt)}] if not turn else []
            messages.append({"role": "assistant", "content": said})


def _warm_cache(
    pair: Pair,
    prompt: Prompt,
    max_new_tokens: int,
    domain: str,
    cancelled: Callable[[], bool],
    **sampling: Any,
) -> None:
    """Answer a prompt at temperature 0 and keep the n-grams that the answer needs; as after any answer, the
    cost model knows its times."""
    options: dict[str, Any] = {
        "max_new_tokens": max_new_tokens, "domain": domain, "learn": False, "reuse": False,
        "cancelled": cancelled,
    }  # fmt: skip
    for done in pair.stream(
        prompt, method=make_method("auto", pair.map).name, temperature=0.0, **sampling, **options
    ):
        pair.remember(done, domain)
