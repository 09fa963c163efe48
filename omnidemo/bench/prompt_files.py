"""The prompts that are measured: from files or bundled topics, split into traffic and held out. All checks come before a measurement."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from omnidemo.config import check_text
from omnidemo.lines.sample_prompts import prompts
from omnidemo.pair.pair import Pair

Sources = dict[str, list[str]]
LONGEST = 4_000_000  # characters of a line: more than any window holds


def read_prompts(path: Path, limit: int | None = None) -> list[str]:
    """The `prompt` of each line of a JSON Lines file. ValueError, with the line's number, for a file that cannot serve."""
    found: list[str] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, row in enumerate(iter(lambda: file.readline(LONGEST + 1), ""), 1):
                if len(row) > LONGEST:
                    raise ValueError(f"{path}, line {number}: this line has more than {LONGEST:,} characters; give one prompt on each line")
                if row.strip():
                    found.append(_prompt(path, number, row))
                if limit is not None and len(found) >= limit:
                    break
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; give a JSON Lines file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a JSON Lines file with a prompt on each line") from None
    if not found:
        raise ValueError(f'{path} has no prompts; write one {{"prompt": "…"}} on each line')
    return found


def _prompt(path: Path, number: int, row: str) -> str:
    try:
        value = json.loads(row)
    except json.JSONDecodeError as error:
        why = f"this is not JSON ({error.msg} at column {error.colno})"
        raise ValueError(f'{path}, line {number}: {why}; write {{"prompt": "…"}}') from None
    except RecursionError:
        raise ValueError(f'{path}, line {number}: this is nested too deeply; write {{"prompt": "…"}}') from None
    prompt = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError(f'{path}, line {number}: there is no prompt; write {{"prompt": "…"}}')
    try:
        check_text(prompt)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from None
    return prompt


def hold_out(found: Sequence[str], given: Sequence[str] | None, count: int) -> tuple[list[str], list[str]]:
    """(traffic, held out): no prompt is in both. Held out are `count` of the given prompts, else the last ones of the file.

    Given prompts are taken evenly over their list, which may be sorted by topic. ValueError where no traffic would be left.
    """
    chosen = list(given if given is not None else list(dict.fromkeys(found))[-count:])
    held = [chosen[index * len(chosen) // count] for index in range(count)] if len(chosen) > count else chosen
    traffic = [prompt for prompt in found if prompt not in set(chosen)]
    if not traffic:
        raise ValueError("every prompt is held out, so that no traffic is left; give more prompts or a smaller --eval-limit")
    return traffic, held


def bundled(topics: Sequence[str], limit: int) -> tuple[Sources, Sources]:
    """(traffic, held out) of bundled topics: the prompts to distil from, and the first `limit` of those to test with.
    ValueError for an unknown topic."""
    held = {topic: list(dict.fromkeys(prompts(topic)))[:limit] for topic in topics}
    traffic = {topic: [one for one in dict.fromkeys(prompts(topic, "train")) if one not in held[topic]] for topic in topics}
    return traffic, held


def files(paths: Sequence[Path], limit: int) -> tuple[Sources, Sources]:
    """(traffic, held out) of JSON Lines files, a topic each, named after the file: its last `limit` prompts are held out.
    ValueError for a file that cannot serve, and for two of one name."""
    traffic: Sources = {}
    held: Sources = {}
    for path in paths:
        if path.stem in traffic:
            raise ValueError(f"two prompt files are called {path.stem}; rename one, as the name stands for the topic")
        found, held[path.stem] = hold_out(read_prompts(path), None, limit)
        traffic[path.stem] = list(dict.fromkeys(found))
    return traffic, held


def numbers(text: str, what: str) -> list[int]:
    """The whole numbers of a list such as "0,1,2", each once. ValueError, which names `what`, for other text, or none."""
    try:
        found = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise ValueError(f"{what} is {text!r}; give whole numbers with commas between, such as 2,4,8")
    return list(dict.fromkeys(found))


def check_prompts(pair: Pair, found: Iterable[str]) -> None:
    """ValueError for a prompt that the target cannot read."""
    for prompt in found:
        try:
            pair.prompt_ids(prompt)
        except ValueError as error:
            raise ValueError(f"the prompt {prompt[:40]!r}… cannot be used: {error}") from None


def check_writable(path: Path) -> None:
    """Make the folder of an output file; ValueError where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder of {path} cannot be made ({error.strerror}); name another file") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written; name a file in a folder that you may write to")
