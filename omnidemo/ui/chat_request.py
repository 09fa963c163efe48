"""What the page sends with a question: conversation, system prompt, seed, topic line and numbers, read and
checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnidemo.core.config import SAMPLING, GenerationConfig
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused

MOST_MESSAGES = 400  # of a conversation that are looked at
MOST_SYSTEM = 8_000  # characters of a system prompt
REFUSED = "refuses these messages"  # what `pair/prompt_reader.py` says of a chat template that does


def conversation(history: Any, message: str, system: Any = "") -> list[dict[str, str]]:
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
    """The system message, none for an empty text: then the chat template says what it says by itself."""
    if not isinstance(system, str):
        raise Refused("The system prompt is not a text. Empty it, or write one.")
    if len(system) > MOST_SYSTEM:
        raise Refused(
            f"The system prompt has {len(system):,} characters, and this takes at most {MOST_SYSTEM:,};"
            " shorten it."
        )
    return [{"role": "system", "content": system.strip()}] if system.strip() else []


def refusal(said: str, system: str) -> str:
    """The sentence of an error; where a chat template refused messages with a system prompt, also what helps:
    many know none."""
    return (
        f"{said.rstrip('.')}. Empty the system prompt and send the message again."
        if system and REFUSED in said
        else said
    )


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


def in_manner(
    services: PublicServices, target: str, drafter: str, given: Sequence[float | None]
) -> dict[str, float]:
    """SAMPLING by name, of a ready pair: the given numbers, else those of the target's manner. ValueError for
    one that is not possible."""
    asked = GenerationConfig.of(**dict(zip(SAMPLING, given, strict=True))).in_manner(
        services.manner(target, drafter)
    )
    return {name: getattr(asked, name) for name in SAMPLING}
