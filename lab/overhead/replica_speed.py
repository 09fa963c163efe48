"""What replicas write in all, and what their answers cost the app's process: messages, bytes and processor
time."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from omnidemo.backends import compile_kernels
from omnidemo.core.config import GREEDY, Settings
from omnidemo.core.records import Generation, Round, Trace
from omnidemo.models.names import known_settings
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Call
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.replicas.failover import Batches
from omnidemo.serving.replicas.ray_cluster import NEEDED, RayCluster
from omnidemo.serving.replicas.replicated_pair import ReplicatedPair

HEADINGS = ("who answers", "answers", "tokens/s in all", "messages/s", "the app's ms a message")


@dataclass(frozen=True, slots=True)
class Served:
    """Answers to the same prompts. `seconds`: of all of them together; `app_seconds`: of the app's processor
    within them."""

    layout: str
    answers: int
    tokens: int
    seconds: float
    app_seconds: float
    messages: int = 0

    def cells(self) -> tuple[str, ...]:
        """As `HEADINGS` name them. The process's own time is that of messages only where replicas decode."""
        rate = f"{self.messages / self.seconds:.0f}" if self.messages else "–"
        cost = f"{1000 * self.app_seconds / self.messages:.2f}" if self.messages else "–"
        return self.layout, str(self.answers), f"{self.tokens / self.seconds:.0f}", rate, cost


@dataclass(frozen=True, slots=True)
class Sizes:
    """Mean pickled bytes of a call, of a round in the batches it came in, and of the trace of a token."""

    call: float
    round: float
    trace_per_token: float

    def __str__(self) -> str:
        return (
            f"Pickled: a call {self.call:,.0f} bytes, a round {self.round:,.0f}, a trace"
            f" {self.trace_per_token:,.0f} a token."
        )


@dataclass(frozen=True, slots=True)
class Task:
    """What every layout does: the prompts, each answered with so many tokens at most, `clients` at once."""

    settings: Settings
    prompts: Sequence[str]
    clients: int
    passes: int
    tokens: int


def run(task: Task, layouts: Sequence[int]) -> Iterator[Served | Sizes]:
    """Each pass of this process alone, one answer after another, then of each number of replicas; at the end
    the `Sizes`.

    Each number has a node of Ray of its own, whose replicas share the machine's cores. Drafts have a fixed
    length and nothing is learned, so that all make the same rounds. ValueError, one sentence, without Ray.
    """
    settings = known_settings(task.settings)
    if min(layouts, default=0) < 1:
        raise ValueError("a number of replicas must be at least 1; give some, with commas between")
    if find_spec("ray") is None:
        raise ValueError(NEEDED)
    if settings.backend != "reference":
        compile_kernels.wait()  # also for the replicas, which find the machine code on the disk
    alone = build_pair(settings.target, settings.drafter, settings)
    _answers(alone, task, 1)
    for _ in range(task.passes):
        yield timed(alone, task, 1, "this process alone")
    for place, replicas in enumerate(layouts, 1):
        with RayCluster(settings, replicas) as cluster:
            pair = cluster.build(settings.target, settings.drafter, settings)
            assert isinstance(pair, ReplicatedPair)
            for _ in range(2):  # untimed: each replica has met what is to come
                _answers(pair, task, task.clients)
            for _ in range(task.passes):
                yield timed(pair, task, task.clients, f"{replicas} × {cluster.threads} threads")
            if place == len(layouts):
                yield sizes(pair, task)


@contextmanager
def _listening(pair: Pair) -> Iterator[tuple[list[Call], list[Sequence[Any]]]]:
    """The calls to a pair's replicas within the block and the batches that they send; none where the pair has
    no replicas."""
    calls: list[Call] = []
    sent: list[Sequence[Any]] = []
    if not isinstance(pair, ReplicatedPair):
        yield calls, sent
        return
    replicas: Any = pair.replicas
    ask = replicas.ask

    def noted(call: Call) -> Batches:
        calls.append(call)
        with closing(ask(call)) as batches:
            for batch in batches:
                sent.append(batch)
                yield batch

    replicas.ask = noted
    try:
        yield calls, sent
    finally:
        del replicas.ask


def timed(pair: Pair, task: Task, clients: int, layout: str) -> Served:
    """The prompts answered once by a pair."""
    with _listening(pair) as (_, sent):
        began, used = time.perf_counter(), time.process_time()
        made = _answers(pair, task, clients)
        took, used = time.perf_counter() - began, time.process_time() - used
    return Served(layout, len(made), _tokens(made), took, used, len(sent))


def sizes(pair: ReplicatedPair, task: Task) -> Sizes:
    """What the answers send where somebody learns from them."""
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    try:
        with _listening(pair) as (calls, sent):
            made = _answers(pair, task, 1, learn=True)
    finally:
        pair.learners.remove(traces.append)
    rounds = [[one for one in batch if isinstance(one, Round)] for batch in sent]
    return Sizes(
        _bytes(calls) / len(made),
        _bytes(filter(None, rounds)) / max(1, sum(map(len, rounds))),
        _bytes(traces) / max(1, _tokens(made)),
    )


def _bytes(sent: Iterable[Any]) -> int:
    return sum(len(pickle.dumps(one)) for one in sent)


def _tokens(made: Sequence[Generation]) -> int:
    return sum(len(one.token_ids) for one in made)


def _answers(pair: Pair, task: Task, clients: int, learn: bool = False) -> list[Generation]:
    settings = task.settings

    def answer(prompt: str) -> Generation:
        return pair.generate(
            [{"role": "user", "content": prompt}], method=settings.method, max_new_tokens=task.tokens,
            **GREEDY.options, seed=0,
            learn=learn, draft_policy="fixed", draft_length=settings.draft_length,
        )  # fmt: skip

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(answer, task.prompts))
