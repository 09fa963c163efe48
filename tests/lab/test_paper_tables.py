"""The tables of papers on speculative decoding, by hand from a few rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lab.races.paper_tables import HEADINGS, Standing, fitting, group_of, standings, tables
from omnidemo.core.metrics import Lengths, measure
from omnidemo.core.records import Generation, Round
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.serving.comparison import Comparison, Question
from tests.unit.test_questions import ROUNDS, made


def result(method: str, rounds: list[Round], speedup: float | None, **more: Any) -> Comparison:
    figures: Mapping[str, float | None] = measure(rounds, 0.05)
    answer = Generation((), "x", tuple(rounds), figures, "end", method, 3)
    return replace(Comparison(0, "x", method, answer, True, speedup), **more)


def test_a_standing_pools_rounds_and_names_losses() -> None:
    results = [result("speculative", ROUNDS, 1.5), result("speculative", [made(0, 4)], 0.8, identical=False)]
    (one,) = standings(results)
    assert one.lengths == Lengths.of([*ROUNDS, made(0, 4)]) and one.slower == (1, 2) and one.same == (1, 2)
    assert one.speedup.median == pytest.approx(1.15) and one.times["first token ms"].median == pytest.approx(
        50.0
    )
    line = dict(zip(HEADINGS, one.cells(), strict=True))
    assert (
        line["τ"] == "2.40"
        and line["accepted"] == "39%"
        and line["slower"] == "1/2"
        and line["same ids"] == "1/2"
    )
    # it is no loss to itself
    assert Standing.of(BASELINE, [result(BASELINE, [made(0, 0)], 1.0)]).slower == (0, 0)


def test_tables_of_each_temperature_and_category() -> None:
    several = [
        result(
            method,
            ROUNDS if method != BASELINE else [made(0, 0)],
            speedup,
            temperature=temperature,
            category=category,
        )
        for temperature in (0.0, 1.0)
        for category in ("writing", "coding", "rag")
        for method, speedup in ((BASELINE, 1.0), ("ngram-exact", 1.25))
    ]
    found = {title: (headings, lines) for title, headings, lines in tables(several)}
    assert list(found)[:4] == [
        "Methods, temperature 0",
        "Accepted at each position where all before it was, temperature 0",
        "Share of passes that wrote so many tokens, temperature 0",
        "Median speedup (τ) by category, temperature 0",
    ]
    assert len(found) == 8 and all(
        len(line) == len(headings) for headings, lines in found.values() for line in lines
    )
    headings, lines = found["Median speedup (τ) by category, temperature 1"]
    assert headings == ["method", "mt_bench", "rag"] and lines == [
        [BASELINE, "1.00", "1.00"],
        ["ngram-exact", *["1.25 (2.75)"] * 2],
    ]
    assert found["Share of passes that wrote so many tokens, temperature 0"][1] == [
        ["ngram-exact", "25%", "25%", "25%", "0%", "25%"]
    ]
    assert found["Accepted at each position where all before it was, temperature 0"][1] == [
        ["ngram-exact", "75%", "67%", "50%", "100%"]
    ]


def test_long_copies_are_taken_together_at_the_end_of_the_tables() -> None:
    found = {
        title: (headings, lines)
        for title, headings, lines in tables([result("copy", [made(30, 30), made(0, 1)], 2.0)])
    }
    headings, ((_, *cells),) = found["Share of passes that wrote so many tokens, temperature 0"]
    assert headings[-1] == "13+" and cells[0] == cells[-1] == "50%" and len(headings) == 14


def test_categories_of_mt_bench_are_one_and_questions_that_do_not_fit_are_left_out() -> None:
    assert [group_of(one) for one in ("writing", "math", "rag", "")] == ["mt_bench", "mt_bench", "rag", ""]

    def ids(text: str) -> list[int]:
        if len(text) > 9:
            raise TooLong("too long")
        return [1]

    short = Question(("short", "and long " * 9))
    assert fitting(SimpleNamespace(prompt_ids=ids), [Question(("long " * 9,)), short]) == [short]  # type: ignore[arg-type]
