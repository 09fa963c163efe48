"""Is a version better on later answers? Evidence, promotion, rollback, and the pace of learning."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from omnidemo.core.records import Trace

UNSEEN = 24  # newest answers, which no update has read, on which a version is evaluated
EARLIER = 8  # answers before those, drawn anew for each evaluation, on which it must not get worse
FEWEST_REQUESTS = 4  # answers that a verdict needs
# Standard errors below which a worse version is rolled back. Every update tests again, and the tokens of an
# answer are not independent: with 2 (and no decay) two of three simulated lines lost a good version within 50
# updates, with 3.5 one of 25. A version that loses a tenth of its acceptance is still rolled back at the
# first or second evaluation.
ROLLBACK_ERRORS = 3.5
EVIDENCE_DECAY = 0.8  # factor on the weight of earlier evaluations, for each later one
MOST_EVALUATIONS = 64  # that are kept: a weight of 0.8⁶⁴ is negligible
# Standard errors above which a better version doubles the pace of its line. One standard error, which is
# enough to trust a version, is reached by chance in a sixth of all evaluations.
FASTER_ERRORS = 2.0
MOST_DOUBLINGS = 3  # from the most careful drafter of the catalogue to the quick pace (`worker.paced`)

Verdict = Literal["better", "worse", "open"]


@dataclass(frozen=True, slots=True, eq=False)
class PairedAcceptance:
    """Finite acceptance probabilities [n] of a version (`tried`) and of the trusted one, at the same n
    positions of `requests` answers."""

    tried: np.ndarray
    trusted: np.ndarray
    requests: int


def difference(evidence: Sequence[PairedAcceptance]) -> tuple[float, float]:
    """The weighted mean of tried − trusted over all positions, and its standard error. The oldest evidence
    comes first, and its weight decays, so that good versions before it do not hide a bad one."""
    values = np.concatenate([one.tried - one.trusted for one in evidence])
    weights = EVIDENCE_DECAY ** np.arange(len(evidence), dtype=np.float64)[::-1]
    return weighted_mean(values, np.repeat(weights, [len(one.tried) for one in evidence]))


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Σ w x / Σ w and its standard error √(var(x) · Σ w²) / Σ w, which is infinite below two values."""
    mean = float(np.average(values, weights=weights))
    shrunk = float((weights**2).sum() / weights.sum() ** 2)  # 1 / effective number of values
    variance = float(np.average((values - mean) ** 2, weights=weights))
    return mean, math.sqrt(variance * shrunk / (1 - shrunk)) if len(values) > 1 else math.inf


def verdict_on(evidence: Sequence[PairedAcceptance], latest: float) -> Verdict:
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


def verdict_of_both(
    new: Sequence[PairedAcceptance], latest: float, earlier: Sequence[PairedAcceptance]
) -> Verdict:
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


def effect(measured: Sequence[PairedAcceptance]) -> dict[str, float]:
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

    def __init__(self) -> None:
        # on the versions since the trusted one: by new answers, and by earlier ones
        self.evidence: deque[PairedAcceptance] = deque(maxlen=MOST_EVALUATIONS)
        self._earlier: deque[PairedAcceptance] = deque(maxlen=MOST_EVALUATIONS)
        self._effect: deque[PairedAcceptance] = deque(maxlen=MOST_EVALUATIONS)  # of the published version
        self._compared = (0, 0)  # the published version and the trusted one, at the last evaluation
        self._unseen: deque[Trace] = deque(maxlen=UNSEEN)  # the newest answers since the last update
        self.waiting = 0  # answers since the last update
        self.requests = self.rolled_back = 0
        self._doublings = 0  # of the pace
        self.seconds = 0.0  # of the last update
        self.remark = ""  # a sentence about the last evaluation

    @property
    def pace(self) -> float:
        """How fast the line learns, as a multiple of its settings (`worker.paced`). A clearly better version
        doubles the pace, up to MOST_DOUBLINGS times; a rollback ends that."""
        return float(2**self._doublings)

    def answer(self, trace: Trace) -> None:
        """Note an answer, which counts towards the next update."""
        self._unseen.append(trace)
        self.waiting += 1
        self.requests += 1

    def take(self) -> list[Trace]:
        """The answers to evaluate on, oldest first. The update that begins now learns from them afterwards,
        so they are returned once."""
        unseen = list(self._unseen)
        self._unseen.clear()
        self.waiting = 0
        return unseen

    def conclude(
        self, acceptance: Sequence[np.ndarray], requests: int, version: int, trusted: int,
        earlier: Sequence[np.ndarray] = (),
    ) -> tuple[Verdict, dict[str, float]]:  # fmt: skip
        """The verdict on the published version, and its `effect`. `acceptance`: [n] of it and of the trusted
        one on new answers; `earlier`: the same on EARLIER answers. Positions that are not finite are left
        out."""
        after, before = _finite(acceptance)
        if self._compared[1] != trusted:
            self.evidence.clear()
            self._earlier.clear()
        if self._compared[0] != version:
            self._effect.clear()
        self._compared = (version, trusted)
        if not len(after):
            return "open", effect(self._effect)
        self.evidence.append(PairedAcceptance(after, before, requests))
        if len(earlier) and len((seen := _finite(earlier))[0]):
            self._earlier.append(PairedAcceptance(seen[0], seen[1], EARLIER))
        self._effect.append(self.evidence[-1])
        self.remark = ""
        measured = effect(self._effect)
        latest = measured["acceptance_after"] - measured["acceptance_before"]
        verdict = verdict_of_both(self.evidence, latest, self._earlier)
        mean, error = difference(self.evidence)
        if verdict == "better" and mean > FASTER_ERRORS * error:
            self._doublings = min(MOST_DOUBLINGS, self._doublings + 1)
        return verdict, measured

    def note_rollback(self, bad: int, good: int) -> None:
        """Version `bad` was rolled back to `good`."""
        self.evidence.clear()
        self._earlier.clear()
        self.rolled_back += 1
        self._doublings = 0
        name = f"version {good}" if good else "the base drafter"
        self.remark = (
            f"Version {bad} guessed worse than {name} on new or on earlier answers, so {name} is back."
        )

    def chosen(self, requests: int) -> None:
        """The published version, made after `requests` answers, was chosen by hand or restored."""
        self.requests = max(self.requests, requests)
        self._doublings, self.remark = 0, ""


def _finite(acceptance: Sequence[np.ndarray]) -> np.ndarray:
    """[states, n]: the positions that are finite for all states."""
    found = np.stack(acceptance).astype(np.float64)
    return found[:, np.isfinite(found).all(axis=0)]
