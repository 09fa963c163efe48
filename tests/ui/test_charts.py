"""Figures from rows: what is drawn, what is marked, and that it is JSON the browser can take."""

from __future__ import annotations

import json
import math

from omnidemo.ui.figures import charts, layout


def test_bars_have_whiskers_only_with_a_range_and_a_line_for_plain_decoding() -> None:
    one = charts.bars(["a", "<b>"], [10.0, None], base=10.0)
    assert "error_x" not in one["data"][0] and one["layout"]["shapes"][0]["x0"] == 10.0
    assert list(one["data"][0]["text"]) == ["10", "–"] and list(one["layout"]["yaxis"]["ticktext"]) == [
        "a",
        "&lt;b>",
    ]
    ranged = charts.bars(["a", "b"], [10.0, None], ranges=[[9.0, 12.0], [None, None]])["data"][0]["error_x"]
    assert (ranged["arrayminus"], ranged["array"], ranged["symmetric"]) == ([1.0, 0.0], [2.0, 0.0], False)


def test_a_method_has_one_colour_everywhere() -> None:
    names = ("ngram-exact", "ngram-merge", "token-intersection", "autoregressive")
    assert len({layout.method_colour(name) for name in names}) == 4
    assert layout.method_colour("another") == layout.method_colour("another")


def test_the_script_of_the_browser_comes_with_the_package() -> None:
    assert layout.PLOTLY_JS.stat().st_size > 1_000_000


def test_figures_are_json_without_nan_and_without_markup_of_models() -> None:
    series = [charts.Series("a <b>", [0, 1], [0.2, math.nan], "#123456")]
    for draw in (charts.lines, charts.grouped_bars):
        figure = draw(series, xtitle="position", ytitle="right")
        json.dumps(figure, allow_nan=False)
        (one,) = figure["data"]
        assert list(one["y"]) == [0.2, None] and one["name"] == "a &lt;b>"
        assert figure["layout"]["showlegend"]
