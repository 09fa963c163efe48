"""The endpoint over scripted answers, asked by OpenAI's own client: shapes, errors, keys, slots. No
models."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnidemo.core.config import SAMPLING
from omnidemo.core.records import Generation, Part, Reading, Round
from omnidemo.pair.prompt_reader import TooLong
from omnidemo.serving.endpoint import answer_response, answer_slots, api_routes
from omnidemo.serving.endpoint.answer_format import StopFilter
from omnidemo.serving.endpoint.answer_slots import AnswerSlots
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.endpoint.request_body import LEAST_TOP_P
from tests.support.fakes import FakeServices, generation, script
from tests.support.running_app import serving
from tests.support.web import call

openai = pytest.importorskip(
    "openai", reason="the endpoint is tested with OpenAI's client; install it by requirements-dev.txt"
)

HELLO = [{"role": "user", "content": "Hello"}]
FULL = "bundled/large@bundled/drafter:default"


def client(url: str, key: str = "none", **options: Any) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=30, **options)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServices, str]]:
    with serving(tmp_path_factory.mktemp("local")) as made:
        yield made


def post(url: str, body: Any, path: str = "chat/completions", **headers: str) -> httpx.Response:
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(
        f"{url}/v1/{path}", headers={"Content-Type": "application/json", **headers}, timeout=30, **content
    )


def sentence(answer: httpx.Response) -> str:
    """What an error of OpenAI's shape says: one sentence."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["type"]
    said: str = error["message"]
    assert said.endswith(".") and "\n" not in said and "Traceback" not in said
    return said


def test_an_answer_in_one_piece(local: tuple[FakeServices, str]) -> None:
    services, url = local
    made = client(url).chat.completions.create(
        model="omnidemo", messages=HELLO, temperature=0.5, top_p=0.9, max_tokens=7, seed=3
    )
    assert made.object == "chat.completion" and made.model == FULL and made.id.startswith("chatcmpl-")
    assert (
        made.choices[0].message.content.startswith("You said: Hello")
        and made.choices[0].message.role == "assistant"
    )
    assert made.choices[0].finish_reason == "stop" and len(made.choices) == 1
    asked = services.calls[-1]
    assert asked["messages"] == HELLO and asked["kind"] == "api" and asked["learn"] and asked["keep"]
    assert (asked["temperature"], asked["top_p"], asked["max_new_tokens"], asked["seed"]) == (0.5, 0.9, 7, 3)
    tokens = made.usage.completion_tokens
    assert made.usage.prompt_tokens == 12 and tokens > 7 and made.usage.total_tokens == 12 + tokens
    own = made.model_extra["omnidemo"]
    assert (
        own["block_efficiency"] == tokens / own["rounds"]
        and own["accepted"] <= own["drafted"]
        and "tokens" not in own
    )
    assert made.system_fingerprint == "compiled.cpu.float32"


