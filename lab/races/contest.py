"""The benchmark: every arm answers every prompt, one arm after another, each side with its own best number of
threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from lab.equality.silence import quietly
from lab.races.arms import Answer, Arm, OurArm, Request
from lab.races.assisted import ASSISTED, DEFAULTS, LOOKUP, PLAIN, PLAIN_BF16, Peer, TheirArm
from lab.races.floor import Shape, floor
from lab.races.machine import Probe
from lab.races.speed_report import COLUMNS, Row
from lab.races.watch import watched
from omnidemo.backends import choice
from omnidemo.core.config import Settings
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.resources import usable_cores
from omnidemo.decoding.methods import BASELINE, fitting, make_method
from omnidemo.pair.in_turns import rotated
from omnidemo.pair.pair import Pair
from omnidemo.serving import gc_pauses
from omnidemo.serving.measuring.prompt_files import check_prompts
from omnidemo.serving.pair_loading import build_measured_pair

THREADS = (1, 2, 4)  # numbers that are tried
WARM_UP, TRIAL = 12, 48  # tokens of an untimed answer, and of one that tries a number of threads
PLAIN_METHODS = (PLAIN, PLAIN_BF16, BASELINE)  # they draft nothing
SETTLING = 16  # of an untimed one after another library's
POLICIES: tuple[Policy, ...] = ("fixed", "cost")


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What to measure. prompts: topic → prompts. methods: ours ([]: all that fit the pair)."""

    targets: Sequence[str]
    prompts: Mapping[str, Sequence[str]]
    out: Path
    methods: Sequence[str] = ()
    temperatures: Sequence[float] = (0.0, 1.0)
    max_new_tokens: int = 128
    draft_length: int = 4
    seed: int = 0
    command: str = ""

    def __post_init__(self) -> None:
        if self.max_new_tokens < 2 or self.draft_length < 1:
            raise ValueError("max_new_tokens must be at least 2 and draft_length at least 1")


