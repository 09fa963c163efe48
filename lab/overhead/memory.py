"""Memory over many requests: of this process, which learns meanwhile, or of the running app, to which ever
new browsers come."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from lab.equality.silence import quietly
from lab.races.machine import live_tensors, resident
from lab.torture.client import Client, acknowledged
from lab.torture.server import served
from omnidemo.core.config import GREEDY, Settings
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.models.names import drafter_of
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.learning_pair import learning
from omnidemo.serving.measuring.prompt_files import check_prompts, check_writable
from omnidemo.serving.measuring.report_tables import Stage, csv_table
from omnidemo.serving.pair_loading import build_pair

S = TypeVar("S")
HEADINGS = (
    "requests",
    "RAM MB",
    "tensors",
    "their MB",
    "adapter",
    "kept",
    "their MB",
    "optimiser tensors",
    "their MB",
    "n-grams",
)
APP_HEADINGS = ("requests", "seconds", "RAM MB", "its processes MB")
SETTLED = 500  # requests to the app after which its memory should not grow any more
FLAT = 0.1  # relative growth that is allowed at any time from then on
ANSWER_SECONDS = 120.0
# Settings of an app that anybody may ask as often as they like.
OPEN = {"database_url": "", "backup": "", "share": "false", "allowed_hosts": "", "auth": ""}
OPEN |= dict.fromkeys(("visitor_requests", "visitor_tokens", "public_requests", "public_tokens"), str(10**9))


@dataclass(frozen=True, slots=True)
class Sample:
    """This process after so many requests. tensors: all that Python holds; optimiser: the moments and weights
    that the next update starts from; adapters: versions on disk."""

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
        learned = (
            str(self.version),
            str(self.adapters),
            f"{self.adapters_mb:.1f}",
            str(self.optimiser_tensors),
            f"{self.optimiser_mb:.1f}",
        )
        return [f"{self.requests:,}", *sizes, *learned, f"{self.ngrams:,}"]


@dataclass(frozen=True, slots=True)
class AppSample:
    """The app after so many requests. rss_mb: of its own process; children_mb: of those that it started, the
    trainer among them."""

    requests: int
    seconds: float
    rss_mb: float
    children_mb: float

    def cells(self) -> list[str]:
        """The figures as text, under `APP_HEADINGS`."""
        return [f"{self.requests:,}", f"{self.seconds:.0f}", f"{self.rss_mb:.0f}", f"{self.children_mb:.0f}"]


def while_learning(
    settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, seed: int
) -> Iterator[Sample | Stage]:
    """Answer the prompts again and again, learning in this process, in a storage folder that is dropped at
    the end. Yield a sample before the first request and after each `every`; it is in the CSV `out` by then.
    ValueError or ModelError before anything runs; RuntimeError where the drafter could not be trained."""
    check_writable(out)
    pair = build_pair(settings.target, settings.drafter, settings)
    check_prompts(pair, prompts)
    with quietly(), learning(pair, settings, training="inline") as (_, _, lines):
        names = ("method", "max_new_tokens", "draft_length", "longest_draft")
        options: dict[str, Any] = GREEDY.options | {name: getattr(settings, name) for name in names}
        options["draft_policy"] = settings.policy()

        def serve(count: int, prompt: str) -> None:
            pair.generate(prompt, seed=seed + count, **options)
            if lines.run_pending() and (error := lines.status().error):
                raise RuntimeError(f"the drafter could not be trained: {error}")

        distiller = lines.get()
        yield from _sampled(
            prompts,
            requests,
            every,
            out,
            Sample,
            serve,
            lambda count, seconds: _sample(pair, distiller, count, seconds),
        )


def over_browsers(
    settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, public: bool
) -> Iterator[AppSample | Stage]:
    """The same of the app, on a free port of this machine, to which each request comes from a new browser
    that never comes back. `public`: each is a visitor of a public app. RuntimeError where the app does not
    start or answer."""
    check_writable(out)
    own = {name: str(getattr(settings, name)) for name in settings.model_fields_set}
    given = {name.upper(): value for name, value in {**own, **OPEN, "public": str(public).lower()}.items()}
    with tempfile.TemporaryDirectory(prefix="omnidemo-") as folder, served(Path(folder), given) as server:

        def serve(count: int, prompt: str) -> None:
            visit(
                server.port,
                prompt,
                settings.target,
                drafter_of(settings.target, settings),
                settings.max_new_tokens,
            )

        def sample(count: int, seconds: float) -> AppSample:
            return AppSample(count, seconds, *(size / 1e6 for size in server.memory()))

        yield from _sampled(prompts, requests, every, out, AppSample, serve, sample)


def _sampled(
    prompts: Sequence[str],
    requests: int,
    every: int,
    out: Path,
    columns: type[S],
    serve: Callable[[int, str], None],
    sample: Callable[[int, float], S],
) -> Iterator[S | Stage]:
    """`serve` is called with the number of a request and its prompt, `sample` with how many there were, and
    the seconds."""
    with csv_table(out, columns) as append:
        began = perf_counter()
        for count, prompt in enumerate(["", *islice(cycle(prompts), requests)]):
            if count:
                serve(count, prompt)
            yield Stage("requests", count, requests)
            if count % every == 0 or count == requests:
                taken = sample(count, perf_counter() - began)
                append(taken)
                yield taken


def _sample(pair: Pair, distiller: Distiller, count: int, seconds: float) -> Sample:
    tensors, held = live_tensors()
    optimiser = distiller.versions.current.optimiser
    moments = list(optimiser.moments.values()) if optimiser else []
    return Sample(
        requests=count,
        seconds=seconds,
        rss_mb=resident() / 1e6,
        tensors=tensors,
        tensor_mb=held / 1e6,
        version=distiller.versions.current.version,
        adapters=len(distiller.versions.line.numbers()),
        adapters_mb=distiller.versions.line.nbytes / 1e6,
        optimiser_tensors=len(moments),
        optimiser_mb=sum(one.nbytes for one in moments) / 1e6,
        ngrams=len(pair.ngrams),
        mismatches=pair.mismatches,
    )


def growth(samples: Sequence[Sample]) -> dict[str, float] | None:
    """Growth of the second half, by a straight line: MB of RAM, and tensors, per 1,000 requests. None with
    fewer than three samples."""
    later = [sample for sample in samples if sample.requests >= samples[-1].requests / 2]
    if len(later) < 3:
        return None
    xs = [sample.requests / 1000 for sample in later]
    return {
        name: float(np.polyfit(xs, [getattr(sample, name) for sample in later], 1)[0])
        for name in ("rss_mb", "tensors", "tensor_mb")
    }


def flat(samples: Sequence[AppSample]) -> float | None:
    """How far the app's memory went above what it was after SETTLED requests, relative to that; None where
    there is nothing to compare."""
    later = [sample for sample in samples if sample.requests >= SETTLED]
    if len(later) < 2:
        return None
    return max(one.rss_mb / later[0].rss_mb - 1 for one in later[1:])


def visit(port: int, prompt: str, target: str, drafter: str, tokens: int) -> None:
    """Come as a new browser, open the page, ask one question and read the answer. RuntimeError where there is
    none."""
    browser = Client(port, token_hex(8), timeout=ANSWER_SECONDS)
    browser.request("GET", "/")
    browser.arrive()
    config = json.loads(browser.request("GET", "/config").text)
    values = {one["id"]: one["props"].get("value") for one in config["components"]}
    for event in config["dependencies"]:  # what the page asks for when it is opened
        if any(kind == "load" for _, kind in event["targets"]) and event["backend_fn"] and not event["queue"]:
            data = [values.get(number) for number in event["inputs"]]
            body = {"data": data, "fn_index": event["id"], "session_hash": browser.session}
            opened = browser.request("POST", "/gradio_api/run/predict", json.dumps(body).encode())
            if opened.status != 200:
                raise RuntimeError(f"the app refused {event['api_name']}: {opened.text[:300]}")
    answer = browser.chat(prompt, tokens, target=target, drafter=drafter)
    if not acknowledged(answer):
        raise RuntimeError(f"the app did not answer: {answer.error or answer.text[-300:]}")
