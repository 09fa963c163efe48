"""The benchmark: every arm answers every prompt, one arm after another, each side with its own best number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.bench.assisted import ASSISTED, DEFAULTS, LOOKUP, PLAIN, PLAIN_BF16, Peer, TheirArm, in_bfloat16
from omnidemo.bench.prompt_files import check_prompts
from omnidemo.bench.silence import quietly
from omnidemo.bench.speed import llama_cpp
from omnidemo.bench.speed.adapted import Learned
from omnidemo.bench.speed.arms import ADAPTED, FRESH, STAGES, Answer, Arm, OurArm, Request, attempt, in_turn
from omnidemo.bench.speed.floor import Shape, floor
from omnidemo.bench.speed.machine import Peak, Probe, cores
from omnidemo.bench.speed.speed_report import Row
from omnidemo.bench.speed.watch import share_among, watched
from omnidemo.config import Settings
from omnidemo.methods import fitting, make_method
from omnidemo.pair.pair import Pair
from omnidemo.serving import gc_pauses
from omnidemo.serving.comparison import BASELINE
from omnidemo.serving.pair_loading import build_measured_pair

THREADS = (1, 2, 4)  # numbers that are tried
WARM_UP, TRIAL = 12, 48  # tokens of an untimed answer, and of one that tries a number of threads
PLAIN_METHODS = (PLAIN, PLAIN_BF16, BASELINE, llama_cpp.LLAMA, llama_cpp.LLAMA_BF16)  # they draft nothing
SETTLING = 16  # of an untimed one after another library's
MB = 1e6


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What to measure. traffic, held_out: topic → prompts. requests: how many answers to distil from (0: no adapted drafter); a line in
    the folder `adapters` is preferred (None: there is none). methods: ours ([]: all that fit the pair)."""

    targets: Sequence[str]
    traffic: Mapping[str, Sequence[str]]
    held_out: Mapping[str, Sequence[str]]
    requests: int
    out: Path
    adapters: Path | None = None
    methods: Sequence[str] = ()
    temperatures: Sequence[float] = (0.0, 1.0)
    max_new_tokens: int = 128
    draft_length: int = 4
    seed: int = 0
    command: str = ""


