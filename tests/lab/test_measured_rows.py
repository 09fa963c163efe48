"""What stands beside a figure: the machine, the spread, the error."""

from __future__ import annotations

import torch

from lab import measured_rows
from lab.measured_rows import with_error
from lab.races import machine


def test_the_machine_is_told() -> None:
    known = machine.facts(torch.device("cpu"))
    assert known["cores"] >= 1 and known["transformers"] and known["commit"]


def test_spreads_are_ranges_and_unknown_values_are_dashes() -> None:
    assert measured_rows.Percentiles.of([1.0, 2.0, 3.0, None]).text(".1f") == "2.0 (1.2–2.8)"
    assert measured_rows.Percentiles.of([2.0]).text(".1f") == "2.0"
    assert measured_rows.Percentiles.of([None]).text(".1f") == "–"
    assert measured_rows.markdown_table(["a"], [["x|y"]]).splitlines() == ["| a |", "| --- |", "| x\\|y |"]


def test_the_error_of_a_mean_is_its_spread_over_the_root_of_their_number() -> None:
    assert with_error([1.0, 2.0, 3.0, 2.0], ".2f") == "2.00 ± 0.41" and with_error([2.0], ".1f") == "2.0"
