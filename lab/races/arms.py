"""The arms of a benchmark: each answers a prompt and reports its times. Ours are here, those of
`transformers` in `assisted`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any, ClassVar, Literal

import torch

from lab.races.floor import Pass
from lab.races.machine import synchronise
from lab.races.watch import bare, own_runner, take_reads, unwatched_cache, waiting_clock
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import STAGES, Generation
from omnidemo.pair.pair import Pair


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and how to answer it. `details`: further runs time our bare passes and, on a GPU, the
    stages."""

    ids: Sequence[int]
    max_new_tokens: int
    temperature: float
    seed: int
    details: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. ids: without the prompt. seconds: the whole call; first: until its first token, if known.
    rounds: (proposed, accepted) target tokens of each target pass that wrote tokens; reads_prompt: the first
    of them also read the prompt, so that its time is no round's. drafted: drafter tokens drawn. split:
    seconds of all rounds by stage, {} where they are not known. passes: all forward passes, the prompt's
    included, each with 0 for the target or 1 for the drafter. bare: seconds of the rounds' passes with
    nothing around them."""

    ids: Sequence[int]
    seconds: float
    first: float | None
    rounds: Sequence[tuple[int, int]]
    drafted: int
    passes: Sequence[tuple[int, Pass]]
    reads_prompt: bool = True
    split: Mapping[str, float] = field(default_factory=dict)
    bare: float | None = None

    @property
    def timed_rounds(self) -> int:
        return len(self.rounds) - self.reads_prompt

    @property
    def tokens_per_second(self) -> float:
        return len(self.ids) / self.seconds

    @property
    def block_efficiency(self) -> float:
        return len(self.ids) / len(self.rounds)

    @property
    def acceptance_rate(self) -> float | None:
        rates = [accepted / proposed for proposed, accepted in self.rounds if proposed]
        return fmean(rates) if rates else None

    def columns(self, plain: Answer | str, own: Answer | str, greedy: bool) -> dict[str, Any]:
        """The columns of a row that an answer itself has, beside the answers of `transformers`' plain
        generation and of our plain decoding on the same prompt; a text stands for an answer that failed."""
        parts: dict[str, Any] = {}
        if self.timed_rounds and self.split:
            whole, scale = sum(self.split.values()), 1e3 / self.timed_rounds
            parts = {"round_ms": whole * scale} | {
                f"{name}_ms": seconds * scale for name, seconds in self.split.items()
            }
            if self.bare is not None and whole:
                parts |= {"bare_ms": self.bare * scale, "overhead": 1 - self.bare / whole}
        return parts | {
            "tokens": len(self.ids),
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
            "speedup": _speed_ratio(self, plain),
            "own_speedup": _speed_ratio(self, own),
            "first_token_ms": self.first * 1e3 if self.first is not None else None,
            "rounds": self.timed_rounds,
            "tokens_per_pass": self.block_efficiency,
            "acceptance_rate": self.acceptance_rate,
            "identical": list(self.ids) == list(plain.ids) if greedy and isinstance(plain, Answer) else None,
        }


@dataclass
class Arm:
    """A way to decode. `side` is whose threads it takes; `rule` the draft policy of ours, where there is a
    draft."""

    side: ClassVar[str]
    method: str
    rule: Policy | Literal[""] = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.method, self.rule) if part)

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    def take_threads(self, count: int) -> None:
        """Have passes made by so many threads of a CPU."""
        if torch.get_num_threads() != count:
            torch.set_num_threads(count)
            matrix = torch.ones(256, 256)
            for _ in range(4):  # have those that were just asked for started, before anything is timed
                matrix = (matrix @ matrix).clamp(max=1)


def _speed_ratio(one: Answer, other: Answer | str) -> float | None:
    """Tokens a second over those of another answer; None where there is none."""
    return None if isinstance(other, str) else one.tokens_per_second / other.tokens_per_second


@dataclass
class OurArm(Arm):
    """One of our methods on a pair. Its passes are known where its models are watched."""

    side = "omnidemo"
    pair: Pair
    draft_length: int

    def answer(self, request: Request) -> Answer:
        models, device = (self.pair.target, self.pair.drafter), self.pair.target.device
        for model in models:
            take_reads(model)  # whatever was read before
        synchronise(device)
        began = perf_counter()
        made = self._generate(request)
        synchronise(device)
        seconds = perf_counter() - began
        reads = [take_reads(model) for model in models]
        split = made
        if device.type != "cpu" and request.details:  # the same again, each stage waited for
            with waiting_clock(self.pair):
                split = self._generate(request)
        count = len(made.rounds)
        return Answer(
            ids=made.token_ids,
            seconds=seconds,
            first=made.metrics["time_to_first_token"],
            rounds=[(one.proposed, one.accepted) for one in made.rounds],
            drafted=sum(one.drafted for one in made.rounds),
            passes=[(which, one.shape) for which, mine in enumerate(reads) for one in mine],
            reads_prompt=False,
            split={
                name: (split.metrics[f"{name}_seconds"] or 0.0) * count / len(split.rounds) for name in STAGES
            },
            bare=(
                bare(device, *zip(map(unwatched_cache, models), reads, strict=True))
                if request.details
                else None
            ),
        )

    def take_threads(self, count: int) -> None:
        runners = [own_runner(model) for model in (self.pair.target, self.pair.drafter)]
        if isinstance(runners[0], FusedLlama) and runners[0].passes is not None:
            for runner in runners:
                if isinstance(runner, FusedLlama):
                    runner.threads = count
            count = 1  # torch's own threads would compete with those of a compiled pass
        super().take_threads(count)

    def _generate(self, request: Request) -> Generation:
        return self.pair.generate(
            request.ids, method=self.method, max_new_tokens=request.max_new_tokens,
            temperature=request.temperature, seed=request.seed,
            draft_policy=self.rule or "fixed", draft_length=self.draft_length, learn=False,
            reuse=False,
        )  # fmt: skip