class Contest:
    """One target with its arms. ModelError or ValueError, when it is made, for what cannot be measured."""

    def __init__(self, target: str, order: BenchRequest, settings: Settings) -> None:
        self.name, self.order, self.settings = target, order, settings
        pair = build_measured_pair(target, settings.drafter, settings)
        self.forms = choice.described(target=pair.target.runner, drafter=pair.drafter.runner)
        self.target, self.drafter = watched(pair.target), watched(pair.drafter)
        self.pair = Pair(self.target, self.drafter, cache_size=settings.cache_size)
        for prompts in order.prompts.values():
            check_prompts(self.pair, prompts)
        wanted = order.methods or fitting(self.pair.map)
        self.methods = [
            name
            for name in dict.fromkeys(make_method(one, self.pair.map).name for one in wanted)
            if name != BASELINE
        ]
        # Of the passes of others, and of our own.
        self.shapes = {
            compact: [Shape.of(model, compact) for model in (pair.target, pair.drafter)]
            for compact in (False, True)
        }
        self.probe = Probe(pair.target.device, pair.target.dtype)
        self.threads = dict.fromkeys(
            ("transformers", "omnidemo"), settings.threads or torch.get_num_threads()
        )
        self.tried: dict[str, dict[int, float]] = {}
        self.total: int | None = None  # answers; known when the first one is

    def run(self) -> Iterator[Row]:
        """The rows, topic by topic; who begins changes from prompt to prompt."""
        order = self.order
        with quietly():
            self.peer = Peer(self.pair, order.draft_length)
            arms = self._arms()
            self.total = sum(map(len, order.prompts.values())) * len(order.temperatures) * len(arms)
            for topic, prompts in order.prompts.items():
                ids = [self.pair.prompt_ids(prompt) for prompt in prompts]
                if not self.tried:
                    self._choose_threads(arms, ids[0])
                gc_pauses.settle()
                for temperature in order.temperatures:
                    first = min(WARM_UP, order.max_new_tokens)
                    for arm in arms:
                        self._attempt(arm, Request(ids[0], first, temperature, order.seed, False))
                    for index in range(len(prompts)):
                        request = Request(ids[index], order.max_new_tokens, temperature, order.seed + index)
                        yield from self._prompt(arms, request, topic, index)

    # arms
    # --------------------------------------------------------------------------------------------------------

    def _arms(self) -> list[Arm]:
        theirs: list[Arm] = [TheirArm(name, self.peer) for name in (PLAIN, LOOKUP)]
        # `transformers` joins in two bytes as well where that changes no weight.
        if self.target.device.type == "cpu" and all(
            torch.equal(weight, weight.bfloat16().to(weight.dtype))
            for weight in self.target.runner.weights().values()
        ):
            half = copy(self.peer)
            half.target = deepcopy(self.peer.target).to(torch.bfloat16)
            theirs.append(TheirArm(PLAIN_BF16, half))
        theirs += [TheirArm(name, self.peer) for name in (ASSISTED, DEFAULTS)]
        ours = [self._our(method, policy) for method in self.methods for policy in POLICIES]
        return [*theirs, *ours, self._our(BASELINE)]

    def _our(self, method: str, policy: Policy | Literal[""] = "") -> OurArm:
        """Each arm has a pair, and so a cache of n-grams and a memory of costs, of its own; all share the map
        and the weights."""
        pair = Pair(self.target, self.drafter, cache_size=self.settings.cache_size)
        pair.map = self.pair.map
        pair.fill_cache()
        return OurArm(method, pair, self.order.draft_length, rule=policy)

    def _choose_threads(self, arms: Sequence[Arm], ids: Sequence[int]) -> None:
        """Each side's number of threads: the one with which its plain decoding and its first drafting arm
        answer soonest. More are tried only while that helps."""
        if self.target.device.type != "cpu" or self.settings.threads:
            return
        request = Request(ids, min(TRIAL, self.order.max_new_tokens), 0.0, self.order.seed, details=False)
        wanted = {"transformers": (PLAIN, ASSISTED), "omnidemo": (BASELINE, *self.methods[:1])}
        for side in dict.fromkeys(arm.side for arm in arms):
            chosen = [next(arm for arm in arms if arm.method == method) for method in wanted[side]]
            times: dict[int, float] = {}
            for count in (count for count in THREADS if count <= usable_cores()):
                self.threads[side] = count
                times[count] = sum(min(self._seconds(arm, request) for _ in range(3)) for arm in chosen)
                if times[count] > 1.2 * min(times.values()):
                    break
            self.tried[side] = times
            self.threads[side] = min(times, key=lambda count: times[count])

    def _seconds(self, arm: Arm, request: Request) -> float:
        made = self._attempt(arm, request)
        return float("inf") if isinstance(made, str) else made.seconds

    # measuring
    # --------------------------------------------------------------------------------------------------------

    def _prompt(self, arms: Sequence[Arm], request: Request, topic: str, index: int) -> list[Row]:
        """One prompt by every arm."""
        side = ""
        made: dict[str, Answer | str] = {}
        for arm in rotated(arms, index):
            # whoever comes after other libraries finds the caches full of their weights, and threads awake
            if arm.side != side:
                self._attempt(
                    arm, replace(request, max_new_tokens=min(SETTLING, request.max_new_tokens), details=False)
                )
                side = arm.side
            made[arm.name] = self._attempt(arm, request)
        rows = []
        for arm in arms:
            took = made[arm.name]
            row = self._place(arm, topic, index, request.temperature) | {"prompt_tokens": len(request.ids)}
            if isinstance(took, str):
                rows.append(row | {"error": took})
            else:
                figures = took.columns(made[PLAIN], made[BASELINE], greedy=not request.temperature)
                rows.append(row | figures | self._costs(arm, took))
        return rows

    def _place(self, arm: Arm, topic: str, index: int, temperature: float) -> Row:
        """A row without figures."""
        return dict.fromkeys(COLUMNS) | {
            "target": self.name, "topic": topic, "temperature": temperature, "prompt_index": index,
            "arm": arm.name, "method": arm.method, "policy": arm.rule, "threads": self.threads[arm.side],
            "tokens": 0, "rounds": 0, "error": "", "prompt": self.order.prompts[topic][index],
        }  # fmt: skip

    def _attempt(self, arm: Arm, request: Request) -> Answer | str:
        """The answer; or in one line why a library other than ours has none, for its limits are part of the
        comparison."""
        if self.target.device.type == "cpu":
            arm.take_threads(self.threads[arm.side])
        try:
            with torch.inference_mode():
                return arm.answer(request)
        except Exception as error:
            if isinstance(arm, OurArm):
                raise
            return " ".join(f"{type(error).__name__}: {error}".split())

    def _costs(self, arm: Arm, took: Answer) -> Row:
        """The columns of an answer that are this machine's: the floor."""
        shapes = self.shapes[isinstance(arm, OurArm)]
        if arm.method == PLAIN_BF16:
            shapes = [replace(shapes[0], weights=shapes[0].weights // 2, head=shapes[0].head // 2)]
        moved, done, least = floor(
            [(shapes[which], one) for which, one in took.passes], self.probe, self.threads[arm.side]
        )
        return {
            "drafted_per_round": None if arm.method in PLAIN_METHODS else took.drafted / len(took.rounds),
            "floor_bytes": moved,
            "floor_operations": done,
            "floor_seconds": least,
            "over_floor": took.seconds / least if least else None,
        }
