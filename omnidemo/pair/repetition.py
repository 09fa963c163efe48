"""Writes an answer again several times, with guessing and without, to measure how much faster guessing
was."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate

from omnidemo.core.config import GenerationConfig
from omnidemo.core.metrics import Speed
from omnidemo.core.records import Generation, Round
from omnidemo.decoding.engine import decode
from omnidemo.decoding.methods import BASELINE
from omnidemo.decoding.state import DecodingState
from omnidemo.pair.answer_plan import Beginning, plan_answer
from omnidemo.pair.drafting_line import timed
from omnidemo.pair.in_turns import Budget, LaneStopped, median_run, passes_of, spread
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.pair import Pair

SECONDS = 30.0  # a page waits no longer
BUDGET = Budget(passes=3, most=25, enough=3.0, seconds=SECONDS, least=2)  # two at least, for a spread
STEADY = 1.1  # a page that waits wants passes until the range of their median is no wider than this
READ = 32  # ids of a prompt that are read at once, while a new request waits; each lane begins with so many
LANES = ("guessed", "plain")
# times tokens a step: nothing is so fast, because a step with guesses does all that a plain one does
ABOVE = 1.05
LEARNED, BUSY = "small model learned meanwhile", "the machine is busy"
SHORTEST = 32  # tokens that are written again, however long that takes


class NoFigure(Exception):
    """Why an answer's speed is unknown, in four words."""


class Repetition:
    """Both lanes of an answer. `prompt`: its ids. `stopped` is called between any two rounds. `watched`:
    whether somebody waits for the figure, which is then made steady."""

    def __init__(
        self, pair: Pair, before: Beginning, prompt: list[int], asked: GenerationConfig, answer: Generation,
        stopped: Callable[[], bool], watched: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._pair, self._before, self._prompt, self._asked = pair, before, prompt, asked
        self._stopped, self._watched = stopped, watched
        took = [timed(done, len(prompt)) for done in answer.rounds[1:]]
        with pair._lock:
            plain = pair.prices.list.plain_beside(took)
        self._tokens = tokens_within(SECONDS / BUDGET.passes, answer, plain)
        self._before_it = before_middle(answer.rounds, self._tokens)
        self._begun = [token.id for done in self._before_it for token in done.tokens]
        self._start = [*prompt, *self._begun]
        self._per_step = len(answer.token_ids) / len(answer.rounds)
        self._speedup = partial(speedup, self._per_step)

    def measure(self, clock: Callable[[], float]) -> Speed | None:
        """The speed by several passes; None where it was stopped. Raises NoFigure."""
        with self._pair._lock:
            states = [
                self._pair._conversations.fresh(
                    self._pair._line(self._asked.domain).runner, self._asked.domain
                )
                for _ in range(2)
            ]
            self._pair._conversations.running.append(states[0])  # training waits, as for an answer
        lanes = {
            name: partial(self._written, state, guess)
            for name, state, guess in zip(LANES, states, (True, False), strict=True)
        }
        try:
            for state in states:
                self._read(state)
            passes = passes_of(lanes, BUDGET, clock, self._unsteady)
        except LaneStopped:
            return None
        finally:
            with self._pair._lock:
                self._pair._conversations.end(states[0])
        shown = median_run(passes, self._speedup)
        tokens = sum(len(done.tokens) for done in shown["guessed"])
        found = [self._speedup(shown), *spread([*map(self._speedup, passes)])]
        speed, low, high = told(self._per_step, found)
        lanes_of = tuple(shown["guessed"]), tuple(shown["plain"])
        return Speed(speed, low, high, len(self._begun), tokens, *lanes_of)

    def _unsteady(self, made: Sequence[Mapping[str, Sequence[Round]]]) -> bool:
        if not made or not self._watched():
            return False
        low, high = spread([*map(self._speedup, made)])
        return high > STEADY * low

    def _read(self, state: DecodingState) -> None:
        """Read what stands before the stretch in small parts. Raises LaneStopped."""
        for end in range(READ, len(self._start), READ):
            if self._stopped():
                raise LaneStopped
            with self._pair._lock:
                state.target.start(self._start[:end])

    def _written(self, state: DecodingState, guess: bool) -> list[Round]:
        """The rounds of one lane, written as a whole. Lanes that alternated every few tokens would make plain
        rounds slower and drafts faster, because the drafter has just used the processor's cache. Raises
        LaneStopped and NoFigure."""
        pair, before, start = self._pair, self._before, self._start
        how = {"max_new_tokens": self._tokens} | ({} if guess else {"method": BASELINE})
        asked = self._asked.model_copy(update=how)
        shared = pair._memory.of(asked.domain)
        ngrams = shared.as_of(before.clock) if guess else shared
        with pair._lock:
            state.target.start(start[: max(1, len(start) - READ)])
            state.start(start)
            line = before.line(pair, asked.domain)
            if line is None:
                raise NoFigure(LEARNED)
            if guess and not self._begun:
                # as in the answer, the drafter has not read the question
                state.drafter.read_again(line.runner.new_cache())
            elif guess and state.drafter.can_draft:
                state.drafter.logits()  # reads what stands before
            if ngrams is not shared and asked.learn:
                for earlier in self._before_it:
                    remember(ngrams, earlier)
            plan = plan_answer(
                pair, line, asked, state, len(self._prompt), ngrams, before.earlier, begun=self._begun
            )
        steps = decode(state, plan)
        made = list[Round]()
        while not self._stopped():
            with pair._lock:
                done = next(steps, None)
                if done is None:
                    return made
                made.append(done)
                if guess:
                    line.note(done, len(state.target.ids))
                    if asked.learn and ngrams is not shared:
                        remember(ngrams, done)
        raise LaneStopped


def tokens_within(seconds: float, answer: Generation, plain: float | None = None) -> int:
    """How many of an answer's tokens both lanes write in so many seconds, at least SHORTEST. `plain`: seconds
    of a plain token by the cost table, or else those of a round of the answer, which are an upper bound."""
    count = len(answer.token_ids)
    spent = sum(done.seconds["total"] for done in answer.rounds)
    if not spent:
        return count
    both = spent / count + (plain or spent / len(answer.rounds))
    return min(count, max(SHORTEST, int(seconds / both)))


def before_middle(rounds: Sequence[Round], tokens: int) -> Sequence[Round]:
    """The rounds before the stretch of so many tokens in the middle of an answer."""
    written = [*accumulate(len(done.tokens) for done in rounds)]
    return rounds[: bisect_right(written, (written[-1] - tokens) / 2)]


def speedup(per_step: float, made: Mapping[str, Sequence[Round]]) -> float:
    """Of an answer of so many tokens a step, by a pass of both lanes."""
    step, plain = (sum(done.seconds["total"] for done in made[lane]) / len(made[lane]) for lane in LANES)
    return per_step * plain / step


def told(per_step: float, found: Sequence[float]) -> list[float]:
    """A speed and its range, none above tokens a step. Raises NoFigure where the speed is, by more than
    clocks differ."""
    if found[0] > ABOVE * per_step:
        raise NoFigure(BUSY)
    return [min(value, per_step) for value in found]
