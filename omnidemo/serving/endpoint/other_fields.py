"""Fields of a request that are not offered. Known ones are refused, unless their value asks for nothing;
unknown ones are ignored and named in a header."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from omnidemo.serving.endpoint.api_errors import ApiError

# Name → values that ask for nothing, which clients send by default; first OpenAI's, then other servers'.
FIELDS: Mapping[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "logprobs": (False,), "top_logprobs": (0,), "echo": (False,), "suffix": ("",),
    "frequency_penalty": (0,), "presence_penalty": (0,), "logit_bias": ({},), "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"), "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],), "audio": (), "prediction": (), "web_search_options": (),
    "stop_token_ids": ([],), "ignore_eos": (False,), "min_tokens": (0,),
    "include_stop_str_in_output": (False,), "bad_words": ([],),
    "guided_json": (), "guided_regex": (), "guided_choice": (), "guided_grammar": (),
    "structured_outputs": (), "json_schema": (),
    "grammar": ("",), "regex": (), "ebnf": (), "chat_template": (), "chat_template_kwargs": ({},),
    "documents": ([],),
    "add_generation_prompt": (True,), "continue_final_message": (False,), "prompt_logprobs": (),
    "skip_special_tokens": (True,),
    "use_beam_search": (False,), "length_penalty": (1,), "repeat_last_n": (-1,), "typical_p": (1,),
    "tfs_z": (1,), "top_a": (0,),
    "mirostat": (0,), "dry_multiplier": (0,), "xtc_probability": (0,), "allowed_token_ids": (),
    "truncate_prompt_tokens": (),
    "lora": ([],), "samplers": (),
}  # fmt: skip
MESSAGE_FIELDS: Mapping[str, tuple[Any, ...]] = {
    "tool_calls": ([],), "tool_call_id": (), "function_call": (), "audio": (), "prefix": (False,),
}  # fmt: skip
NO_TOOLS = "there are no tools here; leave out their calls and results, or write them into the texts"
HEADER = "X-OmniDemo-Ignored"
MOST_NAMED, LONGEST_NAME = 20, 60  # names in the header, and characters of each
DEEPEST = 8  # levels of a request that are searched for null; no field that is read lies deeper


def without_nulls(value: Any, depth: int = 0) -> Any:
    """The value without fields that are null, which counts as not given."""
    if depth == DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: without_nulls(one, depth + 1) for name, one in value.items() if one is not None}
    return [without_nulls(one, depth + 1) for one in value] if isinstance(value, list) else value


def refuse(given: Mapping[str, Any]) -> None:
    """ApiError 400, one sentence, where a known field that is not offered asks for something."""
    for name, neutral in FIELDS.items():
        if name in given and not _among(given[name], neutral):
            allowed = f" or send {json.dumps(neutral[0])}" if neutral else ""
            raise ApiError(400, f"{name} is not offered here; leave it out{allowed}.", param=name)
    for place, message in enumerate(_messages(given)):
        if message.get("role") in ("tool", "function"):
            raise ApiError(
                400, f"messages.{place} is the result of a tool, and {NO_TOOLS}.", param="messages"
            )
        for name, neutral in MESSAGE_FIELDS.items():
            if name in message and not _among(message[name], neutral):
                of_tools = name.startswith(("tool", "function"))
                why = NO_TOOLS if of_tools else "that is not offered here; leave it out"
                raise ApiError(400, f"messages.{place} has {name}, and {why}.", param="messages")


def header_of_ignored(given: Mapping[str, Any], form: type[BaseModel]) -> dict[str, str]:
    """The header that names the unknown fields of a request; {} where there are none."""
    names = list(dict.fromkeys(_unknown(given, form)))
    if not names:
        return {}
    shown = [quote(name[:LONGEST_NAME], safe=".", errors="replace") for name in names[:MOST_NAMED]]
    return {
        HEADER: ", ".join(
            shown + ([f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])
        )
    }


def _unknown(given: Mapping[str, Any], form: type[BaseModel]) -> Iterator[str]:
    yield from (name for name in given if name not in form.model_fields and name not in FIELDS)
    if isinstance(options := given.get("stream_options"), dict):
        yield from (f"stream_options.{name}" for name in options if name != "include_usage")
    for message in _messages(given):
        yield from (
            f"messages.{name}"
            for name in message
            if name not in ("role", "content") and name not in MESSAGE_FIELDS
        )


def _messages(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = given.get("messages")
    return [one if isinstance(one, dict) else {} for one in messages] if isinstance(messages, list) else []


def _among(value: Any, neutral: tuple[Any, ...]) -> bool:
    """Whether a value is one of these, where 0 differs from false, and 1 from true."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in neutral)
