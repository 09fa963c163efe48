"""One task again and again through the services: answers of a session like any other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Round
from omnidemo.core.tasks import own_task
from omnidemo.pair.repeated_task import Repeated
from omnidemo.serving.quotas import Refused
from omnidemo.serving.services import Services
from omnidemo.storage.visitors import OWN, Caller
from tests.serving.test_visitors import App, public_settings
from tests.support.chats import chat, ready

LINES = own_task("the other ducks swim\nthe other ducks swam\nthe cat sat\na duck", "", "mine")
SHORT: dict[str, Any] = {"session": "s", "max_new_tokens": 12}


@pytest.fixture
def services(tmp_path: Path, models: tuple[str, str], quick_loads: None) -> Iterator[Services]:
    made = Services(Settings(storage=tmp_path / "storage", training="inline", update_interval=99))
    ready(made, models)
    yield made
    made.close()


def run(services: Any, models: tuple[str, str], **options: Any) -> list[Any]:
    return list(services.repeat(target=models[0], drafter=models[1], task=LINES, **SHORT | options))


def repeated(parts: list[Any]) -> list[Repeated]:
    return [part for part in parts if isinstance(part, Repeated)]


def test_answers_of_a_task_are_answers_of_the_session(services: Services, models: tuple[str, str]) -> None:
    parts = run(services.tasks, models, count=2)
    made = repeated(parts)
    assert [one.number for one in made] == [1, 2] and [one.input for one in made] == list(LINES.written[:2])
    rounds = [part for part in parts if isinstance(part, Round)]
    assert [one for record in made for one in record.generation.rounds] == rounds, "as they are written"
    assert [part for part in parts if isinstance(part, Generation)] == [one.generation for one in made]
    for one in made:
        assert one.generation.domain == "mine" and one.generation.guesses.endswith("chance-14")
        assert one.same is not None and one.same.as_it_was == one.tokens_per_round, "no round is plain"
        assert one.copied + one.guessed + one.own == one.tokens
    assert made[0].memory_tokens == 0 and made[1].memory_tokens
    rows = services.store.requests(session="s")
    assert [row["prompt"] for row in rows] == [one.input for one in made[::-1]]
    assert {row["kind"] for row in rows} == {"traffic"} and {row["domain"] for row in rows} == {"mine"}
    went_on = repeated(run(services.tasks, models, first=2))
    assert [one.number for one in went_on] == [3, 4], "as many as there are"


def test_the_first_answer_after_a_restart_has_the_memory_of_those_before(
    services: Services, models: tuple[str, str]
) -> None:
    run(services.tasks, models, count=2)
    (third,) = repeated(run(services.tasks, models, first=2, count=1, learn=False, keep=False))
    services.close()
    again = Services(services.settings)
    try:
        ready(again, models)
        (there,) = repeated(run(again.tasks, models, first=2, count=1, learn=False, keep=False))
        # where no template made the prompt, more of its end is spelled again
        assert there.memory_tokens and third.memory_tokens and there.memory_tokens >= third.memory_tokens
    finally:
        again.close()


def test_a_stop_ends_it_and_others_get_their_answers_meanwhile(
    services: Services, models: tuple[str, str]
) -> None:
    cancel, seen = threading.Event(), list[Any]()
    answers = services.tasks.repeat(
        target=models[0], drafter=models[1], task=LINES, session="s", cancel=cancel
    )
    for part in answers:
        seen.append(part)
        if len(repeated(seen)) == 1 and isinstance(part, Round):
            rounds, other = chat(services, models, "a word between two rounds", session="other")
            assert other.token_ids and rounds
            cancel.set()
    assert isinstance(seen[-1], Generation) and seen[-1].finish_reason == "cancelled"
    assert len(repeated(seen)) == 1
    assert not services.pair(*models).in_flight
    assert not run(services.tasks, models, cancel=cancel), "it was stopped before it began"
    again = repeated(run(services.tasks, models, first=1, count=1))
    assert [one.number for one in again] == [2], "it goes on where it was stopped"


@pytest.fixture
def app(models: tuple[str, str], tmp_path: Path, quick_loads: None) -> Iterator[App]:
    made = App(public_settings(models, tmp_path / "storage"))
    yield made
    made.services.close()


def test_a_visitor_has_a_line_of_their_own_and_a_quota(app: App) -> None:
    app.who = Caller("a")
    mine = repeated(run(app.front, app.pair, session="forged", domain="mine", count=2, max_new_tokens=9999))
    assert {one.generation.domain for one in mine} == {"default"}, "as the page calls it"
    assert all(one.tokens <= 1024 for one in mine)
    app.services.store.flush()
    assert {row["session"] for row in app.services.store.requests()} == {OWN + "a"}
    assert {row["domain"] for row in app.services.store.requests()} == {OWN + "a"}
    app.who = Caller("b")
    assert not app.front.store.requests()
    theirs = repeated(run(app.front, app.pair, count=2))
    assert theirs[0].memory_tokens == 0, "nobody copies from another's answers"
    app.who = Caller("a")
    assert repeated(run(app.front, app.pair, count=1, first=2))[0].memory_tokens
    for _ in range(6):  # of nine
        app.ask("a")
    with pytest.raises(Refused, match="You have had 9 answers"):
        run(app.front, app.pair, count=1)


def test_a_line_is_in_use_with_each_answer_of_a_task(app: App) -> None:
    app.who = Caller("a")
    target, drafter = app.pair
    answers = app.front.repeat(target=target, drafter=drafter, task=LINES, count=3, **SHORT)
    next(part for part in answers if isinstance(part, Repeated))
    app.services.visitor_lines._used[OWN + "a"] -= 3500
    next(part for part in answers if isinstance(part, Repeated))
    assert app.services.visitor_lines._used[OWN + "a"] > time.time() - 60
    assert app.front.quotas._known["a"].requests == 2
    with pytest.raises(Refused, match="still being written"):
        app.front.forget("a")
    answers.close()  # type: ignore[attr-defined]
    assert "Deleted: 2 requests" in app.front.forget("a")
