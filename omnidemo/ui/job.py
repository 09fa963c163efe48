"""A job: what somebody asks for on the page and waits for, such as an answer, a comparison or a measurement.

The page triggers an event of a widget with one object, in which `run` names the run. The widget's value is a
stream of JSON lines for the page (`assets/ui/shared/job.js`):

    run     first line: run
    wait    place: how many leave the line before it is this one's turn
    …       what the work yields
    error   last line of a run that failed: text, cause and next step
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import anyio
import gradio as gr
from gradio.context import LocalContext

from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.serving.waiting_line import WaitingLine
from omnidemo.storage.recorded_rounds import json_line
from omnidemo.ui.errors import asked_of, check, report
from omnidemo.ui.shell import PRIVATE, QUIET, script

STEP_SECONDS = 0.05  # between two looks whether it is somebody's turn
LISTEN_SECONDS = 5.0  # after a request, in which its sender has to begin to listen
MOST_STOPPED = 256
Work = Callable[..., Iterator[str]]  # (asked, cancel, *values of the inputs) → what the stream has so far

# Sessions of Gradio whose messages somebody reads now; `ui/guard.py` counts them.
LISTENING: Counter[str] = Counter()


class Running:
    """The stop flags of runs, also of those that were stopped before they started. Shared by all visitors, so
    guarded by a lock; nobody can guess another's run."""

    def __init__(self) -> None:
        self._flags: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def start(self, run: str) -> threading.Event:
        with self._lock:
            return self._flags.setdefault(run, threading.Event())

    def stop(self, run: str) -> bool:
        """End a run at its next round; one that has not started ends as it starts. False where it was not
        known yet."""
        with self._lock:
            known = run in self._flags
            self._flags.setdefault(run, threading.Event()).set()
            stopped = [key for key, flag in self._flags.items() if flag.is_set()]
            for old in stopped[:-MOST_STOPPED]:  # they never started, or hold their flag themselves
                del self._flags[old]
        return known

    def finish(self, run: str) -> None:
        with self._lock:
            flag = self._flags.pop(run, None)
        if flag is not None:
            flag.set()  # also when the browser went away: the engine stops at its next round


async def listened() -> None:
    """Wait until somebody reads the messages of the event, which would otherwise pile up. RuntimeError where
    nobody does."""
    session = getattr(LocalContext.request.get(None), "session_hash", None)
    waited = 0.0
    while session and not LISTENING[session]:
        if waited >= LISTEN_SECONDS:
            raise RuntimeError("Nobody listened for this answer, so it was not written. Send it again.")
        await anyio.sleep(STEP_SECONDS)
        waited += STEP_SECONDS


async def in_turn(services: PublicServices, act: Callable[[], Any]) -> Any:
    """Do something in a thread when it is the caller's turn for the engine."""
    await listened()
    with services.line.place(services.waiting_as) as before:
        while before():
            await anyio.sleep(STEP_SECONDS)
        return await anyio.to_thread.run_sync(act)


def stream_of(
    services: PublicServices,
    work: Work,
    running: Running,
    inputs: Sequence[Any] = (),
    line: WaitingLine | None = None,
    doing: str = "a job",
    after: Callable[..., None] | None = None,
) -> Callable[..., AsyncIterator[str]]:
    """The function of Gradio's event: it waits for its turn, does the work in a thread, and says what went
    wrong. `after` is done when the next one has its turn."""

    async def stream(event: gr.EventData, *values: Any) -> AsyncIterator[str]:
        asked = asked_of(event)
        run = str(asked.get("run") or secrets.token_hex(8))
        head, last, flag = json_line("run", run=run), "", running.start(run)
        try:
            check(inputs, values)
            await listened()
            with (services.line if line is None else line).place(services.waiting_as) as before:
                shown = 0
                while (place := before()) and not flag.is_set():
                    if place != shown:
                        head += json_line("wait", place=place)
                        shown = place
                        yield head
                    await anyio.sleep(STEP_SECONDS)
                parts = work(asked, flag, *values)
                while (value := await anyio.to_thread.run_sync(next, parts, None)) is not None:
                    last = value
                    yield head + last
            if after is not None:
                await anyio.to_thread.run_sync(after, asked, *values)
        except Refused as refused:  # nothing is wrong, so nothing is logged
            yield head + last + json_line("error", text=str(refused))
        except Exception as error:  # any cause: the page says it and lives on
            yield head + last + json_line("error", text=report(error, doing))
        finally:
            running.finish(run)

    return stream


def wire(
    services: PublicServices,
    panel: gr.HTML,
    start: str,
    work: Work,
    inputs: Sequence[Any],
    api_name: str,
    running: Running | None = None,
    **options: Any,
) -> Running:
    """Let the event `start` of a widget begin a job, and `halt`, where it has that event, end it."""
    known = Running() if running is None else running
    run = stream_of(services, work, known, inputs, doing=api_name.replace("_", " "), **options)
    open_to_all: dict[str, Any] = {"concurrency_limit": None, "trigger_mode": "multiple"}
    begun = getattr(panel, start)(run, inputs, [panel], api_name=api_name, **open_to_all, **PRIVATE)
    over: dict[str, Any] = {"fn": None, "outputs": None, **PRIVATE}
    begun.then(inputs=[panel], js=_settled(panel), **over)
    begun.failure(inputs=None, js=_settled(panel), **over)  # refused before it began: nothing is said then
    if running is None and hasattr(panel, "halt"):

        def stop(event: gr.EventData) -> None:
            known.stop(str(asked_of(event).get("run")))

        panel.halt(stop, None, None, api_name=f"stop_{api_name}", **QUIET)
    return known


def _settled(panel: gr.HTML) -> str:
    name = json.dumps(str(panel.elem_id).removeprefix("omni-"))
    return script(f"(value) => {{ page.settled({name}, value); return []; }}")
