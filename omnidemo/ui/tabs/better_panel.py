"""The line below the head about the better target: how far it is, and the press that changes over; and
whether the chosen one is too slow here."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from omnidemo.models.gguf import identity
from omnidemo.serving.better_target import BetterState
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import QUIET, Shell, choose, widget

SLOW = 4.0  # tokens a second: a target that writes fewer is hard to chat with


def state(services: PublicServices, target: str) -> str:
    """The value of the `better` widget: `BetterState`, or `slow` with the pace of the chosen target and the
    `name` of a faster one."""
    better = services.better()
    if better is None:
        return for_browser(asdict(BetterState()))
    found = better.state()
    if found.name != target:
        return for_browser(asdict(found))
    pace, smaller = services.pace_of(target), identity.defaults()[-1]
    if pace is None or pace >= SLOW:
        return for_browser(asdict(BetterState()))
    slow = {"stage": "slow", "pace": round(pace, 1), "slow_title": found.title}
    return for_browser(asdict(found) | slow | {"name": smaller["known"], "title": smaller["title"]})


def build_better(services: PublicServices, shell: Shell) -> None:
    """The widget; it is hidden where there is nothing to say."""
    line = widget("better", events=("use", "stop", "again"))
    show, seen = shell.keep(line, partial(state, services), [shell.target], "better")

    def use(target: str) -> Any:
        """The picker with the target that the line offers; changing it loads the pair."""
        better = services.better()
        found = better.state() if better is not None else BetterState()
        if found.name == target:  # it is the slow one
            return choose(services, "target", str(identity.defaults()[-1]["known"]))
        return choose(services, "target", found.name or target)

    def stop(target: str, before: str) -> Any:
        if (better := services.better()) is not None:
            better.stop()
        return show(target, before)

    def again(target: str, before: str) -> Any:
        if (better := services.better()) is not None:
            better.start()
        return show(target, before)

    line.use(use, [shell.target], shell.target, api_name="use_better", **QUIET)
    for event, call, name in ((line.stop, stop, "stop_better"), (line.again, again, "fetch_better")):
        event(call, [shell.target, seen], [line, seen], api_name=name, **QUIET)
