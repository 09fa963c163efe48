"""Other models: what is on this machine, what can be downloaded, what cannot be used and why; and any model
by its name."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from omnidemo.models.catalogue import HERE, ModelCard
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import asked_of, sentence
from omnidemo.ui.shell import QUIET, Shell, choose, megabytes, widget

GROUPS = ("On this machine", "To download", "Not to be used here")


def _group(card: ModelCard) -> int:
    return 0 if card.availability in HERE else 1 if card.availability == "downloadable" else 2


def _row(card: ModelCard) -> dict[str, Any]:
    """A model as the browser shows it."""
    memory = megabytes(card.memory_bytes)
    where = text.SOURCES[card.source]
    about = [
        card.type,
        megabytes(card.bytes),
        f"{memory} of memory" if memory else "",
        where,
        card.licence,
        card.author,
    ]
    return {
        "name": card.name,
        "title": card.title,
        "about": " · ".join(filter(None, about)),
        "note": card.note,
        "group": _group(card),
        "roles": [] if _group(card) == 2 else ["target", "drafter"] if card.role == "both" else [card.role],
    }


def state(services: PublicServices, target: str, drafter: str, error: str = "") -> str:
    """The value of the `models` widget. Whoever may name other models than the listed ones has a field for
    them."""
    rows = [_row(card) for card in services.models()]
    return for_browser(
        {
            "rows": rows,
            "groups": GROUPS,
            "target": target,
            "drafter": drafter,
            "any": not services.own,
            "error": error,
        }
    )


def use(services: PublicServices, wanted: str, role: str, target: str, drafter: str) -> tuple[Any, Any, Any]:
    """Choose a model by any name of it: values of the widget and of both pickers. What cannot be found is
    said, and nothing changes."""
    names = {"target": target, "drafter": drafter}
    if role not in names or not wanted.strip():
        return state(services, target, drafter, "Write the name of a model first."), gr.skip(), gr.skip()
    if wanted not in {card.name for card in services.models()}:
        try:
            wanted = services.resolve(wanted)
        except ValueError as error:
            said = sentence(str(error).replace("`", ""))
            return state(services, target, drafter, said), gr.skip(), gr.skip()
    names[role] = wanted
    pickers = [choose(services, one, name) if one == role else gr.skip() for one, name in names.items()]
    return state(services, *names.values()), *pickers


def build_models(services: PublicServices, shell: Shell) -> None:
    """The panel, which the Details button shows below the pickers."""
    with gr.Row(elem_id="omni-others"):
        panel = widget("models", events=("ask", "use"))
    names = [shell.target, shell.drafter]
    show = partial(state, services)
    panel.ask(show, names, panel, api_name="models", **QUIET)
    changes = [shell.target.change, shell.drafter.change]
    gr.on(changes, show, names, panel, api_name="models_again", trigger_mode="always_last", **QUIET)

    def pick(event: gr.EventData, target: str, drafter: str) -> tuple[Any, Any, Any]:
        asked = asked_of(event)
        return use(services, str(asked.get("name", "")), str(asked.get("role", "")), target, drafter)

    panel.use(pick, names, [panel, *names], api_name="use_model", **QUIET)