def test_a_stream_is_the_same_answer_one_event_a_round(local: tuple[FakeServices, str]) -> None:
    _, url = local
    whole = client(url).chat.completions.create(model=FULL, messages=HELLO, seed=1)
    chunks = list(
        client(url).chat.completions.create(
            model=FULL, messages=HELLO, seed=1, stream=True, stream_options={"include_usage": True},
            extra_body={"omnidemo": {"token_sources": True}},
        )
    )  # fmt: skip
    *rounds, last, usage = chunks
    assert len(rounds) == whole.model_extra["omnidemo"]["rounds"]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in [*rounds, last])
    assert text == whole.choices[0].message.content
    assert rounds[0].choices[0].delta.role == "assistant" and all(
        chunk.choices[0].finish_reason is None for chunk in rounds
    )
    assert last.choices[0].finish_reason == "stop" and last.system_fingerprint == whole.system_fingerprint
    assert last.model_extra["omnidemo"]["accepted"] == whole.model_extra["omnidemo"]["accepted"]
    assert (
        not usage.choices and usage.usage == whole.usage and all(chunk.usage is None for chunk in chunks[:-1])
    )
    sources = [token for chunk in rounds for token in chunk.model_extra["omnidemo"]["tokens"]]
    assert "".join(token["text"] for token in sources) == text
    assert {token["source"] for token in sources} >= {"direct", "ngram", "corrected"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert (
        "usage"
        not in next(
            iter(client(url).chat.completions.create(model=FULL, messages=HELLO, stream=True))
        ).model_fields_set
    )


def test_a_stream_on_the_wire_ends_with_its_mark(local: tuple[FakeServices, str]) -> None:
    answer = post(local[1], {"messages": HELLO, "stream": True})
    assert (
        answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        and answer.headers["cache-control"] == "no-store"
    )
    events = answer.text.split("\n\n")
    assert (
        events[-1] == ""
        and events[-2] == "data: [DONE]"
        and all(event.startswith("data: ") for event in events[:-1])
    )


def test_a_text_is_continued_raw(local: tuple[FakeServices, str]) -> None:
    services, url = local
    made = client(url).completions.create(
        model="bundled/large", prompt="Once upon", extra_body={"omnidemo": {"token_sources": True}}
    )
    assert made.object == "text_completion" and made.choices[0].text.startswith("You said: Once upon")
    assert services.calls[-1]["raw"] and services.calls[-1]["max_new_tokens"] == 16
    assert "".join(token["text"] for token in made.model_extra["omnidemo"]["tokens"]) == made.choices[0].text
    pieces = client(url).completions.create(
        model="bundled/large", prompt=["Once upon"], max_tokens=5, stream=True
    )
    assert "".join(piece.choices[0].text for piece in pieces) == made.choices[0].text
    client(url).chat.completions.create(model="bundled/large", messages=HELLO, max_completion_tokens=9)
    assert not services.calls[-1]["raw"] and services.calls[-1]["max_new_tokens"] == 9


def test_stop_strings_are_left_out_of_whole_and_streamed_answers(local: tuple[FakeServices, str]) -> None:
    services, url = local
    for stop, kept in (
        (["def dou"], "You said: Hello\n"),
        ("nothing of this", None),
        (["ello", "said"], "You "),
    ):
        made = client(url).chat.completions.create(model=FULL, messages=HELLO, stop=stop)
        pieces = list(client(url).chat.completions.create(model=FULL, messages=HELLO, stop=stop, stream=True))
        streamed = "".join(piece.choices[0].delta.content or "" for piece in pieces)
        assert streamed == made.choices[0].message.content and (kept is None or streamed == kept)
        assert services.calls[-1]["stop"] == ((stop,) if isinstance(stop, str) else tuple(stop))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_stop_filter_shows_what_comes_before_the_first_stop_string(size: int) -> None:
    for text, stops in (
        ("one ## two ### three", ["###", "\n"]),
        ("aaab", ["aab"]),
        ("a##", ["###"]),
        ("abcabd", ["abd", "zz"]),
        ("x", [""]),
    ):
        whole = min([text.index(stop) for stop in stops if stop and stop in text], default=len(text))
        kept = StopFilter(stops)
        shown = "".join(kept.add(text[at : at + size]) for at in range(0, len(text), size)) + kept.end()
        assert shown == text[:whole]


def test_a_request_in_chunks_is_answered(local: tuple[FakeServices, str]) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "ü" * 9000}]}).encode()
    parts = (body[at : at + 4001] for at in range(0, len(body), 4001))
    asked = {"headers": {"Content-Type": "application/json"}, "timeout": 30}
    made = httpx.post(f"{local[1]}/v1/chat/completions", content=parts, **asked)
    assert made.status_code == 200 and made.json()["choices"][0]["message"]["content"]
    assert local[0].calls[-1]["messages"][0]["content"] == "ü" * 9000


def test_contents_of_parts_and_fields_that_ask_for_nothing(local: tuple[FakeServices, str]) -> None:
    services, url = local
    messages = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    ]
    body = {
        "messages": messages,
        "n": 1,
        "tools": [],
        "presence_penalty": 0,
        "logprobs": False,
        "user": "x",
        "stop": None,
        "top_p": None,
    }
    assert post(url, body).status_code == 200
    assert services.calls[-1]["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hello"},
    ]


