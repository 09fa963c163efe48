"""The curve of a repeated task: tokens a step of each answer, and of the same one with less learned. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnidemo.figures.charts import scatter
from omnidemo.figures.layout import ACCENT, Figure, Row, finite, make_figure

SIZE = 12.5  # of labels, in pixels
SHOWN = 10  # answers that there is room for from the beginning
# column of a row → what the page calls its line, colour, dash, width
LINES = {
    "tokens_per_round": ("as it was", ACCENT, "solid", 3.0),
    "empty_memory_tokens_per_round": ("with an empty memory", "#0f766e", "dash", 2.0),
    "fresh_drafter_tokens_per_round": ("with the fresh small model", "#db2777", "dot", 2.0),
}
GAPS = {  # column of the lower edge → the colour between it and what happened
    "empty_memory_tokens_per_round": "rgba(20, 160, 110, 0.24)",
    "fresh_drafter_tokens_per_round": "rgba(219, 39, 119, 0.20)",
}


def task_curve(rows: Sequence[Row], revision: str = "") -> Figure:
    """Three lines over the numbers of the answers, and each gap to what happened filled with colour.

    A trace's `meta` names its column, and the one that has to be known where it has a value, so that a page
    can put further rows in. A row without replays has one point.
    """
    first, now = next(iter(LINES)), list[Any]()
    for column, colour in GAPS.items():  # an edge without ink, and what happened above it, filled down to it
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        now.append(_trace(rows, column, **edge))
        now.append(_trace(rows, first, fill="tonexty", fillcolor=colour, known=column, **edge))
    for column, (name, colour, dash, width) in reversed(LINES.items()):
        look: dict[str, Any] = {
            "mode": "lines+markers",
            "line": {"color": colour, "width": width, "dash": dash},
            "marker": {"color": colour, "size": 5 + width},
            "hovertemplate": f"answer %{{x}}: <b>%{{y:.2f}}</b><extra>{name}</extra>",
        }
        now.append(_trace(rows, column, **look))
    words = {"font": {"size": SIZE}, "standoff": 6}
    start = rows[0]["number"] if rows else 1
    xaxis = {"title": {"text": "answer", **words}, "tickformat": ",d"}
    xaxis |= {"autorangeoptions": {"include": [start, start + SHOWN - 1]}}  # few are not stretched
    yaxis = {"title": {"text": "tokens a step", **words}, "nticks": 6}
    yaxis |= {"autorangeoptions": {"include": [1, 2]}, "tickformat": ".1f"}
    return make_figure(now, revision, font={"color": "#7b8496", "size": SIZE}, xaxis=xaxis, yaxis=yaxis)


def _trace(rows: Sequence[Row], column: str, known: str = "", **look: Any) -> dict[str, Any]:
    """The values of a column; those of `known` alone where that is known, too."""
    values = [
        finite(row.get(column)) if finite(row.get(known or column)) is not None else None for row in rows
    ]
    meta = {"column": column, "known": known or column}
    return scatter([row["number"] for row in rows], values, "", meta=meta, **look)
