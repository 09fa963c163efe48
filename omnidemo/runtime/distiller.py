"""The thread that adapts one drafter to one target: traces in, numbered adapter versions out, never in the way of a chat."""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from torch import Tensor

from omnidemo.config import Settings
from omnidemo.records import AdapterVersion, Trace, TrainStep
from omnidemo.runtime import adapters
from omnidemo.runtime.adapters import AdapterState, OptimiserState
from omnidemo.runtime.replay import ReplayBuffer, usable
from omnidemo.runtime.training import Batches, Child, Learner, Plan, Update, learner_for, train

log = logging.getLogger(__name__)
State = Literal["idle", "waiting", "training", "paused", "off", "failed"]
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 20.0  # a chat that never rests delays an update by this much
Trainer = Callable[[AdapterState | None, OptimiserState | None, Batches], Update]


@dataclass(frozen=True, slots=True)
class TrainerStatus:
    state: State
    why: str  # one sentence in plain words
    version: int
    step: int
    loss: float | None
    requests_seen: int
    next_in: int  # requests until the next update
    last_swap: str | None  # UTC ISO
    seconds: float  # training seconds of the last update
    error: str | None


class StoreLike(Protocol):
    def record_steps(self, target: str, drafter: str, domain: str, version: int, steps: Sequence[TrainStep]) -> None: ...
    def add_adapter(self, version: AdapterVersion, active: bool = True) -> None: ...
    def set_active(self, target: str, drafter: str, domain: str, version: int) -> None: ...
    def set_effect(self, target: str, drafter: str, domain: str, version: int, effect: Mapping[str, float]) -> None: ...
    def forget_line(self, target: str, drafter: str, domain: str) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Current:
    """What is published. Version 0: the base drafter, with neither adapter nor optimiser."""

    version: int = 0
    adapter: AdapterState | None = None
    optimiser: OptimiserState | None = None
    effect: Mapping[str, float] | None = None