def test_what_a_request_says_nothing_of_is_left_to_the_model(local: tuple[FakeServices, str]) -> None:
    services, url = local
    said = {"temperature": 0, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.2}
    for given, expected in (
        ({}, {}),
        (dict.fromkeys(SAMPLING), {}),
        (said, said),
        ({"top_k": -1}, {"top_k": 0}),
    ):
        assert post(url, {"messages": HELLO, **given}).status_code == 200
        assert {name: services.calls[-1][name] for name in SAMPLING} == dict.fromkeys(SAMPLING) | expected
    assert (
        post(url, {"prompt": "Once"}, "completions").status_code == 200
        and services.calls[-1]["temperature"] is None
    )
    for name, value in (("top_k", -2), ("top_k", 1.5), ("min_p", 2), ("repetition_penalty", 0)):
        answer = post(url, {"messages": HELLO, name: value})
        assert answer.status_code == 400 and f"{name} = {value}" in sentence(answer)


def test_a_null_is_a_field_not_given_and_fields_that_nobody_knows_are_named(
    local: tuple[FakeServices, str],
) -> None:
    services, url = local
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": []},
        {"role": "user", "content": "Again", "name": "x"},
    ]
    body: dict[str, Any] = {
        "messages": messages,
        "stream_options": {"include_usage": None},
        "omnidemo": {"method": None},
        "logit_bias": None,
    }
    body |= {"tools": None, "n": 1, "ignore_eos": False, "typical_p": 1.0, "user": None}
    answer = post(url, body)
    assert answer.status_code == 200 and answer.headers["x-omnidemo-ignored"] == "messages.name"
    assert services.calls[-1]["messages"] == [
        *HELLO,
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "Again"},
    ]
    for stream in (False, True):
        answer = post(
            url,
            {
                "messages": HELLO,
                "stream": stream,
                "user": "x",
                "Größe\n": 1,
                "stream_options": {"include_obfuscation": True},
            },
        )
        assert (
            answer.headers["x-omnidemo-ignored"]
            == "user, Gr%C3%B6%C3%9Fe%0A, stream_options.include_obfuscation"
        )
    assert "x-omnidemo-ignored" not in post(url, {"messages": HELLO, "max_tokens": 5}).headers
    many = post(url, {"messages": HELLO, **{f"field{number}" * 100: 1 for number in range(50)}}).headers[
        "x-omnidemo-ignored"
    ]
    assert many.endswith("and 30 more") and len(many) < 1500
    deep: Any = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    assert post(url, {"messages": HELLO, "metadata": deep}).status_code == 200


def test_other_names_seeds_below_zero_and_control_tokens_of_raw_prompts(
    local: tuple[FakeServices, str],
) -> None:
    services, url = local
    for given, name, value in (
        ({"repeat_penalty": 1.1}, "repetition_penalty", 1.1),
        ({"seed": -1}, "seed", None),
        ({"seed": -2}, "seed", 2**63 - 2),
        ({"seed": 0}, "seed", 0),
        ({"max_tokens": -1}, "max_new_tokens", services.settings.max_new_tokens),
        ({"max_completion_tokens": -1, "max_tokens": 7}, "max_new_tokens", 7),
        ({"top_p": 0}, "top_p", LEAST_TOP_P),
        ({"stop": "<|im_end|>"}, "stop", ("<|im_end|>",)),
        ({}, "control_tokens", False),
    ):
        assert post(url, {"messages": HELLO, **given}).status_code == 200
        assert services.calls[-1][name] == value
    for given, value in (({}, False), ({"control_tokens": True}, True)):
        assert post(url, {"prompt": "<|im_start|>", "omnidemo": given}, "completions").status_code == 200
        assert services.calls[-1]["control_tokens"] is value


