"""The thread that adapts one drafter to one target: traces in, numbered adapter versions out, never in the way of a chat."""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from omnidemo.config import Settings
from omnidemo.core.shift import ShiftDetector
from omnidemo.records import Trace
from omnidemo.runtime import training
from omnidemo.runtime.adapters import AdapterState
from omnidemo.runtime.gain import DRAFT_LENGTH, PRICE, ChatCost, Effect, Evidence, Payback, seconds_saved, speed_gain
from omnidemo.runtime.pacing import Pacer
from omnidemo.runtime.replay import ReplayBuffer, usable
from omnidemo.runtime.status import State, TrainerStatus, explain
from omnidemo.runtime.training import Batches, Child, Learner, Plan
from omnidemo.runtime.versions import Publish, StoreLike, Versions

log = logging.getLogger(__name__)
THREADED = ("idle", "concurrent")
HELD_OUT = 24  # newest answers that a version is judged by
SPAN = 6  # updates: the gain of one is measured over this many to twice as many, since a single one drowns in noise
ADAPTABLE = ["training", "patience", "cost_aware", "update_interval", "steps_per_update", "batch_size", "learning_rate", "schedule"]
ADAPTABLE += ["schedule_steps", "lora_rank", "divergence", "jsd_beta", "ngram_loss", "ngram_weight", "head"]
ADAPTABLE += ["buffer_positions", "buffer_order"]
_turns: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()  # one update at a time in a shared child


