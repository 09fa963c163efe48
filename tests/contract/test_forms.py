"""Answers of a given form: guessing writes the ids of plain decoding under the same form, on both
backends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.core.tasks import Task
from omnidemo.decoding import engine
from omnidemo.decoding.methods import METHODS
from omnidemo.pair.pair import Pair
from tests.contract.sides import STORY, Sides, answer

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 2},
    },
    "required": ["name", "age", "tags"], "additionalProperties": False,
}  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "schema": {"schema": SCHEMA},
    "regex": {"regex": "[a-z]{2,8} [0-9]{2}(, [a-z]{2,8} [0-9]{2}){1,3}"},
    "choices": {"choices": ["the red fox", "the red hen", "a fox"]},
}
SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "a seed": {"temperature": 0.9, "seed": 5},
    "filters": {"temperature": 0.9, "seed": 6, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    "a penalty": {"temperature": 0.7, "seed": 7, "repetition_penalty": 1.3, "penalty_scope": "answer"},
    "a greedy penalty": {"temperature": 0.0, "repetition_penalty": 1.3},
}
METHOD_NAMES = [name for name, method in METHODS.items() if method.lossless and method.coupled]


def plain(sides: Sides, **options: Any) -> tuple[int, ...]:
    return answer(sides.reference, STORY, method="autoregressive", max_new_tokens=60, **options).token_ids


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_guesses_write_the_ids_of_plain_decoding(
    sides: Sides, form: dict[str, Any], sampling: dict[str, Any]
) -> None:
    made = sides.ask(STORY, max_new_tokens=60, draft_policy="chance", **form, **sampling)
    assert made.token_ids == plain(sides, **form, **sampling)


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("sampling", ["greedy", "a seed"])
def test_every_coupled_method_keeps_them(trained: Sides, method: str, sampling: str) -> None:
    if not trained.serve(method):
        pytest.skip("these models do not fit the method")
    options = FORMS["schema"] | SAMPLINGS[sampling]
    made = trained.ask(STORY, method=method, max_new_tokens=60, **options)
    assert made.token_ids == plain(trained, **options)


def test_compiled_code_judges_masked_rows(trained: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = trained.fast
    caches = (model.runner.new_cache() for model in (pair.target, pair.drafter))
    if not isinstance(pair.make_backend(*caches), CompiledBackend):
        pytest.skip("another backend, whose rounds the reference judges")
    monkeypatch.setattr(engine, "_judge_by_method", lambda *_: pytest.fail("the reference judges"))
    for sampling in SAMPLINGS.values():
        pair.generate(STORY, max_new_tokens=20, learn=False, **FORMS["schema"], **sampling)


def test_answers_obey_their_form(trained: Sides) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for seed in range(6):
        asked = {"temperature": 1.0, "seed": seed, "max_new_tokens": 120}
        made = trained.ask(STORY, **FORMS["schema"], **asked)
        assert made.finish_reason == "end"
        jsonschema.validate(json.loads(made.text), SCHEMA)
        assert trained.ask(STORY, **FORMS["choices"], **asked).text in FORMS["choices"]["choices"]


def test_forced_tokens_are_guesses_that_are_right(trained: Sides) -> None:
    made = trained.ask(STORY, max_new_tokens=120, draft_policy="chance", temperature=0.0, **FORMS["schema"])
    forced = [token for one in made.rounds for token in one.tokens if token.source == "forced"]
    text = "".join(token.text for token in forced)
    assert made.metrics["forced"] == len(forced) > 5 and "age" in text and "tags" in text
    assert all(token.accept == 1.0 and token.q == 1.0 and token.match == (0, "form") for token in forced)
    assert not any(token.source == "forced" for one in made.rounds for token in one.discarded)
    # p is the target's own probability: without the form hardly any of it is likely
    assert min(token.p for token in forced) < 0.5 and made.metrics["changed"]


def test_an_answer_that_is_continued_keeps_its_form(trained: Sides) -> None:
    options = FORMS["schema"] | {"temperature": 0.8, "seed": 3}
    whole = plain(trained, **options)
    for count in (1, 5, 11):
        begun = list(whole[:count])
        rest = trained.ask(STORY, begun=begun, max_new_tokens=60 - count, draft_policy="chance", **options)
        assert [*begun, *rest.token_ids] == list(whole)


def test_a_swap_within_the_answer_changes_no_id(trained: Sides) -> None:
    options = FORMS["schema"] | {"temperature": 0.8, "seed": 4}

    def swap(pair: Pair, done: Any) -> None:
        if done.index == 1:
            name, weights = next(iter(pair.drafting_weights().items()))
            pair.publish(1, {name: weights * 0.5})

    made = trained.ask(STORY, swap, max_new_tokens=60, **options)
    assert made.token_ids == plain(trained, **options)


def test_learning_and_memory_change_no_id(trained: Sides) -> None:
    options = FORMS["schema"] | {"temperature": 0.8, "seed": 8, "draft_policy": "chance"}
    wanted = plain(trained, **options)
    for _ in range(2):
        made = trained.ask(STORY, learn=True, reuse=True, max_new_tokens=60, domain="formed", **options)
        assert made.token_ids == wanted
    assert made.metrics["copied"] and made.metrics["forced"]


def test_a_lossy_method_is_refused(trained: Sides) -> None:
    with pytest.raises(ValueError, match="ngram-merge is lossy, and a form needs a lossless method"):
        trained.fast.generate(STORY, method="ngram-merge", **FORMS["schema"])


def test_an_answer_that_is_drafted_again_has_its_form(trained: Sides) -> None:
    lines = Task("ducks", "", "", "", ("a duck", "two ducks"))
    for made in trained.fast.repeat(lines, 2, max_new_tokens=60, **FORMS["schema"]):
        assert made.forced and made.same is not None and made.same.as_it_was == made.tokens_per_round
    trained.fast.forget_domain("ducks")