def test_a_prompt_that_is_too_long_has_the_code_that_agents_look_for(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local

    def too_long(**options: Any) -> Iterator[Round | Generation]:
        raise TooLong("the prompt has 9 tokens")
        yield

    monkeypatch.setattr(services, "chat", too_long)
    answer = post(url, {"messages": HELLO})
    assert (
        answer.status_code == 400
        and answer.json()["error"]["code"] == "context_length_exceeded"
        and sentence(answer)
    )


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "The body is not JSON"),
        (b"{", "The body is not JSON"),
        (b"\xff\xfe", "The body is not JSON"),
        (b"[" * 100_000, "The body is not JSON"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "The body is not JSON"),
        (b"[]", "The body is not a JSON object"),
        ({}, "messages is missing"),
        ({"messages": []}, "messages = [] is not possible"),
        ({"messages": "Hello"}, "messages = 'Hello' is not possible"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "messages.0.role = 'boss'"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content"),
        *(
            (
                {"messages": [{"role": "user", "content": [{"type": kind, "text": text}]}]},
                "messages.0.content",
            )
            for kind in ("image_url", "input_image", "input_audio", "file", "video_url", 7)
            for text in ("", "x")
        ),
        ({"messages": HELLO, "n": 2}, "n is not offered here"),
        ({"messages": HELLO, "tools": [{"type": "function"}]}, "A tool should be"),
        ({"messages": HELLO, "temperature": "hot"}, "temperature = 'hot'"),
        ({"messages": HELLO, "temperature": -1}, "temperature = -1"),
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}', "temperature = nan"),
        ({"messages": HELLO, "max_tokens": 0}, "max_tokens = 0"),
        ({"messages": HELLO, "seed": -(2**63) - 1}, "seed = -9223372036854775809"),
        ({"messages": HELLO, "seed": True}, "seed = True is not possible: it should be a number"),
        ({"messages": HELLO, "top_k": False}, "top_k = False"),
        ({"messages": HELLO, "n": True}, "n is not offered here; leave it out or send 1"),
        ({"messages": HELLO, "logprobs": 0}, "logprobs is not offered here"),
        ({"messages": HELLO, "echo": 0}, "echo is not offered here"),
        ({"messages": HELLO, "stream": 1}, "stream = 1"),
        (
            {"messages": HELLO, "ignore_eos": True},
            "ignore_eos is not offered here; leave it out or send false",
        ),
        ({"messages": HELLO, "stop_token_ids": [2]}, "stop_token_ids is not offered"),
        ({"messages": HELLO, "guided_json": []}, "guided_json is not possible: it should be a JSON schema"),
        (
            {"messages": HELLO, "chat_template_kwargs": {"enable_thinking": False}},
            "chat_template_kwargs is not offered",
        ),
        (
            {"messages": HELLO, "repeat_penalty": 1.1, "repetition_penalty": 1.2},
            "repeat_penalty and repetition_penalty are one option",
        ),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]},
            "messages.0 has tool_calls, and there are no",
        ),
        (
            {"messages": [*HELLO, {"role": "tool", "tool_call_id": "1", "content": "7"}]},
            "messages.1 is the result of a tool, and there are no",
        ),
        (
            {"messages": HELLO, "omnidemo": {"control_tokens": True}},
            "there is no option omnidemo.control_tokens",
        ),
        ({"messages": HELLO, "seed": 2**63}, "seed = 9223372036854775808"),
        ({"messages": HELLO, "stop": 7}, "stop = 7"),
        ({"messages": HELLO, "stream": "perhaps"}, "stream = 'perhaps'"),
        ({"messages": HELLO, "omnidemo": {"sources": True}}, "omnidemo.sources"),
    ],
)
def test_what_is_no_request_gets_one_sentence(local: tuple[FakeServices, str], body: Any, says: str) -> None:
    answer = post(local[1], body)
    assert answer.status_code == 400 and says in sentence(answer)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_bodies_of_another_size_or_kind_are_refused_in_the_same_shape(
    local: tuple[FakeServices, str],
) -> None:
    _, url = local
    assert post(url, b" " * 8_000_001).status_code == 413 and sentence(post(url, b" " * 8_000_001))
    assert sentence(
        httpx.post(f"{url}/v1/completions", content=b"{}", headers={"Content-Type": "text/plain"})
    )
    assert "not known as evil.example" in sentence(
        httpx.get(f"{url}/v1/models", headers={"Host": "evil.example"})
    )
    assert httpx.get(f"{url}/v1/models", headers={"Origin": "https://evil.example"}).status_code == 403
    for method, path in (
        ("GET", "chat/completions"),
        ("POST", "embeddings"),
        ("DELETE", "models/omnidemo"),
        ("GET", ""),
    ):
        answer = httpx.request(method, f"{url}/v1/{path}", json={} if method == "POST" else None)
        assert answer.status_code == 404 and f"There is no {method} /v1/{path}" in sentence(answer)


