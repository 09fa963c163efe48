"""The two tools over scripted answers, called by the `mcp` package's own client, in both of its protocol's
generations. No models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from omnidemo.core.config import SAMPLING
from omnidemo.serving.endpoint import api_routes, mcp_server
from tests.support.fakes import FakeServices
from tests.support.running_app import serving

mcp = pytest.importorskip(
    "mcp",
    reason="the tools are tested with the client of the package mcp; install it by requirements-dev.txt",
)
httpx2 = pytest.importorskip("httpx2")
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

# a request by itself, and sessions as most clients of today open them
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"])


@asynccontextmanager
async def connected(url: str, era: str = "auto", key: str = "", **headers: str) -> AsyncIterator[Any]:
    sent = {"X-API-Key": key, **headers} if key else headers
    async with (
        httpx2.AsyncClient(headers=sent, timeout=30) as client,
        mcp.Client(streamable_http_client(f"{url}/mcp", http_client=client), mode=era) as session,
    ):
        yield session


def talk(
    url: str, act: Callable[[Any], Awaitable[Any]], era: str = "auto", key: str = "", **headers: str
) -> Any:
    async def run() -> Any:
        async with connected(url, era, key, **headers) as session:
            return await act(session)

    return anyio.run(run)


def call(url: str, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
    return talk(url, lambda session: session.call_tool(tool, arguments), **options)


def refused(
    url: str, act: Callable[[Any], Awaitable[Any]] = lambda session: session.list_tools(), **options: Any
) -> str:
    """What a client is told that gets no further."""
    with pytest.raises(BaseException) as told:
        talk(url, act, **options)
    error: BaseException = told.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServices, str]]:
    with serving(tmp_path_factory.mktemp("mcp")) as made:
        yield made


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServices, str]]:
    """A public app with two keys for each test that uses them up."""
    keys = ", ".join(f"{word}-{era}" for word in ("sesame", "plum") for era in ("auto", "legacy", "session"))
    options = {"api_keys": keys, "public": "true", "allowed_hosts": "duck.example", "visitor_requests": 2}
    with serving(tmp_path_factory.mktemp("keyed"), **options) as made:
        yield made


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServices, str]]:
    """An app that gives slow answers, one at a time."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:  # read when the app is built
            patched.setattr(api_routes, "ANSWERS", 1)
            made = stack.enter_context(serving(tmp_path_factory.mktemp("narrow"), pace=0.05, queue_size=1))
        yield made


@ERAS
def test_there_are_exactly_two_tools(local: tuple[FakeServices, str], era: str) -> None:
    tools = {tool.name: tool for tool in talk(local[1], lambda session: session.list_tools(), era).tools}
    assert set(tools) == {"generate", "compare"}
    takes = tools["generate"].input_schema["properties"]
    assert set(takes) == {
        "prompt",
        "messages",
        "max_new_tokens",
        *SAMPLING,
        "seed",
        "method",
        "copying",
        "model",
        "token_sources",
    }
    assert (
        takes["max_new_tokens"]["type"] == "integer"
        and tools["compare"].input_schema["properties"]["temperature"]["type"] == "number"
    )
    assert (
        tools["compare"].input_schema["required"] == ["prompt"]
        and tools["compare"].input_schema["properties"]["methods"]["type"] == "array"
    )
    for tool in tools.values():
        assert tool.description and tool.output_schema["type"] == "object"
        assert all(field.get("description") for field in tool.input_schema["properties"].values())


