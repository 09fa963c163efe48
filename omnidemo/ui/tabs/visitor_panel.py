"""The visitor of the page: who calls, the sentence on what is kept, one button that deletes all of it, and the operator's key."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import gradio as gr
from gradio.context import LocalContext
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import NO_ID, Refused
from omnidemo.store.visitors import Caller
from omnidemo.ui import text
from omnidemo.ui.guard import OPERATOR, VISITOR
from omnidemo.ui.shell import QUIET, Shell, pair_choices, widget

WRONG_KEY = "That is not the operator's key; check it and enter it again."
NO_KEY = "This app has no operator's key; whoever runs it sets OMNIDEMO_OPERATOR_KEY."


def hosted(services: Any) -> PublicServices:
    """The services as the page offers them; the same for the same services."""
    if isinstance(services, PublicServices):
        return services
    front: PublicServices | None = getattr(services, "front", None)
    if front is not None:
        return front

    def who() -> Caller | None:
        request = LocalContext.request.get(None)
        return None if request is None else caller(made, request.headers)

    made = services.front = PublicServices(services, who)
    return made


def caller(front: PublicServices, headers: Any) -> Caller:
    """Whose call has these headers."""
    return Caller(front.visitors.name(headers.get(VISITOR)), front.fits(unquote(headers.get(OPERATOR) or "")))


def build_visitor(services: Any, shell: Shell) -> None:
    """The line above the tabs of a public app. Whoever unlocks it with the operator's key may choose from all models."""
    strip = widget("visitor", events=("unlock",))

    def unlock(target: str, drafter: str) -> tuple[gr.Dropdown, gr.Dropdown]:
        return gr.Dropdown(pair_choices(services, "target", target)), gr.Dropdown(pair_choices(services, "drafter", drafter))

    pair = [shell.target, shell.drafter]
    strip.unlock(unlock, pair, pair, api_name="unlock", **QUIET)


def routes(front: PublicServices) -> list[Route]:
    """Where a browser gets its id, and gives up what is kept about it."""

    def arrive(request: Request) -> JSONResponse:
        given, key = request.headers.get(VISITOR), request.headers.get(OPERATOR)
        who = caller(front, request.headers)
        number = given if who.name else front.visitors.issue()
        name = who.name or front.visitors.name(number)
        said = "" if who.operator or key is None else WRONG_KEY if front.settings.operator_key else NO_KEY
        public = front.public
        session = Caller(name).own if public else name
        facts = {"id": number, "name": session, "public": public, "operator": who.operator, "said": said}
        return JSONResponse(facts | {"notice": text.kept(front.settings, public)}, headers={"Cache-Control": "no-store"})

    def forget(request: Request) -> JSONResponse:
        who = caller(front, request.headers)
        if not who.name:
            return JSONResponse({"detail": NO_ID}, 401)
        try:
            return JSONResponse({"said": front.forget(who.name)})
        except Refused as refused:
            return JSONResponse({"said": str(refused)}, 409)

    return [Route("/visitor", arrive, methods=["POST"]), Route("/visitor/forget", forget, methods=["POST"])]
