"""Prompts for measurements: from files, split into traffic and held-out ones, checked
before anything runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypeVar
from zipfile import is_zipfile

from omnidemo.core.config import check_text
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import Asked, Question, turns_of
from omnidemo.serving.measuring.chat_exports import first_question

LONGEST = 4_000_000  # characters of a line: more than any window holds
MOST_BYTES = 1 << 30  # of a file that is one JSON value
LINE = 'write {"prompt": "…"}, or a chat as {"messages": […]}'
QUESTION_LINE = 'write {"prompt": "…"}, or {"category": "…", "turns": ["…", "…"]}'
Item = TypeVar("Item")
Number = TypeVar("Number", int, float)


def read_prompts(path: Path, limit: int | None = None) -> list[str]:
    """The prompt of each line of a JSON Lines file, or of each entry of a JSON list: its `prompt`, or the
    first question of a chat (`chat_exports.py`). ValueError, with the line's number, for an unusable file."""
    return _read(path, _prompt, LINE, "prompts", limit)


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """The questions of a file of Spec-Bench: JSON Lines with `turns` and `category`; a `prompt` is one turn.
    `limit` takes so many evenly over the file, which is sorted by category. ValueError as `read_prompts`."""
    found = _read(path, _question, QUESTION_LINE, "questions")
    count = len(found) if limit is None else min(limit, len(found))
    return [found[place * len(found) // count] for place in range(count)]


def _read(
    path: Path, item: Callable[[Any], Item | None], form: str, what: str, limit: int | None = None
) -> list[Item]:
    """`item` of each line's JSON value, or of each entry of a file that is one JSON value; None is left out,
    and its ValueError says what is missing. `form`: how to write a line."""
    found: list[Item] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for where, read in _entries(path, file):
                if (one := _item(f"{path}, {where}", read, item, form)) is not None:
                    found.append(one)
                if limit is not None and len(found) >= limit:
                    break
    except UnicodeDecodeError:
        zipped = "unpack it, and give the file of its chats" if is_zipfile(path) else "give a JSON Lines file"
        raise ValueError(f"{path} is not UTF-8 text; {zipped}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a JSON Lines file") from None
    if not found:
        raise ValueError(f"{path} has no {what}; {form} on each line")
    return found


def _entries(path: Path, file: TextIO) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(where it stands, what reads its JSON value) of each."""
    rows = enumerate(iter(lambda: file.readline(LONGEST + 1), ""), 1)
    for number, row in rows:
        begins = row.lstrip()[:1] == "[" or row.strip() == "{"  # of a list, or of one value on many lines
        if number == 1 and begins:
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(f"{path} has more than {MOST_BYTES >> 30} GB; split it")
            whole = partial(json.loads, row + file.read())
            value = _item(str(path), whole, _as_it_is, "mend it, or give JSON Lines")
            for place, one in enumerate(value if isinstance(value, list) else [value], 1):
                yield f"entry {place}", partial(_as_it_is, one)
            return
        if len(row) > LONGEST:
            raise ValueError(
                f"{path}, line {number}: this line has more than {LONGEST:,} characters; give one on"
                " each line"
            )
        if row.strip():
            yield f"line {number}", partial(json.loads, row)


def _as_it_is(value: Any) -> Any:
    return value


def _item(where: str, read: Callable[[], Any], item: Callable[[Any], Item | None], form: str) -> Item | None:
    try:
        return item(read())
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        why = f"this is not JSON ({error.msg.removesuffix(' at')} at {line}column {error.colno}); {form}"
    except RecursionError:
        why = f"this is nested too deeply; {form}"
    except Missing as error:
        why = f"{error}; {form}"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"{where}: {why}")


class Missing(ValueError):
    """A line lacks a field."""


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Missing(f"there is no {what}")
    return check_text(value)


def _prompt(value: Any) -> str | None:
    """None for a chat without a question."""
    if isinstance(value, dict) and "prompt" not in value and (asked := first_question(value)) is not None:
        return asked or None
    return _text(value.get("prompt") if isinstance(value, dict) else value, "prompt")


def _question(value: Any) -> Question:
    if not isinstance(value, dict) or "turns" not in value:
        return Question(
            (_text(value.get("prompt") if isinstance(value, dict) else value, "prompt and no list of turns"),)
        )
    if not isinstance(value["turns"], list) or not value["turns"]:
        raise Missing("there is no list of turns")
    category = value.get("category") or ""
    if not isinstance(category, str):
        raise Missing("the category is no text")
    return Question(
        tuple(_text(turn, "text in one of the turns") for turn in value["turns"]), check_text(category)
    )


def hold_out(found: Sequence[str], given: Sequence[str] | None, count: int) -> tuple[list[str], list[str]]:
    """(traffic, held out) without a common prompt. Held out are `count` of the `given` prompts, taken evenly
    over their list, else the last ones of the file. ValueError where no traffic is left."""
    chosen = list(given if given is not None else list(dict.fromkeys(found))[-count:])
    held = [chosen[index * len(chosen) // count] for index in range(count)] if len(chosen) > count else chosen
    traffic = [prompt for prompt in found if prompt not in set(chosen)]
    if not traffic:
        raise ValueError(
            "every prompt is held out, so that no traffic is left; give more prompts or a smaller"
            " --eval-limit"
        )
    return traffic, held


def numbers(text: str, what: str, kind: Callable[[str], Number] = int) -> list[Number]:
    """The numbers of a list such as "0,1,2", each once. ValueError, which names `what`, for other or no
    text."""
    try:
        found = [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise ValueError(
            f"{what} is {text!r}; give {'whole numbers' if kind is int else 'numbers'} with commas between,"
            " such as 0,1"
        )
    return list(dict.fromkeys(found))


def check_prompts(pair: Pair, found: Iterable[Asked]) -> None:
    """ValueError for a prompt or first turn that the target cannot read."""
    for asked in found:
        prompt = turns_of(asked)[0]
        try:
            pair.prompt_ids(prompt)
        except ValueError as error:
            raise ValueError(f"the prompt {prompt[:40]!r}… cannot be used: {error}") from None


def check_writable(path: Path) -> None:
    """ValueError where an output file cannot be written. It may be a pipe, or a link to a file."""
    path = path if path.exists() else Path(os.path.realpath(path))
    if not path.parent.exists():
        raise ValueError(f"there is no folder {path.parent} for {path.name}; make it, or name another file")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written; name a file in a folder that you may write to")
