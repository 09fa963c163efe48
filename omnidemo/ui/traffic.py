"""Playing traffic: sample prompts through a pair, in turns, so that a chat never waits for all of them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from omnidemo.records import Generation
from omnidemo.ui import text
from omnidemo.ui.chat import Running
from omnidemo.ui.serving import for_browser
from omnidemo.ui.tokens import finite

log = logging.getLogger(__name__)

FEWEST, MOST, USUAL = 5, 200, 40  # requests of one play
TURN_SECONDS = 4.0  # then the engine's queue comes first, and the browser asks for the next turn
MOST_PARKED = 32  # plays between two turns; a closed browser leaves one behind
SHOWN_TEXT = 400
Key = tuple[str, str]  # session, run


class Parked:
    """Plays between two turns. The oldest leaves when there are too many: its browser is gone."""

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


def player(services: Any, running: Running) -> Any:
    """The event behind the play button."""
    parked = Parked(lambda key: running.finish(*key))

    def play_traffic(session: str, run: str, target: str, drafter: str, topic: str, count: float) -> Iterator[str]:
        """Stream `count` sample prompts of a topic through the pair; JSON after each: state, done, prompt, text, figures.

        With a `run` id the answer ends with the state `more` after a few seconds: call again with the same id for the next turn.
        """
        in_turns = bool(run)
        key = (session or f"api-{secrets.token_hex(8)}", run or secrets.token_hex(8))
        wanted = min(MOST, max(1, int(count or USUAL)))
        played, value = parked.take(key) or (None, {"run": key[1], "topic": topic, "count": wanted, "done": 0, "state": "playing"})

        def shown(**changes: Any) -> str:
            value.update(changes)
            return for_browser(value)

        state = services.load(target, drafter)
        if state.stage != "ready":
            why = (
                state.error
                or f"{target} is still loading ({text.STAGES.get(state.stage, state.stage)}). Press Play again when it is ready."
            )
            running.finish(*key)
            yield shown(state="error", error=why)
            return
        yield shown(state="playing")
        cancel, until, more = running.start(*key), time.monotonic() + TURN_SECONDS, False
        try:
            played = played or _play(services, key[0], target, drafter, topic, wanted, cancel)
            for index, prompt, generation in played:
                if generation.finish_reason != "cancelled":
                    yield shown(done=index + 1, prompt=prompt[:SHOWN_TEXT], **_result(generation))
                more = in_turns and time.monotonic() > until and not cancel.is_set() and value["done"] < value["count"]
                if more:
                    break
            yield shown(state="more" if more else "stopped" if cancel.is_set() else "done")
        except Exception as error:  # any cause: the page says it and lives on
            log.exception("playing traffic failed")
            yield shown(state="error", error=str(error) or type(error).__name__)
        finally:
            if more and played is not None:
                parked.put(key, played, value)
            else:
                running.finish(*key)

    return play_traffic


def _play(services: Any, session: str, target: str, drafter: str, topic: str, count: int, cancel: threading.Event) -> Iterator[Any]:
    pair = {"target": target, "drafter": drafter, "method": services.settings.method}
    # Other prompts each time: on the ones of the last play the drafter would only show that it knows them by heart.
    return iter(services.play(session=session, topic=topic, count=count, cancel=cancel, seed=secrets.randbelow(2**31), **pair))


def _result(generation: Generation) -> dict[str, Any]:
    names = ("tokens", "acceptance_rate", "block_efficiency", "tokens_per_second", "estimated_speedup")
    figures = {name: finite(generation.metrics.get(name)) for name in names}
    return {"text": generation.text[:SHOWN_TEXT], "version": generation.adapter_version, "figures": figures}
