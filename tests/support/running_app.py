"""The app on a free port, as `python -m omnidemo serve` starts it, over given services."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from omnidemo.core.config import Settings
from omnidemo.ui.app import build_app, launch_options
from tests.support.fakes import FakeServices


def free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def running(services: Any) -> Iterator[str]:
    """The address of the app over these services, whose settings name a port."""
    page = build_app(services)
    page.launch(**launch_options(services), prevent_thread_lock=True, quiet=True)
    try:
        yield f"http://127.0.0.1:{services.settings.port}"
    finally:
        page.close(verbose=False)


@contextmanager
def serving(
    folder: Any, pace: float = 0.0, load_seconds: float = 0.0, **options: Any
) -> Iterator[tuple[FakeServices, str]]:
    """The app over scripted answers, with its storage in a folder: (services, address)."""
    pair = {"target": "bundled/large", "drafter": "bundled/drafter"}
    settings = Settings(**pair, storage=folder / "storage", port=free_port(), **options)
    services = FakeServices(load_seconds=load_seconds, pace=pace, settings=settings)
    with running(services) as url:
        yield services, url
