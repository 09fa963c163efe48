"""The identity of visitors: signed ids, the names of their rows, and whether the app is public."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from omnidemo.core.config import Settings

log = logging.getLogger(__name__)
OWN = "~visitor-"  # prefix of visitors' sessions and adapter lines in a public app
KEY = "visitors.key"  # in the storage folder
KEY_BYTES, ID_BYTES, SIGN_BYTES, NAME_BYTES = 32, 16, 16, 12
FORM = re.compile(rf"([0-9a-f]{{{2 * ID_BYTES}}})\.([0-9a-f]{{{2 * SIGN_BYTES}}})")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of a call. `name`: the keyed hash of a visitor's id; "" without an id. `operator`: whether
    it had the operator's key."""

    name: str = ""
    operator: bool = False

    @property
    def own(self) -> str:
        """The session and the adapter line of this visitor in a public app."""
        return OWN + self.name


class Visitors:
    """Makes and checks visitors' ids. An id is a secret of its browser; the server stores its `name`. The key
    is a file in the storage folder that only its owner can read. Where the folder cannot be written, ids are
    valid until the app ends."""

    def __init__(self, storage: Path, agree: Callable[[bytes], bytes | None] = lambda own: own) -> None:
        """agree: returns the key of all machines for this machine's own key; None where it is unknown now."""
        self._file, self._agree = Path(storage) / KEY, agree
        self._key: bytes | None = None
        self._machine: bytes | None = None  # this machine's own key, until all agree on one
        self._lock = threading.Lock()

    def issue(self) -> str:
        """A new id: 128 random bits and their signature."""
        number = secrets.token_hex(ID_BYTES)
        return f"{number}.{self._sign('id', number, SIGN_BYTES)}"

    def name(self, given: str | None) -> str:
        """The name of an id; "" for a missing or forged one."""
        form = FORM.fullmatch(given or "")
        if form is None or not hmac.compare_digest(form[2], self._sign("id", form[1], SIGN_BYTES)):
            return ""
        return self._sign("name", form[1], NAME_BYTES)

    def name_of_key(self, key: str) -> str:
        """The name of a key of the endpoint, which the caller has checked."""
        return self._sign("key", key, NAME_BYTES)

    def _sign(self, purpose: str, number: str, size: int) -> str:
        return hmac.new(self._secret(), f"{purpose}:{number}".encode(), hashlib.sha256).digest()[:size].hex()

    def _secret(self) -> bytes:
        with self._lock:
            if self._key is None:
                own = self._machine = self._machine or _read_key(self._file)
                if (agreed := self._agree(own)) is None:
                    return own  # it may be the agreed one from an earlier run
                if agreed != own:
                    _write_key(self._file, agreed)
                self._key = agreed
            return self._key


def _read_key(file: Path) -> bytes:
    """The key of a file, which is made where it is missing. A damaged one is replaced, which invalidates all
    ids."""
    fresh = secrets.token_bytes(KEY_BYTES)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            os.chmod(file, 0o600)
            key = file.read_bytes()
            if len(key) == KEY_BYTES:
                return key
            log.warning(
                "The key of the visitors' ids in %s is damaged; it is replaced, and visitors begin anew.",
                file,
            )
            handle = os.open(file, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(handle, "wb") as opened:
            opened.write(fresh)
    except OSError as error:
        log.warning(
            "The key of the visitors' ids cannot be kept in %s (%s); they hold until the app ends.",
            file,
            error.strerror,
        )
    return fresh


def _write_key(file: Path, key: bytes) -> None:
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(key)
    except OSError as error:
        log.warning(
            "The key of the visitors' ids cannot be kept in %s (%s); it is read from the database.",
            file,
            error.strerror,
        )


def owned(name: str) -> bool:
    """Whether a session or an adapter line belongs to a visitor of a public app."""
    return name.startswith(OWN)


def is_loopback(host: str) -> bool:
    """Whether an address or name is of this machine's loopback."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_public(settings: Settings) -> bool:
    """Whether strangers may come. With `auto`: on a Space, with a public link, with allowed hosts, or at an
    address that others reach. (The page's guard also notices requests through a proxy.)"""
    if settings.public != "auto":
        return settings.public == "true"
    return bool(
        os.environ.get("SPACE_ID")
        or settings.share
        or settings.allowed_hosts.strip()
        or not is_loopback(settings.host)
    )


def is_operator(settings: Settings, key: str | None) -> bool:
    """Whether a key is the operator's, compared in constant time; False without a key in the settings."""
    wanted = settings.operator_key.encode()
    return bool(wanted) and hmac.compare_digest((key or "").encode("utf-8", "replace"), wanted)
