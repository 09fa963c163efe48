"""Adaptation: the pure step, its child process, adapter folders, and the thread that drives them. Tiny random drafters."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from omnidemo.config import Settings
from omnidemo.records import AdapterVersion, Trace
from omnidemo.runtime import adapters, training
from omnidemo.runtime.distiller import Distiller
from omnidemo.runtime.replay import ReplayBuffer, usable

torch.set_num_threads(1)
VOCAB = 40
PLAN = training.Plan(rank=4, learning_rate=1e-2, warmup=2, ngram_weight=0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("drafter")
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def learner(folder: Path) -> training.Learner:
    return training.Learner(folder, PLAN.rank)


def make_trace(seed: int, length: int = 20) -> Trace:
    """Even places follow a simple rule that can be learnt; every fourth position is a 2-gram."""
    random = np.random.default_rng(seed)
    ids = (np.arange(length) * 3 + random.integers(VOCAB)) % VOCAB
    starts, lengths, at = [], [], 4
    while at + 2 <= length:
        starts.append(at)
        lengths.append(2 if len(starts) % 4 == 0 else 1)
        at += lengths[-1]
    top_ids = np.stack([np.roll(np.arange(VOCAB), -int(ids[start]))[:8] for start in starts])
    top_p = np.tile(np.array([0.7, 0.1, 0.05, 0.05, 0.02, 0.02, 0.02, 0.02], dtype=np.float32), (len(starts), 1))
    n = len(starts)
    return Trace(ids, np.array(starts), np.array(lengths), np.arange(n) % 2 == 0, np.full(n, 0.7, np.float32), top_ids, top_p)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


class Owner:
    """Plays the pair: takes what is published, and is busy when told to."""

    def __init__(self) -> None:
        self.published: list[tuple[int, dict[str, Tensor]]] = []
        self.on_disk: list[bool] = []
        self.line: Path | None = None
        self.in_flight = False

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        self.published.append((version, dict(weights)))
        self.on_disk.append(version == 0 or (self.line is not None and adapters.version_folder(self.line, version).is_dir()))

    def busy(self) -> bool:
        return self.in_flight


class FakeStore:
    """Notes every call; raises instead when broken."""

    def __init__(self, broken: bool = False) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.broken = broken

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*values: Any) -> None:
            if self.broken:
                raise RuntimeError("no database")
            self.calls.append((name, *values))

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


Make = Callable[..., tuple[Distiller, Owner]]


@pytest.fixture
def make(folder: Path, tmp_path: Path) -> Iterator[Make]:
    made: list[Distiller] = []

    def build(store: FakeStore | None = None, *, mode: Any = "inline", drafter: Path = folder, **settings: Any) -> tuple[Distiller, Owner]:
        values: dict[str, Any] = {"update_interval": 2, "steps_per_update": 3, "lora_rank": 4, "adapters_kept": 3} | settings
        chosen = Settings(training=mode, **values)
        owner = Owner()
        one = Distiller(
            drafter, "bundled/drafter", "bundled/a", chosen, tmp_path, publish=owner.publish, store=store, busy=owner.busy, threads=1
        )
        owner.line = one.line
        made.append(one)
        return one, owner

    yield build
    for one in made:
        one.close()


def feed(distiller: Distiller, count: int = 2, seed: int = 0) -> None:
    for index in range(count):
        distiller.observe(make_trace(seed + index))


# --- the pure step ---------------------------------------------------------------------------------------------------------


def test_steps_decrease_the_loss_of_their_own_batch(learner: training.Learner) -> None:
    batch = [make_trace(seed) for seed in range(4)]
    adapter, optimiser, steps = training.train(learner, None, None, [batch] * 40, PLAN)
    assert [step.step for step in steps] == list(range(1, 41)) and optimiser.step == 40
    assert steps[-1].loss < 0.5 * steps[0].loss and steps[-1].loss_ngram < steps[0].loss_ngram
    assert steps[0].learning_rate == pytest.approx(PLAN.learning_rate / 2) and steps[5].learning_rate == PLAN.learning_rate
    assert steps[0].loss == pytest.approx(steps[0].loss_direct + 0.5 * steps[0].loss_ngram, rel=1e-5)
    assert all(name.startswith("base_model.model.") for name in adapter.weights)


def test_a_step_is_pure_and_goes_on_where_it_stopped(learner: training.Learner) -> None:
    batches = [[make_trace(seed), make_trace(seed + 1, 30)] for seed in range(6)]
    whole, _, _ = training.train(learner, None, None, batches, PLAN)
    half, optimiser, _ = training.train(learner, None, None, batches[:3], PLAN)
    kept = {name: tensor.clone() for name, tensor in half.weights.items()}
    training.train(learner, None, None, batches[:1], PLAN)  # something else in between
    resumed, _, steps = training.train(learner, half, optimiser, batches[3:], PLAN)
    assert [step.step for step in steps] == [4, 5, 6]
    for name, tensor in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], tensor)
        assert torch.equal(half.weights[name], kept[name])


def test_what_is_published_is_the_running_average(learner: training.Learner) -> None:
    batches = [[make_trace(seed)] for seed in range(3)]
    raw = []
    for count in (1, 2, 3):
        last, optimiser, _ = training.train(learner, None, None, batches[:count], replace(PLAN, memory=0.0))
        assert all(torch.equal(last.weights[name], optimiser.moments[f"weight.{name}"]) for name in last.weights)
        raw.append(last.weights)
    averaged = training.train(learner, None, None, batches, replace(PLAN, memory=0.1))[0].weights
    for name, start in learner.initial.weights.items():
        wanted = start
        for weights, number in zip(raw, (1, 2, 3), strict=True):
            kept = min(0.1, number / (number + 10))
            wanted = kept * wanted + (1 - kept) * weights[name]
        torch.testing.assert_close(averaged[name], wanted)


def test_padding_and_windows_do_not_change_a_position(learner: training.Learner) -> None:
    short, long = make_trace(1, 12), make_trace(2, 40)
    alone = [training.train(learner, None, None, [[one]], PLAN)[2][0].loss_direct for one in (short, long)]
    weights = [int((one.lengths == 1).sum()) for one in (short, long)]
    both = training.train(learner, None, None, [[short, long]], PLAN)[2][0].loss_direct
    assert both == pytest.approx(np.average(alone, weights=weights), rel=1e-4)
    beyond = training.train(learner, None, None, [[make_trace(3, 200)]], PLAN)[2][0]  # the drafter reads 64
    assert math.isfinite(beyond.loss)


def test_a_loss_that_is_not_finite_is_reported_and_changes_nothing(learner: training.Learner) -> None:
    bad = make_trace(1)
    bad.top_p[0, 0] = np.nan
    adapter, optimiser, steps = training.train(learner, None, None, [[bad]], PLAN)
    assert math.isnan(steps[0].loss) and not any(name.startswith("exp_avg") for name in optimiser.moments)
    assert all(torch.equal(adapter.weights[name], tensor) for name, tensor in learner.initial.weights.items())
    assert not usable(bad) and usable(make_trace(1))


def test_merged_weights_are_the_peft_model(folder: Path, learner: training.Learner, tmp_path: Path) -> None:
    from peft import PeftModel

    adapter, optimiser, _ = training.train(learner, None, None, [[make_trace(0)]] * 5, PLAN)
    info = AdapterVersion(1, "d", "t", "default", None, None, 0, 5, 5, 0.5, "2025-01-01T00:00:00+00:00")
    stored = adapters.write_version(tmp_path / "line", info, adapter, optimiser)
    assert stored.path is not None
    ids = torch.randint(VOCAB, (2, 10))
    base = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        before = base(ids).logits
        merged = adapters.merged_weights(adapters.BaseWeights(folder), adapter)
        parameters = dict(base.named_parameters())
        for name, tensor in merged.items():
            parameters[name].copy_(tensor)
        mine = base(ids).logits
        fresh = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        theirs = PeftModel.from_pretrained(fresh, stored.path).eval()(ids).logits
    assert len(merged) == 14 and (mine - before).abs().max() > 1e-3
    torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


# --- the child process -----------------------------------------------------------------------------------------------------


def test_the_child_computes_the_same_survives_kill_and_ends_with_its_parent(folder: Path, learner: training.Learner) -> None:
    batches = [[make_trace(0), make_trace(1)]] * 2
    here, _, _ = training.train(learner, None, None, batches, PLAN)
    child = training.Child()
    there, optimiser, steps = child.train(folder, None, None, batches, PLAN)
    for name, tensor in here.weights.items():
        torch.testing.assert_close(there.weights[name], tensor, atol=1e-5, rtol=1e-4)
    assert child.pid is not None and os.getpriority(os.PRIO_PROCESS, child.pid) >= 10
    with pytest.raises(training.ChildError, match="Training failed"):
        child.train(folder / "absent", None, None, batches, PLAN)
    first = child.pid
    killer = threading.Timer(0.2, os.kill, (first, signal.SIGKILL))
    killer.start()
    with pytest.raises(training.ChildError, match="ended unexpectedly"):
        child.train(folder, there, optimiser, batches * 2000, PLAN)
    _, _, steps = child.train(folder, there, optimiser, batches, PLAN)
    assert child.pid != first and steps[0].step == 3
    process = child._process
    assert process is not None and process.stdin is not None
    process.stdin.close()  # what the end of the parent looks like
    assert process.wait(3) == 0
    child.close()
    with pytest.raises(training.ChildError, match="closed"):
        child.train(folder, None, None, batches, PLAN)


def test_the_child_imports_neither_gradio_nor_sqlalchemy(folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from omnidemo.runtime.training import Learner
early = [name for name in ("peft", "transformers") if name in sys.modules]
Learner(Path({str(folder)!r}), 4)
print(early, [name for name in ("gradio", "sqlalchemy") if name in sys.modules])
"""
    root = str(Path(training.__file__).resolve().parents[2])
    environment = os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip().endswith("[] []"), done.stderr


