"""Memory over many browsers: what Gradio keeps of each is bounded, and the command that measures it says when
it grows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import app_memory as memory
from lab.app_memory import Sample, flat
from omnidemo.core.config import Settings
from omnidemo.ui import app
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.web import call, launched


def test_of_many_browsers_the_newest_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app.BROWSERS < 100
    monkeypatch.setattr(app, "BROWSERS", 6)
    with launched(tmp_path) as (page, client):
        for _ in range(12):
            assert call(client, "pair_state", "bundled/large", "bundled/drafter").status_code == 200
        assert len(page.app.state_holder.session_data) <= 6 + 1


@pytest.mark.parametrize(
    ("last", "flat_enough"), [(1000.0, True), (1090.0, True), (1110.0, False), (880.0, True)]
)
def test_flat_is_told_from_growing(last: float, flat_enough: bool) -> None:
    sizes = {0: 500.0, 500: 1000.0, 2000: 1020.0, 5000: last}
    samples = [Sample(requests, 0.0, size, 0.0) for requests, size in sizes.items()]
    grown = flat(samples)
    assert grown is not None and (grown <= memory.FLAT) is flat_enough
    assert flat(samples[:2]) is None


def test_a_short_run_over_new_visitors(tmp_path: Path) -> None:
    settings = Settings(
        target=TARGET,
        drafter=DRAFTER,
        buffer_mb=8,
        max_new_tokens=6,
        update_interval=2,
        steps_per_update=1,
        batch_size=1,
    )
    events = memory.over_browsers(settings, ["What is 2 plus 2?"], 4, 2, tmp_path / "memory.csv", public=True)
    found = [event for event in events if isinstance(event, Sample)]
    assert [one.requests for one in found] == [0, 2, 4]
    assert all(50 < one.rss_mb < 8000 for one in found) and (tmp_path / "memory.csv").stat().st_size > 0
    assert not any(name.startswith("OMNIDEMO_PORT") for name in os.environ)
