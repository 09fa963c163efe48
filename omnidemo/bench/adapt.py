"""The adaptation curve: traffic with training on, and what that changes on prompts that never were traffic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from transformers.utils import logging

from omnidemo.bench.compare_methods import COLUMNS, Summary, check_methods, csv_row, summarise
from omnidemo.bench.experiments.line import Line
from omnidemo.bench.learning_pair import learning
from omnidemo.bench.prompt_files import check_prompts, numbers
from omnidemo.bench.report_tables import Stage, csv_table
from omnidemo.config import Settings
from omnidemo.distill.distiller import TrainerStatus
from omnidemo.lines.measurer import mean_of
from omnidemo.lines.trainer_pool import TrainerPool
from omnidemo.pair.pair import Pair
from omnidemo.records import Agreement, RequestRecord, Trace
from omnidemo.serving.comparison import BASELINE, Comparison, compare
from omnidemo.serving.pair_loading import build_measured_pair
from omnidemo.store.store import Store

# kind: traffic, held-out or offline; requests: answered before
HEADER = ("kind", "requests", "train_steps", "loss_nats", "agreement", "same_first", *COLUMNS)
Append = Callable[[Any], None]
OFFLINE = -1  # the version that the offline drafter shows


@dataclass(frozen=True, slots=True)
class Point:
    """The held-out prompts after so many requests: the chosen method's figures, and how often the drafter was trained."""

    requests: int
    summary: Summary
    version: int
    steps: int
    offline: bool = False
    agreement: Agreement | None = None  # over all held-out answers, whatever the draft policy

    @property
    def name(self) -> str:
        return "offline" if self.offline else str(self.requests)

    @property
    def agreed(self) -> str:
        """The agreement and the rate of same first choices, for a table."""
        return "–" if self.agreement is None else f"{self.agreement.overlap:.3f}, {self.agreement.same_first:.3f}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to send and when to look; everything else is in the settings. `pause`: seconds after a request, like a visitor who reads.
    `offline`: at the end the base drafter is trained so many epochs on the same answers, the ceiling of what can be learned."""

    traffic: Sequence[str]
    held_out: Sequence[str]
    requests: int
    checkpoints: Sequence[int]
    temperature: float = 0.0
    seed: int = 0
    pause: float = 0.0
    offline: int = 0


def plan_checkpoints(text: str, requests: int) -> list[int]:
    """The numbers of a list such as "0,25,50" that lie within the run, with its beginning and its end. ValueError for other text."""
    wanted = numbers(text, "--eval-at") if text.strip() else []
    return sorted({0, requests, *(number for number in wanted if 0 < number < requests)})


def run(settings: Settings, what: Experiment, out: Path, keep: bool) -> Iterator[Stage | Point]:
    """Yield a `Stage` after each request, and a `Point` at each checkpoint; all rows are in the CSV by then.

    An update that is due is run and swapped in before the next request, so that the curve does not depend on the machine's
    speed. keep: learn on in the settings' storage; else from nothing, and nothing stays. At the call, ModelError or ValueError
    for a model or prompt that cannot be used; RuntimeError where training failed.
    """
    check_methods([settings.method])
    logging.disable_progress_bar()  # of the trainer's copy of the drafter, in the middle of the run's own
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    check_prompts(pair, [*what.traffic, *what.held_out])
    return _stream(pair, settings, what, out, keep)


def _stream(pair: Pair, settings: Settings, what: Experiment, out: Path, keep: bool) -> Iterator[Stage | Point]:
    with ExitStack() as stack:
        settings, store, lines = stack.enter_context(learning(pair, settings, keep, training="inline"))
        distiller = lines.get("default")
        traces: list[Trace] = []
        if what.offline:
            pair.learners.append(traces.append)
        append = stack.enter_context(csv_table(out, HEADER))
        recorded = [pair.record(pair.prompt_ids(prompt), settings.max_new_tokens, lambda: False) for prompt in what.held_out]
        held = [one[1] for one in recorded if one is not None]
        for count, prompt in enumerate(islice(cycle(what.traffic), what.requests)):
            if count in what.checkpoints:
                yield _evaluate(pair, lines, what, count, append, held)
            _serve(pair, lines, store, what, count, prompt, append)
            yield Stage("requests", count + 1, what.requests)
            time.sleep(what.pause)
        yield _evaluate(pair, lines, what, what.requests, append, held)
        if what.offline:
            yield _ceiling(pair, distiller.settings, what, traces, append)


def _serve(pair: Pair, lines: TrainerPool, store: Store, what: Experiment, count: int, prompt: str, append: Append) -> None:
    """Answer one request, note it in the CSV and in the history, and learn from it."""
    distiller = lines.get("default")
    settings, options = distiller.settings, _options(distiller.settings, what)
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    made = pair.generate(prompt, method=settings.method, seed=what.seed + count, reuse=False, **options)
    lines.measurer.settle()
    done = Comparison(count, prompt, settings.method, made, None, None)
    append(_row("traffic", count, distiller.status(), done, pair.agreement(made)))
    record = RequestRecord(
        session="adapt",
        target=pair.target.name,
        drafter=pair.drafter.name,
        domain="default",
        method=settings.method,
        prompt=prompt if settings.keep_text else None,
        generation=made,
        settings=options,
        created_at=created,
        kind="traffic",
        cache_entries=len(pair.ngrams),
        cache_bytes=pair.ngrams.nbytes,
    )
    store.record_request(record)
    if distiller.run_pending() and (error := distiller.status().error):
        raise RuntimeError(f"after {count + 1} requests the drafter could not be trained: {error}")


def _evaluate(pair: Pair, lines: TrainerPool, what: Experiment, count: int, append: Append, held: Sequence[Trace]) -> Point:
    """The held-out prompts (and `held`, the target's own answers to them), plain decoding and the chosen method, interleaved. Nothing is
    learned from them."""
    distiller = lines.get("default")
    trainer = distiller.status()
    found = lines.measurer.agree("default", trainer.version, held)

    def tell(done: Comparison) -> None:
        append(_row("held-out", count, trainer, done, found[done.prompt_index] if done.method != BASELINE else None))

    summary = _read(pair, distiller.settings, what, tell)
    return Point(count, summary, trainer.version, trainer.step, agreement=mean_of(found))


def _ceiling(pair: Pair, settings: Settings, what: Experiment, traces: Sequence[Trace], append: Append) -> Point:
    """The base drafter, trained on all answers at once, on the held-out prompts."""
    steps = what.offline * -(-len(traces) // settings.batch_size)
    line = Line(pair.drafter.folder, settings.model_copy(update={"schedule": "cosine", "schedule_steps": steps}), {}, what.seed)
    for _ in line.epochs(traces, what.offline):
        pass
    pair.publish(OFFLINE, line.weights(), line.head())
    place = {"kind": "offline", "requests": what.requests, "train_steps": line.steps, "loss_nats": line.loss}
    summary = _read(pair, settings, what, lambda done: append(place | csv_row(done)))
    return Point(what.requests, summary, OFFLINE, line.steps, offline=True)


def _read(pair: Pair, settings: Settings, what: Experiment, tell: Callable[[Comparison], None]) -> Summary:
    results: list[Comparison] = []
    for done in compare(pair, what.held_out, [BASELINE, settings.method], seed=what.seed, **_options(settings, what)):
        tell(done)
        results.append(done)
    return next(summary for summary in summarise(results) if summary.method == settings.method)


def _options(settings: Settings, what: Experiment) -> dict[str, Any]:
    names = ("draft_length", "max_new_tokens", "draft_policy", "longest_draft", "confidence", "gamma")
    return {"temperature": what.temperature, **{name: getattr(settings, name) for name in names}}


def _row(kind: str, count: int, trainer: TrainerStatus, done: Comparison, agreed: Agreement | None) -> dict[str, Any]:
    found = {"agreement": agreed.overlap, "same_first": agreed.same_first} if agreed else {}
    return {"kind": kind, "requests": count, "train_steps": trainer.step, "loss_nats": trainer.loss, **found, **csv_row(done)}
