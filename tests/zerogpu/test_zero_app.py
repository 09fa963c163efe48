"""The whole app on ZeroGPU's double, in a process of its own; and the real package `spaces` off ZeroGPU."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gradio_client import Client

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.pair.zerogpu import start as zero_gpu
from omnidemo.pair.zerogpu.sign import DRAFTER, TARGET, names, on
from tests.support.spaces_double import SENTENCE

ROOT = Path(__file__).resolve().parents[2]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMNIDEMO_", "SPACE"))}
    own = {
        "SPACES_ZERO_GPU": "true",
        "OMNIDEMO_STORAGE": str(tmp_path / "storage"),
        "OMNIDEMO_PORT": "0",
        "OMP_NUM_THREADS": "1",
    }
    return (
        kept
        | own
        | {
            "OMNIDEMO_DEVICE": "cpu",
            "OMNIDEMO_BACKEND": "reference",
            "OMNIDEMO_TRAINING": "off",
            "PYTHONUNBUFFERED": "1",
        }
        | more
    )


@pytest.fixture
def address(models: tuple[str, str], tmp_path: Path) -> Iterator[str]:
    more = {"OMNIDEMO_TARGET": models[0], "OMNIDEMO_DRAFTER": models[1]}
    log = tmp_path / "log"
    with log.open("w") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.zerogpu.app_child"],
            cwd=ROOT,
            env=environment(tmp_path, **more),
            stdout=out,
            stderr=out,
        )
    try:
        until = time.monotonic() + 200
        while (found := re.search(r"http://[\d.]+:\d+", log.read_text())) is None:
            assert child.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(0.3)
        yield found[0]
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(60)


@pytest.mark.long
def test_the_app_starts_and_answers_as_the_plain_pair(address: str, models: tuple[str, str]) -> None:
    client = Client(address, verbose=False)
    texts = []
    until = time.monotonic() + 100
    for prompt in ("the small duck", "the other ducks swim", "the small duck"):
        while True:
            try:
                texts.append(client.predict(prompt, max_new_tokens=16, api_name="/generate")["text"])
                break
            except Exception as error:
                assert "loading" in str(error) and time.monotonic() < until, error
                time.sleep(0.5)
    plain = load_pair(*models, device="cpu", backend="reference")
    asked = [plain.generate([{"role": "user", "content": prompt}] if plain.target.chat else prompt,
        max_new_tokens=16) for prompt in
             ("the small duck", "the other ducks swim", "the small duck")]  # fmt: skip
    assert texts == [made.text for made in asked]


def test_an_app_without_a_decorated_function_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.zerogpu.app_child", "undecorated"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=200
    )
    assert done.returncode and SENTENCE in done.stderr and "launched" not in done.stdout


def test_the_real_package_off_zero_gpu(
    models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its decorator does nothing then, so the same code answers in this process."""
    pytest.importorskip("spaces", reason="the package spaces is not installed; see requirements-dev.txt")
    monkeypatch.setattr(zero_gpu, "_started", None)
    given = {
        "target": models[0],
        "drafter": models[1],
        "device": "cpu",
        "backend": "reference",
        "storage": tmp_path / "storage",
    }
    settings = zero_gpu.start(Settings(compact="neither", **given))  # type: ignore[arg-type]
    pair = zero_gpu.build(settings.target, settings.drafter, settings, lambda *_: None)
    plain = load_pair(*models, device="cpu", backend="reference")
    assert (
        pair.generate("the small duck", max_new_tokens=16).token_ids
        == plain.generate("the small duck", max_new_tokens=16).token_ids
    )


def test_the_sign_and_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMNIDEMO_TARGET", "OMNIDEMO_DRAFTER", "SPACES_ZERO_GPU"):
        monkeypatch.delenv(name, raising=False)
    assert not on() and names(Settings()) == (TARGET, DRAFTER)
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setenv("OMNIDEMO_TARGET", "some/target")
    assert on() and names(Settings()) == ("some/target", DRAFTER)
