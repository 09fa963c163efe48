"""The services over a pair of small models: loading, chats that are recorded and learned from, restarts,
backups."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import GREEDY, SAMPLING, GenerationConfig, Manner, Settings
from omnidemo.core.records import Generation
from omnidemo.decoding.sources.text_index import BREAK
from omnidemo.learning.lines.router import Route, Router
from omnidemo.models.model_files import TooLarge
from omnidemo.pair.pair import Pair
from omnidemo.serving import gc_pauses, pair_pool
from omnidemo.serving.pair_loading import build_measured_pair, build_pair
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.services import Services
from omnidemo.storage.database import Database
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import KEY, Visitors
from tests.support.chats import chat, ready

settle = gc_pauses.settle


@pytest.fixture
def services(tmp_path: Path, quick_loads: None) -> Iterator[Services]:
    made = Services(
        Settings(
            storage=tmp_path / "storage",
            training="inline",
            update_interval=2,
            steps_per_update=2,
            lora_rank=4,
        )
    )
    yield made
    made.close()


def test_a_change_over_is_of_the_settings_unless_the_new_target_cannot_be_loaded(
    services: Services, models: tuple[str, str], tmp_path: Path
) -> None:
    before = services.settings.target, services.settings.drafter
    (tmp_path / "empty").mkdir()
    services.change_over(str(tmp_path / "empty"))
    until = time.monotonic() + 60
    while (services.settings.target, services.settings.drafter) != before and time.monotonic() < until:
        time.sleep(0.02)
    assert (services.settings.target, services.settings.drafter) == before and not services.pool.former
    assert services.change_over(models[0]) == (models[0], services.settings.drafter)
    assert services.settings.target == models[0] and services.pool.former == [before]
    assert ready(services, (models[0], services.settings.drafter)).stage == "ready"
    assert services.settings.target == models[0]


def test_a_chat_is_recorded_learned_from_and_there_after_a_restart(
    services: Services, models: tuple[str, str]
) -> None:
    assert ready(services, models).stage == "ready"
    for number in range(4):
        rounds, last = chat(services, models, f"duck number {number}")
        assert "".join(r.text for r in rounds) == last.text
    assert services.adaptation.trainer(*models).version == 2
    pair = services.pair(*models)
    grams = sorted(entry.target_id for entry in pair.ngrams)
    services.close()
    again = Services(services.settings)
    try:
        ready(again, models)
        assert again.adaptation.trainer(*models).version == 2
        assert sorted(entry.target_id for entry in again.pair(*models).ngrams) == grams and grams
        rows = again.store.requests(session="s")
        assert len(rows) == 4 and rows[0]["prompt"] == "duck number 3"
        assert [row["adapter_version"] for row in again.store.curve(*models)] == [0, 0, 1, 1]
        assert again.store.steps(*models)
        _, last = chat(again, models)
        assert last.adapter_version == 2
    finally:
        again.close()


def test_opting_out_leaves_nothing_behind(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    for _ in range(3):
        chat(services, models, "a secret", session="private", keep=False, learn=False)
    assert services.store.flush()
    assert (
        services.store.requests() == []
        and services.adaptation.trainer(*models).requests_seen == 0
        and not len(services.pair(*models).ngrams)
    )


def test_the_end_of_an_answer_waits_for_a_slow_disk(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Database._write

    def slowly(database: Database, batch: list[Any]) -> bool:
        time.sleep(0.4 if batch else 0.0)
        return write(database, batch)

    ready(services, models)
    monkeypatch.setattr(Database, "_write", slowly)
    chat(services, models)
    assert len(services.store.requests()) == 1


def test_a_broken_database_does_not_reach_the_chat(
    tmp_path: Path, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch, quick_loads: None
) -> None:
    (tmp_path / "storage").write_text("a file where the folder should be")
    services = Services(Settings(storage=tmp_path / "storage", training="off"))
    try:
        assert ready(services, models).stage == "ready"
        _, last = chat(services, models)
        assert len(last.token_ids) == 30 and not services.store.status.ok and services.store.status.message
    finally:
        flush = services.store.flush
        # what waits cannot be written, however long one waits
        monkeypatch.setattr(services.store, "flush", lambda: flush(0.2))
        services.close()


def test_stopping_keeps_the_partial_answer_and_its_record(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    cancel = threading.Event()
    stream = services.chats.chat(
        session="s", target=models[0], drafter=models[1], messages=[{"role": "user", "content": "duck"}],
        method="autoregressive",
        max_new_tokens=100, temperature=0.0, cancel=cancel,
    )  # fmt: skip
    next(stream)
    cancel.set()
    *_, last = stream
    assert isinstance(last, Generation) and last.finish_reason == "cancelled" and len(last.token_ids) < 100
    assert services.store.flush() and len(services.store.requests()) == 1


def test_who_stops_while_waiting_gets_no_round_and_no_row(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    cancel = threading.Event()
    cancel.set()
    rounds, last = chat(services, models, cancel=cancel)
    assert (
        not rounds and last.finish_reason == "cancelled" and last.text == "" and last.metrics["tokens"] == 0
    )
    assert services.store.flush() and services.store.requests() == [] and services.store.sessions() == []


def test_one_client_that_opts_out_loses_no_answer_of_another(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    messages = [{"role": "user", "content": "duck"}]
    stream = services.chats.chat(
        session="api",
        target=models[0],
        drafter=models[1],
        messages=messages,
        method="ngram-exact",
        max_new_tokens=60,
        temperature=0.0,
    )
    next(stream)
    chat(services, models, "a secret", session="api", keep=False)
    *_, last = stream
    assert isinstance(last, Generation) and services.store.flush()
    assert [row["prompt"] for row in services.store.requests()] == ["duck"]


MANNER = Manner(0.7, 0.9, 40, 0.05, 1.2)


def test_a_chat_that_says_nothing_is_written_recorded_and_learned_from_in_the_targets_manner(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)
    pair, traces = services.pair(*models), list[Any]()
    monkeypatch.setattr(pair, "target", replace(pair.target, manner=MANNER))
    pair.learners.append(traces.append)
    nothing = dict.fromkeys(SAMPLING)
    _, own = chat(services, models, seed=1, **nothing)
    _, given = chat(services, models, seed=1, **MANNER.options)
    chat(services, models, seed=1, **nothing | {"temperature": 0.0, "top_k": 0})
    assert own.token_ids == given.token_ids and services.manner(*models) == MANNER and services.store.flush()
    rows = [row["settings"] for row in reversed(services.store.requests())]
    assert {row["conditions"] for row in rows} == {own.conditions} == {services.pool.conditions(*models)}
    assert [{name: row[name] for name in SAMPLING} for row in rows] == [
        MANNER.options, MANNER.options, MANNER.options | {"temperature": 0.0, "top_k": 0}
    ]  # fmt: skip
    assert [trace.temperature for trace in traces] == [0.7, 0.7, 0.0]
    assert [row["temperature"] for row in services.store.curve(*models)] == [
        0.7,
        0.7,
        0.0,
    ], "figures are compared among equals"


def test_repetitions_and_comparisons_are_in_the_targets_manner_but_for_what_they_are_given(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)
    pair, asked = services.pair(*models), list[GenerationConfig]()
    monkeypatch.setattr(pair, "target", replace(pair.target, manner=MANNER))
    ask = pair.asked
    monkeypatch.setattr(pair, "asked", lambda **options: asked.append(ask(**options)) or asked[-1])

    def used() -> list[dict[str, float]]:
        found = [{name: getattr(one, name) for name in SAMPLING} for one in asked]
        asked.clear()
        return [one for place, one in enumerate(found) if one not in found[:place]]

    pairs = {"target": models[0], "drafter": models[1]}
    messages = [{"role": "user", "content": "duck"}]
    alone = {"messages": messages, "methods": ["autoregressive"], "seconds": 0.0, "max_new_tokens": 8}
    services.chats.race(**pairs, **alone)
    assert used() == [MANNER.options]
    services.chats.race(**pairs, **alone, **GREEDY.options)
    assert used() == [GREEDY.options]
    compared = {"prompts": ["duck"], "methods": ["autoregressive"], "max_new_tokens": 8}
    list(services.chats.compare(**pairs, **compared, temperature=0.5))
    assert used() == [MANNER.options | {"temperature": heat} for heat in (0.5, 0.0)], (
        "the n-grams are met at temperature 0"
    )
    list(services.chats.compare(**pairs, **compared, **GREEDY.options))
    assert used() == [GREEDY.options]


def test_measurements_ask_for_no_manner(models: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a benchmark does not ask for is off, also with a target that would sample; recordings are
    greedy."""
    monkeypatch.setattr("omnidemo.models.folder_model.read_manner", lambda *given: MANNER)
    settings = Settings(device="cpu", backend="reference", max_new_tokens=12)
    pair = build_measured_pair(*models, settings)
    assert pair.target.manner == GREEDY and build_pair(*models, settings).target.manner == MANNER
    greedy = pair.generate("the small duck", max_new_tokens=12, method="autoregressive", reuse=False)
    kept = build_pair(*models, settings).record(pair.prompt_ids("the small duck"), 12, lambda: False)
    assert kept is not None and kept[0] == greedy.token_ids


