"""Errors of values, as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError


class ModelError(ValueError):
    """A model that cannot be had or loaded. The message is one sentence: the cause, and what to do next."""


def check_text(text: str) -> str:
    """The text. ValueError where it holds half of a surrogate pair, which bytes outside UTF-8 become on a
    command line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds half a character (a lone surrogate) at position {error.start}; remove it"
        ) from None
    return text


def shortened(text: str, most: int = 160) -> str:
    """A text of any length, for a sentence."""
    return text if len(text) <= most else text[: most - 3] + "..."


def first_line(error: Exception) -> str:
    """The first line of an error, short enough for a sentence."""
    return shortened(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)


@contextmanager
def explained(what: str, step: str) -> Iterator[None]:
    """Turn what a library raises at a boundary into a ModelError of one sentence: `what` failed, why by the
    library's words, and the next `step`. Sentences of ours pass."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        told = getattr(error, "strerror", None) or str(error)  # without the path, which may be long
        said = " ".join(told.split()) or type(error).__name__
        why = f"there is no {said}" if isinstance(error, KeyError) else said
        raise ModelError(f"{what} ({shortened(why.rstrip('.'))}); {step}") from error


def refusal(error: ValidationError, name: str = "") -> str:
    """The first error, as one sentence; `name`: the option's name, if not its own."""
    first = error.errors(include_url=False)[0]
    name = name or str(first["loc"][0] if first["loc"] else "the configuration")
    if first["type"] == "extra_forbidden":
        return f"there is no option {name[:40]}"
    said = re.sub(
        "^Value error, (?!the text)",
        "it should be ",
        re.sub("^(Input|String|List|Tuple) ", "it ", first["msg"]),
    )
    shown = shortened(repr(first["input"]), 40)
    return f"{name} = {shown} is not possible: {said.removeprefix('Value error, ')}"
