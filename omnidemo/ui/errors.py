"""Errors: one sentence on the page, one row in the log."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
import traceback
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.exceptions import ComponentProcessingError

from omnidemo.core.private_folders import without_folders

log = logging.getLogger(__name__)
PROSE = re.compile(r"[a-z]+ [a-z]")  # such as Python's libraries write them
ENGINE = "engine"  # concurrency_id of what decodes in turn: chat, compare, play, generate
LISTEN_SECONDS = 5.0  # after a request joined the queue, in which its sender has to begin to listen
# browsers with a queue of messages: more than ask within the time in which one reads its answer
REMEMBERED = 256
EXPECTED = (ValueError, RuntimeError, OSError)  # that this project raises with a sentence for people
HERE = Path(__file__).parents[1]


def report(error: BaseException, doing: str) -> str:
    """The sentence for the page; the log gets one row, which for a fault of this project names file and row
    of the code."""
    said = " ".join(str(getattr(error, "message", error)).split())
    if (
        isinstance(error, (*EXPECTED, gr.Error))
        and not isinstance(error, (RecursionError, NotImplementedError))
        and said
    ):
        log.warning("%s: %s", doing, said[:300])
        # the log has the folders
        said = said if isinstance(error, (ValueError, gr.Error)) else without_folders(said)
        # but a model's name, or a setting's, begins as it is written
        return said[0].upper() + said[1:] if PROSE.match(said) else said
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if HERE in Path(frame.filename).parents
    ]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside of this project"
    log.error("%s: %s: %s (%s)", doing, type(error).__name__, said[:200], place)
    log.debug("where it came from", exc_info=error)
    return f"Something went wrong inside ({type(error).__name__} at {place}). Try again, or report it."


def sentence(said: str) -> str:
    """What an error says, which may begin and end as a part of a sentence does, as a whole one."""
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def check(blocks: Iterable[Any], values: Iterable[Any]) -> None:
    """ValueError, one sentence, for a value that its component cannot have."""
    for block, value in zip(blocks, values, strict=False):
        if wrong := _wrong(block, value):
            name = getattr(block, "label", None) or "a value"
            shown = repr(value)
            raise ValueError(f"“{name}” {wrong}: {shown if len(shown) <= 40 else shown[:37] + '...'}")


def _wrong(block: Any, value: Any) -> str:
    """The fault of a value for a component, as the end of a sentence; empty where there is none."""
    if value is None:
        return "is empty" if isinstance(block, gr.Slider) else ""
    if isinstance(block, gr.JSON):
        return "" if isinstance(value, (dict, list)) else "is neither an object nor a list"
    if isinstance(block, (gr.Slider, gr.Number)):
        number = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and abs(value) < 2**63
        )
        return "" if number else "is not a finite number"
    if isinstance(block, gr.Checkbox):
        return "" if isinstance(value, bool) else "is neither true nor false"
    if not isinstance(block, (gr.Textbox, gr.Dropdown)):
        return ""
    texts = value if isinstance(value, list) and getattr(block, "multiselect", False) else [value]
    if not all(isinstance(text, str) for text in texts):
        return "is not a text"
    return (
        ""
        if all(text.isascii() or text.encode(errors="ignore").decode() == text for text in texts)
        else "holds half a character"
    )


class Events(gr.Blocks):
    """Blocks whose events check the types of their values (an error names the field's label), turn every
    error into one sentence, and free the queues of browsers that have not been heard of for long. Without
    Gradio's heartbeat, which would keep one of the six connections that a browser opens to a server for each
    tab: with five or six tabs every other request waited for one to be free. (The state of closed pages is
    limited by `state_session_capacity`.)"""

    news: Callable[[Any], str]  # `Shell.news`

    def get_config_file(self) -> Any:
        return super().get_config_file() | {"connect_heartbeat": False}

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *more: Any, **options: Any) -> Any:
        check(block_fn.inputs, inputs)
        try:
            return await super().preprocess_data(block_fn, inputs, *more, **options)
        except ComponentProcessingError as error:
            said = str(error.__cause__ or "") if isinstance(error.__cause__, (ValueError, gr.Error)) else ""
            raise ValueError(
                f"A value cannot be read{': ' + said if said else ''}. Reload the page; a program finds the"
                " types under /gradio_api/info."
            ) from error

    async def process_api(self, block_fn: Any, *given: Any, **options: Any) -> Any:
        known = self.fns.get(block_fn) if isinstance(block_fn, int) else block_fn
        try:
            self._remember(options.get("event_id"))
            if known is not None and known.fn is None:
                raise ValueError("This event runs in the browser alone; there is nothing to call.")
            if not options.get("iterator") and not await self._listened(options.get("event_id")):
                raise RuntimeError("Nobody listened for this answer, so it was not written. Send it again.")
            return await super().process_api(block_fn, *given, **options)
        except Exception as error:  # any error; Gradio would write its whole traceback to the log
            said = report(error, str(getattr(known, "api_name", None) or "an event"))
            raise gr.Error(said, print_exception=False, duration=getattr(error, "duration", 10)) from error

    def _remember(self, event_id: str | None) -> None:
        """Mark the browser of a starting event as the newest, and free the oldest ones without pending
        events: Gradio would keep the messages of 2,000 browsers, and the set of each one's events for
        ever."""
        queue = self._queue
        running, asked = queue.event_ids_to_events, queue.pending_event_ids_session
        event = running.get(event_id or "")
        if event is None or event.session_hash not in asked:
            return
        asked[event.session_hash] = asked.pop(event.session_hash)
        for session in list(islice(asked, max(0, len(asked) - REMEMBERED))):
            if running.keys().isdisjoint(asked[session]):
                del asked[session]
                queue.pending_messages_per_session.pop(session, None)

    async def _listened(self, event_id: str | None) -> bool:
        """Whether somebody reads the messages of an event that decodes, which would otherwise pile up. A
        client has LISTEN_SECONDS to start."""
        event = self._queue.event_ids_to_events.get(event_id or "")
        if event is None or event.concurrency_id != ENGINE:
            return True
        until = max(event.enqueue_time + LISTEN_SECONDS, time.monotonic() + 0.25)
        while (
            messages := self._queue.pending_messages_per_session.get(event.session_hash)
        ) is not None and messages.qsize():
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.02)
        return True
