"""Several methods on the same prompts, interleaved, so that other load on the machine slows all of them
alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidemo.core.config import SAMPLING
from omnidemo.core.records import Generation, Prompt
from omnidemo.decoding.methods import BASELINE, METHODS, make_method
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong
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
    pair: Pair, prompts: Sequence[Asked], methods: Sequence[str], *, max_new_tokens: int = 128,
    temperature: float | None = 0.0, domain: str = "default", seed: int | None = 0, warm: bool = False,
    runs: int = 1, cancelled: Callable[[], bool] = lambda: False, **options: Any,
) -> Iterator[Comparison]:  # fmt: skip
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
    lanes = _Lanes(pair, methods, max_new_tokens, temperature, domain, seed, cancelled, options)
    if not pair.target.chat and any(len(turns_of(asked)) > 1 for asked in prompts):
        raise ValueError(
            f"{pair.target.name} has no chat template, so that it cannot be asked a second turn; give"
            " questions of one turn"
        )
    if prompts and not lanes.warm_up(turns_of(prompts[0])[0]):
        return
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
            read: Prompt = list(messages) if turn else prompt
            if warm:
                lanes.warm_cache(read)
            for run, name, made, baseline in lanes.answers(index, read, runs):
                said = made.text if said is None else said
                identical, speedup = lanes.against(made, baseline)
                shown = prompt if isinstance(prompt, str) else str(prompt)
                yield Comparison(
                    index, shown, name, made, identical, speedup, run, turn, category, temperature
                )
            if said is None or cancelled():
                return
            messages += [{"role": "user", "content": str(prompt)}] if not turn else []
            messages.append({"role": "assistant", "content": said})


class _Lanes:
    """The methods that are compared, each with the line that drafts for it."""

    def __init__(
        self, pair: Pair, methods: Sequence[str], max_new_tokens: int, temperature: float | None, domain: str,
        seed: int | None, cancelled: Callable[[], bool], options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """ValueError for no method, an unknown one, or one that this pair cannot use."""
        names = [name if name == FRESH else make_method(name, pair.map).name for name in methods]
        lanes = {name: (TODAY, beside.FRESH_LINE) if name == FRESH else (name, domain) for name in names}
        if not lanes:
            raise ValueError("choose at least one method to compare")
        self._pair, self._lanes, self._domain, self._cancelled = pair, lanes, domain, cancelled
        self._others = [name for name in lanes if name != BASELINE]
        self._sampling = {name: options[name] for name in SAMPLING if name in options}
        self._fixed: dict[str, Any] = {"learn": False, "reuse": False, "cancelled": cancelled}
        self._tokens, self._temperature, self._seed = max_new_tokens, temperature, seed
        self._options = {
            **options,
            "max_new_tokens": max_new_tokens,
            "temperature": temperature,
            "seed": seed,
        }

    def warm_up(self, prompt: Prompt) -> bool:
        """Run each lane for a few tokens, untimed; False where it was cancelled."""
        short: dict[str, Any] = {**self._sampling, "max_new_tokens": 8, "temperature": self._temperature}
        for method, line in self._lanes.values():
            if self._cancelled():
                return False
            self._pair.generate(prompt, method=method, domain=line, **short, **self._fixed)
        return True

    def warm_cache(self, prompt: Prompt) -> None:
        """Answer a prompt at temperature 0 and keep the n-grams that the answer needs; as after any answer,
        the cost model knows its times."""
        options: dict[str, Any] = {"max_new_tokens": self._tokens, "domain": self._domain, "temperature": 0.0}
        method = make_method("auto", self._pair.map).name
        for done in self._pair.stream(prompt, method=method, **self._sampling, **options, **self._fixed):
            self._pair.remember(done, self._domain)

    def answers(
        self, index: int, prompt: Prompt, runs: int
    ) -> Iterator[tuple[int, str, Generation, Generation | None]]:
        """(run, lane, its answer, the baseline's of the same run); it ends early where it is cancelled."""
        for run in range(runs):
            shift = (index + run) % max(1, len(self._others))
            baseline: Generation | None = None
            order = [*self._others[shift:], *self._others[:shift]]
            for name in [BASELINE, *order] if BASELINE in self._lanes else order:
                if self._cancelled():
                    return
                method, line = self._lanes[name]
                made = self._pair.generate(prompt, method=method, domain=line, **self._options, **self._fixed)
                if made.finish_reason == "cancelled":
                    return
                baseline = made if name == BASELINE else baseline
                yield run, name, made, baseline

    def against(self, made: Generation, baseline: Generation | None) -> tuple[bool | None, float | None]:
        """`identical` and `speedup` of a `Comparison`."""
        if baseline is None:
            return None, None
        rate, plain = made.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
        fixed = self._temperature == 0 or (self._seed is not None and METHODS[made.method].coupled)
        same = made.token_ids == baseline.token_ids if fixed else None
        return same, rate / plain if rate and plain else None
