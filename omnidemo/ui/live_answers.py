"""The answers of an adapter line, one by one, as the Adaptation tab shows them: tokens a step, whose tokens
they are, acceptance, and where versions were published and rolled back. Before the first answer: a recorded
run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from omnidemo.core.asset_files import ASSETS
from omnidemo.storage.recorded_rounds import finite

MOST = 100  # newest answers of a line
RECORDED = ASSETS / "recorded.json"  # written by `python -m lab recorded-run`
FILM = ("input", "rounds")  # of an answer there: what the page plays before a model is here


def answers_json(rows: Sequence[Mapping[str, Any]], line: str, live: int) -> dict[str, Any]:
    """What the widget `answers` shows of a pair's requests (of `Store.curve`). `line`: the one that is looked
    at; where it has no answer, that of the newest answer is shown. `live`: the version of `line` that drafts
    now.

    answers: oldest first, see `_answer`. marks: `before` is the place of the first answer behind a change of
    version, from 0. recorded: None, or what the recording is of, which stands there where the pair has no
    answer.
    """
    own = [row for row in rows if _line(row) == line]
    if not own and rows:
        line = _line(rows[-1])
        own, live = [row for row in rows if _line(row) == line], -1
    if not own:
        return recorded()
    own = own[-MOST:]
    versions = [int(row.get("adapter_version") or 0) for row in own]
    return {
        "line": line,
        "recorded": None,
        "answers": [_answer(row) for row in own],
        "marks": version_marks(versions if live < 0 else [*versions, live]),
    }


def version_marks(versions: Sequence[int]) -> list[dict[str, Any]]:
    """Changes of the version that drafts, of one answer after another: a later version was published; where
    an earlier one drafts again, the later one was rolled back."""
    found = []
    for place, (last, version) in enumerate(pairwise(versions), start=1):
        if version > last:
            found.append({"before": place, "kind": "published", "version": version})
        elif version < last:
            found.append({"before": place, "kind": "rolled back", "version": last})
    return found


@cache
def recorded() -> dict[str, Any]:
    """The recorded run, in the form of `answers_json`; without answers where the file is missing."""
    try:
        run = json.loads(RECORDED.read_text(encoding="utf-8"))
        about = {name: run[name] for name in ("task", "title", "target", "drafter", "date")}
        versions = [int(one["version"]) for one in run["answers"]]
        return {
            "line": run["task"],
            "recorded": about,
            "answers": [{name: one[name] for name in one if name not in FILM} for one in run["answers"]],
            "marks": version_marks(versions),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {"line": "default", "recorded": None, "answers": [], "marks": []}


def _line(row: Mapping[str, Any]) -> str:
    return row.get("domain") or "default"


def _answer(row: Mapping[str, Any]) -> dict[str, Any]:
    """One answer. number: its place among the line's stored answers. steps: tokens per pass of the target.
    length: mean drafter tokens of a round. speed: measured, times plain decoding.
    alpha: accepted ÷ judged tokens of the drafter. memory, chat, guessed, own: its tokens that were copied
    from an earlier answer, copied from its own prompt and text, guessed by the drafter, written by the
    target itself, and forced by the answer's form; None where the record is older than these counts."""
    counts = [row.get(name) for name in ("tokens", "accepted", "copied", "copied_earlier")]
    shown = {
        "number": row.get("index"),
        "at": row.get("created_at"),
        "tokens": row.get("tokens"),
        "steps": finite(row.get("block_efficiency")),
        "alpha": finite(row.get("alpha")),
        "length": finite(row.get("draft_length")),
        "speed": finite(row.get("speedup")),
        "version": int(row.get("adapter_version") or 0),
    }
    if None in counts:
        return shown | dict.fromkeys(("memory", "chat", "guessed", "own"))
    tokens, accepted, copied, earlier = (int(value or 0) for value in counts)
    forced = int(row.get("forced") or 0)
    return shown | {
        "memory": earlier,
        "chat": copied - earlier,
        "guessed": accepted - copied - forced,
        "own": tokens - accepted,
        "forced": forced,
    }
