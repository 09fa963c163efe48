"""A GGUF file is asked for by any of its names, and everything shows and stores the one that it is known
by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation
from omnidemo.models import names
from omnidemo.models.fetching import hub_downloads
from omnidemo.models.gguf import sources
from omnidemo.models.load import load_model
from omnidemo.serving.endpoint import model_ids
from omnidemo.serving.pair_pool import STOPPED, PairState
from omnidemo.serving.services import Services
from omnidemo.ui.tabs import models_panel
from omnidemo.ui.tabs.visitor_panel import public_services
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.hub_double import CHUNK, hub_double

DRAFTER = "bundled/drafter"


@pytest.fixture(autouse=True)
def _nothing_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_known", {})
    monkeypatch.setenv("OMNIDEMO_MODELS", str(tmp_path / "nothing fetched"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("secret-place") / "tiny.F32.gguf", tiny_model())


@contextmanager
def serving(tmp_path: Path, target: str, **more: Any) -> Iterator[Services]:
    services = Services(
        Settings(
            target=target, drafter=DRAFTER, storage=tmp_path / "storage", training="off", device="cpu", **more
        )
    )
    try:
        yield services
    finally:
        services.close()


def until(services: Services, target: str, *stages: str) -> PairState:
    end = time.monotonic() + 60
    while (state := services.pool.state(target, DRAFTER)).stage not in stages:
        assert time.monotonic() < end and state.stage != "failed", state
        time.sleep(0.01)
    return state


def test_a_path_never_shows(file: Path, tmp_path: Path) -> None:
    known = sources.find(str(file)).name
    with serving(tmp_path, str(file)) as services:
        assert services.settings.target == known
        services.pool.load(str(file), DRAFTER)  # as a page that was open before would ask
        assert until(services, str(file), "ready").target == known
        assert services.pool.load(known, DRAFTER).stage == "ready" and services.pool.known(str(file)) == known
        asked: dict[str, Any] = {
            "messages": [{"role": "user", "content": "hi"}],
            "max_new_tokens": 4,
            "session": "s",
        }
        *_, answer = services.chats.chat(target=str(file), drafter=DRAFTER, method="ngram-exact", **asked)
        assert isinstance(answer, Generation)
        services.store.flush()
        services.store.export_csv("requests", tmp_path / "requests.csv")
        written = (tmp_path / "requests.csv").read_text(encoding="utf-8")
        assert known in written and "secret-place" not in written
        front = public_services(services)
        ids = model_ids.listed(front)
        assert known in ids and not [one for one in ids if "secret-place" in one]
        assert model_ids.find(front, known).target == known
        card = next(card for card in services.models() if card.name == known)
        assert (card.availability, card.source, card.type) == ("cached", "folder", "F32")
        theirs = services.settings  # what another process gets, which has seen nothing
    sources._known.clear()
    assert load_model(names.resolve(theirs.target, theirs).where, device="cpu", absent=True).name == known


def test_a_wrong_path_is_said_where_it_is_loaded(tmp_path: Path) -> None:
    with serving(tmp_path, str(tmp_path / "nothing.gguf")) as services:
        services.pool.load(services.settings.target, DRAFTER)
        state = services.pool.state(services.settings.target, DRAFTER)
        end = time.monotonic() + 30
        while state.stage != "failed" and time.monotonic() < end:
            time.sleep(0.01)
            state = services.pool.state(services.settings.target, DRAFTER)
        assert state.error is not None and "is not there" in state.error


def test_a_download_is_stopped_goes_on_and_then_has_its_name(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = "some-org/tiny-GGUF:tiny.F32.gguf"
    monkeypatch.setattr(hub_downloads, "LARGE", CHUNK)
    slow, http_get = {"seconds": 0.05}, hub_downloads.http_get

    def slowly(url: str, opened: Any, **options: Any) -> None:
        bar = options["tqdm_class"]

        class Slow(bar):  # type: ignore[misc, valid-type]
            def update(self, n: float | None = 1) -> bool | None:
                time.sleep(slow["seconds"])
                return bar.update(self, n)

        http_get(url, opened, **options | {"tqdm_class": Slow})

    monkeypatch.setattr(hub_downloads, "http_get", slowly)
    data = file.read_bytes()
    files = {("some-org/tiny-GGUF", "tiny.F32.gguf"): data}
    with hub_double(files, tmp_path / "cache", monkeypatch) as hub, serving(tmp_path, spec) as services:
        front = public_services(services)
        assert (
            services.settings.target == spec
            and next(c for c in services.models() if c.name == spec).availability == "downloadable"
        )
        services.pool.load(spec, DRAFTER)
        while not until(services, spec, "downloading").fraction:
            time.sleep(0.01)
        services.pool.stop(spec, DRAFTER)
        state = until(services, spec, "absent")
        assert state.detail == STOPPED and 0 < hub_downloads.begun("some-org/tiny-GGUF") < len(data)
        slow["seconds"] = 0.0
        services.pool.load(spec, DRAFTER)
        known = until(services, spec, "ready").target
        assert known.startswith("gguf/Tiny-Test-F32-") and services.settings.target == known
        assert hub.asked[1][1] is not None, "it went on where it was"
        pickers = models_panel.use(front, "target", spec, known, DRAFTER)[1:]
        assert pickers[0].value == known
        cards = [card for card in services.models() if card.name in (known, spec)]
        assert [card.source for card in cards] == ["hub"] and cards[0].name == known
        assert services.pool.stop(known, DRAFTER).stage == "ready", "what is ready is not stopped"


def test_the_panel_of_other_models(file: Path, tmp_path: Path) -> None:
    known = sources.find(str(file)).name
    with serving(tmp_path, "bundled/large", model_folders=str(tmp_path / "nowhere")) as services:
        front = public_services(services)
        shown, target, drafter = models_panel.use(
            front, "target", str(tmp_path / "nothing.gguf"), "bundled/large", DRAFTER
        )
        assert "is not there; give the path" in shown.info and target == drafter == gr.skip()
        shown, target, drafter = models_panel.use(front, "target", f" {file} ", "bundled/large", DRAFTER)
        assert (
            target.value == known and known in [name for _, name in target.choices] and drafter == gr.skip()
        )
        assert "Press a row" in shown.info and "secret-place" not in str(models_panel.rows(front))
        assert "Write the name" in models_panel.use(front, "target", "  ", "bundled/large", DRAFTER)[0].info


def test_visitors_of_a_public_app_choose_from_the_list_alone(file: Path, tmp_path: Path) -> None:
    from omnidemo.serving.quotas import Refused
    from omnidemo.storage.visitors import Caller

    with serving(tmp_path, str(file), public="true") as services:
        known = services.settings.target
        front = public_services(services).calling_as(Caller("somebody"))
        cards = front.models()
        assert known in [card.name for card in cards] and all(
            card.name.startswith("bundled/") or card.name == known for card in cards
        )
        with pytest.raises(Refused):
            front.resolve(str(file))
        with pytest.raises(Refused):
            front.stop(known, DRAFTER)
        refused = front.load(str(tmp_path / "other.gguf"), DRAFTER)
        assert refused.stage == "failed" and "Only the models of the list" in str(refused.error)
        shown, *_ = models_panel.use(front, "target", "ollama/tiny", known, DRAFTER)
        assert "operator" in shown.info
