"""The database that the torture is tested with, and probes that take little time."""

from __future__ import annotations

import pytest

from lab.races import machine
from tests.support.postgres import postgres_server  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True)
def _short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a probe finds means nothing on cores that tests share; that there is something is all that they
    ask for."""
    monkeypatch.setattr(machine, "SECONDS", 0.005)
    monkeypatch.setattr(machine, "SIZES", (1 << 18, 1 << 20))
