"""The switch `OMNIDEMO_BACKEND`: what it takes, what it refuses, and that the reference compiles and records
nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.backends.choice import backend_of
from omnidemo.core.config import Settings
from tests.support.cli import Cli
from tests.support.models import PROMPT, save

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("backends")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)


PLAIN = """
import sys, threading
from omnidemo import load_pair
pair = load_pair(*{names!r})
pair.fill_cache()
sampled, plain = dict(temperature=1.0, seed=1), dict(method="autoregressive")
by_cost = dict(draft_policy="cost")
for options in (dict(), sampled, plain, by_cost):
    pair.generate("the other ducks", max_new_tokens=20, **options)
pair.publish(1, pair.drafting_weights())
pair.generate("the other ducks", max_new_tokens=20)
print("numba" in sys.modules, [one.name for one in threading.enumerate() if "compile" in one.name])
"""


def test_the_reference_compiles_nothing(names: tuple[str, str]) -> None:
    """In a process of its own, where nothing has been compiled yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIDEMO_")} | {
        "OMNIDEMO_BACKEND": "reference"
    }
    command = [sys.executable, "-c", PLAIN.format(names=names)]
    ran = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=200)
    assert ran.stdout.split() == ["False", "[]"], ran.stderr


def test_the_argument_goes_over_the_setting(names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIDEMO_BACKEND", "reference")
    pairs = [load_pair(*names, device="cpu", backend=one) for one in (None, "auto", "reference")]  # type: ignore[arg-type]
    assert [backend_of(pair.target.runner, pair.drafter.runner) for pair in pairs] == [
        "reference", "cpu", "reference",
    ]  # fmt: skip
    assert len({pair.generate(PROMPT).token_ids for pair in pairs}) == 1


def test_an_unknown_backend_is_one_sentence(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError) as refused:
        load_pair(*names, backend="fast")  # type: ignore[arg-type]
    words = "backend = 'fast' is not possible: it should be 'auto' or 'reference'"
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_pair_of_which_one_model_has_a_fast_backend_is_named_by_it(
    names: tuple[str, str], tmp_path: Path
) -> None:
    pair = load_pair(names[0], save(tmp_path / "gpt2", "byte-level", "gpt2"), device="cpu")
    assert backend_of(pair.target.runner, pair.drafter.runner) == "cpu"
    assert backend_of(pair.drafter.runner, pair.drafter.runner) == "reference"


@pytest.fixture
def uncompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not begun to compile, on a machine where no folder can hold machine code."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "_thread", None)
    monkeypatch.setattr(compile_kernels, "_failure", "")
    monkeypatch.setattr(compile_kernels, "_waiting", [])
    monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", None)


def test_a_machine_that_cannot_compile(
    names: tuple[str, str], uncompiled: None, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on without, and check-backend says so."""
    monkeypatch.setenv("OMNIDEMO_BACKEND", "auto")
    models = ["--target", names[0], "--drafter", names[1]]
    assert cli("generate", "duck", "--max-new-tokens", 4, *models).code == 0
    checked = cli("check-backend", *models)
    assert checked.code == 2 and "cannot be compiled here" in checked.err
    assert compile_kernels.kernels() is None and "no folder for machine code" in compile_kernels.failure()


def test_the_setting_is_one_of_two(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().backend == "auto"
    monkeypatch.setenv("OMNIDEMO_BACKEND", "gpu")
    ran = cli("models")
    assert ran.code == 2 and "the setting backend (OMNIDEMO_BACKEND) is 'gpu'" in ran.err
