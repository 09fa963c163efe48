"""The measurements of one line's learning: how its versions did on new answers, and whether the next update pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from omnidemo.adapters.version_folders import AdapterState
from omnidemo.distill.drift import DriftDetector
from omnidemo.distill.payback import DRAFT_LENGTH, ChatCost, Effect, Evidence, Payback, Verdict, seconds_saved, speed_gain
from omnidemo.records import Trace

HELD_OUT = 24  # newest answers that a version is evaluated on
SPAN = 6  # updates: the gain of one is measured over this many to twice as many, since a single one drowns in noise
MOST_HALVINGS = 4  # of the learning rate: below a sixteenth of it a line would learn nothing any more


class Evaluation:
    """The record of one line. Not for several threads at once: its owner holds a lock around each call."""

    def __init__(self, adapter: AdapterState | None) -> None:
        """`adapter` is the one that is published (None: the base drafter)."""
        self.evidence, self.payback = Evidence(), Payback()
        self._effect, self._detector = Effect(), DriftDetector()
        self._held: deque[Trace] = deque(maxlen=HELD_OUT)  # answers since the last update: nothing has learned from them
        self.waiting = 0  # how many there were
        self.requests = self.shifts = self.rolled_back = 0
        self._shifted = False  # a topic shift since the last evaluation
        self._setbacks = 0  # versions rolled back since one was better
        self.skip = 0  # updates to leave out: exponential back-off after rollbacks
        self.seconds = self._tokens = 0.0  # of the last update; of a mean answer
        self._acceptance: float | None = None  # of the published version, on new answers
        self.remark = ""  # a sentence about the last evaluation
        self._updates = 0
        self.anchor(adapter)

    @property
    def slower(self) -> float:
        """Factor of the learning rate: each version that was rolled back halves it, until one is better or the topic changes."""
        return float(0.5 ** min(self._setbacks, MOST_HALVINGS))

    def answer(self, trace: Trace) -> None:
        """Take note of an answer."""
        self._held.append(trace)
        self.waiting += 1
        self.requests += 1
        self._tokens += (len(trace.p) - self._tokens) * max(0.1, 1 / self.requests)
        self.payback.request()
        acceptance = float(np.mean(trace.accepted))
        # An answer without a single accepted proposal is one that was written without a drafter.
        if acceptance > 0 and self._detector.add(acceptance):
            self.shifts += 1
            self._shifted = True
            self._setbacks = self.skip = 0
            self.payback.restart()

    def take(self) -> list[Trace]:
        """The answers to evaluate on, oldest first; an update that begins now has seen them all."""
        held = list(self._held)
        self._held.clear()
        self.waiting = 0
        return held

    def states(self, published: AdapterState | None, trusted: AdapterState | None) -> list[AdapterState | None]:
        """What an evaluation compares: the published version, the trusted one, and an earlier one from which gains are measured."""
        anchor = self._anchors[0][1]
        return [published, trusted, *([anchor] if anchor is not trusted else [])]

    def conclude(self, acceptance: Sequence[np.ndarray], requests: int, version: int, trusted: int) -> tuple[Verdict, dict[str, float]]:
        """The verdict on the published version, and its measured effect, by the acceptance [n] of each of `states`."""
        after, before, *_ = found = [np.asarray(one, np.float64) for one in acceptance]
        whole = np.all(np.isfinite(found), axis=0)
        after, before, earlier = after[whole], before[whole], found[-1][whole]
        if self._shifted or self.evidence.against != trusted:
            self.evidence, self._shifted = Evidence(trusted), False
        if self._effect.version != version:
            self._effect = Effect(version)
        if not len(after):
            return "open", self._effect.values()
        self.payback.measured(float(np.mean(after - earlier)) / max(1, self._updates - self._anchors[0][0]))
        self.evidence.add(after, before, requests)
        self._effect.add(after, before, requests)
        self._acceptance, self.remark = float(after.mean()), ""
        verdict = self.evidence.verdict(self._effect.difference)
        if verdict == "better":
            self._setbacks = 0
        return verdict, self._effect.values()

    def note_rollback(self, bad: int, good: int, adapter: AdapterState | None) -> None:
        """Version `bad` was rolled back to `good`: the next update comes later and learns at half the rate."""
        self.evidence = Evidence(good)
        self.anchor(adapter)
        self.rolled_back += 1
        self._setbacks += 1
        self.skip = 2 ** min(self._setbacks - 1, MOST_HALVINGS)
        name = f"version {good}" if good else "the base drafter"
        self.remark = f"Version {bad} guessed worse than {name} on new answers, so {name} is back; learning goes on later and slower."

    def judged(self) -> Mapping[str, float]:
        """The evidence on the versions since the trusted one; empty where there is none."""
        known = self.evidence
        if known.positions < 2:
            return {}
        found = {"trusted": known.against, "difference": known.mean, "error": known.error}
        return {name: float(value) for name, value in {**found, "requests": known.requests, "positions": known.positions}.items()}

    def expected(self, cost: ChatCost) -> tuple[float | None, float | None]:
        """What the next update should gain: relative change of tokens per second, and the seconds that it may save; None: unknown."""
        gain, acceptance = self.payback.gain, self._acceptance
        if gain is None or acceptance is None:
            return None, None
        length, round_seconds = cost.draft_length or DRAFT_LENGTH, cost.round_seconds
        hope = self.payback.hope or 0.0
        saved = seconds_saved(acceptance, hope, length, self._tokens, round_seconds) if round_seconds else None
        return speed_gain(acceptance, gain, length), saved

    def wanted(self, aware: bool, cost: ChatCost, price: float, adapter: AdapterState | None) -> bool:
        """Whether to train now: not right after a rollback, nor (`aware`) where it costs more than it gains. `price`: of a
        second of training, in seconds of waiting; `adapter`: the published one."""
        if self.skip:
            self.skip -= 1
            return False
        if not aware:
            return True
        if self.payback.converged:  # what a trial gains is measured against today
            self.anchor(adapter)
        return self.payback.take(self.expected(cost)[1], self.seconds * price)

    def kept(self, adapter: AdapterState) -> None:
        """An update made the published version."""
        self._updates += 1
        if self._updates - self._anchors[-1][0] >= SPAN:
            self._anchors.append((self._updates, adapter))

    def chosen(self, requests: int, adapter: AdapterState | None) -> None:
        """Somebody chose the published version by hand; it was made after so many requests."""
        self.requests = max(self.requests, requests)
        self._setbacks, self.skip, self.remark = 0, 0, ""
        self.anchor(adapter)

    def anchor(self, adapter: AdapterState | None) -> None:
        """Measure gains against the published version from now on."""
        # (number of updates, adapter) of an earlier version and of one between it and now, which takes its place.
        self._anchors: deque[tuple[int, AdapterState | None]] = deque([(self._updates, adapter)], maxlen=2)
