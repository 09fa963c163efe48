"""The JSON of a request, read and checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    StrictBool,
    ValidationError,
    create_model,
)

from omnidemo.core.config import (
    SAMPLING,
    GenerationConfig,
    Settings,
    answer_options,
    option_of,
    refusal,
    shown_by,
    type_of,
)
from omnidemo.models.chat_template import text_of
from omnidemo.serving.endpoint import asked_form, other_fields
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.endpoint.model_ids import ALIAS

COMPLETION_TOKENS = 16  # OpenAI's default for /v1/completions
Form = TypeVar("Form", bound=BaseModel)
Asked = TypeVar("Asked", bound="AnswerRequest")
SEEDS = 2**63
LEAST_TOP_P = 1e-6
DEEPEST = 8  # levels of a request that are searched for null; no field that is read lies deeper
OTHER_NAMES = {"repeat_penalty": "repetition_penalty"}  # what other servers call a field


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number")
    return value


def _read_as(instead: Any, sent: int) -> BeforeValidator:
    """What clients of other servers send, read as a value of ours."""
    return BeforeValidator(lambda value: instead if value == sent else value)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _prompt(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise ValueError("one text; send a request for each prompt")
    return value


Number = BeforeValidator(_number)  # pydantic takes true for 1
# −1 switches top-k off and asks for no limit and no seed, as in other servers; OpenAI takes a top-p of 0 for
# the likeliest token alone. Other negative seeds become positive ones.
HABITS = {"top_k": _read_as(0, -1), "top_p": _read_as(LEAST_TOP_P, 0)}
Tokens = Annotated[answer_options.Tokens, Number]
Most = Annotated[Tokens | None, _read_as(None, -1)]
Temperature = Annotated[answer_options.Temperature, Number]
Seed = Annotated[
    Annotated[int, Number, Field(ge=-SEEDS, lt=SEEDS), AfterValidator(lambda seed: seed % SEEDS)] | None,
    _read_as(None, -1),
]


def with_options(way: str, table: type[BaseModel] = GenerationConfig) -> Callable[[type[Form]], type[Form]]:
    """A decorator that adds to a form every option that is shown that way (`Option.shown`), by default None.
    A field that the form declares itself stays."""

    def extend(form: type[Form]) -> type[Form]:
        fields: dict[str, Any] = {}
        for name, field in shown_by(way, table).items():
            if name in form.model_fields:
                continue
            kind = type_of(field)
            if field.annotation is bool:
                kind = Annotated[kind, Strict()]
            elif name in HABITS:
                kind = Annotated[kind, HABITS[name], Number]
            else:
                kind = Annotated[kind, Number]
            server = "as the server has it" if name in Settings.model_fields else str(field.default)
            without = "the model's own" if name in SAMPLING else server
            said = f"{option_of(field).help}. Left out: {without}."
            fields[name] = (kind | None, Field(None, description=said))
        return create_model(
            form.__name__, __base__=form, __module__=form.__module__, __doc__=form.__doc__, **fields
        )

    return extend


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(text_of)] = ""

    def plain(self) -> dict[str, str]:
        return {"role": "system" if self.role == "developer" else self.role, "content": self.content}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: StrictBool = False


@with_options("own")
class OwnOptions(BaseModel):
    """The field `omnidemo` of a request. token_sources: return each token with its source. method: a decoding
    method; "": that of the settings. learn, keep: learn from the answer, and record it in the history. All
    others, such as `copying`, are options of the answer."""

    model_config = ConfigDict(extra="forbid")

    token_sources: StrictBool = False
    method: str = Field("", max_length=100)
    learn: StrictBool = True
    keep: StrictBool = True


class CompletionOptions(OwnOptions):
    """control_tokens: read names of control tokens in the prompt as such tokens, for clients that fill in a
    chat template themselves."""

    control_tokens: StrictBool = False


@with_options("endpoint")
class AnswerRequest(BaseModel):
    """The fields of chats and completions; `other_fields.py` handles all others."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: str = ALIAS
    stream: StrictBool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: Most = None
    max_completion_tokens: Most = None
    stop: Annotated[list[str], Field(max_length=64), BeforeValidator(_listed)] = []
    seed: Seed = None
    omnidemo: OwnOptions = OwnOptions()
    EXAMPLE: ClassVar = '{"model": "omnidemo", "prompt": "Once upon a time"}'
    _ignored: dict[str, str] = PrivateAttr(default_factory=dict)
    _form: asked_form.AskedForm = PrivateAttr(default_factory=asked_form.AskedForm)

    @property
    def call(self) -> str | None:
        """As `AskedForm.call`."""
        return self._form.call

    @property
    def headers(self) -> dict[str, str]:
        """Response headers about the request: which fields were ignored."""
        return self._ignored

    @property
    def options(self) -> dict[str, Any]:
        """The options of the answer that the client has given."""
        values = {name: getattr(self, name) for name in shown_by("endpoint")}
        values |= {name: getattr(self.omnidemo, name) for name in shown_by("own")}
        values |= {"form": self._form.form or None}
        optional = {name for name, field in GenerationConfig.model_fields.items() if field.default is None}
        return {name: value for name, value in values.items() if value not in (None, "") or name in optional}

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def control_tokens(self) -> bool:
        return isinstance(self.omnidemo, CompletionOptions) and self.omnidemo.control_tokens


