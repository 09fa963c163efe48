"""The database behind the store: opened, upgraded and written by one thread. Its failure stops nothing
else."""

from __future__ import annotations

import atexit
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from omnidemo.storage.connections import beside, first_line, inode, is_down, make_engine, next_step
from omnidemo.storage.tables import METADATA

T = TypeVar("T")
Rows = list[dict[str, Any]]
MIGRATIONS = Path(__file__).parent / "migrations"
BATCH = 200  # most writes in one transaction
OLDEST = "0011"  # the first revision that is read
log = logging.getLogger(__name__)
_upgrading = threading.Lock()  # alembic's context is one per process


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """`message`: one sentence with fault and next step. `pending`: waiting writes. `lost`: writes that were
    given up."""

    ok: bool
    message: str
    pending: int
    lost: int


class OlderDatabase(ValueError):
    """One sentence: an older version wrote the database."""


@dataclass(slots=True, eq=False)
class _Write:
    run: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


class Database:
    """`submit` queues a write and returns at once; `read` sees committed data, or returns a default. Neither
    raises errors of the database. OlderDatabase where an older version wrote it; then nothing is changed."""

    def __init__(self, url: str | Path, retry_seconds: float, queue_size: int) -> None:
        self.url = url
        self._retry, self._most = retry_seconds, queue_size
        self._engine: Engine | None = None
        self.file: Path | None = None  # of SQLite; None for other databases
        self._inode: int | None = None  # of the opened file
        self._opened, self._ok, self._message = False, True, ""
        self._note = ""  # the status message of a working database
        self._queue: deque[_Write] = deque()
        self._submitted = self._finished = self._lost = 0
        self._closing = self._nudged = False
        self._wake = threading.Condition()
        try:
            self._open()
        except OlderDatabase:
            self._reset()
            raise
        except Exception as error:  # such as a bad URL, a missing driver, a failed migration
            self._failed(error)
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def status(self) -> StoreStatus:
        with self._wake:
            return StoreStatus(self._ok, self._message, len(self._queue), self._lost)

    @property
    def shared(self) -> bool:
        """Whether other machines may use the database too, so that it has more than the storage folder."""
        return self._engine is not None and self._engine.dialect.name == "postgresql"

    def submit(self, run: Callable[[Connection], Any]) -> Future[Any]:
        """Queue a write. A full queue refuses it, so that the queued writes stay in order."""
        write = _Write(run)
        with self._wake:
            if self._closing or len(self._queue) >= self._most:
                self._lost += 1
                write.done.set_exception(
                    RuntimeError("The store is closed or its queue is full, so this was not written.")
                )
            else:
                self._submitted += 1
                self._queue.append(write)
                self._wake.notify_all()
        return write.done

    def read(self, query: Callable[[Connection], T], default: T) -> T:
        """The result of a query; `default`, with the reason in the status, where the database does not
        work."""
        engine = self._engine
        if not self._opened or engine is None:
            return default
        if self._moved():  # the writer opens the other one
            with self._wake:
                self._nudged = True
                self._wake.notify_all()
        try:
            with engine.connect() as connection:
                return query(connection)
        except (SQLAlchemyError, OSError) as error:
            self._failed(error)
            return default

    def rows(self, query: Any) -> Rows:
        return self.read(lambda connection: [dict(row) for row in connection.execute(query).mappings()], [])

    def flush(self, timeout: float = 10.0, while_ok: bool = False) -> bool:
        """Wait until all writes so far are finished; False after `timeout` seconds, and with `while_ok` as
        soon as the database does not work."""
        with self._wake:
            goal, self._nudged = self._submitted, True
            self._wake.notify_all()
            self._wake.wait_for(lambda: self._finished >= goal or (while_ok and not self._ok), timeout)
            return self._finished >= goal

    def close(self) -> None:
        """Try to write the queue once, and stop; the rest counts as lost."""
        atexit.unregister(self.close)
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join(timeout=30)
        if self._engine is not None:
            self._engine.dispose()

    def _open(self) -> None:
        if self._engine is None:
            self._engine = make_engine(self.url)
            if self._engine.dialect.name == "sqlite":
                self.file = Path(self._engine.url.database or "")
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        with _upgrading, self._engine.execution_options(write=True).begin() as connection:
            if self.file is not None and not self._ok:
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
                if found != "ok":
                    raise sqlite3.DatabaseError(f"the file is malformed: {found}")
            config.attributes["connection"] = connection
            revision = MigrationContext.configure(connection).get_current_revision()
            if revision is None:
                METADATA.create_all(connection)
                command.stamp(config, "head")
            elif revision < OLDEST:
                raise OlderDatabase(
                    f"{self.file or 'the database'} was written by an older OmniDemo, which this one does not"
                    " read, and is left as it is; go on with the older one, or name another folder in"
                    " OMNIDEMO_STORAGE (another database in OMNIDEMO_DATABASE_URL)"
                )
            else:
                command.upgrade(config, "head")
        self._inode = inode(self.file) if self.file is not None else None
        self._opened = True

    def _try_open(self) -> bool:
        """Open the database where it is not open, and again where its file was deleted or replaced."""
        try:
            if self._opened and self._moved():
                assert self.file is not None
                self._reset()
                for ending in ("-wal", "-shm"):  # SQLite would apply them to the other file
                    beside(self.file, ending).unlink(missing_ok=True)
                self._note = (
                    f"The database `{self.file}` was deleted or replaced; since {time.strftime('%H:%M')}"
                    " another one holds what comes, without the history before."
                )
            if not self._opened:
                self._open()
        except Exception as error:
            log.debug("opening the database failed", exc_info=error)
            self._failed(error)
            return False
        return True

    def _moved(self) -> bool:
        """Whether the opened file was deleted or replaced."""
        return self.file is not None and inode(self.file) != self._inode

    def _reset(self) -> None:
        self._opened = False
        if self._engine is not None:
            self._engine.dispose()

    def _failed(self, error: Exception) -> None:
        self._reset()
        self._report(
            False,
            f"History and learning are not being saved: {first_line(error)}. {next_step(error, self.file)}",
        )

    def _report(self, ok: bool, message: str) -> None:
        with self._wake:
            changed = (ok, message) != (self._ok, self._message)
            self._ok, self._message = ok, message
            self._wake.notify_all()  # the writer begins its retries
        if changed and message:
            log.warning(message)

    def _work(self) -> None:
        while True:
            with self._wake:
                if self._ok:
                    self._wake.wait_for(
                        lambda: bool(self._queue) or self._closing or not self._ok or self._nudged
                    )
                if not self._ok and not self._closing:
                    self._wake.wait_for(lambda: self._closing or self._nudged, self._retry)
                self._nudged = False
                batch = list(islice(self._queue, BATCH))
                if self._closing and not batch:
                    return
            if self._try_open() and self._write(batch):
                self._report(True, self._note)
            elif self._closing:
                return self._give_up()

    def _write(self, batch: list[_Write]) -> bool:
        """Write a batch in one transaction. False where the database is down; the batch stays in the
        queue."""
        if not batch:
            return True
        assert self._engine is not None
        try:
            with self._engine.execution_options(write=True).begin() as connection:
                results = [write.run(connection) for write in batch]
        except Exception as error:
            if is_down(error):
                self._failed(error)
                return False
            if len(batch) > 1:  # a bad write must not fail the others
                return all(self._write([write]) for write in batch)
            log.error("a write was given up", exc_info=error)
            self._finish(batch[0], None, error)
        else:
            for write, result in zip(batch, results, strict=True):
                self._finish(write, result, None)
        return True

    def _finish(self, write: _Write, result: Any, error: Exception | None) -> None:
        with self._wake:
            self._queue.popleft()
            self._finished += 1
            self._lost += error is not None
            self._wake.notify_all()
        if error is None:
            write.done.set_result(result)
        else:
            write.done.set_exception(error)

    def _give_up(self) -> None:
        while self._queue:
            self._finish(
                self._queue[0], None, RuntimeError("The store was closed while the database did not work.")
            )
