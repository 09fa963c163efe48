"""Which drafter? Under the pickers: drafters for the chosen target, the best modelled speedup first, and a
measured try of the pair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.core.config import GREEDY
from omnidemo.serving.advisor import advice, trial
from omnidemo.serving.advisor.overlap import prompts_of
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import MOST_PROMPTS
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import ENGINE, report, sentence
from omnidemo.ui.shell import PRIVATE, QUIET, Shell, megabytes, script, widget

# it reads tokenizers: one at a time
READING: dict[str, Any] = {**PRIVATE, "concurrency_id": "advice", "concurrency_limit": 1}
SECONDS = 60.0  # after which no other prompt of a try begins: others want to chat


def _advise(services: PublicServices, target: str, drafter: str) -> advice.Advice:
    """Of models that the pickers offer, the chosen drafter among them: nobody makes the server read other
    folders. ValueError."""
    cards, settings = services.models(), services.settings
    offered = [card.name for card in cards if card.role != "target"]
    if target not in {card.name for card in cards} | {settings.target} or drafter not in {
        *offered,
        settings.drafter,
    }:
        raise ValueError("This target or drafter is not in the list; choose one of it.")
    return advice.advise(target, [*advice.candidates(target, offered), drafter], settings)


def _row(one: advice.Candidate) -> dict[str, Any]:
    """A candidate as the browser shows it."""
    return {
        "name": one.model.name,
        "title": one.model.title,
        "size": f"{megabytes(one.bytes)}, {one.share:.0%} of the target's",
        "modelled": one.modelled,
        "fits": f"{one.overlap.words} ({one.overlap.source})" if one.overlap else "",
        "pays_from": one.pays_from,
        "warnings": one.warnings,
        "reported": [str(known) for known in one.reported],
    }


def state(
    services: PublicServices,
    target: str,
    drafter: str,
    tried: dict[str, Any] | None = None,
    found: advice.Advice | None = None,
) -> str:
    """The value of the `advice` widget; `tried` is the running or finished try of this pair, `found` the
    advice where it is known."""
    shown: dict[str, Any] = {"target": target, "drafter": drafter, "tried": tried, "rows": [], "error": ""}
    try:
        found = found or _advise(services, target, drafter)
        shown |= {"title": found.target.title, "acceptances": advice.ACCEPTANCES, "warnings": found.warnings}
        shown |= {"assumptions": found.assumptions, "rows": [_row(one) for one in found.candidates]}
    except ValueError as error:
        shown["error"] = sentence(str(error))
    return for_browser(shown)


def measure(services: PublicServices, target: str, drafter: str) -> Iterator[str]:
    """Try the loaded pair on sample prompts; yields the widget's values, one after each prompt, and ends when
    it is closed."""
    show = partial(state, services, target, drafter)
    now = services.state(target, drafter)
    if now.stage != "ready":
        stage = text.STAGES.get(now.stage, now.stage)
        why = now.error or f"The pair is still loading ({stage}). Try again when it is ready."
        yield show({"error": why})
        return
    most = min(trial.PROMPTS, MOST_PROMPTS) if services.public else trial.PROMPTS
    length = services.settings.draft_length
    options: dict[str, Any] = GREEDY.options | {
        "max_new_tokens": trial.TOKENS,
        "draft_length": length,
        "methods": trial.METHODS,
        "seconds": SECONDS,
    }
    try:
        found = _advise(services, target, drafter)
        cost = next(one.cost for one in found.candidates if one.model.name == drafter)
        yield show({"busy": f"{most} prompts"}, found)
        results: list[Comparison] = []
        with closing(
            services.compare(target=target, drafter=drafter, prompts=prompts_of("mixed", most), **options)
        ) as runs:  # type: ignore[type-var]
            for one in runs:
                results.append(one)
                if not len(results) % len(trial.METHODS):
                    yield show({"busy": f"{trial.prompts_in(results)} of {most} prompts"}, found)
        yield show({"result": asdict(trial.summed_up(results, length, cost, "mixed"))}, found)
    except Exception as error:  # any cause: the page says why it ended
        yield show({"error": report(error, "a try")})


def build_advice(services: PublicServices, shell: Shell) -> None:
    """The panel, which the Details button shows with the pickers."""
    with gr.Row(elem_id="omni-advise"):
        panel = widget("advice", events=("ask", "choose", "measure"))
    names, wanted = [shell.target, shell.drafter], gr.Textbox(visible=False, label="drafter")
    show = partial(state, services)
    panel.ask(show, names, panel, api_name="advise", **READING)
    changes = [shell.target.change, shell.drafter.change]
    gr.on(changes, show, names, panel, api_name="advise_again", trigger_mode="always_last", **READING)
    panel.choose(
        lambda name: name,
        [wanted],
        [shell.drafter],
        js=script("() => [page.advice.wanted]"),
        api_name="choose_drafter",
        **QUIET,
    )
    started = panel.measure(
        partial(measure, services),
        names,
        panel,
        api_name="try_pair",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        **PRIVATE,
    )
    started.failure(None, None, None, js=script("() => { page.advice.refused(); return []; }"), **PRIVATE)
