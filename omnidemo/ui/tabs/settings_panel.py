"""The settings that the page changes while the app runs, how far to guess ahead: read, changed, refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from omnidemo.core.config import Settings
from omnidemo.core.config.controls import CONTROLS, GROUPS
from omnidemo.models.names import at_its_pace, learning_of
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui.downloads import fields, for_browser
from omnidemo.ui.shell import QUIET, Shell, if_loaded, script

Item = dict[str, Any]
RULES: dict[str, Item] = Settings.model_json_schema()["properties"]
# The limits that a setting declares; an open one is left to `configure`, which checks the exact rule.
LIMITS = {"minimum": "min", "exclusiveMinimum": "min", "maximum": "max", "exclusiveMaximum": "max"}
SHARES, STEP = ("confidence", "gamma", "jsd_beta"), 0.05  # numbers between 0 and 1


def item(name: str) -> Item:
    """How one setting is asked for; kind, limits and default come from `Settings`, words from `CONTROLS`."""
    rule, control = RULES[name], CONTROLS[name]
    shown: Item = {
        "name": name,
        "label": control.label,
        "help": control.hint,
        "default": rule["default"],
        "when": control.only_when,
    }
    if "enum" in rule:
        return shown | {
            "kind": "choice",
            "options": [[value, control.choices[value]] for value in rule["enum"]],
        }
    if name in SHARES:  # the slider excludes open ends
        edge = STEP if name != "confidence" else 0
        return shown | {"kind": "slider", "step": STEP, "min": edge, "max": 1 - edge}
    if rule["type"] == "boolean":
        return shown | {"kind": "switch"}
    limits = {side: rule[key] for key, side in LIMITS.items() if key in rule}
    return shown | {"kind": "number", "step": 1 if rule["type"] == "integer" else "any"} | limits


def items() -> list[Item]:
    """The settings that the page changes, in its order."""
    return [
        item("draft_policy"),
        *(item(name) for group in GROUPS if group.key == "ahead" for name in group.controls),
    ]


def line_names(services: PublicServices, target: str, drafter: str) -> list[str]:
    """The topic lines of a pair, `default` first; only that one while the pair is not loaded."""
    return list(
        dict.fromkeys(
            ["default", *(line.domain for line in if_loaded(services.lines, target, drafter, otherwise=()))]
        )
    )


def state(services: PublicServices, target: str, drafter: str, error: str = "") -> str:
    """The value of the `controls` widget; `error` is the sentence of a refused change."""
    settings = at_its_pace(services.settings, drafter, target)
    values = {name: getattr(settings, name) for name in CONTROLS}
    return for_browser(
        {
            "values": values,
            "defaults": learning_of(drafter, target),
            "error": error,
        }
    )


def _in_words(error: str) -> str:
    """A refusal with the label that the page shows instead of the setting's name."""
    name, equals, value = error.partition(" = ")
    return f"“{CONTROLS[name].label}”{equals}{value}" if equals and name in CONTROLS else error


def change(services: PublicServices, target: str, drafter: str, changes: Any) -> str:
    """Apply changes of settings by their names, for all pairs; the widget's new value, which says what is
    refused."""
    error = ""
    try:
        services.configure(**fields(changes, "changes"))
    except (RuntimeError, ValueError) as refused:
        error = _in_words(str(refused))
    return state(services, target, drafter, error)


def steer(services: PublicServices, shell: Shell, panel: gr.HTML, name: str) -> None:
    """Wire one `controls` widget: what it changes, and what others change."""
    names, wanted = [shell.target, shell.drafter], gr.JSON(visible=False, label="changes")
    _, seen = shell.keep(panel, partial(state, services), names, f"controls_{name}")

    def apply(target: str, drafter: str, changes: Any) -> tuple[str, str]:
        # a refusal stays until the next change
        return change(services, target, drafter, changes), state(services, target, drafter)

    js = script("(target, drafter) => [target, drafter, page.controls.take()]")
    # Not called "change": Gradio fires that for every new value, and a refusal would be gone at once.
    panel.adjust(apply, [*names, wanted], [panel, seen], js=js, api_name=f"configure_{name}", **QUIET)