def test_the_time_to_the_first_token_begins_with_the_request(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)
    route = services.adaptation.router.route
    monkeypatch.setattr(
        services.adaptation.router, "route", lambda prompt: (time.sleep(0.2), route(prompt))[1]
    )
    _, last = chat(services, models)
    assert (last.metrics["time_to_first_token"] or 0) > 0.2
    assert (
        services.store.flush()
        and services.store.requests()[0]["time_to_first_token"] == last.metrics["time_to_first_token"]
    )


def test_a_pair_that_is_too_many_is_gone_before_the_next_is_built(
    tmp_path: Path, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_pool, "PAIRS_LOADED", 1)
    monkeypatch.setattr(gc_pauses, "settle", settle)  # as it is, not as in the other tests
    seen: list[weakref.ref[Pair]] = []
    left: list[int] = []

    def build(*args: Any) -> Pair:
        left.append(sum(one() is not None for one in seen))
        made = build_pair(*args)
        seen.append(weakref.ref(made))
        return made

    store = Store(f"sqlite:///{tmp_path / 'test.db'}")
    pool = PairPool(Settings(storage=tmp_path / "storage", training="off"), store, build=build)
    try:
        for count in range(pair_pool.PAIRS_LOADED + 1):
            target = models[0] + "/" * count  # another name of the same folder
            pool.load(target, models[1])
            while pool.state(target, models[1]).stage not in ("ready", "failed"):
                time.sleep(0.02)
            assert pool.state(target, models[1]).error is None
        assert left == [*range(pair_pool.PAIRS_LOADED), pair_pool.PAIRS_LOADED - 1]
    finally:
        pool.close()
        store.close()


