"""Whatever one visitor sends, two others go on reading: gaps between their rounds while bad and huge requests
are served."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidemo.core.config import Settings
from omnidemo.serving.services import Services
from tests.support.chats import ready
from tests.support.models import save

HUGE: list[list[dict[str, Any]]] = [
    [{"role": role, "content": f"turn {number}"} for number in range(2500) for role in ("user", "assistant")]
    + [{"role": "user", "content": "and now?"}],
    [{"role": "user", "content": "the small duck swims " * 50_000}],
    [{"role": "user", "content": "<|user|>" * 20_000}],
    [{"role": "user", "content": "\udc00"}],
    [{"role": "user", "content": None}],  # type: ignore[dict-item]
]


@pytest.mark.timeout(600)
def test_two_streams_go_on_while_one_sends_what_is_bad_or_huge(tmp_path: Path) -> None:
    models = (
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    services = Services(Settings(storage=tmp_path / "storage", training="off"))
    common: dict[str, Any] = {
        "target": models[0],
        "drafter": models[1],
        "method": "ngram-exact",
        "temperature": 0.0,
        "learn": False,
        "keep": False,
    }
    over, gaps = threading.Event(), [[], []]  # type: ignore[var-annotated]

    def stream(number: int) -> None:
        while not over.is_set():
            before = None
            for _ in services.chats.chat(
                session=f"s{number}",
                messages=[{"role": "user", "content": "duck"}],
                max_new_tokens=100,
                **common,
            ):
                now = time.perf_counter()
                if before is not None:
                    gaps[number].append(now - before)
                before = now

    try:
        assert ready(services, models).stage == "ready"
        threads = [threading.Thread(target=stream, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        longest = 0.0
        for messages in HUGE:
            began = time.perf_counter()
            with contextlib.suppress(ValueError):
                for _ in services.chats.chat(session="huge", messages=messages, max_new_tokens=20, **common):
                    pass
            longest = max(longest, time.perf_counter() - began)
        over.set()
        for thread in threads:
            thread.join(60)
    finally:
        over.set()
        services.close()
    for seen in gaps:
        assert len(seen) > 50 and float(np.quantile(seen, 0.99)) < 1.0, (len(seen), max(seen))
    assert longest < 30.0