# --- folders ---------------------------------------------------------------------------------------------------------------


def test_names_are_safe_and_do_not_collide() -> None:
    names = ["a/b", "a-b", "A/b", "../..", "", "x" * 500, "C:\\models\\ü", "a/b "]
    safe = [adapters.safe_name(name) for name in names]
    assert len({one.lower() for one in safe}) == len(names)
    assert all("/" not in one and "\\" not in one and not one.startswith(".") and len(one) < 100 and one.isascii() for one in safe)


def test_a_write_that_is_interrupted_between_files_leaves_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    distiller, owner = make()
    feed(distiller)
    assert distiller.run_pending() and distiller.status().version == 1
    written: list[Path] = []
    whole = adapters._write

    def fails_at_third(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        whole(path, data)

    monkeypatch.setattr(adapters, "_write", fails_at_third)
    feed(distiller)
    distiller.run_pending()
    status = distiller.status()
    assert status.state == "failed" and "No space left" in (status.error or "") and status.version == 1
    assert adapters.versions(distiller.line) == [1] and [version for version, _ in owner.published] == [1]
    monkeypatch.setattr(adapters, "_write", whole)
    (distiller.line / ".new-v000002").mkdir()  # as after a kill, when nothing could clean up
    again, _ = make()
    assert again.restore() == 1 and not list(distiller.line.glob(".new-*"))
    feed(distiller)
    distiller.run_pending()
    assert distiller.status().version == 2 and distiller.status().error is None


@pytest.mark.parametrize("name", [adapters.WEIGHTS, adapters.CONFIG, adapters.OPTIMISER, adapters.MANIFEST])
def test_a_damaged_version_falls_back_to_the_one_before(make: Make, name: str) -> None:
    first, _ = make()
    for _ in range(2):
        feed(first)
        first.run_pending()
    file = adapters.version_folder(first.line, 2) / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        adapters.load_version(file.parent)
    second, owner = make()
    assert second.restore() == 1 and owner.published[-1][0] == 1
    feed(second)
    second.run_pending()
    assert second.status().version == 3  # a number is never used twice
    file.unlink()
    with pytest.raises(ValueError, match="missing"):
        adapters.load_version(file.parent)


# --- the distiller ---------------------------------------------------------------------------------------------------------


def test_inline_updates_record_publish_prune_and_restart(make: Make, folder: Path) -> None:
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
    assert status.loss is not None and status.last_swap is not None and status.seconds > 0 and status.error is None
    assert [version for version, _ in owner.published] == [1, 2, 3, 4, 5] and all(owner.on_disk)
    assert adapters.versions(distiller.line) == [5, 4, 3]
    assert [call[3] for call in store.named("record_steps")] == [1, 2, 3, 4, 5]
    added = [call[0] for call in store.named("add_adapter")]
    assert [one.parent for one in added] == [0, 1, 2, 3, 4] and added[-1].steps == 15
    assert added[0].effect["accepted_share_before"] == pytest.approx(0.5, abs=0.1)
    assert "accepted_share_after" in store.named("set_effect")[0][4]
    manifest = json.loads((adapters.version_folder(distiller.line, 5) / adapters.MANIFEST).read_text())
    assert manifest["base"] == "bundled/drafter" and manifest["sha256"] == added[-1].sha256 and manifest["requests_seen"] == 11

    again, its_owner = make()
    assert again.restore() == 5
    restored, version = again._current.optimiser, again.status()
    assert restored is not None and (version.step, version.requests_seen, version.loss) == (15, 11, status.loss)
    assert all(torch.equal(tensor, distiller._current.optimiser.moments[name]) for name, tensor in restored.moments.items())  # type: ignore[union-attr]
    assert all(torch.equal(tensor, owner.published[-1][1][name]) for name, tensor in its_owner.published[0][1].items())


def test_activate_and_reset(make: Make, folder: Path) -> None:
    store = FakeStore()
    distiller, owner = make(store)
    for number in range(3):
        feed(distiller, seed=number)
        distiller.run_pending()
    distiller.activate(1)
    assert distiller.status().version == 1 and owner.published[-1][0] == 1 and store.named("set_active")[-1][-1] == 1
    again, _ = make()
    assert again.restore() == 1  # the choice by hand outlives a restart
    feed(distiller, seed=9)
    distiller.run_pending()
    assert distiller.status().version == 4 and store.named("add_adapter")[-1][0].parent == 1
    with pytest.raises(ValueError, match="incomplete"):
        distiller.activate(77)
    assert distiller.status().version == 4
    distiller.reset()
    base = adapters.BaseWeights(folder)
    version, weights = owner.published[-1]
    assert version == 0 and len(weights) == 14 and all(torch.equal(tensor, base[name].float()) for name, tensor in weights.items())
    status = distiller.status()
    assert (status.version, status.step, status.loss, status.requests_seen) == (0, 0, None, 0)
    assert adapters.versions(distiller.line) == [] and store.named("forget_line") == [("bundled/a", "bundled/drafter", "default")]


def test_the_thread_waits_for_a_quiet_moment_and_survives_its_child(make: Make) -> None:
    distiller, owner = make(FakeStore(), mode="idle")
    owner.in_flight = True
    feed(distiller)
    until(lambda: distiller.status().state == "waiting")
    time.sleep(0.15)
    assert not owner.published
    owner.in_flight = False
    until(lambda: distiller.status().version == 1)
    assert owner.on_disk == [True]

    distiller.settings.steps_per_update = 50_000  # long enough to be shot
    feed(distiller)
    until(lambda: distiller.status().state == "training")
    time.sleep(0.3)  # the request is on its way by now: a child that dies before it is just started again
    pid = distiller._child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: distiller.status().state == "failed")
    assert distiller.status().version == 1 and "ended unexpectedly" in (distiller.status().error or "")
    distiller.settings.steps_per_update = 3
    feed(distiller)
    until(lambda: distiller.status().version == 2 and distiller.status().state == "idle")  # a swap comes before the end of its update
    assert distiller._child.pid != pid

    distiller.pause()
    feed(distiller)
    time.sleep(0.1)
    assert distiller.status().state == "paused" and distiller.status().version == 2
    distiller.settings.steps_per_update = 50_000
    distiller.resume()
    until(lambda: distiller.status().state == "training")
    began = time.monotonic()
    distiller.close()
    assert time.monotonic() - began < 2
    assert distiller._child.pid is None and distiller._thread is not None and not distiller._thread.is_alive()


