"""What changes while an answer is written: adapters, n-grams, conversations that go on. It counts from the
next round on, on every backend, whatever had been made in advance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from omnidemo import Generation, Pair, Round
from tests.contract.sides import STORY, SUM, TEXTS, Sides, answer, facts
from tests.support.trained_pair.patterns import questions

HEATS = (0.0, 0.7, 1.0)
# with filters and a penalty
MANNER: dict[str, Any] = {"temperature": 0.5, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.2}
SAMPLINGS: list[dict[str, Any]] = [*({"temperature": heat} for heat in HEATS), MANNER]
by_sampling = pytest.mark.parametrize("sampling", SAMPLINGS, ids=[*map(str, HEATS), "manner"])


def adapter(pair: Pair, seed: int, scale: float) -> dict[str, torch.Tensor]:
    """Other weights for the drafter, the same for every pair of these models."""
    torch.manual_seed(seed)
    changed = {}
    for name, weight in sorted(pair.drafter.runner.weights().items()):
        if "mlp" in name:
            changed[name] = weight.cpu() * (1.0 + scale * torch.randn(weight.shape))
    assert changed
    return changed


def chances(made: Generation) -> list[float | None]:
    """What the drafter gave its guesses, right and wrong ones."""
    return [token.q for one in made.rounds for token in (*one.tokens, *one.discarded)]


@pytest.mark.parametrize(
    ("method", "sampling"),
    [
        *(("ngram-exact", one) for one in SAMPLINGS), ("token-intersection", {"temperature": 1.0}),
        ("token-intersection", MANNER),
        ("string-exact-match", {"temperature": 0.7}),
    ],
)  # fmt: skip
def test_an_adapter_that_is_published_in_mid_stream(
    sides: Sides, method: str, sampling: dict[str, Any]
) -> None:
    options: dict[str, Any] = {
        "method": method,
        "seed": 6,
        "max_new_tokens": 32,
        "domain": "swapped",
    } | sampling
    steady = answer(sides.reference, STORY, **options)

    def swap(pair: Pair, done: Round) -> None:
        if done.index in (2, 5):
            pair.publish(done.index, adapter(pair, done.index, 0.4), domain="swapped")

    made = sides.ask(STORY, swap, **options)
    assert made.adapter_version == 0 and facts(made)[1:6] == facts(steady)[1:6]
    assert chances(made) != chances(steady), "another drafter is sure of something else"
    assert made.token_ids == steady.token_ids
    after = sides.ask(STORY, **options)
    assert after.adapter_version == 5 and after.token_ids == steady.token_ids
    for pair in sides.both:
        pair.drop_domain("swapped")
    assert facts(sides.ask(STORY, **options)) == facts(steady)


@pytest.mark.parametrize(
    ("method", "sampling"),
    [
        *(("ngram-exact", one) for one in SAMPLINGS),
        ("ngram-merge", {"temperature": 0.7}),
        ("ngram-merge", MANNER),
    ],
)
def test_n_grams_that_are_learned_in_mid_stream(
    trained: Sides, method: str, sampling: dict[str, Any]
) -> None:
    for pair in trained.both:
        pair.clear_cache()
    made = [
        trained.ask(text, method=method, seed=4, learn=True, max_new_tokens=60, copying=False, **sampling)
        for text in questions("stories", 3)
    ]
    assert made[0].cache_entries == 0 < made[1].cache_entries <= made[2].cache_entries
    assert any(one.inserts for one in made[0].rounds)
    assert sum(one.ngram_hits for answers in made for one in answers.rounds) > 0
    assert [len(pair.ngrams) for pair in trained.both] == [len(trained.fast.ngrams)] * 2


@by_sampling
def test_n_grams_that_somebody_else_inserts_in_mid_stream(trained: Sides, sampling: dict[str, Any]) -> None:
    for pair in trained.both:
        pair.clear_cache()
    known = [
        insert for one in answer(trained.reference, STORY, max_new_tokens=60).rounds for insert in one.inserts
    ]
    assert known

    def insert(pair: Pair, done: Round) -> None:
        if done.index % 3 == 1:
            for target_id, drafter_ids in known[done.index // 3 :: 4]:
                pair.ngrams.insert(target_id, drafter_ids)

    made = trained.ask(STORY, insert, seed=3, max_new_tokens=50, **sampling)
    assert 0 < len(trained.fast.ngrams) == len(trained.reference.ngrams) and made.cache_entries == 0
    assert sampling["temperature"] or sum(one.ngram_hits for one in made.rounds) > 0


def test_everything_at_once(sides: Sides) -> None:
    """Weights, n-grams and other answers in between."""

    def change(pair: Pair, done: Round) -> None:
        if done.index % 5 == 2:
            pair.publish(done.index, adapter(pair, done.index, 0.2), domain="all")
        if done.index % 7 == 3:
            pair.clear_cache()
        if done.index % 3 == 0:
            answer(pair, SUM, temperature=0.5, seed=1, max_new_tokens=6, domain="all")

    for sampling in SAMPLINGS:
        sides.ask(STORY, change, seed=5, learn=True, domain="all", max_new_tokens=40, **sampling)
        for pair in sides.both:
            pair.drop_domain("all")


def turns(first: str, then: str, between: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": first},
        {"role": "assistant", "content": between},
        {"role": "user", "content": then},
    ]


@by_sampling
def test_a_conversation_that_goes_on(trained: Sides, sampling: dict[str, Any]) -> None:
    """What was read before is not read again, and nothing is said otherwise for that."""
    options: dict[str, Any] = {"seed": 2, "max_new_tokens": 16} | sampling
    for text, then in ((STORY, SUM),) if sampling["temperature"] else ((STORY, SUM), (SUM, STORY)):
        first = trained.ask(text, **options, reuse=True)
        fresh = trained.ask(turns(text, then, first.text), **options)
        going = trained.ask(turns(text, then, first.text), **options, reuse=True)
        again = trained.ask(turns(text, then, first.text), **options, reuse=True)
        assert facts(fresh) == facts(going) == facts(again)


def test_conversations_that_take_turns(sides: Sides) -> None:
    """Round by round from several streams of one pair, each with its own seed and length."""

    def woven(pair: Pair) -> list[Generation]:
        streams = [
            pair.stream(
                text,
                temperature=heat,
                seed=seed,
                draft_length=2 + 3 * seed,
                max_new_tokens=16,
                learn=False,
                reuse=False,
            )
            for seed, (text, heat) in enumerate(zip(TEXTS, HEATS, strict=True))
        ]
        made: dict[int, Generation] = {}
        while len(made) < len(streams):
            for place, stream in enumerate(streams):
                if place not in made:
                    try:
                        next(stream)
                    except StopIteration as finished:
                        made[place] = finished.value
        return [made[place] for place in range(len(streams))]

    found = [woven(pair) for pair in sides.both]
    for seed, (text, heat, one, other) in enumerate(zip(TEXTS, HEATS, *found, strict=True)):
        alone = sides.plain(text, temperature=heat, seed=seed, draft_length=2 + 3 * seed, max_new_tokens=16)
        assert facts(one) == facts(other) == facts(alone)


def test_a_swap_while_another_conversation_waits(pairs: Callable[[str], Sides]) -> None:
    sides = pairs("twins")

    def swap(pair: Pair, done: Round) -> None:
        if done.index == 1:
            pair.publish(1, adapter(pair, 3, 0.5), domain="waits")

    for temperature in (0.0, 1.0):
        options: dict[str, Any] = {"temperature": temperature, "seed": 4, "domain": "waits", "reuse": True}
        sides.ask(SUM, **options)
        sides.ask(STORY, swap, **options)
        sides.ask(SUM, **options)  # goes on from what was read with the old weights
        for pair in sides.both:
            pair.drop_domain("waits")
