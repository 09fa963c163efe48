"""The running app over HTTP: what pages of other sites, strangers and proxies can do, with real requests and
no models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

import anyio
import httpx
import pytest

from omnidemo.core.config import Settings
from omnidemo.serving.quotas import Refused
from omnidemo.serving.waiting_line import EACH, WaitingLine
from omnidemo.ui.guard import OPERATOR, VISITOR, _repeat
from tests.support.fakes import FakeServices
from tests.support.jobs import streaming
from tests.support.web import call, launched

JSON = {"Content-Type": "application/json"}


def sentence(answer: httpx.Response) -> str:
    """What a refusal says: one sentence."""
    told = str(answer.json()["detail"])
    assert told.endswith(".") and "\n" not in told and "Traceback" not in told
    return told


@contextmanager
def serving(tmp_path: Any, **options: Any) -> Iterator[httpx.Client]:
    with launched(tmp_path, **options) as (_, client):
        yield client


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("local")) as client:
        yield client


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("public"), public="true", operator_key="sesame") as client:
        yield client


def arrive(client: httpx.Client, **headers: str) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/visitor", json={}, headers=headers).json()
    return found


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5", "", "localhost.evil.example:7860"]
)
def test_other_names_are_refused(local: httpx.Client, host: str) -> None:
    answer = local.get("/config", headers={"Host": host})
    assert answer.status_code == 403 and "OMNIDEMO_ALLOWED_HOSTS" in sentence(answer)


def test_the_app_answers_by_its_own_names(local: httpx.Client) -> None:
    port = local.base_url.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert local.get("/config", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:9", "http://localhost:443", "http://127.0.0.1:9", "https://evil.example",
        "http://0.0.0.0:1", "null", "", "file://", "file:///home/me/page.html", "about:blank", "data:", "http://",
        "http://:80", "data:text/html,x", "http://[",
    ],
)  # fmt: skip
def test_pages_elsewhere_read_and_change_nothing(local: httpx.Client, origin: str) -> None:
    tries = [
        local.get("/config", headers={"Origin": origin}),
        local.get("/", headers={"Origin": origin}),
        local.post("/visitor", json={}, headers={"Origin": origin}),
        local.post("/gradio_api/queue/join", json={"data": []}, headers={"Origin": origin}),
        local.post("/gradio_api/upload", files={"files": b"x"}, headers={"Origin": origin}),
        local.options(
            "/gradio_api/queue/join", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
        ),
    ]
    for answer in tries:
        assert answer.status_code == 403 and sentence(answer)
        assert not any(name.lower().startswith("access-control") for name in answer.headers)


def test_programs_of_the_settings_call_the_endpoint_and_nothing_else(tmp_path: Any) -> None:
    listed = "app://obsidian.md, http://tauri.localhost/, chrome-extension://abc"
    with serving(tmp_path, api_origins=listed) as client:
        chat = {"messages": [{"role": "user", "content": "Hello"}]}
        for origin in ("app://obsidian.md", "http://tauri.localhost", "chrome-extension://abc"):
            told = {"Origin": origin}
            asked = {
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
            }
            allowed = client.options("/v1/chat/completions", headers=told | asked)
            assert allowed.headers["Access-Control-Allow-Headers"] == asked["Access-Control-Request-Headers"]
            assert "POST" in allowed.headers["Access-Control-Allow-Methods"]
            answers = {
                204: [allowed],
                400: [client.post("/v1/chat/completions", json={"messages": []}, headers=told)],
                200: [
                    client.get("/v1/models", headers=told),
                    client.post("/v1/chat/completions", json=chat, headers=told),
                    client.post("/v1/chat/completions", json=chat | {"stream": True}, headers=told),
                ],
            }
            for status, found in answers.items():
                for answer in found:
                    assert answer.status_code == status and answer.headers["Vary"] == "Origin"
                    assert answer.headers.get_list("Access-Control-Allow-Origin") == [origin]
            for answer in (
                client.get("/config", headers=told),
                client.post("/visitor", json={}, headers=told),
                client.post("/mcp", json={}, headers=told),
            ):
                assert answer.status_code == 403 and "Access-Control-Allow-Origin" not in answer.headers
        for origin in ("app://obsidian", "null", "http://tauri.localhost:80", "https://evil.example"):
            answer = client.get("/v1/models", headers={"Origin": origin})
            assert answer.status_code == 403 and "Access-Control-Allow-Origin" not in answer.headers
            said = answer.json()["error"]["message"]
            assert origin in said and "OMNIDEMO_API_ORIGINS" in said
    for wrong_one in ("*", "null", "obsidian.md", "app://*", "https://a.example/path"):
        with pytest.raises(ValueError, match="no origin of one program"):
            Settings(api_origins=wrong_one)


def test_what_a_browser_says_about_the_asking_page_counts(local: httpx.Client) -> None:
    for site in ("cross-site", "same-site"):
        told = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert local.get("/config", headers=told).status_code == 403
        # a link
        assert (
            local.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status_code == 200
        )
        assert (
            local.post(
                "/visitor", json={}, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
            ).status_code
            == 403
        )


def test_the_own_page_may_everything(local: httpx.Client) -> None:
    own = str(local.base_url).rstrip("/")
    assert local.post("/visitor", json={}, headers={"Origin": own}).status_code == 200
    assert local.get("/config", headers={"Origin": own}).status_code == 200


PROXIES = {  # what a proxy of duck.example.org passes on, and where its page is
    "another port, lost": ("duck.example.org", "https://duck.example.org:8443"),
    "a default port": ("duck.example.org:443", "https://duck.example.org"),
    "plain http": ("duck.example.org:80", "http://duck.example.org"),
    "nginx as it comes": ("127.0.0.1:{port}", "https://duck.example.org"),
    "a name of its own": ("localhost", "https://duck.example.org:8443"),
    "a dot behind the name": ("duck.example.org.", "https://duck.example.org."),
    "capitals": ("Duck.Example.org", "https://duck.example.org:8443"),
}


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    names = "https://duck.example.org, *.pond.example:8443, localhost"
    with serving(tmp_path_factory.mktemp("proxied"), allowed_hosts=names) as client:
        yield client


@pytest.mark.parametrize(("host", "origin"), PROXIES.values(), ids=PROXIES)
def test_behind_a_proxy_the_name_says_whose_page_it_is(proxied: httpx.Client, host: str, origin: str) -> None:
    told = {"Host": host.format(port=proxied.base_url.port), "Origin": origin}
    assert proxied.post("/visitor", json={}, headers=told).status_code == 200
    assert proxied.get("/config", headers=told).status_code == 200
    for other in ("duck.example.org.evil.example", "evil.example", "example.org"):
        told["Origin"] = origin.replace("duck.example.org", other)
        assert proxied.post("/visitor", json={}, headers=told).status_code == 403


def test_patterns_are_names_too_and_an_allowed_loopback_keeps_its_port(proxied: httpx.Client) -> None:
    def status(host: str, origin: str) -> int:
        return proxied.post("/visitor", json={}, headers={"Host": host, "Origin": origin}).status_code

    assert status("a.pond.example", "https://a.pond.example:9") == 200
    assert status("pond.example", "https://pond.example") == 403
    port = proxied.base_url.port
    assert status(f"localhost:{port}", f"http://localhost:{port}") == 200
    assert status(f"localhost:{port}", "http://localhost:9") == 403
    assert status("127.0.0.1", "http://127.0.0.1") == status("127.0.0.1:80", "http://127.0.0.1") == 200
    assert status("127.0.0.1", "https://127.0.0.1:80") == status("127.0.0.1", "http://127.0.0.1:443") == 403


def test_what_a_proxy_forwards_may_be_a_list(proxied: httpx.Client) -> None:
    told = {"X-Forwarded-Host": "goose.example.org:443, inner"}
    for origin, status in (("https://goose.example.org", 200), ("https://goose.example.org:8443", 403)):
        assert proxied.get("/config", headers=told | {"Origin": origin}).status_code == status


def test_forms_and_floods_are_refused(local: httpx.Client) -> None:
    assert local.post("/visitor", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert local.post("/gradio_api/queue/join", data={"a": "b"}).status_code == 415
    big = local.post("/gradio_api/upload", files={"files": b"x" * 3_000_000})
    assert big.status_code == 413 and sentence(big)
    just = local.post("/gradio_api/upload", files={"files": b"x" * 1_500_000})
    assert just.status_code == 413  # Gradio's own limit
    assert local.post("/gradio_api/queue/join", content=b" " * 8_000_001, headers=JSON).status_code == 413


def test_a_request_in_chunks_is_one_of_their_length(local: httpx.Client) -> None:
    def sent(path: str, *parts: bytes, kind: str = "application/json") -> httpx.Response:
        return local.post(path, content=iter(parts), headers={"Content-Type": kind})

    assert sent("/visitor", b"{", b"", b"}").json().keys() == local.post("/visitor", json={}).json().keys()
    assert sent("/visitor", b"{}", kind="text/plain").status_code == 415
    assert sent("/v1/chat/completions", b" " * 4_000_000, b" " * 4_000_001).status_code == 413
    many = sent("/v1/chat/completions", *[b" " * 100_000] * 200)  # an end that never comes is not waited for
    assert many.status_code == 413 and "at most 8 MB" in many.text
    for coding in ("gzip", "zstd", "br"):
        packed = local.post(
            "/v1/completions", content=b"\x1f\x8b", headers=JSON | {"Content-Encoding": coding}
        )
        assert packed.status_code == 415 and f"compressed ({coding})" in packed.text
    form = httpx.Request("POST", "http://x", files={"files": ("a.txt", b"abc")})
    kept = sent("/gradio_api/upload", form.read()[:20], form.read()[20:], kind=form.headers["Content-Type"])
    assert kept.status_code == 200 and len(kept.json()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "deep_link?session_hash=x",
        "proxy=https://evil.example/",
        "run-history/buckets",
        "stream/a/1/2/playlist.m3u8",
    ],
)
def test_what_the_page_does_not_use_is_not_there(local: httpx.Client, path: str) -> None:
    assert local.get(f"/gradio_api/{path}").status_code == 404


def test_every_answer_carries_the_headers(
    local: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for answer in (
        local.get("/"),
        local.get("/config", headers={"Host": "evil.example"}),
        local.get("/nothing"),
    ):
        assert (
            answer.headers["X-Content-Type-Options"] == "nosniff"
            and answer.headers["Referrer-Policy"] == "same-origin"
        )
        assert answer.headers["Content-Security-Policy"].endswith("frame-ancestors 'self'")
    monkeypatch.setenv("SPACE_ID", "someone/omnidemo")
    with serving(tmp_path, host="127.0.0.1") as space:
        answer = space.get("/", headers={"Host": "someone-omnidemo.hf.space"})
        assert answer.status_code == 200
        assert answer.headers["Content-Security-Policy"].endswith(
            "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
        )


def test_a_request_through_a_proxy_makes_the_app_public(tmp_path: Any) -> None:
    with serving(tmp_path / "a") as client:
        assert arrive(client)["public"] is False
        # a page of another name, which its owner points here
        foreign = {"Host": "evil.example", "X-Forwarded-For": "10.0.0.1"}
        assert client.get("/", headers=foreign).status_code == 403 and arrive(client)["public"] is False
        # no id is needed
        assert call(client, "trainer_pause", "bundled/large", "bundled/drafter").status_code == 200
        assert arrive(client, **{"X-Forwarded-For": "10.0.0.1"})["public"] is True
        refused = call(client, "trainer_pause", "bundled/large", "bundled/drafter")
        assert refused.status_code == 401 and "visitor's id" in sentence(refused)
    with serving(tmp_path / "b", public="false") as client:
        assert arrive(client, Forwarded="for=10.0.0.1")["public"] is False


def test_ids_are_given_kept_and_renewed(public: httpx.Client) -> None:
    first = arrive(public)
    assert arrive(public, **{VISITOR: first["id"]}) == first
    forged = arrive(public, **{VISITOR: first["id"][:-1] + ("0" if first["id"][-1] != "0" else "1")})
    assert forged["id"] != first["id"] and forged["name"] != first["name"]
    assert first["id"].partition(".")[0] not in first["name"]
    assert "kept for 24 hours, for you alone" in first["notice"]
    for name in ("", forged["id"][:-1] + "x"):
        assert (
            call(public, "trainer_pause", "bundled/large", "bundled/drafter", **{VISITOR: name}).status_code
            == 401
        )
    assert public.post("/gradio_api/upload", files={"files": b"x"}).status_code == 401
    assert (
        public.get("/visitor").status_code == 405
        and public.post("/visitor/forget", json={}).status_code == 401
    )


def test_a_visitors_buttons_are_about_their_own_line_whatever_the_settings_name(tmp_path: Any) -> None:
    with serving(tmp_path, public="true", domain="maths") as client:
        me = arrive(client)
        for name in ("pause", "resume", "reset"):
            answer = call(
                client,
                f"trainer_{name}",
                "bundled/large",
                "bundled/drafter",
                **{VISITOR: me["id"]},
            )
            assert answer.status_code == 200, answer.text


def test_news_are_those_of_the_caller_and_nonsense_brings_none(tmp_path: Any) -> None:
    with launched(tmp_path, public="true") as (page, client):
        me, other = arrive(client), arrive(client)
        event = next(event for event in page.fns.values() if event.api_name == "state")
        pair = next(number for number, block in page.blocks.items() if block.elem_id == "omni-pair")

        def look(who: dict[str, Any], asked: Any) -> Any:
            body = {"data": asked, "fn_name": "look", "component_id": pair, "session_hash": "s"}
            answer = client.post("/gradio_api/component_server/", json=body, headers={VISITOR: who["id"]})
            return answer.json() if answer.status_code == 200 else None

        def news(who: dict[str, Any], target: str = "bundled/large") -> Any:
            known = {"Target, the big model": target, "Drafter, the small one": "bundled/drafter"}
            sizes = [int(size) for size in re.findall(r"splice\(0, (\d+)\)", event.js)]
            values = iter([known.get(block.label, "") for block in event.inputs])
            return look(who, [list(islice(values, size)) for size in sizes])

        before = news(me), news(other)
        assert len(before[0]) > 5 and before == (news(me), news(other))
        assert news(me, "bundled/other") != before[0] and news(other) == before[1]
        assert [look(me, asked) for asked in ({}, [], 3, [[]])] == [None] * 4
        body = {"data": "x", "fn_name": "preprocess", "component_id": pair, "session_hash": "s"}
        answer = client.post("/gradio_api/component_server/", json=body, headers={VISITOR: me["id"]})
        assert answer.status_code == 404, "only functions that are meant for the page"
        assert client.post("/gradio_api/component_server/", json=body).status_code == 401


def test_uploads_have_quotas(public: httpx.Client) -> None:
    me, other = arrive(public)["id"], arrive(public)["id"]
    told = [
        public.post("/gradio_api/upload", files={"files": b"x" * 900_000}, headers={VISITOR: me})
        for _ in range(8)
    ]
    assert [answer.status_code for answer in told] == [200] * 6 + [429] * 2
    assert "You have had 5,000 kB of files" in sentence(told[-1])
    assert (
        public.post("/gradio_api/upload", files={"files": b"x"}, headers={VISITOR: other}).status_code == 200
    )
    # such a request is looked at once, too
    proxied = {VISITOR: arrive(public)["id"], "X-Forwarded-For": "10.0.0.1"}
    told = [
        public.post("/gradio_api/upload", files={"files": b"x" * 900_000}, headers=proxied) for _ in range(7)
    ]
    assert [answer.status_code for answer in told] == [200] * 6 + [429]


def test_only_the_key_makes_an_operator(public: httpx.Client) -> None:
    me = arrive(public)["id"]
    wrong = arrive(public, **{VISITOR: me, OPERATOR: "Sesame"})
    assert not wrong["operator"] and wrong["said"].startswith("That is not the operator's key")
    pair = ("bundled/large", "bundled/drafter")
    refused = call(public, "stop_loading", *pair, **{VISITOR: me, OPERATOR: "Sesame"})
    assert refused.status_code == 500 and "This concerns everybody" in refused.json()["error"]
    operator = arrive(public, **{VISITOR: me, OPERATOR: "sesame"})
    # where `PublicServices.chat` records an operator
    assert operator["operator"] and f"~visitor-{operator['name']}" == wrong["name"]
    assert call(public, "stop_loading", *pair, **{VISITOR: me, OPERATOR: "sesame"}).status_code == 200


def test_one_visitor_cannot_fill_the_line_and_visitors_take_turns() -> None:
    line = WaitingLine(lambda: 3, most=12)
    with ExitStack() as stack:
        places = [stack.enter_context(line.place("me")) for _ in range(EACH)]
        assert [place() for place in places] == [0, 0, 0, 1, 2, 3]
        with pytest.raises(Refused, match="wait or run already"):
            stack.enter_context(line.place("me"))
        theirs = stack.enter_context(line.place("other"))
        nobody = [stack.enter_context(line.place("")) for _ in range(5)]
        assert theirs() == 4 and nobody[-1]() == 9 and len(line) == 12
        with pytest.raises(Refused, match="12 requests wait already"):
            stack.enter_context(line.place("third"))
    assert not line


def test_nobody_passes_the_line(public: httpx.Client) -> None:
    me = arrive(public)["id"]
    assert call(public, "chat", asked={"message": "long"}, **{VISITOR: me}).status_code == 404


def test_what_is_done_again_and_again_outlives_a_failure() -> None:
    done: list[int] = []

    def act() -> None:
        done.append(1)
        if len(done) == 1:
            raise OSError("read-only file system")

    async def run() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_repeat, act, 0.0)
                while len(done) < 3:
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()

    anyio.run(run)


def test_a_measurement_has_a_line_of_its_own() -> None:
    services: Any = FakeServices()

    def work(asked: Any, cancel: Any) -> Iterator[str]:
        yield f"{len(services.line)} {len(services.beside)}"

    for line, held in ((None, "1 0"), (services.beside, "0 1")):
        *_, last = streaming(services, work, {}, line=line)
        assert last.endswith(held)
