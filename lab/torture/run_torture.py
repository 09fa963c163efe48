"""Torture, in cycles: clients chat and send nonsense, something fails, the server is killed, files are
damaged, and it starts again.

With replicas one of them fails, or the trainer's actor, and with PostgreSQL the database's server.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lab.torture import strangers
from lab.torture.again import decode_again
from lab.torture.client import Away, Client
from lab.torture.databases import PostgresServer, SqliteFile
from lab.torture.harm import damage
from lab.torture.ledger import ACKNOWLEDGED, BAD, LOST, Outcome, Report, acknowledged, compare, tracebacks
from lab.torture.server import REPLICA, ROOT, Server, served
from omnidemo.core.config import EMBEDDED_TARGET, Settings
from omnidemo.models.names import known_targets

FULL_BYTES = 65_536  # beyond which no file may grow while the disk is "full"
SETTLE_SECONDS = 45.0  # after a fault, until everything that was acknowledged has to be in the history
LOAD_SECONDS = 60.0  # longest wait for a cycle's first answers
# Settings of the app. Short updates, so that there is always one to be killed in.
USUAL = {
    "TRAINING": "concurrent",
    "UPDATE_INTERVAL": "2",
    "STEPS_PER_UPDATE": "4",
    "LORA_RANK": "4",
}
USUAL |= {"ADAPTERS_KEPT": "4", "TRUST_HUB": "false", "MAX_NEW_TOKENS": "64", "BUFFER_MB": "8"}
USUAL |= {"DEVICE": "cpu"}
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TortureRequest:
    """`minutes` of cycles; `short`: one cycle of each kind that is quick, and all that follows, for the
    tests."""

    minutes: float
    clients: int = 3
    seed: int = 0
    short: bool = False
    keep: Path | None = None  # where the storage, the ledgers and the log stay
    replicas: int = 0  # that answer, run by Ray; 0: the app's own process answers
    postgres: bool = False  # a PostgreSQL server of this machine keeps the history
    target: str = EMBEDDED_TARGET


def run(order: TortureRequest, tell: Tell = lambda said: None) -> Report:
    """Torture the app for about so long. Everything happens on this machine, in a folder of its own, over the
    loopback.

    ValueError, one sentence, where a PostgreSQL server is wanted and cannot be started, ModelError where the
    target is not there.
    """
    # no OMNIDEMO_*, as the server
    (target,), settings_found = known_targets([order.target], Settings.model_construct())
    order = replace(order, target=target)
    settings = USUAL | {"TARGET": target, "MODEL_FOLDERS": settings_found.model_folders}
    report, began = Report(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="omnidemo-torture-", ignore_cleanup_errors=True) as made:
        folder = (order.keep or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        Path(made).chmod(0o711)  # the user that PostgreSQL runs as has to get through
        _Torture(order, folder, settings, report, tell).run(began + 60 * order.minutes)
    report.seconds = time.monotonic() - began
    return report


class _Torture:
    def __init__(
        self, order: TortureRequest, folder: Path, settings: Mapping[str, str], report: Report, tell: Tell
    ) -> None:
        self.order, self.folder, self.report, self.tell = order, folder, report, tell
        self.draw = random.Random(order.seed)
        self.postgres = PostgresServer(folder / "postgres") if order.postgres else None
        storage = folder / "storage"
        self.database: PostgresServer | SqliteFile = self.postgres or SqliteFile(storage / "omnidemo.db")
        self.settings = settings
        self.server = Server(storage, folder / "server.log", self.settings, order.replicas)
        self.ledgers: list[Path] = []
        self.clients: list[subprocess.Popen[bytes]] = []

    def run(self, until: float) -> None:
        try:
            if self.postgres is not None:
                self.postgres.start()
                self.server.settings["DATABASE_URL"] = self.postgres.database()
            self._start("a first start")
            self._foreign(strangers.sites(self.server.port), "what pages of other sites tried")
            faults, cycle = self._faults(), 0
            while (cycle < len(faults) and self.order.short) or (
                not self.order.short and time.monotonic() < until
            ):
                self._cycle(faults[cycle % len(faults)])
                cycle += 1
            self._end()
            decode_again(self.order.target, self.folder, self.ledgers, self.draw, self.report)
            self._strangers()
        finally:
            for client in self.clients:
                client.kill()
            self.server.kill()
            if self.postgres is not None:
                self.postgres.kill()

    def _faults(self) -> list[Callable[[], None]]:
        quick = [self._kill_trainer]
        quick += [self._kill_replica] if self.order.replicas else []
        quick += [self._kill_database] if self.order.postgres else []
        if self.order.short:
            return quick
        others = (
            [self._lock, self._nothing]
            if self.order.replicas
            else [self._lock, self._stop_trainer, self._fill, self._nothing]
        )
        return quick + others

    def _cycle(self, fault: Callable[[], None]) -> None:
        """Load, a fault, a kill at some moment, files damaged, a start, and the books."""
        self._load()
        self._wait_for(self.order.clients if self.order.short else 3 * self.order.clients)
        fault()
        time.sleep(self.draw.uniform(0.0, 2.0 if self.order.short else 12.0))
        left = self.server.kill()
        self.report.note("kills of the server", not left, f"outlived by {'; '.join(left)}")
        for client in self.clients:
            with suppress(subprocess.TimeoutExpired):
                client.wait(120)
            self.report.note(
                "clients that lived on", client.returncode == 0, f"a client ended with {client.returncode}"
            )
        self.clients = []
        self._books("after a kill")
        what = ""
        if self.draw.random() < 0.6 and not self.order.short:
            what = damage(self.server.storage, self.draw)
        self._start(f"damaged: {what}" if what else "starts after a kill")

    def _wait_for(self, answers: int) -> None:
        """Until so many more are acknowledged, or nobody can wait longer."""
        until = time.monotonic() + LOAD_SECONDS
        goal = acknowledged(self.ledgers) + answers
        while acknowledged(self.ledgers) < goal and time.monotonic() < until:
            time.sleep(0.2)

    def _load(self) -> None:
        for number in range(self.order.clients):
            ledger = self.folder / f"ledger-{len(self.ledgers)}.jsonl"
            self.ledgers.append(ledger)
            command = [sys.executable, "-m", "lab.torture.client", str(self.server.port), str(ledger)]
            command += [str(self.draw.getrandbits(30) + number), str(2 * LOAD_SECONDS), self.order.target]
            with (self.folder / "clients.log").open("ab") as log:
                environment = os.environ | {"PYTHONPATH": str(ROOT)}
                self.clients.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    def _start(self, what: str) -> None:
        try:
            seconds = self.server.start()
            self.tell(f"{what}: up after {seconds:.0f} s")
            self.report.note(what, True)
        except RuntimeError as error:
            self.report.note(what, False, str(error))
            raise

    # faults
    # --------------------------------------------------------------------------------------------------------

    def _kill_trainer(self) -> None:
        for _ in range(40):  # it is started with the first update
            if self.server.signal_trainer(signal.SIGKILL):
                self.report.note(
                    "kills of the training process" + (" (its actor)" if self.order.replicas else ""),
                    self._answers(),
                )
                return
            time.sleep(0.25)
        self.report.note("kills of the training process", False, "there was none")

    def _kill_replica(self) -> None:
        killed = self.server.signal_one(REPLICA, signal.SIGKILL)
        self.report.note("kills of a replica", killed and self._answers(), "" if killed else "there was none")

    def _kill_database(self) -> None:
        """Answers go on without it, and are written when it returns."""
        assert self.postgres is not None
        self.postgres.kill()
        held = self._answers()
        time.sleep(self.draw.uniform(0.0, 5.0))
        self.postgres.start()
        self.report.note("kills of the database", held and self._settled())

    def _stop_trainer(self) -> None:
        """A training process that hangs; the kill that follows must not leave it behind."""
        stopped, done = self.server.signal_trainer(signal.SIGSTOP), threading.Event()

        def again() -> None:  # the app lets it go on after each of its rests
            while not done.wait(0.05):
                self.server.signal_trainer(signal.SIGSTOP)

        stopping = threading.Thread(target=again)
        stopping.start()
        held = stopped and self._answers()
        done.set()
        stopping.join()
        self.report.note("training processes that hang", held, "" if stopped else "there was none")

    def _lock(self) -> None:
        """Another program holds the database for longer than a write waits."""
        with self.database.locked():
            time.sleep(self.draw.uniform(2.0, 9.0))
            held = self._answers()
        self.report.note("the database locked", held and self._settled())

    def _fill(self) -> None:
        """No file may grow any more."""
        if not self.server.limit_files(FULL_BYTES):
            return
        time.sleep(self.draw.uniform(3.0, 8.0))
        held = self._answers()
        self.server.limit_files(None)
        self.report.note("the disk full", held and self._settled())

    def _nothing(self) -> None:
        self.report.note("answers under load", self._answers())

    def _answers(self) -> bool:
        """Whether the app still answers."""
        with suppress(Away, ValueError, KeyError):
            client = Client(self.server.port, "probe", timeout=90.0, target=self.order.target)
            answer = client.chat("still there?", 4, keep=False, learn=False)
            return answer.done and not answer.error
        return False

    def _settled(self) -> bool:
        """Whether all acknowledged answers come into the history, at two looks in a row: an answer may end
        while the rows of the others are being written."""
        until, looks = time.monotonic() + SETTLE_SECONDS, 0
        while looks < 2 and time.monotonic() < until:
            told = compare(self.ledgers, self.database.answers())[ACKNOWLEDGED]
            looks = 0 if any(failure.startswith(LOST) for failure in told.failed) else looks + 1
            time.sleep(1.0)
        return looks == 2

    # books
    # --------------------------------------------------------------------------------------------------------

    def _books(self, when: str) -> None:
        self.report.note("integrity checks of the database", self.database.is_sound(), when)
        self.report.outcomes |= (found := compare(self.ledgers, self.database.answers()))
        told = found[ACKNOWLEDGED]
        self.tell(
            f"{told.tried} acknowledged, {len(told.failed)} lost or changed, {found[BAD].tried} bad inputs"
        )

    def _end(self) -> None:
        """A last start has to find everything, by the server's own history, and to stop when it is asked
        to."""
        status = self.server.stop()
        self.report.note("stops when asked", status in (0, 143), f"it ended with {status}")
        self._books("after a stop")
        self._log(self.server)

    def _strangers(self) -> None:
        """A public app and two visitors, whose answers are counted as learned from; no update changes what
        they compare."""
        with served(
            self.folder / "public", {**self.settings, "PUBLIC": "true", "UPDATE_INTERVAL": "1000"}
        ) as public:
            self._foreign(
                strangers.visits(public.port, self.order.target), "what a visitor tried on another's data"
            )
        self._log(public)

    def _foreign(self, tried: Iterable[tuple[str, bool]], what: str) -> None:
        for said, held in tried:
            self.report.note(what, held, said)

    def _log(self, server: Server) -> None:
        outcome = self.report.outcomes.setdefault("tracebacks in the server's log", Outcome())
        outcome.failed += tracebacks(server.log)
        outcome.tried = len(outcome.failed)