class Distiller:
    """Adapts a drafter to a target (one line: drafter, target, domain).

    `publish(version, weights)` receives float32 weights of the changed matrices under the base model's parameter names, for a
    version that is already on disk (0: the base weights again). It comes from this object's thread, and from the caller of
    `restore`, `activate`, `reset` and `run_pending`; it must not wait for a lock that such a caller holds. `busy()` says
    whether a request is in flight. Nothing that goes wrong while learning is raised: `status()` tells it.
    """

    def __init__(
        self,
        drafter_folder: Path | str,
        drafter_name: str,
        target_name: str,
        settings: Settings,
        storage: Path,
        *,
        publish: Callable[[int, Mapping[str, Tensor]], None],
        store: StoreLike | None,
        domain: str = "default",
        busy: Callable[[], bool] = lambda: False,
        threads: int = 1,
    ) -> None:
        self.folder, self.drafter, self.target, self.domain = Path(drafter_folder), drafter_name, target_name, domain
        self.settings, self.mode = settings, settings.training
        self.plan = Plan(rank=settings.lora_rank, learning_rate=settings.learning_rate, ngram_weight=settings.ngram_weight)
        self.line = adapters.line_folder(storage, drafter_name, target_name, domain)
        self._publish, self._store, self._busy = publish, store, busy
        self._child = Child(threads)
        self._learners: dict[tuple[str, int], Learner] = {}  # inline mode only
        self._news = threading.Condition()  # guards what observe() and status() touch; held for microseconds
        self._line_lock = threading.RLock()  # guards the published version, its files and its swap
        self._buffer = ReplayBuffer(settings.buffer_mb << 20)
        self._current = _Current()
        self._epoch = 0  # grows with every change by hand: an update that began before it is dropped
        self._state: State = "idle"
        self._paused = False
        self._closing = threading.Event()
        self._requests_seen, self._seconds = 0, 0.0
        self._loss: float | None = None
        self._last_swap: str | None = None
        self._error: str | None = None
        self._shares: list[float] = []  # per answer since the last swap: share of its tokens that were accepted proposals
        self._thread: threading.Thread | None = None
        if self.mode == "idle":
            self._thread = threading.Thread(target=self._run, name=f"distiller {target_name}", daemon=True)
            self._thread.start()
        atexit.register(self.close)

    # --- what the owner calls ------------------------------------------------------------------------------------------

    def observe(self, trace: Trace) -> None:
        """Take note of an answer. Returns at once; an answer that teaches nothing (no spelled token, NaN) is left out."""
        if self.mode == "off" or not usable(trace):
            return
        with self._news:
            self._buffer.add(trace)
            self._requests_seen += 1
            self._shares.append(float(np.mean(trace.accepted)))
            self._news.notify()

    def run_pending(self) -> bool:
        """In inline mode: run the update that is due, in this thread; whether one was."""
        due = self.mode == "inline" and self._due() and not self._closing.is_set()
        if due:
            self._update(self._train_here)
        return due

    def status(self) -> TrainerStatus:
        with self._news:
            state: State = self._state
            if self.mode == "off":
                state = "off"
            elif state != "training" and self._paused:
                state = "paused"
            elif state == "idle" and self._error:
                state = "failed"
            left = max(0, self.settings.update_interval - self._buffer.fresh)
            current, loss, seen = self._current, self._loss, self._requests_seen
            step = current.optimiser.step if current.optimiser else 0
            why = self._why(state, left)
            return TrainerStatus(state, why, current.version, step, loss, seen, left, self._last_swap, self._seconds, self._error)

    def pause(self) -> None:
        """Start no more updates; one that runs is finished. Answers are still collected."""
        with self._news:
            self._paused = True

    def resume(self) -> None:
        with self._news:
            self._paused = False
            self._news.notify()

    def restore(self) -> int:
        """Publish the version that was active last, or the newest whole one before it, and go on from there; its number (0: none)."""
        with self._line_lock:
            adapters.sweep(self.line)
            noted = adapters.read_active(self.line)
            for version in adapters.versions(self.line):
                if noted is not None and version > noted:
                    continue
                try:
                    self._swap_to(version)
                    self._tell_active(version)
                    return version
                except (ValueError, OSError) as error:
                    log.warning("%s", error)
                    with self._news:
                        self._error = str(error)
            return 0

    def activate(self, version: int) -> None:
        """Go back (or forward) to a stored version; 0 is the base drafter. Raises ValueError where it is missing or damaged."""
        with self._line_lock:
            self._swap_to(version)
            adapters.write_active(self.line, version)
            self._tell_active(version)

    def reset(self) -> None:
        """Back to the base drafter: versions, loss curve and collected answers of the line go."""
        with self._line_lock:
            self._swap_to(0)
            adapters.remove_line(self.line)
            self._tell(lambda store: store.forget_line(self.target, self.drafter, self.domain))
            with self._news:
                self._buffer = ReplayBuffer(self._buffer.most_bytes)
                self._requests_seen, self._seconds, self._loss, self._last_swap, self._error = 0, 0.0, None, None, None

    def close(self) -> None:
        """Stop thread and child, within two seconds; what was not written is lost, what was written stays."""
        self._closing.set()
        atexit.unregister(self.close)
        with self._news:
            self._news.notify_all()
        self._child.close()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    # --- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._news:
                self._news.wait_for(lambda: self._closing.is_set() or self._due())
            if self._quiet():
                self._update(self._train_in_child)

    def _due(self) -> bool:
        return not self._paused and self._buffer.fresh >= self.settings.update_interval

    def _quiet(self) -> bool:
        """Wait until no request is in flight, but not for ever; False where there is nothing to do any more."""
        began = time.monotonic()
        while not self._closing.is_set() and self._busy_now() and time.monotonic() - began < PATIENCE_SECONDS:
            self._set_state("waiting")
            self._closing.wait(POLL_SECONDS)
        self._set_state("idle")
        return not self._closing.is_set() and self._due()

    def _busy_now(self) -> bool:
        try:
            return self._busy()
        except Exception:  # the owner's trouble must not end this thread
            log.exception("busy() failed")
            return False

    def _train_in_child(self, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches) -> Update:
        return self._child.train(self.folder, adapter, optimiser, batches, self.plan)

    def _train_here(self, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches) -> Update:
        return train(learner_for(self._learners, self.folder, adapter, self.plan), adapter, optimiser, batches, self.plan)

    def _update(self, trainer: Trainer) -> None:
        """Train on what is new, keep the result as a version, swap it in. On any failure the version stays as it is."""
        with self._line_lock, self._news:
            batches = self._buffer.take(self.settings.steps_per_update, self.settings.batch_size)
            current, epoch = self._current, self._epoch
            self._state = "training"
        began = time.monotonic()
        try:
            adapter, optimiser, steps = trainer(current.adapter, current.optimiser, batches)
            with self._line_lock:
                if epoch == self._epoch and not self._closing.is_set():
                    self._adopt(adapter, optimiser, steps)
        except Exception as error:  # disk, child, model or owner: a chat must never notice
            if not self._closing.is_set():
                log.warning("An update of %s failed: %s", self.target, error)
                self._fail(f"{error} The drafter stays at version {current.version}; the next answers start another attempt.")
        finally:
            with self._news:
                self._state, self._seconds = "idle", time.monotonic() - began

    def _adopt(self, adapter: AdapterState, optimiser: OptimiserState, steps: list[TrainStep]) -> None:
        whole = [step.loss for step in steps if math.isfinite(step.loss)]
        if not whole:
            raise RuntimeError("No training step had a finite loss, so nothing was learnt.")
        weights = adapters.merged_weights(adapters.BaseWeights(self.folder), adapter)
        version, loss = max([self._current.version, *adapters.versions(self.line)]) + 1, sum(whole) / len(whole)
        with self._news:
            shares, seen = list(self._shares), self._requests_seen
        share = float(np.mean(shares)) if shares else math.nan
        effect = {} if math.isnan(share) else {"accepted_share_before": share}
        parent, now = self._current, _now()
        info = AdapterVersion(
            version, self.drafter, self.target, self.domain, None, None, parent.version, seen, optimiser.step, loss, now, effect
        )
        info = adapters.write_version(self.line, info, adapter, optimiser)
        adapters.write_active(self.line, version)
        with self._news:
            self._error = None
        self._tell(lambda store: store.record_steps(self.target, self.drafter, self.domain, version, steps))
        self._tell(lambda store: store.add_adapter(info, True))
        if parent.version and effect:
            measured = dict(parent.effect or {}) | {"accepted_share_after": share}
            self._tell(lambda store: store.set_effect(self.target, self.drafter, self.domain, parent.version, measured))
        self._publish(version, weights)
        with self._news:
            self._current, self._loss, self._last_swap = _Current(version, adapter, optimiser, effect), loss, now
            self._shares = self._shares[len(shares) :]
        adapters.prune(self.line, self.settings.adapters_kept, version)

    # --- helpers, called with the line's lock held ---------------------------------------------------------------------

    def _swap_to(self, version: int) -> None:
        """Publish a stored version, or the base drafter. Raises ValueError where that version cannot be used."""
        base, current, requests, loss = adapters.BaseWeights(self.folder), _Current(), None, None
        weights: dict[str, Tensor] = {}
        if version:
            stored = adapters.load_version(adapters.version_folder(self.line, version))
            info = stored.info
            weights = adapters.merged_weights(base, stored.adapter)
            current, requests, loss = _Current(version, stored.adapter, stored.optimiser, info.effect), info.requests_seen, info.loss
        elif self._current.adapter:
            weights = adapters.base_matrices(base, self._current.adapter)
        self._publish(version, weights)
        self._epoch += 1
        with self._news:
            self._current, self._loss, self._last_swap, self._error = current, loss, _now(), None
            self._requests_seen = max(self._requests_seen, requests or 0)
            self._shares = []

    def _tell_active(self, version: int) -> None:
        self._tell(lambda store: store.set_active(self.target, self.drafter, self.domain, version))

    def _tell(self, write: Callable[[Any], None]) -> None:
        """Write to the store; its failure is told, and changes nothing about the version."""
        if self._store is None:
            return
        try:
            write(self._store)
        except Exception as error:  # any store
            log.warning("The store did not take an adapter's record: %s", error)
            self._fail(f"The version is in use, but the history could not note it: {error}")

    def _fail(self, sentence: str) -> None:
        with self._news:
            self._error = sentence

    def _set_state(self, state: State) -> None:
        with self._news:
            self._state = state

    def _why(self, state: State, left: int) -> str:
        requests = "one more answer" if left == 1 else f"{left} more answers"
        sentences = {
            "off": "Learning is switched off in the settings.",
            "paused": "Learning is paused; answers are still collected.",
            "failed": f"Learning met a problem; it is tried again after {requests}.",
            "training": "The drafter is learning from the latest answers.",
            "waiting": "An update is due and waits until no answer is being written.",
            "idle": f"The next update comes after {requests}." if left else "An update is due and starts at once.",
        }
        return sentences[state]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
