"""Rows and numbers → plotly figures as plain dicts. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from omnidemo.figures.layout import (
    ACCENT,
    DASHED,
    INK,
    PALETTE,
    Figure,
    Row,
    axis_title,
    escape,
    finite,
    make_figure,
)
from omnidemo.figures.marks import Mark, mark_layout, marks

FEWEST = 3  # requests on either side of a comparison


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure over the requests: the row's key, its title, unit, how its values print (a d3 format), and a
    sentence on it."""

    key: str
    title: str
    unit: str
    form: str
    help: str
    base: float | None = None  # a line to compare with
    noisy: bool = True  # a measurement to be smoothed; False: a state, whose latest value counts


# In the order of the page, which puts the loss behind the first two.
CURVES = (
    Curve(
        "acceptance_rate",
        "Acceptance",
        "of a round's guesses",
        ".0%",
        "Accepted of the drafter's proposals in a round, averaged.",
    ),
    Curve(
        "speedup",
        "Speedup, measured",
        "× plain decoding",
        ".2f",
        "Runs of the newest answer with and without guessing, in turns, while nobody waits.",
        base=1.0,
    ),
    # The history counts the n-grams of a whole answer, where an experiment averages over its rounds.
    Curve("ngram_hits", "n-gram hits", "per answer", ".0f", "Merged n-grams that were accepted."),
    Curve(
        "cache_entries",
        "n-gram cache",
        "entries",
        ",.0f",
        "n-grams the pair has learned to merge into one target token.",
        noisy=False,
    ),
    Curve(
        "draft_length",
        "Draft length",
        "drafter tokens per round",
        ".1f",
        "How far the drafter guesses ahead in one round, on average; 0 is plain decoding.",
    ),
    Curve(
        "copied",
        "Copied tokens",
        "per answer",
        ".0f",
        "Tokens that stood in the chat or in an earlier answer, and were accepted.",
    ),
    Curve(
        "block_efficiency",
        "Tokens per step",
        "tokens per step of the big model",
        ".2f",
        "Target tokens written per forward pass of the target; plain decoding is 1.",
        base=1.0,
    ),
    Curve("tokens_per_second", "Speed", "tokens per second", ".0f", "Target tokens per second of decoding."),
)
LOSS = Curve(
    "loss",
    "Training loss",
    "nats per position",
    ".3f",
    "How far the drafter is from the target on the traffic it learns from, per optimiser step.",
)


def smooth(values: Sequence[float | None], window: int) -> list[float | None]:
    """Trailing mean over the last `window` points, None left out. A point depends on earlier ones only."""
    out: list[float | None] = []
    for end in range(1, len(values) + 1):
        seen = [value for value in values[max(0, end - max(1, window)) : end] if value is not None]
        out.append(sum(seen) / len(seen) if seen else None)
    return out


