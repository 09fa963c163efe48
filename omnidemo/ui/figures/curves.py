"""The curves over the requests and the training steps, as plotly figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from omnidemo.ui.figures.charts import scatter
from omnidemo.ui.figures.layout import (
    PALETTE,
    Figure,
    Row,
    axis_title,
    escape,
    finite,
    make_figure,
)
from omnidemo.ui.figures.marks import Mark, mark_layout, marks

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
        "Runs of the newest answer with and without guessing, in turns, while no request is running.",
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
    raw = scatter(xs, values, name, mode="markers", text=notes, hovertemplate=hover, marker=marker)
    line = {"color": colour, "width": 2.5}
    return [
        raw,
        scatter(
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
        values = [finite(row.get(what.key)) for row in own.values()]
        notes = [_note(row) for row in own.values()]
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
