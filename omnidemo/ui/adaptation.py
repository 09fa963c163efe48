"""The Adaptation tab: how the drafter gets better over the requests of a pair, and a button that makes such requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from omnidemo.records import AdapterVersion
from omnidemo.ui import charts, traffic
from omnidemo.ui.chat import Running, trainer_json
from omnidemo.ui.serving import for_browser, serve_plotly
from omnidemo.ui.shell import ENGINE, PRIVATE, QUIET, Shell, widget
from omnidemo.ui.tokens import finite

MOST_REQUESTS = 500  # points of a curve; older ones stay in the history
MOST_STEPS = 2000
MOST_VERSIONS = 30


def request_rows(services: Any, target: str, drafter: str, every: bool) -> list[dict[str, Any]]:
    """The newest requests of the pair in order; with `every`, of all targets this drafter serves, each row naming its target.

    Runs of the Compare tab are left out: they try all methods in turn and would draw a saw.
    """
    names = [card.name for card in services.models() if card.role in ("target", "both")] if every else []
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys([target, *names]):
        own = services.store.curve(name, drafter, limit=MOST_REQUESTS)
        rows += [dict(row, target=name) if every else dict(row) for row in own if row.get("kind") != "compare"]
    if every:
        rows.sort(key=lambda row: row.get("id") or 0)
    return rows[-MOST_REQUESTS:]


def figures(
    rows: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], window: int, revision: str, target: str
) -> list[dict[str, Any]]:
    """The charts of the tab, each with its headline: the latest mean and the first one of `target`, over `window` points."""
    own = [row for row in rows if row.get("target", target) == target]
    shown = []
    for what in charts.CURVES:
        latest, first = charts.change([charts.finite(row.get(what.key)) for row in own], window if what.noisy else 1)
        shown.append(_chart(what, charts.curve(rows, what, window=window, revision=revision), latest, first))
    latest, first = charts.change([charts.finite(step.get("loss")) for step in steps], window)
    shown.insert(3, _chart(charts.LOSS, charts.losses(steps, window=window, revision=revision), latest, first))
    return shown


def _chart(what: charts.Curve, figure: charts.Figure, latest: float | None, first: float | None) -> dict[str, Any]:
    card = {"key": what.key, "title": what.title, "unit": what.unit, "form": what.form, "help": what.help}
    return card | {"latest": finite(latest), "first": finite(first), "figure": figure}


def version_rows(versions: Sequence[AdapterVersion], live: int) -> list[dict[str, Any]]:
    """The versions table, newest first; `live` marks the one that drafts now."""
    names = ("version", "created_at", "requests_seen", "steps", "parent")
    return [
        {name: getattr(one, name) for name in names} | {"loss": finite(one.loss), "effect": dict(one.effect), "live": one.version == live}
        for one in versions[:MOST_VERSIONS]
    ]


def page_json(services: Any, target: str, drafter: str, window: int, every: bool, plotly: str, trainer: str, key: str) -> str:
    """Everything the tab shows, as the value of the `adaptation` widget."""
    rows = request_rows(services, target, drafter, every)
    steps = services.store.steps(target, drafter, limit=MOST_STEPS)
    live = int(json.loads(trainer)["version"])
    revision = f"{target} {drafter} {every}"
    value = {
        "key": key,
        "plotly": plotly,
        "requests": len(rows),
        "steps": len(steps),
        "every": every,
        "targets": list(dict.fromkeys(row["target"] for row in rows)) if every else [],
        "palette": charts.PALETTE,
        "charts": figures(rows, steps, window, revision, target) if rows or steps else [],
        "versions": version_rows(services.store.adapters(target, drafter), live),
        "rollback": hasattr(services, "activate"),
    }
    return for_browser(value)


def _poll(services: Any, plotly: str) -> Any:
    def poll(target: str, drafter: str, window: float, every: bool, seen: str) -> Any:
        trainer = trainer_json(services, target, drafter)
        store = services.store
        newest = [store.curve(target, drafter, limit=1), store.steps(target, drafter, limit=1), len(store.adapters(target, drafter))]
        if every:
            newest.append(store.requests(drafter=drafter, limit=1))
        state = json.dumps([target, drafter, window, every, trainer, newest], default=str)
        key = hashlib.sha1(state.encode()).hexdigest()
        if key == seen:
            return gr.skip(), gr.skip()
        return page_json(services, target, drafter, max(1, int(window or 1)), bool(every), plotly, trainer, key), trainer

    return poll


def build(services: Any, shell: Shell) -> None:
    """Everything inside the Adaptation tab."""
    plotly, running = serve_plotly(), Running()
    first = for_browser({"topics": services.topics(), "fewest": traffic.FEWEST, "most": traffic.MOST, "usual": traffic.USUAL})
    with gr.Row(elem_id="omni-adaptation-row", elem_classes="omni-two", equal_height=False):
        with gr.Column(scale=7, min_width=320):
            player = widget("play", first, events=("play", "halt"))
            page = widget("adaptation", events=("poll", "rollback"))
        with gr.Column(scale=3, min_width=300):
            trainer = widget("trainer", elem_id="omni-trainer-adaptation", events=("pause", "resume", "reset"))
            widget("versions")
    names = [shell.target, shell.drafter]
    window, every, seen = gr.Number(visible=False), gr.Checkbox(visible=False), gr.Textbox(visible=False)
    run, topic, count, version = (
        gr.Textbox(visible=False, label="run"),
        gr.Textbox(visible=False, label="topic"),
        gr.Number(visible=False, label="count"),
        gr.Number(visible=False),
    )

    poll, asked = _poll(services, plotly), [*names, window, every, seen]
    know = {"js": "(...values) => omni.adaptation.request(values)"}
    page.poll(poll, asked, [page, trainer], api_name="adaptation_state", **know, **QUIET)
    for name, act in (("pause", services.pause), ("resume", services.resume), ("reset", services.reset)):

        def press(target: str, drafter: str, window: float, every: bool, seen: str, act: Any = act) -> Any:
            act(target, drafter)
            return poll(target, drafter, window, every, "")

        getattr(trainer, name)(press, asked, [page, trainer], api_name=f"adaptation_{name}", **know, **QUIET)
    if hasattr(services, "activate"):

        def back(target: str, drafter: str, window: float, every: bool, seen: str, version: float) -> Any:
            services.activate(target, drafter, int(version))
            return poll(target, drafter, window, every, "")

        page.rollback(back, [*asked, version], [page, trainer], api_name="adaptation_rollback", **know, **QUIET)
    player.play(
        traffic.player(services, running),
        [shell.session, run, *names, topic, count],
        [player],
        js="(...values) => omni.play.request(values)",
        api_name="play_traffic",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        show_progress="hidden",
    ).then(None, None, None, js="() => { omni.play.settled(); return []; }", **PRIVATE)

    def stop(session: str, run_id: str) -> None:
        running.stop(session, run_id)

    player.halt(stop, [shell.session, run], None, js="() => omni.play.current()", api_name="stop_traffic", queue=False, **PRIVATE)