def test_after_a_change_over_the_new_target_is_the_default(tmp_path: Path) -> None:
    """For the alias, for no model at all, on new pages, and in the list."""
    with serving(tmp_path) as (services, url), httpx.Client(base_url=url, timeout=30) as page:

        def defaults() -> list[str]:
            return [one.id for one in client(url).models.list() if one.default]

        assert defaults() == ["bundled/large"]
        assert services.public_services is not None
        services.public_services.change_over("bundled/other")
        assert defaults() == ["bundled/other"] and client(url).models.retrieve("bundled/other").default
        for asked in ({}, {"model": "omnidemo"}):
            answer = post(url, {"messages": HELLO, **asked}).json()
            assert answer["model"] == "bundled/other@bundled/drafter:default"
            assert services.calls[-1]["target"] == "bundled/other"
        assert call(page, "pair_state").is_success  # as open pages ask every two seconds
        parts = [one["props"] for one in page.get("/config").json()["components"]]
        assert [one["value"] for one in parts if one.get("elem_id") == "omni-target"] == ["bundled/other"]
        assert json.loads(call(page, "load").json()["data"][0])["target"] == "bundled/other"


def test_models_by_their_ids(local: tuple[FakeServices, str]) -> None:
    services, url = local
    ids = [one.id for one in client(url).models.list()]
    assert (
        ids[:3] == ["omnidemo", "bundled/large", "bundled/other"]
        and FULL in ids
        and "bundled/other@bundled/drafter:default" in ids
    )
    # nothing that has to be downloaded first
    assert not any(name.startswith(("Qwen/", "meta-llama/")) for name in ids)
    for name in ids:
        assert client(url).models.retrieve(name).id == name
    client(url).chat.completions.create(model="bundled/other@bundled/drafter:maths", messages=HELLO)
    assert services.calls[-1]["domain"] == "maths" and services.calls[-1]["target"] == "bundled/other"
    client(url).chat.completions.create(model="bundled/other", messages=HELLO)
    assert services.calls[-1]["domain"] is None and services.calls[-1]["drafter"] == "bundled/drafter"
    # its pair is loaded now
    assert "bundled/other@bundled/drafter:maths" in [one.id for one in client(url).models.list()]


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o",
        "bundled/large@",
        "bundled/large@bundled/large",
        f"{FULL}x",
        "bundled/large:default",
        "/etc",
        "",
        "\u00e4 💥",
    ],
)
def test_an_unknown_model_is_not_found(local: tuple[FakeServices, str], name: str) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client(local[1]).chat.completions.create(model=name, messages=HELLO)
    assert refused.value.code == "model_not_found" and refused.value.param == "model"
    assert f"The model `{name}` does not exist" in refused.value.body["message"]  # type: ignore[index]


def test_a_pair_that_fails_to_load_says_why(local: tuple[FakeServices, str]) -> None:
    with pytest.raises(openai.InternalServerError) as refused:
        client(local[1]).chat.completions.create(model="meta-llama/Llama-3.1-8B", messages=HELLO)
    assert refused.value.status_code == 503 and "is gated" in refused.value.message


