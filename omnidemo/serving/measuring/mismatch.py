"""The first wrong token: the ids of the reference and of another backend for the same prompts, methods,
temperatures and seeds."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import choice, compile_kernels
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Token
from omnidemo.decoding.contexts import common_prefix
from omnidemo.decoding.methods import METHODS, fitting, make_method
from omnidemo.decoding.row_ops import noise
from omnidemo.models.load import LanguageModel, load_model
from omnidemo.models.names import resolve
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.report_tables import Stage
from omnidemo.serving.pair_loading import build_measured_pair

NEAR = 1e-4  # difference of two scores below which rounding may decide
MOST = 16  # rows of a pass
PROMPTS = (
    "Tell me a short story about a fox.",
    "Tom has 3 apples and buys 4 more. How many has he?",
    "Write a Python function that doubles a number.",
    "How do I clean a window?",
)

Case = Mapping[str, Any]  # prompt, method, temperature, and the prompt's place as seed


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where two answers part: at the token `position` of the answer, counted from 0.

    `wanted` is the reference's token there and `got` the other's, None for an answer that has ended.
    `logits`: the reference's for both tokens; None where there are no two. `gap`: the score of `wanted` minus
    that of `got`, by which the target chooses: at temperature 0 the logit, else log p + g with the seed's
    noise; None without a score.
    """

    case: Case
    position: int
    wanted: Token | None
    got: Token | None
    logits: tuple[float, float] | None = None
    gap: float | None = None

    @property
    def near_tie(self) -> bool:
        """Whether rounding may decide between the two."""
        return self.gap is not None and abs(self.gap) < NEAR


@dataclass(frozen=True, slots=True)
class BackendReport:
    """`answers` were compared, with `tokens` reference tokens. `different` of them differ, the first at
    `first`; `near_ties` others part where rounding decides. `batched`: how many numbers of a packed target's
    logits depend on the other rows of a batch; None for other targets."""

    backend: str
    answers: int
    tokens: int
    different: int = 0
    first: Mismatch | None = None
    near_ties: int = 0
    batched: int | None = None

    @property
    def passed(self) -> bool:
        return self.first is None and not self.batched

    def lines(self) -> list[str]:
        """The report as lines for people."""
        if self.batched is None:
            return self._found()
        said = f"{self.batched:,} numbers differ" if self.batched else "the same bits"
        return [*self._found(), f"A row of logits alone and among up to {MOST} in int8: {said}."]

    def _found(self) -> list[str]:
        first = self.first
        if first is None:
            count = self.near_ties
            ties = f" {count:,} part at a near-tie, which rounding decides." if count else ""
            over = f"over {self.answers:,} answers and {self.tokens:,} tokens"
            return [f"No mismatch between {self.backend} and the reference, {over}.{ties}"]
        gap = "–"
        if first.logits is not None:
            wanted, got = first.logits
            gap = f"{wanted - got:.3g} ({wanted:.6g} and {got:.6g}, by the reference)"
        rows = {
            **first.case, "prompt": repr(first.case["prompt"]),
            "temperature": f"{first.case['temperature']:g}",
            "position": f"{first.position} (the answer's first token is 0)",
            "reference": _shown(first.wanted),
            self.backend: _shown(first.got), "logits gap": gap,
        }  # fmt: skip
        found = (
            f"{self.different:,} of {self.answers:,} answers differ between {self.backend} and the reference."
            " The first mismatch:"
        )
        return [found, *(f"  {name:<12} {said}" for name, said in rows.items())]


def check(
    settings: Settings,
    methods: Sequence[str] = (),
    temperatures: Sequence[float] = (0.0, 1.0),
    tokens: int = 48,
    prompts: Sequence[str] = PROMPTS,
) -> Iterator[Stage | BackendReport]:
    """Answer every prompt by every method (none given: all that serve the pair) at every temperature, on the
    reference and on the backend of the settings; above temperature 0 by those that a seed couples, for others
    have no scores that say what rounding decides. Yield a `Stage` and the report so far after each
    comparison. Both compute in float32 with the same weights. After that a packed target is loaded in their
    place, and a row is compared alone and among others.

    The n-gram cache is full, so that n-grams are merged, and nothing is learned. ValueError, one sentence,
    for a method that cannot serve the pair and as in `load_pair`.
    """
    if settings.backend == "reference":
        raise ValueError("the reference cannot be checked against itself; set OMNIDEMO_BACKEND=auto")
    report = BackendReport("", 0, 0)
    for found in _answers(settings, methods, temperatures, tokens, prompts):
        report = found if isinstance(found, BackendReport) else report
        yield found
    if settings.packed:
        gc.collect()  # a pair is a reference cycle
        target = load_model(
            resolve(settings.target, settings).where, packed=True, device=settings.device, **settings.loading
        )
        if isinstance(target.runner, FusedLlama) and target.runner.packed is not None:
            yield Stage("rows in int8", 0, 1)
            ids = target.tokenizer.encode("\n".join(prompts))
            yield replace(report, batched=differing(target.runner, ids))
            yield Stage("rows in int8", 1, 1)


