"""The measuring tabs below their pages: batches, summaries, CSV, what a visitor may see and delete."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation
from omnidemo.serving.comparison import Comparison, Question
from omnidemo.serving.quotas import Refused
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import Caller
from omnidemo.ui import downloads, replay_data
from omnidemo.ui.comparison_tables import ComparisonView, read_batch, summary
from omnidemo.ui.tabs import history_tab
from tests.support.fakes import FakeServices, generation, script


def answer(text: str = "a b c", method: str = "ngram-exact") -> Generation:
    return generation(script(text, plain=method == "autoregressive"), 0.5, method)


# batches and their results
# -------------------------------------------------------------------------------------------------


def test_a_batch_is_read_with_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text('\ufeff{"prompt": "one"}\n\n{"prompt": "zwei ä", "id": 3}\n', encoding="utf-8")
    assert read_batch(file) == [Question(("one",)), Question(("zwei ä",))]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"prompt": "a"}\nnot json', "line 2: this is not JSON"),
        (b'{"text": "a"}', "line 1: there is no prompt"),
        (b"[1]", "entry 1: there is no prompt"),
        (b'{"prompt": "  "}', "line 1: there is no prompt"),
        (b"\n\n", "has no questions"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"prompt": "a"}\n' * 501, "more than 500"),
    ],
)
def test_a_bad_batch_is_refused_with_its_cause(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_bytes(content)
    with pytest.raises(Refused, match=why) as refused:
        read_batch(file)
    assert str(tmp_path) not in str(refused.value)


def test_the_summary_has_median_and_range_of_defined_values() -> None:
    runs = {"m": (10.0, 14.0, 11.0), "o": (13.0, 13.5, 12.0), "p": (20.0,), "q": (9.0, 10.5, 10.0)}
    results = [
        {"method": name, "tokens_per_second": pace, "identical": True}
        for name, paces in runs.items()
        for pace in paces
    ]
    results[0] |= {"speedup": None, "identical": False}
    results[1] |= {"speedup": 1.5}
    first, second, third, fourth, missing = summary(results, ["m", "o", "p", "q", "n"])
    assert (
        first["n"] == 3
        and first["tokens_per_second"] == [11.0, 10.0, 14.0]
        and first["speedup"] == [1.5, 1.5, 1.5]
    )
    assert (first["identical"], first["checked"]) == (2, 3)
    assert missing["n"] == 0 and missing["tokens_per_second"] == [None, None, None]
    # The second is the fastest by its median; the first's range reaches it, so they cannot be told apart. One
    # run alone tells nothing.
    assert [row["best"] for row in (first, second, third, fourth, missing)] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(("setting", "line"), [("poetry", "poetry"), ("auto", "default")])
def test_a_comparison_names_the_line_whose_drafter_it_runs(setting: str, line: str) -> None:
    services = FakeServices(settings=Settings(domain=setting))
    common = {"temperature": 0.0, "target": "bundled/large"}
    said = json.loads(ComparisonView(services, "run", ["hi " * 50], [], common).json("running"))
    assert (said["line"], said["target"], said["prompt"]) == (line, "bundled/large", ("hi " * 50)[:80])


def board(prompts: list[str], methods: list[str]) -> ComparisonView:
    common = {
        "target": "t",
        "drafter": "d",
        "seed": 7,
        "temperature": 0.0,
        "draft_length": 4,
        "max_new_tokens": 16,
    }
    return ComparisonView(FakeServices(), "run", prompts, methods, common)


def test_one_prompt_gives_lanes_whose_tokens_are_the_answer() -> None:
    results = board(["hi"], ["ngram-exact", "autoregressive"])
    for run, speedup in enumerate((1.5, 1.7, 1.9)):
        results.add(Comparison(0, "hi", "ngram-exact", answer("<b>x</b> ${1+1} 😀"), True, speedup, run))
    text = results.json("running")
    value = json.loads(text)
    lines = [json.loads(line) for line in value["lanes"][0]["lines"].splitlines()]
    assert "".join(line["t"] for line in lines if line["k"] == "t") == "<b>x</b> ${1+1} 😀"
    assert "<" not in text  # nothing that looks like markup travels
    assert (value["done"], value["total"], value["base"]) == (3, 6, True)
    assert (
        len(value["lanes"]) == 1
        and value["lanes"][0]["speedup"] == [1.7, 1.5, 1.9]
        and value["lanes"][0]["identical"] is True
        and value["lanes"][0]["guessing"] == "on"
    )


def test_a_batch_sends_no_answers_but_the_rows_of_the_csv_have_them() -> None:
    results = board(["=SUM(A1)", 'a\n"b"'], ["ngram-exact"])
    results.add(Comparison(0, "=SUM(A1)", "ngram-exact", answer(), None, 0.8))
    results.add(Comparison(1, 'a\n"b"', "ngram-exact", answer("@x"), False, None))
    made = json.loads(results.json("done", csv=results.csv))
    first, second = made["csv"]
    assert made["lanes"] == [] and first["prompt"] == "=SUM(A1)" and second["answer"] == "@x"
    assert first["measured_speedup"] == 0.8 and second["measured_speedup"] is None and first["seed"] == 7
    assert first["created_at_utc"].endswith("+00:00") and second["identical_to_autoregressive"] is False
    assert first["repetition"] == 0 and first["guesses_right_share"] == pytest.approx(
        answer().metrics["guesses_right"], abs=1e-6
    )


# history
# ------------------------------------------------------------------------------------------------------------

LOCAL, PUBLIC = Settings(host="127.0.0.1"), Settings(host="0.0.0.0")
MINE, OTHER = Caller("mine").own, Caller("other").own


def asked(session: str, prompt: str) -> RequestRecord:
    return RequestRecord(
        session, "t", "d", "default", "ngram-exact", prompt, answer(), {}, "2026-01-02T03:04:05+00:00", "chat"
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'test.db'}")
    for session, prompt in ((MINE, "one"), (MINE, "two"), (OTHER, "three")):
        made.record_request(asked(session, prompt))
    assert made.flush()
    yield made
    made.close()


def services(store: Store, settings: Settings = LOCAL, session: str = MINE) -> Any:
    return SimpleNamespace(
        session=session,
        store=store,
        settings=settings,
        methods=FakeServices().methods,
        own="",
        forget_copies=lambda domain: None,
    )


def visitor(store: Store, name: str) -> Any:
    """The services of a public app, as this visitor sees them."""
    found = services(VisitorStore(store, Caller(name)), PUBLIC)  # type: ignore[arg-type]
    found.own = found.session = Caller(name).own
    return found


def prompts(services: Any, **filters: str) -> list[str]:
    return [row["prompt"] for row in history_tab.table(services, filters)["rows"]]


def test_alone_on_this_computer_everything_is_shown(store: Store) -> None:
    local = services(store)
    assert prompts(local) == ["three", "two", "one"]
    assert prompts(local, session="mine") == ["two", "one"]
    assert (
        prompts(services(store, session=""), session="mine") == []
    )  # no session must not mean every session
    assert prompts(local, session=OTHER) == ["three"]
    assert prompts(local, method="autoregressive") == []
    assert prompts(local, pair=f"t{history_tab.SEPARATOR}d") == ["three", "two", "one"]
    assert history_tab.table(local, {})["everyone"]


def test_what_a_visitor_downloaded_goes_with_that_visitor_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "private_folder", lambda name: tmp_path / name)
    mine, others = visitor(store, "mine"), visitor(store, "other")
    (tmp_path / "downloads").mkdir()
    # as `TrainerPool.export` calls it
    zipped = downloads.temporary(f"omnidemo-drafter-for-a-{MINE.replace('~', '-')}-v1.zip")
    zipped.write_bytes(b"")
    csvs = [history_tab.export(one, {}) for one in (mine, others, services(store))]
    copies = [
        downloads.private_folder("gradio") / str(place) / path.name
        for place, path in enumerate((zipped, *csvs))
    ]
    for copy in copies:
        copy.parent.mkdir(parents=True)
        copy.write_bytes(b"")
    history_tab.delete(mine, {"mine": True})
    assert [path.exists() for path in (zipped, *csvs, *copies)] == [False, False, True, True] * 2
    history_tab.delete(services(store), {"session": OTHER})
    assert not any(path.exists() for path in (*csvs, *copies))


def test_the_history_says_what_the_form_of_an_answer_wrote(store: Store) -> None:
    one = asked(MINE, "four")
    metrics = one.generation.metrics | {"forced": 4.0, "changed": 1.0}
    store.record_request(replace(one, generation=replace(one.generation, metrics=metrics)))
    assert store.flush()
    first, second, *_ = history_tab.table(services(store), {})["rows"]
    assert (first["forced"], first["changed"]) == (4.0, 1.0)
    assert not second["forced"] and not second["changed"]


def test_requests_of_a_target_that_is_not_there_any_more_are_kept(store: Store) -> None:
    for target in ("bundled/a", "bundled/large"):
        store.record_request(replace(asked(MINE, "four"), target=target))
    assert store.flush()
    shown = history_tab.table(services(store), {})
    (pair,) = (name for name in shown["pairs"] if name.startswith("bundled/a"))
    assert [row["target"] for row in history_tab.table(services(store), {"pair": pair})["rows"]] == [
        "bundled/a"
    ]
    (old,) = (row["id"] for row in shown["rows"] if row["target"] == "bundled/a")
    assert replay_data.recall(services(store), old)["target"] == "bundled/a"
    assert history_tab.delete(services(store), {"ids": [old]}) == "1 request deleted."


def test_a_visitor_sees_only_their_own_session(store: Store) -> None:
    for filters in ({}, {"session": OTHER}, {"session": "mine"}):
        assert prompts(visitor(store, "mine"), **filters) == ["two", "one"]
        assert prompts(visitor(store, "new"), **filters) == []
    table = history_tab.table(visitor(store, "mine"), {})
    assert table["sessions"] == [] and not table["everyone"]


def test_a_visitor_deletes_only_their_own(store: Store) -> None:
    ids = [row["id"] for row in store.requests()]
    for what in ({"ids": ids}, {"mine": True}, {"session": OTHER}):
        assert history_tab.delete(visitor(store, "new"), what) == "There was nothing to delete."
    assert history_tab.delete(visitor(store, "mine"), {"ids": ids}) == "2 requests deleted."
    assert [row["prompt"] for row in store.requests()] == ["three"]


def test_a_session_is_deleted_on_this_computer(store: Store) -> None:
    assert history_tab.delete(services(store, session=""), {"mine": True}) == "There was nothing to delete."
    assert history_tab.delete(services(store), {"session": OTHER}) == "1 request deleted."
    assert history_tab.delete(services(store), {"mine": True}) == "2 requests deleted."
    assert store.requests() == []


def test_a_visitors_csv_holds_only_their_own(store: Store) -> None:
    for kind in ("requests", "rounds"):
        path = history_tab.export(visitor(store, "other"), {"csv": kind, "session": MINE})
        with path.open(encoding="utf-8-sig", newline="") as file:
            assert {row["session"] for row in csv.DictReader(file)} == {OTHER}


def test_an_older_download_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads.tempfile, "gettempdir", lambda: str(tmp_path))
    first = downloads.temporary("a.csv")
    first.write_text("x")
    kept = downloads.temporary("b.csv")
    assert first.exists()
    monkeypatch.setattr(downloads, "KEEP_SECONDS", -1)
    downloads.temporary("c.csv")
    assert not first.exists() and not kept.parent.exists()
