"""The arms of the benchmark: each can answer a prompt, and tells what that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import Any, Protocol

import torch

from omnidemo.bench.assisted import PLAIN, Peer
from omnidemo.bench.speed.floor import Pass, Shape
from omnidemo.bench.speed.machine import synchronise
from omnidemo.bench.speed.watch import bare, take_reads, waiting_clock
from omnidemo.decoding.draft_policy import Policy
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation

FRESH, ADAPTED = "fresh", "adapted"
STAGES = ("draft", "verify", "settle", "other")


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt; `bare`: whether our own passes are to be timed once more by themselves."""

    ids: Sequence[int]
    max_new_tokens: int
    temperature: float
    seed: int
    bare: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """One answer. `seconds`: the whole call. `split`: seconds of all rounds, by stage; `rounds`: how many they are. `bare`: the same
    passes with nothing around them, seconds; `passes`: all forward passes, the prompt's included."""

    ids: Sequence[int]
    seconds: float
    first: float | None
    rounds: int
    split: dict[str, float]
    passes: Sequence[tuple[Shape, Pass]]
    block_efficiency: float
    acceptance: float | None = None
    drafted: float | None = None  # drafter tokens per round
    bare: float | None = None


class Arm(Protocol):
    """A way to decode. `side` is whose threads it takes; `drafter` is "", "fresh" or "adapted"."""

    side: str
    method: str
    drafter: str

    @property
    def name(self) -> str: ...

    @property
    def rule(self) -> str:
        """The draft policy of ours, where there is a draft."""
        ...

    def answer(self, request: Request) -> Cost: ...


@dataclass
class TheirArm:
    """`transformers`' generation in one of its modes. Its forward passes are timed by hooks on a CPU; elsewhere there is no split."""

    peer: Peer
    method: str
    drafter: str
    target_shape: Shape
    drafter_shape: Shape
    side: str = "transformers"
    rule: str = ""

    @property
    def name(self) -> str:
        return f"{self.method} {self.drafter}".strip()

    def answer(self, request: Request) -> Cost:
        torch.manual_seed(request.seed)
        device = self.peer.target.device
        synchronise(device)
        began = perf_counter()
        made = self.peer.generate(self.method, request.ids, request.max_new_tokens, request.temperature > 0, request.temperature or 1.0)
        synchronise(device)
        seconds = perf_counter() - began
        passes = [
            (self.drafter_shape if one.drafter else self.target_shape, Pass(one.start, one.ids.shape[1], 1 if one.drafter else judged))
            for one, judged in zip(made.passes, _rows(made.passes, made.rounds), strict=True)
        ]
        rates = [accepted / proposed for proposed, accepted in made.rounds if proposed]
        return Cost(
            ids=made.ids,
            seconds=seconds,
            first=made.first_seconds,
            rounds=max(0, len(made.rounds) - 1),  # the first pass reads the prompt
            split=self._split(made, seconds) if device.type == "cpu" else {},
            passes=passes,
            block_efficiency=len(made.ids) / max(1, len(made.rounds)),
            acceptance=fmean(rates) if rates else None,
            drafted=made.drafted / max(1, len(made.rounds)) if self.method != PLAIN else None,
        )

    def _split(self, made: Any, seconds: float) -> dict[str, float]:
        """Of what follows the first token."""
        later = [one for one in made.passes if one.began - made.passes[0].began >= (made.first_seconds or 0.0)]
        draft, verify = (sum(one.seconds for one in later if one.drafter is which) for which in (True, False))
        return {"draft": draft, "verify": verify, "settle": 0.0, "other": seconds - (made.first_seconds or 0.0) - draft - verify}


def _rows(passes: Sequence[Any], rounds: Sequence[tuple[int, int]]) -> list[int]:
    """Rows of logits that each pass needs: one for each proposal and one more."""
    judged = iter(rounds)
    return [1 if one.drafter else next(judged)[0] + 1 for one in passes]


@dataclass
class OurArm:
    """One of our methods on a pair whose models are watched."""

    pair: Pair
    method: str
    drafter: str
    policy: Policy
    draft_length: int
    target_shape: Shape
    drafter_shape: Shape
    side: str = "omnidemo"

    @property
    def name(self) -> str:
        return f"{self.method} {self.drafter} {self.policy}" if self.drafter else self.method

    @property
    def rule(self) -> str:
        return self.policy if self.drafter else ""

    def answer(self, request: Request) -> Cost:
        models, device = (self.pair.target, self.pair.drafter), self.pair.target.device
        for model in models:
            take_reads(model)  # whatever was read before
        made, seconds = self._timed(request, device)
        read = [take_reads(model) for model in models]
        if device.type != "cpu":  # the same again, each stage waited for
            with waiting_clock(self.pair):
                split = self._timed(request, device)[0]
        else:
            split = made
        passes = [(shape, one.shape) for shape, reads in zip((self.target_shape, self.drafter_shape), read, strict=True) for one in reads]
        count = len(made.rounds)
        return Cost(
            ids=made.token_ids,
            seconds=seconds,
            first=made.metrics["time_to_first_token"],
            rounds=count,
            split={name: (split.metrics[f"{name}_seconds"] or 0.0) * count / len(split.rounds) for name in STAGES},
            passes=passes,
            block_efficiency=len(made.token_ids) / count,
            acceptance=made.metrics["acceptance_rate"],
            drafted=made.metrics["draft_length"] if self.drafter else None,
            bare=self._bare(*read) if request.bare else None,
        )

    def _timed(self, request: Request, device: torch.device) -> tuple[Generation, float]:
        synchronise(device)
        began = perf_counter()
        made = self.pair.generate(
            request.ids, method=self.method, max_new_tokens=request.max_new_tokens, temperature=request.temperature, seed=request.seed,
            draft_policy=self.policy, draft_length=self.draft_length, learn=False, reuse=False,
        )  # fmt: skip
        synchronise(device)
        return made, perf_counter() - began

    def _bare(self, target: Sequence[Any], drafter: Sequence[Any]) -> float:
        """The passes of the rounds; reading the prompt, which the target does before them, does not count."""
        return bare((self.pair.target, target), (self.pair.drafter, drafter))
