"""`python -m lab ways`: what each further way would bring, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.drafters.ceilings import WAYS, Prices, Simulation
from lab.drafters.corpus import few, vocabulary_of
from lab.drafters.guesses import guess, load_drafter
from lab.drafters.shards import Recorded, read_shards
from lab.drafters.spelling import Spelling
from lab.ways.candidates import WIDTH, Candidates, candidates
from lab.ways.way_rounds import LONGEST, MOST_ROWS, Rounds, Spent, chain, full, likeliest
from lab.ways.windows import window_table
from omnidemo.serving.measuring.report_tables import markdown_table

TOLERANCES = (0.5, 0.3, 0.1, 0.03)
DRAFT = 4  # tokens of a draft that the drafter writes alone
FIXED, POLICY = "the best chain", "policy"  # what others are held against
HEADS = ("way", "draft", "tokens a round", "× plain", "change", "variation")
Drawn = tuple[str, list[Spent]]  # what was drafted, and what each answer took


def tables(
    drafter: str, name: str, target: str, shards: Path, most: int, prices: Prices, windows: Sequence[int],
    behind: int, report: Callable[[str], None],
) -> None:  # fmt: skip
    """Report the tables of a target's greedy answers and of its drawn ones: at most so many of each set."""
    vocabulary = vocabulary_of(target)
    spelling, ends = Spelling(vocabulary, vocabulary_of(drafter)), vocabulary.roles["end"]
    model = load_drafter(drafter)
    answers = list(few(read_shards(shards, name), most))
    for manner, kind in (("greedy", False), ("drawn", True)):
        own = [one for one in answers if (one.temperature > 0) == kind]
        found = [one for answer in own if (one := candidates(model, answer, spelling)) is not None]
        if not found:
            continue
        drawn = dict(ways(found, prices)) | dict(_today(model, own, spelling, prices, ends))
        tokens = sum(len(one.place) for one in found)
        report(f"\n{name}, {len(found)} {manner} answers, {tokens:,} tokens\n\n{way_table(drawn, prices)}")
        report(f"\nChance that one of so many candidates is accepted\n\n{bound_table(found)}")
    if windows:
        seen = window_table(model, answers, spelling, windows, behind)
        report(f"\nA drafter that sees the newest tokens alone, behind {behind:,} of other texts\n\n{seen}")


def ways(found: Sequence[Candidates], prices: Prices) -> Iterator[tuple[str, Drawn]]:
    """Where a way has a size, that of which these answers take the least."""
    rounds, lengths = Rounds(prices), range(1, LONGEST + 1)

    def each(run: Callable[..., Spent], *given: Any) -> list[Spent]:
        return [run(one, *given) for one in found]

    yield "a chain of 4", ("4", each(rounds.of_tree, chain(4)))
    yield FIXED, _least((f"{k}", each(rounds.of_tree, chain(k))) for k in lengths)
    yield "a block in one step", _least((f"{k}", each(rounds.of_tree, chain(k), 1)) for k in lengths)
    for width in range(2, WIDTH + 1):
        yield (
            f"{width} candidates of the first token",
            _least(
                (f"{width} × {k}", each(rounds.of_tree, chain(k, width)))
                for k in lengths
                if k * width < MOST_ROWS
            ),
        )
        yield f"{width} candidates of every token", _least(
            (f"{width}^{k}", each(rounds.of_tree, tree))
            for k, tree in ((k, full(k, width)) for k in range(1, 4)) if len(tree) < MOST_ROWS
        )  # fmt: skip
    trees = list(likeliest(found, MOST_ROWS - 1))
    named = [f"{len(tree)}" for tree in trees]
    yield (
        "the likeliest tree, its nodes",
        _least((name, each(rounds.of_tree, tree)) for name, tree in zip(named, trees, strict=True)),
    )
    yield (
        "the same, a step a level",
        _least(
            (name, each(rounds.of_tree, tree, max(map(len, tree))))
            for name, tree in zip(named, trees, strict=True)
        ),
    )
    for cores, where in ((None, "a core of its own"), (2, "the same two cores")):
        yield f"overlap, {where}", _least((f"{k}", each(rounds.overlapped, k, cores)) for k in lengths)
    yield POLICY, ("", list(rounds.adaptive(found, 1)))
    for width in range(2, WIDTH + 1):
        yield f"{POLICY}, {width} candidates", ("", list(rounds.adaptive(found, width)))
    for least in TOLERANCES:
        yield (
            f"judged, from {least:g} of the likeliest on",
            _least((f"{k}", each(rounds.judged, k, least)) for k in lengths),
        )


