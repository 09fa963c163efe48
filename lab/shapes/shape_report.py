"""Rows of `bench-shapes` as tables, and what they say about the aims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.measured_rows import PARTS, Columns, percentile_cells
from omnidemo.serving.measuring.report_tables import (
    group_by,
    markdown_list,
    markdown_table,
    report,
)

# aims on CUDA: a drafter step; the target's pass of five tokens in plain steps
STEP_MS, PASS_TOKENS, PASS_STEPS = 0.35, 5, 1.1
OVERHEAD = {"qwen2.5-7b": 0.05, "qwen2.5-0.5b": 0.15}
NOTE = (
    "Random weights; acceptance is scripted (the drafter is wrong at every ninth position), so tokens per"
    " round say nothing about a real drafter. Medians over repeats (10th to 90th of a hundred). fast: the"
    " runner that a loaded model of the shape gets; general: `transformers`' own modules, on the same"
    " weights. Stages are milliseconds per round. overhead: share of a round that bare passes of the same"
    " shapes do not take. × floor: the round over the time that its bytes or operations need at the measured"
    " bandwidth and rate."
)
ROUNDS: Columns = {
    "tokens/round, scripted": ("tokens_per_round", ".2f"),
    "accepted, scripted": ("scripted_acceptance", ".0%"),
    "drafter passes": ("drafter_passes", ".1f"),
    **PARTS,
    "overhead": ("overhead", ".0%"),
    "× floor": ("over_floor", ".1f"),
}
PASSES: Columns = {
    "drafter step ms": ("drafter_step_ms", ".3f"),
    "target step ms": ("step_ms", ".3f"),
    "target's pass of the draft ms": ("pass_ms", ".3f"),
    "in steps": ("pass_over_step", ".2f"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the CSV: one answer. Times are milliseconds; those of stages per round. round_ms: from one
    round to the next, on CUDA from a run whose stages are not waited for, so that they need not add up to it.
    drafter_passes: of a round; more than the draft length where the last drafted token may begin an n-gram.
    drafter_step_ms, step_ms: a pass of one token by drafter and target behind the prompt; pass_ms: the
    target's of the draft and one token; pass_over_step: in plain steps. overhead: 1 − bare_ms / round_ms.
    floor_ms: see `floor`, per round."""

    shape: str
    drafter_shape: str
    device: str
    runner: str
    draft_length: int
    repeat: int
    threads: int
    rounds: int
    tokens_per_round: float
    drafter_passes: float
    scripted_acceptance: float
    round_ms: float
    draft_ms: float
    verify_ms: float
    settle_ms: float
    other_ms: float
    bare_ms: float
    overhead: float
    drafter_step_ms: float
    step_ms: float
    pass_ms: float
    pass_over_step: float
    floor_ms: float
    over_floor: float


def _by_runner_and_length(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    return group_by(
        sorted(rows, key=lambda row: (row.runner, row.draft_length)),
        lambda row: (row.runner, row.draft_length),
    )


def table(rows: Sequence[Row], columns: Columns) -> tuple[list[str], list[list[str]]]:
    """(headings, lines): `ROUNDS`, where a round's time goes, or `PASSES`, what single passes take; rows of
    one shape."""
    lines = [
        [runner, str(length), *percentile_cells(mine, columns)]
        for (runner, length), mine in _by_runner_and_length(rows).items()
    ]
    return ["runner", "draft length", *columns], lines


def verdicts(rows: Sequence[Row]) -> list[str]:
    """What the rows of one shape say about the aims, a sentence each; medians, of the fast runner. The aims
    hold for CUDA."""
    fast = [row for row in rows if row.runner == "fast"]
    if not fast:
        return []
    cuda = fast[0].device == "cuda"
    step = _median(fast, "drafter_step_ms")
    said = [
        f"Drafter step, {fast[0].drafter_shape}: {step:.3f} ms" + _aim(step, STEP_MS, f"{STEP_MS} ms", cuda)
    ]
    of_five = [row for row in fast if row.draft_length == PASS_TOKENS - 1]
    if of_five:
        ratio = _median(of_five, "pass_over_step")
        said.append(
            f"Verification of {PASS_TOKENS} tokens: {ratio:.2f} plain steps"
            + _aim(ratio, PASS_STEPS, f"{PASS_STEPS}", cuda)
        )
    by_length = {
        length: _median(mine, "overhead") for (_, length), mine in _by_runner_and_length(fast).items()
    }
    worst = max(by_length, key=lambda length: by_length[length])
    limit = OVERHEAD.get(fast[0].shape)
    told = (
        f"Overhead at {fast[0].shape}, the worst of all draft lengths ({worst}): {by_length[worst]:.1%} of"
        " the round"
    )
    said.append(told + (_aim(by_length[worst], limit, f"{limit:.0%}", cuda) if limit else "."))
    general = {(row.draft_length, row.repeat): row.round_ms for row in rows if row.runner == "general"}
    ratios = [
        general[place] / row.round_ms for row in fast if (place := (row.draft_length, row.repeat)) in general
    ]
    if ratios:
        said.append(
            f"Rounds with the fast runners are {np.median(ratios):.2f} × as fast as with the general ones."
        )
    return said


def _median(rows: Sequence[Row], name: str) -> float:
    return float(np.median([getattr(row, name) for row in rows]))


def _aim(value: float, limit: float, shown: str, cuda: bool) -> str:
    if not cuda:
        return f"; the aim on CUDA is at most {shown}, and this is no CUDA."
    return f"; the aim of at most {shown} is {'met' if value <= limit else 'missed'}."


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The whole report."""
    parts = []
    for shape, mine in group_by(rows, lambda row: row.shape).items():
        parts += [f"## {shape}, drafter {mine[0].drafter_shape}", markdown_list(verdicts(mine))]
        parts += ["Rounds (acceptance is scripted):", markdown_table(*table(mine, ROUNDS))]
        parts += ["Single passes:", markdown_table(*table(mine, PASSES))]
    return report("Real shapes", NOTE, about, parts)
