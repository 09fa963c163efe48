"""Several methods on the same prompts, in turns (`pair/in_turns.py`): the comparisons of page, endpoint and
command line, and the races beside an answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnidemo.core.config import DRAFTING, GenerationConfig
from omnidemo.core.records import Generation, Prompt
from omnidemo.decoding.methods import BASELINE, METHODS, make_method
from omnidemo.pair.in_turns import Budget, LaneStopped, in_turns, passes_of
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong

FRESH = "fresh"  # names a lane: TODAY with the base drafter
TODAY = "ngram-exact"  # serves every pair, so that the two lanes differ by what was learned alone
# `check_domain` refuses this name: nothing is ever published for it, so the base drafter drafts
FRESH_LINE = "\x00fresh"
RUNS = 3  # of each lane of a race
WARM_UP = 8  # tokens before the clock counts
PATIENCE = 10.0  # seconds to wait while the pair answers others
TRIES = 3  # attempts of a run of a race: a request that arrives ends it
LOOK_SECONDS = 0.05


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
    fixed = {"max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed}
    lanes = _Lanes(pair, methods, domain, {**options, **fixed, "cancelled": cancelled})
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
    except LaneStopped:
        return


def race(
    pair: Pair, prompt: Prompt, methods: Sequence[str], seconds: float, *, max_new_tokens: int,
    domain: str = "default", **options: Any,
) -> list[list[Generation]]:  # fmt: skip
    """The runs of each method on one prompt: RUNS, or as many as begin within `seconds`. Nothing is learned
    from them. A run begins while the pair is idle and ends when a request arrives, so that neither slows the
    other. methods, domain, options: as in `compare`. RuntimeError, one sentence, where others ask too
    much."""
    options |= {"max_new_tokens": max_new_tokens, "note": False, "cancelled": lambda: pair.in_flight > 1}
    lanes = _Lanes(pair, methods, domain, options)
    runs = {name: partial(_alone, lanes, name, prompt) for name in lanes.names}
    passes = passes_of(runs, Budget(RUNS, seconds=seconds), time.monotonic)
    return [[made[name] for made in passes] for name in runs]


def _alone(lanes: _Lanes, name: str, prompt: Prompt) -> Generation:
    """An answer of a lane while the pair answers nobody else, begun again where a request arrived."""
    for _ in range(TRIES):
        until = time.monotonic() + PATIENCE
        while lanes.pair.in_flight:
            if time.monotonic() > until:
                raise RuntimeError("Others are being answered right now; try again in a moment.")
            time.sleep(LOOK_SECONDS)
        with suppress(LaneStopped):
            lanes.run(name, prompt, max_new_tokens=WARM_UP)
            return lanes.run(name, prompt)
    raise RuntimeError(
        "Others asked something meanwhile, so nothing could be measured; try again in a moment."
    )


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
    """The compared methods, each with the line that drafts for it. ValueError for no method, an unknown one,
    or one that this pair cannot use."""

    def __init__(self, pair: Pair, methods: Sequence[str], domain: str, options: Mapping[str, Any]) -> None:
        names = [name if name == FRESH else make_method(name, pair.map).name for name in methods]
        if not names:
            raise ValueError("choose at least one method to compare")
        self.pair, self._domain = pair, domain
        self._lanes = {name: (TODAY, FRESH_LINE) if name == FRESH else (name, domain) for name in names}
        self.names = [*self._lanes]
        self._options = {**options, "learn": False, "reuse": False}
        self.temperature = GenerationConfig.of(temperature=options.get("temperature")).temperature

    def warm_up(self, prompt: Prompt) -> None:
        """Run each lane for a few tokens, untimed."""
        for name in self.names:
            self.run(name, prompt, max_new_tokens=WARM_UP)

    def warm_cache(self, prompt: Prompt) -> None:
        """Answer a prompt at temperature 0 and keep the n-grams of the answer. The cost model learns from
        it."""
        method = make_method("auto", self.pair.map).name
        greedy = {name: value for name, value in self._options.items() if name not in DRAFTING}
        greedy |= {"temperature": 0.0, "seed": None}
        for done in self.pair.stream(prompt, method=method, domain=self._domain, **greedy):
            self.pair.remember(done, self._domain)

    def answers(
        self, index: int, prompt: Prompt, runs: int
    ) -> Iterator[tuple[int, str, Generation, Generation | None]]:
        """(run, lane, answer, the baseline's answer in that run). Raises LaneStopped."""
        lanes = {name: partial(self.run, name, prompt) for name in self.names}
        waiting, baselines = dict[str, Generation](), dict[int, Generation]()
        for run, name, made in in_turns(lanes, Budget(runs), time.monotonic, index):
            waiting[name] = made
            if name == BASELINE:
                baselines[run] = made
            if run in baselines or BASELINE not in lanes:
                for one in sorted(waiting, key=lambda one: one != BASELINE):
                    yield run, one, waiting[one], baselines.get(run)
                waiting.clear()

    def run(self, name: str, prompt: Prompt, **changed: Any) -> Generation:
        """An answer of a lane. Raises LaneStopped."""
        method, line = self._lanes[name]
        made = self.pair.generate(prompt, method=method, domain=line, **self._options | changed)
        if made.finish_reason == "cancelled":
            raise LaneStopped
        return made

    def against(self, made: Generation, baseline: Generation | None) -> tuple[bool | None, float | None]:
        """`identical` and `speedup` of a `Comparison`."""
        if baseline is None:
            return None, None
        rate, plain = made.metrics["tokens_per_second"], baseline.metrics["tokens_per_second"]
        seeded = self._options.get("seed") is not None and METHODS[made.method].coupled
        same = made.token_ids == baseline.token_ids if self.temperature == 0 or seeded else None
        return same, rate / plain if rate and plain else None
