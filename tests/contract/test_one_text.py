"""One seed, one text: by plain decoding and every coupled method and policy, on both backends, before and
after learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidemo import load_pair
from omnidemo.decoding.methods import METHODS, fitting
from tests.contract.conftest import save
from tests.contract.sides import Sides

SEEDS = 35  # each sampling meets each policy, by each of four families of tokenizers
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 0.7},
    {"temperature": 1.3, "top_k": 5},
    {"temperature": 1.0, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.05},
    {"temperature": 0.8, "repetition_penalty": 1.3},
    {
        "temperature": 0.9,
        "top_k": 20,
        "top_p": 0.9,
        "min_p": 0.02,
        "repetition_penalty": 1.2,
        "penalty_scope": "answer",
    },
]
POLICIES: list[dict[str, Any]] = [
    {"draft_length": 4},
    {"draft_policy": "cost"},
    {"draft_length": 2},
    {"draft_policy": "confidence"},
    {"draft_length": 8},
]


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize(
    ("target", "drafter"),
    [
        ("byte-level", "sentence-piece"),
        ("sentence-piece", "byte-level"),
        ("unigram", "word-piece"),
        ("word-piece", "byte-level"),
    ],
)
def test_no_method_and_no_policy_changes_an_id(
    tmp_path: Path, target: str, drafter: str, backend: Any
) -> None:
    pair = load_pair(
        save(tmp_path / "target", target, 1), save(tmp_path / "drafter", drafter, 2), backend=backend
    )
    names = [name for name in fitting(pair.map) if METHODS[name].coupled and METHODS[name].drafts]
    texts = set()
    for seed in range(SEEDS):
        options: dict[str, Any] = {"seed": seed, "max_new_tokens": 16, **SAMPLINGS[seed % len(SAMPLINGS)]}
        plain = pair.generate("the small duck", method="autoregressive", **options)
        texts.add(plain.token_ids)
        for name in names if backend == "auto" else names[seed % len(names) :][:1]:
            made = pair.generate("the small duck", method=name, **options, **POLICIES[seed % len(POLICIES)])
            assert made.token_ids == plain.token_ids and made.text == plain.text, (seed, name)
    assert len(texts) > SEEDS * 0.9


@pytest.mark.parametrize("options", SAMPLINGS, ids=str)
def test_learning_changes_no_text(sides: Sides, options: dict[str, Any]) -> None:
    """The second of two equal calls is the first one, with n-grams that it has just learned, and with
    none."""
    for pair in sides.both:
        pair.clear_cache()
        asked: dict[str, Any] = {"seed": 12, "max_new_tokens": 40, **options}
        first, second = (pair.generate("Tell me a story.", method="auto", **asked) for _ in range(2))
        assert (
            first.token_ids == second.token_ids
            and pair.generate("Tell me a story.", **asked).token_ids == first.token_ids
        )


def test_a_text_goes_on_where_it_was_left(sides: Sides) -> None:
    options: dict[str, Any] = {
        "seed": 3,
        "temperature": 1.0,
        "penalty_scope": "answer",
        "repetition_penalty": 1.2,
    }
    for pair in sides.both:
        ids = pair.prompt_ids("Tell me a story.")
        whole = pair.generate(ids, max_new_tokens=24, **options).token_ids
        for cut in (1, 7, len(whole) - 1):
            rest = pair.generate(
                ids, max_new_tokens=24 - cut, begun=whole[:cut], method="autoregressive", **options
            )
            assert rest.token_ids == whole[cut:]
