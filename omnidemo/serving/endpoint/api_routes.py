"""The endpoint's addresses, and how a request becomes an answer."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from threading import Event
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import Part
from omnidemo.serving.endpoint import model_ids
from omnidemo.serving.endpoint.answer_format import AnswerFormat
from omnidemo.serving.endpoint.answer_response import AnswerResponse, Begin
from omnidemo.serving.endpoint.answer_slots import AnswerSlots
from omnidemo.serving.endpoint.api_errors import NO_RETRY, ApiError, as_api_error
from omnidemo.serving.endpoint.draft_routes import DraftRoutes
from omnidemo.serving.endpoint.model_ids import ModelId
from omnidemo.serving.endpoint.request_body import AnswerRequest, ChatRequest, CompletionRequest, read
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.visitors import Caller

PREFIX = "/v1/"
ANSWERS = 3  # that each answering process writes at the same time, round by round in turns
MOST_OF_ONE = 6  # requests of one visitor of a public app that run or wait
# longest wait of a request for a pair that is being loaded, and between two looks
LOAD_SECONDS, LOOK_SECONDS = 300.0, 0.1
LOADING = {"Retry-After": "10"}  # after that wait
VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
CLOSED = (
    "Nobody may use the endpoint of an app that is public, or asks for a password, and has no keys; whoever"
    " runs it sets OMNIDEMO_API_KEYS."
)
NO_KEY = "This endpoint needs a key; send one as `Authorization: Bearer KEY` or as `X-API-Key: KEY`."
WRONG_KEY = "That key is none of this endpoint's; check it against OMNIDEMO_API_KEYS and send it again."
Handler = Callable[[PublicServices, Request], Awaitable[ASGIApp]]
Gone = Callable[[], Awaitable[bool]]  # whether the client has disconnected


async def _never() -> bool:
    return False


def routes(endpoint: Endpoint) -> list[Route]:
    """`/v1/models`, `/v1/chat/completions`, `/v1/completions` and `/v1/drafts`; any other address below
    `/v1/` answers with an error in OpenAI's shape."""
    drafts = DraftRoutes(endpoint)
    addresses: list[tuple[str, Handler, list[str]]] = [
        ("models", endpoint.models, ["GET"]),
        ("models/{name:path}", endpoint.model, ["GET"]),
        ("chat/completions", endpoint.chat, ["POST"]),
        ("completions", endpoint.complete, ["POST"]),
        ("drafts", drafts.about, ["GET"]),
        ("drafts", drafts.check, ["POST"]),
        ("drafts/tokenizer", drafts.tokenizer, ["GET"]),
        ("{rest:path}", endpoint.nothing, VERBS),
    ]
    return [
        Route(PREFIX + path, _answering(endpoint, handle), methods=verbs) for path, handle, verbs in addresses
    ]


