"""Figures from rows: what is drawn, what is marked, and that it is JSON the browser can take."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from omnidemo.ui.figures import charts, curves, layout, marks
from omnidemo.ui.figures.curves import CURVES
from omnidemo.ui.figures.marks import Mark

ACCEPTANCE = CURVES[0]


def row(acceptance: float | None, version: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "acceptance_rate": acceptance,
        "adapter_version": version,
        "method": "ngram-exact",
        "kind": "chat",
    } | more


def test_smoothing_is_a_trailing_mean_that_skips_gaps() -> None:
    assert curves.smooth([1.0, 3.0, None, 5.0], 2) == [1.0, 2.0, 3.0, 5.0]
    assert curves.smooth([None, 2.0], 3) == [None, 2.0]
    assert curves.smooth([1.0, 9.0], 1) == [1.0, 9.0]
    assert curves.smooth([], 4) == []


def test_a_swap_does_not_change_the_line_before_it() -> None:
    before = [0.2] * 6
    assert curves.smooth([*before, *[0.9] * 6], 4)[:6] == curves.smooth(before, 4)


def test_change_compares_the_last_window_with_the_first() -> None:
    latest, first = curves.change([0.1, 0.3, 0.2, None, 0.5, 0.6, 0.8, 0.7], 3)
    assert (latest, first) == (pytest.approx(0.7), pytest.approx(0.2))
    # what overlaps is no comparison
    assert curves.change([0.1, 0.3, 0.2, 0.6, 0.8, 0.7], 8) == (pytest.approx(0.45), pytest.approx(0.2))
    assert curves.change([0.1, 0.3, 0.6, 0.8], 2) == (pytest.approx(0.7), None)  # too few on either side
    assert curves.change([None], 2) == (None, None)


def test_swaps_are_marked_between_the_requests_also_backwards() -> None:
    rows = [row(0.1), row(0.2), row(0.3, 1), row(0.3, 2), row(0.3, 2), row(0.1, 0)]
    # of the swaps the newest alone
    assert marks.marks(rows) == [Mark(3.5, "v2", "swap"), Mark(5.5, "↩ v0", "rollback")]


def test_switching_the_target_is_a_switch_and_no_swap() -> None:
    rows = [
        row(0.1, 3, target="a"),
        row(0.1, 1, target="b"),
        row(0.1, 3, target="a"),
        row(0.1, 2, target="b"),
    ]
    kinds = [(mark.x, mark.label, mark.kind) for mark in marks.marks(rows)]
    assert kinds == [(1.5, "b", "target"), (2.5, "a", "target"), (3.5, "b", "target"), (3.5, "v2", "swap")]


def test_a_topic_shift_is_marked() -> None:
    # one adapter line for all of them
    taught = [row(0.1, topic=topic) for topic in ["howto"] * 3 + ["news"] + ["stories"] * 4]
    assert marks.marks(taught) == [Mark(4.5, "howto → stories", "topic")]
    # requests from before there were topics, and a single visit
    assert marks.marks([row(0.1), row(0.1, topic="code")]) == []


def test_figures_are_compared_within_one_topic_line_target_and_policy_alone() -> None:
    newest = {
        "target": "a",
        "domain": "default",
        "topic": "code",
        "method": "ngram-exact",
        "policy": "cost",
        "temperature": 0.0,
    }
    other = {
        "target": "b",
        "domain": "x",
        "topic": "howto",
        "method": "union",
        "policy": "fixed 4",
        "temperature": 1.0,
    }
    others = [newest | {name: value} for name, value in other.items()]
    assert (
        marks.comparable([*others, newest, *others, newest]) == [newest, newest]
        and marks.comparable([]) == []
    )


def test_every_line_has_versions_of_its_own_and_mixed_traffic_is_no_fence() -> None:
    rows = [
        row(0.1, 3, domain="maths"),
        row(0.1, 1, domain="code"),
        row(0.1, 3, domain="maths"),
        row(0.1, 2, domain="code"),
    ]
    assert [(mark.label, mark.kind) for mark in marks.marks(rows) if mark.kind != "topic"] == [("v2", "swap")]
    mixed = [row(0.1, topic=("maths", "code")[place // 3 % 2]) for place in range(120)]
    assert marks.marks(mixed) == []


def test_the_reliability_chart_has_a_point_per_class_and_the_diagonal() -> None:
    figure = charts.reliability({"head": [(0.1, 0.2, 40.0), (0.9, 0.85, 160.0)]})
    diagonal, dots = figure["data"]
    assert list(diagonal["x"]) == list(diagonal["y"]) == [0, 1]
    assert list(dots["x"]) == [0.1, 0.9] and list(dots["y"]) == [0.2, 0.85]
    assert dots["marker"]["size"][1] > dots["marker"]["size"][0]
    assert not figure["layout"]["showlegend"] and len(charts.reliability({})["data"]) == 1


def test_a_curve_shows_raw_points_and_their_line() -> None:
    figure = curves.curve([row(0.2), row(None), row(0.6)], ACCEPTANCE, window=2)
    raw, line = figure["data"]
    assert list(raw["x"]) == [1, 2, 3] and list(raw["y"]) == [0.2, None, 0.6] and raw["mode"] == "markers"
    assert list(line["y"]) == [0.2, 0.2, 0.6] and line["mode"] == "lines"


def test_the_cache_is_a_state_and_not_smoothed() -> None:
    cache = next(what for what in CURVES if what.key == "cache_entries")
    line = curves.curve([row(0.1, cache_entries=10), row(0.1, cache_entries=90)], cache, window=8)["data"][1]
    assert list(line["y"]) == [10, 90]


def test_each_target_has_its_own_line_and_colour() -> None:
    data = curves.curve(
        [row(0.2, target="a"), row(0.4, target="b"), row(0.6, target="a")], ACCEPTANCE, window=9
    )["data"]
    lines = {trace["name"]: trace for trace in data if trace["mode"] == "lines"}
    assert list(lines["a"]["y"]) == [0.2, pytest.approx(0.4)] and list(lines["b"]["y"]) == [0.4]
    assert lines["a"]["line"]["color"] != lines["b"]["line"]["color"]


def test_many_roll_backs_keep_their_lines_but_not_all_their_labels() -> None:
    layout = curves.curve([row(0.5, version) for version in range(60, -1, -1)], ACCEPTANCE)["layout"]
    labels = [note["text"] for note in layout["annotations"]]
    assert len(layout["shapes"]) == 60 and 2 < len(labels) < 12 and labels[-1] == "↩ v0"


def test_labels_of_marks_do_not_run_into_each_other() -> None:
    found = [
        Mark(10, "stories → maths", "topic"),
        Mark(12, "v3", "swap"),
        Mark(60, "maths → stories", "topic"),
        Mark(95, "v11", "swap"),
    ]
    assert [mark.label for mark in marks.apart(found, 100)] == ["v3", "maths → stories", "v11"]
    assert marks.apart(found[:2], 1000) == found[1:2] and marks.apart(found[1:], 2000) == found[3:]


def test_few_of_what_is_counted_have_no_marks_at_halves() -> None:
    """Marks are rounded to whole numbers, and plotly puts about five of them on an axis."""
    hits = next(one for one in curves.CURVES if one.key == "ngram_hits")
    counted = [curves.curve([row(0.5)], hits)["layout"][axis] for axis in ("xaxis", "yaxis")] + [
        curves.losses([{"loss": 1.0}])["layout"]["xaxis"]
    ]
    assert all(axis["autorangeoptions"]["include"][1] >= 5 for axis in counted)


def test_nothing_in_the_layout_moves_with_the_number_of_requests() -> None:
    """Plotly drops the reader's zoom when the page changes a range, so ranges must be left to it."""
    short, long = (
        curves.curve([row(0.5)] * size, ACCEPTANCE, revision="pair")["layout"] for size in (3, 300)
    )
    assert (
        short["xaxis"] == long["xaxis"] and "range" not in long["xaxis"] and short["yaxis"] == long["yaxis"]
    )
    assert short["uirevision"] == long["uirevision"] == "pair"


