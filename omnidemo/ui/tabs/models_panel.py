"""Other models: what is on this machine, what can be downloaded, what cannot be used and why; and any model
by its name."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from omnidemo.models.catalogue import HERE, ModelCard
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui import text
from omnidemo.ui.errors import brought, sentence
from omnidemo.ui.shell import QUIET, Shell, choose, megabytes

ROLES = {"target": "Target", "drafter": "Drafter", "both": "Target or drafter"}
ANY = (
    "Press a row, or give the path of a .gguf file, <org>/<repo>:<file>.gguf of the Hub,"
    " ollama/<model>:<tag>, lmstudio/<publisher>/<model>/<file>, a folder, or a Hub id."
)


def _row(card: ModelCard) -> list[str]:
    """A model as the table shows it; its name comes last."""
    memory = megabytes(card.memory_bytes)
    about = [
        card.type,
        megabytes(card.bytes),
        f"{memory} of memory" if memory else "",
        text.SOURCES[card.source],
        card.licence,
        card.author,
    ]
    can = card.availability in (*HERE, "downloadable")
    return [
        card.title,
        ROLES[card.role] if can else "cannot be used here",
        text.AVAILABILITY[card.availability],
        " · ".join(filter(None, about)),
        card.note.replace("`", ""),
        card.name,
    ]


def rows(services: PublicServices) -> list[list[str]]:
    """What the table shows: first what is here, last what cannot be used."""
    order = lambda card: 0 if card.availability in HERE else 1 if card.availability == "downloadable" else 2  # noqa: E731
    return [_row(card) for card in sorted(services.models(), key=order)]


def use(services: PublicServices, role: str, wanted: str, target: str, drafter: str) -> tuple[Any, Any, Any]:
    """Choose a model by any name of it: the field, which says what is wrong, and both pickers. What cannot be
    found changes nothing."""
    names = {"target": target, "drafter": drafter}
    if not (wanted or "").strip():
        return gr.Textbox(info="Write the name of a model first."), gr.skip(), gr.skip()
    if wanted not in {card.name for card in services.models()}:
        try:
            wanted = services.resolve(wanted)
        except ValueError as error:
            said = sentence(str(error).replace("`", ""))
            return gr.Textbox(info=said), gr.skip(), gr.skip()
    names[role] = wanted
    return gr.Textbox(info=ANY), *(
        choose(services, one, name) if one == role else gr.skip() for one, name in names.items()
    )


def build_models(services: PublicServices, shell: Shell) -> None:
    """The panel, which the Details button shows below the pickers."""
    with (
        gr.Row(elem_id="omni-others"),
        gr.Accordion("Other models", open=False, elem_id="omni-models") as panel,
    ):
        heads = ["model", "serves as", "where", "what it is", "note", "name"]
        table = gr.Dataframe(
            headers=heads, interactive=False, wrap=True, max_height=320, show_label=False,
            column_widths=["190px", "110px", "120px", "250px", "230px", "220px"],
        )  # fmt: skip
        name = gr.Textbox(label="Another model", info=ANY, max_lines=1, max_length=1000)
        with gr.Row(elem_classes="omni-tight"):
            presses = [gr.Button(f"Use as {role}", size="sm") for role in ("target", "drafter")]
    names = [shell.target, shell.drafter]
    panel.expand(partial(rows, services), None, table, api_name="models", **QUIET)

    def pressed(event: gr.EventData) -> str:
        row = brought(event, "row_value")
        if not isinstance(row, list) or not row:
            raise ValueError("No row of the table was chosen. Press one.")
        return str(row[-1])

    table.select(pressed, None, name, api_name="choose_model", **QUIET)
    for role, press in zip(("target", "drafter"), presses, strict=True):
        chosen = partial(use, services, role)
        press.click(chosen, [name, *names], [name, *names], api_name=f"use_as_{role}", **QUIET)
