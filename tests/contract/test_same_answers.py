"""The same seed gives the same answer on the reference and on a fast backend: ids, counts, colours, and
probabilities but for rounding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.methods import METHODS
from tests.contract.conftest import PAIRS
from tests.contract.sides import STORY, SUM, TEXTS, WINDOW, Sides, answer

HEATS = (0.0, 0.7, 1.0)
POLICIES: list[dict[str, Any]] = [{"draft_length": length} for length in (0, 1, 4, 8)] + [
    {"draft_policy": "confidence"}
]


def policies(name: str, method: str, temperature: float) -> list[tuple[int, dict[str, Any]]]:
    """Each rule with its number. Passes of the trained models take long: there each method meets every rule
    and every temperature, and each temperature every rule. The small pairs meet every rule at every
    temperature."""
    if method == "autoregressive":
        return [(0, POLICIES[0])]
    if name != "trained":
        return list(enumerate(POLICIES))
    first = list(METHODS).index(method) + 2 * HEATS.index(temperature)
    return [(place % len(POLICIES), POLICIES[place % len(POLICIES)]) for place in (first, first + 1)]


@pytest.mark.parametrize("temperature", HEATS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PAIRS)
def test_every_method_says_the_same(
    pairs: Callable[[str], Sides], name: str, method: str, temperature: float
) -> None:
    sides = pairs(name)
    if not sides.serve(method):
        pytest.skip(f"{method} does not serve this pair, on either backend")
    for place, policy in policies(name, method, temperature):
        made = sides.ask(
            TEXTS[place % len(TEXTS)],
            method=method,
            temperature=temperature,
            seed=place,
            max_new_tokens=14,
            **policy,
        )
        assert made.method == method and (len(made.token_ids) == 14 or made.finish_reason == "end")
        if policy == {"draft_length": 0} or method == "autoregressive":
            assert {token.source for one in made.rounds for token in one.tokens} == {"plain"}
        if "draft_length" in policy:
            assert max(one.draft_length for one in made.rounds) <= policy["draft_length"]


def test_what_is_left_out_of_the_bundled_pair_meets_in_pairs(trained: Sides) -> None:
    drafting, places = (
        [name for name in METHODS if METHODS[name].drafts and trained.serve(name)],
        range(len(POLICIES)),
    )
    ran = [
        (method, heat, place)
        for method in drafting
        for heat in HEATS
        for place, _ in policies("trained", method, heat)
    ]
    assert {(method, heat) for method, heat, _ in ran} == set(itertools.product(drafting, HEATS))
    assert {(method, place) for method, _, place in ran} == set(itertools.product(drafting, places))
    assert {(heat, place) for _, heat, place in ran} == set(itertools.product(HEATS, places))


@pytest.mark.parametrize("method", METHODS)
def test_no_method_is_left_out(pairs: Callable[[str], Sides], method: str) -> None:
    assert any(pairs(name).serve(method) for name in PAIRS)


def test_pairs_differ_in_what_is_accepted(pairs: Callable[[str], Sides]) -> None:
    """So that the comparisons are of rounds in which all is accepted, some, and none; with n-grams and
    without."""
    rounds = [
        one
        for name in PAIRS
        for text in TEXTS
        for one in answer(pairs(name).fast, text, temperature=1.0, seed=1).rounds
    ]
    assert any(one.accepted == one.proposed > 2 for one in rounds) and any(
        0 < one.accepted < one.proposed for one in rounds
    )
    assert any(one.accepted == 0 < one.proposed for one in rounds) and any(one.ngram_hits for one in rounds)
    assert {token.source for one in rounds for token in one.tokens} >= {
        "direct",
        "ngram",
        "corrected",
        "bonus",
    }


@pytest.mark.parametrize("policy", ["cost", "head"])
def test_rules_that_go_by_prices_or_a_head(sides: Sides, policy: str) -> None:
    """By prices each side has its own, so greedy ids are compared, which no draft may change."""
    plain = sides.plain(STORY, method="autoregressive", max_new_tokens=40)
    for pair in sides.both:
        for _ in range(2):
            assert answer(pair, STORY, draft_policy=policy, max_new_tokens=40).token_ids == plain.token_ids
    if policy == "head":
        sides.ask(SUM, draft_policy=policy, temperature=0.7, seed=4)


@pytest.mark.parametrize("row", [0.01, 0.2, 0.6])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_at_the_same_prices_both_sides_draft_alike(sides: Sides, row: float, temperature: float) -> None:
    """Also where one of them has computed rounds ahead."""
    for pair in sides.both:
        pair.forget("default")
    for text in (SUM, STORY, SUM):
        for pair in sides.both:
            pair.prices.list.become(CostTable.linear(1.0, row, 0.05, origin="measured", at=1.0))
        sides.ask(text, draft_policy="cost", temperature=temperature, seed=4, max_new_tokens=60)


FILTERS: list[dict[str, Any]] = [
    {"repetition_penalty": 1.3}, {"top_k": 5}, {"top_p": 0.8}, {"min_p": 0.1},
    {"top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1},
    {"top_p": 0.95, "min_p": 0.02, "repetition_penalty": 0.9}, {"top_k": 1},
    {"repetition_penalty": 1.4, "penalty_scope": "answer"},
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [(kind, one) for kind in ("small", "trained") for one in FILTERS if kind == "small" or len(one) > 1],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_requests_that_ask_for_more_than_a_temperature(
    pairs: Callable[[str], Sides], kind: str, method: str, options: dict[str, Any]
) -> None:
    """Of the small pairs one, the other one for the next method and for the next options, where both can."""
    turn = (list(METHODS).index(method) + FILTERS.index(options)) % 2
    small = ("twins", "strangers", "twins")[turn : turn + 2]
    served = [pairs(name) for name in (("trained",) if kind == "trained" else small)]
    served = [sides for sides in served if sides.serve(method)]
    if not served:
        pytest.skip(f"{method} does not serve such a pair, on either backend")
    for temperature in (0.0, 0.2, 0.9) if method == "ngram-exact" else (0.9,):
        served[0].ask(WINDOW, method=method, temperature=temperature, seed=2, max_new_tokens=12, **options)
