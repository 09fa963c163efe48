"""The switch `OMNIDEMO_BACKEND`: what it takes, what it refuses, and that the reference compiles and records
nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.backends.choice import backend_of
from omnidemo.core.config import Settings
from omnidemo.serving.services import Services
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
    monkeypatch.setenv("OMNIDEMO_BACKEND", "cuda")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="needs a CUDA device"):
            load_pair(*names)
    answers = {
        load_pair(*names, device="cpu", backend=one).generate(PROMPT).token_ids
        for one in ("auto", "reference", "cpu")
    }  # type: ignore[arg-type]
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"backend": "fast"},
            "backend = 'fast' is not possible: it should be 'auto', 'reference', 'cpu' or 'cuda'",
        ),
        ({"backend": "cpu", "device": "cuda"}, "set OMNIDEMO_DEVICE=cpu, or set OMNIDEMO_BACKEND=auto"),
        (
            {"backend": "cpu", "dtype": "bfloat16", "target": "gpt2"},
            "reads Llama, Qwen2 and Qwen3 shapes on a CPU in float32, and this target is none",
        ),
    ],
)
def test_what_a_backend_cannot_do_is_one_sentence(
    names: tuple[str, str], tmp_path: Path, options: dict[str, str], words: str
) -> None:
    given: dict[str, str] = {"target": names[0], "drafter": names[1]} | options
    if given["target"] == "gpt2":
        given["target"] = save(tmp_path / "gpt2", "byte-level", "gpt2")
    with pytest.raises(ValueError) as refused:
        load_pair(**given)  # type: ignore[arg-type]
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_pair_of_which_one_model_has_a_fast_backend_is_named_by_it(
    names: tuple[str, str], tmp_path: Path
) -> None:
    pair = load_pair(names[0], save(tmp_path / "gpt2", "byte-level", "gpt2"), device="cpu")
    assert backend_of("auto", pair.target.runner, pair.drafter.runner) == "cpu"
    assert backend_of("auto", pair.drafter.runner, pair.drafter.runner) == "reference"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device_is_refused_before_a_model_is_looked_for() -> None:
    with pytest.raises(
        ValueError,
        match=r"needs a CUDA device, and torch finds none on this machine; .* OMNIDEMO_BACKEND=auto",
    ):
        load_pair("no/such-model", "nor/this", backend="cuda")


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
    """`cpu` says so, `auto` goes on without."""
    command = ["generate", "duck", "--max-new-tokens", 4, "--target", names[0], "--drafter", names[1]]
    monkeypatch.setenv("OMNIDEMO_BACKEND", "cpu")
    refused = cli(*command)
    assert refused.code == 2 and not refused.out
    last = refused.err.strip().splitlines()[-1]
    assert last.startswith("Error: the backend cpu cannot be compiled on this machine (") and last.endswith(
        "which takes what is there"
    )
    assert "no folder for machine code" in last
    monkeypatch.setattr(compile_kernels, "_thread", None)  # it tries once more
    monkeypatch.setenv("OMNIDEMO_BACKEND", "auto")
    assert cli(*command).code == 0
    assert compile_kernels.kernels() is None and "no folder for machine code" in compile_kernels.failure()


def test_the_setting_is_one_of_four(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().backend == "auto"
    monkeypatch.setenv("OMNIDEMO_BACKEND", "gpu")
    ran = cli("models")
    assert ran.code == 2 and "the setting backend (OMNIDEMO_BACKEND) is 'gpu'" in ran.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_the_app_goes_by_the_setting(names: tuple[str, str], tmp_path: Path) -> None:
    errors = []
    for backend in ("cuda", "reference"):
        services = Services(Settings(storage=tmp_path / backend, backend=backend, training="off"))  # type: ignore[arg-type]
        try:
            services.load(*names)
            deadline = time.monotonic() + 60
            while (state := services.state(*names)).stage not in (
                "ready",
                "failed",
            ) and time.monotonic() < deadline:
                time.sleep(0.02)
            errors.append(state.error)
        finally:
            services.close()
    assert errors[0] is not None and "the backend cuda needs a CUDA device" in errors[0] and errors[1] is None
