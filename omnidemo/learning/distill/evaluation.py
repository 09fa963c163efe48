"""Whether a version is better on later answers: the evidence, promotion and rollback, and when the line
trains next."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from omnidemo.core.records import Trace
from omnidemo.learning.distill.payback import (
    DRAFT_LENGTH,
    ChatCost,
    Payback,
    seconds_saved,
    speed_gain,
    weighted_mean,
)
from omnidemo.learning.probes.drift import DriftDetector
from omnidemo.models.adapters.adapter_state import AdapterState

UNSEEN = 24  # newest answers, which no update has read, on which a version is evaluated
EARLIER = 8  # answers before those, drawn anew for each evaluation, on which it must not get worse
SPAN = 6  # updates over which a gain is averaged (up to twice as many): the gain of one is mostly noise
FEWEST_REQUESTS = 4  # answers that a verdict needs
# Standard errors below which a worse version is rolled back. Every update tests again, and the tokens of an
# answer are not independent: with 2 (and no decay) two of three simulated lines lost a good version within 50
# updates, with 3.5 one of 25. A version that loses a tenth of its acceptance is still rolled back at the
# first or second evaluation.
ROLLBACK_ERRORS = 3.5
EVIDENCE_DECAY = 0.8  # factor on the weight of earlier evaluations, for each later one
MOST_EVALUATIONS = 64  # that are kept: a weight of 0.8⁶⁴ is negligible
MOST_HALVINGS = 4  # of the learning rate: below a sixteenth of it a line would learn nothing
# Standard errors above which a better version doubles the pace of its line. One standard error, which is
# enough to trust a version, is reached by chance in a sixth of all evaluations.
FASTER_ERRORS = 2.0
MOST_DOUBLINGS = 3  # from the most careful drafter of the catalogue to the quick pace (`worker.paced`)

Verdict = Literal["better", "worse", "open"]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Finite acceptance probabilities [n] of a version (`tried`) and of the trusted one, at the same n
    positions of `requests` answers."""

    tried: np.ndarray
    trusted: np.ndarray
    requests: int


def difference(evidence: Sequence[Measured]) -> tuple[float, float]:
    """The weighted mean of tried − trusted over all positions, and its standard error. The oldest evidence
    comes first, and its weight decays, so that good versions before it do not hide a bad one."""
    values = np.concatenate([one.tried - one.trusted for one in evidence])
    weights = EVIDENCE_DECAY ** np.arange(len(evidence), dtype=np.float64)[::-1]
    return weighted_mean(values, np.repeat(weights, [len(one.tried) for one in evidence]))


def verdict_on(evidence: Sequence[Measured], latest: float) -> Verdict:
    """Whether the versions published since the trusted one guess better than it, on answers that neither has
    learned from. "better": the mean difference is above one standard error. "worse": it is below
    −ROLLBACK_ERRORS of them. "open": it is noise.

    The evidence may span several versions. `latest` is the mean difference of the published one: it is
    neither promoted for gains of the versions before it, nor rolled back for their losses.
    """
    mean, error = difference(evidence)
    if sum(one.requests for one in evidence) < FEWEST_REQUESTS or not math.isfinite(error):
        return "open"
    if mean > error:
        return "better" if latest >= 0 else "open"
    return "worse" if mean < -ROLLBACK_ERRORS * error and latest < 0 else "open"


def verdict_of_both(new: Sequence[Measured], latest: float, earlier: Sequence[Measured]) -> Verdict:
    """`verdict_on` the evidence by new answers, unless the versions guess worse on earlier answers: then they
    are "worse", and a fall by more than one standard error turns "better" into "open". So a version that
    learns the newest answers and forgets the others is not kept. A version may have learned from the earlier
    answers; where it forgets, it guesses worse on them all the same."""
    verdict = verdict_on(new, latest)
    if not earlier:
        return verdict
    if verdict_on(earlier, float(np.mean(earlier[-1].tried - earlier[-1].trusted))) == "worse":
        return "worse"
    mean, error = difference(earlier)
    return "open" if verdict == "better" and mean < -error else verdict


