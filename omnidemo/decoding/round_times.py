"""What rounds last and bring, measured over all requests: the arithmetic from which `cost_model.py` decides.

A plain round lasts t_plain seconds: the median over blocks of plain rounds in a row, without those close
behind a draft: they take up to a third longer, until the processor's cache has the target's weights again,
and decoding without a drafter has none of them. A round of d drafter tokens lasts t_0 + d·t_1 seconds: a line
through the medians of the newest times of each d, so t_1 is what one more token costs both models. Tokens and
seconds of drafting rounds are remembered with a decay. A round that copies has times of its own
(`CopyTimes`).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from omnidemo.copying.copy_times import CopyTimes

# For each of the newest target tokens: how many drafter tokens spell it, and the probability with which it
# would have been accepted.
ReplayedAcceptance = Sequence[tuple[int, float]]
# acceptance of drafts replayed on the newest tokens, and the seconds that it took
Look = Callable[[], tuple[ReplayedAcceptance, float]]
Timed = Sequence[tuple[int, float]]  # (drafter tokens, seconds) of rounds with a draft

# decay per round of the tokens and seconds of all rounds, and from how many tokens on these say anything
FADE, ENOUGH_TOKENS = 0.995, 64.0
RECENT = 0.975  # decay per drafting round of its tokens and seconds: a memory of 40 rounds
TRY = 6  # drafting rounds of a try
STRETCH = 8  # plain rounds in a row whose mean is taken: a small target computes them in one call
SETTLE = 24  # plain rounds after a draft that count only as long as there are no others
MOST_SLOTS = 8  # longest draft that a replay considers
PROMISE = 1.05  # replayed speedup, at the best of several lengths, above which a try is made
# plain rounds that a row of the verification is believed to take before plain rounds are timed
FIRST_ROW = 0.25
# The spread of draft lengths, by their squared distances from the mean, from which on the line through their
# times counts more than one through a plain round's and their mean.
BELIEF = 1.0
MIN_SLOPE = 0.5  # of t_1, in median times of a drafter token; at most it is one of them and a plain round
STRETCHES = 5  # newest blocks of plain probe rounds that count
FITTED_EVERY = 8  # drafts
TIMES = 15  # newest times of each kind, of which the median is used, so that one slow round changes nothing


@dataclass(slots=True)
class PlainBlock:
    """The mean of some plain rounds in a row, and the rounds with a draft just before or after them; none
    where those were too few."""

    mean: float
    beside: Timed = ()


def _newest() -> deque[float]:
    return deque(maxlen=TIMES)


class RoundTimes:
    """Measured times of rounds. It decides nothing."""

    def __init__(self) -> None:
        self.rounds = 0
        self.forget_times()

    def forget_times(self) -> None:
        """Forget all times, because passes are computed in another way from now on."""
        self.drafts = 0  # rounds with one
        # Of drafting rounds, old ones fading; `_begun`: seconds by which the first drafts of answers lasted
        # longer.
        self._tokens = self._drafted = self._proposed = self._weight = self._begun = 0.0
        self._times: defaultdict[int, deque[float]] = defaultdict(_newest)  # by number of drafter tokens
        self._medians: dict[int, tuple[float, int]] = {}  # of those, with how many there are
        self._new: set[int] = set()  # of which there are times that the medians do not know
        self._each: deque[float] = deque(maxlen=TIMES)  # seconds of drafting alone, by drafter token
        self._plain: deque[PlainBlock] = deque(maxlen=STRETCHES)  # of `STRETCH` rounds each
        self._newest: list[float] = []  # of plain rounds since
        self._in_a_row = 0  # plain rounds since the newest draft
        self._settled = False  # whether a plain round was far enough from a draft; then no others count
        self._recent: deque[tuple[int, float]] = deque(maxlen=STRETCH)  # the newest rounds with a draft
        self.first_seconds = self.draft_seconds = 0.0  # t_0 and t_1
        self.plain_seconds: float | None = None  # t_plain
        self.copy_times = CopyTimes()
        self._all_tokens = self._all_seconds = 0.0  # of all rounds, old ones fading
        # t_plain as it was at the newest draft, so that both sides of `speedup` are of one time
        self._plain_then: float | None = None

    def doubt(self) -> None:
        """Forget the times of drafts, so that the next ones measure them anew: a slow spell of the machine
        must not decide for long. The tokens that drafts gained so far keep the weight of one try."""
        for times in (self._times, self._medians, self._new, self._each):
            times.clear()
        keep = min(1.0, TRY / self._weight) if self._weight else 1.0
        self._tokens, self._drafted = keep * self._tokens, keep * self._drafted
        self._proposed, self._weight = keep * self._proposed, keep * self._weight
        self._begun = keep * self._begun

    def forget_plain(self) -> None:
        """Forget the times of plain rounds but what they came to."""
        self._plain.clear()
        self._newest = []

    @property
    def doubts(self) -> bool:
        """Whether the cost of drafts is unknown and has to be measured again."""
        return not self._each

    @property
    def length(self) -> float:
        """Drafter tokens of a drafting round, on average over the newest."""
        return self._drafted / self._weight if self._weight else 0.0

    @property
    def plain_rounds(self) -> int:
        return STRETCH * len(self._plain) + len(self._newest)

    @property
    def speedup(self) -> float | None:
        """Tokens per second of drafting rounds over those of plain ones, estimated from the newest drafts and
        plain rounds of that time."""
        plain = self._plain_then or self.plain_seconds
        return self._tokens / self._seconds * plain if plain is not None and self._seconds > 0 else None

    @property
    def token_seconds(self) -> float:
        """Seconds of a token at the best of the speeds, which is what one more accepted token saves; 0 while
        nothing is known."""
        drafting = self._seconds / self._tokens if self._tokens > 0 else math.inf
        mixed = self._all_seconds / self._all_tokens if self._all_tokens >= ENOUGH_TOKENS else math.inf
        best = min(drafting, mixed, self.plain_seconds or math.inf)
        return best if math.isfinite(best) else 0.0

    @property
    def slot_seconds(self) -> float:
        """Seconds of one more slot, including drafter tokens that are drawn and discarded."""
        return self.draft_seconds * self._waste

    def promises(self, replayed: ReplayedAcceptance) -> bool:
        """Whether drafts of some fixed length would have been faster than plain decoding on these tokens."""
        plain = self._plain_then or self.plain_seconds or 0.0
        drafter_tokens, accept = np.array(replayed).T
        slot_seconds = self.draft_seconds * max(float(drafter_tokens.mean()), self._waste)
        # P(all slots of a draft are accepted), by where it begins; mean tokens of a round
        all_accepted, tokens = accept, 1.0
        for length in range(1, min(MOST_SLOTS, len(replayed)) + 1):
            tokens += float(all_accepted.mean())
            if tokens * plain > PROMISE * (self.first_seconds + length * slot_seconds):
                return True
            all_accepted = all_accepted[:-1] * accept[length:]
        return False

    def plain_beside(self, rounds: Timed) -> float | None:
        """Seconds that a plain round would have taken at the time of these rounds with a draft, to show on
        the page. The machine may have been faster or slower when the last plain rounds were timed, so each
        block of those is scaled by the drafts next to it."""
        plain = self._paced
        return plain * self._pace(rounds) if plain and rounds else self.plain_seconds

    def begin(self, drafted: int, draft_seconds: float) -> None:
        """Note the seconds of an answer's first draft, which also reads the prompt: this counts as a cost of
        drafting."""
        if drafted and self._weight:
            self._begun += max(0.0, draft_seconds - drafted * self.draft_seconds)

    def _note(
        self,
        budget: int,
        drafted: int,
        proposed: int,
        tokens: int,
        draft_seconds: float,
        seconds: float,
        timed: bool,
    ) -> None:
        """Take a round as `CostModel.time` does. `timed`: whether its seconds are those of a usual draft."""
        self.rounds += 1
        self._all_tokens = FADE * self._all_tokens + tokens
        self._all_seconds = FADE * self._all_seconds + seconds
        self.copy_times.note(0 if drafted else proposed, seconds)
        if budget == 0:
            self._note_plain(seconds)
            return
        if not drafted:
            return
        self._in_a_row = 0
        self.drafts, self._plain_then = self.drafts + 1, self.plain_seconds
        if timed:
            self._times[drafted].append(seconds)
            self._recent.append((drafted, seconds))
            if len(self._recent) == STRETCH and self._plain and not self._plain[-1].beside:
                self._plain[-1].beside = tuple(self._recent)
            self._new.add(drafted)
            self._each.append(draft_seconds / drafted)
        if self._each and (self.drafts % FITTED_EVERY == 0 or len(self._each) <= TRY):
            self._fit()
        self._tokens, self._begun = RECENT * self._tokens + tokens, RECENT * self._begun
        self._drafted, self._weight = RECENT * self._drafted + drafted, RECENT * self._weight + 1.0
        self._proposed = RECENT * self._proposed + proposed

    def _note_plain(self, seconds: float) -> None:
        self._in_a_row += 1
        if self._in_a_row > SETTLE and not self._settled:
            self._settled = True
            self.forget_plain()
        elif self._in_a_row <= SETTLE and self._settled:
            return
        self._newest.append(seconds)
        if len(self._newest) == STRETCH:
            beside = tuple(self._recent) if len(self._recent) == STRETCH else ()
            self._plain.append(PlainBlock(sum(self._newest) / STRETCH, beside))
            self._recent.clear()
            self._newest = []
        self._update_plain_seconds()

    def _fit(self) -> None:
        """t_0 and t_1 by least squares over the medians, weighted by how many times there are."""
        for drafted in self._new:
            self._medians[drafted] = median(self._times[drafted]), len(self._times[drafted])
        self._new.clear()
        total = x = y = squares = products = 0.0
        for drafted, (seconds, weight) in self._medians.items():
            total, x, y = total + weight, x + weight * drafted, y + weight * seconds
            squares, products = squares + weight * drafted * drafted, products + weight * drafted * seconds
        x, y = x / total, y / total
        each = median(self._each)
        plain = self._timed_plain
        if plain is None:
            plain = max(0.0, y - each * x) / (1.0 + FIRST_ROW * x)
        spread = squares - total * x * x
        slope = (products - total * x * y + BELIEF * (y - plain) / x) / (spread + BELIEF)
        # A busy machine bends the line, so the slope stays within what is possible.
        self.draft_seconds = min(max(slope, MIN_SLOPE * each), each + plain)
        self.first_seconds = max(0.0, y - self.draft_seconds * x)
        self._update_plain_seconds()

    def _update_plain_seconds(self) -> None:
        """Update t_plain. A plain round does less than one with a draft of one token, so that round's seconds
        are an upper bound, which keeps a burst of load out of the few plain times."""
        if plain := self._timed_plain:
            shortest = self.first_seconds + self.draft_seconds
            self.plain_seconds = min(plain, shortest) if shortest > 0 else plain

    @property
    def _timed_plain(self) -> float | None:
        """The median of the plain rounds' seconds, by the newest blocks of them."""
        return median([block.mean for block in self._plain] or self._newest) if self.plain_rounds else None

    @property
    def _seconds(self) -> float:
        """Seconds that the remembered rounds would take at today's fitted times."""
        return self._weight * self.first_seconds + self._drafted * self.draft_seconds + self._begun

    @property
    def _waste(self) -> float:
        """Drafter tokens per slot, including those that are drawn and discarded."""
        return max(1.0, self._drafted / self._proposed if self._proposed else 1.0)

    @property
    def _paced(self) -> float | None:
        """t_plain at a pace of the machine at which drafting rounds last as long as the fit expects."""
        paces = [(block.mean, self._pace(block.beside)) for block in self._plain if block.beside]
        scaled = [mean / pace for mean, pace in paces if pace]
        return min(median(scaled), self.first_seconds + self.draft_seconds) if scaled else None

    def _pace(self, rounds: Timed) -> float:
        """Measured seconds divided by expected ones, the median over the rounds; 0 where nothing is expected
        yet."""
        expected = [self.first_seconds + drafted * self.draft_seconds for drafted, _ in rounds]
        if min(expected) <= 0.0:
            return 0.0
        return median(seconds / each for (_, seconds), each in zip(rounds, expected, strict=True))
