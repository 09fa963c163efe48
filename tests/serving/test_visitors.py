"""Who visitors are, how much they may ask for, and that each of them has things of their own which end."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Round
from omnidemo.models.adapters import version_folders
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import HOUR, Quotas, Refused
from omnidemo.serving.services import Cluster, Services
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import KEY, OWN, Caller, Visitors, is_operator, is_public
from omnidemo.ui import replay_data

NAME = "a" * 24  # of a visitor, as `Visitors` makes them


# ids
# ------------------------------------------------------------------------------------------------------------


def test_ids_are_random_signed_and_known_after_a_restart(tmp_path: Path) -> None:
    visitors = Visitors(tmp_path)
    first, second = visitors.issue(), visitors.issue()
    assert first != second and len(first.partition(".")[0]) == 32  # 128 bits
    name = visitors.name(first)
    assert name and name != visitors.name(second)
    # what is stored says nothing about the secret
    assert name not in first and first.partition(".")[0] not in name
    assert Visitors(tmp_path).name(first) == name
    assert stat.S_IMODE(os.stat(tmp_path / KEY).st_mode) == 0o600


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda _: None,
        lambda one: one[:-1],
        lambda one: one.replace(".", ""),
        lambda one: one + "0",
    ],
)
def test_forged_ids_are_nobody(tmp_path: Path, change: Any) -> None:
    visitors = Visitors(tmp_path)
    given = visitors.issue()
    assert visitors.name(change(given)) == ""
    other = ("0" if given[0] != "0" else "1") + given[1:]
    assert visitors.name(other) == ""
    assert Visitors(tmp_path / "elsewhere").name(given) == ""  # another server's


def test_a_damaged_key_is_replaced_and_a_readable_one_closed(tmp_path: Path) -> None:
    (tmp_path / KEY).write_bytes(b"short")
    os.chmod(tmp_path / KEY, 0o644)
    visitors = Visitors(tmp_path)
    assert visitors.name(visitors.issue())
    assert stat.S_IMODE(os.stat(tmp_path / KEY).st_mode) == 0o600
    assert len((tmp_path / KEY).read_bytes()) == 32


def test_ids_hold_where_neither_database_nor_folder_keeps_the_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    visitors = Visitors(tmp_path / "file", lambda own: None)
    assert visitors.name(visitors.issue())


def test_when_an_app_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACE_ID", raising=False)
    assert (
        not is_public(Settings())
        and not is_public(Settings(host="localhost"))
        and not is_public(Settings(host="::1"))
    )
    assert (
        is_public(Settings(host="0.0.0.0"))
        and is_public(Settings(share=True))
        and is_public(Settings(allowed_hosts="duck.example"))
    )
    assert is_public(Settings(public="true")) and not is_public(Settings(host="0.0.0.0", public="false"))
    monkeypatch.setenv("SPACE_ID", "someone/omnidemo")
    assert is_public(Settings()) and not is_public(Settings(public="false"))


def test_without_a_key_in_the_settings_nobody_is_the_operator() -> None:
    assert not any(is_operator(Settings(), key) for key in (None, "", "x"))
    keyed = Settings(operator_key="Quäk")
    assert is_operator(keyed, "Quäk") and not any(
        is_operator(keyed, key) for key in (None, "", "quäk", "Quäkk")
    )
    assert "Quäk" not in repr(keyed)


# quotas
# ------------------------------------------------------------------------------------------------------------


def test_quotas_hold_for_each_and_for_all_and_end_after_an_hour() -> None:
    now = [0.0]
    quotas = Quotas((2, 100), (3, 1000), clock=lambda: now[0])
    quotas.ask("a"), quotas.ask("a")
    with pytest.raises(
        Refused,
        match=r"You have had 2 answers within an hour, which is the most here; ask again in 60 minutes\.",
    ):
        quotas.ask("a")
    quotas.ask("b")
    with pytest.raises(Refused, match="All visitors have had 3 answers"):
        quotas.ask("c")
    now[0] = HOUR - 30
    with pytest.raises(Refused, match="in 1 minute\\."):
        quotas.ask("a")
    now[0] = HOUR
    quotas.ask("a")


def test_tokens_count_and_what_is_known_is_bounded() -> None:
    quotas = Quotas((9, 10), (10**6, 10**6), most_known=3)
    quotas.ask("a")
    assert quotas.spend("a", 9) and not quotas.spend("a", 1)
    with pytest.raises(Refused, match="You have had 10 tokens"):
        quotas.ask("a")
    for number in range(50):
        quotas.ask(f"v{number}")
    assert len(quotas._known) == 3


# the history
# ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'test.db'}")
    yield made
    made.close()


def put(store: Store, session: str, prompt: str, at: str | None = None) -> None:
    when = at or time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    made = Generation((1,), "x", (), {}, "end", "ngram-exact", 1, None)
    store.record_request(
        RequestRecord(session, "t", "d", "default", "ngram-exact", prompt, made, {}, when, "chat")
    )


def test_what_visitors_left_behind_is_pruned_and_nothing_else(store: Store) -> None:
    for number in range(5):
        put(store, OWN + "a", f"a{number}")
    put(store, OWN + "b", "old", "2020-01-01T00:00:00+00:00")
    put(store, OWN + "b", "b")
    for number in range(4):
        put(store, OWN + "c", f"c{number}")
    put(store, "someone", "mine", "2020-01-01T00:00:00+00:00")
    store.flush()
    assert store.prune_visitors(24, 2, 100) == 6
    assert [row["prompt"] for row in store.requests()][1:3] == ["c3", "c2"] and store.forget_visitor(
        OWN + "c"
    ) == 2
    assert sorted(row["prompt"] for row in store.requests()) == ["a3", "a4", "b", "mine"]
    assert store.prune_visitors(24, 2, 1) == 2
    assert sorted(row["prompt"] for row in store.requests()) == ["b", "mine"]
    assert store.forget_visitor(OWN + "b") == 1
    assert [row["id"] for row in store.sessions() if row["id"].startswith(OWN + "b")] == []


# the services
# ------------------------------------------------------------------------------------------------------------


class App:
    """Services of a public app with a caller that a test changes."""

    def __init__(self, settings: Settings, cluster: Cluster | None = None) -> None:
        self.services = Services(settings, cluster)
        self.who: Caller | None = Caller("a")
        self.front = PublicServices(self.services, lambda: self.who)
        self.pair = (settings.target, settings.drafter)
        self.front.load(*self.pair)
        until = time.monotonic() + 120
        while (state := self.front.state(*self.pair)).stage != "ready":
            assert state.stage != "failed" and time.monotonic() < until, state
            time.sleep(0.02)

    def ask(self, name: str, prompt: str = "the small duck", **options: Any) -> Generation:
        self.who = Caller(name)
        given = {
            "method": "ngram-exact",
            "max_new_tokens": 12,
            "temperature": 0.0,
            "domain": "default",
        } | options
        *_, last = self.front.chat(
            session="forged",
            target=self.pair[0],
            drafter=self.pair[1],
            messages=[{"role": "user", "content": prompt}],
            **given,
        )
        return last


def public_settings(models: tuple[str, str], storage: Path) -> Settings:
    options: dict[str, Any] = {
        "training": "inline",
        "update_interval": 1,
        "steps_per_update": 1,
        "batch_size": 1,
    }
    names = {"target": models[0], "drafter": models[1]}
    return Settings(
        storage=storage, public="true", head="off", visitor_requests=9, visitor_lines=3, **names, **options
    )


@pytest.fixture
def app(models: tuple[str, str], tmp_path: Path, quick_loads: None) -> Iterator[App]:
    made = App(public_settings(models, tmp_path / "storage"))
    yield made
    made.services.close()


def test_two_visitors_have_lines_ngrams_and_a_history_of_their_own(app: App) -> None:
    pair = app.services.pair(*app.pair)
    before = len(pair.ngrams)
    for seed in range(3):
        answer = app.ask("a", temperature=1.5, max_new_tokens=40, seed=seed)
    assert answer.domain == "default"  # what the page shows of it
    app.services.store.flush()
    mine = app.front.store.requests(), app.front.store.curve(*app.pair), app.front.store.steps(*app.pair)
    assert all(mine) and {row["session"] for row in mine[0]} == {OWN + "a"}
    assert app.front.trainer(*app.pair).version >= 1
    options = {
        "methods": ["ngram-exact", "autoregressive"],
        "max_new_tokens": 20,
        "temperature": 1.0,
        "draft_length": 3,
    }
    one, two = app.front.compare(
        target=app.pair[0], drafter=app.pair[1], prompts=["the small duck swims"], **options
    )
    assert {one.generation.adapter_version, two.generation.adapter_version} == {
        app.front.trainer(*app.pair).version
    }
    assert pair.adapter_version == 0 and len(pair.ngrams) == before  # what all share is as it was
    assert len(pair._memory.of(OWN + "a")) > 0

    app.who = Caller("b")
    assert (
        app.front.store.requests()
        == app.front.store.curve(*app.pair)
        == app.front.store.steps(*app.pair)
        == []
    )
    assert (
        app.front.store.adapters(*app.pair) == app.front.store.sessions() == app.front.lines(*app.pair) == []
    )
    assert (
        app.front.trainer(*app.pair).version == 0
        and app.front.store.delete_requests([row["id"] for row in mine[0]]) == 0
    )
    assert app.ask("b").adapter_version == 0 and len(pair._memory.of(OWN + "b")) <= len(
        pair._memory.of(OWN + "a")
    )
    with pytest.raises(Refused, match="is not yours"):
        app.front.reset(*app.pair, domain=OWN + "a")

    stored = app.services.settings.storage
    folder = version_folders.line_folder(stored, app.pair[1], app.pair[0], OWN + "a")
    versions = version_folders.versions(folder)
    assert (
        1 <= len(versions) <= 2
        and sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 5_000_000
    )
    assert (
        version_folders.load_version(version_folders.version_folder(folder, versions[0])).adapter.config["r"]
        <= 16
    )

    assert "Deleted: 3 requests" in app.front.forget("a")
    app.who = Caller("a")
    assert app.front.store.requests() == app.front.store.steps(*app.pair) == [] and not folder.exists()
    app.who = Caller("b")
    assert len(app.front.store.requests()) == 1


def test_a_visitor_reads_no_folder_of_the_server_in_a_failed_load(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = replace(
        app.services.pool.state(*app.pair),
        stage="failed",
        error="The weights in /srv/models/x/model.safetensors are damaged.",
    )
    monkeypatch.setattr(app.services.pool, "state", lambda *pair: failed)
    app.who = Caller("a")
    assert app.front.state(*app.pair).error == "The weights in model.safetensors are damaged."
    app.who = None
    assert app.front.state(*app.pair).error == failed.error


def test_two_visitors_at_once_take_turns(app: App) -> None:
    order: list[str] = []

    def talk(name: str, began: threading.Event, other: threading.Event) -> None:
        front = PublicServices(app.services, lambda: Caller(name))
        message = [{"role": "user", "content": f"a story of {name}"}]
        options = {
            "method": "ngram-exact",
            "max_new_tokens": 48,
            "temperature": 1.0,
            "seed": 1,
            "draft_policy": "fixed",
            "draft_length": 2,
        }
        for item in front.chat(target=app.pair[0], drafter=app.pair[1], messages=message, **options):
            order.append(name if isinstance(item, Round) else f"{name} ends")
            began.set()
            assert other.wait(60)

    flags = threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=talk, args=("a", *flags)),
        threading.Thread(target=talk, args=("b", *flags[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {"a ends", "b ends"} <= set(order)
    assert order.index("b") < order.index("a ends") and order.index("a") < order.index("b ends")
    app.services.store.flush()
    for name in ("a", "b"):
        app.who = Caller(name)
        assert [row["prompt"] for row in app.front.store.requests()] == [f"a story of {name}"]


def test_recorded_rounds_and_runs_beside_an_answer_are_the_visitors_own(app: App) -> None:
    for number in range(2):
        app.ask("a", f"duck {number}")
    app.services.store.flush()
    one = max(row["id"] for row in app.front.store.requests())
    assert replay_data.recall(app.front, one)["prompt"] == "duck 1"
    asked = {
        "target": app.pair[0],
        "drafter": app.pair[1],
        "message": "duck 1",
        "tokens": 12,
    }
    task = {"task": "own", "lines": "duck 1\nduck 2", "first": 0}
    before, after = replay_data.former(app.front, asked | {"task": task})["lanes"]
    # the visitor's line, not everybody's
    assert before["version"] == 0 and after["version"] == app.front.trainer(*app.pair).version > 0
    spent = app.front.quotas._known["a"].tokens
    (plain,) = replay_data.beside(app.front, {"kind": "plain", **asked})["lanes"]
    assert app.front.quotas._known["a"].tokens == spent + 12 * plain["runs"]
    app.who = Caller("b")
    with pytest.raises(ValueError, match="not kept any more"):
        replay_data.recall(app.front, one)
    with pytest.raises(Refused, match="9 answers within an hour"):  # they count like answers
        for _ in range(10):
            assert replay_data.beside(app.front, {"kind": "plain", **asked})["lanes"]


def test_what_concerns_everybody_is_refused_in_one_sentence(app: App, tmp_path: Path) -> None:
    front, pair = app.front, app.pair
    app.who = Caller("a")
    tries: list[Any] = [
        lambda: front.configure(training="off"),
        lambda: front.import_adapter(*pair, "default", tmp_path / "x.zip"),
        lambda: front.pause(*pair, domain="maths"),
        lambda: front.activate(*pair, 0, domain="maths"),
        lambda: front.reset(*pair, domain="maths"),
        lambda: front.store.forget_domain("maths"),
        lambda: front.stop(*pair),
        lambda: front.resolve(pair[0]),
        lambda: front.change_over("bundled/a"),
    ]
    for one in tries:
        with pytest.raises(Refused) as told:
            one()
        assert str(told.value).count(".") <= 2 and "\n" not in str(told.value)
    state = front.load("Qwen/Qwen2.5-0.5B-Instruct", pair[1])
    assert (
        state.stage == "failed"
        and "operator" in state.error
        and app.services.pool.state("Qwen/Qwen2.5-0.5B-Instruct", pair[1]).stage == "absent"
    )
    bundled = {f"bundled/{name}" for name in ("large", "a", "drafter", "drafter-4")}
    assert {card.name for card in front.models()} <= {*bundled, *pair}
    with pytest.raises(Refused, match="visitor's id"):
        app.ask("")
    for _ in range(9):
        app.ask("a", max_new_tokens=1, learn=False)
    with pytest.raises(Refused, match="You have had 9 answers"):
        app.ask("a")

    app.who = Caller("a", operator=True)
    front.configure(training="off")
    assert front.settings.public == "false" and app.services.settings.training == "off"


def test_after_the_operators_change_over_open_pages_go_on(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.services.pool, "load", lambda *names: None)
    app.who = Caller("a", operator=True)
    assert app.front.change_over("someone/better")[0] == "someone/better"
    monkeypatch.undo()
    app.who = Caller("b")
    assert app.front.settings.target == "someone/better" and app.front.better() is None
    assert app.front.load(*app.pair).stage == "ready"


def test_a_visitor_calls_only_what_has_a_method_of_its_own(app: App) -> None:
    """A new service stays closed until `PublicServices` says what a visitor may do with it."""
    app.services.new_service = lambda: "anything"  # type: ignore[attr-defined]
    for who in (Caller("a"), Caller("a", operator=True), None):
        app.who = who
        with pytest.raises(AttributeError):
            app.front.new_service()  # type: ignore[attr-defined]
        assert not hasattr(app.front, "visitor_lines") and not hasattr(app.front, "forget_exports")


def test_on_this_computer_alone_everything_is_allowed(app: App) -> None:
    app.services.pool.settings = app.services.settings.model_copy(update={"public": "false"})
    app.front.configure(update_interval=3)
    app.front.pause(*app.pair, domain="maths")
    assert app.front.store is app.services.store
    app.ask("a")
    app.services.store.flush()
    assert app.services.store.requests()[0]["session"] == "a"  # the browser's name, not what it sent
    app.services.pool.settings = app.services.settings.model_copy(update={"public": "auto"})
    assert not app.front.public
    app.front.seen_through_proxy()
    assert app.front.public and app.front.settings.public == "true"


def test_lines_end_after_a_time_and_where_there_are_too_many(app: App) -> None:
    for name in ("a", "b", "c", "d"):
        app.ask(name), app.ask(name)
    folder = {
        name: version_folders.line_folder(app.services.settings.storage, app.pair[1], app.pair[0], OWN + name)
        for name in "abcd"
    }
    assert not folder["a"].exists() and folder["d"].exists()  # three at most
    app.services.visitor_lines.sweep()
    assert folder["d"].exists()
    for used in app.services.visitor_lines._used:
        app.services.visitor_lines._used[used] -= 3601
    left = version_folders.line_folder(app.services.settings.storage, "another", "pair", OWN + "0" * 24)
    left.mkdir(parents=True)
    os.utime(left, (1, 1))  # of an earlier run
    app.front.sweep()
    assert not any(one.exists() for one in (*folder.values(), left))
    assert all(line.domain == "default" for line in app.services.adaptation.lines(*app.pair))


def test_a_line_that_drafts_for_longer_than_lines_are_kept_stays(app: App) -> None:
    app.ask(NAME), app.ask(NAME)
    folder = version_folders.line_folder(app.services.settings.storage, app.pair[1], app.pair[0], OWN + NAME)
    with app.services.pool.using(*app.pair) as (_, lines), lines.using(OWN + NAME):
        app.services.visitor_lines._used[OWN + NAME] -= 3601
        for entry in (*folder.iterdir(), folder):
            os.utime(entry, (1, 1))
        app.front.sweep()
        assert version_folders.versions(folder)
    app.front.sweep()
    assert not folder.exists()


def test_files_that_cannot_be_removed_end_neither_a_sweep_nor_an_answer(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError("read-only file system")

    app.ask(NAME), app.ask(NAME)
    with monkeypatch.context() as patched:
        patched.setattr(version_folders, "remove_line", refuse)
        for name in ("b", "c", "d"):  # one more than there may be: the first one has to go
            app.ask(name)
        app.front.sweep()
    folder = version_folders.line_folder(app.services.settings.storage, app.pair[1], app.pair[0], OWN + NAME)
    assert folder.exists()
    for entry in (*folder.iterdir(), folder):
        os.utime(entry, (1, 1))
    app.front.sweep()
    assert not folder.exists()


def test_an_operators_questions_are_found_where_they_are_recorded(app: App) -> None:
    app.who = Caller("a", operator=True)
    message = [{"role": "user", "content": "What is 2 plus 3?"}]
    options: dict[str, Any] = {"method": "ngram-exact", "max_new_tokens": 4}
    *_, _ = app.front.chat(
        session="sent by a program", target=app.pair[0], drafter=app.pair[1], messages=message, **options
    )
    app.services.store.flush()
    assert [row["session"] for row in app.services.store.requests()] == ["a"]
    assert "Deleted: 1 request" in app.front.forget("a")
