"""The store: nothing is lost, nothing is half written, and a broken database never raises."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event

from omnidemo.core.answer_figures import FIGURES
from omnidemo.core.config import Settings
from omnidemo.core.metrics import measure
from omnidemo.core.records import Generation, NgramEntry, Round, Token, TrainStep
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.models.adapters.version_folders import line_folder, version_folder, versions
from omnidemo.storage import backup as backups
from omnidemo.storage import database
from omnidemo.storage.backup import Backup, back_up_database, restore_database
from omnidemo.storage.connections import make_engine
from omnidemo.storage.database import StoreStatus
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.tables import METADATA
from omnidemo.storage.visitors import OWN
from tests.support.row_counts import row_counts

ROOT = Path(__file__).parents[2]
PAIR = ("bundled/large", "bundled/drafter")


def record(
    session="s1",
    *,
    rounds=3,
    prompt="Hello",
    answer="Hi",
    method="ngram-exact",
    kind="chat",
    target=PAIR[0],
    domain="default",
    **metrics,
):
    seconds = {"draft": 0.1, "verify": 0.2, "settle": 0.05, "other": 0.05, "total": 0.4}
    token = Token(5, "x", "direct", 0.5)
    turns = tuple(Round(index, (token, token), (), 4, 4, 3, 1, 2, 1, seconds) for index in range(rounds))
    measured = {"acceptance_rate": 0.5, "tokens_per_second": 20.0, "seconds": 1.5} | metrics
    generation = Generation(
        (5,) * 2 * rounds,
        answer,
        turns,
        measured,
        "end",
        method,
        7,
        seed=1,
        adapter_version=2,
        cache_entries=9,
    )
    settings = {"temperature": 0.0, "path": Path("x")}
    return RequestRecord(
        session,
        target,
        PAIR[1],
        domain,
        method,
        prompt,
        generation,
        settings,
        "2026-03-01T12:00:00+02:00",
        kind,
    )


def version(number, **changes):
    plain = AdapterVersion(
        number,
        PAIR[1],
        PAIR[0],
        "default",
        f"adapters/{number}",
        "ab" * 32,
        number - 1,
        10,
        12,
        0.5,
        "2026-03-01T10:00:00+00:00",
    )
    return replace(plain, **changes)


@pytest.fixture
def url(request, tmp_path):
    """SQLite's, or what the test asks for."""
    if getattr(request, "param", "sqlite") == "postgresql":
        return request.getfixturevalue("postgres_server").database()
    return f"sqlite:///{tmp_path / 'folder' / 'omnidemo.db'}"


both = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def store(url):
    one = Store(url, retry_seconds=0.1)
    yield one
    one.close()


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


# --- requests, sessions -------------------------------------------------------------------------------------


@both
def test_a_request_comes_back_as_it_went_in(store):
    store.record_request(record(alpha=np.float32(0.5), block_efficiency=float("nan"), odd_metric=3.0))
    assert store.flush()
    (row,) = store.requests()
    assert (row["target"], row["drafter"], row["session"], row["prompt"], row["answer"]) == (
        *PAIR,
        "s1",
        "Hello",
        "Hi",
    )
    assert (
        row["tokens"],
        row["prompt_tokens"],
        row["ngram_hits"],
        row["cache_entries"],
        row["adapter_version"],
    ) == (6, 7, 3, 9, 2)
    assert (row["acceptance_rate"], row["alpha"], row["block_efficiency"]) == (0.5, 0.5, None)
    assert row["metrics"]["odd_metric"] == 3.0
    assert row["settings"] == {"temperature": 0.0, "path": "x"}
    assert row["created_at"] == "2026-03-01T10:00:00.000+00:00"
    assert row_counts(store) | {"rounds": 3, "requests": 1, "sessions": 1, "pairs": 1} == row_counts(store)


