"""The report of an experiment: a long CSV, a Markdown table with paired differences, and a page of plots."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from lab.experiments.arm import METRICS, World
from lab.experiments.plans import Arm, Experiment
from lab.races.machine import facts
from omnidemo.serving.measuring.report_tables import Spread, csv_table, markdown_table
from omnidemo.ui.figures import charts, layout, marks

Row = Mapping[str, Any]
PLACE = (
    "experiment",
    "arm",
    "reading",
    "seed",
    "kind",
    "requests",
    "epoch",
    "target",
    "source",
    "line",
    "prompt",
)
COLUMNS = (
    *PLACE,
    *METRICS,
    "tokens",
    "steps",
    "train_seconds",
    "routed_right",
    "tokens_per_second",
    "speedup",
)
SHOWN = {"acceptance_rate": "acceptance", "block_efficiency": "tokens/round", "ngram_hits": "n-grams/round"}
SHOWN["drafted_per_round"] = "drafted/round"
WINDOW = 16  # requests under the moving mean of a traffic curve


def write_rows(path: Path, experiment: str, rows: Iterable[Row]) -> None:
    """The long form: a row for each answer of the traffic, each reading of the held-out prompts, and each
    timed answer."""
    with csv_table(path, COLUMNS) as append:
        for row in rows:
            append({"experiment": experiment, **row})


def write_facts(path: Path, world: World, arms: Sequence[Arm], **more: Any) -> None:
    """What was run and where: arms, settings, the machine, versions, commit."""
    settings = world.settings.model_dump(
        mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share", "backup"}
    )
    about = facts(torch.device("cpu")) | {"at": datetime.now(UTC).isoformat(timespec="seconds"), **more}
    about |= {
        "drafter": world.drafter,
        "held_out": {name: len(texts) for name, texts in world.held_out.items()},
        "settings": settings,
    }
    about["arms"] = [asdict(arm) for arm in arms]
    path.write_text(json.dumps(about, indent=1, ensure_ascii=False, default=str), encoding="utf-8")


def framed(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows under `COLUMNS`, those of an arm together, with a `label` of arm and reading."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).fillna({"epoch": 0})
    frame["label"] = [
        " · ".join(filter(None, names)) for names in zip(frame["arm"], frame["reading"], strict=True)
    ]
    places = {arm: place for place, arm in enumerate(frame["arm"].unique())}
    return frame.sort_values("arm", key=lambda arms: arms.map(places), kind="stable")


def final(rows: pd.DataFrame) -> pd.DataFrame:
    """The held-out rows at the end of each arm and seed."""
    held = rows[rows["kind"] == "held-out"]
    for column in ("requests", "epoch"):
        held = held[held[column] == held.groupby(["arm", "seed"])[column].transform("max")]
    return held


def table(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """(headings, lines): mean ± standard error over prompts, each the mean of its seeds, and the difference
    to the row above in acceptance and speedup, paired by prompt."""
    held, timed = rows[rows["kind"] == "prompt"], rows["kind"] == "timed"
    shown = rows[timed | (rows["kind"] == "prompt")].copy()
    shown.loc[timed, list(SHOWN)] = None  # of those the held-out prompts tell
    several = len(held[["target", "source"]].drop_duplicates()) > 1
    paired = {"acceptance_rate": "Δ acceptance"} | ({"speedup": "Δ speedup"} if timed.any() else {})
    headings = ["arm", *(["target", "topic"] if several else []), "seeds", *SHOWN.values(), "Δ acceptance"]
    headings += ["speedup", "Δ speedup"] if timed.any() else []
    seeds, lines = shown.groupby("label")["seed"].nunique(), list[list[str]]()
    for place, mine in shown.groupby(["target", "source"]):
        above: pd.DataFrame | None = None
        for label, own in mine.groupby("label", sort=False):
            means = own.groupby("prompt")[[*SHOWN, "speedup"]].mean()
            gains = None if above is None else means - above  # of each prompt
            cells = {
                name: with_error(means[column], ".3f")
                for column, name in {**SHOWN, "speedup": "speedup"}.items()
            }
            cells |= {
                name: "" if gains is None else with_error(gains[column], "+.3f")
                for column, name in paired.items()
            }
            cells |= {"arm": label, "target": place[0], "topic": place[1], "seeds": str(seeds[label])}
            lines.append([cells[heading] for heading in headings])
            above = means
    return headings, lines


def with_error(values: Iterable[float | None], form: str) -> str:
    """Mean ± standard error."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    spread = Spread.of(known)
    if spread.deviation is None:
        return spread.text(form)
    return Spread(spread.mean, spread.deviation / math.sqrt(len(known))).text(form)


def gap_closed(rows: pd.DataFrame, fresh: str, online: str, offline: str) -> dict[int, float]:
    """seed → (online − fresh) / (best offline epoch − fresh), in held-out acceptance at the end."""
    ends = (
        final(rows)
        .groupby(["seed", "label"])["acceptance_rate"]
        .mean()
        .unstack()
        .reindex(columns=[fresh, online])
    )
    ends["best"] = (
        rows[(rows["kind"] == "held-out") & (rows["label"] == offline)]
        .groupby("seed")["acceptance_rate"]
        .max()
    )
    ends = ends[ends["best"] > ends[fresh]]
    return dict(((ends[online] - ends[fresh]) / (ends["best"] - ends[fresh])).dropna())


