"""The measurement of the endpoint: that it compares like with like. What it finds means nothing on a busy
machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from lab.overhead import endpoint_overhead
from lab.overhead.endpoint_overhead import Paired, _stream, run, summary
from omnidemo.core.config import Settings
from omnidemo.serving.services import Services
from tests.support.running_app import free_port, running
from tests.support.trained_pair import DRAFTER, TARGET


def paired(ratio: float, tokens: int = 8, same: bool = True) -> Paired:
    return Paired("x", tokens, 4, 100.0, 100.0 * ratio, 101.0, same)


@contextmanager
def served_here(folder: Path, given: Mapping[str, str]) -> Iterator[Any]:
    """As `served`, by this process: the app in a process of its own is what other tests of this folder
    start."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**given, "STORAGE": str(folder / "storage"), "PORT": str(free_port())}.items():
            patched.setenv(f"OMNIDEMO_{name}", value)
        services = Services(Settings())
    try:
        with running(services):
            yield SimpleNamespace(port=services.settings.port)
    finally:
        services.close()


def test_only_whole_answers_with_the_same_text_count() -> None:
    pairs = [paired(0.9), paired(1.0), paired(0.8), paired(3.0, tokens=7), paired(3.0, same=False)]
    count, middle, (low, high) = summary(pairs, 8)
    assert (count, middle) == (3, 0.9) and low == pytest.approx(0.85) and high == pytest.approx(0.95)
    with pytest.raises(ValueError, match="take fewer tokens, or more prompts"):
        summary(pairs, 9)


def test_signs_of_life_while_a_prompt_is_read_are_no_rounds() -> None:
    body = (
        ': reading the prompt, 512 of 900 tokens\n\ndata: {"choices": [{"delta": {"content": "An"}}]}\n\n'
        'data: {"choices": [{"delta": {}}], "omnidemo": {"tokens_per_second": 9.0}}\n\n'
        'data: {"choices": [], "usage": {"completion_tokens": 2}}\n\ndata: [DONE]\n\n'
    )
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    with httpx.Client(base_url="http://app", transport=transport) as client:
        text, tokens, events, pace, _ = _stream(client, Settings(), "a", 2)
    assert (text, tokens, events, pace) == ("An", 2, 1, 9.0)


def test_both_ways_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_overhead, "served", served_here)
    settings = Settings(backend="reference", target=TARGET, drafter=DRAFTER)
    (one, other) = run(settings, ["Tell me a story with a duck.", "What is 37 + 25?"], 1, 12)
    assert one.same and one.tokens == 12 and 1 < one.events <= 12
    assert other.same and one.python > 0 and one.endpoint > 0 and one.engine
