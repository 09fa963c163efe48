"""What an answer may be held to, as JSON text of one entry: it travels with the options of an answer."""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 64 << 10
FORMS = {
    "schema": "a JSON schema: an object, or its JSON text",
    "regex": "a regular expression, a text",
    "choices": "a list of at least one text, none of them empty",
    "json_object": "true",
    "grammar": "a grammar, a text",
}  # kind → what it has to be


def form_of(kind: str, wanted: Any) -> str:
    """The text of a form. ValueError, which completes "it should be", where it is none."""
    if kind == "schema" and isinstance(wanted, str):
        wanted = _read(wanted, FORMS[kind])
    if kind == "choices" and isinstance(wanted, tuple):
        wanted = list(wanted)
    try:
        return check_form(json.dumps({kind: wanted}, allow_nan=False))
    except (TypeError, RecursionError):
        raise ValueError(FORMS[kind]) from None


def check_form(text: str) -> str:
    """The text of a form. ValueError where it is none."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"a form of at most {MOST_BYTES >> 10} KB")
    form = _read(text, "JSON text of one entry")
    if not isinstance(form, dict) or len(form) != 1 or not form.keys() <= FORMS.keys():
        raise ValueError(f"JSON text of one entry, one of {', '.join(FORMS)}")
    [(kind, wanted)] = form.items()
    good = {
        "schema": isinstance(wanted, dict),
        "choices": isinstance(wanted, list) and all(isinstance(one, str) and one for one in wanted or [0]),
        "json_object": wanted is True,
    }.get(kind, isinstance(wanted, str) and bool(wanted))
    if not good:
        raise ValueError(FORMS[kind])
    return text


def _read(text: str, wanted: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{wanted}, nested less deep") from None
    except ValueError as error:
        raise ValueError(f"{wanted}, and this is no JSON: {error}") from None
