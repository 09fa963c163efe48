"""The databases that the store is tested with, and the processes that use them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.postgres import postgres_server  # noqa: F401  (a fixture)
from tests.support.store_lives import Forker, forker


@pytest.fixture(scope="module")
def lives() -> Iterator[Forker]:
    """Processes that open stores and write; those of a module begin as copies of one that has imported
    everything."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    with forker() as made:
        yield made
