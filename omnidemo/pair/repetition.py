"""An answer written again as it was, with guessing and then without, again and again, to measure how much
faster guessing made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from omnidemo.core.config import GenerationConfig
from omnidemo.core.metrics import Speed
from omnidemo.core.records import Generation, Round
from omnidemo.decoding.engine import decode
from omnidemo.decoding.methods import BASELINE
from omnidemo.decoding.state import DecodingState
from omnidemo.pair.answer_plan import Beginning, plan_answer
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.pair import Pair

# passes over both lanes; more of them where these are short, until they have taken so long together
PASSES, ENOUGH_SECONDS = 3, 3.0
# most passes, and seconds after which no other one begins, but for the second
MOST_PASSES, MOST_SECONDS = 9, 20.0
# Ids of a prompt that are read at once: whoever asks something meanwhile waits no longer than for that. Each
# lane begins with so many, as an answer begins with its prompt.
READ = 32
# Tokens that are written again: as many as the answer wrote in so many seconds, so that three passes over
# both lanes take about 30
LONGEST, SHORTEST, LANE_SECONDS = 256, 32, 5.0


class Repetition:
    """Both lanes of an answer. `prompt`: its ids. `stopped` is looked at between any two rounds, and nobody
    waits for longer than one."""

    def __init__(
        self, pair: Pair, before: Beginning, prompt: list[int], asked: GenerationConfig, answer: Generation,
        stopped: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._pair, self._before, self._prompt, self._asked, self._stopped = (
            pair, before, prompt, asked, stopped,
        )  # fmt: skip
        spent = sum(done.seconds["total"] for done in answer.rounds)
        pace = int(LANE_SECONDS * len(answer.token_ids) / spent) if spent else LONGEST
        self._tokens = min(len(answer.token_ids), max(SHORTEST, min(LONGEST, pace)))

    def measure(self, clock: Callable[[], float]) -> Speed | None:
        """The speed by several passes; None where it was stopped, or where what drafted then is not there any
        more."""
        began, passes = clock(), list[tuple[float, list[Round], list[Round]]]()
        with self._pair._lock:
            states = [
                self._pair._conversations.fresh(
                    self._pair._line(self._asked.domain).runner, self._asked.domain
                )
                for _ in range(2)
            ]
            self._pair._conversations.running.append(states[0])  # training waits, as for an answer
        try:
            if not all(self._read(state) for state in states):
                return None
            while len(passes) < 2 or self._goes_on(len(passes), clock() - began):
                made = self._both(states, first=len(passes) % 2)
                if made is None:
                    return None
                rates = [
                    sum(len(done.tokens) for done in lane) / sum(done.seconds["total"] for done in lane)
                    for lane in made
                ]
                passes.append((rates[0] / rates[1], *made))
        finally:
            with self._pair._lock:
                running = self._pair._conversations.running
                running[:] = [state for state in running if state is not states[0]]
        ratios = [ratio for ratio, *_ in passes]
        _, guessed, plain = min(passes, key=lambda each: abs(each[0] - median(ratios)))
        tokens = sum(len(done.tokens) for done in guessed)
        return Speed(median(ratios), min(ratios), max(ratios), tokens, tuple(guessed), tuple(plain))

    @staticmethod
    def _goes_on(passes: int, seconds: float) -> bool:
        """Whether another pass begins after two: an odd number, so that one of them is the median."""
        more = passes < PASSES or (passes < MOST_PASSES and seconds < ENOUGH_SECONDS) or passes % 2 == 0
        return more and seconds < MOST_SECONDS

    def _read(self, state: DecodingState) -> bool:
        """Have the target read the prompt in small parts; whether nobody has asked for anything meanwhile."""
        for end in range(READ, len(self._prompt), READ):
            if self._stopped():
                return False
            with self._pair._lock:
                state.target.start(self._prompt[:end])
        return not self._stopped()

    def _both(self, states: list[DecodingState], first: int) -> tuple[list[Round], list[Round]] | None:
        """The rounds with guessing and without, beginning with lane `first`. Each lane is written as a whole:
        where they alternated every few tokens, plain rounds would take longer, for the drafter has just
        used the processor's cache, and drafts less long."""
        made: tuple[list[Round], list[Round]] = ([], [])
        for place in (first, 1 - first):
            for done in self._lane(states[place], guess=place == 0):
                if self._stopped():
                    return None
                made[place].append(done)
        return made if all(made) and not self._stopped() else None

    def _lane(self, state: DecodingState, guess: bool) -> Iterator[Round]:
        """The rounds of one lane, none where another version drafts now."""
        pair, before = self._pair, self._before
        how = {"max_new_tokens": self._tokens} | ({} if guess else {"method": BASELINE})
        asked = self._asked.model_copy(update=how)
        shared = pair._memory.of(asked.domain)
        ngrams = shared.as_of(before.clock) if guess else shared
        with pair._lock:
            state.target.start(self._prompt[: max(1, len(self._prompt) - READ)])
            state.start(self._prompt)
            line = before.line(pair, asked.domain)
            if line is None:
                return
            if guess:
                # an answer's drafter begins with the question unread
                state.drafter.read_again(line.runner.new_cache())
            plan = plan_answer(pair, line, asked, state, len(self._prompt), ngrams, before.earlier)
        steps = decode(state, plan)
        while True:
            with pair._lock:
                done = next(steps, None)
                if done is not None and guess:
                    line.note(done, len(state.target.ids))
                    if asked.learn and ngrams is not shared:
                        remember(ngrams, done)
            if done is None:
                return
            yield done
