"""Rows of the benchmark as tables: medians with the range from the 10th to the 90th of a hundred, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnidemo.bench.assisted import ASSISTED, DEFAULTS, LOOKUP, PLAIN
from omnidemo.bench.speed.arms import FRESH
from omnidemo.bench.speed.llama_cpp import LLAMA, LLAMA_LOOKUP
from omnidemo.bench.speed.rows import Row
from omnidemo.serving.comparison import BASELINE

HEADINGS = ["arm", "tokens/s", "× transformers", "× own plain", "tokens/pass", "first token ms", "round ms", "overhead", "× floor"]
HEADINGS += ["same ids"]
STAGES = ("arm", "round ms", "draft", "verify", "translate, accept", "host", "bare passes", "drafted/round", "peak RAM MB", "peak CUDA MB")
NOTE = (
    "Median over prompts (10th to 90th of a hundred). tokens/s: of the whole call. × transformers: against its plain `generate` on the "
    "same prompt; × own plain: against `autoregressive`. Stages: milliseconds per round, reading the prompt not included. overhead: share "
    "of a round that bare forward passes of the same shapes do not take. × floor: time of the call over the time that its bytes or its "
    "operations need at the measured bandwidth and rate."
)


@dataclass(frozen=True, slots=True)
class Middle:
    """Median and the range from the 10th to the 90th of a hundred; None where nothing is known."""

    median: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Middle:
        known = [value for value in values if value is not None and math.isfinite(value)]
        return cls(*(float(value) for value in np.percentile(known, (50, 10, 90)))) if known else cls(None)

    def text(self, form: str) -> str:
        if self.median is None:
            return "–"
        if self.low == self.high:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({self.low:{form}}–{self.high:{form}})"


def groups(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by key, in the order in which the keys first came."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def over(rows: Sequence[Row], name: str, form: str = ".2f") -> str:
    return Middle.of(getattr(row, name) for row in rows).text(form)


def speeds(rows: Sequence[Row]) -> list[list[str]]:
    """The main table, under `HEADINGS`: a line for each arm."""
    lines = []
    for arm, mine in groups(rows, lambda row: row.arm).items():
        failed = next((row.error for row in mine if row.error), "")
        same = [row.identical for row in mine if row.identical is not None]
        figures = [over(mine, "tokens_per_second", ".0f"), over(mine, "speedup"), over(mine, "own_speedup"), over(mine, "tokens_per_pass")]
        figures += [over(mine, "first_token_ms", ".1f"), over(mine, "round_ms"), over(mine, "overhead", ".0%")]
        figures.append(over(mine, "over_floor", ".1f"))
        lines.append([arm, *figures, f"failed: {failed[:60]}" if failed else f"{sum(same)}/{len(same)}" if same else "–"])
    return lines


def stages(rows: Sequence[Row]) -> list[list[str]]:
    """Where a round's time goes, under `STAGES`."""
    names = ("round_ms", "draft_ms", "verify_ms", "settle_ms", "other_ms", "bare_ms")
    lines = []
    for arm, mine in groups(rows, lambda row: row.arm).items():
        memory = [over(mine, "rss_growth_mb", ".0f"), over(mine, "cuda_peak_mb", ".0f")]
        lines.append([arm, *(over(mine, name) for name in names), over(mine, "drafted_per_round", ".1f"), *memory])
    return lines


def verdicts(rows: Sequence[Row]) -> list[str]:
    """What the rows of one target and temperature say about the goals, a sentence each; medians of ratios on the same prompt."""
    arms = groups([row for row in rows if row.tokens_per_second], lambda row: row.arm)
    rate = {arm: {(row.topic, row.prompt_index): row.tokens_per_second or 0.0 for row in mine} for arm, mine in arms.items()}

    def ratio(one: str, other: str) -> float:
        shared = rate[one].keys() & rate[other].keys()
        return float(np.median([rate[one][place] / rate[other][place] for place in shared])) if shared else math.nan

    if PLAIN not in arms or BASELINE not in arms:
        return []
    said = [f"Our plain decoding: {ratio(BASELINE, PLAIN):.2f} × plain `transformers`."]
    theirs = [arm for arm, mine in arms.items() if mine[0].method in (ASSISTED, DEFAULTS, LOOKUP)]
    ours = [arm for arm, mine in arms.items() if mine[0].drafter and mine[0].method not in (ASSISTED, DEFAULTS, LOOKUP)]
    if ours:
        best = max(ours, key=lambda arm: ratio(arm, PLAIN))
        own = ratio(best, BASELINE)
        said.append(f"Our best, `{best}`: {ratio(best, PLAIN):.2f} × plain `transformers`, {own:.2f} × our plain decoding.")
        if theirs:
            rival = max(theirs, key=lambda arm: ratio(arm, PLAIN))
            ahead = ratio(best, rival)
            said.append(f"Their best assisted mode, `{rival}`: {ratio(rival, PLAIN):.2f} × plain; ours is {ahead:.2f} × as fast.")
        if others := [arm for arm in (LLAMA, LLAMA_LOOKUP) if arm in arms]:
            rival = max(others, key=lambda arm: ratio(arm, PLAIN))
            ahead = ratio(best, rival)
            said.append(f"The best of llama.cpp, `{rival}`: {ratio(rival, PLAIN):.2f} × plain; ours is {ahead:.2f} × as fast.")
    fresh = [arm for arm in ours if arms[arm][0].drafter == FRESH and arms[arm][0].policy == "cost"]
    slowest = [
        (float(np.median([row.own_speedup or 0.0 for row in mine])), topic, arm)
        for arm in fresh
        for topic, mine in groups(arms[arm], lambda row: row.topic).items()
    ]
    if slowest:
        value, topic, arm = min(slowest)
        said.append(f"Fresh drafter with draft length by cost, its worst case: {value:.2f} × our plain decoding (`{arm}` on {topic}).")
    return said


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The whole report."""
    parts = ["# Benchmark", NOTE, f"Command: `{about['command']}`" if about.get("command") else "", about_lines(about)]
    for (target, temperature), mine in groups(rows, lambda row: (row.target, row.temperature)).items():
        prompts = len({(row.topic, row.prompt_index) for row in mine})
        parts += [f"## {target}, temperature {temperature:g}, {prompts} prompts", "\n".join(f"* {said}" for said in verdicts(mine))]
        parts += [table(HEADINGS, speeds(mine)), "Where the time of a round goes:", table(STAGES, stages(mine))]
        parts += ["× own plain, by topic:", table(*by_topic(mine))]
    return "\n\n".join(part for part in parts if part) + "\n"


def by_topic(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """(headings, lines): medians of × own plain for each arm and topic."""
    topics = list(groups(rows, lambda row: row.topic))
    lines = [
        [arm, *(over([row for row in mine if row.topic == topic], "own_speedup") for topic in topics)]
        for arm, mine in groups(rows, lambda row: row.arm).items()
    ]
    return ["arm", *topics], lines


def about_lines(about: Mapping[str, Any]) -> str:
    """Facts as a Markdown list."""
    return "\n".join(f"* {name}: {_plain(value)}" for name, value in about.items() if name != "command" and value is not None)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_plain(one)}" for name, one in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    cells = [list(headings), ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)
