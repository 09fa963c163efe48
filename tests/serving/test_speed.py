"""The speed of the newest answer, measured while no request is running: as it was, without a trace, and given
up for whoever asks something."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.core.metrics import Speed
from omnidemo.core.records import PROPOSED, Generation
from omnidemo.pair import repetition
from omnidemo.pair.in_turns import Budget
from omnidemo.serving import speed as speed_module
from omnidemo.serving.services import Services
from omnidemo.vocabulary.ngram_cache import NgramCache
from tests.support.chats import chat, ready

PATIENCE = 60.0
DRAFTS: dict[str, Any] = {"draft_policy": "fixed", "draft_length": 4, "max_new_tokens": 40}


@pytest.fixture
def services(tmp_path: Path, quick_loads: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setattr(speed_module, "QUIET", 0.0)
    monkeypatch.setattr(repetition, "BUDGET", Budget(2, least=2))
    made = Services(Settings(storage=tmp_path / "storage", training="off"))
    yield made
    made.close()


def measured(services: Services, answer: Generation) -> Speed | None:
    return services.speeds.speed_lanes(answer.key, PATIENCE)


def written(rounds: tuple[Any, ...]) -> list[int]:
    return [token.id for done in rounds for token in done.tokens]


def test_both_lanes_write_the_answer_and_leave_no_trace(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    pair = services.pair(*models)
    _, first = chat(services, models, "duck", **DRAFTS)
    assert measured(services, first) is not None
    _, last = chat(services, models, "the duck swims", **DRAFTS)
    before = (
        {entry.target_id: (entry.hits, entry.accepts) for entry in pair.ngrams},
        pair.ngrams.clock,
        pair.copies.nbytes,
    )
    conversations = list(pair._conversations._idle)
    found = measured(services, last)
    assert found is not None and 0 < found.low <= found.speedup <= found.high
    assert written(found.guessed) == written(found.plain) == list(last.token_ids) and not found.first
    assert found.high <= last.metrics["block_efficiency"]
    assert all(len(done.tokens) == 1 for done in found.plain) and any(done.drafted for done in found.guessed)
    after = (
        {entry.target_id: (entry.hits, entry.accepts) for entry in pair.ngrams},
        pair.ngrams.clock,
        pair.copies.nbytes,
    )
    assert before == after and pair._conversations._idle == conversations and not pair.in_flight
    assert services.store.flush()
    row = services.store.requests()[0]
    assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == pytest.approx(
        (found.speedup, found.low, found.high)
    )


def test_guesses_are_those_of_the_answer_not_of_what_was_known_after_it(
    services: Services, models: tuple[str, str]
) -> None:
    """Neither the answer itself nor its n-grams are there to be guessed from."""
    ready(services, models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    found = measured(services, answer)
    assert found is not None and found.tokens == len(answer.token_ids)
    shape = [(done.drafted, done.proposed, done.accepted, done.copies) for done in found.guessed]
    assert shape == [(done.drafted, done.proposed, done.accepted, done.copies) for done in answer.rounds]
    _, again = chat(services, models, "duck", **DRAFTS)
    assert len(again.rounds) < len(answer.rounds), "the same question again copies from the first answer"
    found = measured(services, again)
    assert found is not None and len(found.guessed) == len(again.rounds)


def test_of_a_long_answer_the_middle_is_written_and_stands_for_it(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its opening, which repeats best from memory, does not."""
    monkeypatch.setattr(repetition, "tokens_within", lambda *given: 12)
    ready(services, models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    _, again = chat(services, models, "duck", **DRAFTS)
    for one in (answer, again):
        found = measured(services, one)
        assert found is not None and found.tokens == 12 and 0 < found.first <= 14
        stretch = list(one.token_ids)[found.first : found.first + 12]
        assert written(found.guessed) == written(found.plain) == stretch
        assert found.high <= one.metrics["block_efficiency"]
        assert any(done.proposed for done in found.guessed)


def test_a_question_ends_it_at_once(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)
    monkeypatch.setattr(repetition, "BUDGET", Budget(10_000))
    pair = services.pair(*models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    until = time.monotonic() + PATIENCE
    while not pair.in_flight and time.monotonic() < until:
        time.sleep(0.005)
    assert pair.in_flight == 1 and services.speeds.speeds_of([answer.key]) == {answer.key: None}
    monkeypatch.setattr(speed_module, "QUIET", PATIENCE)
    chat(services, models, "pond", method="autoregressive", **DRAFTS)
    while pair.in_flight and time.monotonic() < until:
        time.sleep(0.005)
    assert not pair.in_flight and services.speeds.speeds_of([answer.key]) == {answer.key: None}, (
        "it is not given up"
    )
    assert services.store.flush() and [row["speedup"] for row in services.store.requests()] == [None, None]
    monkeypatch.setattr(speed_module, "QUIET", 0.0)
    monkeypatch.setattr(repetition, "BUDGET", Budget(2, least=2))
    while services.speeds.speeds_of([answer.key]) == {answer.key: None} and time.monotonic() < until:
        time.sleep(0.005)
    assert isinstance(services.speeds.speeds_of([answer.key])[answer.key], Speed)


def test_another_version_is_not_measured_as_the_one_that_drafted(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    services.speeds.public = True  # it waits
    _, answer = chat(services, models, "duck", **DRAFTS)
    pair = services.pair(*models)
    pair.publish(7, {})
    pair.generate("pond", max_new_tokens=2)  # swaps it in
    assert measured(services, answer) is None and not pair.in_flight
    assert services.speeds.speeds_of([answer.key]) == {answer.key: repetition.LEARNED}


def learned(services: Services, answer: Generation, version: int = 0) -> list[tuple[int, int]]:
    """The pieces of an answer, once a version was looked at."""
    until = time.monotonic() + PATIENCE
    while services.speeds._orders[answer.key].seen != version:
        assert time.monotonic() < until
        time.sleep(0.01)
    told, pieces = services.speeds.learned_of([answer.key]).get(answer.key, (version, []))
    return pieces if told == version else []


def test_what_an_answer_taught_is_guessed_right_when_it_comes_again(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    pieces = learned(services, answer)
    assert 0 < len(pieces) <= 5 and pieces == sorted(pieces)
    _, again = chat(services, models, "duck", **DRAFTS)
    assert again.token_ids == answer.token_ids
    right = [
        [token.source in PROPOSED for done in one.rounds for token in done.tokens] for one in (answer, again)
    ]
    for first, count in pieces:
        before, now = (one[first : first + count] for one in right)
        assert all(now) and not all(before)
    services.forget_copies()
    assert not services.speeds.learned_of([answer.key])


def test_nothing_is_named_where_nothing_was_learned_and_a_version_is_looked_at(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    _, answer = chat(services, models, "duck", learn=False, **DRAFTS)
    assert learned(services, answer) == [] and measured(services, answer) is not None
    pair = services.pair(*models)
    pair.publish(4, {})  # the weights of the base drafter
    assert learned(services, answer, 4) == [] and not services.speeds.learned_of([answer.key])


def test_what_is_deleted_is_not_known_any_more(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    assert measured(services, answer) is not None
    services.forget_copies()
    assert services.speeds.speeds_of([answer.key]) == {answer.key: speed_module.UNKNOWN}


def test_an_earlier_answer_is_measured_when_somebody_asks_and_again(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    services.speeds.public = True  # nothing is measured by itself so soon
    _, first = chat(services, models, "duck", **DRAFTS)
    _, last = chat(services, models, "the duck swims", **DRAFTS)
    found = [measured(services, answer) for answer in (first, last)]
    for answer, one in zip((first, last), found, strict=True):
        assert one is not None and written(one.guessed) == list(answer.token_ids)
    assert measured(services, first) is found[0]
    again = services.speeds.speed_lanes(first.key, PATIENCE, again=True)
    assert again is not None and again is not found[0] and written(again.guessed) == written(again.plain)
    pond = [chat(services, models, "pond", **DRAFTS)[1].key for _ in range(speed_module.WAITING + 1)]
    assert services.speeds.speeds_of([first.key]) == {first.key: again}
    assert services.speeds.speed_lanes(first.key, PATIENCE, again=True) is again, (
        "only the newest can be measured"
    )
    assert services.speeds.speeds_of(pond[:2]) == {pond[0]: speed_module.LATER, pond[1]: None}


def test_where_it_is_switched_off_nothing_is_measured(services: Services, models: tuple[str, str]) -> None:
    services.pool.settings = services.settings.model_copy(update={"measure_speed": False})
    ready(services, models)
    _, answer = chat(services, models, "duck", **DRAFTS)
    assert services.speeds.speeds_of([answer.key]) == {answer.key: speed_module.OFF}
    assert services.speeds._thread is None


def test_ngrams_as_they_were() -> None:
    cache = NgramCache(20, 10)
    cache.insert(1, (2, 3))
    cache.clock += 1
    assert cache.as_of(1) is cache
    cache.insert(4, (2, 5, 6))
    then = cache.as_of(1)
    assert then.target_ids == [1] and then.longest((2, 5, 6)) is None and cache.longest((2, 5, 6)) == (4, 3)
