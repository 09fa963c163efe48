"""The HTTP side of an answer: sent whole or streamed, and ended when its client disconnects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import anyio
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from omnidemo.core.records import Generation, Part, Reading, Round
from omnidemo.serving.endpoint.answer_format import AnswerFormat, event
from omnidemo.serving.endpoint.answer_slots import AnswerSlots
from omnidemo.serving.endpoint.api_errors import as_api_error
from omnidemo.serving.endpoint.request_body import AnswerRequest

STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
EARLY = RuntimeError("The answer ended early; ask again")
# a stream that waits begins after the first time, and says something after each of the second: proxies and
# clients give up on a silent one
BEGIN_SECONDS, TELL_SECONDS = 0.5, 5.0
LOADING, WAITING = b": loading the model\n\n", b": waiting for its turn\n\n"  # comments, which clients skip
Begin = Callable[[threading.Event], Iterator[Part]]
Item = Part | Exception | None
Result = TypeVar("Result")


class AnswerResponse:
    """An ASGI app for one request. `load()` waits for its model, then `begin(cancel)` starts the answer in
    its thread. An error before the stream has begun has an HTTP status of its own; a later one is an event of
    the stream."""

    def __init__(
        self,
        load: Callable[[], Awaitable[object]],
        begin: Begin,
        form: AnswerFormat,
        slots: AnswerSlots,
        caller: str,
        asked: AnswerRequest,
    ) -> None:
        self._load, self._begin, self._form = load, begin, form
        self._slots, self._caller, self._streamed, self._headers = slots, caller, asked.stream, asked.headers
        self._begun = False  # whether the stream has a status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            try:
                await self._while_told(send, LOADING, self._load())
                await self._answer(scope, receive, send)
            except Exception as error:
                told = as_api_error(error)
                if self._begun:
                    await self._send(send, event(told.body), more=False)
                else:
                    await told.response()(scope, receive, send)
            tasks.cancel_scope.cancel()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = self._slots.start(self._caller, self._begin, None if self._streamed else Generation)
        try:
            more = True
            while more:
                events = b""
                for item in await self._while_told(send, WAITING, work.made()):
                    if item is None or isinstance(item, Exception):
                        if events:
                            await self._send(send, events)
                        raise item or EARLY
                    if not self._streamed and isinstance(item, Generation):
                        whole = JSONResponse(self._form.whole(item), headers=self._headers)
                        return await whole(scope, receive, send)
                    events += self._events(item)
                    if not (more := isinstance(item, Reading | Round)):
                        break
                await self._send(send, events, more)
        finally:
            work.stop()

    async def _while_told(self, send: Send, comment: bytes, result: Awaitable[Result]) -> Result:
        """The result of a wait, during which a stream sends the comment from time to time."""
        task = asyncio.ensure_future(result)
        try:
            while self._streamed:
                seconds = TELL_SECONDS if self._begun else BEGIN_SECONDS
                if (await asyncio.wait([task], timeout=seconds))[0]:
                    break
                await self._send(send, comment)
            return await task
        finally:
            task.cancel()

    async def _send(self, send: Send, events: bytes, more: bool = True) -> None:
        if not self._begun:
            self._begun = True
            own = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *own]})
        await send({"type": "http.response.body", "body": events, "more_body": more})

    def _events(self, item: Part) -> bytes:
        if isinstance(item, Reading):  # a comment
            return f": reading the prompt, {item.read:,} of {item.total:,} tokens\n\n".encode()
        return self._form.round(item) if isinstance(item, Round) else self._form.last(item)


async def _until_gone(receive: Receive, scope: Any) -> None:
    """Cancel `scope` when the client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
