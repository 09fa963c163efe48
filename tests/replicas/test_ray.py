"""Real replicas and trainers of Ray on this machine, killed in the middle of their work. Skipped where Ray is
not installed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation
from omnidemo.pair.remote.messages import Call
from omnidemo.serving.endpoint import api_routes
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.replicas.ray_cluster import RayCluster, RayReplicas
from omnidemo.serving.replicas.replicated_pair import ReplicatedPair
from omnidemo.serving.services import Services
from tests.support.running_app import free_port, running

pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-scale.txt")
pytestmark = pytest.mark.timeout(1500)
QUESTIONS = (
    "What is 37 + 25?",
    "Tell me a story with a duck.",
    "Write a Python function that doubles a number.",
)
SECONDS = 400.0  # for what takes a few on a quiet machine


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    options: dict[str, Any] = {
        "update_interval": 3,
        "steps_per_update": 2,
        "lora_rank": 4,
        "head": "off",
    }
    options |= {
        "draft_policy": "fixed",
        "backend": "reference",
        "device": "cpu",
        "compact": "neither",
        "threads": 1,
    }
    return Settings(storage=tmp_path_factory.mktemp("storage"), **options)


@pytest.fixture(scope="module")
def cluster(settings: Settings) -> Iterator[RayCluster]:
    with RayCluster(settings, 2) as made:
        yield made


@pytest.fixture(scope="module")
def services(settings: Settings, cluster: RayCluster) -> Iterator[Services]:
    made = started(settings, cluster)
    yield made
    made.close()


def started(settings: Settings, cluster: RayCluster) -> Services:
    made = Services(settings, cluster)
    settings = made.settings  # with the drafter that goes with the target
    made.pool.load(settings.target, settings.drafter)
    until = time.monotonic() + 2 * SECONDS
    while (state := made.pool.state(settings.target, settings.drafter)).stage != "ready":
        assert state.stage != "failed" and time.monotonic() < until, state
        time.sleep(0.1)
    return made


def ask(services: Services, question: str, tokens: int = 60, **options: Any) -> Generation:
    names = {"target": services.settings.target, "drafter": services.settings.drafter}
    asked = {"method": "ngram-exact", "temperature": 0.0, "session": "s", "max_new_tokens": tokens} | options
    *_, last = services.chats.chat(messages=[{"role": "user", "content": question}], **names, **asked)
    assert isinstance(last, Generation)
    return last


def process(title: str) -> int:
    """The process of an actor whose title begins so."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes().startswith(f"ray::{title}".encode()):
                    return int(folder.name)
            except OSError:
                continue
    return 0


def test_the_endpoint_waits_while_replicas_start_and_says_when_to_ask_again(
    settings: Settings, cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does without Ray: a server that answers `/v1/models` is asked at once. It comes first: a cluster
    serves one app at a time."""
    free = settings.model_copy(update={"storage": tmp_path / "storage", "port": free_port()})
    services, looks = Services(free, cluster), list[str]()
    state = services.pool.state

    def noted(target: str, drafter: str) -> Any:
        looks.append(state(target, drafter).stage)
        return state(target, drafter)

    monkeypatch.setattr(services.pool, "state", noted)
    body = {"messages": [{"role": "user", "content": QUESTIONS[0]}], "temperature": 0, "max_tokens": 8}

    def post() -> httpx.Response:
        return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=2 * SECONDS)

    try:
        with running(services) as url:
            assert httpx.get(f"{url}/v1/models").status_code == 200
            with monkeypatch.context() as patched:
                patched.setattr(api_routes, "LOAD_SECONDS", 0.3)
                early = post()
            assert (early.status_code, early.headers["retry-after"]) == (503, "10")
            assert "is still being loaded" in early.json()["error"]["message"]
            monkeypatch.setattr(api_routes, "LOAD_SECONDS", 2 * SECONDS)
            waited = post()
            assert waited.status_code == 200 and waited.json()["choices"][0]["message"]["content"]
            assert re.fullmatch(r"replicas\.[0-9a-f]{12}", waited.json()["system_fingerprint"])
            assert {"ready"} < set(looks), "it had to wait, and was answered by what came"
    finally:
        services.close()


def test_replicas_say_what_one_process_says_also_where_one_is_killed(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = services.settings
    plain = build_pair(settings.target, settings.drafter, settings)
    wanted = {question: plain.generate(question, max_new_tokens=60).token_ids for question in QUESTIONS}
    for question in QUESTIONS * 2:
        assert ask(services, question, learn=False).token_ids == wanted[question]

    pair = services.pair(settings.target, settings.drafter)
    assert isinstance(pair, ReplicatedPair) and isinstance(pair.replicas, RayReplicas)
    calls: list[Call] = []
    handle, asking = pair.replicas._handle, pair.replicas.ask

    def noted(call: Call) -> Any:
        calls.append(call)
        return asking(call)

    monkeypatch.setattr(pair.replicas, "ask", noted)
    story, options = QUESTIONS[1], {"max_new_tokens": 150, "method": "autoregressive", "learn": False}
    steps = pair.stream(story, **options)
    written = list(next(steps).tokens)
    one = handle.options(multiplexed_model_id=calls[0].conversation).process.remote().result()
    os.kill(one, signal.SIGKILL)
    with pytest.raises(StopIteration) as ended:
        while True:
            written += next(steps).tokens
    made = ended.value.value
    assert len(calls) == 2 and calls[1].begun and not calls[0].begun
    assert (
        made.token_ids == tuple(token.id for token in written) == plain.generate(story, **options).token_ids
    )


def test_a_version_outlives_the_trainer_and_a_restart(services: Services, cluster: RayCluster) -> None:
    settings, names = services.settings, (services.settings.target, services.settings.drafter)
    for question in QUESTIONS:
        assert ask(services, question).adapter_version == 0
    until, killed = time.monotonic() + SECONDS, 0
    while not services.adaptation.trainer(*names).version:
        status = services.adaptation.trainer(*names)
        assert time.monotonic() < until and not status.error, status
        if not killed and status.state == "training" and (killed := process("Trainer")):
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.02)
    assert killed and ask(services, QUESTIONS[0]).adapter_version >= 1
    assert services.store.flush()
    rows = services.store.requests(session="s")
    services.close()
    again = started(settings, cluster)
    try:
        assert ask(again, QUESTIONS[0], learn=False).adapter_version >= 1
        assert again.store.flush() and len(again.store.requests(session="s")) == len(rows) + 1
    finally:
        again.close()


def test_sigterm_ends_a_process_with_a_cluster_in_order() -> None:
    script = (
        "import time; from omnidemo.core.processes import end_by_signal; end_by_signal()\n"
        "from omnidemo.core.config import Settings\n"
        "from omnidemo.serving.replicas.ray_cluster import RayCluster\n"
        "with RayCluster(Settings(), 1):\n"
        "    print('on', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None and one.stdout.readline() == "on\n"
        one.send_signal(signal.SIGTERM)
        assert one.wait(SECONDS) == 143
