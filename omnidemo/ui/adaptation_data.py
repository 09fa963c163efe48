"""The Adaptation tab as data: the answers one by one, and the versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.live_answers import answers_json

MOST_ANSWERS = 500  # of a pair that are looked through for those of a line
MOST_VERSIONS = 30


class View(BaseModel):
    """What the page shows: a pair and one of its lines; the browser sends it with each event.

    seen: the key of what is shown already. version: the one that is to draft, or to be exported.
    """

    model_config = ConfigDict(frozen=True)

    target: str
    drafter: str
    line: str = Field("default", min_length=1)
    seen: str = ""
    version: int = 0


def version_rows(
    versions: Sequence[AdapterVersion], live: int, on_disk: Sequence[int]
) -> list[dict[str, Any]]:
    """The versions table, newest first. `live`: the version that drafts now, 0 for the base drafter.
    `stored`: whether a version's files are kept; without them it can neither draft nor be exported."""
    names = ("version", "created_at", "requests_seen", "steps", "parent")
    return [
        {name: getattr(version, name) for name in names}
        | {
            "loss": finite(version.loss),
            "effect": dict(version.effect),
            "live": version.version == live,
            "stored": version.version in on_disk,
        }
        for version in versions[:MOST_VERSIONS]
    ]


def page_json(services: PublicServices, view: View, live: int, key: str, note: str = "") -> str:
    """Everything the tab shows, as the value of the `adaptation` widget; `live` is the version that drafts,
    `note` what was refused."""
    store, line = services.store, (view.target, view.drafter, view.line)
    value = {
        "key": key,
        "answers": answers_json(store.curve(view.target, view.drafter, limit=MOST_ANSWERS), view.line, live),
        "line": view.line,
        "versions": version_rows(store.adapters(*line), live, services.on_disk(*line)),
        "live": live,
        "note": note,
    }
    return for_browser(value)
