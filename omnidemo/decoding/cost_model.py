"""The cost model of drafting, kept over all requests of a pair: calibrated acceptance, and the measured times
of rounds."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from omnidemo.copying.copier import CopyChances
from omnidemo.copying.copy_times import CopyTimes
from omnidemo.decoding.calibration import EDGES, Calibration

# For each of the newest target tokens: how many drafter tokens spell it, and the probability with which it
# would have been accepted.
ReplayedAcceptance = Sequence[tuple[int, float]]

# decay per round of the tokens and seconds of all rounds, and from how many tokens on these say anything
FADE, ENOUGH_TOKENS = 0.995, 64.0
RECENT = 0.975  # decay per drafting round of its tokens and seconds: a memory of 40 rounds
# plain rounds between two replays or tries while drafting loses; more where those are expensive (SPEND)
FIRST_WAIT, LONGEST_WAIT = 24, 96
TRY = 6  # drafting rounds of a try: drafts made while drafting loses, to see whether it would win again
SPEND = 0.01  # the fraction of plain decoding's time that replays and tries may take
MOST_SLOTS = 8  # longest draft that a replay considers
PROMISE = 1.05  # replayed speedup, at the best of several lengths, above which a try is made
# plain probe rounds in a row: a small target computes them in one call, and a single one among drafts takes
# longer
STRETCH = 8
MIN_SPREAD = 5  # of draft lengths, below which no line is fitted to their times
# bounds of t_1, in median times of a drafter token; its row of the verification may cost as much as itself
MIN_SLOPE, MAX_SLOPE = 0.5, 2.2
STRETCHES = 5  # newest blocks of plain probe rounds that count
FITTED_EVERY = 8  # drafts
TIMES = 15  # newest times of each kind, of which the median is used, so that one slow round changes nothing


@dataclass(slots=True)
class PlainBlock:
    """The mean of some plain rounds in a row, and (drafter tokens, seconds) of the rounds with a draft just
    before or after them; none where those were too few."""

    mean: float
    beside: Sequence[tuple[int, float]] = ()


def _newest() -> deque[float]:
    return deque(maxlen=TIMES)


class CostModel:
    """Calibrated acceptance and measured times of rounds, over all requests of a pair.

    A round of d drafter tokens is taken to last t_0 + d·t_1 seconds, fitted to medians of the newest times of
    each d: t_1 is what one more token costs both models. A plain round lasts t_plain, a median of means: the
    first one of a stretch takes longer than the others.
    """

    def __init__(self) -> None:
        # of a `StopRule`, by the calibrations so far; updated in place
        self.segments = np.zeros((len(EDGES) + 1, 5))
        self.segments[1:, 0] = EDGES
        # by the drafter's own probability of a slot
        self.acceptance = Calibration(lines=self.segments[:, 1:3])
        self.head = Calibration()  # by the head's
        # Of the slot after an accepted one, by the drafter's probability of the accepted one.
        self.next_acceptance = Calibration(prior=0.6, lines=self.segments[:, 3:])
        self.copies = CopyChances()
        self.rounds = 0
        self.forget_times()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.acceptance.lines = self.segments[:, 1:3]  # views of one array, which a pickle does not know
        self.next_acceptance.lines = self.segments[:, 3:]

    def forget_times(self) -> None:
        """Forget all times, because passes are computed in another way from now on."""
        self.speculating = True
        self.wait, self.left, self.tries, self.refused = FIRST_WAIT, 0, 0, 0
        self.lost = 0.0  # seconds lost in the tries since the last `rest`
        self.rounds_since_plain = 0  # rounds since the last block of plain ones
        self.pause = 0  # rounds until the next replay, where the last one had too few tokens
        self.drafts = 0  # rounds with one
        self._fair = True  # drafting has not seemed to lose yet
        # Of drafting rounds, old ones fading; `_begun`: seconds by which the first drafts of answers lasted
        # longer.
        self._tokens = self._drafted = self._proposed = self._weight = self._begun = 0.0
        self._times: defaultdict[int, deque[float]] = defaultdict(_newest)  # by number of drafter tokens
        self._medians: dict[int, tuple[float, int]] = {}  # of those, with how many there are
        self._new: set[int] = set()  # of which there are times that the medians do not know
        self._each: deque[float] = deque(maxlen=TIMES)
        self._plain: deque[PlainBlock] = deque(maxlen=STRETCHES)  # of `STRETCH` rounds each
        self._newest: list[float] = []  # of plain rounds since
        # (drafter tokens, seconds) of the newest rounds with a draft
        self._recent: deque[tuple[int, float]] = deque(maxlen=STRETCH)
        self.first_seconds = self.draft_seconds = 0.0  # t_0 and t_1
        self.plain_seconds: float | None = None
        self.copy_times = CopyTimes()
        self._all_tokens = self._all_seconds = 0.0  # of all rounds, old ones fading
        # t_plain as it was at the newest draft, so that both sides of `speedup` are of one time
        self._plain_then: float | None = None

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
    def _seconds(self) -> float:
        """Seconds that the remembered rounds would take at today's fitted times."""
        return self._weight * self.first_seconds + self._drafted * self.draft_seconds + self._begun

    @property
    def doubts(self) -> bool:
        """Whether the cost of drafts is unknown and has to be measured again."""
        return not self._each

    def reconsider(self) -> None:
        """Note that drafting seems to lose. The first time only the measurement starts again, because the
        first rounds of a process are slow; the second time drafting stops. Plain rounds are then timed anew,
        because the machine's pace may have changed."""
        if self._fair:
            self._fair, self.drafts = False, 0
            self.doubt()
            return
        self.speculating, self.left, self.tries = False, self.wait, 0
        self._plain.clear()
        self._newest = []
        self.doubt()

    def doubt(self) -> None:
        """Forget the times of drafts, so that the next try measures them: a slow spell of the machine must
        not decide for long. The tokens they gained so far keep the weight of one try."""
        for times in (self._times, self._medians, self._new, self._each):
            times.clear()
        keep = min(1.0, TRY / self._weight) if self._weight else 1.0
        self._tokens, self._drafted, self._proposed = (
            keep * self._tokens,
            keep * self._drafted,
            keep * self._proposed,
        )
        self._weight, self._begun = keep * self._weight, keep * self._begun

    def renew(self) -> None:
        """The drafter has changed: where drafting loses, the next replay is made at once, if plain decoding
        has been timed."""
        self.wait, self.left, self.pause = FIRST_WAIT, max(0, STRETCH - self.plain_rounds), 0

    def promises(self, seen: ReplayedAcceptance) -> bool:
        """Whether drafts of some fixed length would have been faster than plain decoding on these tokens."""
        plain = self._plain_then or self.plain_seconds or 0.0
        drafter_tokens, accept = np.array(seen).T
        slot_seconds = self.draft_seconds * max(float(drafter_tokens.mean()), self._waste)
        # P(all slots of a draft are accepted), by where it begins; mean tokens of a round
        all_accepted, tokens = accept, 1.0
        for length in range(1, min(MOST_SLOTS, len(seen)) + 1):
            tokens += float(all_accepted.mean())
            if tokens * plain > PROMISE * (self.first_seconds + length * slot_seconds):
                return True
            all_accepted = all_accepted[:-1] * accept[length:]
        return False

    def rest(self, spent: float) -> None:
        """Decode plainly for a while: twice as many rounds as the last time, up to LONGEST_WAIT, or so many
        that the `spent` seconds are at most SPEND of them, up to ten times that."""
        self.wait = min(LONGEST_WAIT, 2 * self.wait)
        needed = spent / (SPEND * self.plain_seconds) if self.plain_seconds else 0.0
        self.left, self.tries, self.lost = max(self.wait, min(int(needed), 10 * LONGEST_WAIT)), 0, 0.0

    def plain_beside(self, rounds: Sequence[tuple[int, float]]) -> float | None:
        """Seconds that a plain round would have taken at the time of these rounds with a draft (drafter
        tokens, seconds), to show on the page. The machine may have been faster or slower when the last plain
        rounds were timed, so each block of those is scaled by the drafts next to it."""
        plain = self._paced
        return plain * self._pace(rounds) if plain and rounds else self.plain_seconds

    @property
    def gain(self) -> float | None:
        """`speedup` with plain rounds scaled to the machine's pace during the drafts, to show on the page."""
        plain = self._paced
        return self._tokens / self._seconds * plain if plain and self._seconds > 0 else self.speedup

    @property
    def _paced(self) -> float | None:
        """t_plain at a pace of the machine at which drafting rounds last as long as the fit expects."""
        paces = [(one.mean, self._pace(one.beside)) for one in self._plain if one.beside]
        found = [mean / pace for mean, pace in paces if pace]
        return min(median(found), self.first_seconds + self.draft_seconds) if found else None

    def _pace(self, rounds: Sequence[tuple[int, float]]) -> float:
        """Measured seconds divided by expected ones, the median over the rounds; 0 where nothing is expected
        yet."""
        expected = [self.first_seconds + drafted * self.draft_seconds for drafted, _ in rounds]
        return (
            median(seconds / each for (_, seconds), each in zip(rounds, expected, strict=True))
            if min(expected) > 0.0
            else 0.0
        )

    @property
    def token_seconds(self) -> float:
        """Seconds of a token at the best of the speeds, which is what one more accepted token saves; 0 while
        nothing is known."""
        drafting = self._seconds / self._tokens if self._tokens > 0 else math.inf
        mixed = self._all_seconds / self._all_tokens if self._all_tokens >= ENOUGH_TOKENS else math.inf
        best = min(drafting, mixed, self.plain_seconds or math.inf)
        return best if math.isfinite(best) else 0.0

    @property
    def draft_gain(self) -> float:
        """Seconds that a drafting round saves, measured by the newest ones, against a plain round; 0 while
        drafting loses or nothing is known."""
        if not self.speculating or not self._weight or self.plain_seconds is None:
            return 0.0
        more = self._tokens / self._weight - 1.0
        return max(0.0, more * self.token_seconds - (self._seconds / self._weight - self.plain_seconds))

    @property
    def slot_seconds(self) -> float:
        """Seconds of one more slot, including drafter tokens that are drawn and discarded."""
        return self.draft_seconds * self._waste

    @property
    def _waste(self) -> float:
        """Drafter tokens per slot, including those that are drawn and discarded."""
        return max(1.0, self._drafted / self._proposed if self._proposed else 1.0)

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        """Take the judged slots of a draft: the drafter's probabilities of each slot's tokens (none where it
        did not draw them), and the probability with which each slot was accepted."""
        before = 0.0  # the drafter's probability of the slot before; 0: there is none, or it is not known
        for probs, accepted in zip(draft_probs, accept_probs, strict=False):
            if before:
                self.next_acceptance.learn(before, accepted)
            before = math.prod(probs) if probs else 0.0
            if before:
                self.acceptance.learn(before, accepted)

    def begin(self, drafted: int, draft_seconds: float) -> None:
        """Note the seconds of an answer's first draft, which also reads the prompt: this counts as a cost of
        drafting."""
        if drafted and self._weight:
            self._begun += max(0.0, draft_seconds - drafted * self.draft_seconds)

    def time(
        self, budget: int, drafted: int, proposed: int, tokens: int, draft_seconds: float, seconds: float
    ) -> None:
        """Note a round: its budget, counts of tokens, and the seconds of its draft and of all of it.
        Proposals without a drafter token were copied."""
        self.rounds += 1
        self._all_tokens, self._all_seconds = (
            FADE * self._all_tokens + tokens,
            FADE * self._all_seconds + seconds,
        )
        self.copy_times.note(0 if drafted else proposed, seconds)
        if budget == 0:
            self._newest.append(seconds)
            if len(self._newest) == STRETCH:
                self._plain.append(
                    PlainBlock(
                        sum(self._newest) / STRETCH,
                        tuple(self._recent) if len(self._recent) == STRETCH else (),
                    )
                )
                self._recent.clear()
                self._newest = []
            self._update_plain_seconds()
            return
        if not drafted:
            return
        self.drafts, self._plain_then = self.drafts + 1, self.plain_seconds
        if not self.speculating and self.plain_seconds:
            self.lost += seconds - tokens * self.plain_seconds
        # the first round of a try also reads what was written meanwhile
        if self.speculating or self.tries > 1:
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
        spread = squares - total * x * x
        slope = (products - total * x * y) / spread if spread >= MIN_SPREAD else 0.0
        # A busy machine bends the line, so the slope is kept between MIN_SLOPE and MAX_SLOPE times what
        # drafting alone takes per token.
        each = median(self._each)
        self.draft_seconds = min(max(slope, MIN_SLOPE * each), MAX_SLOPE * each)
        self.first_seconds = max(0.0, y - self.draft_seconds * x)
        self._update_plain_seconds()

    def _update_plain_seconds(self) -> None:
        """Update t_plain. A plain round does less than one with a draft of one token, so that round's seconds
        are an upper bound, which keeps a burst of load out of the few plain times."""
        if self.plain_rounds:
            plain, shortest = (
                median([one.mean for one in self._plain] or self._newest),
                self.first_seconds + self.draft_seconds,
            )
            self.plain_seconds = min(plain, shortest) if shortest > 0 else plain
