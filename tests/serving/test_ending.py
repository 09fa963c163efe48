"""What a signal does to a process that serves or measures."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.models import save
from tests.support.running_app import free_port

ROOT = Path(__file__).parents[2]
# What a shell may say of proxies and certificates.
ODD = {
    "ALL_PROXY": "socks5://127.0.0.1:9", "all_proxy": "socks4://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "[::1],fd00::/8,localhost",
    "SSL_CERT_FILE": "/nowhere/roots.pem",
}  # fmt: skip


def test_an_answer_that_is_written_when_the_app_ends_is_cancelled_in_shape_and_noted(tmp_path: Path) -> None:
    """The app is a local one, which starts whatever the shell says of proxies."""
    target = save(tmp_path / "target", "byte-level", ends=False, window=8192)
    drafter = save(tmp_path / "drafter", "sentence-piece", seed=1)
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "omnidemo", "serve", "--target", target, "--drafter", drafter]
    own = {"DEVICE": "cpu", "BACKEND": "reference", "TRAINING": "off", "PORT": str(port)}
    own |= {"STORAGE": str(tmp_path / "a 100% #1 place?"), "TRUST_HUB": "false"}
    environment = os.environ | {f"OMNIDEMO_{name}": value for name, value in own.items()} | ODD
    with log.open("w") as out:
        app = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    try:
        until = time.monotonic() + 200
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=60)
                break
            except httpx.TransportError:
                assert app.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
                time.sleep(0.3)
        assert httpx.get(f"http://127.0.0.1:{port}/config", timeout=60).status_code == 200
        asked = {"model": "omnidemo", "prompt": "the small duck", "max_tokens": 8000, "stream": True}
        url = f"http://127.0.0.1:{port}/v1/completions"
        events: list[str] = []
        with httpx.stream("POST", url, json=asked, timeout=200) as answer:
            for line in answer.iter_lines():
                events += [line.removeprefix("data: ")] if line.startswith("data: ") else []
                if len(events) == 3:
                    app.send_signal(signal.SIGTERM)
        assert app.wait(60) == 143, log.read_text()[-2000:]
    finally:
        app.kill()
    assert events[-1] == "[DONE]"
    end = json.loads(events[-2])
    assert end["choices"][0]["finish_reason"] == "length" and end["omnidemo"]["finish_reason"] == "cancelled"
    with sqlite3.connect(tmp_path / "a 100% #1 place?" / "omnidemo.db") as kept:
        rows = kept.execute("SELECT finish_reason, tokens FROM requests").fetchall()
    assert len(rows) == 1 and rows[0][0] == "cancelled" and 0 < rows[0][1] < 8000
    assert "Traceback" not in log.read_text() and "Fatal" not in log.read_text()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_at_once_and_one_that_comes_with_the_first_does_not(
    number: signal.Signals, status: int
) -> None:
    script = (
        "import time; from omnidemo.core.processes import end_by_signal\n"
        "end_by_signal()\n"
        "try: print('on', flush=True); time.sleep(600)\n"
        "finally: print('ending', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None and one.stdout.readline() == "on\n"
        one.send_signal(number)
        assert one.stdout.readline() == "ending\n"
        time.sleep(1.0)  # longer than `TOGETHER`
        assert one.poll() is None
        one.send_signal(number)
        assert one.wait(60) == status


@pytest.mark.parametrize("program", ["omnidemo", "lab"])
def test_ctrl_c_while_a_program_is_imported_is_said_without_a_traceback(program: str) -> None:
    script = (
        "import runpy, signal, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Slow())\n"
        f"runpy.run_module('{program}', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nStopped.\n")
