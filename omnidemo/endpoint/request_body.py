"""What a client asks for: the JSON of a request, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from omnidemo.config import refusal
from omnidemo.endpoint.api_errors import ApiError
from omnidemo.endpoint.model_ids import ALIAS

COMPLETION_TOKENS = 16  # OpenAI's default for /v1/completions
# Fields that are not offered, each with the values that change nothing, which clients send by default. Any other value is refused.
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "logprobs": (False,), "top_logprobs": (0,), "echo": (False,), "suffix": ("",),
    "frequency_penalty": (0,), "presence_penalty": (0,), "logit_bias": ({},), "tools": ([],), "functions": ([],),
    "tool_choice": ("none", "auto"), "response_format": ({"type": "text"},), "modalities": (["text"],), "audio": (),
}  # fmt: skip
Form = TypeVar("Form", bound=BaseModel)
Asked = TypeVar("Asked", bound="AnswerRequest")


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _top_k(value: Any) -> Any:
    return 0 if value == -1 else value  # how some clients switch it off


def _content(value: Any) -> Any:
    """A message's content: a text, or text parts, which are joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return "".join(part["text"] for part in value)
    raise ValueError("a text or a list of text parts; there is nothing here that reads images, sounds or files")


def _prompt(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise ValueError("one text; send a request for each prompt")
    return value


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_content)] = ""

    def plain(self) -> dict[str, str]:
        return {"role": "system" if self.role == "developer" else self.role, "content": self.content}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class OwnOptions(BaseModel):
    """Our own field of a request.

    token_sources: have each token with its source. method: a decoding method in place of the settings'. copying: whether drafts may also be
    copied, in place of the settings'. learn, keep: whether the answer is learned from, and recorded in the history.
    """

    model_config = ConfigDict(extra="forbid")

    token_sources: bool = False
    method: str = Field("", max_length=100)
    copying: bool | None = None
    learn: bool = True
    keep: bool = True


class AnswerRequest(BaseModel):
    """The fields that chats and completions share. Unknown ones are ignored; those of `NEUTRAL` are refused if they ask for something."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: str = ALIAS
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    # Where a client says nothing of them the target's own manner holds. The last three are not OpenAI's; other servers take them too.
    temperature: float | None = Field(None, ge=0, le=100)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: Annotated[int, BeforeValidator(_top_k), Field(ge=0, le=10_000_000)] | None = None
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, ge=0.01, le=100)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    stop: Annotated[list[str], BeforeValidator(_texts), Field(max_length=64)] = []
    seed: int | None = Field(None, ge=0, lt=2**63)
    omnidemo: OwnOptions = OwnOptions()

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class ChatRequest(AnswerRequest):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]


class CompletionRequest(AnswerRequest):
    """POST /v1/completions: a text that is continued as it stands, without a chat template."""

    prompt: Annotated[str, BeforeValidator(_prompt)]

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens or COMPLETION_TOKENS


def read(body: bytes, form: type[Asked]) -> Asked:
    """The request. ApiError 400, one sentence, for what is none."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:  # also bytes that are no text
        why = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ApiError(400, f"The body is not JSON ({why}); send an object such as {form_example(form)}.") from None
    if not isinstance(given, dict):
        raise ApiError(400, f"The body is not a JSON object; send one such as {form_example(form)}.")
    for name, harmless in NEUTRAL.items():
        if given.get(name) is not None and not any(given[name] == value for value in harmless):
            allowed = f" or send {json.dumps(harmless[0])}" if harmless else ""
            raise ApiError(400, f"{name} is not offered here; leave it out{allowed}.", param=name)
    return checked(form, given, f"send an object such as {form_example(form)}")


def checked(form: type[Form], given: Mapping[str, Any], instead: str) -> Form:
    """What a client sent, as that form; null is as good as nothing. ApiError 400: which field is wrong, why, and what to do `instead`."""
    try:
        return form.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        said = f"{name} is missing" if first["type"] == "missing" else refusal(error, name)
        raise ApiError(400, f"{said}; {instead}.", param=str(first["loc"][0])) from None


def form_example(form: type[AnswerRequest]) -> str:
    if issubclass(form, ChatRequest):
        return '{"model": "omnidemo", "messages": [{"role": "user", "content": "Hello"}]}'
    return '{"model": "omnidemo", "prompt": "Once upon a time"}'