def change(values: Sequence[float | None], window: int) -> tuple[float | None, float | None]:
    """(mean of the last `window` values, mean of the first ones before them): the latest state and where it
    came from. The second is None where there are not at least FEWEST values for each: what overlaps, or is
    one request, is no comparison."""
    seen = [value for value in values if value is not None]
    count = min(max(FEWEST, window), len(seen) // 2)
    last = seen[-max(1, window) :]
    earlier = seen[:count] if count >= FEWEST else []
    return (sum(last) / len(last) if last else None), (sum(earlier) / len(earlier) if earlier else None)


def _scatter(xs: Sequence[float], ys: Sequence[float | None], name: str, **look: Any) -> dict[str, Any]:
    return {"type": "scatter", "x": list(xs), "y": list(ys), "name": escape(name), **look}


def _points(
    xs: Sequence[float],
    values: Sequence[float | None],
    window: int,
    colour: str,
    name: str,
    what: Curve,
    notes: Sequence[str],
) -> list[dict[str, Any]]:
    """Raw points, pale, under their smoothed line. `notes` are shown when the pointer is on a point."""
    hover = f"%{{x}}: <b>%{{y:{what.form}}}</b> {what.unit}<br>%{{text}}<extra></extra>"
    marker = {"color": colour, "size": 5, "opacity": 0.5}
    raw = _scatter(xs, values, name, mode="markers", text=notes, hovertemplate=hover, marker=marker)
    line = {"color": colour, "width": 2.5}
    return [
        raw,
        _scatter(
            xs, smooth(values, window), name, mode="lines", hoverinfo="skip", connectgaps=True, line=line
        ),
    ]


def curve(rows: Sequence[Row], what: Curve, *, window: int = 8, revision: str = "") -> Figure:
    """One figure of the requests: raw points, a smoothed line per target, swaps and switches marked.

    `rows` in order, as of `Store.curve`; a `target` key separates several targets. A new `revision` resets
    the reader's zoom.
    """
    traces: list[Any] = []
    for place, target in enumerate(dict.fromkeys(row.get("target") for row in rows)):
        own = {float(x): row for x, row in enumerate(rows, start=1) if row.get("target") == target}
        values, notes = (
            [finite(row.get(what.key)) for row in own.values()],
            [_note(row) for row in own.values()],
        )
        colour = PALETTE[place % len(PALETTE)]
        traces += _points(
            list(own), values, window if what.noisy else 1, colour, str(target or what.title), what, notes
        )
    yaxis: dict[str, Any] = {
        "tickformat": what.form,
        "rangemode": "tozero" if what.base is None else "normal",
        "nticks": 5,
    }
    if what.form.endswith("%"):
        yaxis["range"] = [0, 1.02]
    if what.form.endswith(".0f"):
        yaxis["autorangeoptions"] = {"include": [0, 5]}  # marks at halves would be rounded
    marked = mark_layout(marks(rows), max(10, len(rows)), what.base if rows else None)
    return make_figure(traces, revision, xaxis=_counted("requests"), yaxis=yaxis, **marked)


def _counted(title: str) -> dict[str, Any]:
    """An axis of whole numbers, on which a few are not stretched over the whole width. No `range` that grows:
    plotly would take it for a change of the page and drop the reader's zoom."""
    return {
        "autorangeoptions": {"include": [0, 10], "clipmin": 0},
        "title": axis_title(title),
        "tickformat": ",d",
    }


def _note(row: Row) -> str:
    parts = [
        f"adapter v{row.get('adapter_version') or 0}",
        *(row.get(key) for key in ("method", "kind", "target")),
    ]
    return " · ".join(escape(part) for part in parts if part)


def losses(steps: Sequence[Row], *, window: int = 8, revision: str = "") -> Figure:
    """The loss over the optimiser steps of one line, in order; where the version changes, the weights went
    live."""
    values = [finite(step.get("loss")) for step in steps]
    xs = [float(step.get("step") or place) for place, step in enumerate(steps, start=1)]
    notes = [f"went into v{step.get('version', 0)}" for step in steps]
    pairs = pairwise(zip(xs, steps, strict=True))
    # A version goes live after its last step, so its mark stands behind that step; only the newest is marked,
    # for there are many.
    live = [
        Mark((x0 + x1) / 2, f"v{a.get('version', 0)}", "swap")
        for (x0, a), (x1, b) in pairs
        if a.get("version") != b.get("version")
    ]
    traces = _points(xs, values, window, "#0d9488", LOSS.title, LOSS, notes)
    yaxis = {"tickformat": LOSS.form.replace("3", "2"), "nticks": 5, "rangemode": "tozero"}
    return make_figure(
        traces,
        revision,
        xaxis=_counted("training steps"),
        yaxis=yaxis,
        **mark_layout(live[-1:], max(10, len(steps))),
    )


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
    shown, labels, places = (
        [finite(value) for value in values],
        [escape(name) for name in names],
        list(range(len(values))),
    )
    whiskers = _whiskers("error_x", spread, color=INK, thickness=1.2, width=4)
    if any(low != high for low, high in ranges):
        ends = [
            (value or 0.0, low or 0.0, high or 0.0) for value, (low, high) in zip(shown, ranges, strict=True)
        ]
        arrays = {
            "array": [high - value for value, _, high in ends],
            "arrayminus": [value - low for value, low, _ in ends],
        }
        whiskers = {
            "error_x": {
                "type": "data",
                "symmetric": False,
                **arrays,
                "color": INK,
                "thickness": 1.2,
                "width": 4,
            }
        }
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
    across = {
        "type": "line",
        "x0": base,
        "x1": base,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "opacity": 0.7,
        "line": DASHED,
    }
    margin = {"l": 8, "r": 44, "t": 8, "b": 8}
    shapes = [] if base is None else [across]
    return make_figure(
        [bar], "", bargap=0.35, margin=margin, dragmode=False, xaxis=xaxis, yaxis=yaxis, shapes=shapes
    )


def _whiskers(axis: str, spread: Sequence[float | None], **look: Any) -> dict[str, Any]:
    """± whiskers of a trace; none where no spread is known."""
    return (
        {axis: {"type": "data", "array": [finite(one) or 0.0 for one in spread], **look}}
        if any(spread)
        else {}
    )


def reliability(named: Mapping[str, Sequence[tuple[float, float, float]]], *, revision: str = "") -> Figure:
    """Predicted against observed P(accepted), a series per name: (predicted, observed, observations) of each
    class.

    The diagonal is perfect.
    """
    traces = [_scatter([0, 1], [0, 1], "", mode="lines", hoverinfo="skip", showlegend=False, line=DASHED)]
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
        traces.append(_scatter(predicted, observed, name, mode="lines+markers", **look))
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
    for place, one in enumerate(series):
        look: dict[str, Any] = {
            "mode": "lines+markers" if len(one.xs) <= 20 else "lines",
            "connectgaps": True,
            "line": {
                "color": one.colour or PALETTE[place % len(PALETTE)],
                "width": 2,
                "dash": "dash" if one.dashed else "solid",
            },
            "hovertemplate": f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(one.name)}</extra>",
            **_whiskers("error_y", one.spread, thickness=1, width=3),
        }
        traces.append(_scatter(one.xs, [finite(value) for value in one.values], one.name, **look))
    end = max((x for one in series for x in one.xs), default=1)
    return _with_legend(traces, xtitle, ytitle, form, **mark_layout(found, end, base))


def grouped_bars(series: Sequence[Series], *, xtitle: str, ytitle: str, form: str = ".2f") -> Figure:
    """The values of several series beside each other at each x, which are whole numbers, and a legend."""
    traces = [
        {
            "type": "bar",
            "x": list(one.xs)[: len(one.values)],
            "y": [finite(value) for value in one.values],
            "name": escape(one.name),
            "marker": {"color": one.colour or PALETTE[place % len(PALETTE)], "cornerradius": 3},
            "hovertemplate": f"%{{x}}: <b>%{{y:{form}}}</b><extra>{escape(one.name)}</extra>",
        }
        for place, one in enumerate(series)
    ]
    return _with_legend(traces, xtitle, ytitle, form, barmode="group", bargap=0.25)


def _with_legend(traces: Sequence[Any], xtitle: str, ytitle: str, form: str, **layout: Any) -> Figure:
    legend: dict[str, Any] = {
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.18},
    }
    xaxis, yaxis = {"title": axis_title(xtitle)}, {"title": axis_title(ytitle), "tickformat": form}
    return make_figure(traces, "", xaxis=xaxis, yaxis=yaxis, **legend, **layout)
