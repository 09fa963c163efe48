"""The figures of papers on speculative decoding, by hand from a few rounds; Spec-Bench's file;
questions of two turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from omnidemo import load_pair
from omnidemo.core.metrics import Lengths, measure
from omnidemo.core.records import Round, Token
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import Question, compare
from omnidemo.serving.measuring.prompt_files import numbers, read_questions
from tests.support.models import save


def made(accepted: int, proposed: int, seconds: float = 0.03, drafted: int | None = None) -> Round:
    """A round of four seconds' parts: a third of it drafting, two thirds the target's pass."""
    tokens = tuple(
        Token(7, "x", "direct" if place < accepted else "corrected", 0.5) for place in range(accepted + 1)
    )
    lost = tuple(Token(8, "y", "direct", 0.1) for _ in range(proposed - accepted))
    split = {"draft": seconds / 3, "verify": seconds * 2 / 3, "settle": 0.0, "other": 0.0, "total": seconds}
    judged = min(accepted + 1, proposed)
    return Round(
        0,
        tokens,
        lost,
        proposed,
        proposed if drafted is None else drafted,
        proposed,
        accepted,
        judged,
        0,
        split,
    )


ROUNDS = [made(4, 4), made(0, 4), made(2, 4), made(1, 2)]


def test_lengths_are_counted_by_round_and_by_position() -> None:
    found = Lengths.of(ROUNDS)
    assert found.rounds == (0, 1, 1, 1, 0, 1)  # of 1, 2, 3 and 5 tokens, the target's own with them
    assert found.mean == (5 + 1 + 3 + 2) / 4 and str(found) == "1:1 2:1 3:1 5:1"
    # the last round's second proposal was judged and rejected
    assert found.judged == (4, 3, 2, 1) and found.accepted == (3, 2, 1, 1)
    assert found.by_position == [3 / 4, 2 / 3, 1 / 2, 1.0]
    assert found.pooled == 7 / 14 and found.alpha == 7 / 10


def test_nothing_has_no_lengths() -> None:
    nothing = Lengths.of([])
    assert (nothing.rounds, nothing.by_position) == (
        (),
        [],
    ) and nothing.mean is nothing.pooled is nothing.alpha is None
    plain = Lengths.of([made(0, 0), made(0, 0)])
    assert plain.rounds == (0, 2) and plain.mean == 1.0 and plain.pooled is None and str(plain) == "1:2"


def test_costs_of_an_answer() -> None:
    found = measure(ROUNDS, 0.2)
    assert found["seconds"] == pytest.approx(sum(one.seconds["total"] for one in ROUNDS))
    assert found["block_efficiency"] == Lengths.of(ROUNDS).mean
    # the five tokens of the first round belong to its own time
    assert found["time_per_output_token"] == pytest.approx((0.12 - 0.03) / 6)
    assert found["cost_ratio"] == pytest.approx((0.04 / 14) / (0.08 / 4))
    assert (
        measure(ROUNDS[:1], 0.2)["time_per_output_token"] is None
        and measure([made(0, 0)], 0.2)["cost_ratio"] is None
    )


# Spec-Bench's file
# --------------------------------------------------------------------------------------------------------

SPEC = [
    {"question_id": number, "category": category, "turns": turns}
    for number, (category, turns) in enumerate(
        [
            ("writing", ["Write.", "Shorter."]),
            ("math", ["1 + 1?", "And 2?"]),
            ("translation", ["Guten Tag"]),
            ("rag", ["Where?"]),
        ],
        81,
    )
]


def spec_file(folder: Path, *rows: object) -> Path:
    path = folder / "question.jsonl"
    path.write_text(
        "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8"
    )
    return path


def test_questions_are_read_with_their_turns(tmp_path: Path) -> None:
    found = read_questions(spec_file(tmp_path, *SPEC, {"prompt": "one turn"}))
    assert found[0] == Question(("Write.", "Shorter."), "writing") and found[-1] == Question(("one turn",))
    assert [one.category for one in found] == ["writing", "math", "translation", "rag", ""]


def test_a_limit_takes_questions_of_all_categories(tmp_path: Path) -> None:
    path = spec_file(tmp_path, *SPEC)
    assert [one.category for one in read_questions(path, 2)] == ["writing", "translation"]
    assert len(read_questions(path, 9)) == 4


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"turns": []}, "there is no list of turns"),
        ({"turns": "one"}, "there is no list of turns"),
        ({"turns": ["one", " "]}, "there is no text in one of the turns"),
        ({"turns": ["one"], "category": 3}, "the category is no text"),
        ({"question": "one"}, "there is no prompt and no list of turns"),
        ("[1", "this is not JSON"),
        ('{"turns": ["\\ud800"]}', "half a character"),
    ],
)
def test_a_line_that_is_no_question_is_refused_with_its_number(tmp_path: Path, row: object, why: str) -> None:
    with pytest.raises(ValueError) as error:
        read_questions(spec_file(tmp_path, SPEC[0], row))
    assert "line 2: " in str(error.value) and why in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "found"), [("0,1", [0.0, 1.0]), ("0.7", [0.7]), ("0, 0", [0.0])])
def test_temperatures_are_a_list(text: str, found: list[float]) -> None:
    assert numbers(text, "--temperature", float) == found


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--temperature is 'warm'; give numbers with commas"):
        numbers("warm", "--temperature", float)


# Two turns
# ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    root = tmp_path_factory.mktemp("arena")
    yield load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )


def test_a_second_turn_stands_behind_the_baselines_answer_for_all(pair: Pair) -> None:
    question = Question(("the small duck", "and the cat"), "writing")
    found = list(compare(pair, [question, "plain"], ["ngram-exact", BASELINE], max_new_tokens=12, runs=2))
    assert [(one.prompt_index, one.turn, one.run, one.category) for one in found[::2]] == [
        *(
            (0, 0, 0, "writing"),
            (0, 0, 1, "writing"),
            (0, 1, 0, "writing"),
            (0, 1, 1, "writing"),
            (1, 0, 0, ""),
            (1, 0, 1, ""),
        ),
    ]
    first, *_ = found
    chat = [
        {"role": "user", "content": "the small duck"},
        {"role": "assistant", "content": first.generation.text},
    ]
    alone = pair.generate(
        [*chat, {"role": "user", "content": "and the cat"}],
        method=BASELINE,
        max_new_tokens=12,
        temperature=0.0,
    )
    second = [one for one in found if one.turn == 1]
    assert {one.generation.token_ids for one in second} == {alone.token_ids} and {
        one.prompt for one in second
    } == {"and the cat"}
    assert all(one.identical for one in found)


def test_a_turn_that_does_not_fit_ends_its_question(pair: Pair) -> None:
    question = Question(("the small duck", "swims " * 400))
    found = list(compare(pair, [question, "the cat"], [BASELINE], max_new_tokens=4))
    assert [(one.prompt_index, one.turn) for one in found] == [(0, 0), (1, 0)]


def test_a_target_without_a_chat_template_is_asked_no_second_turn(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "target", replace(pair.target, chat=False))
    with pytest.raises(ValueError, match="has no chat template, so that it cannot be asked a second turn"):
        list(compare(pair, [Question(("one", "two"))], [BASELINE], max_new_tokens=4))
