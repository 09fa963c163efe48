"""Greedy answers are those of `transformers`, id for id: every method, many architectures, four tokenizer
families, edge cases.

A pairwise selection; `lab.equality.equality` has the whole matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.equality.equality import CASES, Laboratory, all_pairs, equality_matrix
from lab.equality.tiny import ARCHITECTURES, FAMILIES
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.decoding.methods import METHODS
from omnidemo.models.transformers_runner import TransformersRunner

# Rotary positions, plain and scaled, sliding, learned and ALiBi ones; norms of heads; both runners.
SHAPES = ("llama", "llama 3.1", "qwen3 yarn", "gemma3", "gpt2", "phi", "bloom")
# The shape of a model has nothing to do with how its tokenizer cuts words: each meets two families.
OTHERS = [family for family in FAMILIES if family != "byte-level"]
MODELS = [(shape, "byte-level") for shape in SHAPES]
MODELS += [(shape, OTHERS[number % len(OTHERS)]) for number, shape in enumerate(SHAPES)]
ROWS = [
    (*model.split(" · "), method, case)
    for model, method, case in all_pairs([" · ".join(one) for one in MODELS], tuple(METHODS), tuple(CASES))
]


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    yield Laboratory(tmp_path_factory.mktemp("equality"))


@pytest.mark.parametrize(("shape", "family", "method", "case"), ROWS, ids=["-".join(row) for row in ROWS])
def test_greedy_ids_are_those_of_transformers(
    laboratory: Laboratory, shape: str, family: str, method: str, case: str
) -> None:
    row = laboratory.row(shape, family, method, case)
    assert row.equal, row.note  # every method can serve every pair of these


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.drafts])
def test_drafts_were_accepted_rejected_and_ended_answers(laboratory: Laboratory, method: str) -> None:
    rows = [laboratory.row(*row) for row in ROWS if row[2] == method]
    # How many are rejected is a matter of rounding: random weights have near-ties, which processors decide
    # differently.
    assert sum(row.accepted for row in rows) > 10 and sum(row.rejected for row in rows) >= 5
    assert sum(row.ended_by_draft for row in rows) > 0


def test_the_answers_vary(laboratory: Laboratory) -> None:
    answers = {laboratory.answer(shape, family, "text") for shape, family in MODELS}
    assert len(answers) > len(MODELS) // 2
    assert sum(len(set(answer)) > 4 for answer in answers) > len(answers) // 2


def test_the_cases_are_what_they_say(laboratory: Laboratory) -> None:
    pair = laboratory.pair("llama", "byte-level", "sentence-piece", False)
    for shape in ("llama", "llama 3.1", "qwen3 yarn"):
        assert isinstance(
            laboratory.pair(shape, "byte-level", "sentence-piece", False).target.runner, FusedLlama
        )
    assert isinstance(
        laboratory.pair("gemma3", "byte-level", "sentence-piece", False).target.runner, TransformersRunner
    )
    assert laboratory.prompt("llama", "byte-level", "empty prompt") == ()
    assert laboratory.prompt("llama", "byte-level", "begin token") == (pair.target.tokenizer.bos_token_id,)
    assert (
        len(laboratory.prompt("llama", "byte-level", "prompt beyond the drafter's window"))
        > 2 * pair.drafter.context
    )
    several = laboratory.pair("llama", "byte-level", "sentence-piece", True).target.vocabulary.roles["end"]
    assert len(several) == 2
    short, long = (laboratory.answer("llama", "byte-level", case) for case in ("several ends", "text"))
    assert short == long[: len(short)] and len(short) < len(long) and short[-1] == several[1]
    penalised = [laboratory.answer(shape, "byte-level", "repetition penalty") for shape in SHAPES]
    assert penalised != [laboratory.answer(shape, "byte-level", "text") for shape in SHAPES]


def test_a_wrong_answer_is_found(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = laboratory.answer("gpt2", "byte-level", "text")
    monkeypatch.setattr(laboratory, "answer", lambda *which: (*answer[:3], answer[3] + 1, *answer[4:]))
    row = laboratory.compare("gpt2", "byte-level", "ngram-exact", "text")
    assert row.equal is False and "at 3" in row.note and "near-tie" not in row.note
    monkeypatch.setattr(laboratory, "answer", lambda *which: answer[:5])
    assert "instead of 5" in laboratory.compare("gpt2", "byte-level", "ngram-exact", "text").note


def test_the_matrix_makes_its_own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    rows = list(equality_matrix(["opt"], ["word-piece"], ["ngram-merge"], ["text", "one token"]))
    assert [(row.architecture, row.family, row.case) for row in rows] == [
        ("opt", "word-piece", case) for case in ("text", "one token")
    ]
    assert all(row.equal for row in rows)
    assert len(ARCHITECTURES) >= 20
