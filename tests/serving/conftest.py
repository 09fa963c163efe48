"""Loads that take little time, for the tests of the services that ask for them."""

from __future__ import annotations

from tests.support.chats import quick_loads  # noqa: F401  (a fixture)
