"""The figures of the Adaptation tab are those of the history's CSV and of the rounds that were written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest

from omnidemo.core.config import Settings
from omnidemo.serving.services import Services
from omnidemo.ui.adaptation_data import View, page_json
from omnidemo.ui.tabs.visitor_panel import public_services
from tests.support.chats import chat, ready


@pytest.fixture
def services(tmp_path: Path, quick_loads: None) -> Iterator[Services]:
    own = {"training": "inline", "update_interval": 2, "steps_per_update": 2, "lora_rank": 4}
    made = Services(Settings(storage=tmp_path / "storage", **own))  # type: ignore[arg-type]
    yield made
    made.close()


def test_every_figure_of_the_tab_is_in_the_csv(
    services: Services, models: tuple[str, str], tmp_path: Path
) -> None:
    ready(services, models)
    view = View(target=models[0], drafter=models[1])
    made = [chat(services, models, "the small duck", draft_policy="chance") for _ in range(4)]
    assert services.store.flush()
    live = services.adaptation.trainer(*models).version
    shown = json.loads(page_json(public_services(services), view, live, ""))["answers"]
    assert shown["recorded"] is None and shown["line"] == "default"
    assert {mark["kind"] for mark in shown["marks"]} == {"published"}
    services.store.export_csv("requests", tmp_path / "rows.csv")
    table = pandas.read_csv(tmp_path / "rows.csv")
    assert len(table) == len(shown["answers"]) == 4
    for one, (_, row), (rounds, _) in zip(shown["answers"], table.iterrows(), made, strict=True):
        assert one["steps"] == pytest.approx(row["block_efficiency_tokens_per_round"], abs=1e-4)
        assert (one["tokens"], one["version"]) == (row["tokens"], row["adapter_version"])
        assert one["alpha"] == (None if pandas.isna(row["alpha"]) else pytest.approx(row["alpha"], abs=1e-4))
        assert one["memory"] == row["copied_earlier"]
        assert one["chat"] == row["copied"] - row["copied_earlier"]
        assert one["guessed"] == row["accepted"] - row["copied"]
        tokens = [token for done in rounds for token in done.tokens]
        origins = [token.match.origin for token in tokens if token.source == "copied" and token.match]
        assert one["memory"] == origins.count("earlier") and one["chat"] == len(origins) - one["memory"]
        assert one["guessed"] == sum(token.source in ("direct", "ngram") for token in tokens)
        assert one["own"] == len(tokens) - len(origins) - one["guessed"]
    assert shown["answers"][0]["memory"] == 0 < shown["answers"][-1]["memory"], (
        "the same question again is copied from the answer to it"
    )
