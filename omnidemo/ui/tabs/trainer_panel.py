"""The trainer panel: what one adapter line learns now, the expected gain, and the present draft length."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.core.config.controls import CONTROLS
from omnidemo.core.private_folders import without_folders
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import QUIET, Shell, if_loaded, line_of


def drafting_json(services: PublicServices, target: str, drafter: str, domain: str) -> dict[str, Any] | None:
    """How far the pair guesses ahead now; None while it is not loaded."""
    now = if_loaded(services.drafting, target, drafter, domain, otherwise=None)
    return now and {
        "title": CONTROLS["draft_policy"].choices[services.settings.draft_policy],
        "length": finite(now.length, 2),
        "speculating": bool(now.speculating),
        "sentence": now.sentence,
        "off": now.policy == "fixed" and not now.length,
    }


def calibration(
    services: PublicServices, target: str, drafter: str, domain: str
) -> list[tuple[float, float, float]]:
    """(predicted, observed, count) per bin of what the draft policy goes by: the acceptance head, else the
    drafter's probabilities."""
    now = if_loaded(services.drafting, target, drafter, domain, otherwise=None)
    return [
        (float(p), float(o), float(n))
        for p, o, n in (now.calibration if now else ())
        if n and math.isfinite(p) and math.isfinite(o)
    ]


def trainer_json(services: PublicServices, target: str, drafter: str, domain: str = "default") -> str:
    """Trainer, draft length and state of the database for one adapter line, as the value of the `trainer`
    widget."""
    # No line may have the name that somebody is typing.
    status = if_loaded(services.trainer, target, drafter, domain, otherwise=None) or services.trainer(
        target, drafter
    )
    store = services.store.status
    names = (
        "state", "why", "version", "step", "requests_seen", "last_swap", "rolled_back",
    )  # fmt: skip
    shown = {name: getattr(status, name) for name in names} | {
        "loaded": services.state(target, drafter).stage == "ready",
        "domain": status.domain,
        "title": text.TRAINER.get(status.state, status.state),
        "error": without_folders(status.error or (store.message if store.ok else None) or "") or None,
        "mode": CONTROLS["training"].choices.get(status.mode, status.mode),
        "loss": finite(status.loss),
        "seconds": finite(status.seconds, 2),
        "drafting": drafting_json(services, target, drafter, status.domain),
        "store": {"ok": store.ok, "message": without_folders(store.message), "pending": store.pending},
    }
    return for_browser(shown)


def follow(services: PublicServices, shell: Shell, panel: gr.HTML, line: Any) -> None:
    """Keep the chat's trainer panel up to date and wire its buttons. `line`: the picker of the topic line."""
    names = [shell.target, shell.drafter, line, shell.session]

    def show(target: str, drafter: str, picked: str, session: str) -> str:
        return trainer_json(services, target, drafter, line_of(services, picked, session))

    def press(act: Any, target: str, drafter: str, picked: str, session: str) -> tuple[str, str]:
        act(target, drafter, domain=line_of(services, picked, session))
        shown = show(target, drafter, picked, session)
        return shown, shown

    _, seen = shell.keep(panel, show, names, "trainer_state")
    wire_buttons(services, panel, "trainer", press, names, [panel, seen])


def wire_buttons(
    services: PublicServices, panel: gr.HTML, place: str, press: Any, inputs: Any, outputs: Any, **more: Any
) -> None:
    """Wire *Pause*, *Resume* and *Reset* of a trainer panel. `press(act, *values of inputs)` does one of them
    and returns the values of `outputs`; `place` begins the names of the events."""
    for name, act in (("pause", services.pause), ("resume", services.resume), ("reset", services.reset)):
        pressed = partial(press, act)
        getattr(panel, name)(pressed, inputs, outputs, api_name=f"{place}_{name}", **more, **QUIET)