class ChatRequest(AnswerRequest):
    """POST /v1/chat/completions."""

    EXAMPLE: ClassVar = '{"model": "omnidemo", "messages": [{"role": "user", "content": "Hello"}]}'
    messages: Annotated[list[ChatMessage], Field(min_length=1)]


class CompletionRequest(AnswerRequest):
    """POST /v1/completions: a text that is continued without a chat template."""

    prompt: Annotated[str, BeforeValidator(_prompt)]
    omnidemo: CompletionOptions = CompletionOptions()

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens or COMPLETION_TOKENS


def read(body: bytes, form: type[Asked]) -> Asked:
    """Read and check a request. ApiError 400, one sentence, for a wrong one."""
    given = object_of(body, form.EXAMPLE)
    for other, name in OTHER_NAMES.items():
        if other in given and given.setdefault(name, given[other]) != given[other]:
            raise ApiError(
                400,
                f"{other} and {name} are one option, and have two values here; leave one of them out.",
                param=other,
            )
        given.pop(other, None)
    wanted = asked_form.take(given, json.loads(body), issubclass(form, ChatRequest))
    other_fields.refuse(given)
    asked = checked(form, given, f"send an object such as {form.EXAMPLE}")
    asked._form = wanted
    if wanted.hint and isinstance(asked, ChatRequest):
        asked.messages[-1].content += wanted.hint
    asked._ignored = other_fields.header_of_ignored(given, form)
    return asked


def object_of(body: bytes, example: str) -> dict[str, Any]:
    """The JSON object of a body, without its nulls."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:  # bytes that are no text are a ValueError too
        why = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise ApiError(400, f"The body is not JSON ({why}); send an object such as {example}.") from None
    if not isinstance(given, dict):
        raise ApiError(400, f"The body is not a JSON object; send one such as {example}.")
    return dict(without_nulls(given))


def checked(form: type[Form], given: Mapping[str, Any], instead: str) -> Form:
    """The fields of a client as a form; null counts as not given. ApiError 400 names the wrong field, the
    reason, and what to do `instead`."""
    try:
        return form.model_validate(without_nulls(dict(given)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        said = f"{name} is missing" if first["type"] == "missing" else refusal(error, name)
        raise ApiError(400, f"{said}; {instead}.", param=str(first["loc"][0])) from None


def without_nulls(value: Any, depth: int = 0) -> Any:
    """The value without fields that are null, which counts as not given."""
    if depth == DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: without_nulls(one, depth + 1) for name, one in value.items() if one is not None}
    return [without_nulls(one, depth + 1) for one in value] if isinstance(value, list) else value