@both
def test_requests_filter_limit_and_order(store):
    for index in range(6):
        store.record_request(
            record(
                f"s{index % 2}",
                method=("plain", "ngram-exact")[index % 2],
                kind=("chat", "traffic")[index // 3],
            )
        )
    store.record_request(record(target="bundled/other"))
    store.flush()
    assert [row["id"] for row in store.requests(limit=3)] == [7, 6, 5]
    assert [row["id"] for row in store.requests(target="bundled/other")] == [7]
    assert [row["id"] for row in store.requests(session="s0", method="plain", kind="traffic")] == [5]
    assert len(store.requests(limit=None)) == 7
    assert store.requests(drafter="nobody") == []


@both
def test_text_is_withheld_without_a_prompt_and_odd_text_is_kept(store):
    store.record_request(record(prompt=None, answer="secret"))
    store.record_request(record(prompt="\ud800 zero\x00 🙂", answer="naïve\r\n"))
    store.flush()
    second, first = store.requests()
    assert (first["prompt"], first["answer"]) == (None, None)
    assert (second["prompt"], second["answer"]) == ("? zero? 🙂", "naïve\r\n")


@both
def test_a_session_that_opted_out_leaves_no_requests(url, store):
    store.start_session("private", keep=False, learn=False)
    store.record_request(record("private"))
    store.record_request(record("open"))
    store.flush()
    assert {row["session"] for row in store.requests()} == {"open"}
    assert row_counts(store)["rounds"] == 3
    # The choice outlives a deletion and a restart, and can be taken back.
    assert store.delete_session("private") == 0
    store.close()
    again = Store(url)
    again.record_request(record("private"))
    again.flush()
    assert {row["session"] for row in again.requests()} == {"open"}
    again.start_session("private")
    again.record_request(record("private"))
    again.flush()
    assert row_counts(again)["requests"] == 2
    again.close()


@both
def test_deleting_takes_the_rounds_along(store):
    for session in ("s1", "s1", "s2", "s2"):
        store.record_request(record(session))
    assert store.delete_session("s1") == 2
    assert [row["id"] for row in store.sessions()] == ["s2"]
    assert row_counts(store) | {"requests": 2, "rounds": 6, "sessions": 1} == row_counts(store)
    assert store.delete_requests([3, 3, 99, *range(1000, 3000)]) == 1
    assert row_counts(store) | {"requests": 1, "rounds": 3, "sessions": 1} == row_counts(store)
    (session,) = store.sessions()
    assert (session["requests"], session["keep"], session["learn"]) == (1, True, True)


@both
def test_curve_counts_the_requests_of_each_line_of_the_pair(store):
    for index in range(5):
        store.record_request(record(acceptance_rate=index / 10, domain="maths" if index == 3 else "default"))
    store.record_request(record(target="bundled/other"))
    store.flush()
    curve = store.curve(*PAIR, limit=3)
    assert [row["index"] for row in curve] == [3, 1, 4]
    assert [row["acceptance_rate"] for row in curve] == [0.2, 0.3, 0.4]
    assert {
        "created_at",
        "kind",
        "method",
        "block_efficiency",
        "speedup",
        "ngram_hits",
        "cache_entries",
    } <= set(curve[0])


@both
def test_topics_are_those_of_the_newest_requests_of_a_line(store):
    others = (record(target="bundled/other"), replace(record(), domain="maths", topic="sums"))
    times = [f"2026-03-01T12:00:0{second}.000+00:00" for second in range(4)]
    own = [
        replace(record(), topic=topic, created_at=at)
        for topic, at in zip(("a", "b", None, "c"), times, strict=True)
    ]
    for one in (own[0], others[0], *own[1:3], others[1], own[3]):
        store.record_request(one)
    store.flush()
    assert store.topics(*PAIR, "default", limit=3) == list(zip(("b", None, "c"), times[1:], strict=True))


@both
def test_curve_tells_the_draft_length_and_the_line(store):
    for domain, metrics in (
        ("maths", {"drafted": 30.0, "rounds": 12.0}),
        ("default", {"drafted": 0.0, "rounds": 0.0}),
        ("default", {}),
    ):
        plain = record()
        store.record_request(
            replace(plain, domain=domain, generation=replace(plain.generation, metrics=metrics))
        )
    store.flush()
    assert [(row["draft_length"], row["domain"]) for row in store.curve(*PAIR)] == [
        (2.5, "maths"),
        (None, "default"),
        (None, "default"),
    ]


# --- n-grams, adapters, restart -----------------------------------------------------------------------------


@both
def test_ngrams_are_written_over_and_removed(store):
    store.save_ngrams(*PAIR, [NgramEntry(number, (1, 2), 0, 0, number, 0) for number in range(1200)])
    store.save_ngrams(*PAIR, [NgramEntry(3, (4, 5, 6), 2, 1, 3, 9)], removed=[0, 3, *range(10, 1200)])
    store.flush()
    entries = store.load_ngrams(*PAIR)
    assert [entry.target_id for entry in entries] == list(range(1, 10))
    assert entries[2] == NgramEntry(3, (4, 5, 6), 2, 1, 3, 9)
    assert store.load_ngrams("bundled/other", PAIR[1]) == []


@both
def test_adapter_lines(store):
    for number in (1, 2, 3):
        store.add_adapter(version(number), active=number != 3)
    store.add_adapter(version(1, domain="maths", steps=np.int64(12), effect={"gain": np.float32(0.5)}))
    store.record_steps(
        *PAIR,
        "default",
        3,
        [TrainStep(step, 1 / step, 0.1, float("nan"), 1.0, 1e-3, 0.2) for step in (1, 2, 3)],
    )
    store.flush()
    assert [one.version for one in store.adapters(*PAIR)] == [3, 2, 1]
    (maths,) = store.adapters(*PAIR, "maths")
    assert (maths.steps, maths.effect) == (12, {"gain": 0.5})
    assert store.active_version(*PAIR) == 2
    store.set_active(*PAIR, "default", 1)
    store.set_effect(*PAIR, "default", 1, {"acceptance_after": 0.5})
    store.flush()
    assert store.active_version(*PAIR) == 1
    assert store.adapters(*PAIR)[-1] == version(
        1, effect={"acceptance_after": 0.5}, created_at="2026-03-01T10:00:00.000+00:00"
    )
    assert [(row["step"], row["loss_ngram"], row["version"]) for row in store.steps(*PAIR, limit=2)] == [
        (2, None, 3),
        (3, None, 3),
    ]
    store.set_active(*PAIR, "default", 0)
    store.flush()
    assert store.active_version(*PAIR) == 0
    store.forget_line(*PAIR, "default")
    store.flush()
    assert (store.adapters(*PAIR), store.steps(*PAIR), store.active_version(*PAIR, "maths")) == ([], [], 1)


@both
def test_a_restart_restores_everything(url, store):
    store.record_request(record())
    store.save_ngrams(*PAIR, [NgramEntry(3, (4, 5), 2, 1, 3, 9)])
    store.add_adapter(version(1))
    store.record_steps(*PAIR, "default", 1, [TrainStep(1, 1.0, 0.9, 0.1, 1.0, 1e-3, 0.2)])
    store.flush()
    before = (
        store.curve(*PAIR),
        store.load_ngrams(*PAIR),
        store.adapters(*PAIR),
        store.steps(*PAIR),
        row_counts(store),
    )
    store.close()
    again = Store(url)
    assert (
        again.curve(*PAIR),
        again.load_ngrams(*PAIR),
        again.adapters(*PAIR),
        again.steps(*PAIR),
        row_counts(again),
    ) == before
    again.close()


# --- concurrency and crashes --------------------------------------------------------------------------------


@both
def test_eight_threads_and_two_stores_write_at_once(url, store):
    other = Store(url, retry_seconds=0.1)

    def work(number):
        one = (store, other)[number % 2]
        for index in range(25):
            one.record_request(record(f"s{number}", target=f"t{index % 3}"))
            one.save_ngrams(*PAIR, [NgramEntry(number * 100 + index, (1, 2), 0, 0, 0, 0)])
            assert one.requests(limit=1) is not None

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.flush(30)
    assert other.flush(30)
    assert row_counts(store) | {
        "requests": 200,
        "rounds": 600,
        "sessions": 8,
        "ngrams": 200,
        "pairs": 4,
    } == row_counts(other)
    assert store.status == other.status == StoreStatus(True, "", 0, 0)
    other.close()


@both
def test_kill_leaves_whole_requests_only(url, lives):
    lives.say("write", 1, url)
    child, reader = int(lives.hear()), Store(url)
    wait_for(lambda: row_counts(reader).get("requests", 0) > 2)
    reader.close()
    os.kill(child, signal.SIGKILL)
    assert lives.hear() == "gone"
    again = Store(url)
    counts = row_counts(again)
    assert again.status.ok
    assert counts["requests"] > 0
    assert counts["rounds"] == 40 * counts["requests"]
    again.close()
    with make_engine(url).connect() as connection:
        per_request = connection.exec_driver_sql("select count(*) from rounds group by request_id").fetchall()
    assert {tuple(row) for row in per_request} == {(40,)}


@both
def test_what_waits_is_written_at_exit(url, lives):
    lives.say("leave", 1, url)
    assert lives.hear() == "gone"
    again = Store(url)
    assert row_counts(again)["requests"] == 50
    again.close()


# --- failures -----------------------------------------------------------------------------------------------


def write_everything(store):
    store.start_session("s1")
    store.record_request(record())
    store.save_ngrams(*PAIR, [NgramEntry(3, (4, 5), 2, 1, 3, 9)], removed=[1])
    store.add_adapter(version(1))
    store.record_steps(*PAIR, "default", 1, [TrainStep(1, 1.0, 0.9, 0.1, 1.0, 1e-3, 0.2)])


def read_everything(store):
    return [
        store.requests(),
        store.sessions(),
        store.curve(*PAIR),
        store.steps(*PAIR),
        store.load_ngrams(*PAIR),
        store.adapters(*PAIR),
    ]


def break_folder(path):
    path.parent.write_text("a file where the folder should be")


def break_directory(path):
    path.mkdir(parents=True)


def break_contents(path):
    path.parent.mkdir()
    path.write_bytes(b"this is not a database " * 1000)


@pytest.mark.parametrize("damage", [break_folder, break_directory, break_contents])
def test_a_broken_database_is_reported_and_recovers(tmp_path, damage, caplog):
    path = tmp_path / "folder" / "omnidemo.db"
    damage(path)
    store = Store(f"sqlite:///{path}", retry_seconds=0.1)
    write_everything(store)
    assert read_everything(store) == [[]] * 6
    assert (row_counts(store), store.active_version(*PAIR)) == ({}, 0)
    assert not store.flush(0.3)
    status = store.status
    assert (status.ok, status.pending, status.lost) == (False, 5, 0)
    assert status.message.startswith("History and learning are not being saved: ")
    assert str(path) in status.message
    with pytest.raises(RuntimeError, match="not being saved"):
        store.export_csv("requests", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    if path.is_dir():
        path.rmdir()
    elif path.exists():
        path.unlink()
    else:
        path.parent.unlink()
    assert store.flush()
    wait_for(lambda: store.status.ok)
    assert store.status == StoreStatus(True, "", 0, 0)
    assert [len(rows) for rows in read_everything(store)] == [1] * 6
    assert caplog.text.count("are not being saved") == 1  # said once, not at each retry
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "nonsense",
        "sqlite:///:memory:",
        "unknowndb://host/x",
        "postgresql://u:secret@127.0.0.1:1/x",
    ],
)
def test_a_bad_address_is_reported(url):
    store = Store(url, retry_seconds=0.1)
    write_everything(store)
    assert read_everything(store) == [[]] * 6
    store.close()
    assert not store.status.ok
    assert "OMNIDEMO_DATABASE_URL" in store.status.message
    assert "secret" not in store.status.message
    assert (store.status.pending, store.status.lost) == (0, 5)
    store.record_request(record())  # after close: counted, not raised
    assert (store.status.lost, store.delete_session("s1")) == (6, 0)


