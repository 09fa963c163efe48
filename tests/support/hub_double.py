"""A Hub on this machine's loopback: files of repositories as the Hub serves them, large ones by a redirect to
another host, with ranges; and what goes wrong there."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

COMMIT = "c" * 40
CHUNK = 16 * 1024


@dataclass
class HubDouble:
    """`files`: (repository, file) → contents. `cuts`: after how many bytes the next bodies end; `status`:
    what every request gets, with the Hub's own code of an error; `ranges`: whether ranges are served;
    `asked`: each request for contents, with its range; `lie`: a byte is another one."""

    files: dict[tuple[str, str], bytes]
    port: int = 0
    cuts: list[int] = field(default_factory=list)
    status: tuple[int, str] | None = None
    ranges: bool = True
    lie: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)


def _handler(hub: HubDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self.serve(body=False)

        def do_GET(self) -> None:
            self.serve(body=True)

        def serve(self, body: bool) -> None:
            if hub.status is not None:
                return self.answer(
                    hub.status[0],
                    {"X-Error-Code": hub.status[1], "X-Error-Message": hub.status[1]},
                    b"{}",
                    body,
                )
            path = self.path.partition("?")[0]
            if found := re.fullmatch(r"/blob/([0-9a-f]{64})", path):
                return self.contents(found[1], body)
            if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
                return self.resolve(found[1], found[2], body)
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/(?:revision|tree)/.*)?", path):
                return self.about(found[1], found[2] or "", body)
            return self.answer(404, {"X-Error-Code": "RepoNotFound"}, b"{}", body)

        def resolve(self, repository: str, file: str, body: bool) -> None:
            if not any(known == repository for known, _ in hub.files):
                return self.answer(401, {"X-Error-Code": "RepoNotFound"}, b"{}", body)
            data = hub.files.get((repository, file))
            if data is None:
                return self.answer(
                    404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b"{}", body
                )
            digest = hashlib.sha256(data).hexdigest()
            headers = {"X-Repo-Commit": COMMIT}
            if file.endswith((".gguf", ".safetensors")):  # kept apart, behind a redirect to another host
                headers |= {
                    "X-Linked-Etag": f'"{digest}"',
                    "X-Linked-Size": str(len(data)),
                    "ETag": '"of-the-pointer"',
                }
                headers["Location"] = f"http://localhost:{hub.port}/blob/{digest}"
                return self.answer(302, headers, b"", body)
            headers["ETag"] = f'"{hashlib.sha1(data).hexdigest()}"'
            return self.answer(200, headers, data, body)

        def contents(self, digest: str, body: bool) -> None:
            data = next(one for one in hub.files.values() if hashlib.sha256(one).hexdigest() == digest)
            if hub.lie:
                data = bytes([data[0] ^ 1]) + data[1:]
            wanted = self.headers.get("Range") if hub.ranges else None
            if body:
                hub.asked.append((digest, wanted))
            begin = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(data) - begin))
            self.send_header("ETag", f'"{digest}"')
            if wanted:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            if body:
                end = begin + hub.cuts.pop(0) if hub.cuts else len(data)
                self.wfile.write(data[begin:end])
                self.wfile.flush()
                if end < len(data):
                    self.close_connection = True

        def about(self, repository: str, what: str, body: bool) -> None:
            own = {file: data for (known, file), data in hub.files.items() if known == repository}
            if not own:
                return self.answer(401, {"X-Error-Code": "RepoNotFound"}, b"{}", body)
            if what.startswith("/tree/"):
                told: Any = [
                    {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    | (
                        {
                            "lfs": {
                                "oid": hashlib.sha256(data).hexdigest(),
                                "size": len(data),
                                "pointerSize": 134,
                            }
                        }
                        if file.endswith((".gguf", ".safetensors"))
                        else {}
                    )
                    for file, data in own.items()
                ]
            else:
                told = {
                    "id": repository,
                    "sha": COMMIT,
                    "private": False,
                    "siblings": [{"rfilename": file} for file in own],
                }
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(told).encode(), body)

        def answer(self, status: int, headers: dict[str, str], data: bytes, body: bool) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    return Handler


@contextmanager
def hub_double(
    files: dict[tuple[str, str], bytes], cache: Path, patched: pytest.MonkeyPatch
) -> Iterator[HubDouble]:
    """The double, which `huggingface_hub` takes for the Hub meanwhile, with an empty cache in `cache`."""
    hub = HubDouble(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{hub.port}"
    patched.setattr(constants, "ENDPOINT", endpoint)
    patched.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    patched.setattr(constants, "HF_HUB_OFFLINE", False)
    patched.setattr(constants, "HF_HUB_CACHE", str(cache))
    patched.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
    # `huggingface_hub` waits a second before it takes up a lost connection.
    patched.setattr(
        "huggingface_hub.file_download.time", SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None})
    )
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
