"""What the page sends with a question: one JSON object, of which everything is read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from omnidemo.core.config import SAMPLING, GenerationConfig, shown_by
from omnidemo.core.config.refusals import check_text, refusal
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused

MOST_MESSAGES = 400  # of a conversation that are looked at
MOST_SYSTEM = 8_000  # characters of a system prompt
REFUSED = "refuses these messages"  # what `pair/prompt_reader.py` says of a chat template that does

OPTIONS = {"method", "max_new_tokens", "seed", *SAMPLING, *shown_by("page")} - {"learn"}  # of a question
Text = Annotated[str, AfterValidator(check_text)]


class ChatRequest(BaseModel):
    """A question of the page; a field that is missing has its default. `target`, `drafter` and the method of
    `options` are those of the settings where they are empty. `system`: None for the target's. `line`: a topic
    line. `likely`: guess wherever a guess is likely to be right (`Settings.policy`). `ahead`: show drafts
    while they are checked. `options`: of `GenerationConfig`, by name, None for the default; the seed as it
    was typed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    message: Text = ""
    history: list[Any] | None = None
    system: Text | None = None
    run: Text = ""
    target: Text = ""
    drafter: Text = ""
    line: Text | None = None
    learn: bool = True
    keep: bool = True
    likely: bool = False
    ahead: bool = False
    options: dict[str, Any] = {}

    @classmethod
    def of(cls, asked: Mapping[str, Any], fields: Mapping[str, Any] = MappingProxyType({})) -> ChatRequest:
        """The question that was sent, over what the fields of the page say. ValueError, one sentence, for
        what is none."""
        about = {name: value for name, value in fields.items() if name in cls.model_fields}
        options = {name: value for name, value in fields.items() if name not in about}
        given = {str(name): value for name, value in asked.items()}
        if isinstance(own := given.get("options", {}), Mapping):
            given["options"] = {**options, **own}
        try:
            return cls(**(about | given))
        except ValidationError as error:
            raise ValueError(refusal(error)) from None


def conversation(history: Any, message: str, system: Any = None) -> list[dict[str, str]]:
    """The messages of a request, with a system prompt where one was written. `history` comes from the
    browser: anything but the newest user and assistant texts is dropped. `Refused` for a system prompt that
    is too long or no text."""
    messages = read_system(system)
    for item in history[-MOST_MESSAGES:] if isinstance(history, list) else []:
        if (
            isinstance(item, dict)
            and item.get("role") in ("user", "assistant")
            and isinstance(item.get("content"), str)
        ):
            messages.append({"role": item["role"], "content": item["content"]})
    return [*messages, {"role": "user", "content": message}]


def read_system(system: Any) -> list[dict[str, str]]:
    """The system message; none for None, and an empty one leaves it to the chat template."""
    if system is None:
        return []
    if not isinstance(system, str):
        raise Refused("The system prompt is not a text. Empty it, or write one.")
    if len(system) > MOST_SYSTEM:
        raise Refused(
            f"The system prompt has {len(system):,} characters, and this takes at most {MOST_SYSTEM:,};"
            " shorten it."
        )
    return [{"role": "system", "content": system.strip()}]


def with_help(error: Exception, system: str | None) -> Exception:
    """The error; where a chat template refused messages with a system prompt, also what helps: many know
    none."""
    said = str(error)
    helps = f"{said.rstrip('.')}. Empty the system prompt and send the message again."
    return RuntimeError(helps) if system and REFUSED in said else error


def read_seed(value: str | int | None) -> int | None:
    """A whole number from 0 to 2**63 - 1, or None for an empty field; `Refused` says what to write
    instead."""
    shown = "" if value is None else str(value).strip()
    if not shown:
        return None
    if not (shown.isascii() and shown.isdigit() and int(shown) < 2**63):
        raise Refused(
            f"The seed “{shown[:40]}” is not a whole number from 0 up. Correct it under Advanced, or leave it"
            " empty."
        )
    return int(shown)


def read_line(name: str | None) -> str:
    """The topic line of a request: a name, `auto`, or `default` for an empty field."""
    return " ".join(str(name or "").split()) or "default"


def read_options(services: PublicServices, asked: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The options of a question, checked, with the settings' defaults and at most so many tokens. ValueError
    for one that there is not, or that is not possible."""
    settings = services.settings
    given = {name: value for name, value in asked.items() if value not in (None, "")}
    if unknown := sorted(given.keys() - OPTIONS):
        raise ValueError(f"a question has no option {unknown[0][:40]}")
    options = {"method": settings.method, "max_new_tokens": settings.max_new_tokens} | given
    options["seed"] = read_seed(given.get("seed"))
    checked = GenerationConfig.of(**options)
    options["max_new_tokens"] = min(checked.max_new_tokens, most)
    return options


def in_manner(
    services: PublicServices, target: str, drafter: str, options: Mapping[str, Any]
) -> dict[str, float]:
    """SAMPLING by name, of a ready pair: the numbers of `options`, else those of the target's manner."""
    asked = GenerationConfig.of(**{name: options.get(name) for name in SAMPLING}).in_manner(
        services.manner(target, drafter)
    )
    return {name: getattr(asked, name) for name in SAMPLING}
