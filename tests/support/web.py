"""The app with fake services on a free port, and its events as requests."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx

from omnidemo.core.config import Settings
from omnidemo.ui.app import build_app, launch_options
from tests.support.fakes import FakeServices


@contextmanager
def launched(tmp_path: Any, **options: Any) -> Iterator[tuple[Any, httpx.Client]]:
    """The fake app on a free port, and a client of it."""
    with faked(tmp_path, **options) as (_, page, client):
        yield page, client


@contextmanager
def faked(tmp_path: Any, **options: Any) -> Iterator[tuple[FakeServices, Any, httpx.Client]]:
    """The same with the fake services behind it."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pair = {"target": "bundled/large", "drafter": "bundled/drafter"}
    chosen = Settings(**pair, storage=tmp_path / "storage", port=port, upload_mb=1, **options)
    services = FakeServices(load_seconds=0.0, pace=0.0, settings=chosen)
    page = build_app(services)
    page.launch(**launch_options(services), prevent_thread_lock=True, quiet=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield services, page, client
    finally:
        page.close(verbose=False)


def call(client: httpx.Client, name: str, *data: Any, asked: Any = None, **headers: str) -> Any:
    """What an event of the page gives, as Gradio's own client asks for it. `asked`: what the page triggers it
    with."""
    config = client.get("/config").json()
    event = next(one for one in config["dependencies"] if one["api_name"] == name)
    values = {one["id"]: one["props"].get("value") for one in config["components"]}
    filled = [*data, *(values.get(number) for number in event["inputs"][len(data) :])]
    body = {"data": filled, "fn_index": event["id"], "session_hash": secrets.token_hex(6)}
    body["event_data"] = {"asked": asked}
    return client.post("/gradio_api/run/predict", json=body, headers=headers)
