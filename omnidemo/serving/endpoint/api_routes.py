"""The endpoint's addresses, and how a request becomes an answer."""

from __future__ import annotations

import gzip
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from functools import partial
from threading import Event
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import Generation, Part
from omnidemo.pair.remote.draft_checks import Check
from omnidemo.serving.endpoint import model_ids
from omnidemo.serving.endpoint.answer_format import AnswerFormat
from omnidemo.serving.endpoint.answer_response import respond, unless_gone
from omnidemo.serving.endpoint.answer_slots import AnswerSlots
from omnidemo.serving.endpoint.api_errors import NO_RETRY, ApiError, as_api_error
from omnidemo.serving.endpoint.model_ids import ALIAS, ModelId
from omnidemo.serving.endpoint.request_body import (
    AnswerRequest,
    ChatRequest,
    CompletionRequest,
    checked,
    object_of,
    read,
)
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
HERE = "GET /v1/models, POST /v1/chat/completions and POST /v1/completions"
DRAFT = '{"ids": [1, 2, 3], "draft": [4, 5], "begin": 3}'
Handler = Callable[[PublicServices, Request], Awaitable[Response]]
Begin = Callable[[Event], Iterator[Part]]


def routes(endpoint: Endpoint) -> list[Route]:
    """`/v1/models`, `/v1/chat/completions`, `/v1/completions` and `/v1/drafts`; any other address below
    `/v1/` answers with an error in OpenAI's shape."""
    addresses: list[tuple[str, Handler, list[str]]] = [
        ("models", endpoint.models, ["GET"]),
        ("models/{name:path}", endpoint.model, ["GET"]),
        ("chat/completions", endpoint.chat, ["POST"]),
        ("completions", endpoint.complete, ["POST"]),
        ("drafts", endpoint.target, ["GET"]),
        ("drafts", endpoint.check_draft, ["POST"]),
        ("drafts/tokenizer", endpoint.tokenizer, ["GET"]),
        ("{rest:path}", endpoint.nothing, VERBS),
    ]
    return [
        Route(PREFIX + path, _answering(endpoint, handle), methods=verbs) for path, handle, verbs in addresses
    ]


