"""Checks of every request before the app gets it: host, origin, size, type, and in a public app the visitor's
id."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnidemo.core.config import Settings
from omnidemo.serving import endpoint, gc_pauses
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import NO_ID, Refused
from omnidemo.storage.visitors import LOOPBACK, is_loopback
from omnidemo.ui.errors import report
from omnidemo.ui.job import LISTENING

# headers, so that neither is in an address or a log
VISITOR, OPERATOR = "x-omnidemo-visitor", "x-omnidemo-operator"
Life = Callable[[], AbstractAsyncContextManager[None]]
SAFE = ("GET", "HEAD", "OPTIONS")
PORTS = {"http": 80, "https": 443}  # of addresses that name none
JSON_BYTES = 8_000_000
UPLOAD_EXTRA = 1_000_000  # of a form beside the file in it
UNREADABLE = "This request cannot be read; the interface is described at the foot of the page."
SWEEP_SECONDS = 300.0
GIVE_BACK_SECONDS = 30.0  # between two times that memory is given back
# What Gradio offers and this page does not use: it writes files, fetches addresses, or runs programs.
CLOSED = (
    "deep_link", "proxy=", "process_recording", "run-history", "vibe-", "undo-vibe-", "stream/", "profiling",
)  # fmt: skip
PAGES = "https://huggingface.co https://*.hf.space"  # that show a Space in a frame
# Gradio starts itself with inline scripts, and makes the widgets' own ones with `new Function`.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:;"
    " worker-src 'self' blob:; connect-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self';"
    " frame-ancestors 'self'"
)


# for the programs of OMNIDEMO_API_ORIGINS, on the endpoint's addresses
SHARED = {"Vary": "Origin", "Access-Control-Expose-Headers": "*"}
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "600",
}


def is_space() -> bool:
    return bool(os.environ.get("SPACE_ID"))


def headers_of_answers() -> dict[str, str]:
    """The headers that every answer carries."""
    policy = f"{POLICY} {PAGES}" if is_space() else POLICY
    return {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Content-Security-Policy": policy,
    }


class Hosts:
    """The host names by which the app may be reached. Without this check a foreign page could point its own
    name at our address (DNS rebinding) and read everything."""

    def __init__(self, settings: Settings) -> None:
        listed = {_listed(name.strip()) for name in settings.allowed_hosts.split(",")}
        self._allowed = {name for name in listed if name and not is_loopback(name)}
        self._names = {*LOOPBACK, settings.host.lower()}
        self._everywhere, self._share, self._any = not is_loopback(settings.host), settings.share, is_space()

    def __contains__(self, name: str) -> bool:
        if self._any or name in self._names or (self._share and name.endswith(".gradio.live")):
            return True
        # an address cannot be rebound to another machine, as a name can
        return self._allows(name) or (self._everywhere and _is_address(name))

    def own(self, origin: str, *hosts: str) -> bool:
        """Whether an origin is this app's page. The name alone decides for allowed hosts, because a proxy may
        pass on another host or port. Elsewhere name and port are those of one of the `Host` headers: another
        program of this machine has the same name."""
        scheme = origin.partition("://")[0]
        name, port = _place(origin, scheme)
        if not name or scheme not in PORTS:  # such as file://, about:blank and null
            return False
        return self._allows(name) or (name, port) in [_place(f"//{host}", scheme) for host in hosts]

    def _allows(self, name: str) -> bool:
        patterns = [known[1:] for known in self._allowed if known.startswith("*.")]
        return name in self._allowed or name.endswith(tuple(patterns))


def _listed(name: str) -> str:
    """The host in an entry of the setting, which may have scheme and port."""
    return name.lower() if _is_address(name) else _place(f"//{name.rpartition('://')[2]}")[0]


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class Guard:
    """ASGI middleware around the whole app. A refused request gets one sentence as JSON and reaches nothing
    else."""

    def __init__(self, app: ASGIApp, services: PublicServices) -> None:
        self.app, self.services, self.hosts = app, services, Hosts(services.settings)
        self.extra = headers_of_answers()
        self.programs = set(filter(None, services.settings.api_origins.split(",")))
        self.upload_bytes = services.settings.upload_mb * 2**20

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._foreign(scope, headers)
        if refused is None:
            # A page of another site may send these headers too, but it is refused.
            if any(name == "forwarded" or name.startswith("x-forwarded-") for name in headers):
                self.services.seen_through_proxy()
            if "transfer-encoding" in headers and scope.get("method") not in SAFE:
                scope, receive = await _whole(scope, receive, self._body_of(scope.get("path", ""))[0])
                headers = Headers(scope=scope)
            refused = self._refusal(scope, headers)
        extra = self.extra | self._shared(scope, headers)
        if scope["type"] == "websocket":  # the page opens none
            await send({"type": "websocket.close", "code": 1008})
        elif refused is not None:
            status, sentence = refused
            body = endpoint.refusal_body(scope.get("path", ""), status, sentence)
            body = body or {"detail": sentence, "error": sentence}
            await JSONResponse(body, status, headers=extra)(scope, receive, send)
        elif "Access-Control-Allow-Origin" in extra and scope["method"] == "OPTIONS":
            asked = {"Access-Control-Allow-Headers": headers.get("access-control-request-headers", "")}
            await Response(status_code=204, headers=extra | PREFLIGHT | asked)(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send, extra)

    def _shared(self, scope: Scope, headers: Headers) -> dict[str, str]:
        """The CORS headers by which a program of the settings may read the endpoint's answers."""
        origin = headers.get("origin", "")
        return {"Access-Control-Allow-Origin": origin} | SHARED if self._is_program(scope, origin) else {}

    def _is_program(self, scope: Scope, origin: str) -> bool:
        return endpoint.is_api(scope.get("path", "")) and origin.lower() in self.programs

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, extra: dict[str, str]) -> None:
        """Pass a request on, and headers back; an error of the framework becomes one sentence and one row of
        the log."""
        started = False

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(extra)
            await send(message)

        try:
            with listening(scope):
                await self.app(scope, receive, sent)
        except Exception as error:
            report(error, f"{scope.get('method', '')} {scope.get('path', '')[:80]}")
            if not started:
                await JSONResponse({"detail": UNREADABLE, "error": UNREADABLE}, 400)(scope, receive, sent)

    def _foreign(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """(status, sentence) for a request to another host or from a foreign page."""
        host, _ = _place(f"//{headers.get('host', '')}")
        if host not in self.hosts:
            known = f"This app is not known as {host[:80] or 'nothing'}"
            return 403, f"{known}; name it in OMNIDEMO_ALLOWED_HOSTS if that is right."
        origin = headers.get("origin", "")
        if self._is_program(scope, origin):
            return None
        if not self._from_here(scope, headers):
            if endpoint.is_api(scope.get("path", "")) and origin:
                said = f"A page or program of {origin[:80]} may not call this"
                return 403, f"{said}; name its origin in OMNIDEMO_API_ORIGINS if it may."
            return 403, "Requests from other pages are not answered; open the app by its own address."
        return None

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """(status, sentence) for a request that goes no further though it comes from here. It counts files:
        once for each request."""
        path = scope.get("path", "")
        _, found, call = path.partition("/gradio_api/")
        if (found and call.startswith(CLOSED)) or path.startswith("/monitoring"):
            return 404, "This app does not offer that."
        if scope.get("method", "GET") in SAFE:
            return None
        return self._body(path, headers) or self._identified(path, headers)

    def _from_here(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request comes from this app's own page, or from no page at all. Pages may lead here by a
        link."""
        origin = headers.get("origin")
        if origin is not None:
            forwarded = headers.get("x-forwarded-host", "").split(",")
            return self.hosts.own(origin, headers.get("host", ""), *forwarded)
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
        return site in ("none", "same-origin") or (mode == "navigate" and scope.get("method") in SAFE)

    def _body(self, path: str, headers: Headers) -> tuple[int, str] | None:
        length = headers.get("content-length", "0")
        size = int(length) if length.isascii() and length.isdigit() else 0
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        most, wanted = self._body_of(path)
        if (coded := headers.get("content-encoding", "identity").lower()) not in ("", "identity"):
            return 415, f"This takes no body that is compressed ({coded[:20]}); send it as it is."
        if size > most:
            said = f"That is {size / 1e6:,.0f} MB, and this takes at most {most / 1e6:,.0f} MB; send less."
            return 413, said
        if size and kind != (wanted or kind):
            return 415, f"This takes {wanted} and not {kind[:60] or 'what names no type'}."
        return None

    def _body_of(self, path: str) -> tuple[int, str]:
        """Most bytes of a request to an address, and its type; empty for any."""
        if path.endswith("/upload"):
            return self.upload_bytes + UPLOAD_EXTRA, "multipart/form-data"
        return (UPLOAD_EXTRA, "") if path.rstrip("/") == "/login" else (JSON_BYTES, "application/json")

    def _identified(self, path: str, headers: Headers) -> tuple[int, str] | None:
        """In a public app every changing request needs a visitor's id, which anybody can get."""
        if (
            not self.services.public
            or path.startswith("/visitor")
            or path.rstrip("/") == "/login"
            or endpoint.asks_for_keys(path)
        ):
            return None
        name = self.services.visitors.name(headers.get(VISITOR))
        if not name:
            return 401, NO_ID
        if path.endswith("/upload"):
            try:
                self.services.uploads.ask(name)
            except Refused as refused:
                return 429, str(refused)
            self.services.uploads.spend(name, int(headers.get("content-length", "0")) // 1000 + 1)
        return None


@contextmanager
def listening(scope: Scope) -> Iterator[None]:
    """Count the session of Gradio whose messages a request reads, which is of the event itself where a
    program asked."""
    path, session = scope.get("path", ""), ""
    if path.endswith("/queue/data"):
        session = QueryParams(scope.get("query_string", b"")).get("session_hash", "")
    elif "/call/" in path and scope.get("method") == "GET":
        session = path.rpartition("/")[2]
    if not session:
        yield
        return
    LISTENING[session] += 1
    try:
        yield
    finally:
        LISTENING[session] -= 1
        if not LISTENING[session]:
            del LISTENING[session]


async def _whole(scope: Scope, receive: Receive, most: int) -> tuple[Scope, Receive]:
    """A request in chunks as one that says its length. It is read as far as it may be, and a chunk more."""
    body, more = bytearray(), True
    while more and len(body) <= most:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    kept = [pair for pair in scope["headers"] if pair[0] not in (b"transfer-encoding", b"content-length")]
    read = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

    async def again() -> Message:
        return next(read, None) or await receive()

    return {**scope, "headers": [*kept, (b"content-length", b"%d" % len(body))]}, again


def _place(address: str, scheme: str = "") -> tuple[str, int | None]:
    """Name and port of an address: the name in lower case and without a dot at its end, empty where there is
    none; for no port the default one of the scheme."""
    try:
        parts = urlsplit(address.strip())
        return (parts.hostname or "").removesuffix("."), parts.port or PORTS.get(scheme)
    except ValueError:
        return "", None


def around(services: PublicServices, within: Life) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """The app's lifespan, with another within it: puts the guard around the app, and from time to time
    deletes expired visitors' data and frees memory.

    Gradio puts its own CORS in front of the middleware that it is given, and that answers every page on this
    machine. So the guard is put around it when the app starts, before the first request.
    """

    @asynccontextmanager
    async def life(app: Any) -> AsyncIterator[None]:
        app.user_middleware.insert(0, Middleware(Guard, services=services))
        app.middleware_stack = app.build_middleware_stack()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_repeat, services.sweep, SWEEP_SECONDS)
            tasks.start_soon(_repeat, gc_pauses.give_back, GIVE_BACK_SECONDS)
            async with within():
                yield
            tasks.cancel_scope.cancel()

    return life


async def _repeat(act: Callable[[], Any], seconds: float) -> None:
    while True:
        try:
            await anyio.to_thread.run_sync(act, abandon_on_cancel=True)
        except Exception as error:  # the next time it may succeed, and the app goes on
            report(error, "what is done from time to time")
        await anyio.sleep(seconds)
