"""The better target: fetched and compiled for beside a smaller one, offered once it can answer, and never
chosen by itself."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo.backends import compile_kernels
from omnidemo.core.config import DEFAULT, EMBEDDED_TARGET, Settings
from omnidemo.models import model_files, names
from omnidemo.models.catalogue import title_of
from omnidemo.models.fetching.fetch import FetchState
from omnidemo.models.gguf import identity, sources
from omnidemo.models.gguf.identity import CatalogueFile
from omnidemo.serving import better_target
from omnidemo.serving.better_target import BetterTarget, first_target
from omnidemo.ui.tabs import better_panel

BEST, SMALL = (
    CatalogueFile(
        name=title.split()[0].lower(), known=known, title=title, file=f"{title}.gguf", bytes=size, sha256="",
        licence="", author="", repository="some/one", default=rank, needs=needs,
    )
    for rank, title, known, size, needs in (
        (1, "Best 1B", "gguf/Best-Q4_K_M-00000001", 1000, 5_000),
        (2, "Small", "gguf/Small-Q4_1-00000002", 10, 0),
    )
)  # fmt: skip
FULL = "the disk is full; free space"


class OneFetch:
    """A fetch whose state the test sets."""

    made: list[OneFetch] = []  # noqa: RUF012

    def __init__(self, entry: CatalogueFile, settings: Settings) -> None:
        self.state, self.stopped = (
            FetchState(entry.name, "Best 1B", 1000, 400, "downloading", "the Hub"),
            False,
        )
        OneFetch.made.append(self)

    def start(self) -> OneFetch:
        return self

    def stop(self) -> None:
        self.stopped = True
        self.state = FetchState("best", "Best 1B", 1000, 400, "stopped")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What is on the machine: files of the catalogue, free memory, machine code."""
    here = SimpleNamespace(files=set[str](), free=10_000, compiled=True, failure="")
    OneFetch.made = []
    monkeypatch.setattr(identity, "defaults", lambda: [BEST, SMALL])
    monkeypatch.setattr(
        sources,
        "catalogued",
        lambda entry, folders=(): (
            SimpleNamespace(name=entry.known, spec=f"/models/{entry.name}.gguf")
            if entry.name in here.files
            else None
        ),
    )
    monkeypatch.setattr(model_files, "free_memory", lambda device: here.free)
    monkeypatch.setattr(better_target, "Fetch", OneFetch)
    monkeypatch.setattr(better_target, "where", lambda entry, settings: None)
    monkeypatch.setattr(compile_kernels, "kept", lambda: here.compiled)
    monkeypatch.setattr(compile_kernels, "failure", lambda: here.failure)
    monkeypatch.delenv("SPACE_ID", raising=False)
    return here


def better(machine: SimpleNamespace, target: str = DEFAULT) -> BetterTarget:
    return BetterTarget(Settings(target=target), lambda: machine.compiled)


def test_it_is_fetched_beside_and_can_be_stopped_and_gone_on_with(machine: SimpleNamespace) -> None:
    found = better(machine)
    assert found.state().stage == "none"
    found.start()
    found.start()
    assert len(OneFetch.made) == 1, "one fetch at a time"
    state = found.state()
    assert (state.stage, state.done, state.size, state.source) == ("fetching", 400, 1000, "the Hub")
    found.stop()
    assert found.state().stage == "stopped" and found.state().done == 400
    found.start()
    assert len(OneFetch.made) == 2 and found.state().stage == "fetching"


def test_where_the_settings_name_a_target_nothing_is_fetched_or_offered(machine: SimpleNamespace) -> None:
    found = better(machine, "smollm2")
    found.start()
    machine.files.add("best")
    assert not OneFetch.made and found.state().stage == "none"


def test_what_goes_wrong_is_one_sentence_and_can_be_tried_again(machine: SimpleNamespace) -> None:
    found = better(machine)
    found.start()
    OneFetch.made[0].state = FetchState(
        "best", "Best 1B", 1000, 0, "failed", error="the disk is full; free space"
    )
    assert (found.state().stage, found.state().error) == ("failed", FULL)
    found.start()
    assert len(OneFetch.made) == 2