def test_a_request_waits_for_its_pair(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local
    monkeypatch.setattr(services, "load_seconds", 0.4)
    monkeypatch.setattr(services, "started", {})
    assert client(url).chat.completions.create(model="omnidemo", messages=HELLO).choices
    monkeypatch.setattr(api_routes, "LOAD_SECONDS", 0.0)
    with pytest.raises(openai.InternalServerError) as refused:
        client(url).chat.completions.create(model="bundled/other", messages=HELLO)
    assert (
        "still being loaded" in refused.value.message
        and refused.value.response.headers["retry-after"] == "10"
    )


def test_all_who_ask_while_a_pair_is_loaded_are_answered_as_many_as_may_wait(tmp_path: Any) -> None:
    with serving(tmp_path, load_seconds=1e9, queue_size=2) as (services, url):
        most, said = api_routes.ANSWERS + 2, list[int]()

        def ask() -> None:
            # the one below may have come first
            while (status := post(url, {"messages": HELLO}).status_code) == 503:
                time.sleep(0.1)
            said.append(status)

        threads = [threading.Thread(target=ask) for _ in range(most)]
        for thread in threads:
            thread.start()
        until, refused = time.monotonic() + 20, None
        while refused is None and time.monotonic() < until:
            with suppress(httpx.TimeoutException):  # whoever leaves gives the place back
                refused = httpx.post(f"{url}/v1/chat/completions", json={"messages": HELLO}, timeout=0.3)
        assert (
            refused is not None
            and refused.status_code == 503
            and "5 requests wait" in sentence(refused)
            and not said
        )
        assert refused.headers["retry-after"] == "1"
        services.load_seconds = 0.0
        for thread in threads:
            thread.join(30)
        assert said == [200] * most == [200] * len(services.calls)


def test_an_error_of_the_engine_is_told_before_and_in_a_stream(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local
    fail = [{"role": "user", "content": "fail"}]
    for streamed in (False, True):
        with pytest.raises(openai.InternalServerError) as refused:
            client(url).chat.completions.create(model="omnidemo", messages=fail, stream=streamed)
        assert "ran out of memory" in refused.value.message

    def half(**options: Any) -> Iterator[Round | Generation]:
        answer = FakeServices.chat(services, **options)
        yield next(answer)
        raise KeyError("inside")

    monkeypatch.setattr(services, "chat", half)
    pieces = client(url).chat.completions.create(model="omnidemo", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match=r"Something went wrong inside \(KeyError\)"):
        list(pieces)
    with pytest.raises(openai.InternalServerError, match="KeyError"):
        client(url).chat.completions.create(model="omnidemo", messages=HELLO)


def read_first(services: FakeServices, monkeypatch: pytest.MonkeyPatch, pieces: int) -> list[int]:
    """Have its answers read a long prompt in pieces of 20 ms; returns how far each came."""
    whole, came = services.chats.chat, list[int]()

    def chat(**options: Any) -> Iterator[Part]:
        came.append(0)
        for read in range(pieces + 1):
            yield Reading(read, pieces, 0)
            if options["cancel"].is_set():
                yield generation([], 0.0, "ngram-exact", "cancelled")
                return
            time.sleep(0.02)
            came[-1] = read
        yield from whole(**options)

    monkeypatch.setattr(services, "chat", chat)
    return came


def test_a_stream_says_something_while_a_long_prompt_is_read(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local
    whole = client(url).chat.completions.create(model=FULL, messages=HELLO, seed=1)
    read_first(services, monkeypatch, 25)
    chunks = list(client(url).chat.completions.create(model=FULL, messages=HELLO, seed=1, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content and chunks[0].choices[0].delta.role == "assistant"
    again = client(url).chat.completions.create(model=FULL, messages=HELLO, seed=1)
    assert again.choices[0].message.content == text
    said = post(url, {"messages": HELLO, "stream": True}).text.split("\n\n")
    comments = [line for line in said if line.startswith(":")]
    assert len(comments) == 26 and comments == said[:26]
    assert comments[-1] == ": reading the prompt, 25 of 25 tokens"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_response.BEGIN_SECONDS <= 1 and answer_response.TELL_SECONDS <= 10
    monkeypatch.setattr(answer_response, "TELL_SECONDS", 0.1)


def comments_then(lines: Iterator[str], act: Callable[[], object]) -> tuple[set[str], list[str]]:
    """The first three comments of a stream, and its other lines after `act`."""
    said = {next(line for line in lines if line) for _ in range(3)}
    act()
    return said, [line for line in lines if line and not line.startswith(":")]


@pytest.mark.usefixtures("often")
def test_a_stream_whose_pair_is_loaded_has_a_status_at_once_and_says_so(tmp_path: Any) -> None:
    with serving(tmp_path, load_seconds=1e9) as (services, url):
        for body, ends in (
            ({}, "data: [DONE]"),
            ({"model": "meta-llama/Llama-3.1-8B"}, '"code":"model_not_loaded"'),
        ):
            asked = {"messages": HELLO, "stream": True, "unknown": 1} | body
            with httpx.stream("POST", f"{url}/v1/chat/completions", json=asked, timeout=5) as answer:
                assert answer.status_code == 200 and answer.headers["X-OmniDemo-Ignored"] == "unknown"
                said, rest = comments_then(
                    answer.iter_lines(), partial(setattr, services, "load_seconds", 0.0)
                )
            assert said == {": loading the model"} and ends in rest[-1] and all(map(is_data, rest))
            services.load_seconds, services.started = 1e9, {}


def is_data(line: str) -> bool:
    return line.startswith("data: ")


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("rounds", [0, 1])
def test_a_stream_behind_others_or_between_two_rounds_says_that_it_waits(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    services, url = local
    free, whole = threading.Event(), services.chats.chat

    def chat(**options: Any) -> Iterator[Part]:
        for number, item in enumerate(whole(**options)):
            if number >= rounds:
                assert free.wait(30)
            yield item

    monkeypatch.setattr(services, "chat", chat)
    asked = {"messages": HELLO, "stream": True, "seed": 1}
    with ExitStack() as streams:
        answers = [
            streams.enter_context(httpx.stream("POST", f"{url}/v1/chat/completions", json=asked, timeout=5))
            for _ in range(api_routes.ANSWERS + 1)
        ]
        lines = [answer.iter_lines() for answer in answers]
        last = next(line for line in lines[-1] if line)  # its own, before a thread is free
        assert last == ": waiting for its turn" and {answer.status_code for answer in answers} == {200}
        if rounds:
            assert is_data(next(lines[0]))
        said, rest = comments_then(lines[0], free.set)
        assert said == {": waiting for its turn"} and rest[-1] == "data: [DONE]"


def test_a_client_that_leaves_while_its_prompt_is_read_ends_that(
    local: tuple[FakeServices, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, url = local
    came = read_first(services, monkeypatch, 1000)
    body = {"messages": HELLO, "stream": True}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=30) as answer:
        assert next(answer.iter_lines()).startswith(": reading")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/v1/chat/completions", json={"messages": HELLO}, timeout=0.3)
    time.sleep(0.3)
    ended = list(came)
    time.sleep(0.2)
    assert len(came) == 2 and came == ended and max(came) < 60


def test_a_full_house_says_so_and_a_cancelled_stream_makes_room_at_once(tmp_path: Any) -> None:
    long = [{"role": "user", "content": "long"}]
    with serving(tmp_path, pace=0.1, queue_size=1) as (services, url):
        streams = [
            client(url).chat.completions.create(model="omnidemo", messages=long, stream=True)
            for _ in range(api_routes.ANSWERS)
        ]
        for stream in streams:
            next(iter(stream))
        first: list[float] = []

        def wait() -> None:
            next(iter(client(url).chat.completions.create(model="omnidemo", messages=HELLO, stream=True)))
            first.append(time.monotonic())

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.3)
        with pytest.raises(openai.InternalServerError) as refused:
            client(url).chat.completions.create(model="omnidemo", messages=HELLO)
        assert refused.value.status_code == 503 and "4 requests wait or run already" in refused.value.message
        assert (
            refused.value.response.headers["retry-after"] == "1"
            and not first
            and len(services.calls) == api_routes.ANSWERS
        )
        closed = time.monotonic()
        streams[0].close()
        waiting.join(10)
        assert first[0] - closed < 5  # the answers themselves take fifteen seconds and more
        for stream in streams[1:]:
            stream.close()


def test_keys_are_visitors(tmp_path: Any) -> None:
    with serving(
        tmp_path, api_keys="sesame, plum", public="true", allowed_hosts="duck.example", visitor_requests=2
    ) as (services, url):
        for key, says in (
            ("", "needs a key"),
            ("Sesame", "none of this endpoint's"),
            ("\u00e9".encode("latin-1").decode("latin-1"), "none of"),
        ):
            answer = post(url, {"messages": HELLO}, **({"X-API-Key": key.encode()} if key else {}))  # type: ignore[dict-item]
            assert (
                answer.status_code == 401
                and says in sentence(answer)
                and answer.json()["error"]["code"] == "invalid_api_key"
            )
        with pytest.raises(openai.AuthenticationError):
            client(url, "wrong").models.list()
        client(url, "sesame").chat.completions.create(model="omnidemo", messages=HELLO)
        first = services.calls[-1]["session"]
        assert (
            first.startswith("~visitor-") and "sesame" not in first and services.calls[-1]["domain"] == first
        )
        # A private Space's own token is the bearer; the key comes beside it.
        client(url, "token-of-the-space", default_headers={"X-API-Key": "sesame"}).chat.completions.create(
            model="omnidemo", messages=HELLO
        )
        assert services.calls[-1]["session"] == first
        with pytest.raises(openai.RateLimitError) as refused:
            client(url, "sesame").chat.completions.create(model="omnidemo", messages=HELLO)
        assert "You have had 2 answers within an hour" in refused.value.message
        assert refused.value.response.headers["x-should-retry"] == "false"
        client(url, "plum").chat.completions.create(model="omnidemo", messages=HELLO)
        assert services.calls[-1]["session"] not in (first, "api")
        with pytest.raises(openai.NotFoundError):
            client(url, "plum").chat.completions.create(
                model="bundled/large@bundled/drafter:maths", messages=HELLO
            )


def test_without_keys_only_this_machine_is_answered(tmp_path: Any) -> None:
    with (
        serving(tmp_path / "public", public="true") as (services, url),
        pytest.raises(openai.NotFoundError) as refused,
    ):
        client(url).chat.completions.create(model="omnidemo", messages=HELLO)
    assert "OMNIDEMO_API_KEYS" in refused.value.message and not services.calls
    with (
        serving(tmp_path / "password", auth="duck:pond") as (services, url),
        pytest.raises(openai.NotFoundError),
    ):
        client(url).models.list()
    with serving(tmp_path / "proxy") as (services, url):
        client(url, "whatever").chat.completions.create(model="omnidemo", messages=HELLO)
        assert services.calls[-1]["session"] == "api"
        assert httpx.get(f"{url}/v1/models", headers={"X-Forwarded-For": "10.0.0.1"}).status_code == 404
        with pytest.raises(openai.NotFoundError):
            client(url).models.list()
    with serving(tmp_path / "keys", api_keys="sesame") as (services, url):
        assert post(url, {"messages": HELLO}).status_code == 401
        client(url, "sesame").chat.completions.create(model="omnidemo", messages=HELLO)
        # also in a private app the key has a session of its own
        assert services.calls[-1]["session"] not in ("", "api")


def test_one_caller_cannot_take_every_slot() -> None:
    slots = AnswerSlots(1, 5, 2)
    slots.take("a")
    slots.take("a")
    with pytest.raises(ApiError, match="2 of your requests") as refused:
        slots.take("a")
    assert refused.value.status == 429
    slots.take("b")
    slots.give_back("a")
    slots.take("a")
    assert slots.in_use == 3


def test_rounds_are_looked_at_in_order_and_seldom_and_the_end_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # only the end is a reason for another look within the test
    monkeypatch.setattr(answer_slots, "LOOK_SECONDS", 60.0)
    rounds, seen = script("one two three four five six seven eight nine ten " * 3), threading.Event()

    def begin(cancel: threading.Event) -> Iterator[Any]:
        for one in rounds:
            time.sleep(0.002)
            yield one
        yield "the end"
        assert seen.wait(30), "what is no round is seen before its thread is done"

    async def look() -> tuple[list[Any], int]:
        found, looks = list[Any](), 0
        async for items in AnswerSlots(1, 1, 2).start("a", begin):
            found += items
            looks += 1
            if "the end" in found:
                seen.set()
        return found, looks

    assert len(rounds) > 3
    assert asyncio.run(look()) == ([*rounds, "the end"], 2)
