"""*Teach it*, in code playing traffic: sample prompts through a pair, in slices of a second, so that a chat
waits for one slice at most."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Generation
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite, round_lines
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import ENGINE, report
from omnidemo.ui.running_answers import Running
from omnidemo.ui.shell import PRIVATE, Shell, load_ready, script

MOST, USUAL = 200, 40  # requests of one play
SLICE_SECONDS = 1.0  # then other requests get the engine, and the browser requests the next slice
MOST_PARKED = 32  # plays between two slices, of which a closed browser leaves one behind
SHOWN_TEXT, SHOWN_ROUNDS = 400, 200
Key = tuple[str, str]  # session, run


def player(services: PublicServices, running: Running) -> Any:
    """The event behind the play button."""
    parked: dict[Key, tuple[Iterator[Any], dict[str, Any]]] = {}  # plays between two slices

    def play_traffic(
        session: str, run: str, target: str, drafter: str, topic: str, count: float, likely: bool = False
    ) -> Iterator[str]:
        """Stream `count` sample prompts of a topic through the pair; JSON after each: run, state, done,
        prompt, text, figures.

        After a second the answer ends with the state `more`: call again with the same session and its `run`
        for the next slice.
        """
        run = run or secrets.token_hex(8)
        key = (session or f"api-{run}", run)
        wanted = min(MOST, max(1, int(count or USUAL)))
        began: dict[str, Any] = {"run": key[1], "topic": topic, "count": wanted, "done": 0}
        began |= {"state": "playing", "pair": [target, drafter]}
        played, value = parked.pop(key, (None, began))

        def shown(**changes: Any) -> str:
            value.update(changes)
            return for_browser(value)

        more = False
        try:
            if value["pair"] != [target, drafter]:  # another one was chosen between two slices
                yield shown(state="stopped")
                return
            load_ready(services, target, drafter, "Start it again when it is ready.")
            yield shown(state="playing")
            cancel, until = running.start(*key), time.monotonic() + SLICE_SECONDS
            if played is None:
                policy = services.settings.policy(bool(likely))
                played = _begin(services, target, drafter, key[0], topic, wanted, policy, cancel)
            for index, prompt, generation in played:
                if generation.finish_reason != "cancelled":
                    about = {"line": generation.domain, "prompt": prompt[:SHOWN_TEXT]}
                    yield shown(done=index + 1, **about, **_result(generation))
                more = time.monotonic() > until and not cancel.is_set() and value["done"] < value["count"]
                if more:
                    break
            yield shown(state="more" if more else "stopped" if cancel.is_set() else "done")
        except Exception as error:  # any cause: the page says it and lives on
            yield shown(state="error", error=report(error, "playing traffic"))
        finally:
            if more and played is not None:
                parked[key] = played, value
                for old in list(parked)[:-MOST_PARKED]:  # their browsers are gone
                    parked.pop(old, None)
                    running.finish(*old)
            else:
                running.finish(*key)

    return play_traffic


def _begin(
    services: PublicServices,
    target: str,
    drafter: str,
    session: str,
    topic: str,
    count: int,
    policy: Policy,
    cancel: threading.Event,
) -> Iterator[Any]:
    """A play from its first prompt. Each play has other prompts: on those of the last one the drafter would
    repeat what it learned by heart."""
    return iter(
        services.play(
            session=session,
            target=target,
            drafter=drafter,
            method=services.settings.method,
            topic=topic,
            count=count,
            draft_policy=policy,
            seed=secrets.randbelow(2**31),
            cancel=cancel,
        )
    )


def let_learn(
    services: PublicServices, running: Running, value: str, session: str, run: str, target: str, drafter: str
) -> None:
    """The event after a slice, outside of the engine's queue: an update that is due runs, and other requests
    get the engine."""
    shown = json.loads(value or "{}")
    if shown.get("state") == "more" and shown.get("run") == run:
        line, topic = str(shown.get("line") or "default"), str(shown.get("topic") or "")
        with suppress(RuntimeError, ValueError):  # the pair is gone, or it is no line
            services.let_learn(target, drafter, line, running.flag(session, run), topic)


def wire(services: PublicServices, shell: Shell, widget: gr.HTML, name: str) -> None:
    """Let a widget of teach.js play traffic; `name` is its name there."""
    running = Running()
    run, topic = gr.Textbox(visible=False, label="run"), gr.Textbox(visible=False, label="topic")
    count = gr.Number(visible=False, label="count")
    calls = f"page.players.{name}"
    pair = [shell.target, shell.drafter]
    settled: dict[str, Any] = {
        "fn": None,
        "js": script(f"() => {{ {calls}.settled(); return []; }}"),
        **PRIVATE,
    }
    played = widget.play(
        player(services, running),
        [shell.session, run, *pair, topic, count, shell.likely],
        [widget],
        js=script(f"(...values) => {calls}.request(values)"),
        api_name=f"{name}_traffic",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        show_progress="hidden",
    )
    played.failure(**settled)  # refused before it began: nothing below happens then
    played.then(
        partial(let_learn, services, running),
        [widget, shell.session, run, *pair],
        None,
        js=script(f"(value, ...more) => [value, ...{calls}.current(), ...more.slice(2)]"),
        concurrency_limit=8,
        **PRIVATE,
    ).then(**settled)
    running.stopped_by(widget.halt, [shell.session, run], script(f"() => {calls}.current()"), f"stop_{name}")


def first(services: PublicServices) -> str:
    """The value with which such a widget begins."""
    return for_browser({"topics": services.topics()})


def _result(generation: Generation) -> dict[str, Any]:
    names = ("tokens", "block_efficiency", "proposed", "accepted", "copied", "copies_proposed")
    figures = {name: finite(generation.metrics.get(name)) for name in names}
    lines = "".join(line for one in generation.rounds[:SHOWN_ROUNDS] for line in round_lines(one))
    about = {"version": generation.adapter_version, "guessing": generation.guessing, "lines": lines}
    return {"text": generation.text[:SHOWN_TEXT], **about, "figures": figures}
