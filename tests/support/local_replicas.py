"""Replicas in this process, in the place of Ray's: they take turns, what goes between is pickled, and they
die when a test says so."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from typing import Any

from omnidemo.core.config import Settings
from omnidemo.core.records import Round, Trace
from omnidemo.learning.distill.in_process_worker import InProcessWorker
from omnidemo.learning.lines.trainer_pool import Trainers
from omnidemo.models.load import load_model
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Call, Message
from omnidemo.pair.remote.writing_pair import WritingPair, told
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.replicas.failover import Lost
from omnidemo.serving.replicas.replicated_pair import ReplicatedPair


class LocalReplicas:
    """`WritingPair`s in turn. `losses`: after how many rounds the next answers lose their replica; a negative
    one loses it at the end."""

    def __init__(self, sides: Sequence[WritingPair]) -> None:
        self.sides, self.losses = list(sides), list[int]()
        self.calls: list[Call] = []
        self.kept: dict[int, bytes] = {}
        self.ended = 0  # answers that nobody read to their end
        for side in self.sides:
            side.fetch = lambda number: pickle.loads(self.kept[number])

    def ask(self, call: Call) -> Generator[list[Message], None, None]:
        side = self.sides[len(self.calls) % len(self.sides)]
        self.calls.append(call)
        loss = self.losses.pop(0) if self.losses else None
        rounds = 0
        try:
            for message in told(
                side.serve(pickle.loads(pickle.dumps(call)), lambda: False), "holds a replica"
            ):
                if loss is not None and (rounds == loss or (loss < 0 and not isinstance(message, Round))):
                    raise Lost("it was killed")
                rounds += 1
                yield [pickle.loads(pickle.dumps(message))]
        except GeneratorExit:
            self.ended += 1
            raise

    def record(self, ids: Sequence[int], max_new_tokens: int) -> tuple[tuple[int, ...], Trace]:
        made = self.sides[0].record(ids, max_new_tokens, lambda: False)
        assert made is not None
        return made

    def put(self, value: Any) -> int:
        self.kept[len(self.kept)] = pickle.dumps(value)
        return len(self.kept) - 1


class LocalCluster:
    """A `Cluster` of this process."""

    def __init__(self, replicas: int = 2) -> None:
        self.processes = replicas
        self.replicas: LocalReplicas | None = None  # of the newest pair

    def build(
        self,
        target: str,
        drafter: str,
        settings: Settings,
        progress: Callable[[str, float, str], None] = lambda stage, fraction, detail: None,
    ) -> Pair:
        models = [
            load_model(name, device="cpu", absent=True, writes=name == target) for name in (target, drafter)
        ]
        sides = [build_pair(target, drafter, settings, make=WritingPair) for _ in range(self.processes)]
        self.replicas = LocalReplicas(sides)  # type: ignore[arg-type]
        return ReplicatedPair(models[0], models[1], settings.limits, self.replicas)

    def trainers(self, pair: Pair) -> Trainers:
        return lambda domain: InProcessWorker()
