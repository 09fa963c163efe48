"""The curve of a repeated task: tokens a step of each answer, and of the same one with less learned. Pure."""

from __future__ import annotations

from typing import Any

from omnidemo.ui.figures.layout import ACCENT, INK, Figure, make_figure

EMPTY: dict[str, Any] = {"type": "scatter", "x": [], "y": [], "name": ""}
SIZE = 12.5  # of labels, in pixels
# column of a row → what the page calls its line, colour, dash, width
LINES = {
    "tokens_per_round": ("as it was", ACCENT, "solid", 3.0),
    "empty_memory_tokens_per_round": ("with an empty memory", "#0d9488", "dash", 2.0),
    "fresh_drafter_tokens_per_round": ("with the fresh small model", "#db2777", "dot", 2.0),
}
GAPS = {  # column of the lower edge → the colour between it and what happened
    "empty_memory_tokens_per_round": "rgba(20, 160, 110, 0.24)",
    "fresh_drafter_tokens_per_round": "rgba(219, 39, 119, 0.20)",
}


def task_curve() -> Figure:
    """Three lines over the numbers of the answers, and the gaps that learning makes between the first and the
    others, filled with colour; without points. A page puts them in: the `meta` of a trace names the column of
    its line, or that of the lower edge of its gap."""
    traces: list[dict[str, Any]] = [
        EMPTY
        | {
            "meta": {"below": column}, "mode": "lines", "line": {"width": 0}, "fill": "toself",
            "fillcolor": colour, "hoverinfo": "skip",
        }
        for column, colour in GAPS.items()
    ]  # fmt: skip
    for column, (name, colour, dash, width) in reversed(LINES.items()):
        look: dict[str, Any] = {
            "mode": "lines+markers",
            "line": {"color": colour, "width": width, "dash": dash},
            "marker": {"color": colour, "size": 5 + width},
            "hovertemplate": f"answer %{{x}}: <b>%{{y:.2f}}</b><extra>{name}</extra>",
        }
        traces.append(EMPTY | {"meta": {"column": column}} | look)
    words = {"font": {"size": SIZE}, "standoff": 6}
    xaxis = {"title": {"text": "answer", **words}, "tickformat": ",d"}
    yaxis = {"title": {"text": "tokens a step", **words}, "nticks": 6, "tickformat": ".1f"}
    yaxis |= {"autorangeoptions": {"include": [1, 2]}}
    return make_figure(traces, "task", font={"color": INK, "size": SIZE}, xaxis=xaxis, yaxis=yaxis)