def test_what_is_there_answers_until_another_pair_is_ready(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert services.pool.state(*models).meanwhile is None and services.pool.load(*models).meanwhile is None
    ready(services, models)
    other, free = (models[0] + "/", models[1]), threading.Event()  # another name of the same folder
    build = services.pool._build
    monkeypatch.setattr(services.pool, "_build", lambda *args: (free.wait(60), build(*args))[1])
    loading = services.pool.load(*other)
    assert loading.stage != "ready" and loading.meanwhile == models
    _, last = chat(services, models)
    assert last.text and services.pool.state(*other).stage != "ready"
    free.set()
    assert ready(services, other).meanwhile is None and chat(services, other)[1].text == last.text


@pytest.mark.parametrize(("pairs", "left"), [(0.5, [1]), (1.5, []), (2.5, [0, 1])])
def test_pairs_that_nobody_uses_make_room_where_that_is_enough(
    pairs: float, left: list[int], tmp_path: Path, models: tuple[str, str]
) -> None:
    """The one unused for longest goes first, and none in vain. `pairs`: of how many the bytes are missing."""
    names, sizes = [(models[0] + "/" * count, models[1]) for count in range(3)], list[int]()

    def build(target: str, *args: Any) -> Pair:
        if len(sizes) == 2:
            sizes.append(0)
            raise TooLarge("it needs more memory than is free", pairs * sizes[0])
        made = build_pair(target, *args)
        sizes.append(made.target.memory_bytes + made.drafter.memory_bytes)
        return made

    store = Store(f"sqlite:///{tmp_path / 'test.db'}")
    pool = PairPool(Settings(storage=tmp_path / "storage", training="off"), store, build=build)
    try:
        for one in names:
            pool.load(*one)
            while pool.state(*one).stage not in ("ready", "failed"):
                time.sleep(0.02)
        assert [count for count in (0, 1) if pool.state(*names[count]).stage == "ready"] == left
        last = pool.state(*names[2])
        assert (last.stage, last.meanwhile) == (("failed", names[1]) if len(left) == 2 else ("ready", None))
    finally:
        pool.close()
        store.close()


def test_whoever_closes_a_page_waits_for_no_row(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)
    messages = [{"role": "user", "content": "duck"}]
    stream = services.chats.chat(
        session="s",
        target=models[0],
        drafter=models[1],
        messages=messages,
        method="ngram-exact",
        max_new_tokens=100,
        temperature=0.0,
    )
    next(stream)
    write, free = Database._write, threading.Event()
    monkeypatch.setattr(
        Database, "_write", lambda database, batch: (free.wait(60), write(database, batch))[1]
    )
    stream.close()  # type: ignore[attr-defined]
    assert services.store.status.pending and services.store.requests() == []
    free.set()
    assert services.store.flush() and len(services.store.requests()) == 1


def test_a_model_that_is_not_there_says_so_and_can_be_tried_again(services: Services, tmp_path: Path) -> None:
    missing = (str(tmp_path / "nowhere"), "bundled/drafter")
    state = ready(services, missing)
    assert state.stage == "failed" and "nowhere" in (state.error or "")
    with pytest.raises(RuntimeError, match="nowhere"):
        services.pair(*missing)
    assert ready(services, missing).stage == "failed"  # it was tried again, and the app still runs


def test_reset_goes_back_to_the_base_drafter(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    for number in range(2):
        chat(services, models, f"duck {number}")
    assert services.adaptation.trainer(*models).version == 1
    services.adaptation.reset(*models, " default ")  # as somebody types it
    _, last = chat(services, models, learn=False)
    assert last.adapter_version == 0 and not len(services.pair(*models).ngrams) and services.store.requests()


def test_what_is_copied_from_goes_with_a_reset_and_with_the_history(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    copies = services.pair(*models).copies
    for options in ({"learn": False}, {"keep": False}):
        chat(services, models, "duck", **options)
        assert not copies.nbytes, (
            "of an answer that is not learned from, or not stored, nothing is remembered"
        )
    for forget in (
        lambda: services.adaptation.reset(*models),
        services.forget_copies,
        lambda: services.forget_copies("default"),
    ):
        chat(services, models, "duck")
        assert copies.nbytes
        forget()
        assert not copies.nbytes
    chat(services, models, "duck")
    services.forget_copies("~visitor-somebody")
    assert copies.nbytes, "those of another line stay"


def copied_from(services: Services, models: tuple[str, str], domain: str = "default") -> list[str]:
    """The texts that a line copies from, when those that are stored have been brought back."""
    pair = services.pair(*models)
    with pair._lock:
        pair.copies.of(domain)
    for _ in range(200):
        if not any(thread.name == "stored answers" for thread in threading.enumerate()):
            break
        time.sleep(0.02)
    with pair._lock:
        text = pair.copies.of(domain)
        ids = [] if text is None else list(text.ids)
    texts, at = list[str](), 0
    while BREAK in ids[at:]:
        end = ids.index(BREAK, at)
        texts.append(pair.map.target.text_bytes(ids[at:end]).decode(errors="replace"))
        at = end + 1
    return texts


def test_stored_answers_are_copied_from_after_a_restart(services: Services, models: tuple[str, str]) -> None:
    """Newest first as far as there is room, of its own line alone, and nothing that was not to be remembered,
    or was reset or deleted."""
    ready(services, models)
    answers = [chat(services, models, f"duck {number}")[1].text for number in range(3)]
    chat(services, models, "not learned", learn=False)
    chat(services, models, "not stored", keep=False)
    other = chat(services, models, "of another line", domain="~visitor-somebody")[1].text
    live = copied_from(services, models)
    services.close()
    again = Services(services.settings)
    try:
        ready(again, models)
        found = copied_from(again, models)
        assert len(found) == 3 and all(
            text.endswith(answer) for text, answer in zip(found, answers, strict=True)
        )
        assert [text[-60:] for text in found] == [text[-60:] for text in live], "as they were before"
        theirs = copied_from(again, models, "~visitor-somebody")
        assert len(theirs) == 1 and theirs[0].endswith(other)
        newest = again.store.requests(limit=None)
        again.store.delete_requests([row["id"] for row in newest if row["prompt"] == "duck 1"])
        again.forget_copies()
        assert len(copied_from(again, models)) == 2, "those that were not deleted come back"
        again.adaptation.reset(*models)
        assert copied_from(again, models) == [] and len(again.store.requests()) == 4, (
            "after a reset none does, and the history stays"
        )
        assert len(copied_from(again, models, "~visitor-somebody")) == 1
    finally:
        again.close()


def test_a_backup_brings_everything_back_on_an_empty_disk(
    tmp_path: Path, models: tuple[str, str], quick_loads: None
) -> None:
    options = {
        "training": "inline",
        "update_interval": 1,
        "steps_per_update": 1,
        "lora_rank": 4,
        "backup": str(tmp_path / "data"),
    }
    first = Services(Settings(storage=tmp_path / "one", **options))  # type: ignore[arg-type]
    ready(first, models)
    chat(first, models)
    visitor = Visitors(tmp_path / "one").issue()
    first.close()
    second = Services(Settings(storage=tmp_path / "two", **options))  # type: ignore[arg-type]
    assert (tmp_path / "two" / KEY).stat().st_mode & 0o777 == 0o600
    assert Visitors(tmp_path / "two").name(visitor) == Visitors(tmp_path / "one").name(visitor) != ""
    try:
        ready(second, models)
        assert second.adaptation.trainer(*models).version == 1 and len(second.store.requests()) == 1
    finally:
        second.close()


# --- topic lines --------------------------------------------------------------------------------------------


def test_a_line_chosen_by_hand_learns_alone_and_teaches_the_router(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    for _ in range(2):
        _, last = chat(services, models, "a duck counts ducks", domain="ducks")
    assert last.domain == "ducks" and last.topic_why and services.store.flush()
    noted = services.store.requests()[0]["settings"]
    assert (noted["route_confidence"], noted["route_why"]) == (1.0, "Chosen by hand.")
    assert (
        services.adaptation.trainer(*models, "ducks").version == 1
        and services.adaptation.trainer(*models).version == 0
    )
    _, last = chat(services, models, domain="ducks", learn=False)
    assert last.adapter_version == 1
    _, last = chat(services, models, learn=False)
    assert (last.domain, last.adapter_version) == ("default", 0)
    assert [(line.domain, line.version, line.in_memory) for line in services.adaptation.lines(*models)] == [
        ("default", 0, True),
        ("ducks", 1, True),
    ]
    assert services.adaptation.router.route("ducks count a duck").domain == "ducks"


def test_the_prompt_chooses_a_line_and_the_history_says_why(
    services: Services, models: tuple[str, str]
) -> None:
    ready(services, models)
    for text, domain in (
        ("how many apples are left", "sums"),
        ("a song about the rain", "songs"),
        ("how many pears", "sums"),
    ):
        chat(services, models, text, domain=domain)
    _, last = chat(services, models, "how many apples and pears", domain="auto")
    assert last.domain == "sums"
    _, last = chat(services, models, "zzz", domain="auto")
    assert last.domain == "default"
    assert services.store.flush()
    newest, second, *_ = services.store.requests()
    assert (newest["domain"], second["domain"]) == ("default", "sums")
    assert "sums" in second["settings"]["route_why"] and second["settings"]["route_confidence"] > 0.5
    assert [row["domain"] for row in services.store.curve(*models)] == [
        "sums",
        "songs",
        "sums",
        "sums",
        "default",
    ]


def test_a_follow_up_stays_in_the_line_of_its_chat(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    chat(services, models, "how many apples are left", domain="sums")
    chat(services, models, "a song about the rain", domain="songs")
    turns = ["how many apples", "six", "zzz?"]
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(turns)
    ]
    _, last = chat(services, models, messages=messages, domain="auto", max_new_tokens=8)
    assert last.domain == "sums"


def test_who_opted_out_teaches_neither_line_nor_router(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    for _ in range(3):
        _, last = chat(services, models, "my secret plan", domain="plans", learn=False, keep=False)
    assert last.domain == "plans"
    assert services.adaptation.trainer(*models, "plans").requests_seen == 0
    assert services.adaptation.router.route("my secret plan").domain != "plans"
    assert "plans" not in services.adaptation.router.domains()


def test_every_answer_has_a_topic_and_the_line_stays_one(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    _, last = chat(services, models, "Write a Python function that doubles a number.")
    assert (last.domain, last.topic) == ("default", "code") and last.topic_why
    assert chat(services, models, "zzz qqq")[1].topic == "other"
    assert services.store.flush()
    rows = services.store.requests()[::-1]
    assert [row["topic"] for row in rows] == ["code", "other"]
    assert [row["topic"] for row in services.store.curve(*models)] == ["code", "other"]
    assert all(
        row["policy"].startswith("cost") and row["temperature"] == 0.0
        for row in services.store.curve(*models)
    )


def test_a_seed_repeats_an_answer_on_the_page_too(services: Services, models: tuple[str, str]) -> None:
    """Drafts follow measured times and what was learned; the text does not. Where no seed is given, the
    answer names its own."""
    ready(services, models)
    _, first = chat(services, models, seed=7, temperature=1.0)
    _, drawn = chat(services, models, temperature=1.0)
    settings = services.store.requests(limit=1)[0]["settings"]
    assert settings["draft_policy"] == "cost" and settings["seed"] == drawn.seed is not None
    for seed, wanted in ((7, first), (drawn.seed, drawn)):
        for method in ("ngram-exact", "autoregressive"):
            _, again = chat(services, models, seed=seed, temperature=1.0, method=method)
            assert again.token_ids == wanted.token_ids and again.seed == seed
    assert first.token_ids != drawn.token_ids and chat(services, models, temperature=0.0)[1].seed is None


def test_the_reason_of_a_route_is_not_kept_where_prompts_are_not(
    tmp_path: Path, models: tuple[str, str], quick_loads: None
) -> None:
    services = Services(Settings(storage=tmp_path, training="off", keep_text=False))
    try:
        ready(services, models)
        chat(services, models, "how many apples are left", domain="auto")
        assert services.store.flush()
        (row,) = services.store.requests()
        assert row["prompt"] is None and row["settings"]["route_why"] is None
    finally:
        services.close()


def test_a_router_that_fails_stops_no_answer(
    services: Services, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(services, models)

    def fails(*_: object) -> Route:
        raise RuntimeError("broken")

    monkeypatch.setattr(Router, "route", fails)
    monkeypatch.setattr(Router, "teach", fails)
    _, last = chat(services, models, domain="auto")
    assert last.domain == "default" and len(last.token_ids) == 30
    _, last = chat(services, models, domain="ducks")
    assert last.domain == "ducks" and len(last.token_ids) == 30
    assert last.topic == "other"


def test_routing_and_lines_survive_a_restart_and_a_backup(
    tmp_path: Path, models: tuple[str, str], quick_loads: None
) -> None:
    options = {
        "training": "inline",
        "update_interval": 1,
        "steps_per_update": 1,
        "lora_rank": 4,
        "backup": str(tmp_path / "data"),
    }
    first = Services(Settings(storage=tmp_path / "one", **options))  # type: ignore[arg-type]
    ready(first, models)
    chat(first, models, "a duck counts ducks", domain="ducks")
    first.close()
    second = Services(Settings(storage=tmp_path / "two", **options))  # type: ignore[arg-type]
    try:
        ready(second, models)
        known = [(line.domain, line.version, line.in_memory) for line in second.adaptation.lines(*models)]
        assert known == [("default", 0, True), ("ducks", 1, False)]
        assert "ducks" in second.adaptation.router.domains()
        assert chat(second, models, "duck", domain="ducks", learn=False)[1].adapter_version == 1
    finally:
        second.close()


# --- settings while it runs ---------------------------------------------------------------------------------


def test_adaptable_settings_change_for_chats_and_lines(services: Services, models: tuple[str, str]) -> None:
    ready(services, models)
    services.adaptation.configure(
        draft_policy="fixed", draft_length=2, update_interval=1, domain="ducks", divergence="reverse"
    )
    rounds, last = chat(services, models)
    assert max(done.draft_length for done in rounds) == 2 and last.domain == "ducks"
    assert services.adaptation.trainer(*models, "ducks").version == 1
    assert services.settings.divergence == "reverse"
    rounds, _ = chat(services, models, draft_length=0)
    assert all(done.draft_length == 0 for done in rounds)
    services.adaptation.configure(training="off")
    chat(services, models)
    assert (
        services.adaptation.trainer(*models, "ducks").state == "off"
        and services.adaptation.trainer(*models, "ducks").requests_seen == 2
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learning_rate": -1}, "learning_rate"),
        ({"learning_rate": float("inf")}, "finite"),
        ({"learning_rate": "inf"}, "finite"),
        ({"lora_rank": "20000"}, "less than or equal to 1024"),
        ({"steps_per_update": "501"}, "at most 500"),
        ({"learning_rate": "0.5"}, "at most 0.1"),
        ({"patience": "nan"}, "finite"),
        ({"batch_size": [8]}, "batch_size"),
        ({"learning_rate": 0.5}, "at most 0.1"),
        ({"steps_per_update": 10**6}, "at most 500"),
        ({"lora_rank": 100_000}, "less than or equal to 1024"),
        ({"update_interval": 0}, "it should be greater than or equal to 1"),
        ({"draft_policy": "guess"}, "draft_policy"),
        ({"storage": "/elsewhere"}, "storage cannot be changed"),
        ({"self": 1, "target": "x"}, "self, target cannot be changed"),
        ({"domain": "\n"}, "topic line's name"),
        ({"draft_length": 2, "gamma": 1.0}, "gamma"),
    ],
)
def test_a_setting_that_is_not_possible_changes_nothing(
    services: Services, changes: dict[str, object], said: str
) -> None:
    before = services.settings
    with pytest.raises(ValueError, match=said):
        services.adaptation.configure(**changes)
    assert services.settings == before


def test_a_pair_says_how_it_drafts(services: Services, models: tuple[str, str]) -> None:
    with pytest.raises(RuntimeError, match="is not loaded"):
        services.adaptation.drafting(*models)
    ready(services, models)
    chat(services, models)
    told = services.adaptation.drafting(*models)
    assert told.policy == "cost" and not told.untrained
    assert services.adaptation.trainer("nobody", models[1]).state == "off"
