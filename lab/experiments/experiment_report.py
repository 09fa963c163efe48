"""The report of an experiment: a long CSV, and a Markdown table with paired differences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from lab.experiments.arm import METRICS, World
from lab.experiments.plans import Arm, Experiment
from lab.races.machine import facts
from omnidemo.serving.measuring.report_tables import Spread, csv_table, markdown_table

Row = Mapping[str, Any]
COLUMNS = (
    "experiment", "arm", "reading", "seed", "kind", "requests", "epoch", "target", "source", "line", "prompt",
    *METRICS, "tokens", "steps", "train_seconds", "routed_right",
)  # fmt: skip
SHOWN = {"acceptance_rate": "acceptance", "block_efficiency": "tokens/round", "ngram_hits": "n-grams/round"}
SHOWN["drafted_per_round"] = "drafted/round"


def write_rows(path: Path, experiment: str, rows: Iterable[Row]) -> None:
    """The long form: a row for each answer of the traffic and each reading of the held-out prompts."""
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
    to the row above in acceptance, paired by prompt."""
    held = rows[rows["kind"] == "prompt"]
    several = len(held[["target", "source"]].drop_duplicates()) > 1
    headings = ["arm", *(["target", "topic"] if several else []), "seeds", *SHOWN.values(), "Δ acceptance"]
    seeds, lines = held.groupby("label")["seed"].nunique(), list[list[str]]()
    for place, mine in held.groupby(["target", "source"]):
        above: pd.DataFrame | None = None
        for label, own in mine.groupby("label", sort=False):
            means = own.groupby("prompt")[[*SHOWN]].mean()
            gains = None if above is None else (means - above)["acceptance_rate"]  # of each prompt
            cells = {name: with_error(means[column], ".3f") for column, name in SHOWN.items()}
            cells |= {"Δ acceptance": "" if gains is None else with_error(gains, "+.3f")}
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