def test_a_chat_that_never_rests_does_not_starve_learning(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidemo.runtime.distiller.PATIENCE_SECONDS", 0.2)
    distiller, owner = make(mode="idle")
    monkeypatch.setattr(distiller, "_train_in_child", distiller._train_here)  # no process to wait for
    owner.in_flight = True
    feed(distiller)
    until(lambda: distiller.status().version == 1)


def test_an_update_that_began_before_a_reset_is_dropped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    distiller, owner = make()
    feed(distiller)
    real = training.train

    def resets_meanwhile(*values: Any) -> training.Update:
        answer = real(*values)
        distiller.reset()
        return answer

    monkeypatch.setattr("omnidemo.runtime.distiller.train", resets_meanwhile)
    distiller.run_pending()
    assert distiller.status().version == 0 and [version for version, _ in owner.published] == [0]
    assert adapters.versions(distiller.line) == []


def test_failures_of_store_and_owner_and_model_are_told_not_raised(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distiller, owner = make(FakeStore(broken=True))
    feed(distiller)
    distiller.run_pending()
    status = distiller.status()
    assert status.state == "failed" and "no database" in (status.error or "") and status.version == 1 and len(owner.published) == 1

    refusing, _ = make()
    monkeypatch.setattr(refusing, "_publish", lambda *_: 1 / 0)
    feed(refusing)
    refusing.run_pending()
    assert refusing.status().state == "failed" and refusing.status().version == 0

    lost, _ = make(drafter=tmp_path / "nowhere")
    feed(lost)
    lost.run_pending()
    assert lost.status().state == "failed" and lost.status().error and lost.status().next_in == 2


def test_observe_is_cheap_and_off_is_off(make: Make) -> None:
    distiller, _ = make(update_interval=100_000)
    traces = [make_trace(seed, 400) for seed in range(200)]
    began = time.perf_counter()
    for one in traces:
        distiller.observe(one)
    assert (time.perf_counter() - began) / len(traces) < 1e-3
    off, _ = make(mode="off")
    feed(off, 5)
    assert not off.run_pending() and off.status().state == "off" and off.status().requests_seen == 0


def test_the_buffer_is_bounded_and_half_of_a_batch_is_new() -> None:
    traces = [make_trace(seed) for seed in range(30)]
    buffer = ReplayBuffer(10 * traces[0].nbytes)
    for one in traces[:26]:
        buffer.add(one)
    assert len(buffer) == 10 and buffer.nbytes <= buffer.most_bytes and buffer.fresh == 10
    assert [len(batch) for batch in buffer.take(3, 8)] == [8, 8, 8]  # nothing older: all of them are new
    for one in traces[26:]:
        buffer.add(one)
    batches = buffer.take(5, 8)
    new = {id(one) for one in traces[26:]}
    assert all(sum(id(one) in new for one in batch) == 4 and len({id(one) for one in batch}) == 8 for batch in batches)
    assert all({id(one) for batch in batches for one in batch} >= new for _ in [0]) and buffer.take(5, 8) == []
    older = [id(one) for batch in batches for one in batch if id(one) not in new]
    assert set(older) <= {id(one) for one in traces[20:26]}
    buffer.add(make_trace(1, 3000))  # larger than the buffer: it does not stay
    assert len(buffer) == 0 and buffer.nbytes == 0
