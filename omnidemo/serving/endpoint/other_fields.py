"""Fields of a request that are not offered: a known one is refused unless its value asks for nothing, an
unknown one is ignored and named in a header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from omnidemo.serving.endpoint.api_errors import ApiError

# values that ask for nothing, which clients send by default, and the known fields with these
NEUTRAL: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((), "audio prediction web_search_options chat_template prompt_logprobs allowed_token_ids"
         " truncate_prompt_tokens samplers"),
    ((False,), "logprobs echo ignore_eos include_stop_str_in_output continue_final_message use_beam_search"),
    ((True,), "add_generation_prompt skip_special_tokens"),
    ((0,), "top_logprobs frequency_penalty presence_penalty min_tokens top_a mirostat dry_multiplier"
           " xtc_probability"),
    ((1,), "n best_of length_penalty typical_p tfs_z"),
    ((-1,), "repeat_last_n"),
    (("",), "suffix"),
    (([],), "tools functions stop_token_ids bad_words documents lora"),
    (({},), "logit_bias chat_template_kwargs"),
    (("none", "auto"), "tool_choice function_call"),
    ((["text"],), "modalities"),
)  # fmt: skip
FIELDS = {name: neutral for neutral, names in NEUTRAL for name in names.split()}
MESSAGE_FIELDS: Mapping[str, tuple[Any, ...]] = {
    "tool_calls": ([],), "tool_call_id": (), "function_call": (), "audio": (), "prefix": (False,),
}  # fmt: skip
NO_TOOLS = "there are no tools here; leave out their calls and results, or write them into the texts"
HEADER = "X-OmniDemo-Ignored"
MOST_NAMED, LONGEST_NAME = 20, 60  # names in the header, and characters of each


def refuse(given: Mapping[str, Any]) -> None:
    """ApiError 400, one sentence, where a known field that is not offered asks for something."""
    for name, value in given.items():
        if _asks(name, value, FIELDS):
            neutral = FIELDS[name]
            allowed = f" or send {json.dumps(neutral[0])}" if neutral else ""
            raise ApiError(400, f"{name} is not offered here; leave it out{allowed}.", param=name)
    for place, message in enumerate(_messages(given)):
        for name, value in message.items():
            why = ""
            if name == "role" and value in ("tool", "function"):
                why = f"is the result of a tool, and {NO_TOOLS}"
            elif _asks(name, value, MESSAGE_FIELDS):
                of_tools = name.startswith(("tool", "function"))
                why = f"has {name}, and {NO_TOOLS if of_tools else 'that is not offered here; leave it out'}"
            if why:
                raise ApiError(400, f"messages.{place} {why}.", param="messages")


def header_of_ignored(given: Mapping[str, Any], form: type[BaseModel]) -> dict[str, str]:
    """The header that names the unknown fields of a request; {} where there are none."""
    options = given.get("stream_options")
    unknown = [name for name in given if name not in form.model_fields and name not in FIELDS]
    unknown += [f"stream_options.{name}" for name in options or () if name != "include_usage"]
    read = {"role", "content", *MESSAGE_FIELDS}
    unknown += [f"messages.{name}" for message in _messages(given) for name in message if name not in read]
    names = list(dict.fromkeys(unknown))
    shown = [quote(name[:LONGEST_NAME], safe=".", errors="replace") for name in names[:MOST_NAMED]]
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return {HEADER: ", ".join(shown + more)} if names else {}


def _messages(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = given.get("messages")
    return [one if isinstance(one, dict) else {} for one in messages] if isinstance(messages, list) else []


def _asks(name: str, value: Any, known: Mapping[str, tuple[Any, ...]]) -> bool:
    """Whether the value of a known field asks for something; 0 differs from false, and 1 from true."""
    return name in known and not any(
        value == one and isinstance(value, bool) == isinstance(one, bool) for one in known[name]
    )
