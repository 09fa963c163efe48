"""The connection to a target that `omnidemo serve` serves at an address."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from omnidemo.core.config.refusals import ModelError

ANSWER_SECONDS = 120.0  # timeout of a request
PATIENCE = 20.0  # seconds for which a check is sent again after its connection broke, or the server is full
AGAIN_SECONDS = 0.3  # between two tries
PATH = "/v1/drafts"


class LinkError(RuntimeError):
    """The target at an address gives no usable answer; one sentence."""


def is_address(name: str) -> bool:
    """Whether a target's name is an address."""
    return name.startswith(("http://", "https://"))


class Link:
    """An open connection to a served target, for one request at a time."""

    def __init__(self, address: str, key: str = "") -> None:
        """ModelError, one sentence, for what is no address."""
        try:
            parts = urlsplit(address)
            made = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            if not parts.hostname or parts.username or parts.query or parts.fragment:
                raise ValueError
            self._connection = made(parts.hostname, parts.port, timeout=ANSWER_SECONDS)
        except (ValueError, HTTPException):
            raise ModelError(
                f"{address[:120]} is no address; write one such as http://127.0.0.1:7860"
            ) from None
        self.address = address
        self._before = parts.path.rstrip("/").removesuffix("/v1")
        self._headers = {"Content-Type": "application/json"} | ({"X-API-Key": key} if key else {})
        self._key = key

    def close(self) -> None:
        """Close the connection; the next request opens one."""
        self._connection.close()

    def get(self, more: str = "") -> dict[str, Any]:
        return self._asked("GET", PATH + more, None, 0.0)

    def check(self, order: Mapping[str, Any]) -> dict[str, Any] | None:
        """The check of a draft as `Checked`; None where the target has dropped the session."""
        body = json.dumps(order, separators=(",", ":")).encode()
        made = self._asked("POST", PATH, body, PATIENCE)
        return None if made.get("gone") else made

    def _asked(self, verb: str, path: str, body: bytes | None, patience: float) -> dict[str, Any]:
        """The JSON of a response. A request may be sent twice, because equal drafts are judged alike.
        LinkError, one sentence."""
        until = monotonic() + patience
        while True:
            try:
                self._connection.request(verb, self._before + path, body, self._headers)
                with self._connection.getresponse() as got:
                    status, kind, data = got.status, got.headers.get("Content-Encoding"), got.read()
            except TimeoutError as error:
                self._connection.close()
                raise self._error(f"did not answer within {ANSWER_SECONDS:.0f} s; try again later") from error
            except (OSError, HTTPException) as error:
                self._connection.close()
                if monotonic() < until:
                    sleep(AGAIN_SECONDS)
                    continue
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                raise self._error(
                    f"cannot be reached ({why}); check the address, and that `omnidemo serve` runs there"
                ) from error
            if status == 503 and monotonic() < until:  # the server is full
                sleep(AGAIN_SECONDS)
                continue
            return self._read(status, gzip.decompress(data) if kind == "gzip" else data)

    def _read(self, status: int, data: bytes) -> dict[str, Any]:
        found: Any = None
        with suppress(ValueError):
            found = json.loads(data)
        if status == 200 and isinstance(found, dict):
            return found
        if status == 409:
            return {"gone": True}
        if status == 401:
            word = "refuses this key" if self._key else "asks for a key"
            raise self._error(f"{word}; give one of its OMNIDEMO_API_KEYS with --api-key")
        said = found.get("error") if isinstance(found, dict) else None
        if isinstance(said, dict) and said.get("message") and said.get("code") != "unknown_url":
            raise self._error(f"says: {str(said['message'])[:300]}")
        raise self._error(
            f"has no target that checks drafts (status {status}); name one that `omnidemo serve` serves"
        )

    def _error(self, said: str) -> LinkError:
        return LinkError(f"{self.address} {said}")
