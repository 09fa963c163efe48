"""The adaptation curve: traffic with training on, and its effect on held-out prompts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from omnidemo.core.config import Settings
from omnidemo.core.records import Agreement
from omnidemo.decoding.methods import BASELINE
from omnidemo.learning.lines.measurer import mean_of
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.serving.comparison import Comparison, compare
from omnidemo.serving.measuring.compare_methods import COLUMNS, Summary, csv_row, summarise
from omnidemo.serving.measuring.learning_pair import LearningPair, learning
from omnidemo.serving.measuring.prompt_files import check_prompts, numbers
from omnidemo.serving.measuring.report_tables import Stage, csv_table
from omnidemo.serving.pair_loading import build_measured_pair
from omnidemo.storage.tables import utc

# kind: traffic or held-out; requests: how many were answered before
HEADER = ("kind", "requests", "train_steps", "loss_nats", "agreement", "same_first", *COLUMNS)


@dataclass(frozen=True, slots=True)
class Point:
    """The held-out prompts after so many requests: version, optimiser steps, and the method's figures.
    agreement: over all held-out answers, whatever the draft policy."""

    requests: int
    version: int
    steps: int
    summary: Summary
    agreement: Agreement | None = None

    def cells(self) -> list[str]:
        """Requests, version, steps and agreement as text, then the cells of the summary."""
        both = self.agreement
        agreed = "–" if both is None else f"{both.overlap:.3f}, {both.same_first:.3f}"
        return [str(self.requests), str(self.version), str(self.steps), agreed, *self.summary.cells()]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Traffic, and after how many requests (`checkpoints`) held-out prompts are answered. All else is in the
    settings. `pause`: seconds after each request."""

    traffic: Sequence[str]
    held_out: Sequence[str]
    requests: int
    checkpoints: Sequence[int]
    temperature: float = 0.0
    seed: int = 0
    pause: float = 0.0


def plan_checkpoints(text: str, requests: int) -> list[int]:
    """The numbers of a list such as "0,25,50" that lie within the run, and its beginning and end. ValueError
    for other text."""
    wanted = numbers(text, "--eval-at") if text.strip() else []
    return sorted({0, requests, *(number for number in wanted if 0 < number < requests)})


def run(settings: Settings, what: Experiment, out: Path, keep: bool) -> Iterator[Stage | Point]:
    """Yield a `Stage` after each request, and a `Point` at each checkpoint; their rows are in the CSV by
    then.

    A due update runs and is swapped in before the next request, so that the curve does not depend on the
    machine's speed. keep: continue the line in the settings' storage; else begin with nothing, and keep
    nothing. ModelError or ValueError, before anything runs, for an unusable model or prompt; RuntimeError
    where training failed.
    """
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    check_prompts(pair, [*what.traffic, *what.held_out])
    with (
        learning(pair, settings, keep, training="inline") as learner,
        csv_table(out, HEADER) as append,
    ):
        going = _Adaptation(learner, what, append)
        for count, prompt in enumerate(islice(cycle(what.traffic), what.requests)):
            if count in what.checkpoints:
                yield going.evaluate(count)
            going.serve(count, prompt)
            yield Stage("requests", count + 1, what.requests)
            time.sleep(what.pause)
        yield going.evaluate(what.requests)


class _Adaptation:
    """A run. Each row is appended to the CSV when it is known."""

    def __init__(self, learner: LearningPair, what: Experiment, append: Callable[[Any], None]) -> None:
        self.learner, self.what, self.append = learner, what, append
        self.pair = pair = learner.pair
        self.measurer, self.distiller = learner.lines.measurer, learner.lines.get()
        self.settings = settings = self.distiller.settings
        self.options: dict[str, Any] = {
            "temperature": what.temperature,
            "max_new_tokens": settings.max_new_tokens,
            **settings.drafting,
        }
        recorded = [
            pair.record(pair.prompt_ids(prompt), settings.max_new_tokens, lambda: False)
            for prompt in what.held_out
        ]
        self.held = [one[1] for one in recorded if one is not None]  # traces of the target's own answers

    def serve(self, count: int, prompt: str) -> None:
        """Answer one request, write it to CSV and history, and learn from it."""
        pair, settings = self.pair, self.settings
        created = utc()
        made = pair.generate(
            prompt, method=settings.method, seed=self.what.seed + count, reuse=False, **self.options
        )
        self.measurer.settle()
        done = Comparison(count, prompt, settings.method, made, None, None, temperature=self.what.temperature)
        self._row("traffic", count, done, pair.agreement(made))
        self.learner.record(prompt, made, self.options, created)
        self.learner.update(DEFAULT, count + 1)

    def evaluate(self, count: int) -> Point:
        """Answer the held-out prompts by plain decoding and by the method, interleaved, and measure the
        agreement on the target's own answers. Nothing is learned."""
        trainer = self.distiller.status()
        found = self.measurer.agree(DEFAULT, trainer.version, self.held)

        def tell(done: Comparison) -> None:
            self._row("held-out", count, done, found[done.prompt_index] if done.method != BASELINE else None)

        return Point(count, trainer.version, trainer.step, self._read(tell), mean_of(found))

    def _read(self, tell: Callable[[Comparison], None]) -> Summary:
        results: list[Comparison] = []
        for done in compare(
            self.pair,
            self.what.held_out,
            [BASELINE, self.settings.method],
            seed=self.what.seed,
            **self.options,
        ):
            tell(done)
            results.append(done)
        return next(summary for summary in summarise(results) if summary.method == self.settings.method)

    def _row(self, kind: str, count: int, done: Comparison, agreed: Agreement | None) -> None:
        trainer = self.distiller.status()
        found = {"agreement": agreed.overlap, "same_first": agreed.same_first} if agreed else {}
        self.append(
            {
                "kind": kind, "requests": count, "train_steps": trainer.step, "loss_nats": trainer.loss,
                **found,
                **csv_row(done),
            }
        )  # fmt: skip
