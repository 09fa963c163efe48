"""Answers of a given form at the endpoint, asked by OpenAI's own client, LangChain and Pydantic AI: `parse`,
streams, forced calls, and one sentence for what cannot be kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from omnidemo.core.config import Settings
from omnidemo.serving.endpoint.asked_form import ForcedCall
from omnidemo.serving.services import Services
from tests.support.running_app import free_port, running
from tests.support.trained_pair import DRAFTER, TARGET

openai = pytest.importorskip(
    "openai", reason="the endpoint is tested with OpenAI's client; install it by requirements-dev.txt"
)
ASKED = {"model": "omnidemo", "messages": [{"role": "user", "content": "What is 37 + 25?"}], "max_tokens": 90}
SCHEMA = {
    "type": "object", "properties": {"name": {"enum": ["Ann", "Ben"]}, "more": {"const": None}},
    "required": ["name", "more"], "additionalProperties": False,
}  # fmt: skip
ANSWERS = ('{"name": "Ann", "more": null}', '{"name": "Ben", "more": null}')


class Duck(BaseModel, extra="forbid"):
    """A duck that swims; nothing else is known of it, since these models would write on and on."""

    name: Literal["Ann", "Ben"]
    swims: bool
    friend: Literal["Cleo"] | None


class Hen(BaseModel, extra="forbid"):
    """A hen that lays."""

    eggs: Literal[1, 2]


def function(name: str, schema: Any = SCHEMA) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "A test.", "parameters": schema}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("forms") / "storage"
    services = Services(
        Settings(target=TARGET, drafter=DRAFTER, storage=folder, port=free_port(), training="off")
    )
    try:
        with running(services) as url:
            yield openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)
    finally:
        services.close()


def ask(client: Any, stream: bool = False, **more: Any) -> Any:
    known = {"response_format", "tools", "tool_choice", "max_tokens"}
    given = {name: more.pop(name) for name in known & more.keys()}
    return client.chat.completions.create(**ASKED | given, stream=stream, extra_body=more)


def said(client: Any, **more: Any) -> str:
    return str(ask(client, **more).choices[0].message.content)


@pytest.fixture(scope="module")
def langchain(client: Any) -> Any:
    """LangChain's model of the endpoint."""
    why = "forms are tested with LangChain, too; install it by requirements-dev.txt"
    chat = pytest.importorskip("langchain_openai", reason=why).ChatOpenAI
    return chat(
        model="omnidemo", base_url=str(client.base_url), api_key="none", max_retries=0, temperature=1,
        seed=2, max_tokens=90,
    )  # fmt: skip


@pytest.fixture(scope="module")
def agent(client: Any) -> Callable[[Any], Any]:
    """Pydantic AI's agent over the endpoint, which asks for its answer as the call of a tool."""
    why = "forced calls are tested with Pydantic AI, too; install it by requirements-dev.txt"
    ai = pytest.importorskip("pydantic_ai", reason=why)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(
        "omnidemo", provider=OpenAIProvider(base_url=str(client.base_url), api_key="none")
    )
    return lambda wanted: ai.Agent(model, output_type=wanted, retries=0, model_settings={"max_tokens": 90})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("temperature", [0, 1])
def test_parse_gets_its_model(client: Any, stream: bool, temperature: float) -> None:
    asked = ASKED | {"response_format": Duck, "temperature": temperature, "seed": 1}
    if stream:
        with client.chat.completions.stream(**asked) as events:
            made = events.get_final_completion()
    else:
        made = client.chat.completions.parse(**asked)
    assert isinstance(made.choices[0].message.parsed, Duck) and made.choices[0].finish_reason == "stop"
    assert stream or {"forced", "changed"} <= made.omnidemo.keys()


def test_parse_raises_on_an_answer_that_is_cut(client: Any) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**ASKED | {"response_format": Duck, "max_tokens": 4})


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_langchain_gets_its_model(langchain: Any, method: str) -> None:
    if method == "json_mode":  # any object
        made = langchain.with_structured_output(None, method=method, include_raw=True).invoke("A duck?")
        assert made["parsing_error"] is None or made["raw"].response_metadata["finish_reason"] == "length"
        return
    asked = langchain.with_structured_output(Duck, method=method)
    made = asked.invoke("What is 37 + 25?")
    assert isinstance(made, Duck)
    assert list(asked.stream("What is 37 + 25?"))[-1] == made  # by the seed
    by_schema = langchain.with_structured_output(Duck.model_json_schema(), method=method)
    assert Duck.model_validate(by_schema.invoke("What is 37 + 25?"))


def test_an_agent_gets_its_output_by_a_call(agent: Callable[[Any], Any]) -> None:
    asked = agent(Duck)
    made = asked.run_sync("What is 37 + 25?")
    assert isinstance(made.output, Duck) and made.usage.requests == 1
    assert isinstance(agent([Duck, Hen]).run_sync("What is 37 + 25?").output, Duck | Hen)

    async def streamed() -> Any:
        async with asked.run_stream("What is 37 + 25?") as parts:
            return await parts.get_output()

    assert isinstance(asyncio.run(streamed()), Duck)


