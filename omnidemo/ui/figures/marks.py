"""Changes over the requests that a figure marks: new adapters, targets and topics; and which requests may be
compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from omnidemo.ui.figures.layout import ACCENT, DASHED, INK, Row, escape

TOPIC = "#b45309"  # of a change of topic, to differ from a new adapter
PLOT, LETTER = 300.0, 7.0  # width of a narrow plot, and of a letter of its labels, in pixels
STRETCH = 3  # requests of one topic in a row that make a stretch
MOST_CHANGES = 16  # more changes of topic are mixed traffic, whose marks would cover the chart


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line between two points: an adapter swap, a roll-back, a target switch or a topic shift."""

    x: float
    label: str
    kind: str  # swap, rollback, target, topic


def marks(rows: Sequence[Row]) -> list[Mark]:
    """The newest adapter swap of each line, roll-backs, target switches and changes of topic, of requests in
    order; x counts from 1.

    Every target and domain has its own adapter line: a swap is a change against the last request of the same
    line, and a version below the one before is a roll-back. A change of topic is one of the router's label,
    once STRETCH requests in a row have it.
    """
    found: list[Mark] = []
    versions: dict[Any, int] = {}
    newest: dict[Any, Mark] = {}
    changed = topic_changes([row.get("topic") for row in rows])
    changed = changed if len(changed) <= MOST_CHANGES else {}
    for x, (before, row) in enumerate(zip([None, *rows], rows, strict=False), start=1):
        line, version = (row.get("target"), row.get("domain")), int(row.get("adapter_version") or 0)
        if before is not None and before.get("target") != row.get("target"):
            found.append(Mark(x - 0.5, str(row.get("target")), "target"))
        elif x - 1 in changed:
            found.append(Mark(x - 0.5, f"{changed[x - 1]} → {row.get('topic')}", "topic"))
        last = versions.get(line, version)
        if version > last:
            newest[line] = Mark(x - 0.5, f"v{version}", "swap")
        elif version < last:
            found.append(Mark(x - 0.5, f"↩ v{version}", "rollback"))
        versions[line] = version
    return sorted([*found, *newest.values()], key=lambda mark: mark.x)


def topic_changes(topics: Sequence[Any]) -> dict[int, Any]:
    """Index at which a stretch of another topic begins → the topic before. A stretch has STRETCH requests."""
    found: dict[int, Any] = {}
    place, before = 0, None
    for topic, group in groupby(topics):
        length = len(list(group))
        if topic is not None and length >= STRETCH and topic != before:
            if before is not None:
                found[place] = before
            before = topic
        place += length
    return found


def scope(row: Row) -> tuple[Any, ...]:
    """The scope within which figures of requests may be compared: target, line, topic, method, draft policy
    and temperature."""
    return tuple(row.get(key) for key in ("target", "domain", "topic", "method", "policy", "temperature"))


def comparable(rows: Sequence[Row]) -> list[Row]:
    """The requests that the newest one may be compared with, itself included."""
    return [row for row in rows if scope(row) == scope(rows[-1])] if rows else []


def apart(found: Sequence[Mark], end: float) -> list[Mark]:
    """Marks whose labels do not run into each other on a plot from 0 to `end`, the newest first."""
    kept: list[Mark] = []
    left = math.inf  # where the label to the right begins
    for mark in reversed(found):
        half = end * LETTER * (len(mark.label) + 1) / 2 / PLOT
        if mark.x + half <= left:
            kept.append(mark)
            left = mark.x - half
    return kept[::-1]


def mark_layout(found: Sequence[Mark], end: float, base: float | None = None) -> dict[str, Any]:
    """Shapes and annotations of the marks, as parts of the layout of a figure whose x axis goes from 0 to
    `end`."""
    dashes = {"swap": "dot", "rollback": "dot", "target": "solid", "topic": "dash"}
    colour = {"swap": ACCENT, "rollback": "#e5484d", "target": INK, "topic": TOPIC}
    shapes: list[dict[str, Any]] = [
        {
            "type": "line",
            "x0": m.x,
            "x1": m.x,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "opacity": 0.55,
            "layer": "below",
        }
        | {"line": {"color": colour[m.kind], "width": 1, "dash": dashes[m.kind]}}
        for m in found
    ]
    if base is not None:
        shapes.append(
            {
                "type": "line",
                "x0": 0,
                "x1": 1,
                "xref": "paper",
                "y0": base,
                "y1": base,
                "opacity": 0.6,
                "line": DASHED,
            }
        )
    # Labels stand in the margin above the plot, where no curve runs.
    place = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return {
        "shapes": shapes,
        "annotations": [
            place | {"x": m.x, "text": escape(m.label), "font": {"size": 12, "color": colour[m.kind]}}
            for m in apart(found, end)
        ],
    }
