"""A comparison in the tables of papers on speculative decoding: lengths, costs, speed, same ids, slower
answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lab.measured_rows import Percentiles
from omnidemo.core.metrics import Lengths
from omnidemo.core.records import Round
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.serving.comparison import Comparison, Question
from omnidemo.serving.measuring.report_tables import group_by

# Spec-Bench (2401.07851) reports these eight categories of MT-Bench as one.
MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
Table = tuple[str, list[str], list[list[str]]]  # title, headings, lines
# heading → metric, factor, format; cells are medians over the answers, with the 10th and 90th percentile
TIMES: Mapping[str, tuple[str, float, str]] = {
    "c": ("cost_ratio", 1.0, ".3f"),
    "first token ms": ("time_to_first_token", 1e3, ".0f"),
    "ms/token": ("time_per_output_token", 1e3, ".2f"),
    "tokens/s": ("tokens_per_second", 1.0, ".1f"),
}
HEADINGS = ["method", "answers", "τ", "accepted", "α", *TIMES, "speedup", "slower", "same ids", "TV"]
MOST_POSITIONS = 12  # columns of a table; a copied draft may be longer
NOTE = (
    "τ: mean accepted length (MAT), tokens per pass of the target with its own one; accepted: of all proposed"
    " tokens; α: of those that were judged; c: a drafter's step ÷ a pass of the target. Times and speedup,"
    " which is tokens/s over autoregressive's on the same prompt: median (10th–90th percentile) of the"
    " answers; slower: answers that took longer than autoregressive's; same ids: as autoregressive's; TV: of"
    " a method that is not lossless, mean total variation of each token's law to the target's."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """One method at one temperature over all its answers. `lengths`: pooled over their rounds. `slower`:
    (answers with a speedup below 1, answers with a speedup). `same`: (answers with the baseline's ids,
    compared answers). `variation`: the mean over all tokens."""

    method: str
    answers: int
    lengths: Lengths
    times: Mapping[str, Percentiles]  # as TIMES
    speedup: Percentiles
    slower: tuple[int, int]
    same: tuple[int, int]
    variation: float | None

    @classmethod
    def of(cls, method: str, results: Sequence[Comparison]) -> Standing:
        speedups = [done.speedup for done in results if done.speedup is not None and done.method != BASELINE]
        checked = [done.identical for done in results if done.identical is not None]
        return cls(
            method,
            len(results),
            Lengths.of(chain.from_iterable(done.generation.rounds for done in results)),
            {name: Percentiles.of(_scaled(results, key, factor)) for name, (key, factor, _) in TIMES.items()},
            Percentiles.of(speedups),
            (sum(value < 1 for value in speedups), len(speedups)),
            (sum(checked), len(checked)),
            _variation([one for done in results for one in done.generation.rounds]),
        )

    def cells(self) -> list[str]:
        """Under HEADINGS."""
        times = [found.text(TIMES[name][2]) for name, found in self.times.items()]
        lengths = [_number(self.lengths.mean), _share(self.lengths.pooled), _share(self.lengths.alpha)]
        counts = [_of(*self.slower), _of(*self.same), _share(self.variation)]
        return [self.method, str(self.answers), *lengths, *times, self.speedup.text(), *counts]


def standings(results: Iterable[Comparison]) -> list[Standing]:
    """The methods at one temperature, in the order of their first result."""
    return [
        Standing.of(method, group) for method, group in group_by(results, lambda done: done.method).items()
    ]


def tables(results: Sequence[Comparison]) -> Iterator[Table]:
    """For each temperature: the methods, acceptance by position, tokens by pass, and speedup and τ of each
    category, if there are categories."""
    for temperature, group in group_by(results, lambda done: done.temperature).items():
        at = "the target's own sampling" if temperature is None else f"temperature {temperature:g}"
        found = standings(group)
        yield f"Methods, {at}", HEADINGS, [one.cells() for one in found]
        drafted = [one for one in found if one.lengths.proposed]
        if drafted:
            count = min(MOST_POSITIONS, max(len(one.lengths.judged) for one in drafted))
            positions = [
                [one.method, *_padded([_share(value) for value in one.lengths.by_position], count)]
                for one in drafted
            ]
            yield (
                f"Accepted at each position where all before it was, {at}",
                ["method", *map(str, range(1, count + 1))],
                positions,
            )
            count = min(MOST_POSITIONS + 1, max(len(one.lengths.rounds) for one in drafted) - 1)
            shares = [[one.method, *_padded(_histogram(one.lengths, count), count)] for one in drafted]
            numbers = [*map(str, range(1, count)), f"{count}" if count <= MOST_POSITIONS else f"{count}+"]
            yield f"Share of passes that wrote so many tokens, {at}", ["method", *numbers], shares
        yield from _by_category(group, at)


def _by_category(group: Sequence[Comparison], at: str) -> Iterator[Table]:
    """Median speedup and τ of each method in each category of Spec-Bench."""
    parts = group_by(group, lambda done: group_of(done.category))
    if len(parts) > 1:
        methods = list(dict.fromkeys(done.method for done in group))
        named = {name or "none": {one.method: one for one in standings(own)} for name, own in parts.items()}
        lines = [[method, *(_pair(one.get(method)) for one in named.values())] for method in methods]
        yield f"Median speedup (τ) by category, {at}", ["method", *named], lines


def _pair(one: Standing | None) -> str:
    if one is None:
        return "–"
    mean = _number(one.lengths.mean)
    return mean if one.method == BASELINE else f"{_number(one.speedup.median)} ({mean})"


def _histogram(lengths: Lengths, count: int) -> list[str]:
    """Shares of the rounds with 1 … `count` tokens; the last is of rounds with `count` or more."""
    total = sum(lengths.rounds)
    return [_share(part / total) for part in [*lengths.rounds[1:count], sum(lengths.rounds[count:])]]


def _scaled(results: Iterable[Comparison], key: str, factor: float) -> list[float | None]:
    values = [done.generation.metrics.get(key) for done in results]
    return [None if value is None else value * factor for value in values]


def _variation(rounds: Sequence[Round]) -> float | None:
    known = [one.variation for one in rounds if one.variation is not None]
    return sum(known) / sum(len(one.tokens) for one in rounds) if known else None


def _padded(cells: list[str], count: int) -> list[str]:
    return [*cells, *["–"] * count][:count]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _of(count: int, total: int) -> str:
    return f"{count}/{total}" if total else "–"


def group_of(category: str) -> str:
    """The group of categories under which Spec-Bench reports a question."""
    return "mt_bench" if category in MT_BENCH else category


def fitting(pair: Pair, found: Sequence[Question]) -> list[Question]:
    """The questions whose first turn fits the target's window."""

    def fits(question: Question) -> bool:
        try:
            return bool(pair.prompt_ids(question.turns[0]))
        except TooLong:
            return False

    return [question for question in found if fits(question)]
