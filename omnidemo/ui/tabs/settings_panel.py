"""The settings of a pair that can be changed while it runs, as the page shows them: grouped, read, changed, refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import gradio as gr

from omnidemo.config import Settings
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import QUIET, Shell, only_when_changed

Item = dict[str, Any]
STEPS = {"confidence": 0.05, "gamma": 0.05, "jsd_beta": 0.05, "ngram_weight": 0.05}


def _bounds(name: str) -> Item:
    """The limits that the setting itself declares; an open one is left to `configure`, which checks the exact rule."""
    found: Item = {}
    for rule in Settings.model_fields[name].metadata:
        for side, keys in (("min", ("ge", "gt")), ("max", ("le", "lt"))):
            for key in keys:
                if getattr(rule, key, None) is not None:
                    found[side] = getattr(rule, key)
    return found


def item(name: str) -> Item:
    """How one setting is asked for; kind, limits and default come from `config.Settings`, words from `text.CONTROLS`."""
    field = Settings.model_fields[name]
    label, hint = text.CONTROLS[name]
    shown: Item = {"name": name, "label": label, "help": hint, "default": field.default, "when": text.ONLY_WHEN.get(name)}
    if get_origin(field.annotation) is Literal:
        titles = text.CHOICES.get(name, {})
        return shown | {"kind": "choice", "options": [[one, titles.get(one, one)] for one in get_args(field.annotation)]}
    if field.annotation is bool:
        return shown | {"kind": "switch"}
    if field.annotation is str:
        return shown | {"kind": "line"}
    shown |= _bounds(name)
    if name in STEPS and "max" in shown:  # a number between 0 and 1: a slider that excludes its open ends
        step = STEPS[name]
        edge = step if name != "confidence" else 0
        return shown | {"kind": "slider", "step": step, "min": edge, "max": 1 - edge}
    return shown | {"kind": "number", "step": STEPS.get(name, 1 if field.annotation is int else "any")}


def groups() -> list[Item]:
    """Every adaptable setting once, in the order of the page; the first group is always open."""
    return [
        {"key": key, "title": title, "help": hint, "items": [item(name) for name in names]}
        for key, title, hint, names in text.CONTROL_GROUPS
    ]


def values(services: PublicServices, target: str, drafter: str) -> dict[str, Any]:
    """The present values; what the app started with while the pair is not loaded."""
    try:
        now: Mapping[str, Any] = services.controls(target, drafter)
    except (RuntimeError, ValueError):
        now = {}
    names = [name for *_, names in text.CONTROL_GROUPS for name in names]
    return {name: now.get(name, getattr(services.settings, name)) for name in names}


def line_names(services: PublicServices, target: str, drafter: str) -> list[str]:
    """The topic lines of a pair, `default` first; only that one while the pair is not loaded."""
    try:
        found = [line.domain for line in services.lines(target, drafter)]
    except (RuntimeError, ValueError):
        found = []
    return list(dict.fromkeys(["default", *found]))


def state(services: PublicServices, target: str, drafter: str, error: str = "") -> str:
    """The value of the `controls` widget; `error` is the sentence of a refused change."""
    return for_browser({"values": values(services, target, drafter), "lines": line_names(services, target, drafter), "error": error})


def _read(changes: str) -> dict[str, Any]:
    try:
        wanted = json.loads(changes or "{}")
    except (ValueError, RecursionError, TypeError):
        wanted = None
    if not isinstance(wanted, dict):
        raise ValueError('The change is not a JSON object of settings. Write it like {"training": "off"}.')
    return wanted


def _in_words(error: str) -> str:
    """A refusal with the label that the page shows instead of the setting's name."""
    name, equals, value = error.partition(" = ")
    return f"“{text.CONTROLS[name][0]}”{equals}{value}" if equals and name in text.CONTROLS else error


def change(services: PublicServices, target: str, drafter: str, changes: str) -> str:
    """Apply `changes`, a JSON object of settings, and return the widget's new value; what is refused is said in it."""
    error = ""
    try:
        wanted = _read(changes)
        unknown = sorted(set(wanted) - set(text.CONTROLS))
        if unknown:
            raise ValueError(f"There is no adaptable setting “{unknown[0][:40]}”. Choose from: {', '.join(sorted(text.CONTROLS))}.")
        services.configure(target, drafter, **wanted)
    except (RuntimeError, ValueError, TypeError) as refused:
        error = _in_words(str(refused))
    return state(services, target, drafter, error)


def steer(services: PublicServices, shell: Shell, panel: gr.HTML, name: str) -> None:
    """Wire one `controls` widget: what it changes, and what others change."""
    names, seen = [shell.target, shell.drafter], gr.State("")
    wanted = gr.Textbox(visible=False, label="changes")

    def show(target: str, drafter: str) -> str:
        return state(services, target, drafter)

    def apply(target: str, drafter: str, changes: str) -> tuple[str, str]:
        return change(services, target, drafter, changes), show(target, drafter)  # a refusal stays until the next change

    when = [shell.page.load, shell.tick.tick]
    gr.on(when, only_when_changed(show), [*names, seen], [panel, seen], api_name=f"controls_{name}", **QUIET)
    js = "(target, drafter) => [target, drafter, omni.controls.take()]"
    # Not called "change": Gradio fires that for every new value, and a refusal would be gone at once.
    panel.adjust(apply, [*names, wanted], [panel, seen], js=js, api_name=f"configure_{name}", **QUIET)