def effect(measured: Sequence[Measured]) -> dict[str, float]:
    """acceptance_before and acceptance_after (0 to 1) of one version, and requests; {} without evidence."""
    if not measured:
        return {}
    before = float(np.concatenate([one.trusted for one in measured]).mean())
    after = float(np.concatenate([one.tried for one in measured]).mean())
    return {
        "acceptance_before": before,
        "acceptance_after": after,
        "requests": float(sum(one.requests for one in measured)),
    }


class Evaluation:
    """The evaluations of one line. Its owner holds a lock around each call."""

    def __init__(self, adapter: AdapterState | None) -> None:
        """`adapter`: the published one (None: the base drafter)."""
        self.payback, self._detector = Payback(), DriftDetector()
        # on the versions since the trusted one: by new answers, and by earlier ones
        self.evidence: deque[Measured] = deque(maxlen=MOST_EVALUATIONS)
        self._earlier: deque[Measured] = deque(maxlen=MOST_EVALUATIONS)
        self._effect: deque[Measured] = deque(maxlen=MOST_EVALUATIONS)  # of the published version
        self._compared = (0, 0)  # the published version and the trusted one, at the last evaluation
        self._unseen: deque[Trace] = deque(maxlen=UNSEEN)  # the newest answers since the last update
        self.waiting = 0  # answers since the last update
        self.requests = self.shifts = self.rolled_back = 0
        self._shifted = False  # a topic shift since the last evaluation
        self._setbacks = 0  # rollbacks since a version was better
        self._doublings = 0  # of the pace
        self.skip = 0  # updates to leave out: exponential back-off after rollbacks
        self.seconds = self._tokens = 0.0  # of the last update; tokens of a mean answer without copied ones
        self._acceptance: float | None = None  # of the published version, on new answers
        self.remark = ""  # a sentence about the last evaluation
        self._updates = 0
        self.anchor(adapter)

    @property
    def pace(self) -> float:
        """How fast the line learns, as a multiple of its settings (`worker.paced`). A clearly better version
        doubles the pace, up to MOST_DOUBLINGS times. A version that guesses worse on earlier answers undoes
        one doubling. A rollback undoes all doublings and halves the pace. A change of topic resets it to
        1."""
        return float(2.0 ** (self._doublings - min(self._setbacks, MOST_HALVINGS)))

    def answer(self, trace: Trace) -> None:
        """Note an answer, which counts towards the next update."""
        self._unseen.append(trace)
        self.waiting += 1
        self.requests += 1
        self._tokens += (int(trace.own.sum()) - self._tokens) * max(0.1, 1 / self.requests)
        self.payback.request()
        acceptance = trace.acceptance
        # Acceptance 0 is taken for an answer without a drafter.
        if acceptance > 0 and self._detector.add(acceptance):
            self.shifts += 1
            self._shifted = True
            self._setbacks = self._doublings = self.skip = 0
            self.payback.restart()

    def take(self) -> list[Trace]:
        """The answers to evaluate on, oldest first. The update that begins now learns from them afterwards,
        so they are returned once."""
        unseen = list(self._unseen)
        self._unseen.clear()
        self.waiting = 0
        return unseen

    def states(
        self, published: AdapterState | None, trusted: AdapterState | None
    ) -> list[AdapterState | None]:
        """The versions that an evaluation compares: the published one, the trusted one, and the one from
        which gains are measured."""
        anchor = self._anchors[0][1]
        return [published, trusted, *([anchor] if anchor is not trusted else [])]

    def conclude(
        self, acceptance: Sequence[np.ndarray], requests: int, version: int, trusted: int,
        earlier: Sequence[np.ndarray] = (),
    ) -> tuple[Verdict, dict[str, float]]:  # fmt: skip
        """The verdict on the published version, and its `effect`. `acceptance`: [n] of each of `states` on
        new answers; `earlier`: that of the first two on EARLIER answers. Positions that are not finite are
        left out."""
        found = _finite(acceptance)
        after, before, anchor = found[0], found[1], found[-1]
        if self._compared[1] != trusted:
            self._earlier.clear()
        if self._shifted or self._compared[1] != trusted:
            self.evidence.clear()
        if self._compared[0] != version:
            self._effect.clear()
        self._compared, self._shifted = (version, trusted), False
        if not len(after):
            return "open", effect(self._effect)
        self.payback.measured(float(np.mean(after - anchor)) / max(1, self._updates - self._anchors[0][0]))
        self.evidence.append(Measured(after, before, requests))
        if len(earlier) and len((seen := _finite(earlier))[0]):
            self._earlier.append(Measured(seen[0], seen[1], EARLIER))
        self._effect.append(self.evidence[-1])
        self._acceptance, self.remark = float(after.mean()), ""
        measured = effect(self._effect)
        latest = measured["acceptance_after"] - measured["acceptance_before"]
        verdict = verdict_of_both(self.evidence, latest, self._earlier)
        self._set_pace(verdict)
        return verdict, measured

    def _set_pace(self, verdict: Verdict) -> None:
        mean, error = difference(self.evidence)
        if verdict == "better":
            clearly = mean > FASTER_ERRORS * error and not self._setbacks
            self._doublings = min(MOST_DOUBLINGS, self._doublings + clearly)
            self._setbacks = 0
        elif self._earlier and (lost := difference(self._earlier))[0] < -lost[1]:
            self._doublings = max(0, self._doublings - 1)

    def note_rollback(self, bad: int, good: int, adapter: AdapterState | None) -> None:
        """Version `bad` was rolled back to `good`: the next update comes later and at half the rate."""
        self.evidence.clear()
        self._earlier.clear()
        self.anchor(adapter)
        self.rolled_back += 1
        self._doublings = 0
        self._setbacks += 1
        self.skip = 2 ** min(self._setbacks - 1, MOST_HALVINGS)
        name = f"version {good}" if good else "the base drafter"
        self.remark = (
            f"Version {bad} guessed worse than {name} on new or on earlier answers, so {name} is back;"
            " learning goes on later and slower."
        )

    def expected(self, cost: ChatCost) -> tuple[float | None, float | None]:
        """The expected gain of the next update: relative change of tokens/s, and seconds of waiting that it
        may save; None: unknown."""
        gain, acceptance = self.payback.gain, self._acceptance
        if gain is None or acceptance is None:
            return None, None
        length, round_seconds = cost.draft_length or DRAFT_LENGTH, cost.round_seconds
        faster = speed_gain(acceptance, gain, length)
        if not round_seconds:
            return faster, None
        return faster, seconds_saved(acceptance, self.payback.hope, length, self._tokens, round_seconds)

    def wanted(self, aware: bool, cost: ChatCost, price: float, adapter: AdapterState | None) -> bool:
        """Whether to train now: not right after a rollback, nor (`aware`) where training costs more than it
        gains. `price`: of a second of training, in seconds of waiting. `adapter`: the published one."""
        if self.skip:
            self.skip -= 1
            return False
        if not aware:
            return True
        if self.payback.converged:  # the gain of a trial is measured from today's version
            self.anchor(adapter)
        return self.payback.take(self.expected(cost)[1], self.seconds * price)

    def kept(self, adapter: AdapterState) -> None:
        """An update has published a new version."""
        self._updates += 1
        if self._updates - self._anchors[-1][0] >= SPAN:
            self._anchors.append((self._updates, adapter))

    def chosen(self, requests: int, adapter: AdapterState | None) -> None:
        """The published version, made after `requests` answers, was chosen by hand or restored. Earlier
        rollbacks are forgotten."""
        self.requests = max(self.requests, requests)
        self._setbacks, self._doublings, self.skip, self.remark = 0, 0, 0, ""
        self.anchor(adapter)

    def anchor(self, adapter: AdapterState | None) -> None:
        """Measure gains from the published version on."""
        # (number of updates, adapter) of an earlier version, and of a later one that takes its place
        self._anchors: deque[tuple[int, AdapterState | None]] = deque([(self._updates, adapter)], maxlen=2)


def _finite(acceptance: Sequence[np.ndarray]) -> np.ndarray:
    """[states, n]: the positions that are finite for all states."""
    found = np.stack(acceptance).astype(np.float64)
    return found[:, np.isfinite(found).all(axis=0)]
