"""`python -m lab bench`: the contest of each target, then the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.measured_rows import make_writable
from lab.races import speed_report
from lab.races.contest import BenchRequest, Contest
from lab.races.machine import facts
from lab.races.speed_report import Row
from omnidemo.core.config import Settings
from omnidemo.models.names import drafter_of
from omnidemo.serving.measuring.report_tables import Stage, csv_table


def run(order: BenchRequest, settings: Settings) -> Iterator[Stage | Row]:
    """Yield how far it is, and each row when it is in `speed.csv`; `speed.json` and `speed.md` follow at the
    end of each target.

    ValueError or ModelError, before anything is measured, for what cannot be.
    """
    make_writable(order.out / "speed.csv")
    rows: list[Row] = []
    about: dict[str, Any] = {"command": order.command} if order.command else {}
    with csv_table(order.out / "speed.csv", speed_report.COLUMNS) as append:
        for target in order.targets:
            own = settings.model_copy(update={"drafter": drafter_of(target, settings)})
            contest = Contest(target, order, own)
            about = facts(contest.target.device) | about
            for count, row in enumerate(contest.run(), 1):
                append(row)
                rows.append(row)
                yield Stage(f"{target}: answers", count, contest.total)
                yield row
            about[target] = _about(contest)
            _write(order.out, rows, about)


def _about(contest: Contest) -> dict[str, Any]:
    """The conditions of one target's figures."""
    rates = {
        f"{count} threads": f"{contest.probe.rate(count) / 1e9:.0f} Gop/s"
        for count in sorted(set(contest.threads.values()))
    }
    bandwidths = {
        f"{count} threads": contest.probe.table(count) for count in sorted(set(contest.threads.values()))
    }
    tried = {
        side: {str(count): round(seconds, 4) for count, seconds in times.items()}
        for side, times in contest.tried.items()
    }
    return {
        "drafter": contest.drafter.name,
        "weights": contest.forms,
        "dtype": str(contest.target.dtype).removeprefix("torch."),
        "parameters": f"{contest.target.parameters:,} and {contest.drafter.parameters:,}",
        "threads": contest.threads,
        "seconds by threads": tried or "given",
        "bandwidth GB/s": bandwidths,
        "rate": rates,
    }


def _write(out: Path, rows: Sequence[Row], about: Mapping[str, Any]) -> None:
    (out / "speed.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "speed.md").write_text(speed_report.markdown(rows, about), encoding="utf-8")
