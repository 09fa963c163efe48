"""Memory over many requests with training on: what the process takes, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import numpy as np

from omnidemo.adapters import version_folders
from omnidemo.bench.learning_pair import learning
from omnidemo.bench.prompt_files import check_prompts, check_writable
from omnidemo.bench.report_tables import Stage, csv_table
from omnidemo.bench.silence import quietly
from omnidemo.bench.speed.machine import live_tensors, resident
from omnidemo.config import Settings
from omnidemo.distill.distiller import Distiller
from omnidemo.lines.trainer_pool import TrainerPool
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_pair

HEADINGS = ("requests", "RAM MB", "tensors", "their MB", "adapter", "kept", "their MB", "optimiser tensors", "their MB", "n-grams")


@dataclass(frozen=True, slots=True)
class Sample:
    """After so many requests. tensors: all that Python holds; optimiser: the moments and weights that the next update starts from;
    adapters: versions on disk."""

    requests: int
    seconds: float
    rss_mb: float
    tensors: int
    tensor_mb: float
    version: int
    adapters: int
    adapters_mb: float
    optimiser_tensors: int
    optimiser_mb: float
    ngrams: int
    mismatches: int

    def cells(self) -> list[str]:
        """The figures as text, under `HEADINGS`."""
        sizes = f"{self.rss_mb:.0f}", f"{self.tensors:,}", f"{self.tensor_mb:.1f}"
        learned = str(self.version), str(self.adapters), f"{self.adapters_mb:.1f}", str(self.optimiser_tensors), f"{self.optimiser_mb:.1f}"
        return [f"{self.requests:,}", *sizes, *learned, f"{self.ngrams:,}"]


def run(settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, seed: int = 0) -> Iterator[Sample | Stage]:
    """Answer the prompts again and again, learning in this process, in a storage folder that is dropped at the end. Yield a sample
    before the first request and after each `every`; it is in the CSV `out` by then. ValueError or ModelError before anything runs;
    RuntimeError where the drafter could not be trained."""
    if requests < 1 or every < 1:
        raise ValueError("requests and the distance between two samples must be at least 1")
    check_writable(out)
    pair = build_pair(settings.target, settings.drafter, settings)
    check_prompts(pair, prompts)
    with ExitStack() as stack:
        stack.enter_context(quietly())
        settings, _, lines = stack.enter_context(learning(pair, settings, training="inline"))
        distiller = lines.get()
        append = stack.enter_context(csv_table(out, Sample))
        began = perf_counter()
        for count, prompt in enumerate(["", *islice(cycle(prompts), requests)]):
            if count:
                _serve(pair, lines, settings, prompt, seed + count)
            yield Stage("requests", count, requests)
            if count % every == 0 or count == requests:
                sample = _sample(pair, distiller, count, perf_counter() - began)
                append(sample)
                yield sample


def _serve(pair: Pair, lines: TrainerPool, settings: Settings, prompt: str, seed: int) -> None:
    pair.generate(
        prompt, method=settings.method, max_new_tokens=settings.max_new_tokens, seed=seed, draft_policy=settings.draft_policy,
        draft_length=settings.draft_length, longest_draft=settings.longest_draft,
    )  # fmt: skip
    if lines.run_pending() and (error := lines.status().error):
        raise RuntimeError(f"the drafter could not be trained: {error}")


def _sample(pair: Pair, distiller: Distiller, count: int, seconds: float) -> Sample:
    tensors, held = live_tensors()
    optimiser = distiller.versions.current.optimiser
    moments = list(optimiser.moments.values()) if optimiser else []
    files = [path for path in distiller.line_folder.rglob("*") if path.is_file()]
    return Sample(
        requests=count,
        seconds=seconds,
        rss_mb=resident() / 1e6,
        tensors=tensors,
        tensor_mb=held / 1e6,
        version=distiller.versions.current.version,
        adapters=len(version_folders.versions(distiller.line_folder)),
        adapters_mb=sum(path.stat().st_size for path in files) / 1e6,
        optimiser_tensors=len(moments),
        optimiser_mb=sum(one.nbytes for one in moments) / 1e6,
        ngrams=len(pair.ngrams),
        mismatches=pair.mismatches,
    )


def growth(samples: Sequence[Sample]) -> dict[str, float] | None:
    """Growth of the second half, by a straight line: MB of RAM, and tensors, per 1,000 requests. None with fewer than three samples."""
    later = [sample for sample in samples if sample.requests >= samples[-1].requests / 2]
    if len(later) < 3:
        return None
    xs = [sample.requests / 1000 for sample in later]
    return {name: float(np.polyfit(xs, [getattr(sample, name) for sample in later], 1)[0]) for name in ("rss_mb", "tensors", "tensor_mb")}
