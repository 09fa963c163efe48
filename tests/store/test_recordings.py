"""Recorded rounds: what they hold, how large they get, whose they are, when they go; and the runs beside an
answer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.core.offers import Offer
from omnidemo.core.records import Generation, Round, Token
from omnidemo.pair.repeated_task import Repeated
from omnidemo.serving.comparison import FRESH, FRESH_LINE, RUNS, TODAY, WARM_UP
from omnidemo.serving.services import Services
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.storage import recorded_rounds, recordings
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import Caller
from omnidemo.ui import replay_data, task_rows
from omnidemo.ui.tabs import history_tab
from omnidemo.ui.tabs.visitor_panel import public_services
from tests.support.chats import chat, ready
from tests.support.row_counts import row_counts


def parse(lines: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in lines.splitlines()]


def rounds_of(count: int, seed: int = 0) -> list[Round]:
    """Rounds whose texts do not compress well."""
    rng = random.Random(seed)

    def token(source: Any) -> Token:
        word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=8))
        return Token(
            rng.randrange(50_000),
            word,
            source,
            rng.random(),
            rng.random(),
            rng.random(),
            (rng.randrange(9000),),
            (word,),
        )

    seconds = {"draft": 0.0004, "verify": 0.0041, "settle": 0.00003, "other": 0.00001}
    return [
        Round(index, (token("direct"), token("corrected")), (token("direct"),), 4, 4, 2, 1, 2, 0, seconds)
        for index in range(count)
    ]


def record(
    session: str = "mine", kind: Any = "chat", prompt: str | None = "Hello", count: int = 3
) -> RequestRecord:
    rounds = tuple(rounds_of(count))
    made = Generation((1,) * 2 * count, "text", rounds, {"seconds": 0.004}, "end", "ngram-exact", 7)
    return RequestRecord(
        session, "t", "d", "default", "ngram-exact", prompt, made, {}, "2026-03-01T12:00:00+00:00", kind
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'test.db'}")
    yield made
    made.close()


def kept(store: Store) -> list[int]:
    assert store.flush()
    return sorted(store.recorded(row["id"] for row in store.requests(limit=None)))


# lines
# ------------------------------------------------------------------------------------------------------------


def test_the_lines_of_a_round_tell_what_was_guessed_kept_replaced_and_how_long_it_took() -> None:
    (one,) = rounds_of(1)
    *tokens, last = parse("".join(recorded_rounds.round_lines(one)))
    assert [(line["k"], line["s"], line.get("j")) for line in tokens] == [
        ("t", "direct", None),
        ("x", "direct", True),
        ("t", "corrected", None),
    ]
    assert last == {"k": "r", "r": 0, "d": 4, "s": [400, 4100, 30, 10]}
    offers = (Offer("plain", 0, 1.0, 1.0, 1.0, False), Offer("drafter", 2, 2.217, 1.2, 0.31, True))
    chosen = parse("".join(recorded_rounds.round_lines(replace(one, offers=offers))))[-1]
    assert chosen["o"] == [["plain", 0, 1.0, 1.0, 1.0, 0], ["drafter", 2, 2.22, 1.2, 0.31, 1]]
    untimed = parse("".join(recorded_rounds.round_lines(replace(one, seconds={}))))[-1]
    assert untimed == {"k": "r", "r": 0, "d": 4}, "what nobody timed claims no time"


def test_a_recording_keeps_the_first_rounds_that_fit() -> None:
    few = rounds_of(5)
    packed, count = recorded_rounds.pack(few)
    assert count == 5 and recorded_rounds.unpack(packed) == "".join(
        line for one in few for line in recorded_rounds.round_lines(one)
    )
    many = rounds_of(2000)
    packed, count = recorded_rounds.pack(many)
    assert 0.8 * recorded_rounds.MOST_BYTES < len(packed) <= recorded_rounds.MOST_BYTES and 0 < count < 2000
    assert recorded_rounds.unpack(packed) == "".join(
        line for one in many[:count] for line in recorded_rounds.round_lines(one)
    )
    huge = replace(
        few[0],
        tokens=(replace(few[0].tokens[0], text="".join(random.Random(1).choices("abcdefghij", k=100_000))),),
    )
    assert recorded_rounds.pack([huge])[1] == 0


# the table
# ------------------------------------------------------------------------------------------------------------


def test_a_recording_comes_back_to_its_own_session_only(store: Store) -> None:
    store.record_request(record(count=2000))
    (one,) = kept(store)
    found = store.recording(one, session="mine")
    assert (
        found is not None
        and found["rounds"] == 2000
        and 0 < found["kept"] < 2000
        and found["prompt"] == "Hello"
    )
    lines = parse(found["lines"])
    assert sum(line["k"] == "r" for line in lines) == found["kept"]
    assert store.recording(one, session="other") is None and store.recording(one, session="") is None
    assert store.recording(one + 1, session="mine") is None

    def services(visitor: str) -> Any:
        own = VisitorStore(store, Caller(visitor))
        return SimpleNamespace(store=own, settings=Settings(host="0.0.0.0"), methods=lambda: [], session="")

    me, other = services("mine"), services("other")
    store.record_request(record(Caller("mine").own))
    _, one = kept(store)
    assert replay_data.recall(me, one)["prompt"] == "Hello"
    for visitor, wanted in ((other, one), (services(""), one), (me, "1"), (me, None), (me, one + 1)):
        with pytest.raises(ValueError, match="not kept any more"):
            replay_data.recall(visitor, wanted)
    assert [row["replay"] for row in history_tab.table(me, {})["rows"]] == [True]
    assert history_tab.table(other, {})["rows"] == []


def test_only_chats_with_their_text_are_recorded(store: Store) -> None:
    store.start_session("private", keep=False)
    for one in (
        record("private"),
        record(prompt=None),
        record(kind="traffic"),
        record(kind="api"),
        record(count=0),
    ):
        store.record_request(one)
    assert kept(store) == [] and row_counts(store)["recordings"] == 0 and len(store.requests()) == 4


def test_the_newest_fifty_of_a_session_stay(store: Store) -> None:
    store.record_request(record("other"))
    for _ in range(recordings.MOST_ANSWERS + 7):
        store.record_request(record())
    ids = kept(store)
    newest = sorted(row["id"] for row in store.requests(session="mine", limit=recordings.MOST_ANSWERS))
    assert ids[1:] == newest and store.recording(ids[0], session="other") is not None
    assert len(store.requests(limit=None)) == recordings.MOST_ANSWERS + 8, "the requests themselves stay"


def test_a_recording_goes_with_its_request_and_its_session(store: Store) -> None:
    for session in ("mine", "mine", "other"):
        store.record_request(record(session))
    first, second, third = kept(store)
    assert store.delete_requests([first]) == 1 and kept(store) == [second, third]
    assert (
        store.delete_session("mine") == 1 and kept(store) == [third] and row_counts(store)["recordings"] == 1
    )


# beside an answer
# --------------------------------------------------------------------------------------------------------


@pytest.fixture
def services(tmp_path: Path, models: tuple[str, str]) -> Iterator[Services]:
    made = Services(
        Settings(
            storage=tmp_path / "storage",
            training="inline",
            update_interval=2,
            steps_per_update=2,
            lora_rank=4,
        )
    )
    assert ready(made, models).stage == "ready"
    yield made
    made.close()


def test_an_answer_is_recorded_as_it_was_written(services: Services, models: tuple[str, str]) -> None:
    # the policy "cost" guesses nothing where that does not pay
    rounds, last = chat(services, models, draft_policy="fixed", draft_length=4)
    (one,) = kept(services.store)
    found = services.store.recording(one, session="s")
    assert found is not None
    lines = parse(found["lines"])
    assert "".join(line["t"] for line in lines if line["k"] == "t") == last.text
    assert sum(line["k"] == "x" for line in lines) == sum(len(one.discarded) for one in rounds) > 0
    timed = [sum(line["s"]) for line in lines if line["k"] == "r"]
    assert len(timed) == len(rounds) and sum(timed) == pytest.approx(
        1e6 * sum(one.seconds["total"] for one in rounds), rel=0.02
    )
    assert found["metrics"]["seconds"] == pytest.approx(sum(one.seconds["total"] for one in rounds))


def test_runs_beside_an_answer_leave_no_trace(services: Services, models: tuple[str, str]) -> None:
    _, answer = chat(services, models)
    pair = services.pair(*models)
    known, clock, grams = pair._line("default").cost_model.rounds, pair.ngrams.clock, len(pair.ngrams)
    seen = services.adaptation.trainer(*models).requests_seen
    asked = {"target": models[0], "drafter": models[1], "message": "the small duck", "tokens": 30}
    (plain,) = replay_data.beside(public_services(services), {"kind": "plain", **asked})["lanes"]
    lines = parse(plain["lines"])
    assert "".join(line["t"] for line in lines if line["k"] == "t") == answer.text
    assert {line["s"] for line in lines if line["k"] == "t"} == {"plain"} and sum(
        line["k"] == "r" for line in lines
    ) == 30
    services.chats.race(
        target=models[0], drafter=models[1], messages=[{"role": "user", "content": "the small duck"}],
        methods=[FRESH, TODAY], seconds=20.0, max_new_tokens=30, domain="default",
    )  # fmt: skip
    assert pair._line("default").cost_model.rounds == known and pair._line(FRESH_LINE).cost_model.rounds == 0
    assert (
        pair.ngrams.clock == clock
        and len(pair.ngrams) == grams
        and services.adaptation.trainer(*models).requests_seen == seen
    )
    assert services.store.flush() and len(services.store.requests()) == 1 and len(kept(services.store)) == 1


def test_before_is_the_base_drafter_and_after_is_todays(services: Services, models: tuple[str, str]) -> None:
    for number in range(2):
        chat(services, models, f"duck number {number}")
    pair, version = services.pair(*models), services.adaptation.trainer(*models).version
    assert version > 0
    (before, *_), (after, *_) = services.chats.race(
        target=models[0], drafter=models[1], messages=[{"role": "user", "content": "duck number 3"}],
        methods=[FRESH, TODAY], seconds=20.0, max_new_tokens=20, domain="default", temperature=0.0,
    )  # fmt: skip
    assert (before.adapter_version, after.adapter_version) == (
        0,
        version,
    ) and before.token_ids == after.token_ids
    assert before.method == after.method == TODAY
    assert pair._line(FRESH_LINE).runner is pair.drafter.runner


def test_a_task_is_raced_against_what_it_was_on_an_input_that_neither_has_seen(
    services: Services, models: tuple[str, str]
) -> None:
    names = {"target": models[0], "drafter": models[1]}
    task = {"task": "own", "lines": "the small duck\nthe other duck\nthe third duck", "first": 2}
    public = public_services(services)
    with pytest.raises(ValueError, match="no answer of this line yet"):
        replay_data.former(public, names | {"task": task})
    assert "own" not in [line.domain for line in services.adaptation.lines(*models)]
    done = services.tasks.repeat(session="s", **names, task=task_rows.asked_task(task), count=2)
    answers = [one for one in done if isinstance(one, Repeated)]
    shown = replay_data.former(public, names | {"task": task})
    then, now = shown["lanes"]
    assert shown["input"] == "the third duck" and len(answers) == 2
    texts = ["".join(line["t"] for line in parse(lane["lines"]) if line["k"] == "t") for lane in (then, now)]
    assert texts[0] == texts[1] != ""
    assert (then["version"], now["version"] > 0) == (0, True)
    assert all(len(lane["seconds"]) == lane["runs"] and min(lane["seconds"]) > 0 for lane in (then, now))
    again = replay_data.former(public, names | {"task": task | {"first": 0}})["lanes"]
    steps = [sum(line["k"] == "r" for line in parse(lane["lines"])) for lane in again]
    assert steps[1] < steps[0], "the line of now copies from its own answers, the other one has none"
    assert len(services.store.requests()) == 2, "the race is not stored"


def test_a_run_beside_gives_way_to_an_answer(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, sizes = services.pair(*models), list[int]()
    visitor, generate = pair.stream("the duck", max_new_tokens=400, learn=False), pair.generate

    def watched(prompt: Any, **options: Any) -> Generation:
        measured = options["max_new_tokens"] > WARM_UP
        if measured and not sizes:
            next(visitor)  # somebody asks while the run is on its way
        made = generate(prompt, **options)
        if measured:
            visitor.close()
            sizes.append(len(made.token_ids))
        return made

    monkeypatch.setattr(pair, "generate", watched)
    messages = [{"role": "user", "content": "duck"}]
    (made,) = services.chats.race(
        target=models[0], drafter=models[1], messages=messages, methods=["autoregressive"], seconds=5.0,
        temperature=0.0, max_new_tokens=60,
    )  # fmt: skip
    assert sizes[0] < 60 and sizes[1:] == [len(one.token_ids) for one in made], (
        "given up at its next round, made again when it was quiet"
    )
    assert set(sizes[1:]) == {60} and len(made) <= RUNS
    lane = replay_data.lane(made)
    middle = sum(float(each) for line in parse(lane["lines"]) if line["k"] == "r" for each in line["s"]) / 1e6
    quicker = sum(one < 0.98 * middle for one in lane["seconds"])
    assert quicker <= (len(made) - 1) // 2, "the middle one is shown: a slow spell must not decide"