@pytest.mark.parametrize("how", ["delete", "move", "replace", "damage"])
def test_a_database_that_was_taken_away_is_noticed_and_said_and_another_one_used(url, store, tmp_path, how):
    """Also where nobody writes: a reader is enough."""
    path = tmp_path / "folder" / "omnidemo.db"
    for _ in range(30):
        store.record_request(record(answer="long " * 500))
    store.flush()
    assert not store.status.message
    if how == "replace":
        other = Store(f"sqlite:///{tmp_path / 'other.db'}")
        other.record_request(record("theirs"))
        other.close()
        os.replace(tmp_path / "other.db", path)
    elif how == "damage":
        good = path.read_bytes()
        path.write_bytes(good[:4096] + os.urandom(len(good) - 4096))
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        path.rename(tmp_path / "away.db")
    elif how == "move":
        path.rename(tmp_path / "away.db")
    else:
        path.unlink()
    store.requests()
    wait_for(lambda: store.status.message and path.exists())
    store.record_request(record("after"))
    assert store.flush()
    there = ["after", "theirs"] if how == "replace" else ["after"]
    assert [row["session"] for row in store.requests()] == there
    assert (
        store.status.ok
        and "was deleted or replaced" in store.status.message
        and "without the history before" in store.status.message
    )


def test_a_database_damaged_while_running(store, tmp_path):
    path = tmp_path / "folder" / "omnidemo.db"
    for _ in range(30):
        store.record_request(record(answer="long " * 500))
    store.flush()
    store.close()
    good = path.read_bytes()
    path.write_bytes(good[:4096] + os.urandom(len(good) - 4096))
    broken = Store(f"sqlite:///{path}", retry_seconds=0.1)
    assert broken.requests() == []
    wait_for(lambda: not broken.status.ok)
    assert "backup" in broken.status.message
    broken.record_request(record())
    time.sleep(0.5)
    assert not broken.status.ok
    assert broken.status.pending == 1
    whole = path.with_name("backup.db")
    whole.write_bytes(good)
    whole.replace(path)  # at once: a retry never meets half of it
    assert broken.flush()
    assert row_counts(broken)["requests"] == 31
    broken.close()


