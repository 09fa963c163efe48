"""Playing traffic: sample prompts through a pair, in slices of a second, so that a chat waits for one slice at most."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from omnidemo.records import Generation
from omnidemo.serving.public_services import PublicServices
from omnidemo.store.recorded_rounds import finite
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import report
from omnidemo.ui.running_answers import Running
from omnidemo.ui.shell import ENGINE, PRIVATE, Shell, not_ready

FEWEST, MOST, USUAL = 5, 200, 40  # requests of one play
SLICE_SECONDS = 1.0  # then other requests get the engine, and the browser requests the next slice
MOST_PARKED = 32  # plays between two slices; a closed browser leaves one behind
SHOWN_TEXT = 400
Key = tuple[str, str]  # session, run


class PausedTraffic:
    """Plays between two slices. The oldest is dropped when there are too many: its browser is gone."""

    def __init__(self, drop: Callable[[Key], None]) -> None:
        self._plays: dict[Key, tuple[Iterator[Any], dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._drop = drop

    def put(self, key: Key, played: Iterator[Any], value: dict[str, Any]) -> None:
        with self._lock:
            self._plays[key] = (played, value)
            gone = [self._plays.pop(old) and old for old in list(self._plays)[:-MOST_PARKED]]
        for old in gone:
            self._drop(old)

    def take(self, key: Key) -> tuple[Iterator[Any], dict[str, Any]] | None:
        with self._lock:
            return self._plays.pop(key, None)


def player(services: PublicServices, running: Running) -> Any:
    """The event behind the play button."""
    parked = PausedTraffic(lambda key: running.finish(*key))

    def play_traffic(session: str, run: str, target: str, drafter: str, topic: str, count: float) -> Iterator[str]:
        """Stream `count` sample prompts of a topic through the pair; JSON after each: run, state, done, prompt, text, figures.

        After a second the answer ends with the state `more`: call again with the same session and its `run` for the next slice.
        """
        run = run or secrets.token_hex(8)
        key = (session or f"api-{run}", run)
        wanted = min(MOST, max(1, int(count or USUAL)))
        began: dict[str, Any] = {"run": key[1], "topic": topic, "count": wanted, "done": 0, "state": "playing", "pair": [target, drafter]}
        played, value = parked.take(key) or (None, began)

        def shown(**changes: Any) -> str:
            value.update(changes)
            return for_browser(value)

        state = services.load(target, drafter)
        if value["pair"] != [target, drafter]:  # another one was chosen between two slices
            running.finish(*key)
            yield shown(state="stopped")
            return
        if state.stage != "ready":
            running.finish(*key)
            yield shown(state="error", error=not_ready(state, "Start it again when it is ready."))
            return
        yield shown(state="playing")
        cancel, until, more = running.start(*key), time.monotonic() + SLICE_SECONDS, False
        try:
            played = played or _play(services, key[0], target, drafter, topic, wanted, cancel)
            for index, prompt, generation in played:
                if generation.finish_reason != "cancelled":
                    yield shown(done=index + 1, line=generation.domain, prompt=prompt[:SHOWN_TEXT], **_result(generation))
                more = time.monotonic() > until and not cancel.is_set() and value["done"] < value["count"]
                if more:
                    break
            yield shown(state="more" if more else "stopped" if cancel.is_set() else "done")
        except Exception as error:  # any cause: the page says it and lives on
            yield shown(state="error", error=report(error, "playing traffic"))
        finally:
            if more and played is not None:
                parked.put(key, played, value)
            else:
                running.finish(*key)

    return play_traffic


def _play(
    services: PublicServices, session: str, target: str, drafter: str, topic: str, count: int, cancel: threading.Event
) -> Iterator[Any]:
    pair = {"target": target, "drafter": drafter, "method": services.settings.method}
    # Other prompts each time: on the ones of the last play the drafter would only repeat what it learned by heart.
    seed = secrets.randbelow(2**31)
    return iter(services.play(session=session, topic=topic, count=count, cancel=cancel, seed=seed, let_learn=False, **pair))


def learner(services: PublicServices, running: Running) -> Any:
    """The event after a slice, outside of the engine's queue: an update that is due runs, and other requests get the engine."""

    def let_learn(value: str, session: str, run: str, target: str, drafter: str) -> None:
        shown = json.loads(value or "{}")
        if shown.get("state") != "more" or shown.get("run") != run:
            return
        try:
            line, topic = str(shown.get("line") or "default"), str(shown.get("topic") or "")
            services.let_learn(target, drafter, line, running.flag(session, run), topic)
        except (RuntimeError, ValueError):  # the pair is gone, or it is no line
            return

    return let_learn


def wire(services: PublicServices, shell: Shell, widget: gr.HTML, name: str) -> None:
    """Let a widget of teach.js play traffic; `name` is its name there."""
    running = Running()
    run, topic = gr.Textbox(visible=False, label="run"), gr.Textbox(visible=False, label="topic")
    count = gr.Number(visible=False, label="count")
    calls = f"omni.players.{name}"
    pair = [shell.target, shell.drafter]
    settled: dict[str, Any] = {"fn": None, "js": f"() => {{ {calls}.settled(); return []; }}", **PRIVATE}
    played = widget.play(
        player(services, running),
        [shell.session, run, *pair, topic, count],
        [widget],
        js=f"(...values) => {calls}.request(values)",
        api_name=f"{name}_traffic",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        show_progress="hidden",
    )
    played.failure(**settled)  # refused before it began: nothing below happens then
    played.then(
        learner(services, running),
        [widget, shell.session, run, *pair],
        None,
        js=f"(value, ...more) => [value, ...{calls}.current(), ...more.slice(2)]",
        concurrency_limit=8,
        **PRIVATE,
    ).then(**settled)
    running.stopped_by(widget.halt, [shell.session, run], f"() => {calls}.current()", f"stop_{name}")


def first(services: PublicServices) -> str:
    """The value with which such a widget begins."""
    return for_browser({"topics": services.topics(), "fewest": FEWEST, "most": MOST, "usual": USUAL})


def _result(generation: Generation) -> dict[str, Any]:
    names = ("tokens", "acceptance_rate", "block_efficiency", "tokens_per_second", "estimated_speedup", "guesses_right")
    figures = {name: finite(generation.metrics.get(name)) for name in names}
    return {"text": generation.text[:SHOWN_TEXT], "version": generation.adapter_version, "figures": figures}
