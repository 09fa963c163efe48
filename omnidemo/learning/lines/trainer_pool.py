"""The adapter lines of a pair: a distiller for each, a bounded number in memory, the others on disk."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from omnidemo.core.config import Settings
from omnidemo.core.records import Trace
from omnidemo.learning.distill.distiller import THREADED, Distiller
from omnidemo.learning.distill.in_process_worker import InProcessWorker
from omnidemo.learning.distill.process_worker import ProcessWorker
from omnidemo.learning.distill.trainer_status import TrainerStatus, status_on_disk
from omnidemo.learning.distill.worker import Worker
from omnidemo.learning.lines.learned_file import keep_memory, kept_memory, read_learned
from omnidemo.learning.lines.line_names import LineInfo, check_domain
from omnidemo.learning.lines.measurer import Measurer
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.models.adapters.peft_zip import import_peft
from omnidemo.models.names import at_its_pace
from omnidemo.pair.pair import Pair
from omnidemo.storage.store import Store
from omnidemo.storage.version_store import VersionStore
from omnidemo.storage.visitor_state import line_settings
from omnidemo.storage.visitors import owned

log = logging.getLogger(__name__)
Trainers = Callable[[str], Worker]  # makes the worker of a line
MOST_LINES = 32  # shared lines of a pair; `Settings.visitor_lines` limits those of visitors


class TrainerPool:
    """The distillers of one pair by domain. At most `lines_in_memory` are open: the one unused for longest is
    closed, and its state is on disk. A line stays open while it drafts an answer, learns, or has an update
    due. Lines share one training process (on a GPU this process), except where `trainers` makes a worker for
    each (`--ray`) and in the mode `inline`. Thread-safe. Variables `line` are a `Distiller` here."""

    def __init__(
        self, pair: Pair, settings: Settings, store: Store, trainers: Trainers | None = None
    ) -> None:
        """`trainers`: makes the worker of each line; None: all lines share the one that measures."""
        self._pair, self._store, self._trainers = pair, store, trainers
        self.settings = settings = self._possible(settings)
        device = pair.drafter.device
        self._worker = InProcessWorker(str(device)) if device.type == "cuda" else ProcessWorker()
        self._worker.shares_cores = pair.here
        # measures in the mode `inline`, which starts no process
        self._inline_worker = InProcessWorker()
        self._names = pair.target.name, pair.drafter.name
        self.versions = VersionStore(settings.storage, store)
        self._versions_of = partial(self.versions.line, *self._names)
        self.measurer = Measurer(pair, settings, store, self._measuring_worker, self._versions_of)
        self._lock = threading.RLock()
        self._open: OrderedDict[str, Distiller] = OrderedDict()  # in order of last use
        self._users: Counter[str] = Counter()  # running answers
        self._waiting: dict[str, list[Trace]] = {}  # fresh traces of closed lines
        self._paused, self._closed = set[str](), False
        self._reminded = set[str]()  # lines whose kept memory is in the pair's
        self.versions.share(*self._names)

    def _possible(self, settings: Settings) -> Settings:
        """The settings for this pair: the pace of its drafter on its target, and no training of a drafter
        that cannot be trained."""
        settings = at_its_pace(settings, self._pair.drafter.name, self._pair.target.name)
        return settings if self._pair.drafter.learns else settings.model_copy(update={"training": "off"})

    def get(self, domain: str = DEFAULT) -> Distiller:
        """The distiller of a line, restored from disk where it is not open. ValueError, one sentence, for an
        impossible name, and for a new line beyond MOST_LINES."""
        domain = check_domain(domain)
        with self._lock:
            line = self._open.get(domain)
            if line is None:
                if not self.accepts(domain):
                    raise ValueError(
                        f"This pair has {MOST_LINES} topic lines, which is the most; use one of them."
                    )
                line = self._open[domain] = self._make(domain)
            self._open.move_to_end(domain)
            self._close_unused(domain)
            return line

    @contextmanager
    def using(self, domain: str = DEFAULT) -> Iterator[Distiller]:
        """Like `get`, and the line stays open within the block."""
        domain = check_domain(domain)
        with self._lock:
            line = self.get(domain)
            self._users[domain] += 1
        try:
            yield line
        finally:
            with self._lock:
                self._users[domain] -= 1
                self._close_unused()

    def accepts(self, domain: str) -> bool:
        """Whether a line of this name exists or may be started."""
        names = self.names()
        return owned(domain) or domain in names or sum(not owned(name) for name in names) < MOST_LINES

    def names(self) -> list[str]:
        """The lines in memory and on disk, "default" first, the others by name."""
        with self._lock:
            names = {DEFAULT, *self._open, *self._waiting, *self.versions.domains(*self._names)}
        return [DEFAULT, *sorted(names - {DEFAULT})]

    def infos(self) -> list[LineInfo]:
        """All lines with their active version and how many requests they have seen."""
        with self._lock:
            states = ((domain, self.status(domain)) for domain in self.names())
            return [
                LineInfo(domain, state.version, state.requests_seen, domain in self._open)
                for domain, state in states
            ]

    def observe(self, trace: Trace) -> None:
        """Give the trace of an answer to the line that drafted it. Errors are logged: the answer is
        written."""
        try:
            self.get(trace.domain).observe(trace)
        except Exception:
            log.exception("The line %s could not take an answer", trace.domain)
        self.measurer.observe(trace)

    def run_pending(self, domain: str = DEFAULT) -> bool:
        """As `Distiller.run_pending`."""
        with self.using(domain) as line:
            return line.run_pending()

    def status(self, domain: str = DEFAULT) -> TrainerStatus:
        """The trainer of a line; the status of a closed line is read from its files."""
        domain = check_domain(domain)
        with self._lock:
            line = self._open.get(domain)
            if line is not None:
                return line.status()
            waiting = len(self._waiting.get(domain, ()))
            return status_on_disk(self._versions_of(domain), self.settings, domain in self._paused, waiting)

    def pause(self, domain: str = DEFAULT) -> None:
        """As `Distiller.pause`."""
        with self._lock:
            self.get(domain).pause()
            self._paused.add(check_domain(domain))

    def resume(self, domain: str = DEFAULT) -> None:
        with self._lock:
            self.get(domain).resume()
            self._paused.discard(check_domain(domain))

    def configure(self, settings: Settings) -> None:
        """As `Distiller.configure`, for all lines."""
        with self._lock:
            self.settings = self.measurer.settings = self._possible(settings)
            for domain, line in self._open.items():
                line.configure(self._settings_of(domain))
            self._close_unused()

    def reset(self, domain: str = DEFAULT) -> None:
        """As `Distiller.reset`; the line's measurements and its `CostModel` are deleted too."""
        with self.using(domain) as line:
            domain = line.versions.domain
            line.reset()
            self._memory_file(domain).unlink(missing_ok=True)
            line.configure(self._settings_of(domain))
            self._pair.forget(domain)

    def forget_copies(self, domain: str = "") -> None:
        """Empty the memory of a line ("": of all lines)."""
        copies = self._pair.copies
        copies.forget(domain) if domain else copies.clear()
        for name in [domain] if domain else self.names():
            self._memory_file(name).unlink(missing_ok=True)

    def forget(self, domain: str) -> bool:
        """Delete a line with all that it has learned. False, without a deletion, while it drafts an answer.
        Files that cannot be removed are logged."""
        with self._lock:
            if self._users[domain]:
                return False
            line = self._open.pop(domain, None)
            self._waiting.pop(domain, None)
            self._paused.discard(domain)
            del self._users[domain]
        if line is not None:
            line.close()
        try:
            self._memory_file(domain).unlink(missing_ok=True)
            self._versions_of(domain).remove()
        except OSError as error:  # another thread may have been first
            log.warning("The files of the line %s could not be removed: %s", domain, error)
        self.measurer.gone(domain)
        self._pair.forget_domain(domain)
        return True

    def export(self, domain: str, version: int, folder: Path) -> Path:
        """As `LineVersions.export`."""
        return self._versions_of(check_domain(domain)).export(version, folder)

    def adopt(self, domain: str, source: Path) -> int:
        """Make an adapter in PEFT's format (zip or folder), or a file of `omnidemo learn` with its n-grams
        and memory, the line's newest, active version; its number. ValueError, one sentence, for anything
        else."""
        learned = read_learned(source, self._pair)
        adapter = import_peft(source, self._pair.drafter.folder)
        with self.using(domain) as line:
            number = line.adopt(adapter)
            if learned is not None:
                keep_memory(self._memory_file(line.versions.domain), learned)
                self._pair.know(line.versions.domain, learned.ngrams, learned.answers)
        return number

    def _memory_file(self, domain: str) -> Path:
        """Where the answers are that a file brought to a line."""
        name = sha256("\0".join((*self._names, domain)).encode()).hexdigest()[:16]
        return Path(self.settings.storage) / "learned" / f"{name}.safetensors"

    def close(self) -> None:
        """Stop all lines and the training process; a running update is lost."""
        with self._lock:
            self._closed = True
            lines = list(self._open.values())
        closers = [self.measurer.close, *(line.close for line in lines)]
        closing = [threading.Thread(target=close) for close in closers]
        for thread in closing:
            thread.start()
        self._worker.close()  # so that nobody waits for an update or a measurement
        for thread in closing:
            thread.join()

    def _settings_of(self, domain: str) -> Settings:
        if not owned(domain):
            return self.settings
        weights = self._pair.drafter.runner.weights()
        return line_settings(self.settings, {name: tuple(each.shape) for name, each in weights.items()})

    def _measuring_worker(self) -> Worker:
        return self._inline_worker if self.settings.training == "inline" else self._worker

    # From here on the lock is held.

    def _make(self, domain: str) -> Distiller:
        pair = self._pair
        line = Distiller(
            pair.drafter.folder,
            pair.drafter.name,
            pair.target.name,
            self._settings_of(domain),
            self.settings.storage,
            publish=partial(pair.publish, domain=domain),
            store=self._store,
            domain=domain,
            busy=lambda: pair.in_flight > 0,
            worker=self._trainers(domain) if self._trainers else self._worker,
            closes=self._trainers is not None,
        )
        try:
            line.restore()
        except Exception:  # such as an unreadable disk: the base drafter drafts
            log.exception("The line %s could not be restored", domain)
        if domain not in self._reminded:  # once: a line that is opened again has them
            self._reminded.add(domain)
            if answers := kept_memory(self._memory_file(domain)):
                pair.know(domain, (), answers)
        if domain in self._paused:
            line.pause()
        for trace in self._waiting.pop(domain, []):
            line.observe(trace)
        return line

    def _close_unused(self, wanted: str = "") -> None:
        """Close the lines unused for longest, but the default line last: requests without a line use it."""
        # sorting is stable and keeps the order of last use
        for domain in sorted(self._open, key=lambda name: name == DEFAULT):
            if self._closed or len(self._open) <= self.settings.lines_in_memory:
                return
            if domain == wanted or self._users[domain] or _occupied(self._open[domain]):
                continue
            line = self._open.pop(domain)
            if fresh := line.fresh_traces():
                self._waiting[domain] = fresh
            line.close()
            self._pair.drop_domain(domain)


def _occupied(line: Distiller) -> bool:
    """Whether a line learns, or is about to do so by itself."""
    status = line.status()
    due = status.mode in THREADED and status.state in ("idle", "failed") and status.next_in == 0
    return due or status.state in ("training", "waiting")
