"""The visitor of the page: who calls, the sentence on what is kept, one button that deletes all of it, and
the operator's key."""

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
from omnidemo.serving.services import Services
from omnidemo.storage.visitors import Caller
from omnidemo.ui import downloads, text
from omnidemo.ui.guard import OPERATOR, VISITOR
from omnidemo.ui.shell import QUIET, Shell, pair_choices, widget

WRONG_KEY = "That is not the operator's key; check it and enter it again."
NO_KEY = "This app has no operator's key; whoever runs it sets OMNIDEMO_OPERATOR_KEY."


def public_services(services: Services | PublicServices) -> PublicServices:
    """The services with the rules of a public app around them; the same object for the same services."""
    if isinstance(services, PublicServices):
        return services
    if services.public_services is not None:
        return services.public_services

    def who() -> Caller | None:
        request = LocalContext.request.get(None)
        return None if request is None else caller(made, request.headers)

    made = services.public_services = PublicServices(services, who)
    return made


def caller(services: PublicServices, headers: Any) -> Caller:
    """The caller who sent these headers."""
    return Caller(
        services.visitors.name(headers.get(VISITOR)), services.fits(unquote(headers.get(OPERATOR) or ""))
    )


def build_visitor(services: PublicServices, shell: Shell) -> None:
    """The strip above the tabs of a public app. With the operator's key it offers all models."""
    strip = widget("visitor", events=("unlock",))

    def unlock(target: str, drafter: str) -> tuple[gr.Dropdown, gr.Dropdown]:
        return gr.Dropdown(pair_choices(services, "target", target)), gr.Dropdown(
            pair_choices(services, "drafter", drafter)
        )

    pair = [shell.target, shell.drafter]
    strip.unlock(unlock, pair, pair, api_name="unlock", **QUIET)


def routes(services: PublicServices) -> list[Route]:
    """The routes by which a browser gets its id and deletes its data."""

    def arrive(request: Request) -> JSONResponse:
        given, key = request.headers.get(VISITOR), request.headers.get(OPERATOR)
        who = caller(services, request.headers)
        number = given if who.name else services.visitors.issue()
        name = who.name or services.visitors.name(number)
        said = "" if who.operator or key is None else WRONG_KEY if services.settings.operator_key else NO_KEY
        public = services.public
        # as `PublicServices.chat` names it
        session = Caller(name).own if public and not who.operator else name
        facts = {"id": number, "name": session, "public": public, "operator": who.operator, "said": said}
        return JSONResponse(
            facts | {"notice": text.kept(services.settings, public)}, headers={"Cache-Control": "no-store"}
        )

    def forget(request: Request) -> JSONResponse:
        who = caller(services, request.headers)
        if not who.name:
            return JSONResponse({"detail": NO_ID}, 401)
        try:
            said = services.forget(who.name)
            downloads.forget_files(Caller(who.name).own)
            return JSONResponse({"said": said})
        except Refused as refused:
            return JSONResponse({"said": str(refused)}, 409)

    return [
        Route(f"/visitor{path}", act, methods=["POST"]) for path, act in (("", arrive), ("/forget", forget))
    ]
