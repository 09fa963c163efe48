"""The HTTP side of an answer: sent whole or streamed, and ended when its client disconnects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from omnidemo.core.records import Generation, Part, Reading, Round
from omnidemo.serving.endpoint.answer_format import AnswerFormat, event
from omnidemo.serving.endpoint.answer_slots import AnswerSlots, Work
from omnidemo.serving.endpoint.api_errors import as_api_error
from omnidemo.serving.endpoint.request_body import AnswerRequest

STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
EARLY = RuntimeError("The answer ended early; ask again")
Begin = Callable[[threading.Event], Iterator[Part]]
Item = Part | Exception | None


class AnswerResponse:
    """An ASGI app for one request. `begin(cancel)` starts the answer in its thread. An error before the first
    `Reading` or `Round` has an HTTP status of its own; a later error is an event of the stream."""

    def __init__(
        self,
        begin: Begin,
        form: AnswerFormat,
        slots: AnswerSlots,
        caller: str,
        asked: AnswerRequest,
    ) -> None:
        self._begin, self._form = begin, form
        self._slots, self._caller, self._streamed, self._headers = slots, caller, asked.stream, asked.headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            work = self._slots.start(self._caller, self._begin, None if self._streamed else Generation)
        except Exception as error:
            await as_api_error(error).response()(scope, receive, send)
            return
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await self._answer(work, scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            work.stop()

    async def _answer(self, work: Work[Part], scope: Scope, receive: Receive, send: Send) -> None:
        items = await work.made()
        first = items[0] or EARLY
        if isinstance(first, Exception):
            await as_api_error(first).response()(scope, receive, send)
            return
        if isinstance(first, Generation) and not self._streamed:
            await JSONResponse(self._form.whole(first), headers=self._headers)(scope, receive, send)
            return
        headers = [
            *STREAM,
            *((name.lower().encode(), value.encode()) for name, value in self._headers.items()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            events, more = b"", True
            for item in items:
                if more:  # the end is sent once
                    events += self._events(item)
                    more = isinstance(item, Reading | Round)
            await send({"type": "http.response.body", "body": events, "more_body": more})
            if not more:
                return
            items = await work.made()

    def _events(self, item: Item) -> bytes:
        if isinstance(item, Reading):  # a comment, which clients skip, against their timeouts
            return f": reading the prompt, {item.read:,} of {item.total:,} tokens\n\n".encode()
        if isinstance(item, Round):
            return self._form.round(item)
        if isinstance(item, Generation):
            return self._form.last(item)
        return event(as_api_error(item or EARLY).body)


async def _until_gone(receive: Receive, scope: Any) -> None:
    """Cancel `scope` when the client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
