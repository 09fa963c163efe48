"""What visitors of a public app have of their own, they have where replicas answer, too: the same tests over
two of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.test_visitors import (  # noqa: F401
    App,
    public_settings,
    test_lines_end_after_a_time_and_where_there_are_too_many,
    test_recorded_rounds_and_runs_beside_an_answer_are_the_visitors_own,
    test_two_visitors_at_once_take_turns,
    test_two_visitors_have_lines_ngrams_and_a_history_of_their_own,
    test_what_concerns_everybody_is_refused_in_one_sentence,
)
from tests.support.local_replicas import LocalCluster


@pytest.fixture
def app(models: tuple[str, str], tmp_path: Path) -> Iterator[App]:
    made = App(public_settings(models, tmp_path / "storage"), LocalCluster())
    yield made
    made.services.close()


def test_replicas_hold_a_visitors_ngrams_and_version_apart(app: App) -> None:
    for _ in range(4):
        answer = app.ask("a", temperature=1.5, max_new_tokens=40)
    assert answer.adapter_version > 0
    assert app.ask("b").adapter_version == 0 == app.services.pair(*app.pair).adapter_version


def test_a_fingerprint_names_no_backend_of_a_process_that_does_not_answer(app: App) -> None:
    assert re.fullmatch(r"replicas\.[0-9a-f]{12}", app.services.pool.conditions(*app.pair))
