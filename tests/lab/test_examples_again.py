"""The page's examples before and after mixed answers."""

from __future__ import annotations

from pathlib import Path

from lab.examples_again import WAYS, measure, table
from omnidemo.core.config import Settings
from omnidemo.serving.pair_loading import build_pair


def test_examples_are_guessed_again_after_mixed_answers_as_fresh_and_better_a_second_time(
    tmp_path: Path,
) -> None:
    settings = Settings(storage=tmp_path, update_interval=100)
    pair = build_pair("bundled/large", "bundled/drafter", settings)
    found = list(measure(pair, settings, answers=4, orders=1, length=24, examples=3, policies=("chance",)))
    assert [one.way for one in found] == [way for way in WAYS for _ in range(3)]
    by_way = {way: [one for one in found if one.way == way] for way in WAYS}
    for one in by_way["without memory"]:
        assert one.tokens >= 0.9 * one.fresh_tokens, "n-grams apart nothing has changed"
    again = by_way["again"]
    assert sum(one.tokens for one in again) > 1.5 * sum(one.fresh_tokens for one in again)
    assert len(table(found).splitlines()) == 2 + len(WAYS)
