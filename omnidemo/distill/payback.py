"""What learning is worth: versions compared on new answers, an update's gain against its cost, and what a step costs a chat."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable
from statistics import median
from typing import Literal

import numpy as np

Verdict = Literal["better", "worse", "open"]
HORIZON = 200  # requests over which an update has to pay for itself
# Of a second of training, in seconds of waiting: in `idle` nobody waits for it, beside an answer it takes some of the processor.
PRICE = {"idle": 0.03, "concurrent": 0.1, "inline": 1.0}
SURE_UPDATES = 20  # at the start, or after a change of topic, so many updates are taken without an estimate: warm-up
POOR_UPDATES = 3  # estimates in a row that do not pay, after which learning pauses
TRIAL_REQUESTS = 40  # answers after which a converged line tries one update
MEMORY = 6  # updates that the estimate looks back on
FEWEST_REQUESTS = 4  # answers that a judgement needs
# Standard errors below which a version is taken back. Every update tests anew, and the tokens of an answer are not independent: with
# 2 (and nothing forgotten) two of three simulated lines lost a good version within 50 updates, with 3.5 one of 25; a version that
# loses a tenth of its acceptance still goes at the first or second judgement.
WORSE = 3.5
KEPT = 0.8  # of the weight of earlier judgements
DRAFT_LENGTH = 4  # assumed until rounds have been seen


class Evidence:
    """Whether the versions that are tried guess better than the trusted one, on answers that neither has learned from.

    At position i both would have their proposal accepted with probabilities a_i (tried) and b_i (trusted). The differences
    d_i = a_i − b_i are summed up with weights w_i, KEPT of them with every later judgement, so that a version that goes wrong is not
    hidden by the good of many before it: mean d̄ = Σ w d / Σ w and standard error √(var(d) · Σ w²) / Σ w.
    """

    def __init__(self, against: int = 0) -> None:
        """`against`: number of the trusted version."""
        self.against = against
        self.requests = self.positions = 0
        self._weights = self._weights_squared = self._sum = self._squares = 0.0

    def add(self, tried: np.ndarray, trusted: np.ndarray, requests: int) -> None:
        """Acceptance probabilities [n] of both at the same positions of `requests` answers; positions that are not finite are left out."""
        difference = np.asarray(tried, np.float64) - np.asarray(trusted, np.float64)
        difference = difference[np.isfinite(difference)]
        self.requests += requests
        self.positions += len(difference)
        self._weights = KEPT * self._weights + len(difference)
        self._weights_squared = KEPT**2 * self._weights_squared + len(difference)
        self._sum = KEPT * self._sum + float(difference.sum())
        self._squares = KEPT * self._squares + float((difference**2).sum())

    @property
    def mean(self) -> float:
        return self._sum / self._weights if self._weights else 0.0

    @property
    def error(self) -> float:
        """Standard error of the mean; infinite below two positions."""
        if self.positions < 2:
            return math.inf
        shrunk = self._weights_squared / self._weights**2  # 1 / effective number of positions
        return math.sqrt(max(0.0, self._squares / self._weights - self.mean**2) * shrunk / (1 - shrunk))

    def verdict(self, latest: float) -> Verdict:
        """Better above one standard error, worse below minus WORSE of them: a difference within the noise decides nothing.

        The evidence may be on several versions. `latest` is the mean difference of the published one alone: it is neither trusted for
        the good of its forerunners nor taken back for their harm.
        """
        if self.requests < FEWEST_REQUESTS or self.positions < 2:
            return "open"
        if self.mean > self.error:
            return "better" if latest >= 0 else "open"
        return "worse" if self.mean < -WORSE * self.error and latest < 0 else "open"


class Effect:
    """The measured effect of one version: mean acceptance on its new answers, beside that of the trusted version."""

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self._before = self._after = 0.0
        self.positions = self.requests = 0

    def add(self, after: np.ndarray, before: np.ndarray, requests: int) -> None:
        whole = np.isfinite(after) & np.isfinite(before)
        self._before += float(before[whole].sum())
        self._after += float(after[whole].sum())
        self.positions += int(whole.sum())
        self.requests += requests

    @property
    def difference(self) -> float:
        """Mean acceptance of the version less that of the trusted one; 0 where nothing was measured."""
        return (self._after - self._before) / self.positions if self.positions else 0.0

    def values(self) -> dict[str, float]:
        """acceptance_before, acceptance_after (0 to 1) and requests; empty where nothing was measured."""
        if not self.positions:
            return {}
        before, after = self._before / self.positions, self._after / self.positions
        return {"acceptance_before": before, "acceptance_after": after, "requests": float(self.requests)}


class Payback:
    """Whether the next update pays for its training; after POOR_UPDATES in a row that do not, learning pauses (`converged`).

    The expected gain is the mean change of held-out acceptance per update, each measurement weighing 1 − 1/MEMORY of the next one. One
    measurement is about as noisy as many updates gain, so an update is taken as long as gain + standard error would pay.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new line or a new topic: the first updates are taken again without an estimate."""
        self.converged = False
        self._taken = self._poor = self._waited = 0
        self._gains: deque[float] = deque(maxlen=3 * MEMORY)

    @property
    def gain(self) -> float | None:
        """Expected change of acceptance by one update; None before one was measured."""
        if not self._gains:
            return None
        return float(np.average(self._gains, weights=self._weights()))

    @property
    def hope(self) -> float | None:
        """The expected gain and its standard error, added."""
        gain = self.gain
        if gain is None or len(self._gains) < 2:
            return gain
        weights = self._weights()
        shrunk = float((weights**2).sum())  # 1 / effective number of measurements
        variance = float(np.average((np.array(self._gains) - gain) ** 2, weights=weights)) / (1 - shrunk)
        return gain + math.sqrt(variance * shrunk)

    def _weights(self) -> np.ndarray:
        weights = (1 - 1 / MEMORY) ** np.arange(len(self._gains), dtype=np.float64)[::-1]
        return weights / weights.sum()

    @property
    def answers_left(self) -> int:
        """Answers until a converged line tries an update; 0 where it is not converged."""
        return max(0, TRIAL_REQUESTS - self._waited) if self.converged else 0

    def request(self) -> None:
        """Note an answer."""
        self._waited += self.converged

    def measured(self, gain: float) -> None:
        """Note by how much an update changed the acceptance on new answers."""
        if math.isfinite(gain):
            self._gains.append(gain)

    def take(self, saved: float | None, cost: float) -> bool:
        """Whether to train now. `saved` (None: unknown) and `cost` are seconds."""
        if self.converged:  # the trial of a converged line: one update, and its gain decides
            self.converged, self._poor = False, POOR_UPDATES - 1
            self._gains.clear()
            return True
        self._taken += 1
        pays = self._taken <= SURE_UPDATES or saved is None or saved >= cost
        self._poor = 0 if pays else self._poor + 1
        self.converged, self._waited = self._poor >= POOR_UPDATES, 0
        return not self.converged


def efficiency(acceptance: float, length: float) -> float:
    """Tokens per round when `length` tokens are drafted and each is accepted with probability α: (1 − α^(k+1)) / (1 − α)."""
    alpha = min(max(acceptance, 0.0), 0.999)
    return (1 - alpha ** (length + 1)) / (1 - alpha)


def speed_gain(acceptance: float, change: float, length: float) -> float:
    """Relative change of tokens per second when the acceptance moves by `change` and a round takes as long as before."""
    return efficiency(acceptance + change, length) / efficiency(acceptance, length) - 1


def seconds_saved(acceptance: float, change: float, length: float, tokens: float, round_seconds: float) -> float:
    """Seconds of waiting saved over the next HORIZON requests of `tokens` each: HORIZON · tokens · t_round · (1/τ(α) − 1/τ(α + Δ))."""
    shorter = 1 / efficiency(acceptance, length) - 1 / efficiency(acceptance + change, length)
    return HORIZON * tokens * round_seconds * shorter


class ChatCost:
    """How much longer rounds take while a training step runs: rounds of the same kind, with a step beside them and without.

    One for all lines with the same training process: a step of one of them slows the answers of all.
    """

    def __init__(self) -> None:
        self.running = False  # whether a step runs at this moment
        self.round_seconds: float | None = None  # running means over the drafting rounds
        self.draft_length: float | None = None
        self._quiet: defaultdict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=50))
        self._met: defaultdict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=50))

    def note(self, seconds: float, key: tuple[int, int]) -> None:
        """Note a round of (draft length, proposed tokens). Costs about a microsecond: it is called in every round of a chat."""
        (self._met if self.running else self._quiet)[key].append(seconds)
        length = key[0]
        if length and self.round_seconds is not None and self.draft_length is not None:
            self.round_seconds += 0.05 * (seconds - self.round_seconds)
            self.draft_length += 0.05 * (length - self.draft_length)
        elif length:
            self.round_seconds, self.draft_length = seconds, float(length)

    def measure(self) -> tuple[float | None, int]:
        """(how much longer, relatively: 0.1 is 10 %; None while too few rounds met a step, how many rounds met one)."""
        met = [(key, list(values)) for key, values in list(self._met.items())]
        ratios = [
            (len(values), median(values) / median(quiet))
            for key, values in met
            if len(values) >= 3 and len(quiet := list(self._quiet.get(key, ()))) >= 3
        ]
        rounds = sum(len(values) for _, values in met)
        weight = sum(count for count, _ in ratios)
        return (sum(count * ratio for count, ratio in ratios) / weight - 1 if weight else None), rounds
