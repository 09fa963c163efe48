"""The report of an experiment: a long CSV, a Markdown table with paired differences, and a page of plots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from omnidemo.bench.experiments.arm import METRICS, World
from omnidemo.bench.experiments.plans import Arm, Experiment
from omnidemo.bench.report_tables import Spread, csv_table, group_by, markdown_table
from omnidemo.bench.speed.machine import facts
from omnidemo.figures import charts, layout, marks

Row = Mapping[str, Any]
PLACE = ("experiment", "arm", "reading", "seed", "kind", "requests", "epoch", "target", "source", "line", "prompt")
COLUMNS = (*PLACE, *METRICS, "tokens", "steps", "train_seconds", "routed_right", "tokens_per_second", "speedup")
SHOWN = {"acceptance_rate": "acceptance", "block_efficiency": "tokens/round", "ngram_hits": "n-grams/round"}
SHOWN["drafted_per_round"] = "drafted/round"
WINDOW = 16  # requests under the moving mean of a traffic curve


def write_rows(path: Path, experiment: str, rows: Iterable[Row]) -> None:
    """The long form: a row for each answer of the traffic, each reading of the held-out prompts, and each timed answer."""
    with csv_table(path, COLUMNS) as append:
        for row in rows:
            append({"experiment": experiment, **row})


def write_facts(path: Path, world: World, arms: Sequence[Arm], **more: Any) -> None:
    """What was run and where: arms, settings, the machine, versions, commit."""
    settings = world.settings.model_dump(mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share", "backup"})
    about = facts(torch.device("cpu")) | {"at": datetime.now(UTC).isoformat(timespec="seconds"), **more}
    about |= {"drafter": world.drafter, "held_out": {name: len(texts) for name, texts in world.held_out.items()}, "settings": settings}
    about["arms"] = [asdict(arm) for arm in arms]
    path.write_text(json.dumps(about, indent=1, ensure_ascii=False, default=str), encoding="utf-8")


def label(row: Row) -> str:
    return " · ".join(part for part in (row["arm"], row["reading"]) if part)


def places(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """The rows of the table: (arm and reading, target, source), those of an arm together."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    ordered = sorted(rows, key=lambda row: arms.index(row["arm"]))
    return list(dict.fromkeys((label(row), row["target"], row["source"]) for row in ordered))


def by_seed(rows: Sequence[Row], place: tuple[str, str, str], column: str) -> dict[int, float]:
    """The mean of a column per seed, over the rows of one place in the table that have a value."""
    mine = [row for row in rows if (label(row), row["target"], row["source"]) == place and row.get(column) is not None]
    return {seed: fmean(row[column] for row in own) for seed, own in group_by(mine, lambda row: row["seed"]).items()}


def final(rows: Sequence[Row]) -> list[Row]:
    """The held-out rows at the end of each arm and seed."""
    held = [row for row in rows if row["kind"] == "held-out"]
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for row in held:
        key = (row["arm"], row["seed"])
        last[key] = max(last.get(key, (0, 0)), (row["requests"], row.get("epoch") or 0))
    return [row for row in held if (row["requests"], row.get("epoch") or 0) == last[row["arm"], row["seed"]]]


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """(headings, lines): mean ± standard deviation over seeds, and the paired difference to the row above in acceptance and speedup."""
    held, timed = final(rows), [row for row in rows if row["kind"] == "timed"]
    where = sorted({(row["target"], row["source"]) for row in held}, key=str)
    order = places([*held, *timed])
    headings = ["arm", *(["target", "topic"] if len(where) > 1 else []), "seeds", *SHOWN.values(), "Δ acceptance"]
    headings += ["speedup", "Δ speedup"] if timed else []
    lines: list[list[str]] = []
    for target, source in where:
        above: tuple[str, str, str] | None = None
        for place in (one for one in order if one[1:] == (target, source)):
            line = [place[0], *([target, source] if len(where) > 1 else [])]
            line.append(str(len({row["seed"] for row in [*held, *timed] if label(row) == place[0]})))
            line += [Spread.of(by_seed(held, place, column).values()).text(".3f") for column in SHOWN]
            line.append(difference(held, place, above, "acceptance_rate"))
            if timed:
                line += [Spread.of(by_seed(timed, place, "speedup").values()).text(".3f"), difference(timed, place, above, "speedup")]
            lines.append(line)
            above = place
    return headings, lines


def difference(rows: Sequence[Row], place: tuple[str, str, str], above: tuple[str, str, str] | None, column: str) -> str:
    """Mean ± standard deviation of the seeds' own differences to another row; – where nothing can be paired."""
    if above is None:
        return ""
    ours, theirs = by_seed(rows, place, column), by_seed(rows, above, column)
    return Spread.of(ours[seed] - theirs[seed] for seed in ours if seed in theirs).text("+.3f")


def gap_closed(rows: Sequence[Row], fresh: str, online: str, offline: str) -> dict[int, float]:
    """seed → (online − fresh) / (best offline epoch − fresh), in held-out acceptance at the end."""
    held = [row for row in rows if row["kind"] == "held-out" and row["acceptance_rate"] is not None]
    ends = {(label(row), row["seed"]): row["acceptance_rate"] for row in final(rows)}
    best: dict[int, float] = {}
    for row in held:
        if label(row) == offline:
            best[row["seed"]] = max(best.get(row["seed"], 0.0), row["acceptance_rate"])
    found = {}
    for seed, ceiling in best.items():
        start, end = ends.get((fresh, seed)), ends.get((online, seed))
        if start is not None and end is not None and ceiling > start:
            found[seed] = (end - start) / (ceiling - start)
    return found


