"""One update, pure: every loss, full fine-tuning, schedules, the acceptance head, judging; and the shared
child process."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from transformers import CohereConfig, CohereForCausalLM, LlamaForCausalLM

from omnidemo.learning.distill import train_step
from omnidemo.learning.distill.head_training import HeadTrainer
from omnidemo.learning.distill.learner import FULL, Learner
from omnidemo.learning.distill.losses import Divergence
from omnidemo.learning.distill.process_worker import ProcessWorker
from omnidemo.learning.distill.worker import TrainingPlan, WorkerError
from omnidemo.models.adapters import acceptance_head as heads
from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState
from tests.support import light_worker
from tests.support.learning import VOCAB, computing, cpu_ticks, make_trace, save_drafter, until
from tests.support.light_worker import MANY, NOTHING, ONE

torch.set_num_threads(1)
PLAN = TrainingPlan(rank=4, learning_rate=1e-2, warmup=2, ngram_weight=0.5, rehearsal=0.0)
SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_drafter(tmp_path_factory.mktemp("drafter"))


@pytest.fixture(scope="module")
def learner(folder: Path) -> Learner:
    return Learner(folder, PLAN.rank)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Learner:
    return Learner(folder, 0)


@pytest.fixture(scope="module")
def children() -> Iterator[list[ProcessWorker]]:
    made: list[ProcessWorker] = []
    yield made
    for one in made:
        one.close()


@pytest.fixture
def child(children: list[ProcessWorker]) -> ProcessWorker:
    """The one of the test before, where it left one: to load torch takes seconds. It runs, or it was killed
    and begins anew."""
    if not children or children[-1]._closed:
        children.append(ProcessWorker(nice=1))
    one = children[-1]
    one.timeout, one.patience = 600.0, 60.0
    return one


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessWorker]:
    """One whose process plays its steps."""
    light_worker.use(monkeypatch)
    made = ProcessWorker(nice=1)
    yield made
    made.close()


def same(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(tensor, other[name]) for name, tensor in one.items()
    )


# --- the drafter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("divergence", "ngram_loss"),
    [*((one, "nll") for one in get_args(Divergence)), ("acceptance", "dynamic"), ("forward", "kl")],
)
def test_every_loss_falls_on_its_own_batch(learner: Learner, divergence: Any, ngram_loss: Any) -> None:
    batch = [make_trace(seed) for seed in range(4)]
    plan = replace(PLAN, divergence=divergence, ngram_loss=ngram_loss, head="off")
    _, _, steps = train_step.train(learner, None, None, [batch] * 30, plan)
    assert all(math.isfinite(step.loss) and math.isfinite(step.grad_norm) for step in steps)
    assert steps[-1].loss < 0.9 * steps[0].loss and steps[-1].loss_ngram < steps[0].loss_ngram
    if ngram_loss != "dynamic":
        assert steps[0].loss == pytest.approx(steps[0].loss_direct + 0.5 * steps[0].loss_ngram, rel=1e-5)
    else:
        assert steps[0].loss == pytest.approx(steps[0].loss_direct + 0.7 * steps[0].loss_ngram, rel=1e-5)


@pytest.mark.parametrize("errors_only", [False, True])
@pytest.mark.parametrize("firsts", ["none", "all", "some"])
@pytest.mark.parametrize("ngram_loss", ["nll", "dynamic", "kl"])
def test_gradients_of_parts_add_up_to_those_of_the_batch(
    learner: Learner, ngram_loss: Any, firsts: str, errors_only: bool
) -> None:
    batch = [make_trace(seed) for seed in range(5)]
    for number, trace in enumerate(batch):
        if firsts == "all" or (firsts == "some" and number != 1):
            batch[number] = replace(trace, first_ids=trace.top_ids, first_p=trace.top_p)
    plan = replace(PLAN, divergence="acceptance", ngram_loss=ngram_loss, head="off", errors_only=errors_only)
    learner.load(learner.completed(None).weights)
    read = []
    for at_once in (2, len(batch)):
        for parameter in learner.parameters.values():
            parameter.grad = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(train_step, "READ_AT_ONCE", at_once)
            loss = train_step._gradients_in_parts(learner, batch, plan)
        read.append((loss, [parameter.grad.clone() for parameter in learner.parameters.values()]))
    (parts, some), (whole, every) = read
    assert parts == pytest.approx(whole, rel=1e-5) and parts[0] > 0 and parts[3] == whole[3] > 0
    for one, other in zip(some, every, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)
    assert any(gradient.abs().max() > 1e-5 for gradient in every)


def test_rates_by_hand() -> None:
    constant = TrainingPlan(learning_rate=1.0, warmup=4)
    assert [constant.rate(step) for step in (1, 2, 4, 1000)] == [0.25, 0.5, 1.0, 1.0]
    cosine = TrainingPlan(learning_rate=1.0, warmup=0, schedule="cosine", schedule_steps=100)
    assert [cosine.rate(step) for step in (50, 100, 1000)] == pytest.approx([0.55, 0.1, 0.1])
    assert cosine.rate(25) == pytest.approx(0.55 + 0.45 * math.sqrt(0.5))


def test_the_schedule_goes_on_over_updates(learner: Learner) -> None:
    plan = replace(PLAN, schedule="cosine", schedule_steps=4, head="off")
    adapter, optimiser, first = train_step.train(learner, None, None, [[make_trace(0)]] * 3, plan)
    _, _, second = train_step.train(learner, adapter, optimiser, [[make_trace(0)]] * 2, plan)
    assert [step.learning_rate for step in first + second] == [plan.rate(number) for number in range(1, 6)]
    assert second[-1].learning_rate == pytest.approx(PLAN.learning_rate / 10)


def test_errors_only_learns_from_nothing_else(learner: Learner) -> None:
    trace = make_trace(3)
    plan = replace(PLAN, errors_only=True, head="off")
    right = replace(trace, accepted=np.ones_like(trace.accepted))
    before, _, steps = train_step.train(learner, None, None, [[right]], plan)
    assert (steps[0].loss, steps[0].grad_norm) == (0.0, 0.0) and same(before.weights, learner.initial.weights)
    kept = ~trace.accepted
    cut = {
        name: getattr(trace, name)[kept]
        for name in ("starts", "lengths", "accepted", "p", "top_ids", "top_p")
    }
    only, _, _ = train_step.train(learner, None, None, [[trace]], plan)
    there, _, _ = train_step.train(
        learner, None, None, [[replace(trace, **cut)]], replace(plan, errors_only=False)
    )
    assert same(only.weights, there.weights)


def test_full_fine_tuning_moves_every_matrix_and_unties_nothing(whole: Learner, folder: Path) -> None:
    names = {name for name, _ in LlamaForCausalLM.from_pretrained(folder).named_parameters()}
    assert whole.initial.config == {"peft_type": "FULL"} and whole.initial.weights.keys() == names
    assert "lm_head.weight" not in names  # tied to the embedding, which stands for both
    plan = replace(PLAN, rank=0, learning_rate=1e-3)
    batch = [make_trace(seed) for seed in range(4)]
    adapter, optimiser, steps = train_step.train(whole, None, None, [batch] * 30, plan)
    assert steps[-1].loss < 0.7 * steps[0].loss
    assert all(
        not torch.equal(tensor, whole.initial.weights[name]) for name, tensor in adapter.weights.items()
    )
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.load_state_dict(dict(adapter.weights), strict=False)
    whole.load(adapter.weights)
    ids = torch.arange(10)[None]
    with torch.no_grad():
        mine = whole.read(ids, torch.tensor([[0, 4], [0, 9]]))[1]
        torch.testing.assert_close(mine, model(ids).logits[0, [4, 9]], atol=1e-5, rtol=1e-4)
    half, state, _ = train_step.train(whole, None, None, [batch] * 15, plan)
    resumed, _, _ = train_step.train(whole, half, state, [batch] * 15, plan)
    for name, tensor in adapter.weights.items():
        torch.testing.assert_close(resumed.weights[name], tensor)
    assert optimiser.step == 30 and f"exp_avg.{next(iter(names))}" in optimiser.moments


def test_a_state_of_another_rank_or_drafter_is_refused(learner: Learner, whole: Learner) -> None:
    for state in (
        whole.initial,
        AdapterState({name: t[:, :1] for name, t in learner.initial.weights.items()}, learner.initial.config),
    ):
        with pytest.raises(ValueError, match="does not fit this drafter"):
            train_step.evaluate(learner, [state], [make_trace(0)])


def test_an_adapter_of_some_layers_learns_on_with_all(learner: Learner) -> None:
    some = {name: weight + 0.01 for name, weight in learner.initial.weights.items() if "q_proj" in name}
    partial = AdapterState(some, learner.initial.config)
    traces = [make_trace(seed) for seed in range(4)]
    alone, filled = train_step.evaluate(
        learner, [partial, AdapterState({**learner.initial.weights, **some}, partial.config)], traces
    )
    assert np.array_equal(alone, filled)
    trained, _, steps = train_step.train(learner, partial, None, [traces], PLAN)
    assert trained.weights.keys() == learner.initial.weights.keys() and math.isfinite(steps[0].loss)


def test_states_are_what_the_output_layer_reads(learner: Learner, tmp_path: Path) -> None:
    """Also of a model that scales its logits behind the output layer."""
    torch.manual_seed(1)
    scaled = CohereForCausalLM(
        CohereConfig(vocab_size=VOCAB, max_position_embeddings=64, logit_scale=0.3, pad_token_id=0, **SMALL)
    )
    scaled.save_pretrained(tmp_path)
    other = Learner(tmp_path, 2)
    assert learner._head_is_linear and not other._head_is_linear
    ids, rows = torch.arange(12).reshape(2, 6), torch.tensor([[0, 1], [1, 5], [0, 2]])
    for one, factor in ((learner, 1.0), (other, 0.3)):
        with torch.no_grad():
            states, logits = one.read(ids, rows)
            assert states.shape == (3, 16)
            full = one.base(ids).logits[rows[:, 0], rows[:, 1]]
            torch.testing.assert_close(logits, full, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(
                one.base.get_output_embeddings()(states) * factor, full, atol=1e-5, rtol=1e-5
            )


# --- the head -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["joint", "interleaved"])
def test_the_head_learns_and_never_disturbs_the_drafter(learner: Learner, mode: Any) -> None:
    batches = [[make_trace(seed), make_trace(seed + 1)] for seed in range(5)]
    fresh = [[make_trace(seed, temperature=0.7 * (seed % 2)) for seed in range(20, 24)]]
    plain, plain_state, steps = train_step.train(learner, None, None, batches, replace(PLAN, head="off"))
    assert not plain.head and all(math.isnan(step.loss_head) for step in steps)
    adapter, state, steps = train_step.train(
        learner, None, None, batches, replace(PLAN, head=mode, errors_only=False), fresh
    )
    assert same(adapter.weights, plain.weights)
    assert same({k: v for k, v in state.moments.items() if not k.startswith("head.")}, plain_state.moments)
    assert heads.fits(adapter.head, 16) and not same(adapter.head, heads.fresh(16))
    assert {f"head.exp_avg.{name}" for name in adapter.head} < state.moments.keys()
    taken = [math.isfinite(step.loss_head) for step in steps]
    assert taken == ([True] * 5 if mode == "joint" else [False] * 4 + [True])
    assert state.moments["head.step"] == (5 if mode == "joint" else PLAN.head_steps)
    # Off again: what there is stays, bit for bit.
    later, after, _ = train_step.train(learner, adapter, state, batches, replace(PLAN, head="off"), fresh)
    assert same(later.head, adapter.head) and torch.equal(
        after.moments["head.step"], state.moments["head.step"]
    )


def test_the_head_goes_on_where_it_stopped(learner: Learner) -> None:
    seen = [[make_trace(seed)] for seed in range(4)]
    # the published weights stay as they are: only the head moves
    plan = replace(PLAN, head_steps=4, memory=1.0)
    whole, state, _ = train_step.train(learner, None, None, [], replace(plan, head_steps=8), seen)
    half, half_state, _ = train_step.train(learner, None, None, [], plan, seen)
    kept = {name: tensor.clone() for name, tensor in half.head.items()}
    train_step.train(learner, None, None, [], plan, seen[:1])  # something else in between
    resumed, again, _ = train_step.train(learner, half, half_state, [], plan, seen)
    assert same(half.head, kept) and again.moments["head.step"] == state.moments["head.step"] == 8
    for name, tensor in whole.head.items():
        torch.testing.assert_close(resumed.head[name], tensor)


@pytest.mark.parametrize("mode", ["joint", "interleaved"])
def test_trouble_with_the_head_costs_no_update(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    batches = [[make_trace(0)]] * 2
    plan = replace(PLAN, head=mode)
    plain, _, _ = train_step.train(learner, None, None, batches, replace(PLAN, head="off"))
    elsewhere = AdapterState(learner.initial.weights, learner.initial.config, heads.fresh(99))
    moved, state, steps = train_step.train(learner, elsewhere, None, batches, plan, batches)
    # a head of another drafter: a new one
    assert same(moved.weights, plain.weights) and heads.fits(moved.head, 16)
    bad = make_trace(1, temperature=0.5)
    everything = np.tile(np.arange(VOCAB), (len(bad.starts), 1))
    bad = replace(bad, top_ids=everything, top_p=np.full(everything.shape, np.nan, np.float32))
    poisoned, _, _ = train_step.train(learner, moved, state, [[bad]], plan, [[bad]])
    assert same(poisoned.head, moved.head)

    def broken(*values: Any) -> None:
        raise RuntimeError("no head today")

    monkeypatch.setattr(HeadTrainer, "slots", broken)
    again, _, steps = train_step.train(learner, None, None, batches, plan, batches)
    assert (
        same(again.weights, plain.weights)
        and not again.head
        and all(math.isnan(step.loss_head) for step in steps)
    )


# --- judging ------------------------------------------------------------------------------------------------


def test_judge_agrees_with_a_plain_loop(learner: Learner) -> None:
    traces = [make_trace(seed, 20 + seed) for seed in range(10)]  # more than one forward pass
    adapter, _, _ = train_step.train(learner, None, None, [traces] * 40, PLAN)
    base, better = train_step.evaluate(learner, [None, adapter], traces)
    expected = []
    for weights in (learner.initial.weights, adapter.weights):
        learner.load(weights)
        values = []
        for index, trace in enumerate(traces):
            with torch.no_grad():
                best = learner.base(torch.from_numpy(trace.drafter_ids)[None]).logits[0].argmax(-1)
            for start, length in zip(trace.starts, trace.lengths, strict=True):
                right = float(all(best[start + j - 1] == trace.drafter_ids[start + j] for j in range(length)))
                values.append((index // train_step.EVALUATED_AT_ONCE, length > 1, right))
        values.sort(key=lambda one: one[:2])  # of a forward pass the n-grams come last
        expected.append([right for _, _, right in values])
    assert base.tolist() == expected[0] and better.tolist() == expected[1]
    assert better.mean() > base.mean() + 0.2
    assert (
        train_step.evaluate(learner, [None], [])[0].shape == (0,)
        and train_step.evaluate(learner, [], traces) == []
    )


def test_judge_above_temperature_zero_is_a_probability_that_training_raises(
    learner: Learner,
) -> None:
    traces = [make_trace(seed, temperature=1.0) for seed in range(4)]
    adapter, _, _ = train_step.train(learner, None, None, [traces] * 60, PLAN)
    base, better = train_step.evaluate(learner, [None, adapter], traces)
    assert base.shape == better.shape == (sum(len(trace.starts) for trace in traces),)
    assert (base >= 0).all() and (better <= 1 + 1e-5).all() and better.mean() > base.mean() + 0.2
    cut = train_step.evaluate(learner, [None, adapter], [make_trace(1, 200)])
    assert len(cut[0]) == len(cut[1]) < 180  # the drafter reads 64


# --- the child process --------------------------------------------------------------------------------------


def test_the_child_trains_and_judges_as_here(child: ProcessWorker, folder: Path, learner: Learner) -> None:
    batches, fresh = [[make_trace(0), make_trace(1)]] * 2, [[make_trace(5)]]
    here, _, _ = train_step.train(learner, None, None, batches, PLAN, fresh)
    there, _, steps = child.train(folder, None, None, batches, PLAN, fresh)
    for one, other in ((here.weights, there.weights), (here.head, there.head)):
        for name, tensor in one.items():
            torch.testing.assert_close(other[name], tensor, atol=1e-5, rtol=1e-4)
    assert math.isfinite(steps[-1].loss_head)
    judged = child.evaluate(folder, [None, there], fresh[0], PLAN)
    for one, other in zip(judged, train_step.evaluate(learner, [None, here], fresh[0]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    full = child.train(folder, None, None, batches, replace(PLAN, rank=0))[0]
    assert full.config == FULL and child.evaluate(folder, [full], fresh[0], PLAN)[0].shape == judged[0].shape
    with pytest.raises(WorkerError, match="does not fit"):
        child.evaluate(folder, [full, there], fresh[0], PLAN)


def test_the_child_lowers_its_priority_before_it_loads_torch(child: ProcessWorker, folder: Path) -> None:
    code = (
        "import sys; import omnidemo.learning.distill.worker_process;"
        " print([name for name in ('torch', 'numpy', 'gradio') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(train_step.__file__).resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
    child.evaluate(folder, [None], [make_trace(0)], PLAN)
    assert child.pid is not None
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(
            19, os.getpriority(os.PRIO_PROCESS, 0) + child.nice
        )


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the end of standard input alone says that the parent is gone"
)
def test_a_process_whose_parent_was_killed_as_it_began_ends_at_once() -> None:
    """A stopped one would never read the end of its input, and Linux tells only of parents that die after it
    was asked to."""
    environment = os.environ | {"PYTHONPATH": str(Path(train_step.__file__).resolve().parents[3])}
    code = (
        "import os; from omnidemo.core.processes import end_with_parent; end_with_parent({}); print('lives')"
    )
    for parent, said in (("os.getppid()", "lives\n"), ("os.getppid() + 1", "")):
        command = [sys.executable, "-c", code.format(parent)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=60, check=False
        )
        assert done.stdout == said and (done.returncode == 0) is bool(said), done.stderr


def test_threads_share_the_child(child: ProcessWorker, folder: Path) -> None:
    results: dict[int, tuple[OptimiserState, int | None]] = {}

    def ask(count: int) -> None:
        results[count] = (child.train(folder, None, None, [[make_trace(count)]] * count, PLAN)[1], child.pid)

    threads = [threading.Thread(target=ask, args=(count,)) for count in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {count: state.step for count, (state, _) in results.items()} == {
        count: count for count in range(1, 6)
    }
    assert len({pid for _, pid in results.values()}) == 1  # it outlives the thread that asked first
    assert child.pid is not None


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system cannot stop a process")
def test_a_paused_child_rests_and_its_time_does_not_run(light: ProcessWorker, folder: Path) -> None:
    light.pause()
    done = threading.Event()
    asked: list[Any] = []

    def ask() -> None:
        asked.append(light.train(folder, None, None, ONE * 3, NOTHING))
        done.set()

    def stands_still(seconds: float) -> None:
        used = cpu_ticks(light.pid)
        assert not done.wait(seconds) and cpu_ticks(light.pid) == used

    threading.Thread(target=ask, daemon=True).start()
    until(lambda: light.pid is not None)
    assert not done.wait(0.3)
    stands_still(0.5)  # it has not even read the request
    light.resume()
    assert done.wait(60) and asked[0][1].step == 3
    light.timeout = 0.3
    light.pause()
    done.clear()
    threading.Thread(target=ask, daemon=True).start()
    stands_still(0.8)  # longer than a request may take
    light.timeout = 60.0
    light.resume()
    assert done.wait(60) and asked[1][1].step == 3


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system cannot stop a process")
def test_a_paused_child_is_closed_at_once(light: ProcessWorker, folder: Path) -> None:
    failed = threading.Event()

    def ask() -> None:
        with pytest.raises(WorkerError):
            light.train(folder, None, None, ONE, NOTHING)
        failed.set()

    light.pause()
    threading.Thread(target=ask, daemon=True).start()
    until(lambda: light.pid is not None)
    assert not failed.wait(0.3)
    began = time.monotonic()
    light.close()
    assert time.monotonic() - began < 5 and light.pid is None
    assert failed.wait(5)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system cannot stop a process")
def test_a_process_that_hangs_is_noticed_killed_and_started_again(light: ProcessWorker, folder: Path) -> None:
    """Somebody else stops it: before a request that does not fit into its pipe, and in the middle of one. A
    pause of ours is none."""
    light.train(folder, None, None, ONE, NOTHING)
    assert light.silent == 0.0
    first = light.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    light.patience = 0.5
    with pytest.raises(WorkerError, match=r"no sign of life for 0\.5 seconds"):
        light.train(folder, None, None, MANY, NOTHING)
    light.patience = 60.0
    assert light.train(folder, None, None, ONE, NOTHING)[1].step == 1 and light.pid != first
    failed: list[Exception] = []

    def ask() -> None:
        try:
            light.train(folder, None, None, MANY, NOTHING)
        except WorkerError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    computing(light.pid)
    light.pause()
    time.sleep(0.3)
    assert light.silent == 0.0  # it stands still on purpose
    light.resume()
    pid = light.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    until(lambda: light.silent > 0.5)
    light.patience = 0.5
    asking.join(20)
    assert failed and "no sign of life" in str(failed[0])


def test_a_process_that_hangs_as_it_starts_is_replaced(
    light: ProcessWorker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, commands = subprocess.Popen, [[sys.executable, "-c", "import time; time.sleep(60)"]]
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda command, **options: start(commands.pop() if commands else command, **options),
    )
    light.patience = 0.5
    with pytest.raises(WorkerError, match="no sign of life"):
        light.train(folder, None, None, ONE, NOTHING)
    light.patience = light.timeout = 60.0
    assert light.train(folder, None, None, ONE, NOTHING)[1].step == 1


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system cannot stop a process")
def test_a_process_that_hangs_is_noticed_although_it_rests_most_of_the_time(
    light: ProcessWorker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    silent = (
        "import pickle, sys, time; pickle.dump(None, sys.stdout.buffer); sys.stdout.flush(); time.sleep(60)"
    )
    commands = [[sys.executable, "-c", silent]]
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda command, **options: start(commands.pop() if commands else command, **options),
    )
    light.patience, done = 0.3, threading.Event()

    def rest() -> None:
        while not done.wait(0.03):
            light.pause()
            done.wait(0.1)
            light.resume()

    resting = threading.Thread(target=rest)
    resting.start()
    with pytest.raises(WorkerError, match="no sign of life"):
        light.train(folder, None, None, ONE, NOTHING)
    done.set()
    resting.join()
    light.patience = 60.0
    assert light.train(folder, None, None, ONE, NOTHING)[1].step == 1


def test_a_request_that_takes_too_long_is_given_up(light: ProcessWorker, folder: Path) -> None:
    light.train(folder, None, None, ONE, NOTHING)
    first, light.timeout = light.pid, 0.6
    with pytest.raises(WorkerError, match=r"longer than 0\.6 seconds"):
        light.train(folder, None, None, MANY, NOTHING)
    light.timeout = 60.0
    assert light.train(folder, None, None, ONE, NOTHING)[1].step == 1 and light.pid != first


def test_closing_ends_a_request_in_flight(light: ProcessWorker, folder: Path) -> None:
    light.train(folder, None, None, ONE, NOTHING)
    threading.Timer(0.3, light.close).start()
    with pytest.raises(WorkerError):
        light.train(folder, None, None, MANY, NOTHING)
    with pytest.raises(WorkerError, match="closed"):
        light.evaluate(folder, [None], [make_trace(0)], PLAN)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a stopped process with its parent")
def test_children_die_with_their_parent_also_a_paused_one() -> None:
    code = """
import os, signal, threading
from pathlib import Path
import pytest
from omnidemo.learning.distill.process_worker import ProcessWorker
from tests.support import light_worker
from tests.support.learning import computing, until
light_worker.use(pytest.MonkeyPatch())
request = Path(), None, None
child, paused = ProcessWorker(nice=0), ProcessWorker(nice=0)
paused.pause()
given = *request, light_worker.ONE, None
threading.Thread(target=paused.train, args=given, daemon=True).start()
child.train(*given)
given = *request, light_worker.MANY, None
threading.Thread(target=child.train, args=given, daemon=True).start()
computing(child.pid)
until(lambda: paused.pid and ") T " in Path(f"/proc/{paused.pid}/stat").read_text())
print(child.pid, paused.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {
        "PYTHONPATH": str(Path(train_step.__file__).resolve().parents[3]),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 10
    for which, pid in zip(("the child", "the paused child"), done.stdout.split()[-2:], strict=True):
        while _alive(int(pid)):
            assert time.monotonic() < deadline, f"{which} outlived its parent"
            time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
