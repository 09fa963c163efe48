"""The folders of machine code that checks in processes of their own leave for later runs."""

from __future__ import annotations

from tests.support.narrow import machine_code  # noqa: F401  (a fixture)
