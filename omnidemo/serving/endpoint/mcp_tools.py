"""The two tools of the MCP server: arguments, results and functions, without the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from threading import Event
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, create_model

from omnidemo.core.answer_figures import figures_of
from omnidemo.core.config import shown_by
from omnidemo.core.metrics import Lengths
from omnidemo.core.records import Generation, Round
from omnidemo.decoding.methods import BASELINE, METHODS
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.endpoint import other_fields
from omnidemo.serving.endpoint.answer_format import REASONS, fingerprint, sources
from omnidemo.serving.endpoint.answer_response import EARLY
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.endpoint.api_routes import Endpoint
from omnidemo.serving.endpoint.model_ids import ALIAS
from omnidemo.serving.endpoint.request_body import (
    ChatMessage,
    ChatRequest,
    OwnOptions,
    Seed,
    Temperature,
    Tokens,
    checked,
    with_options,
)
from omnidemo.serving.public_services import PublicServices

Tell = Callable[[int, int], Awaitable[None]]  # (done, total)
MODEL = "target@drafter:line, a target alone, or omnidemo for the pair that this server is set to."
METHOD = f"Decoding method: {', '.join(METHODS)}, or auto."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    max_new_tokens: Tokens = Field(128, description="Longest answer, in tokens of the target.")
    model: str = Field(ALIAS, max_length=1000, description=MODEL)


@with_options("mcp")
class GenerateArguments(Arguments):
    prompt: str | None = Field(None, description="What to answer. Give this, or messages.")
    messages: list[ChatMessage] | None = Field(
        None, min_length=1, description="A conversation to answer, oldest message first."
    )
    seed: Seed = Field(None, description="Repeats an answer while system_fingerprint is the same.")
    method: str = Field("", max_length=100, description=f"{METHOD} Empty: the server's.")
    token_sources: StrictBool = Field(False, description="List each token with its source.")


class CompareArguments(Arguments):
    temperature: Temperature = Field(
        0.0, description="0 is greedy decoding. Top-p and the like are the model's own."
    )
    prompt: str = Field(description="What every method answers.")
    methods: Annotated[list[str], Field(max_length=len(METHODS) + 1)] = Field(
        [], description=f"{METHOD} Empty: {BASELINE}, which is the target alone, and the server's method."
    )
    seed: Seed = Field(0, description="The same for every method.")


class TokenSource(BaseModel):
    id: int
    text: str
    source: str
    match: dict[str, int | str] | None = Field(
        None,
        description=(
            "Of a copied token: how many tokens before it agreed (length), with what (origin: prompt, answer,"
            " earlier)."
        ),
    )


def with_figures(form: type[BaseModel]) -> type[BaseModel]:
    """The form with the figures of `core/answer_figures.py`, each null where it is undefined."""
    numbers: dict[str, Any] = {
        figure.mcp or figure.name: (float | None, Field(description=figure.help))
        for figure in figures_of("mcp")
    }
    return create_model(form.__name__, __base__=form, __doc__=form.__doc__, **numbers)


@with_figures
class Figures(BaseModel):
    """Figures of one answer."""

    method: str
    text: str
    tokens: int = Field(description="Tokens of the target that were written.")
    acceptance_by_position: list[float] = Field(
        description=(
            "Share of the proposals accepted at each position of a draft, of those with all before it"
            " accepted; copies included."
        )
    )
    passes_by_tokens: list[int] = Field(description="How many passes of the target wrote 0, 1, 2 … tokens.")
    sources: dict[str, int] = Field(
        description=(
            "Tokens by where they came from: direct and ngram were guessed by the drafter and accepted,"
            " copied stood in the text or in an earlier answer and was accepted, corrected replaced a"
            " rejected guess or was written where none could be made, bonus followed accepted ones, plain had"
            " no guess."
        )
    )
    finish_reason: Literal["stop", "length"]


class GenerateResult(Figures):
    model: str
    adapter_version: int = Field(description="Version of the drafter's adapter; 0 has learned nothing.")
    system_fingerprint: str
    token_sources: list[TokenSource] | None = None


class Compared(Figures):
    speedup: float | None = Field(
        description=f"Tokens per second over those of {BASELINE}; null where that did not run."
    )
    identical: bool | None = Field(
        description=(
            f"Whether the tokens equal those of {BASELINE}; null above temperature 0 by lossy methods and"
            " block-verification."
        )
    )


class CompareResult(BaseModel):
    model: str
    results: list[Compared]


async def generate(
    endpoint: Endpoint, front: PublicServices, given: dict[str, Any], tell: Tell | None
) -> GenerateResult:
    """An answer with its figures; the drafter learns from it as from a chat. ApiError, ValueError or Refused,
    one sentence."""
    other_fields.refuse({"messages": given.get("messages")})
    asked = checked(GenerateArguments, given, f"this tool takes {', '.join(GenerateArguments.model_fields)}")
    if (asked.prompt is None) == (asked.messages is None):
        raise ApiError(
            400,
            'Give either prompt, a text, or messages, a list such as [{"role": "user", "content": "Hello"}].',
        )
    messages = asked.messages or [ChatMessage(role="user", content=asked.prompt or "")]
    options = {name: getattr(asked, name) for name in shown_by("mcp")}
    own = {name: options.pop(name) for name in shown_by("own") if name in options}
    request = ChatRequest(
        messages=messages, max_tokens=asked.max_new_tokens, seed=asked.seed,
        omnidemo=OwnOptions(method=asked.method, **own), **options,
    )  # fmt: skip
    model = await endpoint.ready(front, asked.model)
    begin = endpoint.plan(front, model, request, [message.plain() for message in messages])
    written, wanted = 0, Generation if tell is None else None
    with closing(endpoint.slots.start(endpoint.counted_as(front), begin, wanted)) as work:
        async for items in work:
            for item in items:
                if isinstance(item, Generation):
                    shown = sources(token for done in item.rounds for token in done.tokens)
                    return GenerateResult(
                        **_figures(item), model=model.written(front.settings),
                        adapter_version=item.adapter_version, system_fingerprint=fingerprint(item),
                        token_sources=shown if asked.token_sources else None,
                    )  # fmt: skip
                if tell is not None and isinstance(item, Round):
                    written += len(item.tokens)
                    await tell(written, asked.max_new_tokens)
    raise EARLY


async def compare(
    endpoint: Endpoint, front: PublicServices, given: dict[str, Any], tell: Tell | None
) -> CompareResult:
    """One prompt answered by several methods in turn; nothing is learned from it. Errors as `generate`."""
    asked = checked(CompareArguments, given, f"this tool takes {', '.join(CompareArguments.model_fields)}")
    if not asked.prompt.strip():
        raise ApiError(400, "The prompt is empty; write what every method shall answer.")
    model = await endpoint.ready(front, asked.model)
    methods = list(dict.fromkeys(asked.methods or [BASELINE, front.settings.method]))
    results: list[Compared] = []

    def begin(cancel: Event) -> Iterator[Comparison]:
        return front.compare(
            target=model.target, drafter=model.drafter, prompts=[asked.prompt], methods=methods,
            max_new_tokens=asked.max_new_tokens,
            temperature=asked.temperature, seed=asked.seed, cancel=cancel, domain=model.line or None,
        )  # fmt: skip

    with closing(endpoint.slots.start(endpoint.counted_as(front), begin)) as work:
        async for items in work:
            for one in items:
                figures = _figures(one.generation) | {"method": one.method}
                results.append(Compared(**figures, speedup=one.speedup, identical=one.identical))
                if tell is not None:
                    await tell(len(results), len(methods))
    return CompareResult(model=model.written(front.settings), results=results)


def _figures(made: Generation) -> dict[str, Any]:
    lengths = Lengths.of(made.rounds)
    return {
        "method": made.method,
        "text": made.text,
        "tokens": len(made.token_ids),
        **{figure.mcp or figure.name: made.metrics.get(figure.name) for figure in figures_of("mcp")},
        "acceptance_by_position": lengths.by_position,
        "passes_by_tokens": list(lengths.rounds),
        "sources": dict(Counter(token.source for done in made.rounds for token in done.tokens)),
        "finish_reason": REASONS[made.finish_reason],
    }