def markdown(title: str, experiment: Experiment, rows: pd.DataFrame, facts: str) -> str:
    headings, lines = table(rows)
    note = (
        "Held-out prompts after the last request. Mean ± standard error over them, each the mean of its"
        " seeds; Δ: paired by prompt, to the line above."
    )
    closed = Spread.of(
        gap_closed(rows, "fresh · n-grams", "L_DM + λ L_NG · n-grams", "offline · n-grams").values()
    )
    extra = "" if closed.mean is None else f"\n\nGap to the best offline epoch closed: {closed.text('.0%')}"
    return (
        f"## {title}\n\n{experiment.question}"
        f" ({experiment.paper})\n\n{markdown_table(headings, lines)}\n\n{note} {facts}{extra}\n"
    )


def write_page(
    path: Path, experiment: Experiment, arms: Sequence[Arm], rows: pd.DataFrame, results: Iterable[Row]
) -> None:
    """One HTML file with what this experiment's figure in the papers shows, and the head's calibration where
    one was trained."""
    figures: dict[str, layout.Figure] = {}
    if experiment.plot == "bars":
        figures |= _bars(rows)
    if experiment.plot == "traffic":
        figures |= _traffic(arms, rows)
    figures |= _learning(arms, rows)
    if (rows["kind"] == "traffic").any():
        figures["n-gram cache on the traffic"] = _over(rows, "cache_entries", "entries")
    figures |= _calibrations(results)
    layout.page(path, figures)


def _bars(rows: pd.DataFrame) -> dict[str, layout.Figure]:
    figures = {}
    for kind, column, chosen in (
        ("speedup", "speedup", rows[rows["kind"] == "timed"]),
        ("acceptance", "acceptance_rate", final(rows)),
    ):
        by_seed = chosen.groupby(["label", "seed"], sort=False)[column].mean()
        found = by_seed.groupby("label", sort=False).agg(["mean", "std"])
        if len(found):
            base, spread = 1.0 if kind == "speedup" else None, found["std"].fillna(0).tolist()
            bars = charts.bars(
                found.index.tolist(), found["mean"].tolist(), spread=spread, base=base, form=".2f", unit=kind
            )
            figures[f"{kind} on held-out prompts"] = bars
    return figures


def _learning(arms: Sequence[Arm], rows: pd.DataFrame) -> dict[str, layout.Figure]:
    """Held-out acceptance over the requests, for each target and topic. An offline arm is a dashed line at
    its end."""
    held = rows[rows["kind"] == "held-out"]
    offline = {arm.name for arm in arms if arm.offline}
    if len(arms) >= 6:  # one line each
        held = held[held["reading"] == held["arm"].map({arm.name: arm.readings[0].name for arm in arms})]
    figures = {}
    for (target, source), own in held.groupby(["target", "source"], sort=False):
        series = []
        for name, mine in own.groupby("label", sort=False):
            if mine["arm"].iloc[0] in offline:
                end = final(mine)["acceptance_rate"].mean()
                series.append(charts.Series(name, [0, int(mine["requests"].iloc[0])], [end] * 2, dashed=True))
                continue
            found = mine.groupby("requests")["acceptance_rate"].agg(["mean", "std"])
            series.append(
                charts.Series(
                    name, found.index.tolist(), found["mean"].tolist(), found["std"].fillna(0).tolist()
                )
            )
        if any(len(one.xs) > 1 for one in series):
            figures[f"held-out acceptance: {target}, {source}"] = charts.lines(
                series, xtitle="requests", ytitle="acceptance"
            )
    return figures


def _traffic(arms: Sequence[Arm], rows: pd.DataFrame) -> dict[str, layout.Figure]:
    """Acceptance on the traffic itself, smoothed over requests and averaged over seeds, with a mark where a
    phase begins."""
    longest = max(arms, key=lambda arm: arm.requests)
    found = [
        marks.Mark(place, f"{place}", "topic")
        for place in accumulate(phase.requests for phase in longest.phases[:-1])
    ]
    return {"acceptance on the traffic": _over(rows, "acceptance_rate", "acceptance", found, smooth=True)}


def _over(
    rows: pd.DataFrame, column: str, ytitle: str, found: Sequence[marks.Mark] = (), smooth: bool = False
) -> layout.Figure:
    """A column of the traffic's rows over the requests, averaged over seeds."""
    series = []
    for name, mine in rows[rows["kind"] == "traffic"].groupby("label", sort=False):
        over = mine.groupby("requests")[column].mean()
        values = over.rolling(WINDOW, min_periods=1).mean() if smooth else over
        series.append(charts.Series(name, over.index.tolist(), values.tolist()))
    return charts.lines(
        series, xtitle="requests", ytitle=ytitle, form=".2f" if smooth else ",.0f", found=found
    )


def _calibrations(results: Iterable[Row]) -> dict[str, layout.Figure]:
    """The head's classes, pooled over seeds into tenths, for each arm that trained one."""
    classes = [
        (result["rows"][0]["arm"], *one) for result in results for one in result["calibration"] if one[2]
    ]
    named: dict[str, list[tuple[float, float, float]]] = {}
    for name, mine in pd.DataFrame(classes, columns=["arm", "predicted", "observed", "count"]).groupby(
        "arm", sort=False
    ):
        for _, tenth in mine.groupby((10 * mine["predicted"]).astype(int).clip(upper=9)):
            predicted, observed = np.average(tenth[["predicted", "observed"]], axis=0, weights=tenth["count"])
            named.setdefault(name, []).append(
                (float(predicted), float(observed), float(tenth["count"].sum()))
            )
    return {"calibration of the acceptance head": charts.reliability(named)} if named else {}