def _answers(
    settings: Settings,
    methods: Sequence[str],
    temperatures: Sequence[float],
    tokens: int,
    prompts: Sequence[str],
) -> Iterator[Stage | BackendReport]:
    """The answers of `check`."""
    other = build_measured_pair(
        settings.target, settings.drafter, settings.model_copy(update={"arithmetic": "float32"})
    )
    reference = Pair(_by_torch(other.target), _by_torch(other.drafter), **settings.limits)
    for pair in (reference, other):
        pair.fill_cache()
    names = [make_method(name, reference.map).name for name in methods] or fitting(reference.map)
    cases: list[Case] = [
        {"prompt": text, "method": name, "temperature": heat, "seed": seed}
        for name, heat, (seed, text) in product(names, temperatures, enumerate(prompts))
        if heat == 0.0 or METHODS[name].coupled
    ]
    if not cases:
        raise ValueError(f"a seed does not couple {names[0]} above temperature 0; give --temperature 0")
    options: dict[str, Any] = {
        "max_new_tokens": tokens, "draft_length": settings.draft_length, "learn": False, "reuse": False,
    }  # fmt: skip
    backend = choice.backend_of(other.target.runner, other.drafter.runner)
    if backend == "reference":
        raise ValueError("nothing here is faster than the reference; choose a model of Llama, Qwen2 or Qwen3")
    if backend == "cpu" and not compile_kernels.wait():
        raise ValueError(f"the passes cannot be compiled here: {compile_kernels.failure()}")
    report = BackendReport(backend, 0, 0)
    yield Stage("answers", 0, len(cases))
    for count, case in enumerate(cases, 1):
        right = reference.generate(**case, **options)
        found = parting(reference, case, right, other.generate(**case, **options))
        real = found if found is not None and not found.near_tie else None
        report = replace(
            report, answers=report.answers + 1, tokens=report.tokens + len(right.token_ids),
            different=report.different + (real is not None), first=report.first or real,
            near_ties=report.near_ties + (found is not None and real is None),
        )  # fmt: skip
        yield report
        yield Stage("answers", count, len(cases))


def _by_torch(model: LanguageModel) -> LanguageModel:
    """The same weights, with passes that torch computes."""
    runner = model.runner
    return replace(model, runner=runner.by_torch()) if isinstance(runner, FusedLlama) else model


def parting(reference: Pair, case: Case, wanted: Generation, got: Generation) -> Mismatch | None:
    """Where two answers to a case part; None for equal ids."""
    if wanted.token_ids == got.token_ids:
        return None
    position = common_prefix(wanted.token_ids, got.token_ids)
    first, second = (
        next(islice((token for one in made.rounds for token in one.tokens), position, None), None)
        for made in (wanted, got)
    )
    logits = gap = None
    if first is not None and second is not None:
        before = [*reference.prompt_ids(case["prompt"]), *wanted.token_ids[:position]]
        row = reference.target.runner.new_cache().forward(before, 1).logits[0]
        logits = float(row[first.id]), float(row[second.id])
        gap = _gap(case, position, (first.id, second.id), logits, len(row))
    return Mismatch(case, position, first, second, logits, gap)


def differing(runner: FusedLlama, ids: Sequence[int]) -> int:
    """How many logits of a packed target have other bits in passes of 1, 2, … MOST rows, as far as the window
    reaches, than in passes of one row. The passes read `ids`, repeated."""
    sizes = [size for size in range(1, MOST + 1) if size * (size + 1) // 2 <= runner.max_positions]
    some = [ids[at % len(ids)] for at in range(sum(sizes))]
    return int((_bits(runner, some, sizes) != _bits(runner, some, [1] * len(some))).sum())


def _bits(runner: FusedLlama, ids: Sequence[int], sizes: Sequence[int]) -> NDArray[np.uint32]:
    """The bits of the logits [ids, rows] that passes of these sizes give."""
    cache, made, begin = runner.new_cache(), list[NDArray[np.uint32]](), 0
    for size in sizes:
        made.append(cache.forward(ids[begin : begin + size], size).logits.view(np.uint32))
        begin += size
    return np.concatenate(made)


def _gap(case: Case, position: int, tokens: tuple[int, int], logits: tuple[float, float], rows: int) -> float:
    """See `Mismatch.gap`."""
    heat = case["temperature"]
    if heat == 0.0:
        return logits[0] - logits[1]
    one, two = (
        -math.log(-math.log((float(n) + 0.5) / 2**32))
        for n in noise(case["seed"], position, 0, rows)[list(tokens)]
    )
    return (logits[0] - logits[1]) / heat + one - two


def _shown(token: Token | None) -> str:
    if token is None:
        return "nothing: its answer has ended"
    return f"{token.text!r} (id {token.id}, {token.source})"