class Endpoint:
    """Answers in OpenAI's wire format, with the same services as the page."""

    def __init__(self, front: PublicServices) -> None:
        self.front = front
        self._began = int(time.time())
        self.slots = AnswerSlots(ANSWERS * front.processes, front.settings.queue_size, MOST_OF_ONE)

    def calling(self, headers: Headers) -> PublicServices:
        """The services for the caller that these headers name; each key is a visitor. ApiError 401 without a
        valid key. Without keys in the settings a private app whose page asks for no password answers
        everybody; any other raises ApiError 404."""
        front = self.front
        keys = [key for key in (part.strip() for part in front.settings.api_keys.split(",")) if key]
        if not keys:
            if front.public or front.settings.auth:
                raise ApiError(404, CLOSED)
            return front.calling_as(Caller())
        given = _given(headers)
        if not given:
            raise ApiError(401, NO_KEY, headers={"WWW-Authenticate": "Bearer"})
        fitting = [
            key
            for key in keys
            for sent in given
            if hmac.compare_digest(key.encode(), sent.encode("utf-8", "replace"))
        ]
        if not fitting:
            raise ApiError(401, WRONG_KEY, headers={"WWW-Authenticate": "Bearer"})
        return front.calling_as(Caller(front.visitors.name_of_key(fitting[0])))

    async def models(self, front: PublicServices, request: Request) -> ASGIApp:
        ids = await anyio.to_thread.run_sync(model_ids.listed, front)
        return JSONResponse({"object": "list", "data": [self._card(front, name) for name in ids]})

    async def model(self, front: PublicServices, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        model = await anyio.to_thread.run_sync(model_ids.find, front, name)
        if model.named_line and front.state(model.target, model.drafter).stage == "ready":
            await anyio.to_thread.run_sync(model_ids.check_line, front, model)
        return JSONResponse(self._card(front, name))

    async def chat(self, front: PublicServices, request: Request) -> ASGIApp:
        asked = read(await request.body(), ChatRequest)
        return await self._answer(front, request, asked, [message.plain() for message in asked.messages])

    async def complete(self, front: PublicServices, request: Request) -> ASGIApp:
        asked = read(await request.body(), CompletionRequest)
        return await self._answer(
            front, request, asked, [{"role": "user", "content": asked.prompt}], raw=True
        )

    async def nothing(self, front: PublicServices, request: Request) -> ASGIApp:
        there = "GET /v1/models, POST /v1/chat/completions and POST /v1/completions"
        raise ApiError(
            404,
            f"There is no {request.method} {request.url.path[:80]}; this endpoint has {there}.",
            code="unknown_url",
        )

    async def _answer(
        self,
        front: PublicServices,
        request: Request,
        asked: AnswerRequest,
        messages: list[dict[str, str]],
        raw: bool = False,
    ) -> ASGIApp:
        model = await self._found(front, asked.model)
        begin = self.plan(front, model, asked, messages, raw)
        form = AnswerFormat(
            asked, model.written(front.settings), {"target": model.target, "drafter": model.drafter}
        )
        load = partial(self._loaded, front, asked.model, model)
        return AnswerResponse(load, begin, form, self.slots, self.counted_as(front), asked)

    def counted_as(self, front: PublicServices) -> str:
        """The name under which a caller's answers are counted; "" in a private app."""
        return front.caller_name if front.public else ""

    def plan(
        self,
        front: PublicServices,
        model: ModelId,
        asked: AnswerRequest,
        messages: list[dict[str, str]],
        raw: bool = False,
    ) -> Begin:
        """The function that begins the answer to a request."""
        settings = front.settings
        options: dict[str, Any] = {
            "target": model.target,
            "drafter": model.drafter,
            "domain": model.line,
            "messages": messages,
            "raw": raw,
            "control_tokens": asked.control_tokens,
            "method": settings.method,
            "max_new_tokens": asked.most_tokens or settings.max_new_tokens,
            **asked.options,
            "stop": tuple(asked.stop),
            "seed": asked.seed,
            "keep": asked.omnidemo.keep,
            "kind": "api",
        }

        def begin(cancel: Event) -> Iterator[Part]:
            return front.chat(session="api", cancel=cancel, **options)

        return begin

    async def ready(self, front: PublicServices, name: str, gone: Gone = _never) -> ModelId:
        """The loaded model of a request. ApiError for an unknown one, and where loading fails, takes too
        long, or too many requests wait."""
        return await self._loaded(front, name, await self._found(front, name), gone)

    async def _found(self, front: PublicServices, name: str) -> ModelId:
        if (model := model_ids.find_own(front.settings, name)) is not None:
            return model
        return await anyio.to_thread.run_sync(model_ids.find, front, name)

    async def _loaded(self, front: PublicServices, name: str, model: ModelId, gone: Gone = _never) -> ModelId:
        state = front.load(model.target, model.drafter)
        if state.stage != "ready":
            with self.slots.place(self.counted_as(front)):
                until = time.monotonic() + LOAD_SECONDS
                while state.stage not in ("ready", "failed") and time.monotonic() < until:
                    await anyio.sleep(LOOK_SECONDS)
                    if await gone():
                        raise ClientDisconnect
                    state = front.state(model.target, model.drafter)
        if state.stage == "failed":
            why = without_folders(state.error or "")  # `front.state` strips folders for visitors only
            raise ApiError(
                503, f"{name[:120]} could not be loaded: {why}", code="model_not_loaded", headers=NO_RETRY
            )
        if state.stage != "ready":
            raise ApiError(
                503,
                f"{name[:120]} is still being loaded ({state.stage}); ask again in a few seconds.",
                headers=LOADING,
            )
        return (
            await anyio.to_thread.run_sync(model_ids.check_line, front, model) if model.named_line else model
        )

    def _card(self, front: PublicServices, name: str) -> dict[str, Any]:
        """`default`: whether it is the target that answers where a request names none."""
        default = name == front.settings.target
        return {
            "id": name,
            "object": "model",
            "created": self._began,
            "owned_by": "omnidemo",
            "default": default,
        }


def _answering(endpoint: Endpoint, handler: Handler) -> Any:
    """The handler with its caller identified, and with errors in OpenAI's shape."""

    async def handle(request: Request) -> ASGIApp:
        try:
            return await handler(endpoint.calling(request.headers), request)
        except ClientDisconnect:  # before the request was complete or its model loaded
            return Response(status_code=400)
        except Exception as error:
            return as_api_error(error).response()

    return handle


def _given(headers: Headers) -> list[str]:
    """The keys of a request. A private Space's token comes as a bearer too, so both headers are read."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [
        key
        for key in (headers.get("x-api-key", "").strip(), token.strip() if scheme.lower() == "bearer" else "")
        if key
    ]
