"""Whether training pays: the expected gain of an update against its cost, and how much training slows a
chat."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable
from statistics import fmean

import numpy as np

HORIZON = 200  # requests over which an update has to pay for itself
# Price of a second of training in seconds of waiting: in `idle` nobody waits for it, in `concurrent` it takes
# some of the processor.
PRICE = {"idle": 0.03, "concurrent": 0.1, "inline": 1.0}
SURE_UPDATES = 20  # without an estimate, at the start and after a change of topic
POOR_UPDATES = 3  # estimates in a row that do not pay, after which learning pauses
TRIAL_REQUESTS = 40  # answers after which a converged line tries one update
MEMORY = 6  # updates that the estimate covers
DRAFT_LENGTH = 4  # assumed before the first round


class Payback:
    """Whether the next update pays for its training. After POOR_UPDATES in a row that do not, learning pauses
    (`converged`).

    The expected gain is the mean change of held-out acceptance per update, where each measurement has 1 −
    1/MEMORY of the next one's weight. One measurement is about as noisy as the gain of many updates, so an
    update is taken while gain + standard error would pay.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Take the first updates again without an estimate, as for a new line or topic."""
        self.converged = False
        self._taken = self._poor = self._waited = 0
        self._gains: deque[float] = deque(maxlen=3 * MEMORY)

    @property
    def gain(self) -> float | None:
        """Expected change of acceptance by one update; None before a measurement."""
        return self._estimate()[0] if self._gains else None

    @property
    def hope(self) -> float:
        """The expected gain plus its standard error; 0 before a measurement."""
        gain, error = self._estimate() if self._gains else (0.0, 0.0)
        return gain + error if math.isfinite(error) else gain

    def _estimate(self) -> tuple[float, float]:
        return weighted_mean(
            np.array(self._gains), (1 - 1 / MEMORY) ** np.arange(len(self._gains), dtype=np.float64)[::-1]
        )

    @property
    def answers_left(self) -> int:
        """Answers until a converged line tries an update; 0 for other lines."""
        return max(0, TRIAL_REQUESTS - self._waited) if self.converged else 0

    def request(self) -> None:
        self._waited += self.converged

    def measured(self, gain: float) -> None:
        """Note the change of acceptance on new answers by an update."""
        if math.isfinite(gain):
            self._gains.append(gain)

    def take(self, saved: float | None, cost: float) -> bool:
        """Whether to train now. `saved` (None: unknown) and `cost` are seconds of waiting."""
        if self.converged:  # the trial of a converged line is one update, whose gain decides
            self.converged, self._poor = False, POOR_UPDATES - 1
            self._gains.clear()
            return True
        self._taken += 1
        pays = self._taken <= SURE_UPDATES or saved is None or saved >= cost
        self._poor = 0 if pays else self._poor + 1
        self.converged, self._waited = self._poor >= POOR_UPDATES, 0
        return not self.converged


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Σ w x / Σ w and its standard error √(var(x) · Σ w²) / Σ w, which is infinite below two values."""
    mean = float(np.average(values, weights=weights))
    shrunk = float((weights**2).sum() / weights.sum() ** 2)  # 1 / effective number of values
    variance = float(np.average((values - mean) ** 2, weights=weights))
    return mean, math.sqrt(variance * shrunk / (1 - shrunk)) if len(values) > 1 else math.inf


def efficiency(acceptance: float, length: float) -> float:
    """Tokens per round (1 − α^(k+1)) / (1 − α) where k = `length` tokens are drafted, each accepted with
    probability α."""
    alpha = min(max(acceptance, 0.0), 0.999)
    return (1 - alpha ** (length + 1)) / (1 - alpha)


def speed_gain(acceptance: float, change: float, length: float) -> float:
    """Relative change of tokens/s where the acceptance moves by `change` and rounds take as long as
    before."""
    return efficiency(acceptance + change, length) / efficiency(acceptance, length) - 1


def seconds_saved(
    acceptance: float, change: float, length: float, tokens: float, round_seconds: float
) -> float:
    """Seconds of waiting saved over the next HORIZON requests of `tokens` each: HORIZON · tokens · t_round ·
    (1/τ(α) − 1/τ(α + Δ))."""
    shorter = 1 / efficiency(acceptance, length) - 1 / efficiency(acceptance + change, length)
    return HORIZON * tokens * round_seconds * shorter


class ChatCost:
    """How much longer rounds of one kind take while an update runs. All lines of a pair share it, because an
    update of one line slows the answers of all."""

    def __init__(self) -> None:
        self.running = False  # whether an update runs; of several, until the first one ends
        self.round_seconds: float | None = None  # running means over the drafting rounds
        self.draft_length: float | None = None
        self._quiet: defaultdict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=50))
        self._met: defaultdict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=50))

    def note(self, seconds: float, key: tuple[int, int]) -> None:
        """Note a round of the kind `key`, (draft length, proposed tokens). Called in every round of a chat,
        it takes about a microsecond."""
        (self._met if self.running else self._quiet)[key].append(seconds)
        length = key[0]
        if length and self.round_seconds is not None and self.draft_length is not None:
            self.round_seconds += 0.05 * (seconds - self.round_seconds)
            self.draft_length += 0.05 * (length - self.draft_length)
        elif length:
            self.round_seconds, self.draft_length = seconds, float(length)

    def measure(self) -> tuple[float | None, int]:
        """(relative change of a round's time: 0.1 is 10 %, None for too few rounds; rounds beside an
        update)."""
        met = [(key, list(values)) for key, values in list(self._met.items())]
        ratios = [
            (len(values), fmean(values) / fmean(quiet))
            for key, values in met
            if len(values) >= 3 and len(quiet := list(self._quiet.get(key, ()))) >= 3
        ]
        rounds = sum(len(values) for _, values in met)
        weight = sum(count for count, _ in ratios)
        return (sum(count * ratio for count, ratio in ratios) / weight - 1 if weight else None), rounds
