"""The tables of the arena, from the cells of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.measured_rows import Percentiles
from lab.races.lanes import Cell, Lane
from omnidemo.decoding.methods import BASELINE
from omnidemo.serving.measuring.report_tables import group_by

ALL = "all"
HEADINGS = (
    "method", "prompts", "τ", "accepted", "median × (10–90 %)", "pooled ×", "slower", "same ids", "TV",
)  # fmt: skip
NOTE = (
    "τ: tokens per pass of the target, its own included. ×: tokens/s over plain decoding's of the same"
    " prompt; pooled: all seconds. Slower: prompts with less than 1. The first pass of an answer is left out,"
    " and so are prompts with fewer than 8 tokens behind it. A cell of the second table: median × (τ), as far"
    " as it was measured."
)


def tables(cells: Sequence[Cell]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(title, headings, lines): for each manner the methods over all sets, and set by set."""
    for manner, group in group_by((cell for cell in cells if cell.tells), lambda cell: cell.manner).items():
        methods = list(dict.fromkeys(name for cell in group for name in cell.lanes))
        yield f"Methods, {manner}", list(HEADINGS), [_line(method, group) for method in methods]
        sets = dict(sorted(group_by(group, lambda cell: cell.set).items())) | {ALL: group}
        drafting = [method for method in methods if method != BASELINE]
        lines = [
            [name, str(len(own)), *(_short(_of(method, own)) for method in drafting)]
            for name, own in sets.items()
        ]
        yield f"Sets, {manner}", ["set", "prompts", *drafting], lines


def _of(method: str, cells: Sequence[Cell]) -> list[tuple[Lane, Lane]]:
    """(lane of the method, of plain decoding) of each cell that has both."""
    return [(cell.lanes[method], cell.lanes[BASELINE]) for cell in cells if method in cell.lanes]


def _line(method: str, cells: Sequence[Cell]) -> list[str]:
    found = _of(method, cells)
    gains = _gains(found)
    lanes = [lane for lane, _ in found]
    proposed, tokens = sum(lane.proposed for lane in lanes), sum(lane.tokens for lane in lanes)
    checked = [lane.same for lane in lanes if lane.same is not None]
    apart = [lane.variation for lane in lanes if lane.variation is not None]
    plain = method == BASELINE
    pooled = (tokens / sum(lane.seconds for lane in lanes)) * (
        sum(other.seconds for _, other in found) / sum(other.tokens for _, other in found)
    )
    return [
        method, str(len(found)), f"{tokens / sum(lane.rounds for lane in lanes):.2f}",
        f"{sum(lane.accepted for lane in lanes) / proposed:.0%}" if proposed else "–",
        "" if plain else Percentiles.of(gains).text(), "" if plain else f"{pooled:.2f}",
        "" if plain else f"{sum(gain < 1 for gain in gains)}/{len(gains)}",
        "" if plain else f"{sum(checked)}/{len(checked)}" if checked else "–",
        f"{sum(apart) / tokens:.3f}" if apart else "–",
    ]  # fmt: skip


def _gains(found: Sequence[tuple[Lane, Lane]]) -> list[float]:
    return [(lane.tokens / lane.seconds) / (other.tokens / other.seconds) for lane, other in found]


def _short(found: Sequence[tuple[Lane, Lane]]) -> str:
    if not found:
        return "–"
    tokens, rounds = (sum(getattr(lane, name) for lane, _ in found) for name in ("tokens", "rounds"))
    return f"{Percentiles.of(_gains(found)).median:.2f} ({tokens / rounds:.2f})"