class Contest:
    """One target with its arms. ModelError or ValueError, when it is made, for what cannot be measured."""

    def __init__(self, target: str, order: BenchRequest, learned: Mapping[str, Learned], settings: Settings) -> None:
        """learned: topic → the adapted drafter ({}: fresh ones only). The settings' storage keeps the model as llama.cpp reads it."""
        self.name, self.order, self.learned, self.settings = target, order, learned, settings
        pair = build_measured_pair(target, settings.drafter, settings)
        self._runner = pair.target.runner
        self.target, self.drafter = watched(pair.target), watched(pair.drafter)
        self.pair = Pair(self.target, self.drafter, cache_size=settings.cache_size)
        models = pair.target, pair.drafter
        self.shapes = Shape.of(models[0], compact=False), Shape.of(models[1], compact=False)
        self.half_shapes = (replace(self.shapes[0], weights=self.shapes[0].weights // 2, head=self.shapes[0].head // 2), self.shapes[1])
        self.own_shapes = Shape.of(models[0]), Shape.of(models[1])  # of the passes of our own runners
        # Others join in two bytes as well where that changes no weight.
        self.two_bytes = self.target.device.type == "cpu" and all(
            torch.equal(weight, weight.bfloat16().to(weight.dtype)) for weight in pair.target.runner.weights().values()
        )
        for prompts in order.held_out.values():
            check_prompts(self.pair, prompts)
        wanted = order.methods or [name for name in fitting(self.pair.map) if name != BASELINE]
        self.methods = [name for name in dict.fromkeys(make_method(one, self.pair.map).name for one in wanted) if name != BASELINE]
        self.probe = Probe(pair.target.device, pair.target.dtype)
        self.no_llama = llama_cpp.refusal(pair.target)
        self._llama: list[llama_cpp.LlamaArm] = []  # made when they are needed, for all topics
        sides = ["transformers", "omnidemo", *([] if self.no_llama else [llama_cpp.LLAMA])]
        self.threads = dict.fromkeys(sides, torch.get_num_threads())
        self.tried: dict[str, dict[int, float]] = {}
        self.total = sum(map(len, order.held_out.values())) * len(order.temperatures) * self._count()

    def run(self) -> Iterator[Row]:
        """The rows, topic by topic; who begins changes from prompt to prompt."""
        plain = None
        with quietly():
            for topic, prompts in self.order.held_out.items():
                arms = self._arms(topic, plain)
                plain = arms[0].peer.target  # type: ignore[attr-defined]
                ids = [self.pair.prompt_ids(prompt) for prompt in prompts]
                if not self.tried:
                    self._choose_threads(arms, ids[0])
                gc_pauses.settle()
                for temperature in self.order.temperatures:
                    for arm in arms:
                        self._attempt(arm, Request(ids[0], min(WARM_UP, self.order.max_new_tokens), temperature, self.order.seed, False))
                    for index, prompt in enumerate(prompts):
                        request = Request(ids[index], self.order.max_new_tokens, temperature, self.order.seed + index)
                        for row in self._prompt(arms, request, topic, index):
                            yield replace(row, prompt=prompt)

    # arms ----------------------------------------------------------------------------------------------------------------

    def _count(self) -> int:
        states = 2 if self.learned else 1
        return 3 + self.two_bytes + (2 + self.two_bytes) * (not self.no_llama) + 2 * states + 2 * states * len(self.methods)

    def _arms(self, topic: str, target: Any) -> list[Arm]:
        """The arms of a topic; `transformers`' plain generation is the first, our plain decoding the last."""
        learned, pair = self.learned.get(topic), self.pair
        peer = Peer(pair, self.order.draft_length, target)
        arms: list[Arm] = [TheirArm(name, peer) for name in (PLAIN, LOOKUP)]
        arms += [in_bfloat16(peer, pair)] if self.two_bytes else []
        arms += [TheirArm(name, peer, drafter=FRESH) for name in (ASSISTED, DEFAULTS)]
        drafters = {FRESH: self.drafter}
        if learned is not None:
            other = Peer(pair, self.order.draft_length, peer.target, {**pair.drafting_weights(), **learned.weights})
            arms += [TheirArm(name, other, drafter=ADAPTED) for name in (ASSISTED, DEFAULTS)]
            drafters[ADAPTED] = replace(self.drafter, runner=self.drafter.runner.copy())
            drafters[ADAPTED].runner.overwrite(learned.weights)
        arms += self._llama_arms()
        for state, drafter in drafters.items():
            for method in self.methods:
                arms += [self._our(method, state, drafter, policy) for policy in ("fixed", "cost")]
        return [*arms, self._our(BASELINE, "", self.drafter, "")]

    def _llama_arms(self) -> Sequence[Arm]:
        if not self.no_llama and not self._llama:
            longest = max(len(self.pair.prompt_ids(prompt)) for prompts in self.order.held_out.values() for prompt in prompts)
            folder, positions = self.settings.storage / "bench" / "gguf", longest + self.order.max_new_tokens
            self._llama = llama_cpp.arms(self.target, folder, positions, self.order.draft_length, self.two_bytes)
        return self._llama

    def _our(self, method: str, state: str, drafter: Any, policy: Any) -> OurArm:
        """Each arm has a pair, and so a cache of n-grams and a memory of costs, of its own; all share the map and the weights."""
        pair = Pair(self.target, drafter, cache_size=self.settings.cache_size)
        pair.map = self.pair.map
        pair.fill_cache()
        return OurArm(method, pair, self.order.draft_length, drafter=state, rule=policy)

    def _choose_threads(self, arms: Sequence[Arm], ids: Sequence[int]) -> None:
        """Each side's number of threads: the one with which its plain decoding and its first drafting arm answer soonest. More are
        tried only while that helps."""
        if self.target.device.type != "cpu" or self.settings.threads:
            return
        request = Request(ids, min(TRIAL, self.order.max_new_tokens), 0.0, self.order.seed, details=False)
        wanted: dict[str, tuple[str, ...]] = {"transformers": (PLAIN, ASSISTED), "omnidemo": (BASELINE, *self.methods[:1])}
        if self._llama:
            wanted[llama_cpp.LLAMA] = (llama_cpp.LLAMA,)
        for side, methods in wanted.items():
            chosen = [next(arm for arm in arms if arm.side == side and arm.method == method) for method in methods]
            times: dict[int, float] = {}
            for count in (count for count in THREADS if count <= cores()):
                self.threads[side] = count
                times[count] = sum(min(self._seconds(arm, request) for _ in range(3)) for arm in chosen)
                if times[count] > 1.2 * min(times.values()):
                    break
            self.tried[side] = times
            self.threads[side] = min(times, key=lambda count: times[count])

    def _seconds(self, arm: Arm, request: Request) -> float:
        made = self._attempt(arm, request)
        return float("inf") if isinstance(made, str) else made.seconds

    # measuring -----------------------------------------------------------------------------------------------------------

    def _prompt(self, arms: Sequence[Arm], request: Request, topic: str, index: int) -> list[Row]:
        """One prompt by every arm."""
        side = ""
        made: dict[str, tuple[Answer | str, Peak]] = {}
        for arm in in_turn(arms, index):
            if arm.side != side:  # whoever comes after other libraries finds the caches full of their weights, and threads awake
                self._attempt(arm, replace(request, max_new_tokens=min(SETTLING, request.max_new_tokens), details=False))
                side = arm.side
            with Peak(self.target.device) as peak:
                took = self._attempt(arm, request)
            made[arm.name] = took, peak
        plain, own = made[arms[0].name][0], made[arms[-1].name][0]
        return [self._row(arm, request, topic, index, *made[arm.name], plain, own) for arm in arms]

    def _attempt(self, arm: Arm, request: Request) -> Answer | str:
        if self.target.device.type == "cpu":
            self._take_threads(arm)
        return attempt(arm, request)

    def _take_threads(self, arm: Arm) -> None:
        """Have an arm's passes made by its side's number of threads."""
        count = self.threads[arm.side]
        if isinstance(arm, OurArm) and isinstance(self._runner, FusedLlama) and self._runner.passes is not None:
            for model in (arm.pair.target, arm.pair.drafter):
                share_among(model, count)
            count = 1  # torch's own threads would compete with those of a compiled pass
        if torch.get_num_threads() != count:
            torch.set_num_threads(count)
            _wake()

    def _row(self, arm: Arm, request: Request, topic: str, index: int, took: Answer | str, peak: Peak, plain: Any, own: Any) -> Row:
        row = Row(
            self.name, topic, request.temperature, index, arm.name, arm.method, arm.drafter,
            arm.rule, self.threads[arm.side], prompt_tokens=len(request.ids),
        )  # fmt: skip
        if isinstance(took, str):
            return replace(row, error=took)
        shapes = self.own_shapes if isinstance(arm, OurArm) else self.shapes
        if arm.method in (PLAIN_BF16, llama_cpp.LLAMA_BF16):
            shapes = self.half_shapes
        least = floor([(shapes[which], one) for which, one in took.passes], self.probe, self.threads[arm.side])
        rounds = sum(took.split.values())
        scale = 1e3 / took.timed_rounds if took.timed_rounds and took.split else None
        each: dict[str, Any] = {f"{name}_ms": took.split[name] * scale if scale else None for name in STAGES}
        bare = took.bare if took.bare is not None and rounds else None
        return replace(
            row,
            **took.columns(plain, own, greedy=not request.temperature),
            first_token_ms=took.first * 1e3 if took.first is not None else None,
            rounds=took.timed_rounds,
            round_ms=rounds * scale if scale else None,
            **each,
            bare_ms=bare * scale if bare is not None and scale else None,
            overhead=1 - bare / rounds if bare is not None else None,
            tokens_per_pass=took.block_efficiency,
            drafted_per_round=None if arm.method in PLAIN_METHODS else took.drafted / len(took.rounds),
            floor_bytes=least.bytes,
            floor_operations=least.operations,
            floor_seconds=least.seconds,
            over_floor=took.seconds / least.seconds if least.seconds else None,
            rss_growth_mb=peak.rss_growth / MB,
            cuda_peak_mb=peak.cuda / MB if peak.cuda is not None else None,
        )


def _wake() -> None:
    """Have the threads that were just asked for started, before anything is timed."""
    matrix = torch.ones(256, 256)
    for _ in range(4):
        matrix = (matrix @ matrix).clamp(max=1)
