"""Rounds at given prices, on answers where one can count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lab.drafters import scoring
from lab.drafters.ceilings import WAYS, Prices, simulate, times
from lab.drafters.corpus import vocabulary_of
from lab.drafters.guesses import Guesses, guess, load_drafter, trace_of
from lab.drafters.score import agreement_table, change_table, count_rounds, scores, speed_table
from lab.drafters.spelling import Spelling
from omnidemo.backends.batched_writer import WrittenAnswer

PRICES = Prices({1: 4.0, 2: 5.0, 4: 6.0}, step=0.1)


def guesses(
    ids: list[int], right: list[bool], sure: float, prompt: list[int] | None = None, temperature: float = 0.0
) -> Guesses:
    n = len(ids)
    hits = np.array(right)
    answer = WrittenAnswer("s", "0", temperature, "end", [1] if prompt is None else prompt, ids)
    return Guesses(answer, np.ones(n, np.int32), hits * 0.5, hits * 1.0, hits, np.full(n, sure))


def test_prices_between_and_beyond_known_rows() -> None:
    assert PRICES.of_rows(6) == pytest.approx([4.0, 4.0, 5.0, 5.5, 6.0, 6.5, 7.0])


def test_rounds_of_a_fixed_length() -> None:
    assert count_rounds([False] * 3, 4) == 3
    assert count_rounds([True] * 10, 4) == 2
    assert count_rounds([True, True, False, True], 1) == 3  # the guess, and one that the target writes


def test_a_drafter_that_is_always_right_and_one_that_never_is() -> None:
    ids = list(range(100, 400))
    found = simulate([guesses(ids, [True] * 300, 0.99)], PRICES, ())["s", False]
    assert found["copy"].tokens_a_round == 1 and found["copy"].speedup(4.0) == pytest.approx(1.0)
    # eight guesses and the target's own token
    assert found["drafter"].tokens_a_round == pytest.approx(9, abs=0.2)
    eight = PRICES.of_rows(9)[9] + 8 * 0.1
    assert found["drafter"].speedup(4.0) == pytest.approx(9 * 4.0 / eight, rel=0.03)
    wrong = simulate([guesses(ids, [False] * 300, 0.99)], PRICES, ())["s", False]
    assert wrong["oracle"].speedup(4.0) == wrong["copy"].speedup(4.0) == 1.0
    assert 0.9 < wrong["drafter"].speedup(4.0) < 1.0  # it is given up


def test_a_text_that_repeats_is_copied() -> None:
    ids = list(range(100, 130)) * 6
    found = simulate([guesses(ids, [False] * len(ids), 0.1)], PRICES, ())["s", False]
    assert found["copy"].tokens_a_round > 4
    assert found["oracle"].milliseconds <= found["copy"].milliseconds
    assert set(found) == set(WAYS)


def test_tables_hold_greedy_and_drawn_answers_apart() -> None:
    found = [
        guesses([5, 6, 7], [True, False, True], 0.5),
        guesses([5, 6, 8], [False] * 3, 0.5, temperature=0.2),
    ]
    assert scores(found)["s"].agreed == pytest.approx(1.0) and scores(found)["s"].greedy == 3
    assert agreement_table(found).splitlines()[2].startswith("| s | 2 | 6 | 1.000 | 0.167 |")
    greedy, drawn = (speed_table(found, PRICES, (), way) for way in (False, True))
    assert len(greedy.splitlines()) == len(drawn.splitlines()) == 4
    assert speed_table(found[:1], PRICES, (), True).count("\n") == 1  # there are none


def test_what_a_better_drafter_changes_is_told_with_its_error() -> None:
    ids = list(range(100, 160))
    bad, good = (
        [guesses(ids, [right] * 60, 0.9), guesses(ids, [right, not right] * 30, 0.9)]
        for right in (False, True)
    )
    spent = [times(some, PRICES, ()) for some in (bad, good)]
    assert sum(spent[0]) == pytest.approx(simulate(bad, PRICES, ())["s", False]["both"].milliseconds)
    lines = change_table(list(zip(bad, good, strict=True)), list(zip(*spent, strict=True))).splitlines()
    # of the first answer every guess has become right, of the second as many as have become wrong
    assert lines[2].startswith("| s | 2 | +0.250 ± 0.250 | +0.500 ± 0.500 | +")
    assert lines[3].startswith("| all | 2 | +0.250 ± 0.250 |") and len(lines) == 4
    alone = change_table(list(zip(bad, bad, strict=True))[:1], [(2.0, 1.0)]).splitlines()
    assert alone[2] == "| s | 1 | +0.000 ± nan | +0.000 ± nan | +1.000 ± nan |"


def test_a_guess_stands_at_its_token_also_behind_an_ngram(answers: list[WrittenAnswer]) -> None:
    answer = answers[0]
    spelling = Spelling(vocabulary_of("bundled/large"), vocabulary_of("bundled/drafter"))
    model = load_drafter("bundled/drafter")
    found, spelled = guess(model, answer, spelling), trace_of(answer, spelling)
    assert found is not None and spelled is not None
    trace = spelled[0]
    with torch.inference_mode():
        probs = model(torch.from_numpy(trace.drafter_ids.astype(np.int64))[None]).logits[0].softmax(-1)
    single = trace.lengths == 1
    assert single[np.flatnonzero(trace.lengths > 1)[0] :].any()  # one of them behind an n-gram
    assert found.sure[single] == pytest.approx(probs[trace.starts[single] - 1].max(-1).values.numpy())


def test_drafters_are_scored_each_alone_and_beside_the_first(
    answers: list[WrittenAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    said, here = list[str](), Path()
    monkeypatch.setattr(scoring, "read_answers", lambda *_: iter(answers))
    drafters = ["bundled/drafter", "bundled/drafter-4"]
    scoring.score_all(drafters, {"t": "bundled/large"}, here, here, 9, PRICES.rows, [0.1, 0.2], said.append)
    heads = [text.splitlines()[1] for text in said]
    assert [head.split(":")[0] for head in heads] == [
        "bundled/drafter for t", "greedy", "drawn", "bundled/drafter-4 for t", "greedy", "drawn",
        "bundled/drafter-4 beside bundled/drafter for t",
    ]  # fmt: skip
    assert said[-1].splitlines()[-1].startswith("| all | 3 | ")
    same = said[-1].splitlines()[-1].count("± 0.000")  # agreement, of three equal answers
    assert same >= 2
