"""Rows and numbers → plotly figures as plain dicts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omnidemo.ui.figures.layout import (
    ACCENT,
    DASHED,
    INK,
    Figure,
    axis_title,
    escape,
    finite,
    make_figure,
)


def scatter(xs: Sequence[float], ys: Sequence[float | None], name: str, **look: Any) -> dict[str, Any]:
    """A trace of points or lines."""
    return {"type": "scatter", "x": list(xs), "y": list(ys), "name": escape(name), **look}


def bars(
    names: Sequence[str],
    values: Sequence[float | None],
    *,
    colours: Sequence[str] = (),
    ranges: Sequence[Sequence[float | None]] = (),
    base: float | None = None,
    form: str = ".0f",
    unit: str = "",
) -> Figure:
    """Horizontal bars, first name on top; `ranges` draws whiskers from least to most, `base` a
    line to compare with (plain decoding)."""
    shown = [finite(value) for value in values]
    labels = [escape(name) for name in names]
    places = list(range(len(values)))
    whiskers = _whiskers(shown, ranges) if any(low != high for low, high in ranges) else {}
    bar: dict[str, Any] = {
        "type": "bar",
        "x": shown,
        "y": places,
        "orientation": "h",
        "text": ["–" if value is None else f"{value:{form}}" for value in shown],
        # Whiskers and a label at the bar's end would lie on each other.
        "textposition": "inside" if whiskers else "outside",
        "insidetextanchor": "start",
        "cliponaxis": False,
        "customdata": labels,
        "hovertemplate": "%{customdata}: %{text} " + unit + "<extra></extra>",
        "marker": {
            "color": list(colours) or ACCENT,
            "cornerradius": 4,
            "line": {"color": "#e5ecf6", "width": 0.5},
        },
        **whiskers,
    }
    xaxis = {"rangemode": "tozero", "title": axis_title(unit), "nticks": 6, "fixedrange": True}
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": labels}
    yaxis = {"autorange": "reversed", "showgrid": False, "fixedrange": True, **ticks}
    across: dict[str, Any] = {"type": "line", "x0": base, "x1": base, "y0": 0, "y1": 1, "yref": "paper"}
    across |= {"opacity": 0.7, "line": DASHED}
    margin = {"l": 8, "r": 44, "t": 8, "b": 8}
    shapes = [] if base is None else [across]
    return make_figure(
        [bar], "", bargap=0.35, margin=margin, dragmode=False, xaxis=xaxis, yaxis=yaxis, shapes=shapes
    )


def _whiskers(values: Sequence[float | None], ranges: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """Whiskers of bars from least to most."""
    ends = [
        (value or 0.0, low or 0.0, high or 0.0) for value, (low, high) in zip(values, ranges, strict=True)
    ]
    arrays = {
        "array": [high - value for value, _, high in ends],
        "arrayminus": [value - low for value, low, _ in ends],
    }
    look = {"color": INK, "thickness": 1.2, "width": 4}
    return {"error_x": {"type": "data", "symmetric": False, **arrays, **look}}


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart."""

    name: str
    xs: Sequence[float]
    values: Sequence[float | None]
    colour: str


def lines(series: Sequence[Series], *, xtitle: str, ytitle: str, form: str = ".2f") -> Figure:
    """Several lines over one axis, and a legend."""
    traces = [
        scatter(
            line.xs,
            [finite(value) for value in line.values],
            line.name,
            mode="lines+markers",
            connectgaps=True,
            line={"color": line.colour, "width": 2},
            hovertemplate=f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(line.name)}</extra>",
        )
        for line in series
    ]
    return _with_legend(traces, xtitle, ytitle, form)


def grouped_bars(series: Sequence[Series], *, xtitle: str, ytitle: str, form: str = ".2f") -> Figure:
    """The values of several series beside each other at each x, which are whole numbers, and a legend."""
    traces = [
        {
            "type": "bar",
            "x": list(line.xs)[: len(line.values)],
            "y": [finite(value) for value in line.values],
            "name": escape(line.name),
            "marker": {"color": line.colour, "cornerradius": 3},
            "hovertemplate": f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(line.name)}</extra>",
        }
        for line in series
    ]
    return _with_legend(traces, xtitle, ytitle, form, barmode="group", bargap=0.25)


def _with_legend(traces: Sequence[Any], xtitle: str, ytitle: str, form: str, **layout: Any) -> Figure:
    legend: dict[str, Any] = {
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.18},
    }
    xaxis, yaxis = {"title": axis_title(xtitle)}, {"title": axis_title(ytitle), "tickformat": form}
    return make_figure(traces, "", xaxis=xaxis, yaxis=yaxis, **legend, **layout)
