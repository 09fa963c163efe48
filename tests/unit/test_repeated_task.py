"""`Pair.repeat`: the answers of a task, what a record says of each, and its row of a CSV file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from omnidemo import Pair, load_pair
from omnidemo.core.tasks import own_task
from omnidemo.pair.repeated_task import COLUMNS, prompt_of
from tests.support.models import save

LINES = own_task(
    "the other ducks swim\nthe other ducks swam\nthe cat sat\nthe other duck swims\na duck", "quack", "mine"
)
SHORT: dict[str, Any] = {"max_new_tokens": 20}


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("models")
    return load_pair(
        save(root / "target", "byte-level", ends=False, window=4096),
        save(root / "drafter", "sentence-piece", seed=1),
    )


def test_records_come_in_order_and_say_what_happened(pair: Pair) -> None:
    made = list(pair.repeat(LINES, 4, **SHORT))
    assert [one.number for one in made] == [1, 2, 3, 4]
    assert [one.input for one in made] == list(LINES.written[:4])
    for one in made:
        answer = one.generation
        sources = [token.source for done in answer.rounds for token in done.tokens]
        assert one.copied + one.guessed + one.own == one.tokens == len(sources) == 20
        assert one.copied == sources.count("copied") == answer.metrics["copied"]
        assert one.guessed == sources.count("direct") + sources.count("ngram")
        assert one.tokens_per_round == answer.metrics["block_efficiency"] == 20 / len(answer.rounds)
        assert one.seconds == sum(done.seconds["total"] for done in answer.rounds)
        assert answer.domain == "mine" and answer.guesses.endswith("chance-14")
        assert one.same is not None and one.same.as_it_was == one.tokens_per_round
        assert one.same.empty_memory == one.same.nothing_learned or one.adapter_version or len(pair.ngrams)
        plain = pair.generate(
            prompt_of(pair, LINES, one.input), method="autoregressive", temperature=0.0, learn=False, **SHORT
        )
        assert plain.token_ids == answer.token_ids, "greedy, without a penalty"
    assert made[0].memory_tokens == 0
    for before, after in pairwise(made):
        assert before.memory_tokens is not None and after.memory_tokens is not None
        assert after.memory_tokens > before.memory_tokens + before.tokens
    assert made[0].same is not None and made[0].same.as_it_was == made[0].same.empty_memory


def test_a_run_goes_on_where_another_ended(pair: Pair) -> None:
    records = list(pair.repeat(LINES, 2, **SHORT))
    went_on = list(pair.repeat(LINES, 10, first=2, **SHORT))
    assert [one.number for one in went_on] == [3, 4, 5], "as many as there are"
    known = records[-1].memory_tokens
    assert known is not None and went_on[0].memory_tokens is not None and went_on[0].memory_tokens > known
    other = [one.input for one in pair.repeat(LINES, 5, order=4, **SHORT)]
    assert sorted(other) == sorted(LINES.written) and other != list(LINES.written)


def test_a_row_has_what_the_record_has(pair: Pair) -> None:
    *_, last = pair.repeat(LINES, 2, **SHORT)
    assert list(last.row) == list(COLUMNS) and last.same is not None
    assert last.row["tokens_per_round"] == last.tokens_per_round
    assert last.row["nothing_learned_tokens_per_round"] == last.same.nothing_learned
    assert last.row["answer"] == last.generation.text and last.row["input"] == LINES.written[1]
    plain = next(iter(pair.repeat(LINES, 1, method="autoregressive", **SHORT)))
    assert plain.same is None and plain.row["as_it_was_tokens_per_round"] is None
    assert plain.own == plain.tokens == 20 and plain.acceptance is None
    (one,) = pair.repeat(replace(LINES, json=True), 1, **SHORT)
    assert one.row["valid_json"] is False and last.row["valid_json"] is None


def test_above_temperature_0_a_seed_is_drawn_so_that_the_answer_is_known(pair: Pair) -> None:
    made = list(pair.repeat(LINES, 2, temperature=0.7, **SHORT))
    assert all(one.generation.seed is not None and one.same is not None for one in made)


def test_a_shipped_task_goes_by_its_name_and_nonsense_is_refused(pair: Pair) -> None:
    (one,) = pair.repeat("json", 1, max_new_tokens=4)
    assert one.generation.domain == "json" and "Gdansk" in one.input
    with pytest.raises(ValueError, match="choose one of json"):
        list(pair.repeat("jason"))
    with pytest.raises(ValueError, match="temperature"):
        list(pair.repeat("json", temperature=-1))
    long = own_task("a " * 5000)
    with pytest.raises(ValueError, match="reads"):
        list(pair.repeat(long))
