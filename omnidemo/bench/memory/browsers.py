"""Memory of the running app while ever new browsers come, ask one question each, and never come back."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import cycle, islice
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx

from omnidemo.bench.compare_methods import check_writable, sheet
from omnidemo.config import Settings

SETTLED = 500  # requests after which memory should not grow any more
FLAT = 0.1  # relative growth that is allowed at any time from then on
START_SECONDS = 180.0
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


def run(settings: Settings, prompts: Sequence[str], requests: int, every: int, out: Path, public: bool = False) -> Iterator[Sample]:
    """Start the app on a free port of this machine with a storage folder that is dropped at the end, and yield a sample before the first
    request and after each `every`; it is in the CSV `out` by then. `public`: each browser is a visitor of a public app.
    RuntimeError where the app does not start or answer."""
    if requests < 1 or every < 1:
        raise ValueError("requests and the distance between two samples must be at least 1")
    check_writable(out)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omnidemo-")))
        rows = stack.enter_context(sheet(out, [field.name for field in fields(Sample)]))
        process, address = stack.enter_context(_app(settings, folder, public))
        began = time.monotonic()
        for count, prompt in enumerate(["", *islice(cycle(prompts), requests)]):
            if count:
                visit(address, prompt, settings.target, settings.drafter)
            if count % every == 0 or count == requests:
                sample = Sample(count, time.monotonic() - began, *_memory(process.pid))
                rows.write(asdict(sample))
                yield sample


def flat(samples: Sequence[Sample], settled: int = SETTLED) -> float | None:
    """How far memory went above what it was after `settled` requests, relative to that; None where there is nothing to compare."""
    later = [sample for sample in samples if sample.requests >= settled]
    if len(later) < 2:
        return None
    return max(one.rss_mb / later[0].rss_mb - 1 for one in later[1:])


def visit(address: str, prompt: str, target: str, drafter: str) -> str:
    """Come as a new browser, open the page, ask one question; the last line of the answer. RuntimeError where there is none."""
    with httpx.Client(base_url=address, timeout=ANSWER_SECONDS) as client:
        client.get("/").raise_for_status()
        client.headers["X-OmniDemo-Visitor"] = client.post("/visitor", json={}).json()["id"]
        config = client.get("/config").json()
        session = token_hex(6)
        for one in config["dependencies"]:
            if any(event == "load" for _, event in one["targets"]) and one["backend_fn"] and not one["queue"]:
                _post(client, "/gradio_api/run/predict", one, _values(config, one), session)
        chat = next(one for one in config["dependencies"] if one["api_name"] == "chat")
        data = [prompt, [], "", token_hex(8), target, drafter, *_values(config, chat)[6:]]
        _post(client, "/gradio_api/queue/join", chat, data, session)
        return _answer(client, session)


def _answer(client: httpx.Client, session: str) -> str:
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as events:
        for line in events.iter_lines():
            if not line.startswith("data:"):
                continue
            event = json.loads(line.removeprefix("data:"))
            if event["msg"] == "process_completed":
                if not event.get("success"):
                    raise RuntimeError(f"the app did not answer: {event.get('output')}")
                last = str((event["output"].get("data") or [""])[0]).strip().rpartition("\n")[2]
                if json.loads(last or "{}").get("k") != "end":
                    raise RuntimeError(f"the app ended its answer with: {last[:300]}")
                return last
            if event["msg"] == "close_stream":
                break
    raise RuntimeError("the app ended its answer without a result")


def _values(config: Mapping[str, Any], dependency: Mapping[str, Any]) -> list[Any]:
    values = {one["id"]: one["props"].get("value") for one in config["components"]}
    return [values.get(number) for number in dependency["inputs"]]


def _post(client: httpx.Client, path: str, dependency: Mapping[str, Any], data: list[Any], session: str) -> None:
    answer = client.post(path, json={"data": data, "fn_index": dependency["id"], "session_hash": session})
    if answer.status_code != 200:
        raise RuntimeError(f"the app refused {dependency['api_name']}: {answer.text[:300]}")


@contextmanager
def _app(settings: Settings, folder: Path, public: bool) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The app in a process of its own, ready to answer."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    changed: dict[str, Any] = {"host": "127.0.0.1", "port": port, "storage": folder, "database_url": "", "backup": "", "share": False}
    changed |= {"public": "true" if public else "false", "allowed_hosts": "", "auth": ""} | dict.fromkeys(QUOTAS, PLENTY)
    given = {name: getattr(settings, name) for name in settings.model_fields_set} | changed
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMNIDEMO_")}
    environment |= {f"OMNIDEMO_{name.upper()}": str(value) for name, value in given.items()}
    log = folder / "app.log"
    with log.open("wb") as written:
        process = subprocess.Popen([sys.executable, "-m", "omnidemo", "serve"], env=environment, stdout=written, stderr=written)
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                visit(address, "Hello", settings.target, settings.drafter)
                break
            except (httpx.HTTPError, RuntimeError, OSError) as error:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the app did not start: {log.read_text(errors='replace')[-1000:] or error}") from error
                time.sleep(0.5)
        yield process, address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _memory(pid: int) -> tuple[float, float]:
    """MB in RAM of a process, and of the processes that it started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):  # it ended meanwhile
            continue
    below = {pid}
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    return _resident(pid), sum(_resident(one) for one in below - {pid})


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0