def test_a_full_disk_keeps_writes_waiting(store, caplog):
    store.record_request(record())
    store.flush()
    full = True

    def limit(connection):  # SQLite's own "database or disk is full"
        connection.exec_driver_sql(f"PRAGMA max_page_count={1 if full else 2**30}")

    event.listen(store._engine, "begin", limit)
    for _ in range(20):
        store.record_request(record(answer="long " * 2000))
    assert not store.flush(0.5)
    assert "Free some disk space" in store.status.message
    assert store.status.pending == 20
    assert caplog.text.count("Free some disk space") == 1  # no flapping between the retries
    full = False
    assert store.flush()
    assert row_counts(store)["requests"] == 21


def test_a_full_queue_refuses_the_newest(tmp_path):
    path = tmp_path / "omnidemo.db"
    path.mkdir()
    store = Store(f"sqlite:///{path}", retry_seconds=0.1, queue_size=5)
    for index in range(8):
        store.record_request(record(f"s{index}"))
    assert (store.status.pending, store.status.lost) == (5, 3)
    path.rmdir()
    assert store.flush()
    assert {row["session"] for row in store.requests()} == {f"s{index}" for index in range(5)}
    store.close()


@both
def test_one_bad_write_does_not_take_the_others_with_it(store):
    with store._wake:  # all three in one batch
        store.record_request(record("s1"))
        store.record_request(replace(record("s2"), created_at="no time"))
        store.record_request(record("s3"))
    assert store.flush()
    assert {row["session"] for row in store.requests()} == {"s1", "s3"}
    assert store.status == StoreStatus(True, "", 0, 1)