def markdown(title: str, experiment: Experiment, rows: Sequence[Row], facts: str) -> str:
    headings, lines = table(rows)
    note = "Held-out prompts after the last request. Mean ± standard deviation over seeds; Δ: paired by seed, to the line above."
    closed = Spread.of(gap_closed(rows, "fresh · n-grams", "L_DM + λ L_NG · n-grams", "offline · n-grams").values())
    extra = "" if closed.mean is None else f"\n\nGap to the best offline epoch closed: {closed.text('.0%')}"
    return f"## {title}\n\n{experiment.question} ({experiment.paper})\n\n{markdown_table(headings, lines)}\n\n{note} {facts}{extra}\n"


def write_page(path: Path, experiment: Experiment, arms: Sequence[Arm], rows: Sequence[Row], results: Iterable[Row]) -> None:
    """One HTML file with what this experiment's figure in the papers shows, and the head's calibration where one was trained."""
    figures: dict[str, layout.Figure] = {}
    if experiment.plot == "bars":
        figures |= _bars(rows)
    if experiment.plot == "traffic":
        figures |= _traffic(arms, rows)
    figures |= _learning(arms, rows)
    if any(row["kind"] == "traffic" and row.get("tokens") for row in rows):
        figures["n-gram cache on the traffic"] = _over(rows, "cache_entries", "entries")
    figures |= _calibrations(results)
    layout.page(path, figures)


def _bars(rows: Sequence[Row]) -> dict[str, layout.Figure]:
    figures = {}
    for kind, column, form, source in (("speedup", "speedup", ".2f", "timed"), ("acceptance", "acceptance_rate", ".2f", "held-out")):
        chosen = [row for row in rows if row["kind"] == "timed"] if source == "timed" else final(rows)
        found = {place[0]: Spread.of(by_seed(chosen, place, column).values()) for place in places(chosen)}
        if found:
            means, spreads = [one.mean for one in found.values()], [one.deviation for one in found.values()]
            base = 1.0 if kind == "speedup" else None
            figures[f"{kind} on held-out prompts"] = charts.bars(list(found), means, spread=spreads, base=base, form=form, unit=kind)
    return figures


def _learning(arms: Sequence[Arm], rows: Sequence[Row]) -> dict[str, layout.Figure]:
    """Held-out acceptance over the requests, for each target and topic. An offline arm is a dashed line at its end."""
    held = [row for row in rows if row["kind"] == "held-out"]
    first = {arm.name: arm.readings[0].name for arm in arms}
    offline = {arm.name for arm in arms if arm.epochs}
    held = [row for row in held if len(arms) < 6 or row["reading"] == first[row["arm"]]]
    figures = {}
    for (target, source), own in group_by(held, lambda row: (row["target"], row["source"])).items():
        series = []
        for name, mine in group_by(own, label).items():
            if mine[0]["arm"] in offline:
                end = Spread.of(row["acceptance_rate"] for row in final(mine))
                series.append(charts.Series(name, [0, mine[0]["requests"]], [end.mean] * 2, dashed=True))
                continue
            found = _by_requests(mine, "acceptance_rate")
            series.append(charts.Series(name, list(found), [one.mean for one in found.values()], [one.deviation for one in found.values()]))
        if any(len(one.xs) > 1 for one in series):
            figures[f"held-out acceptance: {target}, {source}"] = charts.lines(series, xtitle="requests", ytitle="acceptance")
    return figures


def _traffic(arms: Sequence[Arm], rows: Sequence[Row]) -> dict[str, layout.Figure]:
    """Acceptance on the traffic itself, smoothed over requests and averaged over seeds, with a mark where a phase begins."""
    found: list[marks.Mark] = []
    longest, before = max(arms, key=lambda arm: arm.requests), 0
    for phase in longest.phases[:-1]:
        before += phase.requests
        found.append(marks.Mark(before, f"{before}", "topic"))
    return {"acceptance on the traffic": _over(rows, "acceptance_rate", "acceptance", found, smooth=True)}


def _over(rows: Sequence[Row], column: str, ytitle: str, found: Sequence[marks.Mark] = (), smooth: bool = False) -> layout.Figure:
    """A column of the traffic's rows over the requests, averaged over seeds."""
    series = []
    for name, mine in group_by((row for row in rows if row["kind"] == "traffic"), label).items():
        over = _by_requests(mine, column)
        values = [one.mean for one in over.values()]
        series.append(charts.Series(name, list(over), charts.smooth(values, WINDOW) if smooth else values))
    return charts.lines(series, xtitle="requests", ytitle=ytitle, form=".2f" if smooth else ",.0f", found=found)


def _by_requests(rows: Sequence[Row], column: str) -> dict[int, Spread]:
    """A column over the requests, of all seeds together."""
    at = group_by(rows, lambda row: row["requests"])
    return {count: Spread.of(row[column] for row in at[count]) for count in sorted(at)}


def _calibrations(results: Iterable[Row]) -> dict[str, layout.Figure]:
    """The head's classes, pooled over seeds into tenths, for each arm that trained one."""
    pooled: dict[str, dict[int, list[tuple[float, float, float]]]] = {}
    for result in results:
        for predicted, observed, count in result["calibration"]:
            tenth = min(9, int(10 * predicted))
            pooled.setdefault(result["rows"][0]["arm"], {}).setdefault(tenth, []).append((predicted, observed, count))
    named: dict[str, list[tuple[float, float, float]]] = {}
    for name, tenths in pooled.items():
        for _, found in sorted(tenths.items()):
            count = sum(n for _, _, n in found)
            if count:
                predicted, observed = (sum(one[at] * one[2] for one in found) / count for at in (0, 1))
                named.setdefault(name, []).append((predicted, observed, count))
    return {"calibration of the acceptance head": charts.reliability(named)} if named else {}
