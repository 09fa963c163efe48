"""Errors in OpenAI's shape: one sentence with status, type and code."""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import JSONResponse

from omnidemo.core.private_folders import without_folders
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.serving.pair_pool import Ending
from omnidemo.serving.quotas import QuotaUsed, Refused

log = logging.getLogger(__name__)
KINDS: dict[int, tuple[str, str | None]] = {  # (type, code) by status; all others are wrong requests
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "not_allowed"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "busy"),
}
NO_RETRY = {"x-should-retry": "false"}  # keeps OpenAI's own client from asking again at once


class ApiError(Exception):
    """`message` is one sentence: cause and next step."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code, self.headers = status, param, code, headers or {}

    @property
    def body(self) -> dict[str, Any]:
        return error_body(self.status, str(self), self.param, self.code)

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, headers=self.headers)


def error_body(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """The JSON of an error."""
    kind, known = KINDS.get(status, ("invalid_request_error", None))
    # the request may have held half a character
    written = message.encode("utf-8", "replace").decode()
    return {"error": {"message": written, "type": kind, "param": param, "code": code or known}}


def as_api_error(error: BaseException) -> ApiError:
    """Any error as one for the client. Errors of this project have a sentence. Of any other the client gets
    the name, and the log the traceback."""
    said = " ".join(str(error).split())
    said = said if " = " in said else said[:1].upper() + said[1:]  # an option's name keeps its case
    said += "" if said.endswith((".", "!", "?")) else "."
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QuotaUsed):
        return ApiError(429, said, headers=NO_RETRY)
    if isinstance(error, Refused):
        return ApiError(403, said)
    if isinstance(error, Ending):
        return ApiError(503, said, headers=NO_RETRY)
    if isinstance(error, TooLong):  # agents shorten what they send when they see this code
        return ApiError(400, said, code="context_length_exceeded")
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return ApiError(400, said)
    if isinstance(error, (RuntimeError, OSError)) and not isinstance(
        error, (RecursionError, NotImplementedError)
    ):
        log.warning("the endpoint: %s", said[:300])
        return ApiError(500, without_folders(said))
    log.error("the endpoint failed", exc_info=error)
    return ApiError(500, f"Something went wrong inside ({type(error).__name__}). Try again, or report it.")
