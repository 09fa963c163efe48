"""`/v1/drafts`, by which other machines have drafts checked: the target's description, its tokenizer, and the
check of one round."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from omnidemo.pair.remote.draft_checks import Check, SessionGone
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.endpoint.model_ids import ALIAS
from omnidemo.serving.endpoint.request_body import checked
from omnidemo.serving.public_services import PublicServices

if TYPE_CHECKING:
    from omnidemo.serving.endpoint.api_routes import Endpoint

INSTEAD = 'send an object such as {"ids": [1, 2, 3], "draft": [4, 5], "begin": 3}'


class DraftRoutes:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def about(self, front: PublicServices, request: Request) -> ASGIApp:
        return JSONResponse(await self._described(front, request, False))

    async def tokenizer(self, front: PublicServices, request: Request) -> ASGIApp:
        found = json.dumps(await self._described(front, request, True)).encode()
        packed = await anyio.to_thread.run_sync(partial(gzip.compress, found, 4))
        return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})

    async def check(self, front: PublicServices, request: Request) -> ASGIApp:
        """Check the draft of one round; it counts among the answers that run or wait."""
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise ApiError(400, f"The body is no JSON object; {INSTEAD}.")
        asked = checked(Check, given, INSTEAD)
        model = await self._endpoint.ready(front, asked.model, request.is_disconnected)
        with self._endpoint.slots.place(self._endpoint.counted_as(front)):
            run = partial(front.check_draft, model.target, model.drafter, asked)
            try:
                return JSONResponse(asdict(await anyio.to_thread.run_sync(run)))
            except SessionGone as error:
                raise ApiError(409, f"{str(error).capitalize()}.", code="session_gone") from None

    async def _described(self, front: PublicServices, request: Request, tokenizer: bool) -> dict[str, object]:
        name = request.query_params.get("model", ALIAS)
        model = await self._endpoint.ready(front, name, request.is_disconnected)
        describe = partial(front.describe_target, model.target, model.drafter, tokenizer)
        return await anyio.to_thread.run_sync(describe)