def test_figures_are_json_without_nan_and_without_markup_of_models() -> None:
    rows = [
        row(math.nan, target="<b>x</b>"),
        row(math.inf, 1, target="<script>"),
        row(0.5, 2, target="<script>"),
    ]
    text = json.dumps(curves.curve(rows, ACCEPTANCE), allow_nan=False)
    assert "<script" not in text and "&lt;script" in text and "<b>x" not in text


def test_the_loss_is_over_steps_with_a_mark_behind_each_versions_last_step() -> None:
    steps = [{"step": step, "loss": 1 / step, "version": 1 + (step > 2)} for step in range(1, 5)]
    figure = curves.losses(steps, window=1)
    assert list(figure["data"][0]["x"]) == [1, 2, 3, 4]
    assert [
        (shape["x0"], note["text"])
        for shape, note in zip(figure["layout"]["shapes"], figure["layout"]["annotations"], strict=True)
    ] == [(2.5, "v1")]


def test_bars_have_whiskers_only_with_a_spread_and_a_line_for_plain_decoding() -> None:
    one = charts.bars(["a", "<b>"], [10.0, None], base=10.0)
    assert "error_x" not in one["data"][0] and one["layout"]["shapes"][0]["x0"] == 10.0
    assert list(one["data"][0]["text"]) == ["10", "–"] and list(one["layout"]["yaxis"]["ticktext"]) == [
        "a",
        "&lt;b>",
    ]
    many = charts.bars(["a", "b"], [10.0, 20.0], spread=[1.5, None])
    ranged = charts.bars(["a", "b"], [10.0, None], ranges=[[9.0, 12.0], [None, None]])["data"][0]["error_x"]
    assert (ranged["arrayminus"], ranged["array"], ranged["symmetric"]) == ([1.0, 0.0], [2.0, 0.0], False)
    assert list(many["data"][0]["error_x"]["array"]) == [1.5, 0.0]


def test_a_method_has_one_colour_everywhere() -> None:
    names = ("ngram-exact", "ngram-merge", "token-intersection", "autoregressive")
    assert len({layout.method_colour(name) for name in names}) == 4
    assert layout.method_colour("another") == layout.method_colour("another")


def test_the_script_of_the_browser_comes_with_the_package() -> None:
    assert layout.PLOTLY_JS.stat().st_size > 1_000_000


def test_lines_have_whiskers_marks_and_a_legend() -> None:
    series = [
        charts.Series("a <b>", [0, 1], [0.2, math.nan], [0.1, None]),
        charts.Series("offline", [0, 1], [0.5, 0.5], dashed=True),
    ]
    figure = charts.lines(
        series, xtitle="requests", ytitle="acceptance", found=[marks.Mark(0.5, "code", "topic")]
    )
    first, second = figure["data"]
    assert list(first["y"]) == [0.2, None]
    assert first["name"] == "a &lt;b>" and list(first["error_y"]["array"]) == [0.1, 0.0]
    assert second["line"]["dash"] == "dash" and "error_y" not in second
    assert figure["layout"]["showlegend"] and [shape["x0"] for shape in figure["layout"]["shapes"]] == [0.5]