def test_where_memory_is_short_nothing_is_fetched_and_the_need_is_said(machine: SimpleNamespace) -> None:
    machine.free = 4_999
    found = better(machine)
    found.start()
    assert not OneFetch.made
    assert found.state().stage == "failed" and "Best 1B needs" in found.state().error
    machine.files |= {"best", "small"}
    assert names.resolve(DEFAULT, Settings(target=DEFAULT)).name == SMALL.known


def test_it_is_ready_once_there_is_machine_code(machine: SimpleNamespace) -> None:
    machine.files.add("best")
    machine.compiled = False
    assert better(machine).state().stage == "compiling"
    machine.failure = "no compiler"
    assert better(machine).state().stage == "none", "without machine code it is too slow"
    machine.compiled, machine.failure = True, ""
    state = better(machine).state()
    assert (state.stage, state.name) == ("ready", BEST.known)


def test_auto_is_the_best_that_is_here(machine: SimpleNamespace) -> None:
    settings = Settings(target=DEFAULT)
    assert names.resolve(DEFAULT, settings).name == EMBEDDED_TARGET
    machine.files.add("small")
    assert names.resolve(DEFAULT, settings).name == SMALL.known
    machine.files.add("best")
    assert names.resolve(DEFAULT, settings).name == BEST.known


def test_a_start_without_machine_code_begins_with_a_smaller_one(
    machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.files |= {"best", "small"}
    assert first_target(Settings(target=DEFAULT)).target == DEFAULT
    machine.compiled = False
    assert first_target(Settings(target=DEFAULT)).target == "/models/small.gguf"
    assert first_target(Settings(target="bundled/large")).target == "bundled/large"
    machine.files.remove("small")
    assert first_target(Settings(target=DEFAULT)).target == EMBEDDED_TARGET
    monkeypatch.setenv("SPACE_ID", "someone/omnidemo")
    assert first_target(Settings(target=DEFAULT)).target == DEFAULT, "a Space's visitors cannot change it"


def panel(
    found: BetterTarget | None, target: str, pace: float | None = None, changed_to: str = ""
) -> dict[str, Any]:
    services: Any = SimpleNamespace(
        better=lambda: found, pace_of=lambda name: pace, changed_over=lambda: bool(changed_to),
        settings=SimpleNamespace(target=changed_to),
    )  # fmt: skip
    said: dict[str, Any] = json.loads(better_panel.state(services, target))
    return said


def test_the_line_of_the_page(machine: SimpleNamespace) -> None:
    found = better(machine)
    assert panel(found, SMALL.known)["stage"] == "none"
    found.start()
    assert panel(found, SMALL.known) | {"stage": "fetching", "done": 400} == panel(found, SMALL.known)
    machine.files.add("best")
    assert panel(found, SMALL.known)["stage"] == "ready"
    assert panel(None, SMALL.known)["stage"] == "none", "visitors of a public app use the configured pair"


def test_the_line_says_what_was_changed_over_to(machine: SimpleNamespace) -> None:
    machine.files |= {"best", "small"}
    found = better(machine)
    for name in (BEST.known, SMALL.known):
        said = panel(found, name, changed_to=name)
        assert (said["stage"], said["name"], said["title"]) == ("changed", name, title_of(name))
    assert panel(found, SMALL.known, changed_to=BEST.known)["stage"] == "ready", "an older page"
    assert panel(found, BEST.known, 3.0, changed_to=BEST.known)["stage"] == "slow"


def test_a_target_that_is_slow_here_is_said_to_be_and_a_faster_one_offered(machine: SimpleNamespace) -> None:
    machine.files |= {"best", "small"}
    found = better(machine)
    assert panel(found, BEST.known)["stage"] == "none"
    assert panel(found, BEST.known, 4.0)["stage"] == "none"
    said = panel(found, BEST.known, 3.14)
    assert said["stage"] == "slow" and (said["pace"], said["slow_title"]) == (3.1, "Best 1B")
    assert (said["name"], said["title"]) == (SMALL.known, "Small")
