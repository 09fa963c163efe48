"""The Adaptation tab below its page: lines, versions, settings, adapters in and out; the
chat's topic line."""

from __future__ import annotations

import json
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from omnidemo.core import private_folders
from omnidemo.core.config import GREEDY
from omnidemo.ui.adaptation_data import View, page_json
from omnidemo.ui.chat_request import ChatRequest
from omnidemo.ui.tabs import adaptation_tab, chat_controls, chat_tab, trainer_panel
from tests.support.fakes import FakeServices

PAIR = ("bundled/large", "bundled/drafter")


@pytest.fixture
def services() -> FakeServices:
    return FakeServices(load_seconds=0.0, pace=0.0)


def looking(target: str, drafter: str, **more: Any) -> View:
    return View(target=target, drafter=drafter, **more)


def unloaded(*_: Any, **__: Any) -> Any:
    raise RuntimeError("bundled/large is not loaded yet (queued); wait until it is ready")


# the page
# ------------------------------------------------------------------------------------------------------------


def test_the_page_holds_lines_versions_and_marks(services: FakeServices) -> None:
    sent = page_json(services, looking(*PAIR, line="maths"), 3, "k")
    page = json.loads(sent)
    assert "<" not in sent
    assert [one["version"] for one in page["versions"] if one["live"]] == [3]
    assert (
        [one["version"] for one in page["versions"] if one["stored"]]
        == services.adaptation.on_disk(*PAIR, "maths")
        == [6, 5, 4, 3]
    )
    rolled = [one for one in page["versions"] if one["effect"].get("rolled_back")]
    assert [one["version"] for one in rolled] == [4] and rolled[0]["effect"]["acceptance_after"] < rolled[0][
        "effect"
    ]["acceptance_before"]


def test_an_unloaded_pair_has_a_page_too(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lines", "drafting"):
        monkeypatch.setattr(services, name, unloaded)
    services.store.rows = []
    page = json.loads(page_json(services, looking(*PAIR, line="empty"), 0, "k"))
    assert page["line"] == "empty" and not page["versions"]


# the trainer
# ------------------------------------------------------------------------------------------------------------


def test_the_trainer_says_roll_backs(services: FakeServices) -> None:
    shown = json.loads(trainer_panel.trainer_json(services, *PAIR, "maths"))
    assert (shown["domain"], shown["version"], shown["rolled_back"]) == ("maths", 3, 1)
    assert (
        shown["drafting"]["costs"][:2] == [1.0, 1.12]
        and shown["drafting"]["length"] == 5.4
        and shown["drafting"]["speculating"]
        and shown["drafting"]["title"] == "by the switch on the page"
    )


def test_the_trainers_error_names_no_folder(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = replace(
        services.adaptation.trainer(*PAIR),
        error="The adapter version in /srv/app/storage/adapters/x/v000002 is damaged.",
    )
    monkeypatch.setattr(services, "trainer", lambda *_: failed)
    assert (
        json.loads(trainer_panel.trainer_json(services, *PAIR))["error"]
        == "The adapter version in v000002 is damaged."
    )


@pytest.mark.parametrize("asked", ["auto", "", "half/typed"])
def test_a_line_that_is_no_line_shows_the_default_one(services: FakeServices, asked: str) -> None:
    assert json.loads(trainer_panel.trainer_json(services, *PAIR, asked))["domain"] == "default"


# versions in and out
# ---------------------------------------------------------------------------------------------------------


def test_what_is_refused_is_said_on_the_page(services: FakeServices) -> None:
    page_of, given = adaptation_tab.Page(services), looking(*PAIR, line="maths", seen="was there")
    page, _ = page_of.after(lambda view: services.adaptation.activate(*PAIR, 99, domain=view.line), given)
    assert "Version 99 of the line maths is not there" in json.loads(page)["note"]
    page, shown = page_of.after(lambda view: services.adaptation.activate(*PAIR, 1, domain=view.line), given)
    assert json.loads(page)["note"] == "" and json.loads(shown)["version"] == 1
    assert services.versions["default"] == 5, "another line keeps its own"


def test_the_page_is_sent_again_only_when_something_changed(services: FakeServices) -> None:
    page_of, view = adaptation_tab.Page(services), looking(*PAIR)
    key = json.loads(page_of.show(view)[0])["key"]
    seen = view.model_copy(update={"seen": key})
    assert page_of.show(seen) == (gr.skip(), gr.skip())
    services.store.rows.append(dict(services.store.rows[-1], id=999))
    assert json.loads(page_of.show(seen)[0])["key"] != key


def test_an_export_is_a_copy_outside_of_the_storage(
    services: FakeServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_folders, "temporary_folder", lambda: tmp_path)
    path = adaptation_tab.export_file(services, looking(*PAIR, line="maths", version=2))
    assert path.is_relative_to(tmp_path) and path.name == "adapter-maths-v2.zip"
    assert zipfile.ZipFile(path).namelist() == ["adapter_config.json", "adapter_model.safetensors"]
    with pytest.raises(ValueError, match="no adapter"):
        adaptation_tab.export_file(services, looking(*PAIR))


@pytest.mark.parametrize("asked", [{"version": "wide"}, {"line": ""}, {"line": 5}, ["maths"]])
def test_the_view_of_a_browser_is_checked(asked: Any) -> None:
    assert adaptation_tab.read_view("t", "d", {"line": "maths", "version": 3, "more": 1}) == looking(
        "t", "d", line="maths", version=3
    )
    with pytest.raises(ValueError, match=r"Reload the page|No pair is chosen") as refused:
        adaptation_tab.read_view("t", "d", asked)
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="No pair is chosen"):
        adaptation_tab.read_view("", "d", {})


# the chat's topic line
# -------------------------------------------------------------------------------------------------------


def finished(services: FakeServices, line: str, message: str) -> dict[str, Any]:
    services.pool.load(*PAIR)
    asked = {"message": message, "line": line, "options": {**GREEDY.options}}
    asked |= dict(zip(("target", "drafter"), PAIR, strict=True))
    *_, last = chat_tab.answer(services, ChatRequest.of(asked), threading.Event())  # type: ignore[arg-type]
    end: dict[str, Any] = json.loads(last.strip().splitlines()[-1])
    return end


def test_the_automatic_line_is_shown_with_its_reason(services: FakeServices) -> None:
    end = finished(services, "auto", "How many apples?")
    assert end["line"] == "maths" and "apples" in end["why"]
    assert services.calls[-1]["domain"] == "auto", (
        "the service routes; a guess is no choice by hand, which would teach the router"
    )


def test_a_line_by_hand_needs_no_reason_and_may_be_new(services: FakeServices) -> None:
    end = finished(services, "  my   poems ", "How many apples?")
    # the topic is a label, whichever line drafts
    assert end["line"] == "my poems" and end["topic"] == "maths" and "apples" in end["why"]
    assert "my poems" in chat_controls.line_names(services, *PAIR)
    assert chat_tab.line_choices(["default", "maths"])[-1] == ("maths", "maths")


@pytest.mark.parametrize("training", ["idle", "off"])
def test_nothing_is_learned_from_a_chat_while_learning_is_off_by_the_settings_of_now(
    services: FakeServices, training: str
) -> None:
    services.adaptation.configure(training=training)
    finished(services, "default", "hello")
    assert services.calls[-1]["learn"] is (training != "off") and services.calls[-1]["keep"]


def test_an_unknown_draft_length_stops_no_answer(
    services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "drafting", unloaded)
    assert finished(services, "default", "hello")["finish"] == "end"
