"""The learning curve as data for the `hero` widget: what a line has learned of the topic of the newest
question or taught example."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.pair.zerogpu import start as zero_gpu
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import QUIET, Shell, if_loaded, line_of, script


def hero_json(
    services: PublicServices, target: str, drafter: str, line: str, session: str, wanted: str = ""
) -> str:
    """The value of the `hero` widget. `wanted`: a topic that the reader chose; else that of the session's
    newest question or taught example, or where there is none, for the server was started again or the browser
    is another, the line's newest one that is measured."""
    route = services.following(session)
    known = services.topics()
    topic = wanted if wanted in known else route.topic if route is not None else ""
    line = line_of(services, line, session)
    # No line may have the name that somebody is typing.
    value = if_loaded(services.hero, target, drafter, topic, line, otherwise=None) or services.hero(
        target, drafter, topic
    )
    topic = value["topic"]
    shown = {
        **value,
        "points": [_point(one) for one in value["points"]],
        "marks": [_mark(one) for one in value["marks"]],
        "fresh": _point(value["fresh"]),
        "today": _point(value["today"]),
        "chosen": wanted if wanted in known else "",
        "label": text.TOPICS.get(topic, topic),
        "names": {name: text.TOPICS.get(name, name) for name in known},
        "taught": topic in known,
        "measuring": topic in known and services.measuring(target, drafter, topic),
        "learns": services.settings.training != "off",
        "replays": not zero_gpu.started(),  # there nothing is measured between answers
    }
    return for_browser(shown)


def _mark(one: Mapping[str, Any]) -> dict[str, Any]:
    """A mark with the topics' names as people read them."""
    named = " → ".join(text.TOPICS.get(topic, topic) for topic in one["label"].split(" → "))
    return dict(one) | ({"label": named} if one["kind"] == "topic" else {})


def _point(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return (
        None
        if one is None
        else dict(one) | {name: finite(one[name]) for name in ("steps", "error", "agreement", "same_first")}
    )


def follow(services: PublicServices, shell: Shell, panel: gr.HTML, line: Any) -> None:
    """Keep a panel up to date. `line`: the picker of the topic line, or of the Adaptation tab, whose script
    knows the line, any text."""
    wanted = gr.Textbox(visible=False, label="topic")
    own = "page.adaptation.line" if panel.elem_id == "omni-hero-adaptation" else "line"
    js = (
        f"(target, drafter, line, session, wanted, seen) => [target, drafter, {own}, session,"
        " page.hero.wanted, seen]"
    )
    name = "hero_chat" if own == "line" else "hero_adaptation"
    inputs = [shell.target, shell.drafter, line, shell.session, wanted]
    poll, seen = shell.keep(panel, partial(hero_json, services), inputs, name, js=js)
    panel.look(poll, [*inputs, seen], [panel, seen], api_name=f"{name}_chosen", js=script(js), **QUIET)
