"""The Adaptation tab: what the drafter has learned over the requests of a pair, everything that steers it,
and its adapter versions."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from pydantic import ValidationError

from omnidemo.core.config import refusal
from omnidemo.core.private_folders import without_folders
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui import downloads
from omnidemo.ui.adaptation_data import View, page_json
from omnidemo.ui.errors import asked_of
from omnidemo.ui.shell import EXPERT, PRIVATE, QUIET, Shell, widget
from omnidemo.ui.tabs.chat_controls import line_choices, line_names
from omnidemo.ui.tabs.trainer_panel import trainer_json


def read_view(target: str, drafter: str, asked: Any) -> View:
    """The browser's view of a pair. ValueError, one sentence, for what is none."""
    if not (isinstance(target, str) and target and isinstance(drafter, str) and drafter):
        raise ValueError("No pair is chosen. Choose a target and a drafter from the lists.")
    try:
        return View.model_validate(
            {**downloads.fields(asked, "parts of the view"), "target": target, "drafter": drafter}
        )
    except ValidationError as error:
        raise ValueError(f"{refusal(error)}. Reload the page.") from None


class Page:
    """The values of the tab's widgets, sent again only when something in them changed."""

    def __init__(self, services: PublicServices) -> None:
        self.services = services

    def show(self, view: View, note: str | None = None) -> Any:
        """(page, trainer), skipped while there is no `note` and they show what `view.seen` stands for."""
        services, store = self.services, self.services.store
        trainer = trainer_json(services, view.target, view.drafter, view.line)
        newest: list[Any] = [
            view.model_dump(exclude={"seen", "version"}),
            trainer,
            store.curve(view.target, view.drafter, limit=1),
            [
                (one.version, dict(one.effect))
                for one in store.adapters(view.target, view.drafter, domain=view.line)
            ],
            services.on_disk(view.target, view.drafter, view.line),
            line_names(services, view.target, view.drafter),
        ]
        key = hashlib.sha1(json.dumps(newest, default=str).encode()).hexdigest()
        if key == view.seen and note is None:
            return gr.skip(), gr.skip()
        live = int(json.loads(trainer)["version"])
        return page_json(services, view, live, key, note or ""), trainer

    def after(self, act: Callable[[View], Any], view: View) -> Any:
        """Do `act` to what the browser looks at and show what came of it; what it refuses is said on the
        page."""
        note = ""
        try:
            act(view)
        except (RuntimeError, ValueError, OSError) as refused:
            note = without_folders(str(refused))
        return self.show(view, note)


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the Adaptation tab."""
    page_of = Page(services)
    with gr.Row(elem_id="omni-adaptation-row", elem_classes="omni-two", equal_height=False):
        with gr.Column(scale=7, min_width=320):
            widget("answers")
            page = widget("adaptation", events=("poll", "rollback", "export"))
            widget("versions", elem_classes=EXPERT)
            upload = gr.UploadButton(
                "↑ Import an adapter (zip)", file_types=[".zip"], type="filepath", size="sm",
                elem_id="omni-import", elem_classes=EXPERT,
            )  # fmt: skip
        with gr.Column(scale=3, min_width=300):
            line = gr.Dropdown(
                line_choices(["default"])[1:], value="default", label="Topic memory to look at",
                info="Each topic may have a memory (an adapter line) of its own. The Chat tab chooses which"
                " one guesses.",
                elem_id="omni-lines", elem_classes=EXPERT, filterable=False,
            )  # fmt: skip
            trainer = widget("trainer", events=("pause", "resume", "reset"))
    inputs, outputs = [shell.target, shell.drafter, line], [page, trainer]
    shell.keep(
        line,
        lambda *pair: json.dumps(line_names(services, *pair)),
        inputs[:2],
        "lines",
        draw=lambda names: gr.Dropdown(choices=line_choices(json.loads(names))[1:]),
    )

    def view_of(asked: Any, target: str, drafter: str, line: str) -> View:
        return read_view(target, drafter, {**asked, "line": line or "default"})

    def poll(event: gr.EventData, *given: str) -> Any:
        return page_of.show(view_of(asked_of(event), *given))

    def doing(act: Callable[[View], Any]) -> Callable[..., Any]:
        def done(event: gr.EventData, *given: str) -> Any:
            return page_of.after(act, view_of(asked_of(event), *given))

        return done

    def back(view: View) -> None:
        services.activate(view.target, view.drafter, view.version, domain=view.line)

    def press(act: Any) -> Callable[..., Any]:
        return doing(lambda view: act(view.target, view.drafter, domain=view.line))

    def make(asked: Any, *given: str) -> Path:
        return export_file(services, view_of(asked, *given))

    def take(file: str | None, *given: str) -> Any:
        def add(view: View) -> None:
            if not file:
                raise ValueError("No file arrived. Choose the zip of an adapter and upload it again.")
            got = services.import_adapter(view.target, view.drafter, view.line, Path(file))
            gr.Info(f"Imported as v{got} of the line {view.line}; it drafts from now on.")

        return page_of.after(add, view_of({}, *given))

    page.poll(poll, inputs, outputs, api_name="adaptation_state", **QUIET)
    line.change(poll, inputs, outputs, api_name="adaptation_line", **QUIET)
    page.rollback(doing(back), inputs, outputs, api_name="adaptation_rollback", **QUIET)
    for name, act in (("pause", services.pause), ("resume", services.resume), ("reset", services.reset)):
        getattr(trainer, name)(press(act), inputs, outputs, api_name=f"trainer_{name}", **QUIET)
    downloads.download(page.export, "adapter", make, inputs)
    # By default Gradio drops, without a word, a file that is chosen before the one before it is in.
    one_by_one: dict[str, Any] = {"concurrency_limit": 1, "trigger_mode": "multiple"}
    upload.upload(take, [upload, *inputs], outputs, api_name="import_adapter", **one_by_one, **PRIVATE)


def export_file(services: PublicServices, view: View) -> Path:
    """The view's adapter version as a zip in PEFT's own format, outside of the storage folder, from which
    nothing is served."""
    made = Path(services.export_adapter(view.target, view.drafter, view.line, view.version))
    return Path(shutil.copyfile(made, downloads.temporary(made.name)))
