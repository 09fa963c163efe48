"""What is installed beside the project: ranges that end, and the very versions that were tested."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def read(name: str) -> dict[str, Requirement]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    found = [Requirement(line) for line in lines if line]
    return {one.name.lower().replace("_", "-"): one for one in found}


RANGES, TESTED = read("requirements.txt"), read("constraints.txt")


@pytest.mark.parametrize("name", RANGES)
def test_a_range_ends_and_holds_the_tested_version(name: str) -> None:
    assert any(part.operator in ("<", "<=") for part in RANGES[name].specifier)
    assert name in TESTED
    (tested,) = TESTED[name].specifier
    assert tested.operator == "==" and RANGES[name].specifier.contains(tested.version)
    assert RANGES[name].specifier.contains(version(name), prereleases=True)


def test_nothing_is_told_to_the_hub() -> None:
    code = "import omnidemo, huggingface_hub.constants as told; print(told.HF_HUB_DISABLE_TELEMETRY)"
    environment = {
        name: value for name, value in os.environ.items() if name != "HF_HUB_DISABLE_TELEMETRY"
    } | {"PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert told.stdout.strip() == "True"
