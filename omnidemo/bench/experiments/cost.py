"""What training costs a chat: the time to an answer while the drafter learns in the background, against the same with learning paused."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from transformers.utils import logging

from omnidemo.bench.experiments import experiment_report
from omnidemo.bench.experiments.arm import World
from omnidemo.bench.experiments.plans import Arm, Phase, stream
from omnidemo.bench.experiments.run_experiment import ExperimentRequest
from omnidemo.bench.learning_pair import learning
from omnidemo.bench.report_tables import Stage, csv_table, markdown_table
from omnidemo.bench.speed.machine import commit
from omnidemo.figures import charts, layout
from omnidemo.serving.pair_loading import build_measured_pair

NAME = "training-cost"
BLOCK = 8  # requests in a row with the same mode; the next block asks the same ones in the other mode
STARTED = 16  # requests before the first block, after which the trainer is running and the drafter has versions
UPDATE_SECONDS = 60.0  # most seconds to wait for an update that still runs when a block without training begins
COLUMNS = ("experiment", "seed", "block", "training", "request", "seconds", "tokens", "adapter_version", "state")


def run(world: World, order: ExperimentRequest, pause: float) -> Iterator[Stage]:
    """Answer requests `pause` seconds apart with the real target, in blocks with training `idle` and paused, and write the report.

    Every prompt is answered in both modes; which of them comes first alternates from block to block. `cost_aware` is off, so that
    there is always something to train. Only the first seed, target and topic are used.
    """
    logging.disable_progress_bar()
    world.out.mkdir(parents=True, exist_ok=True)
    seed, target, source = order.seeds[0], order.targets[0], order.sources[0]
    arm = Arm(NAME, (Phase(target, {source: 1.0}, order.requests),))
    prompts = [event.prompt for event in stream(arm, world.traffic, seed)]
    return _run(world, target, prompts, seed, pause)


def _run(world: World, target: str, prompts: Sequence[str], seed: int, pause: float) -> Iterator[Stage]:
    rows: list[dict[str, Any]] = []
    first, others = prompts[: min(STARTED, len(prompts) // 2)], prompts[min(STARTED, len(prompts) // 2) :]
    pairs = [others[start : start + BLOCK] for start in range(0, len(others), BLOCK)]
    if len(pairs) > 1:
        del pairs[len(pairs) // 2 * 2 :]  # as many with training first as without: the second time a prompt is asked it goes faster
    total = len(first) + 2 * sum(map(len, pairs))
    pair = build_measured_pair(target, world.drafter, world.settings)
    with learning(pair, world.settings, training="idle", head="interleaved") as (settings, _, lines):
        line = lines.get("default")
        options = {name: getattr(settings, name) for name in ("method", "max_new_tokens", "draft_policy", "draft_length", "longest_draft")}

        def ask(prompt: str, block: int, mode: str) -> None:
            began = time.perf_counter()
            made = pair.generate(prompt, reuse=False, **options)
            seconds = time.perf_counter() - began
            row = {"experiment": NAME, "seed": seed, "block": block, "training": mode, "request": len(rows), "seconds": seconds}
            row |= {"tokens": len(made.token_ids), "adapter_version": made.adapter_version, "state": line.status().state}
            rows.append(row)
            time.sleep(pause)

        with csv_table(world.out / f"{NAME}.csv", COLUMNS) as append:
            for block, part in enumerate([first, *pairs]):
                modes = ["idle"] if block == 0 else ["idle", "off"] if block % 2 else ["off", "idle"]
                for mode in modes:
                    if mode == "idle":
                        line.resume()
                    else:
                        line.pause()
                        _settle(line)
                    for prompt in part:
                        ask(prompt, block, mode)
                        append(rows[-1])
                        yield Stage("answers", len(rows), total)
    _report(world, [row for row in rows if row["block"]], seed, pause)


def _settle(line: Any) -> None:
    """Let an update that runs come to its end."""
    until = time.monotonic() + UPDATE_SECONDS
    while line.status().state == "training" and time.monotonic() < until:
        time.sleep(0.05)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """mode → seconds to an answer: median and 95th percentile; "ratio": idle over off, and the median ratio of the same request.

    A request that is asked again is answered sooner, so that ratio is the geometric mean of those of both orders.
    """
    found = {}
    for mode in ("off", "idle"):
        seconds = [row["seconds"] for row in rows if row["training"] == mode]
        found[mode] = {"median": float(np.median(seconds)), "p95": float(np.percentile(seconds, 95)), "answers": float(len(seconds))}
    by_order: dict[bool, list[float]] = {}
    for block in {row["block"] for row in rows}:
        by_mode = [[row["seconds"] for row in rows if row["block"] == block and row["training"] == mode] for mode in ("idle", "off")]
        by_order.setdefault(block % 2 == 1, []).extend(np.log(idle / off) for idle, off in zip(*by_mode, strict=False))
    paired = np.exp(np.mean([np.median(logs) for logs in by_order.values()]))
    ratios = {name: found["idle"][name] / found["off"][name] for name in ("median", "p95")}
    return {**found, "ratio": {**ratios, "paired": float(paired)}}


def _report(world: World, rows: Sequence[Mapping[str, Any]], seed: int, pause: float) -> None:
    found = summary(rows)
    each = [(mode, found[mode]) for mode in ("off", "idle")]
    lines = [[mode, f"{one['answers']:.0f}", f"{one['median']:.3f}", f"{one['p95']:.3f}"] for mode, one in each]
    table = markdown_table(["training", "answers", "median s", "p95 s"], lines)
    median, p95, paired = (found["ratio"][name] - 1 for name in ("median", "p95", "paired"))
    said = f"With training the median is {median:+.1%}, the 95th percentile {p95:+.1%}, and the same request (median) {paired:+.1%}. "
    said += f"Requests {pause:g} s apart, seed {seed}, commit {commit()}."
    (world.out / f"{NAME}.md").write_text(f"## {NAME}\n\n" + f"{table}\n\n{said}\n", encoding="utf-8")
    experiment_report.write_facts(world.out / f"{NAME}.json", world, [], seed=seed, pause=pause, found=found)
    series = []
    for mode in ("off", "idle"):
        seconds = sorted(row["seconds"] for row in rows if row["training"] == mode)
        fractions = [(place + 1) / len(seconds) for place in range(len(seconds))]
        series.append(charts.Series(f"training {mode}", seconds, fractions))
    figure = charts.lines(series, xtitle="seconds to the whole answer", ytitle="fraction of answers", form=".0%")
    layout.page(world.out / f"{NAME}.html", {"time to an answer": figure})
