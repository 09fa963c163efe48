"""The short form of `python -m lab torture`: a real server, real clients, a kill of each, and the books."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lab.torture import ledger, run_torture
from lab.torture.ledger import Outcome, Report
from lab.torture.run_torture import TortureRequest
from tests.support.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of files and signals as on Linux")


@pytest.mark.timeout(900)
def test_a_short_torture_holds(lab_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Report] = []

    def noted(order: TortureRequest, tell: run_torture.Tell) -> Report:
        reports.append(whole(order, tell))
        return reports[-1]

    whole = run_torture.run
    monkeypatch.setattr(run_torture, "run", noted)
    ended = lab_cli("torture", "--short", "--minutes", 0.3, "--clients", 2, "--keep", tmp_path / "kept")
    (report,) = reports
    assert report.held and ended.code == 0, "\n".join(report.troubles())
    assert "Everything held." in ended.out and "a first start: up after" in ended.err
    assert (
        report.outcomes[ledger.ACKNOWLEDGED].tried >= 2
        and report.outcomes["kills of the server"].survived == 1
    )
    assert report.outcomes["what pages of other sites tried"].tried > 10
    assert report.outcomes["what a visitor tried on another's data"].tried > 15
    assert (
        "tracebacks in the server's log" in report.outcomes
        and (tmp_path / "kept" / "public" / "server.log").is_file()
    )
    again = [
        one.tried
        for what, one in report.outcomes.items()
        if what.endswith("decoded again plainly by one process")
    ]
    assert sum(again) == len(ledger.fixed(sorted((tmp_path / "kept").glob("ledger-*"))))


def test_the_books_find_what_is_lost_doubled_altered_and_raw(tmp_path: Path) -> None:
    file, rows = tmp_path / "ledger", [("a", "1"), ("b", "2"), ("b", "2"), ("c", "3")]
    told = [("a", "1"), ("b", "2"), ("c", "other"), ("d", "4")]
    lines = [
        {
            "kind": "chat",
            "prompt": p,
            "acknowledged": True,
            "answer": a,
            "tokens": 8,
            "temperature": 0.0,
            "error": "",
            "raw": "",
        }
        for p, a in told
    ]
    lines += [
        {"kind": "chat", "prompt": "e", "acknowledged": False, "answer": None, "error": "busy", "raw": ""}
    ]
    lines += [
        {
            "kind": "bad",
            "event": "x",
            "data": "y",
            "status": 500,
            "error": "z",
            "raw": "'NoneType' object has no attribute",
        }
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "chat", "prom')
    found = ledger.compare([file], rows)
    told, bad = found[ledger.ACKNOWLEDGED], found[ledger.BAD]
    assert (told.tried, told.failed) == (4, ["doubled: b", "altered: c", "lost: d"])
    assert (bad.tried, len(bad.failed)) == (1, 1) and "NoneType" in bad.failed[0]
    assert not Report(found).held and Report().held and not Report({"x": Outcome(1, ["no"])}).held
    assert len(Report(found).troubles()) == 4 and Report(found).rows()[0][1:] == ["4", "1", "3"]
    assert ledger.fixed([file])["c", 8, 0.0] == {"other"}
