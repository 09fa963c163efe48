"""Rows of the benchmark as tables: medians with the range from the 10th to the 90th of a hundred, and what
they say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lab.measured_rows import PARTS, percentile_cells
from lab.races.assisted import ASSISTED, DEFAULTS, LOOKUP, PLAIN, PLAIN_BF16
from omnidemo.decoding.methods import BASELINE
from omnidemo.serving.measuring.report_tables import (
    Percentiles,
    group_by,
    markdown_list,
    markdown_table,
    report,
)

SPEEDS = {
    "tokens/s": ("tokens_per_second", ".0f"),
    "× transformers": ("speedup", ".2f"),
    "× own plain": ("own_speedup", ".2f"),
    "tokens/pass": ("tokens_per_pass", ".2f"),
    "first token ms": ("first_token_ms", ".1f"),
    "round ms": ("round_ms", ".2f"),
    "overhead": ("overhead", ".0%"),
    "× floor": ("over_floor", ".1f"),
}
STAGES = {**PARTS, "drafted/round": ("drafted_per_round", ".1f")}
HEADINGS = ["arm", *SPEEDS, "same ids"]
NOTE = (
    "Median over prompts (10th to 90th of a hundred). tokens/s: of the whole call. × transformers: against"
    " its plain `generate` on the same prompt; × own plain: against `autoregressive`. Stages: milliseconds"
    " per round, reading the prompt not included. overhead: share of a round that bare forward passes of the"
    " same shapes do not take. × floor: time of the call over the time that its bytes or its operations need"
    " at the measured bandwidth and rate."
)


Row = dict[str, Any]
# A row is one answer: what is asked for, then `Answer.columns`, then what it cost this machine. Those of
# speed.csv are: seconds: the whole call, the prompt included; tokens_per_second from it. speedup,
# own_speedup: its ratios to `transformers`' plain generation and to our plain decoding, on the same prompt.
# The stages are milliseconds per round; of `transformers` after the first token, on a CPU only. bare_ms:
# forward passes of the same shapes with nothing around them, per round; overhead: share of the round that is
# not theirs. floor_seconds: see `floor`; over_floor: seconds over it. identical: the ids of `transformers`'
# plain generation, at temperature 0. error: why another library could not answer.
COLUMNS = (
    "target", "topic", "temperature", "prompt_index", "arm", "method", "policy", "threads",
    "prompt_tokens", "tokens", "seconds",
    "tokens_per_second", "speedup", "own_speedup", "first_token_ms", "rounds", "round_ms", "draft_ms",
    "verify_ms", "settle_ms", "other_ms",
    "bare_ms", "overhead", "tokens_per_pass", "acceptance_rate", "drafted_per_round", "floor_bytes",
    "floor_operations", "floor_seconds",
    "over_floor", "identical", "error", "prompt",
)  # fmt: skip


def by_arm(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return group_by(rows, lambda row: row["arm"])


def speeds(rows: Sequence[Row]) -> list[list[str]]:
    """The main table, under `HEADINGS`: a line for each arm."""
    return [[arm, *percentile_cells(mine, SPEEDS), _same_ids(mine)] for arm, mine in by_arm(rows).items()]


def _same_ids(rows: Sequence[Row]) -> str:
    same = [row["identical"] for row in rows if row["identical"] is not None]
    failed = next((row["error"] for row in rows if row["error"]), "")
    return f"failed: {failed[:60]}" if failed else f"{sum(same)}/{len(same)}" if same else "–"


def verdicts(rows: Sequence[Row]) -> list[str]:
    """What the rows of one target and temperature say about the goals, a sentence each; medians of ratios on
    the same prompt."""
    answered = pd.DataFrame([row for row in rows if row["tokens_per_second"]], columns=COLUMNS)
    rates = answered.pivot_table("tokens_per_second", ["topic", "prompt_index"], "arm", aggfunc="last")

    def ratio(one: str, other: str) -> float:
        return float((rates[one] / rates[other]).median())

    if PLAIN not in rates or BASELINE not in rates:
        return []
    said = [f"Our plain decoding: {ratio(BASELINE, PLAIN):.2f} × plain `transformers`."]
    if PLAIN_BF16 in rates:
        said[0] = f"{said[0][:-1]}, {ratio(BASELINE, PLAIN_BF16):.2f} × the same in bfloat16."
    assisted = answered["method"].isin((ASSISTED, DEFAULTS, LOOKUP))
    if ours := list(answered[(answered["policy"] != "")]["arm"].unique()):
        best = max(ours, key=lambda arm: ratio(arm, PLAIN))
        own = ratio(best, BASELINE)
        said.append(
            f"Our best, `{best}`: {ratio(best, PLAIN):.2f} × plain `transformers`, {own:.2f} × our plain"
            " decoding."
        )
        if len(theirs := answered[assisted]["arm"].unique()):
            rival = max(theirs, key=lambda arm: ratio(arm, PLAIN))
            said.append(
                f"Their best assisted mode, `{rival}`: {ratio(rival, PLAIN):.2f} × plain; ours is"
                f" {ratio(best, rival):.2f} × as fast."
            )
    by_cost = answered[answered["policy"] == "cost"]
    by_cost = by_cost.groupby(["arm", "topic"])["own_speedup"].median().dropna()
    if len(by_cost):
        value, (arm, topic) = by_cost.min(), by_cost.idxmin()
        said.append(
            f"Draft length by cost, its worst case: {value:.2f} × our plain decoding (`{arm}` on {topic})."
        )
    return said


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The whole report."""
    parts = []
    for (target, temperature), mine in group_by(
        rows, lambda row: (row["target"], row["temperature"])
    ).items():
        prompts = len({(row["topic"], row["prompt_index"]) for row in mine})
        parts += [
            f"## {target}, temperature {temperature:g}, {prompts} prompts",
            markdown_list(verdicts(mine)),
        ]
        stages = [[arm, *percentile_cells(some, STAGES)] for arm, some in by_arm(mine).items()]
        parts += [
            markdown_table(HEADINGS, speeds(mine)),
            "Where the time of a round goes:",
            markdown_table(["arm", *STAGES], stages),
        ]
        parts += ["× own plain, by topic:", markdown_table(*by_topic(mine))]
    return report("Benchmark", NOTE, about, parts)


def by_topic(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """(headings, lines): medians of × own plain for each arm and topic."""
    topics = list(dict.fromkeys(row["topic"] for row in rows))
    found = group_by(rows, lambda row: (row["arm"], row["topic"]))
    ratios = {
        place: Percentiles.of(row["own_speedup"] for row in mine).text() for place, mine in found.items()
    }
    return ["arm", *topics], [
        [arm, *(ratios.get((arm, topic), "–") for topic in topics)] for arm in by_arm(rows)
    ]