def _least(tried: Iterable[Drawn]) -> Drawn:
    return min(tried, key=lambda one: sum(spent.milliseconds for spent in one[1]))


def _today(
    model: Any, answers: Sequence[Recorded], spelling: Spelling, prices: Prices, ends: Sequence[int]
) -> Iterator[tuple[str, Drawn]]:
    """The ways of `ceilings`: copies, and an oracle."""
    found = [one for answer in answers if (one := guess(model, answer, spelling)) is not None]
    for way in WAYS:
        sets: dict[str, Simulation] = {}
        spent = list[Spent]()
        for one in found:
            sums = sets.setdefault(one.answer.set, Simulation(prices, way)).sums
            rounds, before = sums.rounds, sums.milliseconds
            sets[one.answer.set].answer(one, ends)
            spent.append(Spent(len(one.right), sums.rounds - rounds, sums.milliseconds - before))
        yield f"ceilings: {way}", ("", spent)


def way_table(drawn: Mapping[str, Drawn], prices: Prices) -> str:
    """Change: of an answer's tokens a second beside the best chain, beside `policy` for those of its kind;
    the mean over answers ± its standard error."""
    lines, plain = list[list[str]](), prices.of_rows(1)[1]
    for way, (draft, spent) in drawn.items():
        base = drawn[POLICY if way.startswith(POLICY) else FIXED][1]
        changes = [
            before.milliseconds / after.milliseconds - 1 for before, after in zip(base, spent, strict=True)
        ]
        error = np.std(changes, ddof=1) / len(changes) ** 0.5 if len(changes) > 1 else np.nan
        tokens, rounds = sum(one.tokens for one in spent), sum(one.rounds for one in spent)
        lines.append(
            [
                way, draft, f"{tokens / rounds:.2f}",
                f"{plain * tokens / sum(one.milliseconds for one in spent):.3f}",
                f"{100 * np.mean(changes):+.1f} ± {100 * error:.1f} %" if spent is not base else "",
                f"{variation / tokens:.3f}" if (variation := sum(one.variation for one in spent)) else "",
            ]
        )  # fmt: skip
    return markdown_table(HEADS, lines)


def bound_table(found: Sequence[Candidates]) -> str:
    """The last line is of tokens: how often one of so many drafts of `DRAFT` tokens is right to its end,
    where they differ in the first token and each goes on with the likeliest."""
    means = np.concatenate([one.bounds for one in found]).mean(0).reshape(3, WIDTH)
    named = ("at most, of drawn ones", "of the likeliest", "with a seed", f"{DRAFT} tokens of a draft")
    windows = np.concatenate([_windows(one.place, DRAFT) for one in found])
    on = (windows[:, 1:] == 1).all(1)
    drafts = [
        float((on & (windows[:, 0] >= 1) & (windows[:, 0] <= most)).mean()) for most in range(1, WIDTH + 1)
    ]
    heads = ["candidates", *map(str, range(1, WIDTH + 1))]
    lines = zip(named, [*means.tolist(), drafts], strict=True)
    return markdown_table(heads, [[name, *(f"{one:.3f}" for one in row)] for name, row in lines])


def _windows(place: np.ndarray, length: int) -> np.ndarray:
    """[places, length]; none of an answer that is shorter."""
    if len(place) < length:
        return np.zeros((0, length), int)
    return np.lib.stride_tricks.sliding_window_view(place, length)
