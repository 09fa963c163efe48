"""Nobody listens, nobody generates: a request whose sender never reads its answer is not decoded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnidemo.core.config import Settings
from omnidemo.ui import job
from omnidemo.ui.app import build_app, launch_options
from tests.support.fakes import FakeServices
from tests.support.running_app import serving


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int, list[str]]]:
    """(address, the number of the event `generate`, prompts that were decoded)."""
    monkeypatch.setattr(job, "LISTEN_SECONDS", 1.5)
    services = FakeServices(load_seconds=0, pace=0, settings=Settings(storage=tmp_path, port=0))
    decoded: list[str] = []
    chat = services.chats.chat

    def noted(**options: Any) -> Any:
        decoded.append(options["messages"][-1]["content"])
        return chat(**options)

    monkeypatch.setattr(services, "chat", noted)
    services.pool.load(services.settings.target, services.settings.drafter)
    page = build_app(services)
    _, address, _ = page.launch(
        **launch_options(services) | {"server_port": None}, prevent_thread_lock=True, quiet=True
    )
    number = next(number for number, fn in page.fns.items() if fn.api_name == "generate")
    yield address, number, decoded
    page.close(verbose=False)


def join(address: str, number: int, session: str, prompt: str) -> None:
    body = {"data": [prompt, "", "", "", 8, 0.0, None, None], "fn_index": number, "session_hash": session}
    assert httpx.post(f"{address}gradio_api/queue/join", json=body).status_code == 200


def listen(address: str, session: str) -> str:
    with httpx.stream(
        "GET", f"{address}gradio_api/queue/data", params={"session_hash": session}, timeout=60
    ) as stream:
        for line in stream.iter_lines():
            if "process_completed" in line:
                return line
    return ""


def test_requests_that_nobody_listens_to_are_not_decoded(served: tuple[str, int, list[str]]) -> None:
    address, number, decoded = served
    for one in range(12):
        join(address, number, f"gone{one}", f"abandoned {one}")
    join(address, number, "here", "awaited")
    told: list[str] = []
    listening = threading.Thread(target=lambda: told.append(listen(address, "here")))
    listening.start()
    listening.join(30)
    assert told and '"success":true' in told[0], told
    assert decoded == ["awaited"]
    time.sleep(0.2)
    join(address, number, "late", "a little late")
    time.sleep(0.7)
    assert '"success":true' in listen(address, "late") and decoded == ["awaited", "a little late"]


def test_what_the_framework_cannot_read_comes_to_a_sentence(
    served: tuple[str, int, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    address, _, _ = served
    for path, body in (
        ("run/predict", {"data": []}),
        ("queue/join", {"data": [], "fn_index": "x"}),
        ("queue/join", []),
    ):
        answer = httpx.post(f"{address}gradio_api/{path}", json=body)
        assert 400 <= answer.status_code < 500 and "Internal Server Error" not in answer.text, (
            path,
            answer.text,
        )
    assert not any(record.exc_info for record in caplog.records)


def test_a_busy_machine_does_not_keep_the_app_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what Gradio finds where its own page takes 3 s
    monkeypatch.setattr("gradio.networking.url_ok", lambda url: False)
    with serving(tmp_path) as (_, url):
        assert httpx.get(url, timeout=30).status_code == 200
