"""Who may use the endpoint, and who they are."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers

from omnidemo.endpoint.api_errors import ApiError
from omnidemo.serving.public_services import PublicServices
from omnidemo.store.visitors import Caller

CLOSED = "This app offers its endpoint to this machine only; whoever runs it opens it by setting OMNIDEMO_API_KEYS."
NO_KEY = "This endpoint needs a key; send one as `Authorization: Bearer KEY` or as `X-API-Key: KEY`."
WRONG_KEY = "That key is none of this endpoint's; check it against OMNIDEMO_API_KEYS and send it again."


def calling(front: PublicServices, headers: Headers) -> PublicServices:
    """The services as whoever sends these headers sees them. ApiError 404 where nobody may use the endpoint, 401 without a right key.

    Each key is a visitor. Without keys in the settings whoever reaches a private app is answered, unless its page asks for a password.
    """
    keys = [key for key in (part.strip() for part in front.settings.api_keys.split(",")) if key]
    if not keys:
        if front.public or front.settings.auth:
            raise ApiError(404, CLOSED)
        return front.calling_as(Caller())
    given = _given(headers)
    if not given:
        raise ApiError(401, NO_KEY, headers={"WWW-Authenticate": "Bearer"})
    fitting = [key for key in keys for one in given if hmac.compare_digest(key.encode(), one.encode("utf-8", "replace"))]
    if not fitting:
        raise ApiError(401, WRONG_KEY, headers={"WWW-Authenticate": "Bearer"})
    return front.calling_as(Caller(front.visitors.name_of_key(fitting[0])))


def _given(headers: Headers) -> list[str]:
    """A private Space's own token comes as a bearer, too, so both places are looked at."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [key for key in (headers.get("x-api-key", "").strip(), token.strip() if scheme.lower() == "bearer" else "") if key]
