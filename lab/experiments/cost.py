"""What training costs a chat: the time to an answer while the drafter learns in the background, against the
same with learning paused."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lab.experiments import experiment_report
from lab.experiments.arm import World
from lab.experiments.plans import Arm, Phase, stream
from lab.experiments.run_experiment import ExperimentRequest
from lab.races.machine import commit
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.serving.measuring.learning_pair import learning
from omnidemo.serving.measuring.report_tables import Stage, csv_table, markdown_table
from omnidemo.serving.pair_loading import build_measured_pair
from omnidemo.ui.figures import charts, layout

NAME = "training-cost"
MODES = ("off", "idle")
BLOCK = 8  # requests in a row with the same mode; the next block asks the same ones in the other mode
# requests before the first block, after which the trainer is running and the drafter has versions
STARTED = 16
# most seconds to wait for an update that still runs when a block without training begins
UPDATE_SECONDS = 60.0
COLUMNS = (
    "experiment",
    "seed",
    "block",
    "training",
    "request",
    "seconds",
    "tokens",
    "adapter_version",
    "state",
)


def run(world: World, order: ExperimentRequest, pause: float) -> Iterator[Stage]:
    """Answer requests `pause` seconds apart with the real target, in blocks with training `idle` and paused,
    and write the report.

    Every prompt is answered in both modes; which of them comes first alternates from block to block.
    `cost_aware` is off, so that there is always something to train. Only the first seed, target and topic are
    used.
    """
    world.out.mkdir(parents=True, exist_ok=True)
    seed, target, source = order.seeds[0], order.targets[0], order.sources[0]
    arm = Arm(NAME, (Phase(target, {source: 1.0}, order.requests),))
    prompts = [event.prompt for event in stream(arm, world.traffic, seed)]
    started = min(STARTED, len(prompts) // 2)
    blocks = [prompts[start : start + BLOCK] for start in range(started, len(prompts), BLOCK)]
    if len(blocks) > 1:
        # as many with training first as without: the second time a prompt is asked it goes faster
        del blocks[len(blocks) // 2 * 2 :]
    parts = [(0, "idle", prompts[:started])]
    for block, asked in enumerate(blocks, 1):
        parts += [(block, mode, asked) for mode in (MODES[::-1] if block % 2 else MODES)]
    total, rows = sum(len(asked) for *_, asked in parts), list[dict[str, Any]]()
    pair = build_measured_pair(target, world.drafter, world.settings)
    with (
        learning(pair, world.settings, training="idle", head="interleaved") as (settings, _, lines),
        csv_table(world.out / f"{NAME}.csv", COLUMNS) as append,
    ):
        line = lines.get("default")
        options = {name: getattr(settings, name) for name in ("method", "max_new_tokens")}
        options |= settings.drafting | {"copying": False}
        for block, mode, asked in parts:
            if mode == "idle":
                line.resume()
            else:
                line.pause()
                _settle(line)
            for prompt in asked:
                began = time.perf_counter()
                made = pair.generate(prompt, reuse=False, **options)
                seconds = time.perf_counter() - began
                row = {"experiment": NAME, "seed": seed, "block": block, "training": mode}
                row |= {"request": len(rows), "seconds": seconds, "tokens": len(made.token_ids)}
                rows.append(row | {"adapter_version": made.adapter_version, "state": line.status().state})
                append(rows[-1])
                time.sleep(pause)
                yield Stage("answers", len(rows), total)
    _report(world, [row for row in rows if row["block"]], seed, pause)


def _settle(line: Distiller) -> None:
    """Let an update that runs come to its end."""
    until = time.monotonic() + UPDATE_SECONDS
    while line.status().state == "training" and time.monotonic() < until:
        time.sleep(0.05)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """mode → seconds to an answer: median and 95th percentile; "ratio": idle over off, and the median ratio
    of the same request.

    A request that is asked again is answered sooner, so that ratio is the geometric mean of those of both
    orders.
    """
    frame = pd.DataFrame(rows)
    seconds = frame.groupby("training")["seconds"]
    table = pd.DataFrame(
        {"median": seconds.median(), "p95": seconds.quantile(0.95), "answers": seconds.count()}
    )
    frame["place"] = frame.groupby(["block", "training"]).cumcount()
    paired = frame.pivot(index=["block", "place"], columns="training", values="seconds").dropna()
    logs = np.log(paired["idle"] / paired["off"])
    by_order = logs.groupby(logs.index.get_level_values("block") % 2).median()
    ratios = (table.loc["idle"] / table.loc["off"])[["median", "p95"]].to_dict()
    return {**table.to_dict("index"), "ratio": {**ratios, "paired": float(np.exp(by_order.mean()))}}


SHOWN = {"answers": ".0f", "median": ".3f", "p95": ".3f"}  # of the table, with the format of each


def _report(world: World, rows: Sequence[Mapping[str, Any]], seed: int, pause: float) -> None:
    taken = summary(rows)
    lines = [[mode, *(format(taken[mode][key], form) for key, form in SHOWN.items())] for mode in MODES]
    table = markdown_table(["training", "answers", "median s", "p95 s"], lines)
    median, p95, paired = (taken["ratio"][name] - 1 for name in ("median", "p95", "paired"))
    said = (
        f"With training the median is {median:+.1%}, the 95th percentile {p95:+.1%}, and the same request"
        f" (median) {paired:+.1%}. "
    )
    said += f"Requests {pause:g} s apart, seed {seed}, commit {commit()}."
    (world.out / f"{NAME}.md").write_text(f"## {NAME}\n\n{table}\n\n{said}\n", encoding="utf-8")
    experiment_report.write_facts(world.out / f"{NAME}.json", world, [], seed=seed, pause=pause, found=taken)
    series = []
    for mode in MODES:
        seconds = sorted(row["seconds"] for row in rows if row["training"] == mode)
        series.append(
            charts.Series(
                f"training {mode}", seconds, [place / len(seconds) for place in range(1, len(seconds) + 1)]
            )
        )
    figure = charts.lines(
        series, xtitle="seconds to the whole answer", ytitle="fraction of answers", form=".0%"
    )
    layout.page(world.out / f"{NAME}.html", {"time to an answer": figure})
