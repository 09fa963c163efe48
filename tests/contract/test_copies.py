"""Copied drafts on every backend alike."""

from __future__ import annotations

from typing import Any

import pytest

from lab.drafters.phrases import count_phrases
from omnidemo import Generation
from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.models.known_phrases import ARRAYS
from tests.contract.sides import Sides
from tests.support.trained_pair.patterns import examples

ASKED, TOLD = examples("stories", 1, seed=1)[0]
AGAIN = [  # the next story goes on as the one before it, here and there
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": TOLD},
    {"role": "user", "content": ASKED},
]
WARPS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "greedy, penalty": {"temperature": 0.0, "repetition_penalty": 1.2},
    "warm": {"temperature": 1.0},
    "filters": {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.1},
}


def copied(made: Generation) -> int:
    return sum(token.source == "copied" for done in made.rounds for token in (*done.tokens, *done.discarded))


@pytest.mark.parametrize("options", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("method", ["copy", "ngram-exact", "token-intersection", "string-exact-match"])
def test_same_rounds(trained: Sides, method: str, options: dict[str, Any]) -> None:
    made = [
        trained.ask(AGAIN, method=method, max_new_tokens=30, seed=seed, draft_length=5, **options)
        for seed in (1, 2)
    ]
    assert sum(map(copied, made)) > 0


def test_greedy_ids_are_those_of_plain_decoding(trained: Sides) -> None:
    plain = trained.ask(AGAIN, method="autoregressive", temperature=0.0)
    for copying in (False, True):
        made = trained.ask(AGAIN, temperature=0.0, draft_length=6, copying=copying)
        assert made.token_ids == plain.token_ids and (copied(made) > 0) == copying


@pytest.mark.parametrize("options", WARPS.values(), ids=WARPS)
def test_known_phrases_change_no_id(trained: Sides, options: dict[str, Any]) -> None:
    options = {"max_new_tokens": 40, "seed": 2, **options}
    plain = trained.ask(ASKED, method="autoregressive", **options)
    prompt = trained.fast.prompt_ids(ASKED)
    arrays = count_phrases([WrittenAnswer("", "", 0.0, "end", prompt, [*plain.token_ids[5:]])] * 3)
    try:
        for pair in trained.both:
            pair.phrases = Continuations.of(*(arrays[name] for name in ARRAYS))
        made = trained.ask(ASKED, draft_policy="chance", **options)
        alone = trained.ask(ASKED, method="copy", draft_policy="chance", **options)
        formed = trained.ask(ASKED, draft_policy="chance", regex="[a-z ]{20}, [a-z ]{9}", **options)
    finally:
        for pair in trained.both:
            pair.phrases = None
    assert made.token_ids == alone.token_ids == plain.token_ids
    options |= {"regex": "[a-z ]{20}, [a-z ]{9}", "method": "autoregressive"}
    assert formed.token_ids == trained.ask(ASKED, **options).token_ids
    for each in (made, alone):
        matches = [token.match for done in each.rounds for token in done.tokens if token.match]
        assert sum(match.origin == "phrase" for match in matches) > 5
        assert each.metrics["copied"] == len(matches) and not each.metrics["copied_earlier"]


@pytest.mark.parametrize(
    "options", [*WARPS.values(), {"temperature": 0.8, "seed": 5}], ids=[*WARPS, "seeded"]
)
def test_memory_and_the_drafter_in_one_round(trained: Sides, options: dict[str, Any]) -> None:
    """Answers to one kind of question, each of which the next ones draft from."""
    options = {"max_new_tokens": 40, "seed": 2, "domain": "fused", "draft_policy": "chance", **options}
    made, asked = list[Generation](), [asked for asked, _ in examples("stories", 5, seed=3)]
    try:
        made = [trained.ask(each, learn=True, **options) for each in asked]
        rounds = [done for each in made for done in each.rounds]
        assert any(done.drafted > 0 < done.copies.proposed for done in rounds)
        alone = trained.ask(asked[-1], method="autoregressive", **options)
        assert alone.token_ids == made[-1].token_ids
    finally:
        for pair in trained.both:
            pair.forget_domain("fused")
