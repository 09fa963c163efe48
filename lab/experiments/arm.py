"""One arm with one seed: the stream is answered by replay, the drafter learns from it, held-out prompts are
read at checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.experiments.plans import Arm, Event, Reading, checkpoints, stream
from lab.experiments.replayed_target import Replay, TargetRecords
from omnidemo.backends import compile_kernels
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import Generation, Trace
from omnidemo.learning.lines.router import Router
from omnidemo.models.load import load_model
from omnidemo.serving.measuring.line import Learners, Line
from omnidemo.serving.measuring.report_tables import Spread

METRICS = ("acceptance_rate", "alpha", "block_efficiency", "ngram_hits", "drafted_per_round", "cache_entries")
TAUGHT = 10  # requests of each domain from which the classifier learns by hand before it chooses alone


@dataclass(frozen=True, slots=True)
class World:
    """The part common to all arms. `traffic` and `held_out`: source → prompts; `out`: the folder of
    results."""

    drafter: str
    settings: Settings
    traffic: Mapping[str, Sequence[str]]
    held_out: Mapping[str, Sequence[str]]
    records: Path
    out: Path

    def recorded(self, target: str) -> TargetRecords:
        return TargetRecords(self.records, target, self.drafter, self.settings)

    def prompts(self, arm: Arm, seed: int) -> dict[str, list[str]]:
        """target → every prompt that the arm needs a recording of."""
        needed = {
            target: [prompt for source in arm.sources for prompt in self.held_out[source]]
            for target in arm.targets
        }
        for event in stream(arm, self.traffic, seed):
            needed[event.target].append(event.prompt)
        return needed


def with_labels_of_the_paper(trace: Trace) -> Trace:
    """The trace without the labels by first tokens: OmniDraft's loss holds the directly mapped tokens alone
    against each other."""
    return replace(trace, first_ids=None, first_p=None)


def offline_epochs(settings: Settings) -> int:
    """Passes of offline training over its traffic: as many optimiser steps as online training takes, and
    half as many again. Their rate ends near zero."""
    return math.ceil(1.5 * settings.steps_per_update * settings.batch_size / settings.update_interval)


def options(reading: Reading) -> dict[str, Any]:
    """The reading as options of `Pair.stream`."""
    found: dict[str, Any] = {
        "method": reading.method,
        "draft_length": reading.draft_length,
        "draft_policy": reading.policy,
    }
    names = {"head": "gamma", "confidence": "confidence"}
    return found | ({names[reading.policy]: reading.threshold} if reading.threshold is not None else {})


def figures(made: Generation) -> dict[str, float | None]:
    """The metrics of one answer that a table shows."""
    known = dict(made.metrics) | {"cache_entries": float(made.cache_entries)}
    known["drafted_per_round"] = sum(done.drafted for done in made.rounds) / len(made.rounds)
    return {name: known[name] for name in METRICS}


class Run:
    """The state of an arm on its way: pairs, lines, and the rows so far."""

    def __init__(self, world: World, arm: Arm, seed: int) -> None:
        self.world, self.arm, self.seed = world, arm, seed
        self.settings = world.settings.model_copy(update={"training_seed": seed, **dict(arm.settings)})
        self.epochs = offline_epochs(self.settings) if arm.offline else 0
        if arm.offline:
            steps = self.epochs * max(1, arm.requests // self.settings.batch_size)
            cosine = {"schedule": "cosine", "schedule_steps": steps}
            self.settings = self.settings.model_copy(update=cosine)
        fast = world.settings.backend != "reference"
        self.drafter = load_model(
            world.drafter, device="cpu", dtype="float32", hub=world.settings.trust_hub, fast=fast,
            writes=False,
        )  # fmt: skip
        if isinstance(self.drafter.runner, FusedLlama) and fast:
            self.drafter.runner.threads = 1
            compile_kernels.wait()  # an answer takes a seventh of the time by it
        self.events = list(stream(arm, world.traffic, seed))
        # of the readings that share an n-gram cache the first, which fills it
        self.caching: dict[Any, Reading] = {}
        for reading in arm.readings:
            self.caching.setdefault(reading.cache, reading)
        self.records = {target: world.recorded(target) for target in arm.targets}
        self.replays = {
            (target, cache): self._replay(target, *cache) for cache in self.caching for target in arm.targets
        }
        self.learners: Learners = {}
        self.lines: dict[str, Line] = {}
        self.published: dict[tuple[Any, ...], int] = {}  # (target, cache, domain) → version that drafts
        self.router = Router() if arm.lines == "router" else None
        self.routed: list[bool] = []  # whether the classifier chose the prompt's own domain
        self.rows: list[dict[str, Any]] = []
        self.tokens = 0

    def go(self) -> Iterator[None]:
        """Run the arm, with a yield after each few answers. The rows are complete at the end."""
        stops = set(checkpoints(self.arm))
        if self.arm.offline:
            yield from self._offline()
            return
        for event in self.events:
            if event.count in stops:
                yield from self._read_held_out(event.count)
            self._serve(event)
            yield
        yield from self._read_held_out(len(self.events), last=True)

    def _serve(self, event: Event) -> None:
        """Answer one request with each n-gram cache, and learn from it once."""
        domain = self._domain(
            event.target, event.source, event.prompt, teach=event.count < TAUGHT * len(self.arm.sources)
        )
        found = [
            self._answer(event.target, reading, domain, event.prompt, learn=True)
            for reading in self.caching.values()
        ]
        self.tokens += len(found[0][0].token_ids)
        for reading, (made, _) in zip(self.caching.values(), found, strict=True):
            place = "traffic", reading, event.count, event.target, event.source
            self._row(*place, figures(made), line=domain, tokens=self.tokens)
        if self.arm.train:
            self.line(domain).observe(self._labelled(found[0][1]))

    def _offline(self) -> Iterator[None]:
        """The whole traffic at once: its n-grams, and `epochs` passes over it. Read now and then."""
        traces = []
        for event in self.events:
            found = [
                self._answer(event.target, reading, "default", event.prompt, learn=True)
                for reading in self.caching.values()
            ]
            traces.append(self._labelled(found[0][1]))
            yield
        for epoch in self.line("default").epochs(traces, self.epochs):
            if epoch == self.epochs or epoch % max(1, self.epochs // 4) == 0:
                yield from self._read_held_out(len(self.events), last=epoch == self.epochs, epoch=epoch)

    def _read_held_out(self, count: int, last: bool = False, epoch: int = 0) -> Iterator[None]:
        """Rows of the held-out prompts, for each target and source: their means, and at the end each prompt
        too."""
        for target in self.arm.targets:
            for source in self.arm.sources:
                for reading in self.arm.readings if last else self.arm.readings[: self.arm.watched]:
                    rows = []
                    for prompt in self.world.held_out[source]:
                        domain = self._domain(target, source, prompt, teach=False)
                        rows.append(figures(self._answer(target, reading, domain, prompt, learn=False)[0]))
                        yield
                    for number, row in enumerate(rows if last else ()):
                        self._row("prompt", reading, count, target, source, row, epoch=epoch, prompt=number)
                    means = {name: Spread.of(row[name] for row in rows).mean for name in METRICS}
                    self._row(
                        "held-out", reading, count, target, source, means, epoch=epoch, **self._learned()
                    )

    def _labelled(self, trace: Trace) -> Trace:
        return trace if self.arm.first_labels else with_labels_of_the_paper(trace)

    def _domain(self, target: str, source: str, prompt: str, teach: bool) -> str:
        """The line that answers a request, and learns from it."""
        if self.router is None:
            return {"one": "default", "target": target, "domain": source}[self.arm.lines]
        if teach:
            self.router.teach(prompt, source)
            return source
        found = self.router.route(prompt).domain
        self.routed.append(found == source)
        return found

    def line(self, domain: str) -> Line:
        if domain not in self.lines:
            self.lines[domain] = Line(self.drafter.folder, self.settings, self.learners, self.arm.only_ngrams)
        return self.lines[domain]

    def _answer(
        self, target: str, reading: Reading, domain: str, prompt: str, learn: bool
    ) -> tuple[Generation, Trace]:
        replay, line, place = (
            self.replays[target, reading.cache],
            self.lines.get(domain),
            (target, reading.cache, domain),
        )
        if line is not None and line.version != self.published.get(place, 0):
            replay.pair.publish(line.version, line.weights(), line.head(), domain)
            self.published[place] = line.version
        return replay.answer(prompt, domain=domain, learn=learn, copying=False, **options(reading))

    def _replay(self, target: str, fraction: float | None, policy: str) -> Replay:
        """The target's, with an n-gram cache that holds so much of what the traffic will leave (None:
        all)."""
        replay = Replay(
            self.records[target], self.drafter, self.settings.model_copy(update={"cache_policy": policy})
        )
        if fraction is not None:
            prompts = [event.prompt for event in self.events if event.target == target]
            known = {
                token_id for prompt in prompts for token_id in self.records[target].load(prompt).answer_ids
            }
            full = sum(bool(replay.pair.map.ngram(token_id)) for token_id in known)
            replay.pair.ngrams.size = math.ceil(fraction * full)
        return replay

    def _learned(self) -> dict[str, Any]:
        lines = list(self.lines.values())
        routed = fmean(self.routed) if self.routed else None
        return {
            "steps": sum(line.steps for line in lines),
            "train_seconds": sum(line.seconds for line in lines),
            "routed_right": routed,
        }

    def _row(
        self, kind: str, reading: Reading, count: int, target: str, source: str,
        found: Mapping[str, float | None], **more: Any,
    ) -> None:  # fmt: skip
        place = {"arm": self.arm.name, "reading": reading.name, "seed": self.seed, "kind": kind}
        self.rows.append(place | {"requests": count, "target": target, "source": source, **found, **more})


def run_arm(world: World, arm: Arm, seed: int, path: Path) -> Iterator[None]:
    """Run one arm, with yields as `Run.go`, and write its rows to `path` (JSON) at once: an arm with a file
    is done."""
    run = Run(world, arm, seed)
    yield from run.go()
    with replacing(path) as partial:
        partial.write_text(json.dumps(run.rows))
