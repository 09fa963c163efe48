"""The shell's variables for proxies and certificates: hidden from local requests, named where they are
wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def hidden() -> Iterator[None]:
    """Within the block no variable redirects requests, or breaks a client that asks this machine alone."""
    names = [name for name in os.environ if name.lower() in (*PROXIES, "no_proxy") or name in CERTIFICATES]
    kept = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ |= kept


def wrong_variable() -> str:
    """Why a variable prevents connections to other machines, and what to do; empty where none does."""
    for name, value in os.environ.items():
        if value and name.lower() in PROXIES and (why := _wrong_proxy(value)):
            return f"{name} is {value[:80]!r}, {why}"
    file = os.environ.get("SSL_CERT_FILE")
    if file and not Path(file).is_file():
        return f"SSL_CERT_FILE names {file[:120]!r}, which is no file; correct it, or unset it"
    return ""


def _wrong_proxy(value: str) -> str:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        there = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        there = False
    if not there:
        return "which is no address of a proxy; correct it, or unset it"
    if parts.scheme in ("socks5", "socks5h"):
        need = "which needs a package that is not installed; run `pip install socksio`, or unset it"
        return "" if find_spec("socksio") else need
    known = parts.scheme in ("http", "https")
    return "" if known else "a kind of proxy that is not known here; name one of http or socks5, or unset it"
