"""Memory of the running app while ever new browsers come, ask one question each, and never come back."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from omnidemo.bench.prompt_files import check_writable
from omnidemo.bench.report_tables import Stage, csv_table
from omnidemo.bench.torture.client import Client, acknowledged
from omnidemo.bench.torture.server import Server
from omnidemo.config import Settings

SETTLED = 500  # requests after which memory should not grow any more
FLAT = 0.1  # relative growth that is allowed at any time from then on
ANSWER_SECONDS = 120.0
PLENTY = 10**9
QUOTAS = ("visitor_requests", "visitor_tokens", "public_requests", "public_tokens")


@dataclass(frozen=True, slots=True)
class Sample:
    """After so many requests. rss_mb: of the app's own process; children_mb: of those that it started, the trainer among them."""

    requests: int
    seconds: float
    rss_mb: float
    children_mb: float


def run(settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, public: bool = False) -> Iterator[Sample | Stage]:
    """Start the app on a free port of this machine with a storage folder that is dropped at the end, and yield a sample before the first
    request and after each `every`; it is in the CSV `out` by then. `public`: each browser is a visitor of a public app.
    RuntimeError where the app does not start or answer."""
    if requests < 1 or every < 1:
        raise ValueError("requests and the distance between two samples must be at least 1")
    check_writable(out)
    changed: dict[str, Any] = {
        "database_url": "",
        "backup": "",
        "share": False,
        "public": str(public).lower(),
        "allowed_hosts": "",
        "auth": "",
    }
    changed |= dict.fromkeys(QUOTAS, PLENTY)
    given = {name: getattr(settings, name) for name in settings.model_fields_set} | changed
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omnidemo-")))
        append = stack.enter_context(csv_table(out, Sample))
        server = Server(folder / "storage", folder / "app.log", {name.upper(): str(value) for name, value in given.items()})
        stack.callback(server.stop)
        server.start()
        began = time.monotonic()
        for count, prompt in enumerate(["", *islice(cycle(prompts), requests)]):
            if count:
                visit(server.port, prompt, settings.target, settings.drafter, settings.max_new_tokens)
            yield Stage("requests", count, requests)
            if count % every == 0 or count == requests:
                sample = Sample(count, time.monotonic() - began, *(size / 1e6 for size in server.memory()))
                append(sample)
                yield sample


def flat(samples: Sequence[Sample]) -> float | None:
    """How far memory went above what it was after SETTLED requests, relative to that; None where there is nothing to compare."""
    later = [sample for sample in samples if sample.requests >= SETTLED]
    if len(later) < 2:
        return None
    return max(one.rss_mb / later[0].rss_mb - 1 for one in later[1:])


def visit(port: int, prompt: str, target: str, drafter: str, tokens: int) -> None:
    """Come as a new browser, open the page, ask one question and read the answer. RuntimeError where there is none."""
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
