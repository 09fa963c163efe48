"""Rows and numbers → plotly figures as plain dicts. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidemo.ui.figures.layout import (
    ACCENT,
    DASHED,
    INK,
    PALETTE,
    Figure,
    axis_title,
    escape,
    finite,
    make_figure,
)
from omnidemo.ui.figures.marks import Mark, mark_layout


def scatter(xs: Sequence[float], ys: Sequence[float | None], name: str, **look: Any) -> dict[str, Any]:
    """A trace of points or lines."""
    return {"type": "scatter", "x": list(xs), "y": list(ys), "name": escape(name), **look}


def bars(
    names: Sequence[str],
    values: Sequence[float | None],
    *,
    colours: Sequence[str] = (),
    spread: Sequence[float | None] = (),
    ranges: Sequence[Sequence[float | None]] = (),
    base: float | None = None,
    form: str = ".0f",
    unit: str = "",
) -> Figure:
    """Horizontal bars, first name on top; `spread` draws ± whiskers, `ranges` those from least to most,
    `base` a line to compare with (plain decoding)."""
    shown = [finite(value) for value in values]
    labels = [escape(name) for name in names]
    places = list(range(len(values)))
    whiskers = _whiskers("error_x", spread, color=INK, thickness=1.2, width=4)
    if any(low != high for low, high in ranges):
        whiskers = _range_whiskers(shown, ranges)
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


def _range_whiskers(
    values: Sequence[float | None], ranges: Sequence[Sequence[float | None]]
) -> dict[str, Any]:
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


def _whiskers(axis: str, spread: Sequence[float | None], **look: Any) -> dict[str, Any]:
    """± whiskers of a trace; none where no spread is known."""
    return (
        {axis: {"type": "data", "array": [finite(width) or 0.0 for width in spread], **look}}
        if any(spread)
        else {}
    )


def reliability(named: Mapping[str, Sequence[tuple[float, float, float]]], *, revision: str = "") -> Figure:
    """Predicted against observed P(accepted), a series per name: (predicted, observed, observations) of each
    class.

    The diagonal is perfect.
    """
    traces = [scatter([0, 1], [0, 1], "", mode="lines", hoverinfo="skip", showlegend=False, line=DASHED)]
    for place, (name, points) in enumerate(named.items()):
        predicted, observed, counts = zip(*points, strict=True) if points else ((), (), ())
        look: dict[str, Any] = {
            "customdata": list(counts),
            "hovertemplate": (
                "predicted %{x:.0%}, accepted <b>%{y:.0%}</b> of %{customdata:,.0f}<extra></extra>"
            ),
            "marker": {
                "color": PALETTE[place % len(PALETTE)],
                "size": [5 + 2 * math.log1p(max(0.0, n)) for n in counts],
                "opacity": 0.8,
            },
            "line": {"color": PALETTE[place % len(PALETTE)], "width": 1.5},
        }
        traces.append(scatter(predicted, observed, name, mode="lines+markers", **look))
    fraction = {"range": [0, 1.02], "tickformat": ".0%", "nticks": 6}
    axes = {
        "xaxis": fraction | {"title": axis_title("predicted")},
        "yaxis": fraction | {"title": axis_title("accepted")},
    }
    return make_figure(traces, revision, showlegend=len(named) > 1, **axes)


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart with its spread (± around each value, None: none)."""

    name: str
    xs: Sequence[float]
    values: Sequence[float | None]
    spread: Sequence[float | None] = ()
    dashed: bool = False
    colour: str = ""  # empty: the next of the palette


def lines(
    series: Sequence[Series],
    *,
    xtitle: str,
    ytitle: str,
    form: str = ".2f",
    found: Sequence[Mark] = (),
    base: float | None = None,
) -> Figure:
    """Several lines over one axis, each with ± whiskers where it has a spread, and a legend; `found` are
    marks on the x axis."""
    traces = []
    for place, line in enumerate(series):
        look: dict[str, Any] = {
            "mode": "lines+markers" if len(line.xs) <= 20 else "lines",
            "connectgaps": True,
            "line": {
                "color": line.colour or PALETTE[place % len(PALETTE)],
                "width": 2,
                "dash": "dash" if line.dashed else "solid",
            },
            "hovertemplate": f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(line.name)}</extra>",
            **_whiskers("error_y", line.spread, thickness=1, width=3),
        }
        traces.append(scatter(line.xs, [finite(value) for value in line.values], line.name, **look))
    end = max((x for line in series for x in line.xs), default=1)
    return _with_legend(traces, xtitle, ytitle, form, **mark_layout(found, end, base))


def grouped_bars(series: Sequence[Series], *, xtitle: str, ytitle: str, form: str = ".2f") -> Figure:
    """The values of several series beside each other at each x, which are whole numbers, and a legend."""
    traces = [
        {
            "type": "bar",
            "x": list(line.xs)[: len(line.values)],
            "y": [finite(value) for value in line.values],
            "name": escape(line.name),
            "marker": {"color": line.colour or PALETTE[place % len(PALETTE)], "cornerradius": 3},
            "hovertemplate": f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(line.name)}</extra>",
        }
        for place, line in enumerate(series)
    ]
    return _with_legend(traces, xtitle, ytitle, form, barmode="group", bargap=0.25)


def _with_legend(traces: Sequence[Any], xtitle: str, ytitle: str, form: str, **layout: Any) -> Figure:
    legend: dict[str, Any] = {
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.18},
    }
    xaxis, yaxis = {"title": axis_title(xtitle)}, {"title": axis_title(ytitle), "tickformat": form}
    return make_figure(traces, "", xaxis=xaxis, yaxis=yaxis, **legend, **layout)
