"""Chats through the services."""

from __future__ import annotations

import time

import pytest

from omnidemo.core.records import Generation, Round
from omnidemo.serving import adaptation_service
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.services import Services


@pytest.fixture
def quick_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads with fewer lessons of each topic, which a new router learns when a pair is loaded."""
    monkeypatch.setattr(adaptation_service, "SEEDS", 30)


def ready(services: Services, models: tuple[str, str]) -> PairState:
    services.pool.load(*models)
    for _ in range(6000):
        state = services.pool.state(*models)
        if state.stage in ("ready", "failed"):
            return state
        time.sleep(0.02)
    raise AssertionError("still loading")


def chat(
    services: Services, models: tuple[str, str], text: str = "the small duck", **options: object
) -> tuple[list[Round], Generation]:
    defaults: dict[str, object] = {
        "session": "s",
        "method": "ngram-exact",
        "max_new_tokens": 30,
        "temperature": 0.0,
    }
    defaults["messages"] = [{"role": "user", "content": text}]
    *rounds, last = services.chats.chat(target=models[0], drafter=models[1], **{**defaults, **options})  # type: ignore[arg-type]
    assert isinstance(last, Generation)
    return rounds, last  # type: ignore[return-value]
