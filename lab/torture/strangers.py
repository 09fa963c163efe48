"""Two visitors of a public app, and pages of other sites: what each tries on another's data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lab.torture.client import Client

SECRET = "the password of the pond is quack"
# Events that change what others see, unless they are refused or narrowed to the caller; and the value that
# each takes after the pair.
SHARED: dict[str, Any] = {
    "trainer_reset": {},
    "trainer_pause": {},
    "adaptation_rollback": {"version": 0},
}


def history(client: Client, filters: dict[str, Any]) -> str:
    """The JSON that the History tab was sent, with the requests as its rows; empty where there was none."""
    data = client.call("history", [], asked=filters).data
    return str(data[0]) if data else ""


def condition(client: Client) -> dict[str, Any]:
    """What has been learned for a visitor, as the page shows it; empty where it was told nothing."""
    found = client.call("adaptation_state", [client.target, client.drafter], asked={}).data
    if not found:
        return {}
    shown = json.loads(found[1])
    learned = {"answers": shown["requests_seen"], "version": shown["version"]}
    return {"paused": shown["state"] == "paused", **learned}


def visits(port: int, target: str) -> Iterator[tuple[str, bool]]:
    """(what a stranger tried, whether it came to nothing). The app has to be a public one."""
    mine, other = (Client(port, "", timeout=90.0, target=target) for _ in range(2))
    mine.session, other.session = mine.arrive(), other.arrive()
    told = mine.chat(f"Tell a story: {SECRET}", 16)
    yield "a visitor chats", told.done and not told.error
    other.chat("Hello", 8)
    own = history(mine, {})
    yield "a visitor reads the own history", SECRET in own
    asked: list[dict[str, Any]] = [
        {},
        {"session": mine.session},
        {"session": ""},
        {"pair": f"{target} ⇠ {mine.drafter}"},
    ]
    for filters in asked:
        yield f"history of another by {filters}", SECRET not in history(other, filters)
    for name in ("requests", "rounds"):
        made = other.call("prepare_history", [], asked={"csv": name, "session": mine.session})
        path = json.dumps(made.data)
        content = ""
        if '"path"' in path:
            content = other.request("GET", "/gradio_api/file=" + str(made.data[0]["path"])).text
        yield f"another's {name} as a file", SECRET not in content
    identifiers = [row["id"] for row in json.loads(own)["rows"]] if own else []
    for what in ({"session": mine.session}, {"ids": identifiers}, {"mine": True}):
        other.call("delete_history", [], asked={"remove": what})
        yield f"another's history deleted by {sorted(what)}", SECRET in history(mine, {})
    other.request("POST", "/visitor/forget", b"{}", {"x-omnidemo-visitor": mine.session})
    yield "another forgotten by a forged id", SECRET in history(mine, {})
    before = condition(mine)
    yield (
        "a visitor sees what was learned for it",
        bool(before) and before["answers"] > 0 and not before["paused"],
    )
    for name, value in SHARED.items():
        answered = other.call(name, [target, other.drafter], asked=value).data
        yield f"{name} by a stranger", bool(answered) and condition(mine) == before
    nobody = Client(port, mine.session)
    yield "history without an id", SECRET not in history(nobody, {"session": mine.session})
    yield "a visitor's history stays to the end", SECRET in history(mine, {})


def sites(port: int) -> Iterator[tuple[str, bool]]:
    """(what a page of another site tried, whether it was refused)."""
    for name, headers in (
        ("another origin", {"origin": "http://evil.example"}),
        ("another port of this machine", {"origin": "http://127.0.0.1:1"}),
        ("a page without an origin of its own", {"origin": "null"}),
        ("another host name for this machine", {"host": "evil.example"}),
    ):
        for method, path, body in (
            ("POST", "/gradio_api/queue/join", b'{"data": [], "fn_index": 0, "session_hash": "x"}'),
            ("POST", "/visitor", b"{}"),
            ("POST", "/gradio_api/upload", b"--x\r\n\r\n--x--"),
        ):
            answer = Client(port, "x", headers=headers).request(method, path, body)
            yield f"{name}: {method} {path}", 400 <= answer.status < 500
    evil = Client(port, "x", headers={"host": "evil.example"})
    for path in ("/config", "/", "/gradio_api/info"):
        yield f"another host name: GET {path}", 400 <= evil.request("GET", path).status < 500
