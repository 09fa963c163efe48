"""The command prices, and what `generate --explain` prints. What a pass takes on this machine is no matter
here."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.cli import Cli, refused

PROMPT = "the other ducks swim and the other ducks swim"


def test_prices_are_measured_once_and_kept_with_what_rounds_took(
    cli: Cli, names: list[str], tmp_path: Path
) -> None:
    kept = ("--storage", tmp_path / "kept")
    first = cli("prices", *names, *kept)
    assert first.code == 0 and "The list is measured" in first.out and "corrected by 0 rounds" in first.out
    (found,) = json.loads((tmp_path / "kept" / "prices.json").read_text()).values()
    assert sorted(map(int, found["passes"])) == [1, 2, 4, 6, 8, 16] and not found["took"]
    again = cli("prices", *names, *kept)
    assert "The list is stored" in again.out and again.out.count("–") >= 12
    for rows, seconds in found["passes"].items():
        assert f"{1e3 * seconds:.2f}" in again.out, rows
    assert "The list is measured" in cli("prices", *names, *kept, "--measure").out


def test_a_round_says_what_it_chose_from(cli: Cli, names: list[str]) -> None:
    made = cli("generate", PROMPT, "--max-new-tokens", 40, "--temperature", 0, "--explain", *names)
    assert made.code == 0 and "What each source offered" in made.out and "took it, proposed" in made.out
    assert made.out.count("plain") > 1
    alone = [line for line in made.out.splitlines() if "plain" in line and "took it" in line]
    reasons = r"drafter \d\.\d\d < 1\.\d\d|memory has nothing|copy \d\.\d\d < \d\.\d\d"
    assert all(re.search(rf"took it, no guess .*({reasons}).*, wrote 1", line) for line in alone)
    assert "reach what is needed" in made.err
    told = json.loads(cli("generate", PROMPT, "--max-new-tokens", 8, "--explain", "--json", *names).out)
    assert all(sum(offer[5] for offer in one["offers"]) == 1 for one in told["rounds"])
    silent = json.loads(cli("generate", PROMPT, "--max-new-tokens", 8, "--json", *names).out)
    assert not any(one["offers"] for one in silent["rounds"])


def test_a_pair_that_is_none_has_no_prices(cli: Cli, tmp_path: Path) -> None:
    refused(cli("prices", "--target", tmp_path / "nothing", "--drafter", tmp_path / "nothing"), "nothing")
