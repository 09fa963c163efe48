"""Colours and frame of all figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import plotly

# served to the browser by the app, without a CDN
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
Figure = dict[str, Any]
# Half-transparent greys read on white and on black; the page replaces the text colour by its own.
INK = "#7b8496"
GRID = "rgba(128,138,156,0.18)"
CLEAR = "rgba(0,0,0,0)"
ACCENT = "#6366f1"
# Distinguishable with every kind of colour vision; a chart names its series in words, too.
PALETTE = (ACCENT, "#b45309", "#0f766e", "#db2777", "#64748b", "#0284c7", "#7c3aed", "#65a30d")
METHOD_COLOURS = {
    "fresh": "#d97706",
    "ngram-exact": ACCENT,
    "ngram-merge": "#b45309",
    "token-intersection": "#0f766e",
    "block-verification": "#a16207",
    "typical-acceptance": "#dc2626",  # red: not lossless
    "string-exact-match": "#7c3aed",
    "string-rejection": "#be185d",
    "union": "#4d7c0f",
    "speculative": "#0369a1",
    "copy": "#0e7490",
    "autoregressive": "#64748b",
}


def make_figure(traces: Iterable[Any], revision: str, **layout: Any) -> Figure:
    """A transparent figure; `uirevision` keeps the reader's zoom over updates. Axes are given as `xaxis`,
    `yaxis`."""
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "ticks": "", "automargin": True}
    base: dict[str, Any] = {
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"color": INK, "size": 12},
        "margin": {"l": 8, "r": 8, "t": 18, "b": 8},
        "hovermode": "closest",
        "showlegend": False,
        "uirevision": revision,
        "dragmode": "zoom",
    }
    axes = {name: axis | layout.pop(name, {}) for name in ("xaxis", "yaxis")}
    return {"data": list(traces), "layout": base | axes | layout}


def method_colour(name: str) -> str:
    """The same colour for a method on every chart and lane; an unknown name always gets the same one."""
    return METHOD_COLOURS.get(name) or PALETTE[sum(map(ord, name)) % len(PALETTE)]
