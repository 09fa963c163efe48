"""Errors in OpenAI's shape: one sentence with status, type and code."""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import JSONResponse

from omnidemo.core.private_folders import without_folders
from omnidemo.models.answer_forms import FormError
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.pair.remote.draft_checks import SessionGone
from omnidemo.serving.pair_pool import Ending
from omnidemo.serving.quotas import QuotaUsed, Refused

log = logging.getLogger(__name__)
SERVER, WRONG = "server_error", "invalid_request_error"
KINDS: dict[int, tuple[str, str | None]] = {  # (type, code) by status; all others are wrong requests
    401: (WRONG, "invalid_api_key"),
    403: (WRONG, "not_allowed"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: (SERVER, None),
    503: (SERVER, "busy"),
}
NO_RETRY = {"x-should-retry": "false"}  # keeps OpenAI's own client from asking again at once
# errors with a sentence of ours → status, code, headers; the first that fits
KNOWN: tuple[tuple[type[Exception], int, str | None, dict[str, str]], ...] = (
    (QuotaUsed, 429, None, NO_RETRY),
    (Refused, 403, None, {}),
    (Ending, 503, None, NO_RETRY),
    (TooLong, 400, "context_length_exceeded", {}),  # agents shorten what they send when they see this code
    (SessionGone, 409, "session_gone", {}),
)


class ApiError(Exception):
    """`message` is one sentence: cause and next step."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
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
    kind, known = KINDS.get(status, (WRONG, None))
    # the request may have held half a character
    written = message.encode("utf-8", "replace").decode()
    return {"error": {"message": written, "type": kind, "param": param, "code": code or known}}


def as_api_error(error: BaseException) -> ApiError:
    """Any error as one for the client. Errors of this project have a sentence. Of any other the client gets
    the name, and the log the traceback."""
    if isinstance(error, ApiError):
        return error
    said = " ".join(str(error).split())
    said = said if " = " in said else said[:1].upper() + said[1:]  # an option's name keeps its case
    said += "" if said.endswith((".", "!", "?")) else "."
    for kind, status, code, headers in KNOWN:
        if isinstance(error, kind):
            return ApiError(status, said, code=code, headers=headers)
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return ApiError(400, said, param="response_format" if isinstance(error, FormError) else None)
    if isinstance(error, (RuntimeError, OSError)) and not isinstance(
        error, (RecursionError, NotImplementedError)
    ):
        log.warning("the endpoint: %s", said[:300])
        return ApiError(500, without_folders(said))
    log.error("the endpoint failed", exc_info=error)
    return ApiError(500, f"Something went wrong inside ({type(error).__name__}). Try again, or report it.")