class Distiller:
    """Adapts a drafter to a target (one line: drafter, target, domain).

    `publish(version, weights, head)` receives float32 weights of the changed matrices under the base model's parameter names and those
    of the acceptance head ({}: none), for a version that is already on disk (0: the base weights again). It comes from this object's
    thread, and from the caller of `restore`, `activate`, `adopt`, `reset` and `run_pending`; it must not wait for a lock that such a
    caller holds. `busy()` says whether a request is in flight. Nothing that goes wrong while learning is raised: `status()` tells it.

    Before an update trains on the answers that came since the last one, the published version is judged by them beside the trusted
    one. A version that guesses worse is taken back.
    """

    def __init__(
        self,
        drafter_folder: Path | str,
        drafter_name: str,
        target_name: str,
        settings: Settings,
        storage: Path,
        *,
        publish: Publish,
        store: StoreLike | None,
        domain: str = "default",
        busy: Callable[[], bool] = lambda: False,
        threads: int = 1,
        child: Child | None = None,
    ) -> None:
        """`child`: a training process that other lines use too; its owner closes it."""
        self.folder, self.settings = Path(drafter_folder), settings
        self.versions = Versions(self.folder, drafter_name, target_name, domain, storage, publish, store)
        self.line = self.versions.line
        self._busy = busy
        self._child, self._own_child = child or Child(threads), child is None
        self._turn = _turns.setdefault(self._child, threading.Lock())
        self._learners: dict[tuple[str, int], Learner] = {}  # inline mode only
        self._news = threading.Condition()  # guards what observe() and status() touch; held for microseconds
        self._state: State = "idle"
        self._paused = False
        self._closing = threading.Event()
        self._cost = ChatCost()
        self._begin()
        self._thread: threading.Thread | None = None
        self._start()
        atexit.register(self.close)

    def _begin(self) -> None:
        """Everything that a reset forgets."""
        self._buffer = ReplayBuffer(self.settings.buffer_mb << 20, order=self.settings.buffer_order)
        self._held: deque[Trace] = deque(maxlen=HELD_OUT)  # answers since the last update: nothing has learned from them
        self._evidence, self._effect, self._payback, self._detector = Evidence(), Effect(), Payback(), ShiftDetector()
        self._shifted = False  # a topic shift that no update has seen yet
        self._requests_seen = self._rolled_back = self._shifts = 0
        self._setbacks = 0  # versions taken back since one was better
        self._skip = 0  # updates to leave out: what was trusted serves for longer the more often it had to come back
        self._seconds = self._tokens = 0.0  # of the last update; of a mean answer
        self._acceptance: float | None = None  # of the published version, on new answers
        self._updates = 0
        self._anchor()
        self._remark = ""

    # --- what the owner calls ------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        return self.settings.training

    @property
    def plan(self) -> Plan:
        """How the next update trains. Each version that had to be taken back halves the rate, until one is better."""
        chosen = self.settings
        return Plan(
            rank=chosen.lora_rank,
            learning_rate=chosen.learning_rate * 0.5**self._setbacks,
            schedule=chosen.schedule,
            schedule_steps=chosen.schedule_steps,
            divergence=chosen.divergence,
            jsd_beta=chosen.jsd_beta,
            ngram_loss=chosen.ngram_loss,
            ngram_weight=chosen.ngram_weight,
            errors_only=chosen.buffer_positions == "errors",
            head=chosen.head,
        )

    def observe(self, trace: Trace) -> None:
        """Take note of an answer. Returns at once; an answer that teaches nothing (no spelled token, NaN) is left out."""
        if self.mode == "off" or not usable(trace):
            return
        share = float(np.mean(trace.accepted))
        with self._news:
            self._buffer.add(trace)
            self._held.append(trace)
            self._requests_seen += 1
            self._tokens += (len(trace.p) - self._tokens) * max(0.1, 1 / self._requests_seen)
            self._payback.request()
            # An answer without a single accepted proposal is one that was written without a drafter.
            if share > 0 and self._detector.add(share):
                self._shifts += 1
                self._shifted = True
                self._payback.restart()
            self._news.notify()

    def note_round(self, seconds: float, key: tuple[int, int]) -> None:
        """Note how long a round of (draft length, proposed tokens) took. Costs about a microsecond."""
        self._cost.note(seconds, key)

    def run_pending(self) -> bool:
        """In inline mode: run the update that is due, in this thread; whether one was."""
        due = self.mode == "inline" and self._due() and not self._closing.is_set()
        if due:
            self._update()
        return due

    def configure(self, **changes: Any) -> None:
        """Change settings (names of `ADAPTABLE`) from the next update on. ValueError, one sentence, for a name or value that is not
        possible; then nothing has changed."""
        wrong = sorted(set(changes) - set(ADAPTABLE))
        if wrong:
            raise ValueError(f"{', '.join(wrong)} cannot be changed while the app runs; choose from {', '.join(ADAPTABLE)}.")
        try:
            settings = Settings.model_validate(self.settings.model_dump() | changes)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{first['loc'][0]} = {first['input']!r} is not possible: {first['msg']}.") from None
        with self.versions.lock:
            if settings.lora_rank != self.settings.lora_rank and not self.versions.untouched:
                raise ValueError("The rank of an adapter line cannot change once it has versions: reset the line first.")
            with self._news:
                self.settings = settings
                self._buffer.order = settings.buffer_order
                if not settings.cost_aware:
                    self._payback.restart()
                self._news.notify_all()
            self._start()

    def status(self) -> TrainerStatus:
        cost, rounds = self._cost.measure()
        with self._news:
            state: State = self._state
            current, error, evidence = self.versions.current, self.versions.error, self._evidence
            if self.mode == "off":
                state = "off"
            elif state not in ("training", "waiting") and self._paused:
                state = "paused"
            elif state == "idle" and error:
                state = "failed"
            elif state == "idle" and self._payback.converged:
                state = "converged"
            left = max(0, self.settings.update_interval * (1 + self._skip) - self._buffer.fresh, self._payback.rest)
            judged = {"trusted": float(self.versions.trusted.version), "difference": evidence.mean, "error": evidence.error}
            judged |= {"requests": float(evidence.requests), "positions": float(evidence.positions)}
            return TrainerStatus(
                state=state,
                why=explain(state, left, self._remark),
                version=current.version,
                step=current.optimiser.step if current.optimiser else 0,
                loss=current.loss,
                requests_seen=self._requests_seen,
                next_in=left,
                last_swap=current.since,
                seconds=self._seconds,
                error=error,
                mode=self.mode,
                domain=self.versions.domain,
                rolled_back=self._rolled_back,
                chat_cost=cost,
                chat_rounds=rounds,
                converged=self._payback.converged,
                gain=self._expected()[0],
                shifts=self._shifts,
                judged=judged if evidence.positions > 1 else {},
            )

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
        version = self.versions.restore()
        self._changed()
        return version

    def activate(self, version: int) -> None:
        """Go back (or forward) to a stored version; 0 is the base drafter. Raises ValueError where it is missing or damaged."""
        self.versions.activate(version)
        self._changed()

    def adopt(self, adapter: AdapterState) -> int:
        """Make an adapter from elsewhere the newest version, publish and trust it; its number. ValueError where it does not fit."""
        version = self.versions.adopt(adapter, self.settings.adapters_kept)
        self._changed()
        return version

    def reset(self) -> None:
        """Back to the base drafter: versions, loss curve and collected answers of the line go."""
        with self.versions.lock:
            self.versions.reset()
            with self._news:
                self._begin()

    def close(self) -> None:
        """Stop thread and child (unless it is shared), within two seconds; what was not written is lost, what was written stays."""
        self._closing.set()
        atexit.unregister(self.close)
        with self._news:
            self._news.notify_all()
        if self._own_child:
            self._child.close()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _anchor(self) -> None:
        """Measure gains against the published version from now on."""
        # (number of updates, adapter) of an earlier version and of one between it and now, which takes its place.
        self._anchors: deque[tuple[int, AdapterState | None]] = deque([(self._updates, self.versions.current.adapter)], maxlen=2)

    def _changed(self) -> None:
        """Somebody chose the version by hand."""
        with self._news:
            self._requests_seen = max(self._requests_seen, self.versions.current.requests)
            self._setbacks, self._skip, self._remark = 0, 0, ""
            self._anchor()

    # --- when ----------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Have a thread in the modes that need one."""
        if self.mode in THREADED and self._thread is None:
            name = f"distiller {self.versions.target} {self.versions.domain}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._news:
                self._news.wait_for(lambda: self._closing.is_set() or (self.mode in THREADED and self._due()))
                if self._closing.is_set():
                    return
                self._state = "waiting"
            with self._turn:
                patience = self.settings.patience if self.mode == "idle" else 0.0
                pacer = Pacer(self._child, self._busy, patience, self._moved)
                pacer.wait(self._closing)
                if not self._closing.is_set() and self.mode in THREADED and self._due():
                    self._update(pacer)
            self._set_state("idle")

    def _moved(self, stands: bool) -> None:
        """The child was stopped for an answer, or goes on."""
        self._cost.running = not stands
        self._set_state("waiting" if stands else "training")

    def _set_state(self, state: State) -> None:
        with self._news:
            self._state = state

    def _due(self) -> bool:
        return not self._paused and self._buffer.fresh >= self.settings.update_interval and not self._payback.rest

    def _expected(self) -> tuple[float | None, float | None]:
        """What the next update should bring: relative change of tokens per second, and the seconds that it may save; None: unknown."""
        gain, acceptance = self._payback.gain, self._acceptance
        if gain is None or acceptance is None:
            return None, None
        length, round_seconds = self._cost.draft_length or DRAFT_LENGTH, self._cost.round_seconds
        hope = self._payback.hope or 0.0
        saved = seconds_saved(acceptance, hope, length, self._tokens, round_seconds) if round_seconds else None
        return speed_gain(acceptance, gain, length), saved

    def _wanted(self) -> bool:
        """Whether to train now: not right after a version was taken back, nor where it costs more than it gains."""
        with self._news:
            if self._skip:
                self._skip -= 1
                return False
            if not self.settings.cost_aware:
                return True
            if self._payback.converged:  # what a trial gains is measured against today
                self._anchor()
            return self._payback.take(self._expected()[1], self._seconds * PRICE.get(self.mode, 1.0))

    # --- one update ----------------------------------------------------------------------------------------------------

    def _update(self, pacer: Pacer | None = None) -> None:
        """Judge by what is new, then train on it, keep the result as a version and swap it in. On any failure the version stays.
        Without a pacer everything runs in this thread, else in the child."""
        with self.versions.lock, self._news:
            chosen, plan = self.settings, self.plan
            held = list(self._held)
            self._held.clear()
            batches = self._buffer.take(chosen.steps_per_update, chosen.batch_size)
            heads = self._buffer.draw(plan.head_steps, chosen.batch_size) if plan.head == "interleaved" else []
            self._state = "training"
        self._cost.running = True
        try:
            with ExitStack() as stack:
                if pacer is not None and pacer.patience > 0:
                    stack.enter_context(pacer)
                if self._judge(held, plan, pacer) and self._wanted():
                    self._learn(batches, heads, pacer)
        except Exception as error:  # disk, child, model or owner: a chat must never notice
            if not self._closing.is_set():
                log.warning("An update of %s failed: %s", self.versions.target, error)
                now = self.versions.current.version
                self.versions.error = f"{error} The drafter stays at version {now}; the next answers start another attempt."
        finally:
            self._cost.running = False
            self._set_state("idle")

    def _judge(self, held: Sequence[Trace], plan: Plan, pacer: Pacer | None) -> bool:
        """Measure the published version on answers that it has not learned from, beside the trusted one; False where somebody changed the
        line meanwhile. A judgement that fails changes nothing."""
        with self.versions.lock:
            current, trusted, epoch = self.versions.current, self.versions.trusted, self.versions.epoch
        if not held or current.version == trusted.version:
            return True
        at, anchor = self._anchors[0]
        states = [current.adapter, trusted.adapter, *([anchor] if anchor is not trusted.adapter else [])]
        try:
            if pacer is None:
                learner = training.learner_for(self._learners, self.folder, current.adapter, plan)
                judged = training.judge(learner, states, held, plan.window)
            else:
                judged = self._child.judge(self.folder, states, held, plan)
            after, before, *_ = found = [np.asarray(one, np.float64) for one in judged]
        except Exception as error:
            if self._closing.is_set():
                return False
            log.warning("Version %s could not be judged: %s", current.version, error)
            return True
        with self.versions.lock:
            if epoch != self.versions.epoch or self._closing.is_set():
                return False
            with self._news:
                self._payback.measured(float(np.mean(after - found[-1])) / max(1, self._updates - at))
            self._weigh(after, before, len(held))
        return True

    def _weigh(self, after: np.ndarray, before: np.ndarray, requests: int) -> None:
        """Conclude from a judgement: trust the published version, take it back, or wait for more answers."""
        version, trusted = self.versions.current.version, self.versions.trusted.version
        if self._shifted or self._evidence.against != trusted:
            self._evidence, self._shifted = Evidence(trusted), False
        if self._effect.version != version:
            self._effect = Effect(version)
        self._evidence.add(after, before, requests)
        self._effect.add(after, before, requests)
        whole = np.isfinite(after) & np.isfinite(before)
        if not whole.any():
            return
        with self._news:
            self._acceptance, self._remark = float(after[whole].mean()), ""
        effect, verdict = self._effect.values(), self._evidence.verdict()
        if verdict == "better":
            self.versions.trust()
            self._setbacks = 0
        elif verdict == "worse":
            self._take_back(version, trusted)
            effect |= {"rolled_back": 1.0}
        self.versions.effect(version, effect)

    def _take_back(self, bad: int, good: int) -> None:
        """Publish the trusted version again; the next update comes later and learns at half the rate."""
        self.versions.take_back()
        self._evidence = Evidence(good)
        self._anchor()
        name = f"version {good}" if good else "the base drafter"
        with self._news:
            self._rolled_back += 1
            self._setbacks += 1
            self._skip = 2 ** min(self._setbacks - 1, 4)
            self._remark = f"Version {bad} guessed worse than {name} on new answers, so {name} is back; learning goes on later and slower."

    def _learn(self, batches: Batches, heads: Batches, pacer: Pacer | None) -> None:
        with self.versions.lock:  # the plan anew: a version may have been taken back
            current, epoch, plan = self.versions.current, self.versions.epoch, self.plan
        began, stood = time.monotonic(), pacer.stood if pacer else 0.0
        if pacer is None:
            learner = training.learner_for(self._learners, self.folder, current.adapter, plan)
            adapter, optimiser, steps = training.train(learner, current.adapter, current.optimiser, batches, plan, heads)
        else:
            adapter, optimiser, steps = self._child.train(self.folder, current.adapter, current.optimiser, batches, plan, heads)
        with self._news:
            self._seconds = max(0.0, time.monotonic() - began - ((pacer.stood if pacer else 0.0) - stood))
        if not any(math.isfinite(step.loss) for step in steps):
            raise RuntimeError("No training step had a finite loss, so nothing was learnt.")
        with self.versions.lock:
            if epoch == self.versions.epoch and not self._closing.is_set():
                self.versions.keep(adapter, optimiser, steps, self._requests_seen, self.settings.adapters_kept)
                self._updates += 1
                if self._updates - self._anchors[-1][0] >= SPAN:
                    self._anchors.append((self._updates, adapter))
