"""Memory of the running app over many requests, each from a new browser."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from secrets import token_hex
from time import perf_counter

from lab.torture.client import Client, acknowledged
from lab.torture.server import served
from omnidemo.core.config import Settings
from omnidemo.models.names import drafter_of
from omnidemo.serving.measuring.prompt_files import check_writable
from omnidemo.serving.measuring.report_tables import Stage, csv_table

HEADINGS = ("requests", "seconds", "RAM MB", "its processes MB")
SETTLED = 500  # requests to the app after which its memory should not grow any more
FLAT = 0.1  # relative growth that is allowed at any time from then on
ANSWER_SECONDS = 120.0
# Settings of an app without quotas.
OPEN = {"database_url": "", "backup": "", "share": "false", "allowed_hosts": "", "auth": ""}
OPEN |= dict.fromkeys(("visitor_requests", "visitor_tokens", "public_requests", "public_tokens"), str(10**9))


@dataclass(frozen=True, slots=True)
class Sample:
    """The app after so many requests. rss_mb: of its own process; children_mb: of those that it started, the
    trainer among them."""

    requests: int
    seconds: float
    rss_mb: float
    children_mb: float

    def cells(self) -> list[str]:
        """The figures as text, under `HEADINGS`."""
        return [f"{self.requests:,}", f"{self.seconds:.0f}", f"{self.rss_mb:.0f}", f"{self.children_mb:.0f}"]


def over_browsers(
    settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, public: bool
) -> Iterator[Sample | Stage]:
    """Ask the app, on a free port of this machine, each time from a new browser that never comes back. Yield
    a sample before the first request and after each `every`; it is in the CSV `out` by then. `public`: each
    is a visitor of a public app. RuntimeError where the app does not start or answer."""
    check_writable(out)
    own = {name: str(getattr(settings, name)) for name in settings.model_fields_set}
    given = {name.upper(): value for name, value in {**own, **OPEN, "public": str(public).lower()}.items()}
    models = settings.target, drafter_of(settings.target, settings)
    with (
        tempfile.TemporaryDirectory(prefix="omnidemo-") as folder,
        served(Path(folder), given) as server,
        csv_table(out, Sample) as append,
    ):
        began = perf_counter()
        for count, prompt in enumerate(["", *islice(cycle(prompts), requests)]):
            if count:
                visit(server.port, prompt, *models, settings.max_new_tokens)
            yield Stage("requests", count, requests)
            if count % every == 0 or count == requests:
                sizes = (size / 1e6 for size in server.memory())
                taken = Sample(count, perf_counter() - began, *sizes)
                append(taken)
                yield taken


def flat(samples: Sequence[Sample]) -> float | None:
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
