"""The Adaptation tab as data: the requests with their marks, the charts, the lines and the versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omnidemo.core.config.controls import CONTROLS
from omnidemo.learning.lines.line_names import LineInfo
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.figures import charts, curves, layout, marks
from omnidemo.ui.live_answers import answers_json
from omnidemo.ui.shell import if_loaded
from omnidemo.ui.tabs.trainer_panel import calibration

MOST_REQUESTS = 500  # points of a curve; older ones stay in the history
MOST_STEPS = 2000
MOST_VERSIONS = 30
RELIABILITY = curves.Curve(
    "calibration",
    "How well it judges its guesses",
    "off on average",
    ".0%",
    "Chance of acceptance that was predicted for a guess, against the share that the target accepted; on the"
    " diagonal it is right. With the policy “by the acceptance head” these are the head's predictions, else"
    " the drafter's own probabilities.",
)


class View(BaseModel):
    """What the page shows: a pair, one of its lines, and how the curves are drawn; the browser sends it with
    each event.

    window: requests of the moving average. every: whether requests of all targets of this drafter are drawn.
    only: whether those of the line alone are. seen: the key of what is shown already. version: the one that
    is to draft, or to be exported.
    """

    model_config = ConfigDict(frozen=True)

    target: str
    drafter: str
    line: str = Field("default", min_length=1)
    window: int = Field(8, ge=1)
    every: bool = False
    only: bool = False
    seen: str = ""
    version: int = 0


def request_rows(services: PublicServices, view: View) -> list[dict[str, Any]]:
    """The newest requests in order; with `every`, each row names its target."""
    names = [card.name for card in services.models() if card.role in ("target", "both")] if view.every else []
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys([view.target, *names]):
        own = [dict(row) for row in services.store.curve(name, view.drafter, limit=MOST_REQUESTS)]
        if view.only:
            own = [row for row in own if (row.get("domain") or "default") == view.line]
        rows += [row | {"target": name} for row in own] if view.every else own
    if view.every:
        rows.sort(key=lambda row: row.get("id") or 0)
    return rows[-MOST_REQUESTS:]


def figures(
    rows: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    window: int,
    revision: str,
    target: str,
    bins: Sequence[tuple[float, float, float]] = (),
) -> list[dict[str, Any]]:
    """The charts of the tab, each with its headline: the latest mean over `window` points, and the first.
    Both are taken only from requests of the newest request's scope (target, line, topic, method, policy,
    temperature); the loss is of all topics and has no first mean."""
    own = marks.comparable([row for row in rows if row.get("target", target) == target])
    where = scope_in_words(own[-1]) if own else ""
    cards = []
    for what in curves.CURVES:
        latest, first = curves.change(
            [layout.finite(row.get(what.key)) for row in own], window if what.noisy else 1
        )
        drawn = curves.curve(rows, what, window=window, revision=revision)
        cards.append(_chart(what, drawn, latest, first if what.noisy else None, where if what.noisy else ""))
    latest, _ = curves.change([layout.finite(step.get("loss")) for step in steps], window)
    # After a roll-back a line counts its steps from the older version on; on the chart time only goes
    # forward.
    steps = [dict(step) | {"step": place} for place, step in enumerate(steps, start=1)]
    cards.insert(2, _chart(curves.LOSS, curves.losses(steps, window=window, revision=revision), latest, None))
    return [
        *cards,
        _chart(
            RELIABILITY, charts.reliability({RELIABILITY.title: bins}, revision=revision), _error(bins), None
        ),
    ]


def scope_in_words(row: Mapping[str, Any]) -> str:
    """The scope of a live figure in words: topic and draft policy, which change it as well as learning
    does."""
    topic, policy = str(row.get("topic") or ""), str(row.get("policy") or "")
    name, _, length = policy.partition(" ")
    rule = (
        f"{length} guessed tokens"
        if name == "fixed" and length
        else CONTROLS["draft_policy"].choices.get(name, name)
    )
    return " · ".join(filter(None, [f"“{text.TOPICS.get(topic, topic)}”" if topic else "", rule]))


def _error(bins: Sequence[tuple[float, float, float]]) -> float | None:
    """Expected calibration error: Σ n |predicted − observed| / Σ n; None without observations."""
    total = sum(count for *_, count in bins)
    return (
        sum(count * abs(predicted - observed) for predicted, observed, count in bins) / total
        if total
        else None
    )


def _chart(
    what: curves.Curve, figure: layout.Figure, latest: float | None, first: float | None, where: str = ""
) -> dict[str, Any]:
    card = {"key": what.key, "title": what.title, "unit": what.unit, "form": what.form, "help": what.help}
    return card | {"latest": finite(latest), "first": finite(first), "scope": where, "figure": figure}


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


def line_rows(services: PublicServices, view: View) -> list[dict[str, Any]]:
    """The adapter lines of the pair, the default one first, each with what the page says about it."""
    infos = {line.domain: line for line in if_loaded(services.lines, view.target, view.drafter, otherwise=())}
    names = dict.fromkeys(["default", *sorted(infos), view.line])
    return [
        asdict(infos.get(name, LineInfo(name, version=0, requests_seen=0, in_memory=False))) for name in names
    ]


def page_json(services: PublicServices, view: View, live: int, key: str, note: str = "") -> str:
    """Everything the tab shows, as the value of the `adaptation` widget; `live` is the version that drafts,
    `note` what was refused."""
    rows = request_rows(services, view)
    asked = (
        rows
        if not (view.every or view.only)
        else services.store.curve(view.target, view.drafter, limit=MOST_REQUESTS)
    )
    store, line = services.store, (view.target, view.drafter, view.line)
    steps = store.steps(view.target, view.drafter, domain=view.line, limit=MOST_STEPS)
    revision = f"{view.target} {view.drafter} {view.every} {view.only and view.line}"
    bins = calibration(services, view.target, view.drafter, view.line)
    value = {
        "key": key,
        "requests": len(rows),
        "steps": len(steps),
        "targets": list(dict.fromkeys(row["target"] for row in rows)) if view.every else [],
        "domains": list(dict.fromkeys(row.get("domain") or "default" for row in rows)),
        "kinds": sorted({mark.kind for mark in marks.marks(rows)}),
        "palette": layout.PALETTE,
        "answers": answers_json(asked, view.line, live),
        "charts": figures(rows, steps, view.window, revision, view.target, bins) if rows or steps else [],
        "line": view.line,
        "lines": line_rows(services, view),
        "versions": version_rows(store.adapters(*line), live, services.on_disk(*line)),
        "live": live,
        "note": note,
    }
    return for_browser(value)
