"""The two tools over the Model Context Protocol at `/mcp` (streamable HTTP). Without the optional package
`mcp` the address answers with an error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from omnidemo.serving.endpoint import mcp_tools
from omnidemo.serving.endpoint.api_errors import ApiError, as_api_error
from omnidemo.serving.endpoint.api_routes import Endpoint

try:  # the second major version, which brings mcp_types along
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.shared.exceptions import MCPError

    INSTALLED = True
except ImportError:
    INSTALLED = False

PATH = "/mcp"
MISSING = (
    'MCP needs the package mcp, which is not installed here; run `pip install "mcp>=2.3,<3"` and start the'
    " app again."
)
ENDING = "The app is ending; ask again when it has been started."
REFUSED = -32600  # JSON-RPC's "invalid request"
SESSIONS, SESSION_SECONDS = 256, 600.0  # most sessions, and how long one may be silent
TELL_SECONDS = 0.1  # between two notices of progress
NAME = "omnidemo"
INSTRUCTIONS = (
    "A big language model that a small one helps by guessing ahead (speculative decoding). generate answers;"
    " compare shows what the guessing gains."
)
# name → function, arguments, result, description
TOOLS: dict[str, tuple[Any, type[BaseModel], type[BaseModel], str]] = {
    "generate": (
        mcp_tools.generate, mcp_tools.GenerateArguments, mcp_tools.GenerateResult,
        "Answer a prompt or a conversation by speculative decoding. Gives the text, its speed, how many"
        " tokens each pass of the big model wrote, how many guesses of the small one were accepted, and where"
        " the tokens came from.",
    ),
    "compare": (
        mcp_tools.compare, mcp_tools.CompareArguments, mcp_tools.CompareResult,
        "Answer one prompt by several decoding methods in turn and compare speed, tokens per pass,"
        " acceptance and text, against the big model alone. The small one is not trained on it.",
    ),
}  # fmt: skip


class ToolServer:
    """An ASGI app that answers within `life`. Calls obey the endpoint's keys, quotas and limits."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._manager: Any = None
        self.routes = [Route(PATH, self)]

    @asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        if not INSTALLED:
            yield
            return
        server = Server(
            NAME, title="OmniDemo", instructions=INSTRUCTIONS, on_list_tools=self._list,
            on_call_tool=self._call,
        )  # fmt: skip
        # `ui/guard.py` has checked host, origin and size of every request.
        manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=SESSION_SECONDS,
            max_request_body_size=sys.maxsize,
            max_sessions=SESSIONS,
        )
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            front = self._endpoint.calling(Headers(scope=scope))
            if not INSTALLED:
                raise ApiError(501, MISSING)
            if self._manager is None:
                raise ApiError(503, ENDING)
        except ApiError as error:
            await JSONResponse(tool_error(str(error)), error.status, headers=error.headers)(
                scope, receive, send
            )
            return
        name = front.caller_name
        # The user ties a session to the key that began it. Work ends with its request, because no answer can
        # be fetched later.
        user = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        running: list[Any] = []
        try:
            await self._manager.handle_request(
                {**scope, "user": user, "omnidemo": (front, running)}, receive, send
            )
        finally:
            for one in running:
                one.cancel()

    async def _list(self, context: Any, asked: Any) -> Any:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=description,
                    input_schema=takes.model_json_schema(),
                    output_schema=gives.model_json_schema(),
                    annotations=types.ToolAnnotations(destructive_hint=False, open_world_hint=False),
                )
                for name, (_, takes, gives, description) in TOOLS.items()
            ]
        )

    async def _call(self, context: Any, asked: Any) -> Any:
        if asked.name not in TOOLS:
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {asked.name[:40]}; choose from {', '.join(TOOLS)}."
            )
        front, running = context.request.scope["omnidemo"]
        told = 0.0

        async def tell(done: int, of: int) -> None:
            nonlocal told
            if time.monotonic() - told >= TELL_SECONDS or done == of:
                told = time.monotonic()
                await context.session.report_progress(done, of)

        wants = bool(context.meta) and context.meta.get("progress_token") is not None
        with anyio.CancelScope() as scope:
            running.append(scope)
            try:
                made = await TOOLS[asked.name][0](
                    self._endpoint, front, asked.arguments or {}, tell if wants else None
                )
            except Exception as error:
                return types.CallToolResult(
                    content=[types.TextContent(text=str(as_api_error(error)))], is_error=True
                )
            given = made.model_dump(mode="json", exclude_none=False)
            # Clients without structured content read the text.
            return types.CallToolResult(
                content=[types.TextContent(text=json.dumps(given, ensure_ascii=False))],
                structured_content=given,
            )
        raise MCPError(types.CONNECTION_CLOSED, "The client has closed the connection.")


def tool_error(sentence: str) -> dict[str, Any]:
    """The JSON of a refused request."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": REFUSED, "message": sentence}}
