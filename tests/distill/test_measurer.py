"""Agreement by hand, and that it neither depends on a draft policy nor delays an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Trace
from omnidemo.learning.distill import losses, trace_agreement, train_step
from omnidemo.learning.distill.learner import Learner
from omnidemo.serving.pair_loading import attach_storage, build_pair, open_store
from tests.support.learning import FakeWorker, make_trace, save_drafter, until

# --- agreement ----------------------------------------------------------------------------------------------

# Three drafter tokens. Position 0 is directly mapped, 1 an n-gram of two, 2 has no spelling, 3 is directly
# mapped.
Q = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.25, 0.25, 0.5]])


def a_trace(temperature: float) -> Trace:
    return Trace(
        drafter_ids=np.array([0, 1, 1, 2, 0]),
        starts=np.array([1, 2, 0, 4]),
        lengths=np.array([1, 2, 0, 1]),
        accepted=np.zeros(4, bool),
        p=np.array([0.6, 0.5, 1.0, 0.4], np.float32),
        top_ids=np.array([[1, 0], [2, 0], [0, 1], [0, 2]]),
        top_p=np.array([[0.6, 0.3], [0.3, 0.1], [0.0, 0.0], [0.4, 0.5]], np.float32),
        temperature=temperature,
    )


def logits(trace: Trace) -> tuple[torch.Tensor, losses.Positions]:
    at = losses.positions([trace])
    return Q.log()[at.rows[:, 1]], at


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_agreement_is_the_overlap_at_temperature_1_whatever_the_request_asked_for(temperature: float) -> None:
    overlap, same = trace_agreement.agreement(*logits(a_trace(temperature)))
    product = 0.6 * 0.8  # of the n-gram's pieces 1 and 2, read at rows 1 and 2
    by_hand = [
        min(0.6, 0.3) + min(0.3, 0.5),  # row 0
        min(0.4, 0.25) + min(0.5, 0.5),  # row 3
        # row 1; the n-gram's first piece, 1, is not among the kept tokens
        min(0.3, 0.2) + min(0.1, 0.2) + min(0.5, product),
    ]
    assert overlap.tolist() == pytest.approx(by_hand)
    # Row 0 finds 0 most probable, the target 1; rows 1 and 2 find the n-gram's pieces, which the target finds
    # most probable; row 3 finds 2, as the target does.
    assert same.tolist() == [0.0, 1.0, 1.0]


def test_the_first_choice_is_not_the_same_where_an_unknown_token_may_be_the_targets() -> None:
    trace = replace(
        a_trace(1.0),
        top_p=np.array([[0.3, 0.1], [0.3, 0.1], [0, 0], [0.1, 0.3]], np.float32),
        p=np.full(4, 0.2, np.float32),
    )
    assert trace_agreement.agreement(*logits(trace))[1].tolist() == [0.0, 0.0, 0.0]


def test_positions_that_cannot_be_spelled_count_zero(tmp_path: Path) -> None:
    learner = Learner(save_drafter(tmp_path / "drafter"), 4)
    trace = make_trace(0)
    (whole,) = train_step.agree(learner, None, [trace])
    names = ("starts", "lengths", "accepted", "p", "top_ids", "top_p")
    twice = replace(trace, **{name: np.concatenate([getattr(trace, name)] * 2) for name in names})
    twice.lengths[len(trace.p) :] = 0
    (half,) = train_step.agree(learner, None, [twice])
    assert half.positions == 2 * whole.positions == 2 * len(trace.p) and whole.overlap > 0
    assert (half.overlap, half.same_first) == (
        pytest.approx(whole.overlap / 2),
        pytest.approx(whole.same_first / 2),
    )


@pytest.mark.parametrize("window", [4, 6, 9, 64])
def test_a_long_answer_is_read_in_parts_with_every_position_once(window: int) -> None:
    trace = make_trace(3, length=40)
    found = list(losses.parts(trace, window))
    assert all(len(part.drafter_ids) <= window for part in found)
    assert sum(len(part.p) for part in found) == len(trace.p)
    spelled = [
        tuple(part.drafter_ids[s : s + n])
        for part in found[::-1]
        for s, n in zip(part.starts, part.lengths, strict=True)
    ]
    assert spelled == [
        tuple(trace.drafter_ids[s : s + n]) for s, n in zip(trace.starts, trace.lengths, strict=True)
    ]


# --- a pair that learns -------------------------------------------------------------------------------------


class World:
    """A pair with storage, whose lines learn in the answering thread."""

    def __init__(self, models: tuple[str, str], storage: Path) -> None:
        self.settings = Settings(
            storage=storage, training="inline", update_interval=2, steps_per_update=2, lora_rank=4,
            top_k_traces=16,
        )  # fmt: skip
        self.store = open_store(self.settings)
        self.pair = build_pair(*models, self.settings)
        self.lines = attach_storage(self.pair, self.settings, self.store)
        self.measurer = self.lines.measurer

    def ask(self, text: str, **options: object) -> Generation:
        made = self.pair.generate(text, max_new_tokens=24, reuse=False, **options)  # type: ignore[arg-type]
        self.lines.run_pending()
        return made

    def close(self) -> None:
        self.lines.close()
        self.store.close()


@pytest.fixture
def world(models: tuple[str, str], tmp_path: Path) -> Iterator[World]:
    made = World(models, tmp_path)
    yield made
    made.close()


def test_the_agreement_of_an_answer_comes_later(world: World) -> None:
    answer = world.ask("duck")
    assert world.pair.agreement(Generation((), "", (), {}, "end", "x", 1)) is None
    until(lambda: world.pair.agreement(answer) is not None, 120)
    found = world.pair.agreement(answer)
    assert found is not None and found.positions == 24 and 0 < found.overlap < 1


def test_agreement_does_not_depend_on_the_draft_policy(models: tuple[str, str], tmp_path: Path) -> None:
    found = []
    for policy in ({"draft_policy": "cost"}, {"draft_policy": "fixed", "draft_length": 2}):
        world = World(models, tmp_path / str(policy["draft_policy"]))
        try:
            answers = [world.ask(f"duck {place}", temperature=0.0, **policy) for place in range(2)]
            until(lambda world=world, answers=answers: all(world.pair.agreement(one) for one in answers), 60)  # type: ignore[misc]
            agreed = [world.pair.agreement(one) for one in answers]
            found.append([(one.overlap, one.same_first, one.positions) for one in agreed if one])
        finally:
            world.close()
    assert np.allclose(found[0], found[1], atol=1e-6) and len(found[0]) == 2


def test_recording_and_measuring_give_way_to_whoever_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording ends after the pass that it is in."""
    ids = world.pair.prompt_ids("the duck")
    passes: list[bool] = []

    def cancelled() -> bool:
        passes.append(True)
        return len(passes) > 3

    assert world.pair.record(ids, 12, cancelled) is None and len(passes) == 4 and not world.pair.in_flight
    made = world.pair.record(ids, 12, lambda: False)
    greedy = world.pair.generate(ids, method="autoregressive", max_new_tokens=12, reuse=False, learn=False)
    assert made is not None and made[0] == greedy.token_ids and len(made[1].p) == 12

    working = threading.Event()
    monkeypatch.setattr(type(world.measurer), "_agree", lambda self: (self._waiting.clear(), working.set()))
    rounds = world.pair.stream("a duck", max_new_tokens=20, reuse=False)
    next(rounds)
    world.measurer.observe(make_trace(1))
    time.sleep(0.3)
    assert world.pair.in_flight and not working.is_set()  # it waits for the answer's end
    for _ in rounds:
        pass
    until(working.is_set, 10)


def test_a_measurement_stands_still_while_somebody_is_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = FakeWorker()
    monkeypatch.setattr(world.measurer, "_worker", lambda: worker)
    with world.measurer._working():
        assert worker.turn.locked()  # no update makes the process go on meanwhile
        rounds = world.pair.stream("a duck", max_new_tokens=20, reuse=False, learn=False)
        next(rounds)
        until(lambda: [paused for _, paused in worker.moves] == [True], 10)
        for _ in rounds:
            pass
        until(lambda: [paused for _, paused in worker.moves] == [True, False], 10)
    assert not worker.turn.locked()


def test_a_pair_that_learns_nothing_measures_nothing(world: World) -> None:
    world.lines.configure(world.settings.model_copy(update={"training": "off"}))
    answer = world.pair.generate("duck", max_new_tokens=8)
    assert world.measurer._thread is None and world.pair.agreement(answer) is None