def test_gradio_makes_no_tools_of_the_page(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_MCP_SERVER", "true")
    with serving(tmp_path) as (_, url):
        assert httpx2.get(f"{url}/gradio_api/mcp/schema").status_code == 404


@ERAS
def test_generate_gives_text_and_figures(local: tuple[FakeServices, str], era: str) -> None:
    services, url = local
    asked = {"prompt": "Hello", "max_new_tokens": 9, "temperature": 0.5, "seed": 3, "token_sources": True}
    made = call(url, "generate", asked, era=era)
    own = made.structured_content
    assert not made.is_error and json.loads(made.content[0].text) == own
    assert (
        own["text"].startswith("You said: Hello")
        and own["model"] == "bundled/large@bundled/drafter:default"
        and own["finish_reason"] == "stop"
    )
    assert own["tokens"] == sum(own["sources"].values()) == len(own["token_sources"])
    assert "".join(token["text"] for token in own["token_sources"]) == own["text"] and set(
        own["sources"]
    ) >= {
        "direct",
        "ngram",
        "corrected",
    }
    assert own["tokens_per_second"] > 0 and own["tokens_per_round"] > 1 and 0 < own["acceptance"] <= 1
    assert own["system_fingerprint"] == "compiled.cpu.float32" and own["adapter_version"] == 5
    last = services.calls[-1]
    assert (last["max_new_tokens"], last["temperature"], last["seed"], last["kind"], last["learn"]) == (
        9,
        0.5,
        3,
        "api",
        True,
    )
    talked = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
    own = call(url, "generate", {"messages": talked, "method": "autoregressive"}, era=era).structured_content
    assert (
        services.calls[-1]["messages"] == talked
        and own["method"] == "autoregressive"
        and set(own["sources"]) == {"plain"}
    )
    assert own["token_sources"] is None and own["acceptance"] is None
    # nothing was said of it, so the model's own manner holds
    assert all(services.calls[-1][name] is None for name in SAMPLING)
    given = {"temperature": 0.4, "top_p": 0.8, "top_k": 20, "min_p": 0.1, "repetition_penalty": 1.2}
    call(url, "generate", {"prompt": "Hello", **given}, era=era)
    assert {name: services.calls[-1][name] for name in SAMPLING} == given


@ERAS
def test_compare_has_a_row_for_each_method(local: tuple[FakeServices, str], era: str) -> None:
    services, url = local
    made = call(url, "compare", {"prompt": "Hello"}, era=era)
    plain, own = made.structured_content["results"]
    assert (plain["method"], own["method"]) == ("autoregressive", "ngram-exact")
    assert own["speedup"] == 2.0 and own["identical"] is True and plain["tokens_per_round"] == 1
    assert services.calls[-1]["prompts"] == ["Hello"] and services.calls[-1]["seed"] == 0
    made = call(
        url,
        "compare",
        {"prompt": "Hello", "methods": ["ngram-merge"], "max_new_tokens": 5, "temperature": 1},
        era=era,
    )
    (row,) = made.structured_content["results"]
    assert (
        row["method"] == "ngram-merge"
        and row["speedup"] is None
        and services.calls[-1]["max_new_tokens"] == 5
    )


@ERAS
def test_progress_is_told_to_who_asks(
    local: tuple[FakeServices, str], era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local

    async def ask(session: Any, tool: str) -> list[tuple[float, float | None]]:
        told: list[tuple[float, float | None]] = []

        async def hear(done: float, of: float | None, message: str | None) -> None:
            told.append((done, of))

        await session.call_tool(tool, {"prompt": "long"}, progress_callback=hear)
        return told

    with monkeypatch.context() as patched:
        patched.setattr(services, "pace", 0.005)
        told = talk(url, lambda session: ask(session, "generate"), era)
    assert (
        len(told) > 3 and [done for done, _ in told] == sorted(done for done, _ in told) and told[0][1] == 128
    )
    assert talk(url, lambda session: ask(session, "compare"), era)[-1] == (2, 2)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("generate", {}, "Give either prompt"),
        ("generate", {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "Give either prompt"),
        ("generate", {"prompt": "x", "max_new_tokens": 0}, "max_new_tokens = 0"),
        ("generate", {"prompt": "x", "temperature": "hot"}, "temperature = 'hot'"),
        ("generate", {"prompt": "x", "seed": -(2**63) - 1}, "seed = -9223372036854775809"),
        ("generate", {"prompt": "x", "top_k": False}, "top_k = False"),
        (
            "generate",
            {"messages": [{"role": "assistant", "tool_calls": [1]}]},
            "messages.0 has tool_calls, and there are no tools here",
        ),
        ("generate", {"prompt": 7}, "prompt = 7"),
        ("generate", {"messages": [{"role": "boss", "content": "x"}]}, "messages.0.role = 'boss'"),
        (
            "generate",
            {"prompt": "x", "tokens": 3},
            "there is no option tokens; this tool takes max_new_tokens",
        ),
        ("generate", {"prompt": "x", "model": "gpt-4o"}, "The model `gpt-4o` does not exist"),
        ("generate", {"prompt": "x", "model": "meta-llama/Llama-3.1-8B"}, "is gated"),
        ("generate", {"prompt": "fail"}, "ran out of memory"),
        ("compare", {}, "prompt is missing; this tool takes"),
        ("compare", {"prompt": " "}, "The prompt is empty"),
        ("compare", {"prompt": "x", "methods": "ngram-exact"}, "methods = 'ngram-exact'"),
        ("compare", {"prompt": "x", "methods": ["magic"]}, "There is no method magic; choose one of"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    local: tuple[FakeServices, str], tool: str, arguments: dict[str, Any], says: str
) -> None:
    made = call(local[1], tool, arguments)
    said = made.content[0].text
    assert (
        made.is_error and says in said and said.endswith(".") and "\n" not in said and "Traceback" not in said
    )


WIRE = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LONG = b"duck " * 1_000_000


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (rb'{"prompt": "a \ud800 b"}', 400, "Parse error"),
        (rb'{"messages": [{"role": "user", "content": "\udc00"}]}', 400, "lone leading surrogate"),
        (rb'{"\ud800": 1}', 400, "Parse error"),
        (b'{"prompt": "caf\xc3"}', 400, "invalid unicode"),
        (b'{"prompt": "a \x00 b"}', 400, "control character"),
        (rb'{"prompt": "a \u0000 b"}', 200, "You said: a "),
        (b'{"max_new_tokens": ' + b"9" * 5000 + b"}", 400, "number out of range"),
        (b"[" * 100_000 + b"]" * 100_000, 400, "recursion limit"),
        (b'{"model": "' + LONG + b'", "prompt": "x"}', 200,
            "it should have at most 1000 characters; this tool takes"),
        (b'{"' + LONG + b'": 1}', 200, "there is no option duck duck"),
        (b'{"prompt": "' + 20 * LONG + b'"}', 413, "That is 100 MB, and this takes at most 8 MB; send less."),
    ],
    ids=["half a pair", "other half", "half a name", "half UTF-8", "NUL", "escaped NUL", "digits", "depth",
        "5 MB", "5 MB name", "100 MB"],
)  # fmt: skip
def test_what_is_no_text_or_too_long_gets_one_sentence(
    local: tuple[FakeServices, str], arguments: bytes, status: int, says: str
) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    hello["params"] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }  # type: ignore[assignment]
    session = httpx2.post(f"{local[1]}/mcp", json=hello, headers=WIRE).headers["mcp-session-id"]
    body = (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"generate","arguments":'
        + arguments
        + b"}}"
    )
    sent = {**WIRE, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"}
    answer = httpx2.post(f"{local[1]}/mcp", content=body, headers=sent, timeout=30)
    assert (
        answer.status_code == status
        and says in answer.text
        and len(answer.text) < 3000
        and "Traceback" not in answer.text
    )


def test_an_unknown_tool_and_an_error_inside(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local
    assert "There is no tool delete; choose from generate, compare." in refused(
        url, lambda session: session.call_tool("delete", {})
    )

    def broken(**options: Any) -> Iterator[Any]:
        raise KeyError("inside")

    monkeypatch.setattr(services, "chat", broken)
    assert (
        call(url, "generate", {"prompt": "x"})
        .content[0]
        .text.startswith("Something went wrong inside (KeyError).")
    )


@ERAS
def test_keys_are_visitors_with_quotas(keyed: tuple[FakeServices, str], era: str) -> None:
    (services, url), (sesame, plum) = keyed, (f"sesame-{era}", f"plum-{era}")
    assert "needs a key" in refused(url, era=era)
    assert "none of this endpoint's" in refused(url, era=era, key="wrong")
    assert not call(url, "generate", {"prompt": "Hello"}, era=era, key=sesame).is_error
    first = services.calls[-1]["session"]
    assert first.startswith("~visitor-") and services.calls[-1]["domain"] == first
    compared = call(url, "compare", {"prompt": "Hello"}, era=era, Authorization=f"Bearer {sesame}")
    assert not compared.is_error and services.calls[-1]["domain"] == first
    made = call(url, "generate", {"prompt": "Hello"}, era=era, key=sesame)
    assert made.is_error and "You have had 2 answers within an hour" in made.content[0].text
    assert not call(url, "generate", {"prompt": "Hello"}, era=era, key=plum).is_error
    assert services.calls[-1]["session"] not in (first, "api")


def test_a_session_is_its_keys_own(keyed: tuple[FakeServices, str]) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    hello["params"] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    url = keyed[1]
    begun = httpx2.post(f"{url}/mcp", json=hello, headers={**accept, "X-API-Key": "sesame-session"})
    session = begun.headers["mcp-session-id"]
    for key, status in (("plum-session", 404), ("sesame-session", 200)):
        sent = {**accept, "X-API-Key": key, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"}
        assert (
            httpx2.post(
                f"{url}/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=sent
            ).status_code
            == status
        )


def test_other_hosts_and_pages_are_refused_and_strangers_without_keys(tmp_path: Any) -> None:
    with serving(tmp_path / "private") as (services, url):
        assert "not known as evil.example" in refused(url, Host="evil.example")
        assert "Requests from other pages are not answered" in refused(url, Origin="https://evil.example")
        assert "OMNIDEMO_API_KEYS" in refused(url, **{"X-Forwarded-For": "10.0.0.1"})
        assert "OMNIDEMO_API_KEYS" in refused(url)  # from then on the app is public
        assert not services.calls


def test_without_the_package_the_app_starts_and_says_how_to_get_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "INSTALLED", False)
    with serving(tmp_path) as (_, url):
        assert "pip install" in refused(url)
        assert httpx2.get(f"{url}/v1/models").status_code == 200 and httpx2.get(url).status_code == 200


@ERAS
@pytest.mark.parametrize("leaves", ["cancels", "goes"])
def test_a_cancelled_call_frees_its_place(
    narrow: tuple[FakeServices, str], era: str, leaves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = narrow

    async def leave(began: threading.Event, tool: str) -> None:
        async with connected(url, era) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.call_tool, tool, {"prompt": "long " * 40})
            await anyio.to_thread.run_sync(began.wait, 20)
            if leaves == "goes":
                raise ConnectionError("gone")
            tasks.cancel_scope.cancel()

    def watched(
        whole: Callable[..., Iterator[Any]], began: threading.Event, ended: threading.Event
    ) -> Callable[..., Iterator[Any]]:
        def watch(**options: Any) -> Iterator[Any]:
            began.set()
            yield from whole(**options)
            ended.set()

        return watch

    for tool, method in (("generate", "chat"), ("compare", "compare")):
        began, ended = threading.Event(), threading.Event()
        with monkeypatch.context() as patched:
            patched.setattr(services, method, watched(getattr(services, method), began, ended))
            try:
                anyio.run(leave, began, tool)
            except BaseExceptionGroup:
                assert leaves == "goes"
            left = time.monotonic()
            # the answer takes many seconds; a busy machine some of two
            assert ended.wait(5) and time.monotonic() - left < 2
        with monkeypatch.context() as patched:
            patched.setattr(services, "pace", 0.0)
            assert not call(url, tool, {"prompt": "x"}, era=era).is_error
