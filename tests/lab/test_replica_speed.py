"""What replicas' answers cost is counted on all messages, and counting changes no answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.overhead.replica_speed import Task, run, sizes, timed
from omnidemo.core.config import Settings
from omnidemo.serving.replicas.replicated_pair import ReplicatedPair
from tests.support.local_replicas import LocalCluster
from tests.support.trained_pair import DRAFTER, TARGET

PROMPTS = ("What is 37 + 25?", "What is 4 + 9?")


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(
        Settings(target=TARGET, drafter=DRAFTER, device="cpu", threads=1),
        PROMPTS,
        clients=1,
        passes=1,
        tokens=24,
    )


@pytest.fixture(scope="module")
def pair(task: Task) -> Iterator[ReplicatedPair]:
    made = LocalCluster(2).build(task.settings.target, task.settings.drafter, task.settings)
    assert isinstance(made, ReplicatedPair)
    yield made


def test_each_message_of_each_answer_is_counted(task: Task, pair: ReplicatedPair) -> None:
    options = {
        "temperature": 0.0,
        "seed": 0,
        "learn": False,
        "draft_policy": "fixed",
        "draft_length": task.settings.draft_length,
    }
    made = [
        pair.generate([{"role": "user", "content": one}], max_new_tokens=task.tokens, **options)
        for one in PROMPTS
    ]
    replicas = pair.replicas
    served = timed(pair, task, 1, "two")
    assert pair.replicas is replicas
    assert (served.answers, served.tokens) == (2, sum(len(one.token_ids) for one in made))
    # these replicas send each round, and the end, alone
    assert served.messages == sum(len(one.rounds) + 1 for one in made)
    assert served.cells()[:2] == ("two", "2")


def test_calls_rounds_and_traces_are_weighed(task: Task, pair: ReplicatedPair) -> None:
    replicas, found = pair.replicas, sizes(pair, task)
    assert found.call > 0 and found.round > 0 and found.trace_per_token > 0
    assert not pair.learners and pair.replicas is replicas


@pytest.mark.parametrize("layouts", [[0], [2, -1], []])
def test_a_number_of_replicas_that_is_none_is_refused_before_anything_runs(
    task: Task, layouts: list[int]
) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        next(run(task, layouts))


def test_a_process_alone_sends_no_messages(task: Task) -> None:
    from omnidemo.serving.pair_loading import build_pair

    alone = timed(build_pair(task.settings.target, task.settings.drafter, task.settings), task, 1, "alone")
    assert alone.messages == 0 and alone.tokens > 0 and alone.cells()[3:] == ("–", "–")
