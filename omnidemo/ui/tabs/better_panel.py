"""The line below the head about the better target: how far it is, the press that changes over for good, and
that it was changed; and whether the chosen one is too slow here."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.models.catalogue import title_of
from omnidemo.models.gguf import identity
from omnidemo.serving.better_target import BetterState
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import QUIET, Shell, choose, widget

SLOW = 4.0  # tokens a second: a target that writes fewer is hard to chat with


def state(services: PublicServices, target: str) -> str:
    """The value of the `better` widget: `BetterState`, or `slow` with the pace of the chosen target and the
    `name` of a faster one, or `changed` with the target that was changed over to."""
    better = services.better()
    if better is None:
        return for_browser(asdict(BetterState()))
    found = better.state()
    pace, smaller = services.pace_of(target), identity.defaults()[-1]
    if found.name != target or pace is None or pace >= SLOW:
        if services.changed_over() and services.settings.target == target:
            changed = {"stage": "changed", "name": target, "title": title_of(target)}
            return for_browser(asdict(found) | changed)
        return for_browser(asdict(found if found.name != target else BetterState()))
    slow = {"stage": "slow", "pace": round(pace, 1), "slow_title": found.title}
    return for_browser(asdict(found) | slow | {"name": smaller.known, "title": smaller.title})


def build_better(services: PublicServices, shell: Shell) -> None:
    """The widget; it is hidden where there is nothing to say."""
    line = widget("better", events=("use", "stop", "again"))
    show = partial(state, services)
    shell.keep(line, show, [shell.target], "better")

    def use(target: str) -> Any:
        """The pickers with the target that the line offers, which new pages and the endpoint have, too."""
        better = services.better()
        found = better.state() if better is not None else BetterState()
        slow = found.name == target
        offered = identity.defaults()[-1].known if slow else found.name
        if not offered:
            return gr.skip(), gr.skip()
        names = zip(("target", "drafter"), services.change_over(offered), strict=True)
        return tuple(choose(services, role, name) for role, name in names)

    def stop(target: str) -> str:
        if (better := services.better()) is not None:
            better.stop()
        return show(target)

    def again(target: str) -> str:
        if (better := services.better()) is not None:
            better.start()
        return show(target)

    line.use(use, [shell.target], [shell.target, shell.drafter], api_name="use_better", **QUIET)
    for event, call, name in ((line.stop, stop, "stop_better"), (line.again, again, "fetch_better")):
        event(call, [shell.target], [line], api_name=name, **QUIET)
