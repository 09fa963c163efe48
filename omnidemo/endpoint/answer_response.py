"""The response that is an answer being written: whole or streamed, and over as soon as its client has gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import anyio
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from omnidemo.endpoint.answer_format import AnswerFormat, failed
from omnidemo.endpoint.answer_slots import AnswerSlots
from omnidemo.endpoint.api_errors import as_api_error
from omnidemo.records import Generation, Round

STREAM = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
Item = Round | Generation | Exception


class AnswerResponse:
    """An ASGI app for one request. `begin(cancel)` starts the answer, in the thread that makes it; `fingerprint` names what it was made
    under.

    A thread decodes ahead of the connection: a client that reads slowly holds nobody up. What fails before the first token has its own
    status; later it is an event of the stream.
    """

    def __init__(
        self,
        begin: Callable[[threading.Event], Iterator[Round | Generation]],
        form: AnswerFormat,
        fingerprint: Callable[[Generation], str],
        slots: AnswerSlots,
        caller: str,
        streamed: bool,
    ) -> None:
        self._begin, self._form, self._fingerprint = begin, form, fingerprint
        self._slots, self._caller, self._streamed = slots, caller, streamed
        self._cancel = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._slots.take(self._caller)
        except Exception as error:
            await as_api_error(error).response()(scope, receive, send)
            return
        loop, items = asyncio.get_running_loop(), asyncio.Queue[Item]()

        def put(item: Item) -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(items.put_nowait, item)

        self._slots.run(lambda: self._decode(put))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                await (self._stream if self._streamed else self._whole)(items, scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._cancel.set()

    def _decode(self, put: Callable[[Item], None]) -> None:
        """Make the answer, in a thread of its own; its slot is free when this ends."""
        try:
            if self._cancel.is_set():
                return
            with closing(self._begin(self._cancel)) as answer:  # type: ignore[type-var]
                for item in answer:
                    if self._streamed or isinstance(item, Generation):
                        put(item)
        except Exception as error:
            put(error)
        finally:
            self._slots.give_back(self._caller)

    async def _whole(self, items: asyncio.Queue[Item], scope: Scope, receive: Receive, send: Send) -> None:
        made = await items.get()
        if isinstance(made, Generation):
            await JSONResponse(self._form.whole(made, self._fingerprint(made)))(scope, receive, send)
        elif isinstance(made, Exception):
            await as_api_error(made).response()(scope, receive, send)

    async def _stream(self, items: asyncio.Queue[Item], scope: Scope, receive: Receive, send: Send) -> None:
        item = await items.get()
        if isinstance(item, Exception):
            await as_api_error(item).response()(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": STREAM})
        while True:
            events = self._events(item)
            while not items.empty() and isinstance(item, Round):  # what has come meanwhile goes along
                item = items.get_nowait()
                events += self._events(item)
            await send({"type": "http.response.body", "body": events, "more_body": isinstance(item, Round)})
            if not isinstance(item, Round):
                return
            item = await items.get()

    def _events(self, item: Item) -> bytes:
        if isinstance(item, Round):
            return self._form.round(item)
        return self._form.last(item, self._fingerprint(item)) if isinstance(item, Generation) else failed(as_api_error(item).body)


async def _until_gone(receive: Receive, scope: Any) -> None:
    """End the answer when its client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