def test_the_forms_of_other_servers(client: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "strict": False, "schema": SCHEMA}}
    assert said(client, response_format=form) in ANSWERS
    for name in ("guided_json", "json_schema"):
        assert said(client, **{name: SCHEMA}) in ANSWERS
    assert said(client, guided_json=json.dumps(SCHEMA)) in ANSWERS
    assert said(client, structured_outputs={"json": SCHEMA}) in ANSWERS
    assert said(client, response_format={"type": "json_object", "schema": SCHEMA}) in ANSWERS
    assert said(client, guided_choice=["yes", "no"]) in ("yes", "no")
    assert said(client, structured_outputs={"regex": "[ab]{3}"}).strip("ab") == ""
    assert said(client, grammar='root ::= "duck" | "hen"') in ("duck", "hen")
    assert said(client, response_format={"type": "text"}, grammar="") not in ANSWERS
    free = ask(client, response_format={"type": "json_object"}, temperature=1, seed=3)
    if free.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(free.choices[0].message.content), dict)
    text = client.completions.create(
        model="omnidemo", prompt="Once", extra_body={"guided_choice": ["upon", "more"]}
    )
    assert text.choices[0].text in ("upon", "more")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "note"}}])
def test_a_forced_call_obeys_its_function(client: Any, choice: Any) -> None:
    asked = {"tools": [function("note")], "tool_choice": choice}
    whole = ask(client, **asked).choices[0]
    [call] = whole.message.tool_calls
    assert whole.message.content is None and whole.finish_reason == "stop"
    assert (call.type, call.function.name) == ("function", "note") and call.function.arguments in ANSWERS
    first, *rest = list(ask(client, stream=True, **asked))
    [begun] = first.choices[0].delta.tool_calls
    assert first.choices[0].delta.role == "assistant" and begun.id.startswith("call_")
    assert (begun.index, begun.type, begun.function.name) == (0, "function", "note")
    pieces = [one for part in rest for one in (part.choices[0].delta.tool_calls or ())]
    assert all(one.index == 0 and one.id is None and one.function.name is None for one in pieces)
    assert begun.function.arguments + "".join(one.function.arguments for one in pieces) in ANSWERS
    assert rest[-1].choices[0].finish_reason == "stop"


def test_one_of_several_functions_is_named_by_the_answer(client: Any) -> None:
    asked = {"tools": [function("note"), function("call")], "tool_choice": "required"}
    for seed in range(3):
        made = ask(client, temperature=1.5, seed=seed, **asked).choices[0]
        [call] = made.message.tool_calls
        assert made.finish_reason == "tool_calls"
        assert call.function.name in ("note", "call") and call.function.arguments in ANSWERS
        parts = [part.choices[0].delta for part in ask(client, True, temperature=1.5, seed=seed, **asked)]
        pieces = [one for delta in parts for one in (delta.tool_calls or ())]
        assert pieces[0].function.name == call.function.name
        assert "".join(one.function.arguments for one in pieces) == call.function.arguments


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_call_is_read_from_any_pieces(size: int) -> None:
    text, call = '{"name": "a\\"b", "arguments": {"x": {"y": "}"}}}', ForcedCall("")
    made = [one for at in range(0, len(text), size) for one in call.delta(text[at : at + size])]
    assert made[0]["function"]["name"] == 'a"b' and made[0]["id"]
    assert "".join(one["function"]["arguments"] for one in made) == '{"x": {"y": "}"}}'


FORM = "response_format"
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({FORM: {"type": "duck"}}, "response_format should be", FORM),
    ({FORM: "json"}, "response_format should be", FORM),
    ({FORM: {"type": "json_schema", "json_schema": {"name": "a"}}}, "a JSON schema", FORM),
    ({FORM: {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "duck"}}}},
     "Invalid type: duck", FORM),
    ({FORM: {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}}, "not", FORM),
    ({"guided_json": {"type": "integer", "minimum": 5, "maximum": 3}}, "greater than maximum", FORM),
    ({"guided_json": {"enum": []}}, "Unsatisfiable", FORM),
    ({"guided_json": {"$ref": "#/x", "x": {"$ref": "#/x"}}}, "change it", FORM),
    ({"guided_json": {"$ref": "https://example.org/a"}}, "example.org", FORM),
    ({"guided_json": "{"}, "no JSON", "guided_json"),
    ({"guided_json": {"description": "a" * 70_000}}, "at most 64 KB", "guided_json"),
    ({"guided_regex": "(?=a)b"}, "look-ahead", FORM),
    ({"guided_choice": []}, "at least one text", "guided_choice"),
    ({"structured_outputs": {"duck": 1}}, "structured_outputs should have one of", "structured_outputs"),
    ({"guided_regex": "a", "guided_choice": ["a"]}, "more than one form", "guided_choice"),
    ({"guided_regex": "a", "omnidemo": {"method": "ngram-merge"}}, "lossy", FORM),
    ({"tools": [function("a")]}, "a forced call alone", "tool_choice"),
    ({"tools": [function("a")], "tool_choice": "auto"}, "a forced call alone", "tool_choice"),
    ({"tools": [function("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}},
     "none of tools", "tool_choice"),
    ({"tools": [function("a")], "tool_choice": "required", "guided_regex": "a"}, "leave one", "guided_regex"),
    ({"tool_choice": "required"}, "there are no tools", "tools"),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("more, sentence, param", WRONG)
def test_what_cannot_be_kept_gets_one_sentence(
    client: Any, more: dict[str, Any], sentence: str, param: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        list(ask(client, stream, **more)) if stream else ask(client, **more)
    error = refused.value.body
    assert sentence in error["message"] and error["param"] == param  # type: ignore[index, call-overload]


def test_an_answer_whose_form_explodes_ends_alone(client: Any) -> None:
    with pytest.raises(openai.InternalServerError, match="too hard to keep"):
        ask(client, guided_regex="(.*a.*b.*c.*){1,50}(.{1,5000}x)", max_tokens=400, temperature=5, seed=1)
    assert said(client, guided_choice=["yes", "no"]) in ("yes", "no")
