"""The app in a process of its own on a free port of this machine, which can be killed and started again on
the same storage."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from lab.torture.client import Away, Client, acknowledged
from omnidemo.core.config import EMBEDDED_TARGET

START_SECONDS = 180.0  # until a pair is ready; the first start on a machine compiles
REPLICA, TRAINER = "ray::ServeReplica", "ray::Trainer"  # how the titles of Ray's processes begin
# Ray's own, which do not notice soon that their node is gone
AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
# seconds: a worker of Ray that was just starting tries ten times to reach its node before it gives up
RAY_NOTICES = 60
ROOT = Path(__file__).parents[2]


class Server:
    """Started with `start`; whatever it says goes to `log`. `settings` are names and values of `OMNIDEMO_*`;
    `replicas`: so many answer, and Ray keeps them; 0: the process itself does."""

    def __init__(self, storage: Path, log: Path, settings: Mapping[str, str], replicas: int = 0) -> None:
        self.storage, self.log, self.settings, self.replicas = storage, log, dict(settings), replicas
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> float:
        """Start it, and wait until a pair answers; the seconds that took. RuntimeError where it does not come
        up."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("OMNIDEMO_")}
        own |= {f"OMNIDEMO_{name}": value for name, value in self.settings.items()}
        own |= {
            "OMNIDEMO_STORAGE": str(self.storage),
            "OMNIDEMO_PORT": str(self.port),
            "OMNIDEMO_HOST": "127.0.0.1",
        }
        own |= {"PYTHONPATH": str(ROOT), "GRADIO_ANALYTICS_ENABLED": "False"}
        command = [sys.executable, "-m", "omnidemo", "serve"]
        command += ["--ray", "--replicas", str(self.replicas)] if self.replicas else []
        began = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=own)
        target = self.settings.get("TARGET", EMBEDDED_TARGET)
        client = Client(self.port, "start", timeout=10.0, target=target)
        drafter = self.settings.get("DRAFTER", client.drafter)
        while time.monotonic() - began < START_SECONDS * (1 + self.replicas) and self.alive:
            time.sleep(0.3)
            try:
                client.arrive()
                client.call("load", [target, drafter])
                if acknowledged(client.chat("ready?", 2, drafter=drafter, keep=False, learn=False)):
                    return time.monotonic() - began
            except (Away, ValueError, KeyError):
                continue
        said = self.log.read_text(encoding="utf-8", errors="replace")[-1000:]
        raise RuntimeError(f"the app did not come up; its log {self.log} ends with: {said}")

    def children(self) -> list[psutil.Process]:
        """The processes that it started, such as the training process."""
        try:
            return psutil.Process(self._process.pid).children(recursive=True) if self._process else []
        except psutil.Error:
            return []

    def memory(self) -> tuple[int, int]:
        """Bytes in RAM of the app's own process, and of those that it started; 0 for one that has ended
        meanwhile."""
        sizes = []
        for process in [psutil.Process(self._process.pid), *self.children()] if self._process else []:
            with suppress(psutil.Error):
                sizes.append(process.memory_info().rss)
        return (sizes[0], sum(sizes[1:])) if sizes else (0, 0)

    def signal_one(self, title: str, number: int) -> bool:
        """Send a signal to one of the processes that it started whose command line has this title; whether
        there was one."""
        found = [child for child in self.children() if title in _command(child)]
        with suppress(psutil.Error):
            if found:
                random.choice(found).send_signal(number)
                return True
        return False

    def signal_trainer(self, number: int) -> bool:
        """Send its training process a signal; whether there was one. With replicas, the actor that owns
        it."""
        return self.signal_one(
            TRAINER if self.replicas else "omnidemo.learning.distill.worker_process", number
        )

    def limit_files(self, size: int | None) -> bool:
        """From now on no file may grow beyond so many bytes, as on a full disk; None: any. Whether the system
        can do that."""
        if self._process is None or not hasattr(psutil, "RLIMIT_FSIZE"):
            return False
        process = psutil.Process(self._process.pid)
        _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (hard if size is None else size, hard))
        return True

    def kill(self) -> list[str]:
        """Kill it; the commands of its own processes that outlived it by 10 s (with Ray RAY_NOTICES)."""
        left = self.children()
        agents = [child for child in left if _command(child).startswith(AGENTS)]
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
        for agent in agents:
            with suppress(psutil.Error):
                agent.kill()
        _, alive = psutil.wait_procs(left, timeout=RAY_NOTICES if self.replicas else 10)
        commands = []
        for process in alive:
            with suppress(psutil.Error):
                commands.append(f"{' '.join(process.cmdline())[:120]} ({process.status()})")
                process.kill()
        return commands

    def stop(self) -> int | None:
        """Ask it to end, as a container is stopped; its exit status, None where it had to be killed."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(40)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


@contextmanager
def served(folder: Path, settings: Mapping[str, str]) -> Iterator[Server]:
    """A started server, with storage and log in `folder`, for the time of the context."""
    server = Server(folder / "storage", folder / "server.log", settings)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
