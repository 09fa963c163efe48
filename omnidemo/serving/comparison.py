"""Several methods on the same prompts, in turns (`pair/in_turns.py`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnidemo.core.config import SAMPLING, GenerationConfig
from omnidemo.core.records import Generation, Prompt
from omnidemo.decoding.methods import BASELINE, METHODS, make_method
from omnidemo.pair.in_turns import Budget, Stopped, in_turns
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.serving import beside

FRESH = "fresh"  # names a lane: TODAY with the base drafter
TODAY = "ngram-exact"  # serves every pair, so that the two lanes differ by what was learned alone


@dataclass(frozen=True, slots=True)
class Question:
    """Turns of a user, each asked behind the answers to the earlier ones; `category` is the file's."""

    turns: tuple[str, ...]
    category: str = ""


Asked = Prompt | Question


def turns_of(asked: Asked) -> Sequence[Prompt]:
    """The turns of a question; a prompt is one turn."""
    return asked.turns if isinstance(asked, Question) else (asked,)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run of a method on one prompt, or on one turn of a question. `speedup`: tokens/s ÷ the baseline's
    in the same run. `identical`: whether the ids equal the baseline's. Both are None where the baseline did
    not run. `identical` is None too where ids may differ: above temperature 0 without a seed, or with a
    method that is not `coupled`."""

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
    runs: int = 1, seconds: float = math.inf, cancelled: Callable[[], bool] = lambda: False, **options: Any,
) -> Iterator[Comparison]:  # fmt: skip
    """Yield one `Comparison` for each prompt, run and method.

    Methods take turns, and another one begins in each run; the baseline's row comes first. Every answer reads
    the whole prompt, and nothing is learned. Earlier answers may still bring a version or n-grams meanwhile
    (`adapter_version` shows it). A later turn of a question stands behind the first answer to the turn
    before, for every method, and is left out where it does not fit the window.

    seconds: after these no further prompt begins. warm: answer every prompt once before, untimed, so that its
    n-grams are in the cache as in a longer chat. options: those of `Pair.stream`; missing sampling comes from
    the target's defaults (`Manner`). The method FRESH is TODAY with the base drafter and the shared n-grams.
    ValueError, before anything runs, for no method, an unknown one, one that this pair cannot use, and for a
    second turn where the target has no chat template.
    """
    lanes = _Lanes(pair, methods, max_new_tokens, temperature, domain, seed, cancelled, options)
    if not pair.target.chat and any(len(turns_of(asked)) > 1 for asked in prompts):
        raise ValueError(
            f"{pair.target.name} has no chat template, so that it cannot be asked a second turn; give"
            " questions of one turn"
        )
    until = time.monotonic() + seconds
    try:
        if prompts:
            lanes.warm_up(turns_of(prompts[0])[0])
        for index, asked in enumerate(prompts):
            yield from _compared(pair, lanes, index, asked, runs, warm)
            if time.monotonic() > until:
                return
    except Stopped:
        return


def _compared(
    pair: Pair, lanes: _Lanes, index: int, asked: Asked, runs: int, warm: bool
) -> Iterator[Comparison]:
    category = asked.category if isinstance(asked, Question) else ""
    messages: list[dict[str, str]] = []
    for turn, prompt in enumerate(turns_of(asked)):
        if turn:
            messages.append({"role": "user", "content": str(prompt)})
            try:
                pair.prompt_ids(messages)
            except TooLong:
                return
        said: str | None = None
        read: Prompt = list(messages) if turn else prompt
        if warm:
            lanes.warm_cache(read)
        for run, name, made, baseline in lanes.answers(index, read, runs):
            said = made.text if said is None else said
            identical, speedup = lanes.against(made, baseline)
            shown = prompt if isinstance(prompt, str) else str(prompt)
            yield Comparison(
                index, shown, name, made, identical, speedup, run, turn, category, lanes.temperature
            )
        messages += [{"role": "user", "content": str(prompt)}] if not turn else []
        messages.append({"role": "assistant", "content": said or ""})


class _Lanes:
    """The compared methods, each with the line that drafts for it."""

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
        self._sampling = {name: options[name] for name in SAMPLING if name in options}
        self._fixed: dict[str, Any] = {"learn": False, "reuse": False, "cancelled": cancelled}
        self._tokens, self._seed = max_new_tokens, seed
        self.temperature = GenerationConfig.of(temperature=temperature).temperature
        self._options = {
            **options,
            "max_new_tokens": max_new_tokens,
            "temperature": self.temperature,
            "seed": seed,
        }

    def warm_up(self, prompt: Prompt) -> None:
        """Run each lane for a few tokens, untimed."""
        for name in self._lanes:
            self._run(name, prompt, **self._sampling, max_new_tokens=8, temperature=self.temperature)

    def warm_cache(self, prompt: Prompt) -> None:
        """Answer a prompt at temperature 0 and keep the n-grams of the answer. The cost model learns from
        it."""
        options: dict[str, Any] = {"max_new_tokens": self._tokens, "domain": self._domain, "temperature": 0.0}
        method = make_method("auto", self._pair.map).name
        for done in self._pair.stream(prompt, method=method, **self._sampling, **options, **self._fixed):
            self._pair.remember(done, self._domain)

    def answers(
        self, index: int, prompt: Prompt, runs: int
    ) -> Iterator[tuple[int, str, Generation, Generation | None]]:
        """(run, lane, answer, the baseline's answer in that run). Raises Stopped."""
        lanes = {name: partial(self._run, name, prompt, **self._options) for name in self._lanes}
        waiting, baselines = dict[str, Generation](), dict[int, Generation]()
        for run, name, made in in_turns(lanes, Budget(runs), time.monotonic, index):
            waiting[name] = made
            if name == BASELINE:
                baselines[run] = made
            if run in baselines or BASELINE not in lanes:
                for one in sorted(waiting, key=lambda one: one != BASELINE):
                    yield run, one, waiting[one], baselines.get(run)
                waiting.clear()

    def _run(self, name: str, prompt: Prompt, **options: Any) -> Generation:
        """An answer of a lane. Raises Stopped."""
        if self._cancelled():
            raise Stopped
        method, line = self._lanes[name]
        made = self._pair.generate(prompt, method=method, domain=line, **options, **self._fixed)
        if made.finish_reason == "cancelled":
            raise Stopped
        return made

    def against(self, made: Generation, baseline: Generation | None) -> tuple[bool | None, float | None]:
        """`identical` and `speedup` of a `Comparison`."""
        if baseline is None:
            return None, None
        rate, plain = made.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
        fixed = self.temperature == 0 or (self._seed is not None and METHODS[made.method].coupled)
        same = made.token_ids == baseline.token_ids if fixed else None
        return same, rate / plain if rate and plain else None
