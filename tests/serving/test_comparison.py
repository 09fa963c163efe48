"""Methods side by side: on what the pair has learned, by the rules of a chat, beside the drafter as it
came."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.serving import chat_service
from omnidemo.serving.comparison import FRESH, FRESH_LINE, TODAY, compare
from tests.support.models import save


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("comparison")
    return load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )


def test_the_fresh_drafter_has_a_lane_and_all_meet_the_same_warm_cache(pair: Pair) -> None:
    assert not len(pair.ngrams)
    done = list(
        compare(
            pair, ["the small duck swims"], [BASELINE, FRESH, "ngram-exact"], max_new_tokens=40, warm=True
        )
    )
    assert [one.method for one in done] == [BASELINE, FRESH, "ngram-exact"]
    assert [one.generation.domain for one in done] == ["default", FRESH_LINE, "default"]
    assert all(one.identical for one in done)
    entries = {one.generation.cache_entries for one in done}
    # met before the first lane, and nothing learned between them
    assert entries == {len(pair.ngrams)} and len(pair.ngrams) > 0


def test_the_fresh_and_todays_lane_are_one_method_also_for_one_vocabulary(tmp_path: Path) -> None:
    twins = load_pair(
        save(tmp_path / "target", "byte-level", ends=False), save(tmp_path / "drafter", "byte-level", seed=1)
    )
    fresh, today = compare(twins, ["the small duck"], [FRESH, TODAY], max_new_tokens=8)
    assert fresh.generation.method == today.generation.method == TODAY


def test_nothing_is_met_where_it_is_not_asked_for(pair: Pair) -> None:
    pair.clear_cache()
    list(compare(pair, ["the other duck"], [BASELINE, "ngram-exact"], max_new_tokens=20))
    assert not len(pair.ngrams)


def ask(monkeypatch: pytest.MonkeyPatch, settings: Settings, **options: Any) -> dict[str, Any]:
    """What the services ask of a comparison for the page, which gives these options."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(chat_service, "compare", lambda *given, **options: asked.append(options) or iter(()))

    @contextmanager
    def using(*names: str) -> Iterator[Any]:
        yield None, SimpleNamespace(using=using)

    shelf: Any = SimpleNamespace(settings=settings, using=using, ending=threading.Event())
    made = chat_service.ChatService(shelf, None, None, None)  # type: ignore[arg-type]
    options |= {
        "target": "t",
        "drafter": "d",
        "prompts": ["a"],
        "methods": [FRESH],
        "max_new_tokens": 8,
        "temperature": 0.0,
    }
    assert list(made.compare(**options)) == []
    return asked[0]


@pytest.mark.parametrize(
    ("given", "drafting"),
    [
        ({}, ("cost", 4)),
        ({"draft_policy": "chance"}, ("chance", 4)),
        ({"draft_length": 7, "draft_policy": "chance"}, ("fixed", 7)),
    ],
)
def test_drafts_are_as_long_as_a_policy_makes_them_unless_a_length_is_given(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], drafting: tuple[str, int]
) -> None:
    asked = ask(monkeypatch, Settings(), **given)
    assert (asked["draft_policy"], asked["draft_length"]) == drafting and asked["warm"]


@pytest.mark.parametrize(
    ("setting", "given", "line"),
    [("poetry", None, "poetry"), ("auto", None, "default"), ("poetry", "code", "code")],
)
def test_the_line_is_that_of_the_chat_unless_one_is_given(
    monkeypatch: pytest.MonkeyPatch, setting: str, given: str | None, line: str
) -> None:
    assert ask(monkeypatch, Settings(domain=setting), domain=given)["domain"] == line
