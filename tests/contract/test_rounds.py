"""How answers end, and what their rounds say, on every backend alike. What holds of all answers is in
`sides.adds_up`."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

import pytest

from omnidemo import Generation, Round
from tests.contract.conftest import WINDOW
from tests.contract.sides import STORY, SUM, Sides, answer, facts

HEATS = (0.0, 1.0)


@pytest.mark.parametrize("temperature", HEATS)
@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_length(sides: Sides, count: int, temperature: float) -> None:
    made = sides.ask(STORY, max_new_tokens=count, temperature=temperature, seed=3, draft_length=6)
    assert made.finish_reason == "length" and len(made.token_ids) == count
    longer = sides.ask(STORY, max_new_tokens=count, temperature=temperature, seed=3, draft_length=0)
    assert temperature or longer.token_ids == made.token_ids


@pytest.mark.parametrize(
    ("method", "length"), [("ngram-exact", 8), ("token-intersection", 4), ("autoregressive", 4)]
)
def test_end(trained: Sides, method: str, length: int) -> None:
    made = trained.ask(SUM, method=method, max_new_tokens=400, draft_length=length)
    assert made.finish_reason == "end" and len(made.token_ids) < 400
    again = trained.ask(SUM, method=method, max_new_tokens=len(made.token_ids) + 1, draft_length=length)
    assert again.token_ids == made.token_ids and again.finish_reason == "end"


@pytest.mark.parametrize("temperature", HEATS)
@pytest.mark.parametrize("name", ["twins", "strangers"])
def test_context(pairs: Callable[[str], Sides], name: str, temperature: float) -> None:
    for length in (0, 5):
        made = pairs(name).ask(
            "the small duck", max_new_tokens=10 * WINDOW, temperature=temperature, seed=1, draft_length=length
        )
        assert made.finish_reason == "context" and made.prompt_tokens + len(made.token_ids) == WINDOW


def places(made: Generation) -> list[tuple[Round, int]]:
    """Each round with the number of characters before it."""
    found, at = [], 0
    for one in made.rounds:
        found.append((one, at))
        at += len(one.text)
    return found


def inside(made: Generation) -> str:
    """A text that first ends in the middle of what one round accepted."""
    for one, at in places(made):
        for place in range(one.accepted - 1):
            end = at + sum(len(token.text) for token in one.tokens[: place + 1])
            for start in range(max(0, end - 6), end):
                if made.text.find(made.text[start:end]) == start and end - start > 1:
                    return made.text[start:end]
    raise AssertionError("no round accepted several tokens")


def across(made: Generation) -> str:
    """A text that begins in one round and first ends in the next one."""
    for one, at in places(made)[1:]:
        start, end = at - 2, at + len(one.tokens[0].text)
        if start >= 0 and made.text.find(made.text[start:end]) == start and end > at:
            return made.text[start:end]
    raise AssertionError("every text of two rounds has been there before")


@pytest.mark.parametrize("temperature", HEATS)
@pytest.mark.parametrize("pick", [inside, across], ids=lambda pick: pick.__name__)
def test_stop(trained: Sides, pick: Callable[[Generation], str], temperature: float) -> None:
    options: dict[str, Any] = {"draft_length": 8, "temperature": temperature, "seed": 5, "max_new_tokens": 50}
    whole = trained.ask(STORY, **options)
    stop = pick(whole)
    made = trained.ask(STORY, **options, stop=["\x00 never", stop])
    assert made.finish_reason == "stop" and stop in made.text and whole.text.startswith(made.text)
    assert made.token_ids == whole.token_ids[: len(made.token_ids)]
    assert stop not in "".join(
        token.text
        for one in made.rounds
        for token in one.tokens[: len(one.tokens) - (one is made.rounds[-1])]
    )


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("temperature", HEATS)
def test_cancelled(sides: Sides, count: int, temperature: float) -> None:
    """Between two rounds, and the contexts that are left can be gone on from."""
    options: dict[str, Any] = {"temperature": temperature, "seed": 2, "max_new_tokens": 40}
    whole = sides.plain(STORY, **options)
    for pair in sides.both:
        looks = iter(range(1, 1000))
        made = answer(pair, STORY, cancelled=lambda looks=looks: next(looks) >= count, **options)
        assert made.finish_reason == "cancelled" and len(made.rounds) == count
        assert (
            made.token_ids == whole.token_ids[: len(made.token_ids)] and made.rounds[-1].finish_reason is None
        )
        if temperature == 0.0:
            again = answer(pair, STORY, **options | {"reuse": True})
            assert again.token_ids == whole.token_ids


def test_a_stream_that_is_closed_leaves_contexts_to_go_on_from(sides: Sides) -> None:
    whole = sides.plain(STORY, max_new_tokens=40)
    for pair in sides.both:
        for count in range(1, 5):
            rounds = pair.stream(STORY, max_new_tokens=40, learn=False, reuse=count % 2 == 0)
            for _ in range(count):
                next(rounds)
            rounds.close()
            assert answer(pair, STORY, max_new_tokens=40, reuse=True).token_ids == whole.token_ids
        assert not pair.in_flight


@pytest.mark.parametrize("temperature", HEATS)
@pytest.mark.parametrize(
    "options",
    [{}, {"draft_length": 0}, {"draft_policy": "confidence"}],
    ids=lambda options: " ".join(options) or "fixed",
)
def test_seconds_of_the_rounds_make_up_the_answers(
    trained: Sides, options: dict[str, Any], temperature: float
) -> None:
    """None has those of several, and none is counted twice. Loose, for other people use this machine too."""
    for pair in trained.both:
        began = perf_counter()
        made = answer(pair, STORY, temperature=temperature, seed=1, max_new_tokens=40, **options)
        lasted, seconds = perf_counter() - began, made.metrics["seconds"] or 0.0
        parts = [one.seconds["total"] for one in made.rounds]
        assert sum(parts) == pytest.approx(seconds) and 0.3 * lasted < seconds <= lasted
        assert all(one.seconds["draft"] > 0 or not one.drafted for one in made.rounds)
        assert sum(one.seconds["verify"] for one in made.rounds) > 0


def test_a_slow_reader_makes_no_answer_slower(trained: Sides) -> None:
    """What lies between rounds counts for no figure, so that those of an answer are those of its rounds."""
    for pair in trained.both:
        pair.round_listeners.append(lambda done: sleep(0.1))
        try:
            made = answer(pair, STORY, max_new_tokens=8)
        finally:
            pair.round_listeners.clear()
        metrics, took = made.metrics, [one.seconds["total"] for one in made.rounds]
        assert metrics["seconds"] == pytest.approx(sum(took))
        assert metrics["tokens_per_second"] == pytest.approx(8 / sum(took))
        later = 8 - len(made.rounds[0].tokens)
        assert metrics["time_per_output_token"] == pytest.approx(sum(took[1:]) / later)


def test_a_listener_hears_every_round_once(trained: Sides) -> None:
    for pair in trained.both:
        heard: list[Round] = []
        pair.round_listeners.append(heard.append)
        try:
            made = answer(pair, STORY)
        finally:
            pair.round_listeners.remove(heard.append)
        assert heard == list(made.rounds)


def test_the_same_answer_twice_is_the_same_to_the_letter(sides: Sides) -> None:
    for pair in sides.both:
        one, other = (answer(pair, SUM, temperature=0.7, seed=9) for _ in range(2))
        assert facts(one) == facts(other)
