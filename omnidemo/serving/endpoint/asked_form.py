"""Fields of a request that hold its answer to a form, as OpenAI, vLLM and llama.cpp name them, and the call
of a tool that the answer has to be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from omnidemo.core.config.answer_form import form_of
from omnidemo.serving.endpoint.api_errors import ApiError

# fields of other servers → the kind of form that they are
ALIASES = {
    "guided_json": "schema", "json_schema": "schema", "guided_regex": "regex", "regex": "regex",
    "guided_choice": "choices", "guided_grammar": "grammar", "grammar": "grammar", "ebnf": "grammar",
}  # fmt: skip
STRUCTURED = {
    "json": "schema", "regex": "regex", "choice": "choices", "grammar": "grammar",
    "json_object": "json_object",
}  # fmt: skip
TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
FIELDS = ("response_format", "structured_outputs", *ALIASES, *TOOLS)
AUTO = (
    'tools are offered with a forced call alone; send tool_choice "required", or'
    ' {"type": "function", "function": {"name": "…"}}, or leave tools out.'
)
BEGIN = re.compile(r'\{"name": ("(?:[^"\\]|\\.)*"), "arguments": ')


@dataclass(frozen=True, slots=True)
class AskedForm:
    """`form`: the option of the answer; empty: none. `call`: the function that the answer calls, "" for the
    one that it names, None for no call. `hint`: what the question gets behind it."""

    form: str = ""
    call: str | None = None
    hint: str = ""


def take(given: dict[str, Any], raw: Mapping[str, Any], chat: bool) -> AskedForm:
    """The form of a request; its fields leave `given`. `raw`: the request with its nulls, which a schema may
    have. ApiError 400, one sentence, where a field is wrong."""
    asked: list[tuple[str, str, Any]] = []  # (field, kind, value)
    for name in FIELDS:
        if name in TOOLS or given.get(name) in (None, "", {"type": "text"}):
            continue
        value = raw[name]
        if name == "response_format":
            asked += [(name, *_of_format(value))]
        elif name == "structured_outputs":
            known = [key for key in STRUCTURED if isinstance(value, dict) and value.get(key) is not None]
            if not known:
                raise ApiError(400, f"{name} should have one of {', '.join(STRUCTURED)}.", param=name)
            asked += [(name, STRUCTURED[key], value[key]) for key in known]
        else:
            asked += [(name, ALIASES[name], value)]
    if len(asked) > 1:
        names = " and ".join(dict.fromkeys(name for name, *_ in asked))
        raise ApiError(400, f"{names} ask for more than one form of the answer; send one.", param=asked[1][0])
    call = _call(given, raw) if chat and given.get("tools") else None
    if chat and not given.get("tools") and given.get("tool_choice") not in (None, "none", "auto"):
        raise ApiError(
            400, "tool_choice names a function, and there are no tools; send tools.", param="tools"
        )
    if call is not None and asked:
        raise ApiError(
            400, f"A call of a tool has no {asked[0][0]}; leave one of them out.", param=asked[0][0]
        )
    for name in FIELDS if chat else (*ALIASES, "response_format", "structured_outputs"):
        given.pop(name, None)
    if call is not None:
        return call
    return AskedForm(_text(*asked[0])) if asked else AskedForm()


def _text(name: str, kind: str, value: Any) -> str:
    try:
        return form_of(kind, value)
    except ValueError as error:
        raise ApiError(400, f"{name} is not possible: it should be {error}.", param=name) from None


def _of_format(value: Any) -> tuple[str, Any]:
    """Kind and value of `response_format`."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "json_schema" and isinstance(value.get("json_schema"), dict):
        return "schema", value["json_schema"].get("schema")
    if kind == "json_object":
        schema = value.get("schema")  # llama.cpp's way
        return ("schema", schema) if schema is not None else ("json_object", True)
    said = 'response_format should be {"type": "text"}, {"type": "json_object"} or {"type": "json_schema",'
    raise ApiError(400, said + ' "json_schema": {"name": "…", "schema": {…}}}.', param="response_format")


def _call(given: Mapping[str, Any], raw: Mapping[str, Any]) -> AskedForm | None:
    """The forced call of a tool; None where the client asks for none."""
    choice = given.get("tool_choice", "auto")
    if choice == "none":
        return None
    functions: dict[str, Mapping[str, Any]] = {}
    for tool in raw["tools"] if isinstance(raw["tools"], list) else [raw["tools"]]:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ApiError(
                400, 'A tool should be {"type": "function", "function": {"name": "…"}}.', param="tools"
            )
        functions[function["name"]] = function
    named = choice.get("function", choice).get("name") if isinstance(choice, dict) else None
    if choice != "required" and named is None:
        raise ApiError(400, AUTO, param="tool_choice")
    if named is not None and named not in functions:
        raise ApiError(
            400, f"tool_choice names {named!r}, which is none of tools; send one.", param="tool_choice"
        )
    if named is None and len(functions) == 1:
        [named] = functions
    chosen = functions if named is None else {named: functions[named]}
    schemas = {name: function.get("parameters") or {"type": "object"} for name, function in chosen.items()}
    about = "".join(
        f"\n{name}: {function.get('description') or 'a function'}\n{json.dumps(schemas[name])}"
        for name, function in chosen.items()
    )
    if named is not None:
        hint = f"\n\nAnswer with the arguments of this function, one JSON object of its schema.{about}"
        return AskedForm(_text("tools", "schema", schemas[named]), named, hint)
    if '"$ref"' in json.dumps(schemas):
        raise ApiError(
            400, "Tools with $ref need a named function; name it in tool_choice.", param="tool_choice"
        )
    calls = [
        {"type": "object", "properties": {"name": {"const": name}, "arguments": schema},
         "required": ["name", "arguments"], "additionalProperties": False}
        for name, schema in schemas.items()
    ]  # fmt: skip
    hint = f'\n\nCall one of these functions: {{"name": …, "arguments": …}}.{about}'
    return AskedForm(_text("tools", "schema", {"anyOf": calls}), "", hint)


class ForcedCall:
    """The call of a tool, whose text comes in pieces. `name`: of the function; "": the text names it."""

    def __init__(self, name: str) -> None:
        self.id, self.name = f"call_{token_hex(12)}", name
        self.named = bool(name)  # by the client
        self._held, self._told = "", False

    def whole(self, text: str) -> dict[str, Any]:
        arguments = self._add(text)
        return {
            "id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}
        }  # fmt: skip

    def delta(self, text: str) -> list[dict[str, Any]]:
        """What a stream sends for a piece of text: `tool_calls`, or nothing yet."""
        arguments = self._add(text)
        if not self.name or (self._told and not arguments):
            return []
        first = {} if self._told else {"id": self.id, "type": "function"}
        function = {"arguments": arguments} if self._told else {"name": self.name, "arguments": arguments}
        self._told = True
        return [{"index": 0, **first, "function": function}]

    def _add(self, text: str) -> str:
        """The next piece of the arguments."""
        if self.named:
            return text
        self._held += text
        if not self.name:
            if (begun := BEGIN.match(self._held)) is None:
                return ""
            self.name, self._held = json.loads(begun[1]), self._held[begun.end() :]
        # the last brace is that of the call
        made, self._held = self._held[:-1], self._held[-1:]
        return made
