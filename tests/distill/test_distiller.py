"""The distiller: updates, judged versions, scheduling and cost-aware learning. Tiny random drafters."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from omnidemo.core.config import Settings, changed
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.config.controls import CONTROLS
from omnidemo.learning.distill import in_process_worker, train_step, update
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.learning.distill.evaluation import difference
from omnidemo.learning.distill.learner import learner_for
from omnidemo.learning.distill.worker import POLL_SECONDS, PauseController, TrainingPlan, plan_of
from omnidemo.models.adapters import adapter_state, version_folders
from omnidemo.models.adapters.adapter_state import AdapterState
from tests.support.learning import FakeStore, FakeWorker, Owner, computing, make_trace, save_drafter, until

torch.set_num_threads(1)
Make = Callable[..., tuple[Distiller, Owner]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_drafter(tmp_path_factory.mktemp("drafter"))


@pytest.fixture
def make(folder: Path, tmp_path: Path) -> Iterator[Make]:
    made: list[Distiller] = []

    def build(
        store: FakeStore | None = None,
        *,
        mode: Any = "inline",
        drafter: Path = folder,
        worker: Any = None,
        **settings: Any,
    ) -> tuple[Distiller, Owner]:
        values: dict[str, Any] = {
            "update_interval": 2,
            "steps_per_update": 3,
            "lora_rank": 4,
            "adapters_kept": 3,
        } | settings
        chosen = Settings(training=mode, **values)
        owner = Owner()
        one = Distiller(
            drafter,
            "bundled/drafter",
            "bundled/large",
            chosen,
            tmp_path,
            publish=owner.publish,
            store=store or FakeStore(),
            busy=owner.busy,
            worker=worker,
        )
        owner.line = one.versions.folder
        made.append(one)
        return one, owner

    yield build
    for one in made:
        one.close()


def feed(distiller: Distiller, count: int = 2, seed: int = 0, accepted: float = 0.5) -> None:
    for index in range(count):
        distiller.observe(make_trace(seed + index, accepted=accepted))


def plan(distiller: Distiller) -> TrainingPlan:
    """How the next update trains."""
    return plan_of(distiller.settings, distiller.evaluation.pace)


def configure(distiller: Distiller, **changes: Any) -> None:
    distiller.configure(changed(distiller.settings, changes, CONTROLS))


def rests_at(distiller: Distiller, version: int) -> None:
    until(lambda: distiller.status().version == version and distiller.status().state == "idle")


def trusting(make: Make, store: FakeStore | None) -> tuple[FakeWorker, Distiller, Owner]:
    """A line that drafts by version 2 and trusts version 1."""
    child = FakeWorker(gain=0.05)
    distiller, owner = make(store, mode="concurrent", worker=child, update_interval=4)
    for number in range(2):
        feed(distiller, 4, seed=number)
        rests_at(distiller, number + 1)
    assert distiller.versions.trusted.version == 1
    return child, distiller, owner


# --- updates ------------------------------------------------------------------------------------------------


def test_inline_updates_record_publish_prune_and_restart(make: Make) -> None:
    store = FakeStore()
    distiller, owner = make(store)
    assert distiller.restore() == 0 and distiller.status().version == 0
    distiller.observe(make_trace(0))
    assert not distiller.run_pending() and distiller.status().next_in == 1
    for number in range(1, 6):
        feed(distiller, seed=number)
        assert distiller.run_pending()
    status = distiller.status()
    assert (status.state, status.version, status.step, status.requests_seen) == ("idle", 5, 15, 11)
    assert (
        status.loss is not None
        and status.last_swap is not None
        and status.seconds > 0
        and status.error is None
    )
    assert (status.mode, status.domain, status.rolled_back) == ("inline", "default", 0)
    assert [version for version, _ in owner.published] == [1, 2, 3, 4, 5] and all(owner.on_disk)
    assert set(distiller.versions.numbers()) - {distiller.versions.trusted.version} <= {
        5,
        4,
        3,
    }
    assert [call[3] for call in store.named("record_steps")] == [1, 2, 3, 4, 5]
    added = [call[0] for call in store.named("add_adapter")]
    assert [one.parent for one in added] == [0, 1, 2, 3, 4] and added[-1].steps == 15
    manifest = json.loads(
        (version_folders.version_folder(distiller.versions.folder, 5) / version_folders.MANIFEST).read_text()
    )
    assert (
        manifest["base"] == "bundled/drafter"
        and manifest["sha256"] == added[-1].sha256
        and manifest["requests_seen"] == 11
    )

    again, its_owner = make()
    assert again.restore() == 5
    restored, version = again.versions.current, again.status()
    assert restored.optimiser is not None and (version.step, version.requests_seen, version.loss) == (
        15,
        11,
        status.loss,
    )
    known = distiller.versions.current.optimiser
    assert known is not None and all(
        torch.equal(tensor, known.moments[name]) for name, tensor in restored.optimiser.moments.items()
    )
    assert all(
        torch.equal(tensor, owner.published[-1][1][name])
        for name, tensor in its_owner.published[0][1].items()
    )
    assert again.versions.trusted.version == distiller.versions.trusted.version


def test_activate_and_reset(make: Make, folder: Path) -> None:
    store = FakeStore()
    distiller, owner = make(store)
    for number in range(3):
        feed(distiller, seed=number)
        distiller.run_pending()
    distiller.activate(1)
    assert (
        distiller.status().version == 1
        and owner.published[-1][0] == 1
        and store.named("set_active")[-1][-1] == 1
    )
    again, _ = make()
    assert again.restore() == 1  # the choice by hand outlives a restart
    feed(distiller, seed=9)
    distiller.run_pending()
    assert distiller.status().version == 4 and store.named("add_adapter")[-1][0].parent == 1
    with pytest.raises(ValueError, match="incomplete"):
        distiller.activate(77)
    assert distiller.status().version == 4
    distiller.reset()
    base = adapter_state.BaseWeights(folder)
    version, weights = owner.published[-1]
    assert (
        version == 0
        and len(weights) == 14
        and all(torch.equal(tensor, base[name].float()) for name, tensor in weights.items())
    )
    status = distiller.status()
    assert (status.version, status.step, status.loss, status.requests_seen) == (0, 0, None, 0)
    assert distiller.versions.numbers() == []
    assert store.named("forget_line") == [("bundled/large", "bundled/drafter", "default")]


def test_all_weights_can_be_trained_and_the_head_travels_along(make: Make, folder: Path) -> None:
    distiller, owner = make(lora_rank=0, head="joint", draft_policy="head")
    feed(distiller)
    distiller.run_pending()
    assert distiller.status().error is None and distiller.status().version == 1
    base = adapter_state.BaseWeights(folder)
    assert "model.norm.weight" in owner.published[0][1] and owner.heads[0]
    assert any(not torch.equal(tensor, base[name].float()) for name, tensor in owner.published[0][1].items())
    again, its_owner = make(lora_rank=0)
    assert again.restore() == 1
    assert all(
        torch.equal(tensor, owner.published[0][1][name]) for name, tensor in its_owner.published[0][1].items()
    )
    assert (
        all(torch.equal(tensor, owner.heads[0][name]) for name, tensor in its_owner.heads[0].items())
        and its_owner.heads[0]
    )
    again.activate(0)
    assert all(torch.equal(tensor, base[name].float()) for name, tensor in its_owner.published[-1][1].items())
    off, its_owner = make(head="off")
    off.reset()
    feed(off)
    off.run_pending()
    assert its_owner.heads[-1] == {}


def test_the_acceptance_head_learns_only_where_the_policy_is_head(make: Make) -> None:
    for policy in ("auto", *get_args(Policy)):
        assert plan(make(draft_policy=policy)[0]).head == ("interleaved" if policy == "head" else "off")
    distiller, owner = make(draft_policy="chance")
    feed(distiller)
    distiller.run_pending()
    assert distiller.status().version == 1 and owner.heads == [{}]


def test_an_update_that_began_before_a_reset_is_dropped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    distiller, owner = make()
    feed(distiller)
    real = train_step.train

    def resets_meanwhile(*values: Any) -> train_step.Trained:
        answer = real(*values)
        distiller.reset()
        return answer

    monkeypatch.setattr(in_process_worker, "train", resets_meanwhile)
    distiller.run_pending()
    assert distiller.status().version == 0 and [version for version, _ in owner.published] == [0]
    assert distiller.versions.numbers() == []


@pytest.mark.parametrize("verb", ["evaluate", "train"])
def test_what_is_done_by_hand_during_an_update_stands(
    make: Make, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    distiller, owner = make(update_interval=4)
    for number in range(2):
        feed(distiller, 4, seed=number)
        distiller.run_pending()
    real = getattr(train_step, verb)

    def meanwhile(*values: Any) -> Any:
        distiller.activate(1)
        return real(*values)

    monkeypatch.setattr(in_process_worker, verb, meanwhile)
    feed(distiller, 4, seed=9)
    distiller.run_pending()
    assert (
        distiller.status().version == 1 and owner.published[-1][0] == 1 and distiller.status().error is None
    )


def test_two_threads_run_one_update(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    distiller, _ = make(store)
    real, entered, go_on, beside = train_step.train, threading.Event(), threading.Event(), []

    def waits(*values: Any) -> train_step.Trained:
        entered.set()
        assert go_on.wait(20)
        return real(*values)

    monkeypatch.setattr(in_process_worker, "train", waits)
    feed(distiller)
    thread = threading.Thread(target=distiller.run_pending)
    thread.start()
    assert entered.wait(20)
    feed(distiller, 3, seed=5)  # one answer more than the next update needs
    assert not distiller.run_pending() and distiller.status().state == "training"
    beside += distiller.fresh_traces()
    go_on.set()
    thread.join()
    assert len(beside) == 3 and distiller.status().version == 1 and distiller.status().requests_seen == 5
    # what came meanwhile belongs to the next version
    assert store.named("add_adapter")[-1][0].requests_seen == 2
    assert distiller.run_pending() and store.named("add_adapter")[-1][0].requests_seen == 5


def test_an_update_comes_though_the_buffer_holds_fewer_answers(make: Make) -> None:
    distiller, _ = make(update_interval=6)
    distiller.buffer.most_bytes = 3 * make_trace(0).nbytes
    feed(distiller, 6)
    assert len(distiller.buffer) < 6 and distiller.run_pending() and distiller.status().version == 1


def test_failures_of_owner_and_model_are_told_not_raised(make: Make, tmp_path: Path) -> None:
    refusing, _ = make()
    refusing.versions._publish = lambda *_: 1 / 0  # type: ignore[assignment,return-value]
    feed(refusing)
    refusing.run_pending()
    assert refusing.status().state == "failed" and refusing.status().version == 0

    lost, _ = make(drafter=tmp_path / "nowhere")
    feed(lost)
    lost.run_pending()
    assert lost.status().state == "failed" and lost.status().error and lost.status().next_in == 2


# --- judged versions ----------------------------------------------------------------------------------------


def test_a_sabotaged_trainer_is_rolled_back_by_itself(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # a random drafter knows nothing that is worth keeping
    monkeypatch.setattr(update, "plan_of", lambda *given: replace(plan_of(*given), rehearsal=0.0))
    store = FakeStore()
    distiller, owner = make(store, update_interval=4, steps_per_update=12, batch_size=4, learning_rate=1e-2)
    for number in range(6):
        feed(distiller, 4, seed=4 * number)
        distiller.run_pending()
    trusted = distiller.versions.trusted.version
    assert trusted > 0 and distiller.status().rolled_back == 0  # what learns well is trusted
    effects = {call[3]: call[4] for call in store.named("set_effect")}
    assert (
        effects[trusted]["acceptance_after"] > effects[trusted]["acceptance_before"]
        and effects[trusted]["requests"] == 4
    )
    before = distiller.versions.current.version

    real = train_step.train

    def sabotaged(*values: Any) -> train_step.Trained:
        adapter, optimiser, steps = real(*values)
        broken = {
            name: torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1))
            for name, tensor in adapter.weights.items()
        }
        return replace(adapter, weights=broken), optimiser, steps

    monkeypatch.setattr(in_process_worker, "train", sabotaged)
    feed(distiller, 4, seed=100)
    distiller.run_pending()
    bad = distiller.versions.current.version
    assert bad == before + 1
    trusted = distiller.versions.trusted.version
    monkeypatch.setattr(in_process_worker, "train", real)
    feed(distiller, 4, seed=110)
    distiller.run_pending()
    status = distiller.status()
    assert status.version == trusted and status.rolled_back == 1 and owner.published[-1][0] == trusted
    assert f"Version {bad} guessed worse" in status.why and store.named("set_active")[-1][-1] == trusted
    effect = next(call[4] for call in store.named("set_effect") if call[3] == bad)
    assert effect["rolled_back"] == 1.0 and effect["acceptance_after"] < effect["acceptance_before"]
    again, _ = make()
    assert again.restore() == trusted  # a version that was rolled back stays so

    learner = learner_for({}, distiller.folder, distiller.versions.current.adapter, plan(distiller))
    broken = distiller.versions.load(bad).adapter
    now, worse = train_step.evaluate(
        learner, [distiller.versions.current.adapter, broken], [make_trace(seed) for seed in range(200, 210)]
    )
    assert now.mean() > worse.mean() + 0.1  # what is published guesses well again
    feed(distiller, 4, seed=120)
    distiller.run_pending()
    assert distiller.status().version == bad + 1


def test_the_trusted_version_is_never_pruned_and_a_small_slip_keeps_going(make: Make) -> None:
    child, distiller, _ = trusting(make, FakeStore())
    child.gain = 0.0
    child.acceptance = dict.fromkeys(child.acceptance, 0.5)  # from now on nothing is better or worse
    child.evaluate = lambda folder, states, traces, plan: [  # type: ignore[method-assign]
        np.where(np.arange(40) % 2 == index, 0.51, 0.5) - 0.0001 * (1 - index) for index in range(len(states))
    ]
    for number in range(2, 8):
        feed(distiller, 4, seed=number)
        rests_at(distiller, number + 1)
    status = distiller.status()
    assert (
        status.rolled_back == 0
        and distiller.versions.trusted.version == 1
        and difference(distiller.evaluation.evidence)[0] < 0
    )
    assert distiller.versions.numbers() == [8, 7, 6, 1]


def test_a_version_that_forgets_earlier_answers_is_rolled_back(make: Make) -> None:
    child, distiller, _ = trusting(make, FakeStore())
    on_new = child.evaluate

    def forgetful(folder: Any, states: Any, traces: Any, plan: Any) -> list[np.ndarray]:
        acceptance = on_new(folder, states, traces, plan)
        if traces[0].key != "new" and len(states) == 2 and states[0] is not states[1]:
            acceptance[0] = acceptance[0] - 0.3
        return acceptance

    child.evaluate = forgetful  # type: ignore[method-assign]
    for index in range(4):
        distiller.observe(replace(make_trace(20 + index), key="new"))
    until(lambda: distiller.status().rolled_back == 1 and distiller.status().state == "idle")
    assert distiller.status().version == 1 and "earlier answers" in distiller.status().why


def test_where_the_trusted_version_is_damaged_the_base_drafter_comes_back(make: Make) -> None:
    child, distiller, owner = trusting(make, None)
    (version_folders.version_folder(distiller.versions.folder, 1) / adapter_state.WEIGHTS).write_bytes(b"")
    child.gain = -0.4
    feed(distiller, 4, seed=2)  # version 2 is good, 3 is not; 2 is trusted by now
    rests_at(distiller, 3)
    (version_folders.version_folder(distiller.versions.folder, 2) / adapter_state.WEIGHTS).write_bytes(b"")
    feed(distiller, 4, seed=3)
    until(lambda: distiller.status().rolled_back == 1 and distiller.status().state == "idle")
    status = distiller.status()
    assert status.version == 0 and owner.published[-1][0] == 0 and "the base drafter is back" in status.why
    child.gain = 0.05
    feed(distiller, 4, seed=4)
    rests_at(distiller, 4)  # learning goes on
    again, _ = make()
    assert again.versions.restore() == 4 and again.versions.trusted.version == 0


def test_a_judgement_that_fails_does_not_stop_learning(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    distiller, _ = make(update_interval=4)
    monkeypatch.setattr(in_process_worker, "evaluate", lambda *_: 1 / 0)
    for number in range(3):
        feed(distiller, 4, seed=number)
        distiller.run_pending()
    assert (
        distiller.status().version == 3
        and distiller.status().error is None
        and not distiller.evaluation.evidence
    )


# --- when ---------------------------------------------------------------------------------------------------


def test_the_thread_waits_for_a_quiet_moment_and_survives_its_child(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    distiller, owner = make(FakeStore(), mode="idle")
    owner.in_flight = True
    feed(distiller)
    until(lambda: distiller.status().state == "waiting")
    time.sleep(0.15)
    assert not owner.published
    owner.in_flight = False
    until(lambda: distiller.status().version == 1)
    assert owner.on_disk == [True]

    # The evaluation of version 1 comes first, in the same child; one that fails changes nothing.
    training = threading.Event()
    train = distiller._worker.train

    def told(*given: Any) -> Any:
        training.set()
        return train(*given)

    monkeypatch.setattr(distiller._worker, "train", told)
    configure(distiller, steps_per_update=50_000)  # long enough to be shot
    feed(distiller)
    assert training.wait(60)
    pid = distiller._worker.pid
    assert pid is not None
    computing(pid)  # a child that dies before the request is just started again
    os.kill(pid, signal.SIGKILL)
    until(lambda: distiller.status().state == "failed")
    assert distiller.status().version == 1 and "ended unexpectedly" in (distiller.status().error or "")
    configure(distiller, steps_per_update=3)
    feed(distiller)
    # a swap comes before the end of its update
    until(lambda: distiller.status().version == 2 and distiller.status().state == "idle")
    assert distiller._worker.pid != pid

    distiller.pause()
    feed(distiller)
    time.sleep(0.1)
    assert distiller.status().state == "paused" and distiller.status().version == 2
    configure(distiller, steps_per_update=50_000)
    distiller.resume()
    until(lambda: distiller.status().state == "training")
    began = time.monotonic()
    distiller.close()
    assert time.monotonic() - began < 5  # the update would take minutes
    assert (
        distiller._worker.pid is None and distiller._thread is not None and not distiller._thread.is_alive()
    )


def test_a_chat_that_never_rests_does_not_starve_learning(make: Make) -> None:
    distiller, owner = make(mode="idle", worker=FakeWorker(0.05), patience=0.3)
    owner.in_flight = True
    began = time.monotonic()
    feed(distiller)
    until(lambda: distiller.status().version == 1)
    assert time.monotonic() - began > 0.3


def test_a_step_stands_still_while_an_answer_is_written_but_not_for_ever(make: Make) -> None:
    child = FakeWorker(seconds=0.6)
    distiller, owner = make(mode="idle", worker=child, patience=0.4)
    began = time.monotonic()
    feed(distiller)
    until(lambda: distiller.status().state == "training")
    time.sleep(0.05)
    owner.in_flight = True
    until(lambda: distiller.status().state == "waiting")
    time.sleep(0.1)
    owner.in_flight = False
    until(lambda: len(child.moves) == 2)
    owner.in_flight = True
    # though the chat goes on: what is left of its patience has ended
    rests_at(distiller, 1)
    whole = time.monotonic() - began
    assert [moved for _, moved in child.moves[:4]] == [True, False, True, False]
    stood = child.stood()
    assert stood > 0.3
    assert distiller.status().seconds < whole - stood + 0.2  # the time in which it stood still costs nothing


def test_a_step_beside_answers_takes_turns_with_them(make: Make) -> None:
    child = FakeWorker(seconds=0.5)
    distiller, owner = make(mode="concurrent", worker=child)
    owner.in_flight = True
    began = time.monotonic()
    feed(distiller)
    until(lambda: distiller.status().state == "training")
    while distiller.status().version == 0:
        assert distiller.status().state != "waiting"  # it goes on, if slowly
        time.sleep(0.01)
    rests_at(distiller, 1)
    whole, stood = time.monotonic() - began, child.stood()
    assert len(child.moves) >= 6 and child.moves[-1][1] is False
    assert 0.5 < stood / whole < 0.9
    assert distiller.status().seconds < whole - stood + 0.2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_pause_controller_that_breaks_leaves_no_process_standing() -> None:
    child = FakeWorker()

    def moved(stands: bool) -> None:
        if stands:
            raise RuntimeError("right after the child was stopped")

    with PauseController(child, lambda: True, 5.0, moved) as pauses:
        until(lambda: not pauses._thread.is_alive())
    assert [moved for _, moved in child.moves] == [True, False]


def test_a_worker_that_cannot_pause_is_not_said_to_stand() -> None:
    moves: list[bool] = []
    with PauseController(in_process_worker.InProcessWorker(), lambda: True, 5.0, moves.append) as pauses:
        time.sleep(5 * POLL_SECONDS)
    assert moves == [] and pauses.paused_seconds == 0


# --- settings -----------------------------------------------------------------------------------------------


def taught(folder: Path, storage: Path, **settings: Any) -> AdapterState:
    """What a line learned in two updates of two answers each, with a worker of its own."""
    values: dict[str, Any] = {"update_interval": 2, "steps_per_update": 3, "batch_size": 2, "lora_rank": 4}
    distiller = Distiller(
        folder, "drafter", "target", Settings(training="inline", **values | settings), storage,
        publish=Owner().publish, store=FakeStore(),
    )  # fmt: skip
    for seed in (0, 2):
        feed(distiller, seed=seed)
        assert distiller.run_pending()
    distiller.close()
    adapter = distiller.versions.current.adapter
    assert adapter is not None and distiller.status().version == 2
    return adapter


def same(one: AdapterState, other: AdapterState) -> bool:
    """Whether weights and acceptance head are equal to the last bit."""
    pairs = ((one.weights, other.weights), (one.head, other.head))
    return all(
        left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
        for left, right in pairs
    )


@pytest.mark.parametrize(("rank", "order"), [(4, "mixed"), (0, "mixed"), (4, "newest")])
def test_the_training_seed_decides_what_is_learned(
    folder: Path, tmp_path: Path, rank: int, order: str
) -> None:
    """Also where all weights are trained, so that every seed starts alike and only what is drawn differs."""
    found = [
        taught(folder, tmp_path / str(number), lora_rank=rank, buffer_order=order, **given)
        for number, given in enumerate(({}, {"training_seed": 0}, *[{"training_seed": 7}] * 2))
    ]
    assert same(found[0], found[1]) and same(found[2], found[3])
    assert not any(torch.equal(found[0].weights[name], found[2].weights[name]) for name in found[0].weights)


def test_settings_change_while_it_runs(make: Make) -> None:
    distiller, _ = make(mode="off", worker=in_process_worker.InProcessWorker())
    configure(
        distiller,
        lora_rank=2,
        training="inline",
        divergence="jsd",
        jsd_beta=0.3,
        buffer_positions="errors",
        buffer_order="newest",
    )
    chosen = plan(distiller)
    assert (chosen.rank, chosen.divergence, chosen.jsd_beta, chosen.errors_only) == (2, "jsd", 0.3, True)
    assert distiller.buffer.order == "newest"
    feed(distiller)
    assert distiller.run_pending() and distiller.status().version == 1 and distiller.status().error is None
    adapter = distiller.versions.current.adapter
    assert isinstance(adapter, AdapterState) and adapter.config["r"] == 2
    configure(distiller, lora_rank=8)
    assert distiller.settings.lora_rank == 2  # until it is reset
    with pytest.raises(ValueError, match="learning_rate = -1 is not possible"):
        configure(distiller, learning_rate=-1, batch_size=2)
    with pytest.raises(ValueError, match="storage cannot be changed"):
        configure(distiller, storage="elsewhere")
    with pytest.raises(ValueError, match=r"buffer_order = .best. is not possible"):
        configure(distiller, buffer_order="best")
    assert distiller.settings.batch_size == 8 and distiller.settings.lora_rank == 2
    distiller.reset()
    configure(distiller, lora_rank=8, training="concurrent")
    feed(distiller)
    until(lambda: distiller.status().version == 1)
    assert (
        distiller.versions.current.adapter is not None and distiller.versions.current.adapter.config["r"] == 8
    )
