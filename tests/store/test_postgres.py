"""What is PostgreSQL's own: several machines that share a database and no folder, text that it refuses, a
server that dies and returns."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from lab.torture.databases import PostgresServer
from omnidemo.core.config import Settings
from omnidemo.core.records import NgramEntry
from omnidemo.models.adapters import version_folders
from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState
from omnidemo.serving.services import Services
from omnidemo.storage import connections
from omnidemo.storage.postgres import with_driver
from omnidemo.storage.store import Store
from omnidemo.storage.version_store import VersionStore
from omnidemo.storage.visitors import KEY, Visitors
from tests.store.test_store import PAIR, record, version, wait_for
from tests.support.chats import chat, ready
from tests.support.models import save
from tests.support.row_counts import row_counts
from tests.support.store_lives import Forker

ODD = "a\x00b\ud800c"
TARGET, DRAFTER = PAIR


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    one = Store(url, retry_seconds=0.1)
    assert one.status.ok, one.status.message
    yield one
    one.close()


def test_an_address_without_a_driver_means_psycopg() -> None:
    for given in ("postgres://u:p@h/db", "postgresql://u:p@h/db"):
        assert (
            with_driver(connections.make_url(given)).render_as_string(False)
            == "postgresql+psycopg://u:p@h/db"
        )
    assert with_driver(connections.make_url("postgresql+pg8000://h/db")).drivername == "postgresql+pg8000"


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    store = Store("postgresql://u:secret@127.0.0.1:1/x", retry_seconds=0.1)
    store.close()
    assert "requirements-scale.txt" in store.status.message and "secret" not in store.status.message


def test_processes_upgrade_an_empty_database_once(postgres_server: PostgresServer, lives: Forker) -> None:
    for _ in range(4):
        lives.say("open", 2, postgres_server.database())  # at the same moment, as far as that can be had
        assert [lives.hear() for _ in range(3)] == ["True", "True", "gone"]


def test_no_text_is_refused_wherever_it_stands(store: Store, tmp_path: Path) -> None:
    long = "x" * 1000
    made = replace(
        record(f"s{ODD}", prompt=ODD, answer=ODD, method=f"m{ODD}", target=long),
        topic=ODD,
        settings={"stop": [ODD]},
    )
    store.start_session(f"s{ODD}")
    store.record_request(made)
    assert store.flush() and store.status.lost == 0
    # compared with what was made of it
    (row,) = store.requests(session=f"s{ODD}", method=f"m{ODD}", target=long)
    assert (row["prompt"], row["session"], row["target"], row["settings"]) == (
        "a?b?c",
        "sa?b?c",
        long,
        {"stop": [ODD]},
    )
    assert store.export_csv("requests", tmp_path / "out.csv", session=f"s{ODD}") == 1
    assert pd.read_csv(tmp_path / "out.csv")["prompt"].tolist() == ["a?b?c"]
    assert store.delete_session(f"s{ODD}") == 1 and store.requests() == []


def test_ngrams_and_sessions_of_several_writers_meet(url: str, store: Store) -> None:
    others = [Store(url) for _ in range(3)]

    def work(one: Store) -> None:
        for index in range(20):
            one.start_session("together")
            one.record_request(record("together"))
            one.save_ngrams(
                *PAIR, [NgramEntry(index, (1, 2), 0, 0, 0, 0), NgramEntry(99 - index, (1, 2), 0, 0, 0, 0)]
            )

    threads = [threading.Thread(target=work, args=(one,)) for one in (store, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.flush(60) for one in (store, *others))
    assert [one.status.lost for one in (store, *others)] == [0] * 4
    assert row_counts(store) | {"requests": 80, "sessions": 1, "ngrams": 40, "pairs": 1} == row_counts(store)
    for one in others:
        one.close()


def test_a_server_that_dies_and_returns_has_lost_nothing(
    postgres_server: PostgresServer, store: Store
) -> None:
    first = record()
    store.record_request(first)
    assert store.flush()
    postgres_server.kill()
    try:
        assert store.requests() == []
        store.record_request(record("s2"))
        wait_for(lambda: not store.status.ok)
        assert (
            store.status.message.startswith("History and learning are not being saved: ")
            and store.status.pending == 1
        )
    finally:
        postgres_server.start()
    assert store.flush(30)
    assert [row["session"] for row in store.requests()] == ["s2", "s1"]
    assert store.status.ok and not store.status.message and store.status.lost == 0


def test_a_request_whose_commit_was_answered_by_nobody_is_written_once(store: Store) -> None:
    made = record()
    made = replace(made, generation=replace(made.generation, key="k1"))
    store.record_request(made)
    store.record_request(made)
    assert store.flush() and len(store.requests()) == 1


def test_tables_that_went_away_are_made_again(
    postgres_server: PostgresServer, url: str, store: Store
) -> None:
    store.record_request(record())
    assert store.flush()
    postgres_server.run("drop schema public cascade", url.rpartition("/")[2])
    postgres_server.run("create schema public", url.rpartition("/")[2])
    store.record_request(record("s2"))
    assert store.flush(30)
    assert [row["session"] for row in store.requests()] == ["s2"]


def test_a_visitor_of_one_machine_is_known_to_all(
    postgres_server: PostgresServer, url: str, store: Store, tmp_path: Path
) -> None:
    other = Store(url, retry_seconds=0.1)
    here, there = Visitors(tmp_path / "one", store.common_key), Visitors(tmp_path / "two", other.common_key)
    given = here.issue()
    assert here.name(given) and there.name(given) == here.name(given)
    assert Visitors(tmp_path / "three").name(given) == ""
    postgres_server.kill()
    try:
        assert store.requests() == [] and store.common_key(b"x") is None
        # kept in its folder too
        assert Visitors(tmp_path / "two", store.common_key).name(given) == here.name(given)
    finally:
        postgres_server.start()
    assert stat.S_IMODE(os.stat(tmp_path / "two" / KEY).st_mode) == 0o600
    other.close()


# --- adapters -----------------------------------------------------------------------------------------------


def make_version(storage: Path, store: Store, number: int, *, active: bool = True) -> Path:
    line = version_folders.line_folder(storage, DRAFTER, TARGET, "default")
    adapter = AdapterState({"w": torch.full((2, 2), float(number))}, {"peft_type": "FULL"})
    info = version_folders.write_version(
        line, version(number), adapter, OptimiserState(number, {"m": torch.ones(2)})
    )
    version_folders.write_note(line, "active", number)
    store.add_adapter(info, active)
    return line


def share(store: Store, storage: Path) -> None:
    VersionStore(storage, store).share(TARGET, DRAFTER)


def weights(line: Path, number: int) -> float:
    return float(
        version_folders.load_version(version_folders.version_folder(line, number)).adapter.weights["w"][0, 0]
    )


def test_versions_reach_a_machine_that_shares_no_folder(url: str, store: Store, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        line = make_version(tmp_path / "one", store, number)
    store.set_trusted(*PAIR, "default", 2)
    store.drop_files(*PAIR, "default", [1])
    assert store.flush() and row_counts(store)["adapter_files"] == 8
    other = Store(url)
    share(other, tmp_path / "two")
    there = version_folders.line_folder(tmp_path / "two", DRAFTER, TARGET, "default")
    assert version_folders.versions(there) == [3, 2] and weights(there, 3) == 3.0
    assert version_folders.load_version(version_folders.version_folder(there, 3)).optimiser.step == 3
    assert (version_folders.read_note(there, "active"), version_folders.read_note(there, "trusted")) == (3, 2)
    assert [one.version for one in other.adapters(*PAIR)] == [3, 2, 1]  # what was pruned stays in the history
    other.forget_line(*PAIR, "default")
    assert other.flush() and row_counts(other)["adapter_files"] == 0
    other.close()
    assert version_folders.versions(line) == [3, 2, 1]


def test_what_another_machine_wrote_wins_and_what_only_this_one_has_is_added(
    url: str, store: Store, tmp_path: Path
) -> None:
    line = make_version(tmp_path / "one", store, 1)
    assert store.flush()
    shutil.rmtree(version_folders.version_folder(line, 1))
    stale = AdapterState({"w": torch.full((2, 2), -1.0)}, {"peft_type": "FULL"})
    version_folders.write_version(line, version(1), stale, OptimiserState(0, {}))
    late = AdapterState({"w": torch.full((2, 2), 5.0)}, {"peft_type": "FULL"})
    # written while the database was away
    version_folders.write_version(line, version(2), late, OptimiserState(0, {}))
    version_folders.write_note(line, "active", 2)
    share(store, tmp_path / "one")
    assert store.flush()
    assert (weights(line, 1), weights(line, 2), version_folders.read_note(line, "active")) == (1.0, 5.0, 2)
    assert store.active_version(*PAIR) == 2 and row_counts(store)["adapter_files"] == 8


def test_a_database_that_does_not_answer_changes_no_folder(
    postgres_server: PostgresServer, store: Store, tmp_path: Path
) -> None:
    line = make_version(tmp_path, store, 1)
    assert store.flush()
    postgres_server.kill()
    try:
        assert store.noted_versions(*PAIR) is None
        share(store, tmp_path)
    finally:
        postgres_server.start()
    assert (
        store.flush(30)
        and version_folders.versions(line) == [1]
        and version_folders.read_note(line, "active") == 1
    )


def test_a_second_app_that_shares_no_folder_goes_on_with_what_the_first_learned(
    url: str, tmp_path: Path
) -> None:
    models = (
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    learning = {
        "training": "inline",
        "update_interval": 2,
        "steps_per_update": 1,
        "lora_rank": 4,
    }

    def app(name: str) -> Services:
        services = Services(Settings(storage=tmp_path / name, database_url=url, **learning))  # type: ignore[arg-type]
        assert ready(services, models).stage == "ready"
        return services

    first = app("one")
    try:
        for number in range(4):
            chat(first, models, f"duck number {number}")
        grams = sorted(entry.target_id for entry in first.pair(*models).ngrams)
        assert first.adaptation.trainer(*models).version == 2 and grams
        second = app("two")  # beside it; what the first one has shown is committed
        try:
            assert second.adaptation.trainer(*models).version == 2
            assert sorted(entry.target_id for entry in second.pair(*models).ngrams) == grams
            answers = [chat(one, models, "duck number 4", learn=False)[1] for one in (first, second)]
            assert {(one.adapter_version, one.text) for one in answers} == {(2, answers[0].text)}
            learned = first.pair(*models).drafting_weights()
            assert all(
                torch.equal(weight, learned[name])
                for name, weight in second.pair(*models).drafting_weights().items()
            )
            assert first.store.flush() and second.store.flush()
            assert [row["prompt"] for row in first.store.requests(session="s")] == [
                f"duck number {number}" for number in (4, 4, 3, 2, 1, 0)
            ]
            assert first.store.export_csv("requests", tmp_path / "out.csv") == 6
            assert second.store.steps(*models) == first.store.steps(*models) != []
        finally:
            second.close()
    finally:
        first.close()
