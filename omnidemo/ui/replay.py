"""What a replay asks the server for: recorded rounds of the history, and runs beside an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from omnidemo.records import Generation
from omnidemo.ui import history, tokens
from omnidemo.ui.chat import conversation, read_line, read_seed
from omnidemo.ui.serving import for_browser
from omnidemo.ui.shell import PRIVATE, QUIET, Shell, longest_answer, widget

log = logging.getLogger(__name__)


def lane(runs: Sequence[Generation]) -> dict[str, Any]:
    """The middle one of some measured runs, which is the first, for the player: its rounds as lines, and what is said beside them."""
    made = runs[0]
    lines = "".join(line for one in made.rounds for line in tokens.round_lines(one))
    return {"lines": lines, "version": made.adapter_version, "method": made.method, "at": time.time(), "runs": len(runs)}


def beside(services: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The lanes of a measurement beside an answer, or a sentence that says why there are none. `wanted` comes from the browser: kind
    (plain or fresh), target, drafter, message, history, tokens, and for plain temperature, top_p and seed, for fresh method and line."""
    names = {"target": str(wanted.get("target") or ""), "drafter": str(wanted.get("drafter") or "")}
    try:
        most = max(1, min(int(wanted.get("tokens") or 1), longest_answer(services.settings)))
        asked = {**names, "messages": conversation(wanted.get("history"), str(wanted.get("message") or "")), "max_new_tokens": most}
        made: Sequence[Sequence[Generation]]
        if wanted.get("kind") == "fresh":
            line = read_line(str(wanted.get("line") or ""))
            made = services.fresh_and_today(**asked, method=str(wanted.get("method") or "auto"), domain=line)
        else:
            warp = {"temperature": float(wanted.get("temperature") or 0.0), "top_p": float(wanted.get("top_p") or 1.0)}
            made = (services.plain(**asked, **warp, seed=read_seed(wanted.get("seed"))),)
        return {"lanes": [lane(one) for one in made]}
    except (RuntimeError, ValueError, TypeError) as error:
        return {"error": str(error)}
    except Exception as error:  # any cause: the page says it and lives on
        log.exception("a run beside an answer failed")
        return {"error": str(error) or type(error).__name__}


def recall(services: Any, session: str, request: Any) -> dict[str, Any]:
    """A recorded answer of the visitor's own history, as the player reads it, or a sentence that says why there is none."""
    known = isinstance(request, int) and services.store.recording(request, session=history.scope(services.settings, session, {})["session"])
    if not known:
        return {"error": "The rounds of this answer are not kept any more: only those of your newest answers are."}
    about = {name: known[name] for name in ("prompt", "method", "target", "drafter", "kept", "rounds", "created_at", "finish_reason")}
    return about | {"lines": known["lines"], "version": known["adapter_version"], "plain": tokens.plain_pace(known["metrics"])}


def build(services: Any, shell: Shell) -> None:
    """The player's line to the server; the page itself opens and draws it."""
    page = widget("replay", events=("measure", "recall"), visible="hidden")
    wanted = gr.JSON(visible=False)
    inputs, js = [shell.session, wanted], "() => omni.replay.take()"

    def measure(session: str, asked: dict[str, Any] | None) -> str:
        return for_browser({"id": (asked or {}).get("id"), **beside(services, asked or {})})

    def fetch(session: str, asked: dict[str, Any] | None) -> str:
        return for_browser({"id": (asked or {}).get("id"), **recall(services, session, (asked or {}).get("request"))})

    alone: dict[str, Any] = {"concurrency_id": "beside", "concurrency_limit": 1, "trigger_mode": "multiple"}
    page.measure(measure, inputs, [page], js=js, api_name="measure_beside", **alone, **PRIVATE)
    page.recall(fetch, inputs, [page], js=js, api_name="recall", **QUIET)