# --- migrations ---------------------------------------------------------------------------------------------


@both
def test_a_new_database_has_the_tables_of_the_code(url):
    Store(url).close()
    with make_engine(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_a_folder_of_an_older_version_is_refused_in_one_sentence_and_left_as_it_is(tmp_path):
    path = tmp_path / "omnidemo.db"
    with sqlite3.connect(path) as old:
        old.execute("pragma journal_mode=wal")  # as all versions had it
        old.execute("create table alembic_version (version_num varchar(32))")
        old.execute("insert into alembic_version values ('0010')")
    old.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"{path} was written by an older OmniDemo.*OMNIDEMO_STORAGE"):
        Store(path)
    assert [one.name for one in tmp_path.iterdir()] == ["omnidemo.db"]
    assert path.read_bytes() == before


LATER = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "9999", "{head}"
def upgrade():
    op.add_column("requests", sa.Column("later", sa.Integer))
"""


def test_an_older_database_is_upgraded_and_a_newer_one_refused(url, store, tmp_path, monkeypatch):
    store.record_request(record())
    store.close()
    later = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, later)
    head = max(path.name[:4] for path in (later / "versions").glob("0*.py"))
    (later / "versions" / "9999_later.py").write_text(LATER.format(head=head))
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", later)
        upgraded = Store(url)
        upgraded.record_request(record())
        assert upgraded.flush()
        assert row_counts(upgraded)["requests"] == 2
        upgraded.close()
    columns = (
        sqlite3.connect(tmp_path / "folder" / "omnidemo.db").execute("pragma table_info(requests)").fetchall()
    )
    assert "later" in {column[1] for column in columns}
    refused = Store(url)
    assert "newer OmniDemo" in refused.status.message
    refused.close()


# --- files --------------------------------------------------------------------------------------------------

HOSTILE = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    'a "quoted", cell\nwith\r\nlines\rand =1',
    "naïve 🙂",
    "plain",
]
LEADING = ["\n=1+1", "\nx", " =1+1", "\u3000@x", *(sign + "1+1" for sign in "\uff1d\uff0b\uff0d\uff20")]
HOSTILE += LEADING  # programs skip white space, and read full-width signs as their own


@both
def test_csv_opens_in_pandas_and_hostile_cells_are_escaped(store, tmp_path):
    for text in HOSTILE:
        store.record_request(record(prompt=text, answer=text, alpha=-0.5))
    path = tmp_path / "new" / "requests.csv"
    assert store.export_csv("requests", path) == len(HOSTILE)
    table = pd.read_csv(path)
    assert list(table["prompt"]) == [
        "'" + text if text[0] in "=+-@\t\r" or text in LEADING else text for text in HOSTILE
    ]
    assert table["alpha"].tolist() == [-0.5] * len(HOSTILE)
    assert table["tokens"].dtype == np.int64
    assert pd.to_datetime(table["created_at_utc"]).dt.tz is not None
    assert {
        "target",
        "drafter",
        "method",
        "adapter_version",
        "seconds",
        "tokens_per_second",
        "time_to_first_token_seconds",
    } <= set(table)
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.reader(file))) == len(HOSTILE) + 1
    assert [one.name for one in path.parent.iterdir()] == ["requests.csv"]


@both
def test_the_csv_has_every_figure_of_an_answer_with_the_number_of_the_page(store, tmp_path):
    seconds = {"draft": 0.1, "verify": 0.2, "settle": 0.05, "other": 0.05, "total": 0.4}
    guess, copy = Token(5, "x", "direct", 0.5), Token(5, "x", "copied", 0.5)
    own = Token(5, "x", "bonus", 0.5)
    # one guess, which was right; one right of four; and three right copies
    turns = (
        Round(0, (guess, own), (), 1, 1, 1, 1, 1, 0, seconds),
        Round(1, (guess, own), (guess,) * 3, 4, 4, 4, 1, 2, 0, seconds),
        Round(2, (copy, copy, copy, own), (), 0, 0, 3, 3, 3, 0, seconds),
    )
    figures = measure(turns, 0.1)
    early = {"accepted": 2.0, "proposed": 8.0}  # what versions without copies kept of guesses
    for metrics in (figures, early, {}):
        one = record()
        answer = replace(one.generation, token_ids=(5,) * 8, rounds=turns, metrics=metrics)
        store.record_request(replace(one, generation=answer))
    store.export_csv("requests", tmp_path / "requests.csv")
    table = pd.read_csv(tmp_path / "requests.csv")
    row, *others = [one for _, one in table.iterrows()]
    assert (row["guesses_right_share"], row["acceptance_rate"]) == (2 / 5, (1 + 1 / 4) / 2)
    assert [one["guesses_right_share"] for one in others] == pytest.approx([0.25, np.nan], nan_ok=True)
    for figure in FIGURES:
        wanted = np.nan if figures[figure.name] is None else figures[figure.name]
        assert row[figure.column] == pytest.approx(wanted, nan_ok=True), figure.name
    assert store.requests()[-1]["guesses_right"] == row["guesses_right_share"]
    assert list(table).index("guesses_right_share") > list(table).index("speedup_high"), "behind the old ones"


@both
def test_csv_of_rounds_and_steps_with_filters(store, tmp_path):
    store.record_request(record("s1", kind="chat"))
    store.record_request(record("s2", kind="traffic", rounds=1200))
    store.record_steps(
        *PAIR, "default", 4, [TrainStep(step, 1.0, 0.9, 0.1, 1.0, 1e-3, 0.2) for step in range(3)]
    )
    path = tmp_path / "out.csv"
    assert store.export_csv("rounds", path, kind="traffic", session=None) == 1200
    rounds = pd.read_csv(path)
    assert set(rounds["session"]) == {"s2"}
    assert list(rounds["index"]) == list(range(1200))
    assert {
        "target",
        "drafter",
        "method",
        "adapter_version",
        "total_seconds",
        "draft_seconds",
        "created_at_utc",
    } <= set(rounds)
    assert store.export_csv("steps", path, domain="default") == 3
    steps = pd.read_csv(path)
    assert set(steps["adapter_version"]) == {4}
    assert {"target", "drafter", "domain", "loss_nats", "seconds", "created_at_utc"} <= set(steps)
    assert store.export_csv("requests", path, method="nobody") == 0
    assert len(pd.read_csv(path)) == 0
    with pytest.raises(ValueError, match="cannot be filtered by colour"):
        store.export_csv("requests", path, colour="red")
    with pytest.raises(ValueError, match="choose requests, rounds or steps"):
        store.export_csv("secrets", path)


@both
def test_a_csv_that_cannot_be_written_does_not_blame_the_database(store, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RuntimeError, match="choose a folder"):
        store.export_csv("requests", tmp_path / "file" / "out.csv")
    assert store.status.ok


def test_backup_and_restore(store, tmp_path):
    store.record_request(record())
    copy = tmp_path / "data" / "omnidemo.db"
    back_up_database(store, copy)
    store.record_request(record())
    back_up_database(store, copy)
    assert [one.name for one in copy.parent.iterdir()] == ["omnidemo.db"]
    before = store.file.read_bytes()
    restore_database(copy, store.file)
    assert store.file.read_bytes() == before  # never over a live database
    fresh = tmp_path / "fresh" / "omnidemo.db"
    fresh.parent.mkdir()
    fresh.with_name("omnidemo.db-wal").write_bytes((tmp_path / "folder" / "omnidemo.db-wal").read_bytes())
    restore_database(copy, fresh)
    again = Store(f"sqlite:///{fresh}")
    assert row_counts(again) == row_counts(store)
    assert row_counts(again)["requests"] == 2
    again.close()
    copy.write_bytes(copy.read_bytes()[:5000])
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        restore_database(copy, tmp_path / "torn.db")
    assert not (tmp_path / "torn.db").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError):
        back_up_database(store, tmp_path / "file" / "copy.db")


def test_a_backup_loses_what_was_deleted_and_only_that(tmp_path: Path) -> None:
    storage, copy = tmp_path / "storage", tmp_path / "copy"
    lines = [line_folder(storage, "drafter", "target", domain) for domain in ("default", f"{OWN}anna")]
    for line in lines:
        version_folder(line, 1).mkdir(parents=True)
        (version_folder(line, 1) / "weights").write_text("adapter")
    kept = [copy / line.relative_to(storage) for line in lines]
    backup = Backup(Settings(storage=storage, backup=str(copy)))
    backup.close()
    assert all((version_folder(line, 1) / "weights").exists() for line in kept)
    version_folder(lines[0], 2).mkdir()
    shutil.rmtree(version_folder(lines[0], 1))
    shutil.rmtree(lines[1])
    backup.close()
    assert versions(kept[0]) == [2] and not kept[1].exists()
    shutil.rmtree(storage)
    backup.close()
    assert versions(kept[0]) == [2]  # a disk that is gone empties no backup
    version_folder(lines[1], 3).mkdir(parents=True)
    (copy / "adapters").rename(tmp_path / "away")  # a restoration that finds nothing
    other = Backup(Settings(storage=storage, backup=str(copy)))
    (tmp_path / "away").rename(copy / "adapters")
    other.close()
    assert versions(kept[0]) == [2] and versions(kept[1]) == [3]  # what this process never had stays


def test_one_backup_at_a_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most, go_on = [0], [0], threading.Event()

    def slow(store: Store, path: Path) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        go_on.wait(5)
        inside[0] -= 1

    monkeypatch.setattr(backups, "back_up_database", slow)
    backup = Backup(Settings(storage=tmp_path / "storage", backup=str(tmp_path / "copy")))
    backup._store = store
    regular = threading.Thread(target=backup.close)
    last = threading.Thread(target=backup.close)
    regular.start()
    last.start()
    time.sleep(0.2)
    go_on.set()
    regular.join()
    last.join()
    assert most == [1]


def test_who_waits_for_a_row_waits_no_longer_than_the_database_works(tmp_path, monkeypatch):
    monkeypatch.setattr("omnidemo.storage.connections.LOCK_SECONDS", 1)
    store = Store(f"sqlite:///{tmp_path}/db.sqlite")
    other = sqlite3.connect(tmp_path / "db.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store.record_request(record())
    assert not store.flush(60.0, while_ok=True) and not store.status.ok
    assert not store.flush(60.0, while_ok=True)  # at once, for it is known by now
    other.execute("ROLLBACK")
    assert store.flush(30.0) and len(store.requests()) == 1
    store.close()
