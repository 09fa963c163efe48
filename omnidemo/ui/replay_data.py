"""The server's part of a replay: recorded rounds of the history, and measured repetitions of an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from omnidemo.records import Generation, Replayed
from omnidemo.serving.public_services import PublicServices
from omnidemo.store.recorded_rounds import round_lines
from omnidemo.ui import answer_lines
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import report
from omnidemo.ui.shell import PRIVATE, QUIET, Shell, longest_answer, widget
from omnidemo.ui.tabs import history_tab
from omnidemo.ui.tabs.chat_tab import conversation, read_line, read_seed


def lane(runs: Sequence[Generation]) -> dict[str, Any]:
    """One lane of the player, from measured runs of which the median one comes first: that run's rounds as lines, version and method."""
    made = runs[0]
    lines = "".join(line for one in made.rounds for line in round_lines(one))
    return {"lines": lines, "version": made.adapter_version, "method": made.method, "at": time.time(), "runs": len(runs)}


def beside(services: PublicServices, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The lanes of a measurement beside an answer. `wanted` comes from the browser: kind (plain or fresh), target, drafter, message,
    history, tokens, and for plain temperature, top_p and seed, for fresh method and line. RuntimeError or ValueError, one sentence, where
    there are none."""
    names = {"target": str(wanted.get("target") or ""), "drafter": str(wanted.get("drafter") or "")}
    most = int(max(1, min(_number(wanted, "tokens", 1), longest_answer(services.settings))))
    asked = {**names, "messages": conversation(wanted.get("history"), str(wanted.get("message") or "")), "max_new_tokens": most}
    made: Sequence[Sequence[Generation]]
    if wanted.get("kind") == "fresh":
        line = read_line(str(wanted.get("line") or ""))
        made = services.fresh_and_today(**asked, method=str(wanted.get("method") or "auto"), domain=line)
    else:
        warp = {"temperature": _number(wanted, "temperature", 0.0), "top_p": _number(wanted, "top_p", 1.0)}
        made = (services.plain(**asked, **warp, seed=read_seed(wanted.get("seed"))),)
    return {"lanes": [lane(one) for one in made]}


def _number(wanted: Mapping[str, Any], name: str, usual: float) -> float:
    """A number of a request; ValueError, one sentence, for anything else."""
    try:
        return float(wanted.get(name) or usual)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} of a replay is not a number; reload the page.") from None


def probes(services: PublicServices, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Probe prompts of a topic, replayed (so without times) with the fresh drafter and with today's: pairs of (prompt, lanes), and the
    topics that have some. The wanted topic, or the first that has any."""
    names = (str(wanted.get("target") or ""), str(wanted.get("drafter") or ""), read_line(str(wanted.get("line") or "")))
    found = {topic: services.before_after(*names, topic) for topic in services.topics()}
    known = {topic: one for topic, one in found.items() if one is not None and one.before}
    topic = wanted["topic"] if wanted.get("topic") in known else next(iter(known), None)
    if topic is None:
        return {"topics": [], "pairs": []}
    both = known[topic]
    pairs = [
        {"prompt": before.prompt, "lanes": [_replayed(before, both.before_version), _replayed(after, both.after_version)]}
        for before, after in zip(both.before, both.after, strict=True)
    ]
    return {"topics": list(known), "topic": topic, "pairs": pairs}


def _replayed(one: Replayed, version: int) -> dict[str, Any]:
    return {"lines": "".join(line for done in one.rounds for line in round_lines(done)), "version": version}


def recall(services: PublicServices, session: str, request: Any) -> dict[str, Any]:
    """A recorded answer of the visitor's own history, as the player reads it. ValueError, one sentence, where there is none."""
    known = isinstance(request, int) and services.store.recording(
        request, session=history_tab.scope(services.settings, session, {})["session"]
    )
    if not known:
        raise ValueError("The rounds of this answer are not kept any more: only those of your newest answers are.")
    about = {name: known[name] for name in ("prompt", "method", "target", "drafter", "kept", "rounds", "created_at", "finish_reason")}
    return about | {"lines": known["lines"], "version": known["adapter_version"], "plain": answer_lines.plain_pace(known["metrics"])}


def _answer(asked: Mapping[str, Any] | None, make: Callable[[Mapping[str, Any]], dict[str, Any]]) -> str:
    """The requested data with the request's id, or one sentence that says why there is none."""
    wanted = asked if isinstance(asked, Mapping) else {}
    try:
        found = make(wanted)
    except Exception as error:  # any error: the page shows a sentence and goes on
        found = {"error": report(error, "a replay")}
    return for_browser({"id": wanted.get("id"), **found})


def build(services: PublicServices, shell: Shell) -> None:
    """The events of the player; the page itself opens and draws it."""
    page = widget("replay", events=("measure", "recall"), visible="hidden")
    wanted = gr.JSON(visible=False)
    inputs, js = [shell.session, wanted], "() => omni.replay.take()"

    def measure(session: str, asked: dict[str, Any] | None) -> str:
        return _answer(asked, lambda wanted: beside(services, wanted))

    def fetch(session: str, asked: dict[str, Any] | None) -> str:
        def look(wanted: Mapping[str, Any]) -> dict[str, Any]:
            return probes(services, wanted) if wanted.get("kind") == "probes" else recall(services, session, wanted.get("request"))

        return _answer(asked, look)

    alone: dict[str, Any] = {"concurrency_id": "beside", "concurrency_limit": 1, "trigger_mode": "multiple"}
    page.measure(measure, inputs, [page], js=js, api_name="measure_beside", **alone, **PRIVATE)
    page.recall(fetch, inputs, [page], js=js, api_name="recall", **QUIET)
