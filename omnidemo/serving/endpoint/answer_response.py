"""An answer over HTTP: whole, or as a stream of events, and ended when its client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, closing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from omnidemo.core.records import Generation, Part
from omnidemo.serving.endpoint.answer_format import AnswerFormat, event
from omnidemo.serving.endpoint.answer_slots import Work
from omnidemo.serving.endpoint.api_errors import as_api_error
from omnidemo.serving.endpoint.request_body import AnswerRequest

STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EARLY = RuntimeError("The answer ended early; ask again")
# a stream that waits begins after the first time, and says something after each of the second: proxies and
# clients give up on a silent one
BEGIN_SECONDS, TELL_SECONDS = 0.5, 5.0
LOADING, WAITING = b": loading the model\n\n", b": waiting for its turn\n\n"  # comments, which clients skip
Load = Callable[[], Awaitable[object]]
Start = Callable[[], Work[Part]]
Made = AsyncGenerator[list[Part], None]
Result = TypeVar("Result")


async def respond(
    request: Request, asked: AnswerRequest, form: AnswerFormat, load: Load, start: Start
) -> Response:
    """The response to a request: `load()` waits for its model, then `start()` begins its answer. An error
    before a stream has begun is raised; a later one is an event of the stream."""
    made = _made(load, start)
    if not asked.stream:
        whole = form.whole(await unless_gone(request, _last(made)))
        return JSONResponse(whole, headers=asked.headers)
    events = _events(made, form)
    return EventStream(await anext(events), events, asked.headers)


async def unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work, which is cancelled where the client disconnects. ClientDisconnect then."""
    made, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait([made, gone], return_when=asyncio.FIRST_COMPLETED)
        if not made.done():
            raise ClientDisconnect
        return made.result()
    finally:
        made.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class EventStream(StreamingResponse):
    """Events, the first of which is there already. They are closed when the client disconnects."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, events: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(_behind(first, events), headers={**STREAM, **headers})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


async def _behind(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for one in events:
        yield one


async def _made(load: Load, start: Start) -> Made:
    """The parts of an answer as they come, behind an empty list for a loaded model."""
    await load()
    yield []
    with closing(start()) as work:
        async for parts in work:
            yield parts


async def _last(made: Made) -> Generation:
    async with aclosing(made):
        async for parts in made:
            for part in parts:
                if isinstance(part, Generation):
                    return part
    raise EARLY


async def _events(made: Made, form: AnswerFormat) -> AsyncGenerator[bytes, None]:
    """The events of an answer, with a comment from time to time while there is none."""
    begun, comment = False, LOADING
    coming = asyncio.ensure_future(anext(made, None))
    try:
        while True:
            seconds = TELL_SECONDS if begun else BEGIN_SECONDS
            if not (await asyncio.wait([coming], timeout=seconds))[0]:
                begun = True
                yield comment
                continue
            if (parts := coming.result()) is None:
                raise EARLY
            comment = WAITING
            if parts:
                begun = True
                yield b"".join(map(form.event, parts))
                if isinstance(parts[-1], Generation):
                    return
            coming = asyncio.ensure_future(anext(made, None))
    except Exception as error:
        if not begun:
            raise
        yield event(as_api_error(error).body)
    finally:
        if coming.done():
            await made.aclose()
        coming.cancel()  # what is awaited within ends as it is cancelled
