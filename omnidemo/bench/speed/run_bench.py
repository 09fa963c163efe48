"""`python -m omnidemo bench`: drafters first, then the contest of each target, then the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidemo.bench.prompt_files import check_writable
from omnidemo.bench.report_tables import Stage, csv_table
from omnidemo.bench.speed import llama_cpp, speed_report
from omnidemo.bench.speed.adapted import Learned, distilled, stored
from omnidemo.bench.speed.contest import BenchRequest, Contest
from omnidemo.bench.speed.machine import facts
from omnidemo.bench.speed.speed_report import Row
from omnidemo.config import Settings


def run(order: BenchRequest, settings: Settings) -> Iterator[Stage | Row]:
    """Yield how far it is, and each row when it is in `speed.csv`; `speed.json` and `speed.md` follow at the end of each target.

    ValueError or ModelError, before anything is measured, for what cannot be.
    """
    if 0 < order.requests < settings.update_interval:
        raise ValueError(f"a drafter learns every {settings.update_interval} answers; give at least so many requests, or 0 for none")
    check_writable(order.out / "speed.csv")
    rows: list[Row] = []
    about: dict[str, Any] = {"command": order.command} if order.command else {}
    with csv_table(order.out / "speed.csv", speed_report.COLUMNS) as append:
        for target in order.targets:
            learned: dict[str, Learned] = {}
            for topic in order.held_out:
                found = stored(order.adapters, settings, target, topic) if order.adapters else None
                prompts = list(order.traffic.get(topic, ()))[: order.requests]
                if found is None and prompts:
                    found = yield from distilled(settings, target, prompts, order.seed, f"{target}: learning {topic}")
                if found is not None:
                    learned[topic] = found
            contest = Contest(target, order, learned, settings)
            about = facts(contest.target.device) | about
            for count, row in enumerate(contest.run(), 1):
                append(row)
                rows.append(row)
                yield Stage(f"{target}: answers", count, contest.total)
                yield row
            about[target] = _about(contest, learned)
            _write(order.out, rows, about)


def _about(contest: Contest, learned: Mapping[str, Learned]) -> dict[str, Any]:
    """What has to be known about one target's figures."""
    rates = {f"{count} threads": f"{contest.probe.rate(count) / 1e9:.0f} Gop/s" for count in sorted(set(contest.threads.values()))}
    bandwidths = {f"{count} threads": contest.probe.table(count) for count in sorted(set(contest.threads.values()))}
    tried = {side: {str(count): round(seconds, 4) for count, seconds in times.items()} for side, times in contest.tried.items()}
    return {
        "drafter": contest.drafter.name,
        "dtype": str(contest.target.dtype).removeprefix("torch."),
        "parameters": f"{contest.target.parameters:,} and {contest.drafter.parameters:,}",
        "threads": contest.threads,
        "seconds by threads": tried or "given",
        "bandwidth GB/s": bandwidths,
        "rate": rates,
        "llama.cpp": contest.no_llama or llama_cpp.about(),
        "adapted drafters": {topic: one.origin for topic, one in learned.items()} or "none",
    }


def _write(out: Path, rows: Sequence[Row], about: Mapping[str, Any]) -> None:
    (out / "speed.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "speed.md").write_text(speed_report.markdown(rows, about), encoding="utf-8")
