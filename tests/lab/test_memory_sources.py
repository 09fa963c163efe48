"""Memories as sources of drafts, on made answers where one can count, and on rows of tiny models."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lab.drafters.ceilings import Prices
from lab.sources.answer_rows import rows_of
from lab.sources.fused_rounds import ALWAYS, NEVER, Fused, Way
from lab.sources.given_answers import Answer, Costs, Sums, leading
from lab.sources.memories import Copies, Memory, Ngrams, Recycling, Written
from lab.sources.memory_tables import beside, costs_of, pooled
from lab.sources.todays_rounds import Today
from omnidemo import load_pair
from omnidemo.core.tasks import own_task
from omnidemo.pair.repeated_task import prompt_of
from tests.support.cli import Cli, refused

COSTS = Costs([1.0 + 0.1 * max(0, count - 1) for count in range(20)], 0.01)


def answer(ids: list[int], guess: list[int] | None = None, sure: float = 0.99) -> Answer:
    """The target is sure of each id; the drafter says `guess`, which is right where nothing is said."""
    said = ids if guess is None else guess
    count = len(ids)
    chain = [(said[at : at + 8] + [-1] * 8)[:8] for at in range(count)]
    chances = [[sure * (token >= 0) for token in one] for one in chain]
    return Answer(
        [1, 2, 3], ids, frozenset({0}), [[(token, 1.0)] for token in ids], chain, chances,
        [[1] * 8 for _ in ids], [{token: sure} for token in said],
    )  # fmt: skip


def learned(memory: Memory, text: list[int], rows: list[list[tuple[int, float]]]) -> Memory:
    memory.learn(text, Written(len(text) - len(rows), rows))
    return memory


def test_n_grams_go_by_the_longest_context_that_they_know() -> None:
    rows = [[(7, 0.75), (8, 0.25)]]
    memory = learned(Ngrams(orders=2, trust=1.0), [5, 6, 7], rows)
    # Half of the weight is the context's of two ids, a quarter that of one.
    assert memory.look([5, 6]).probs == pytest.approx({7: 0.5625, 8: 0.1875})
    assert memory.look([9, 6]).probs == pytest.approx({7: 0.375, 8: 0.125})
    assert not memory.look([6, 9]).probs
    assert memory.look([5, 6]).kind > memory.look([9, 6]).kind


def test_a_context_that_is_met_again_fades() -> None:
    memory = Ngrams(orders=1, trust=0.0, decay=0.5)
    for token in (7, 8):
        learned(memory, [6, token], [[(token, 1.0)]])
    assert memory.look([6]).probs == pytest.approx({7: 1 / 3, 8: 2 / 3}) and memory.size == (1, 2)
    recycled = Recycling()
    for token in (7, 8):
        learned(recycled, [6, token], [[(token, 1.0)]])
    assert recycled.look([6]).probs[7] == 0.0


def test_hard_counts_take_what_was_written_and_an_entry_keeps_few_ids() -> None:
    row = [(token, 0.1) for token in range(20, 30)]
    assert learned(Ngrams(orders=1, soft=False, trust=0.0), [6, 7], [row]).look([6]).probs == {7: 1.0}
    assert len(learned(Ngrams(orders=1, most=4), [6, 7], [row]).look([6]).probs) == 4


def test_copies_are_of_the_longest_agreement() -> None:
    chat, earlier = Copies(False), Copies(True)
    chat.begin([5, 6, 7, 8, 6, 7, 9])
    assert chat.look([5, 6, 7]).probs == {8: 1.0} and chat.look([4, 6, 7]).probs == {8: 0.5, 9: 0.5}
    assert not chat.look([6, 9]).probs
    earlier.end([1], [5, 6, 7])
    # Nothing follows an answer's end.
    assert earlier.look([5, 6]).probs == {7: 1.0} and not earlier.look([6, 7]).probs
    assert chat.prior(chat.look([5, 6, 7]).kind) != earlier.prior(earlier.look([5, 6]).kind)


def test_a_drafter_that_is_always_right() -> None:
    sums = Fused(Way(), COSTS).answer(answer(list(range(100, 270))))
    assert (sums.tokens, sums.rounds, sums.proposed) == (170, 10, 160)
    # The last guess of a draft is read with the target's own id when the next one begins.
    assert sums.price == pytest.approx(10 * (COSTS.rows[17] + 16 * 0.01) + 9 * 0.15 * 0.01)


def test_a_drafter_that_is_always_wrong_costs_little_more_than_none() -> None:
    ids = list(range(100, 400))
    rounds = Fused(Way(), COSTS)
    first, second = (rounds.answer(answer(ids, [7] * 300)) for _ in range(2))
    assert first.rounds == second.rounds == 300
    assert 300 < second.price < 306 and second.proposed < 6


def test_memory_drafts_what_it_has_seen_and_needs_no_drafter() -> None:
    ids = list(range(100, 160))
    for make in (Ngrams, partial(Copies, True)):
        rounds = Fused(Way({"memory": make}, 0.8), COSTS)
        first, second, third = (rounds.answer(answer(ids, [7] * 60)) for _ in range(3))
        assert first.rounds == 60 and second.rounds < 20 and third.rounds <= second.rounds
        assert second.steps < first.steps / 2
    fresh = Fused(Way({"memory": Ngrams}, NEVER, False, True), COSTS)
    assert [fresh.answer(answer(ids)).rounds for _ in range(2)] == [60, 60]


def test_a_cascade_asks_the_drafter_where_memory_is_unsure_and_goes_on_with_it() -> None:
    ids = list(range(100, 160))
    changed = [*ids[:30], 999, *ids[31:]]
    rounds = Fused(Way({"memory": Ngrams}, 0.8), COSTS)
    rounds.answer(answer(ids))
    sums = rounds.answer(answer(changed))
    # Only the id that memory has never seen costs a round of its own.
    assert sums.rounds <= 60 / 17 + 3 and 0 < sums.steps < 30


def test_a_mixture_learns_whom_to_believe() -> None:
    ids = list(range(100, 160))
    rounds = Fused(Way({"memory": Ngrams}, ALWAYS, True), COSTS)
    first, *_, last = (rounds.answer(answer(ids, [7] * 60, 0.9)) for _ in range(4))
    assert first.rounds == 60 and last.rounds < 20


def test_todays_rounds_copy_from_earlier_answers() -> None:
    ids = list(range(100, 160))
    for memory in (False, True):
        rounds = Today(COSTS, memory)
        first, second = (rounds.answer(answer(ids, [7] * 60, 0.1)) for _ in range(2))
        assert first.rounds == 60 and (second.rounds < 20) == memory
    right = Today(COSTS, True).answer(answer(ids))
    # Eight guesses and the target's own id, once the first rounds have told that the drafter is right.
    assert right.rounds <= 60 / 9 + 5 and right.tokens == 60


def test_figures_of_several_answers() -> None:
    some, others = [Sums(30, 10, 12.0), Sums(10, 10, 10.0)], [Sums(30, 20, 20.0), Sums(10, 10, 10.0)]
    assert pooled(some) == 2.0 and pooled(some, "price") == pytest.approx(40 / 22)
    times, error = beside(some, others, "rounds")
    assert times == pytest.approx(1.5) and error == pytest.approx(0.5)
    assert beside(some, some, "price") == (1.0, 0.0)
    assert leading([1, 2, 3], [1, 2, 4]) == 2 and leading([], [1]) == 0
    assert costs_of(Prices({1: 4.0, 2: 5.0, 4: 6.0}, 0.2), 3).rows[:4] == [1.0, 1.0, 1.25, 1.375]


def test_rows_are_those_of_plain_decoding_and_of_the_products_drafts(
    lab_cli: Cli, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = own_task('{"system": "s"}\nthe cat sat\nthe cat sat on\nthe small duck', name="json")
    monkeypatch.setattr("lab.sources.rows_recorder.task", lambda name: given)
    options = [*names, "--out", tmp_path, "--sets", "json", "--inputs", 3, "--length", 12]
    first = lab_cli("memory-rows", *options)
    assert first.code == 0 and first.out.count("12 tokens") == 3, first.err
    assert lab_cli("memory-rows", *options).out == ""  # all of them are there
    pair = load_pair(names[1], names[3])
    for number, one in enumerate(rows_of(tmp_path)["json"]):
        prompt = pair.prompt_ids(prompt_of(pair, given, given.inputs(3, 1)[number]))
        assert prompt == one.prompt.tolist()
        plain = {"temperature": 0.0, "max_new_tokens": 12, "repetition_penalty": 1.0}
        made = pair.generate(prompt, method="autoregressive", **plain)
        assert one.ids.tolist() == list(made.token_ids) == one.top[:, 0].tolist()
        assert (np.diff(one.probs) <= 0).all() and (one.probs.sum(1) <= 1.0001).all()
        drafted = (one.chain[:, 0] >= 0) & (one.steps[:, 0] == 1)
        assert drafted.any() and (one.chances[drafted, 0] > 0).all()
        # What the drafter thinks likeliest is what it drafts, where that is one token of its own.
        same = one.chain[drafted, 0] == one.guess[drafted, 0]
        assert same.any()
        assert one.chances[drafted, 0][same] == pytest.approx(one.sure[drafted, 0][same], rel=1e-4)
    ways = ["today", "drafter alone", "mixture"]
    options += ["--csv", tmp_path / "out"]
    table = lab_cli("memory-sources", tmp_path, "--ways", ",".join(ways), *options[-2:])
    assert table.code == 0 and "× today" in table.out, table.err
    assert pd.read_csv(tmp_path / "out" / "memory-prices-0.csv")["way"].tolist() == ways
    refused(lab_cli("memory-sources", tmp_path, "--ways", "cheese"), "cheese", "mixture")
    refused(lab_cli("memory-sources", tmp_path, "--sets", "cheese"), "cheese", "json")
    refused(lab_cli("memory-rows", *options[:6], "--sets", "cheese"), "cheese", "handbook")
