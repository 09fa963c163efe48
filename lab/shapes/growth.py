"""How the time of a round grows: with the prompt, the answer, the vocabulary and the cache of n-grams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from lab.shapes.scripted import compounds_only, fill, invented, one_word
from omnidemo.core.config import Settings
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.prompt_files import make_writable
from omnidemo.serving.measuring.report_tables import Percentiles, Stage, group_by, recorded
from omnidemo.serving.pair_loading import build_measured_pair
from omnidemo.ui.figures import charts, layout

METHOD = "ngram-exact"
TITLES = {"prompt": "prompt, tokens", "answer": "answer, tokens"}
TITLES |= {"vocabulary": "target's vocabulary, tokens", "ngrams": "n-grams in the cache"}
PROMPT, DRAFTER = 16, 8_000  # tokens of a prompt that is not the question; of the invented drafters


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is tried. answer: tokens of an answer that is not the question."""

    prompts: Sequence[int] = (16, 64, 256, 512, 1024, 1536, 2048)
    answers: Sequence[int] = (16, 64, 256, 512, 1024)
    vocabularies: Sequence[int] = (8_192, 16_384, 32_768, 65_536, 131_072)
    ngrams: Sequence[int] = (0, 1_000, 10_000, 50_000, 100_000, 200_000)
    answer: int = 64
    repeats: int = 5
    draft_length: int = 4


QUICK = Sizes((16, 32), (8, 16), (600, 1_000), (0, 50), answer=12, repeats=1)


@dataclass(frozen=True, slots=True)
class Point:
    """Milliseconds of a round at one size: the median with the 10th and the 90th of a hundred, and medians of
    its parts. host: what is neither the drafter's nor the target's stage, the pair's own work between two
    rounds included. The first round of an answer, which reads the drafter's prompt, does not count."""

    question: str
    size: int
    method: str
    rounds: int
    round_ms: float | None
    low_ms: float | None
    high_ms: float | None
    draft_ms: float | None
    verify_ms: float | None
    host_ms: float | None


# milliseconds from one round to the next: all, its draft, the target's pass, the others
Timed = tuple[float, float, float, float]


def run(settings: Settings, sizes: Sizes, out: Path) -> Iterator[Point | Stage]:
    """Measure, and yield each point, and how far it is. `growth.csv` has each point at once, `growth.html`
    the plots at the end.

    Prompts and answers are tried on the settings' pair, as long as its window allows, the others on invented
    pairs. All answers are scripted, so that as many drafted tokens are accepted at any size. ModelError or
    ValueError before anything is measured.
    """
    make_writable(out / "growth.csv")
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    window = min(pair.target.context, pair.drafter.context)
    longest = window - sizes.answer
    prompts = sorted({min(size, longest) for size in sizes.prompts})
    answers = sorted({min(size, window - PROMPT) for size in sizes.answers})
    total = 2 * (len(prompts) + len(answers) + len(sizes.vocabularies)) + len(sizes.ngrams)
    points: list[Point] = []
    for event in recorded(_points(pair, sizes, prompts, answers), out / "growth.csv", Point, "sizes", total):
        points += [event] if isinstance(event, Point) else []
        yield event
    plot(points, out / "growth.html")


def _points(pair: Pair, sizes: Sizes, prompts: Sequence[int], answers: Sequence[int]) -> Iterator[Point]:
    made, ids = one_word(pair)
    yield from _question(
        "prompt", {size: (made, _prompt(ids, size), sizes.answer) for size in prompts}, sizes
    )
    yield from _question("answer", {size: (made, _prompt(ids, PROMPT), size) for size in answers}, sizes)
    for size in sizes.vocabularies:  # one at a time: the largest take memory
        made, ids = one_word(invented(size, min(DRAFTER, size // 2)))
        yield from _question("vocabulary", {size: (made, _prompt(ids, PROMPT), sizes.answer)}, sizes)
    largest = max(sizes.ngrams)
    tokens = min(DRAFTER, 256 + max(32, largest))
    made = compounds_only(invented(tokens + largest + 1, tokens, width=32, cache_size=largest))
    for size in sizes.ngrams:
        fill(made, size)
        yield from _question(
            "ngrams", {size: (made, _prompt(range(256, 300), PROMPT), sizes.answer)}, sizes, (METHOD,)
        )


def _prompt(ids: Sequence[int], size: int) -> list[int]:
    return [ids[place % len(ids)] for place in range(size)]


Try = tuple[Pair, Sequence[int], int]  # (pair, prompt, longest answer)


def _question(
    question: str, tries: Mapping[int, Try], sizes: Sizes, methods: Sequence[str] = (BASELINE, METHOD)
) -> Iterator[Point]:
    """Every size and method, one after another, several times over, after a warm-up."""
    found: dict[tuple[int, str], list[Timed]] = {(size, method): [] for size in tries for method in methods}
    for repeat in range(sizes.repeats + 1):
        for (size, method), timed in found.items():
            pair, prompt, answer = tries[size]
            rounds = _answer(
                pair, prompt, answer if repeat else min(answer, PROMPT), method, sizes.draft_length
            )
            timed += rounds if repeat else []
    for (size, method), timed in found.items():
        whole, draft, verify, host = (Percentiles.of(one[place] for one in timed) for place in range(4))
        parts = (draft.median, verify.median, host.median)
        yield Point(question, size, method, len(timed), whole.median, whole.low, whole.high, *parts)


def _answer(pair: Pair, prompt: Sequence[int], count: int, method: str, draft_length: int) -> list[Timed]:
    timed: list[Timed] = []
    stream = pair.stream(
        prompt, method=method, max_new_tokens=count, draft_length=draft_length, learn=False, reuse=False
    )
    began = perf_counter()
    for done in stream:
        ended = perf_counter()
        whole, draft, verify = (
            1e3 * (ended - began),
            1e3 * done.seconds["draft"],
            1e3 * done.seconds["verify"],
        )
        timed.append((whole, draft, verify, whole - draft - verify))
        began = ended
    return timed[1:]


def _by_method(points: Sequence[Point], question: str) -> dict[str, list[Point]]:
    return group_by((point for point in points if point.question == question), lambda point: point.method)


def plot(points: Sequence[Point], path: Path) -> None:
    """A figure for each question: rounds and their parts over the size."""
    figures = {}
    for question, title in TITLES.items():
        series = []
        for method, mine in _by_method(points, question).items():
            xs = [point.size for point in mine]
            series.append(charts.Series(f"{method}: round", xs, [point.round_ms for point in mine]))
            parts = {
                "draft": [p.draft_ms for p in mine],
                "target's pass": [p.verify_ms for p in mine],
                "host": [p.host_ms for p in mine],
            }
            series += [
                charts.Series(f"{method}: {name}", xs, values, dashed=True)
                for name, values in parts.items()
                if any(values)
            ]
        if series:
            figures[f"Milliseconds per round over the {title}"] = charts.lines(
                series, xtitle=title, ytitle="ms per round", base=0.0
            )
    layout.page(path, figures)


def summary(points: Sequence[Point]) -> list[list[str]]:
    """Lines for a table: question, method, and the first and last sizes with their times."""
    lines = []
    for question in TITLES:
        for method, mine in _by_method(points, question).items():
            first, last = mine[0], mine[-1]
            names = ("round_ms", "draft_ms", "verify_ms", "host_ms")
            cells = [f"{getattr(first, name) or 0:.2f} → {getattr(last, name) or 0:.2f}" for name in names]
            lines.append([TITLES[question], f"{first.size:,} → {last.size:,}", method, *cells])
    return lines