def _answering(endpoint: Endpoint, handler: Handler) -> Any:
    """The handler with its caller identified, and with errors in OpenAI's shape."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(endpoint.calling(request.headers), request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return as_api_error(error).response()

    return handle


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
        keys = list(filter(None, map(str.strip, front.settings.api_keys.split(","))))
        if not keys:
            if front.public or front.settings.auth:
                raise ApiError(404, CLOSED)
            return front.calling_as(Caller())
        # a private Space's token comes as a bearer too, so both headers are read
        scheme, _, token = headers.get("authorization", "").partition(" ")
        sent = [headers.get("x-api-key", "").strip(), token.strip() if scheme.lower() == "bearer" else ""]
        given = [key.encode("utf-8", "replace") for key in sent if key]
        fitting = [key for key in keys for one in given if hmac.compare_digest(key.encode(), one)]
        if not fitting:
            raise ApiError(401, WRONG_KEY if given else NO_KEY, headers={"WWW-Authenticate": "Bearer"})
        return front.calling_as(Caller(front.visitors.name_of_key(fitting[0])))

    def counted_as(self, front: PublicServices) -> str:
        """The name under which a caller's answers are counted; "" in a private app."""
        return front.caller_name if front.public else ""

    # Models.

    async def models(self, front: PublicServices, request: Request) -> Response:
        ids = await anyio.to_thread.run_sync(model_ids.listed, front)
        return JSONResponse({"object": "list", "data": [self._card(front, name) for name in ids]})

    async def model(self, front: PublicServices, request: Request) -> Response:
        name = request.path_params["name"]
        model = await anyio.to_thread.run_sync(model_ids.find, front, name)
        if model.named_line and front.state(model.target, model.drafter).stage == "ready":
            await anyio.to_thread.run_sync(model_ids.check_line, front, model)
        return JSONResponse(self._card(front, name))

    def _card(self, front: PublicServices, name: str) -> dict[str, Any]:
        """`default`: whether it is the target that answers where a request names none."""
        default, began = name == front.settings.target, self._began
        return {
            "id": name, "object": "model", "created": began, "owned_by": "omnidemo", "default": default,
        }  # fmt: skip

    async def ready(self, front: PublicServices, name: str) -> ModelId:
        """The loaded model of a request. ApiError for an unknown one, and where loading fails, takes too
        long, or too many requests wait."""
        return await self._loaded(front, name, await self._found(front, name))

    async def _found(self, front: PublicServices, name: str) -> ModelId:
        if (model := model_ids.find_own(front.settings, name)) is not None:
            return model
        return await anyio.to_thread.run_sync(model_ids.find, front, name)

    async def _loaded(self, front: PublicServices, name: str, model: ModelId) -> ModelId:
        state = front.load(model.target, model.drafter)
        if state.stage != "ready":
            with self.slots.place(self.counted_as(front)):
                until = time.monotonic() + LOAD_SECONDS
                while state.stage not in ("ready", "failed") and time.monotonic() < until:
                    await anyio.sleep(LOOK_SECONDS)
                    state = front.state(model.target, model.drafter)
        if state.stage == "failed":
            why = without_folders(state.error or "")  # `front.state` strips folders for visitors only
            said = f"{name[:120]} could not be loaded: {why}"
            raise ApiError(503, said, code="model_not_loaded", headers=NO_RETRY)
        if state.stage != "ready":
            said = f"{name[:120]} is still being loaded ({state.stage}); ask again in a few seconds."
            raise ApiError(503, said, headers=LOADING)
        return (
            await anyio.to_thread.run_sync(model_ids.check_line, front, model) if model.named_line else model
        )

    # Answers.

    async def chat(self, front: PublicServices, request: Request) -> Response:
        asked = read(await request.body(), ChatRequest)
        return await self._answer(front, request, asked, [message.plain() for message in asked.messages])

    async def complete(self, front: PublicServices, request: Request) -> Response:
        asked = read(await request.body(), CompletionRequest)
        messages = [{"role": "user", "content": asked.prompt}]
        return await self._answer(front, request, asked, messages, raw=True)

    async def _answer(
        self, front: PublicServices, request: Request, asked: AnswerRequest, messages: list[dict[str, str]],
        raw: bool = False,
    ) -> Response:  # fmt: skip
        model = await self._found(front, asked.model)
        form = AnswerFormat(
            asked, model.written(front.settings), {"target": model.target, "drafter": model.drafter}
        )
        begin, wanted = self.plan(front, model, asked, messages, raw), None if asked.stream else Generation
        start = partial(self.slots.start, self.counted_as(front), begin, wanted)
        return await respond(request, asked, form, partial(self._loaded, front, asked.model, model), start)

    def plan(
        self, front: PublicServices, model: ModelId, asked: AnswerRequest, messages: list[dict[str, str]],
        raw: bool = False,
    ) -> Begin:  # fmt: skip
        """The function that begins the answer to a request."""
        settings = front.settings
        options: dict[str, Any] = {
            "target": model.target, "drafter": model.drafter, "domain": model.line,
            "messages": messages, "raw": raw, "control_tokens": asked.control_tokens,
            "method": settings.method, "max_new_tokens": asked.most_tokens or settings.max_new_tokens,
            **asked.options,
            "stop": tuple(asked.stop), "seed": asked.seed, "keep": asked.omnidemo.keep, "kind": "api",
        }  # fmt: skip
        return lambda cancel: front.chat(session="api", cancel=cancel, **options)

    # Drafts of other machines: the target's description, its tokenizer, and the check of one round.

    async def target(self, front: PublicServices, request: Request) -> Response:
        return JSONResponse(await self._described(front, request, False))

    async def tokenizer(self, front: PublicServices, request: Request) -> Response:
        found = json.dumps(await self._described(front, request, True)).encode()
        packed = await anyio.to_thread.run_sync(partial(gzip.compress, found, 4))
        return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})

    async def _described(self, front: PublicServices, request: Request, tokenizer: bool) -> dict[str, Any]:
        name = request.query_params.get("model", ALIAS)
        model = await unless_gone(request, self.ready(front, name))
        describe = partial(front.describe_target, model.target, model.drafter, tokenizer)
        return await anyio.to_thread.run_sync(describe)

    async def check_draft(self, front: PublicServices, request: Request) -> Response:
        """It counts among the answers that run or wait."""
        asked = checked(Check, object_of(await request.body(), DRAFT), f"send an object such as {DRAFT}")
        model = await unless_gone(request, self.ready(front, asked.model))
        with self.slots.place(self.counted_as(front)):
            run = partial(front.check_draft, model.target, model.drafter, asked)
            return JSONResponse(asdict(await anyio.to_thread.run_sync(run)))

    async def nothing(self, front: PublicServices, request: Request) -> Response:
        said = f"There is no {request.method} {request.url.path[:80]}; this endpoint has {HERE}."
        raise ApiError(404, said, code="unknown_url")
