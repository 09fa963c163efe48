"""Experiments on small random models: a replay is what the real pair does, results are kept, and the sums are
right."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.experiments import experiment_report, jobs
from lab.experiments.arm import Run, World, run_arm
from lab.experiments.jobs import arms_left, record, result_path, run_jobs
from lab.experiments.plans import EXPERIMENTS, Arm, Phase, Reading, checkpoints, stream
from lab.experiments.replayed_target import Replay, TargetRecords
from lab.experiments.run_experiment import ExperimentRequest, run
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import Round
from omnidemo.serving.measuring import prompt_files as sources
from omnidemo.serving.measuring.line import without_direct
from omnidemo.serving.pair_loading import build_pair
from tests.support import light_jobs
from tests.support.models import save

TEXTS = [
    "the other ducks swim",
    "naïve ✓ and more",
    "the cat sat on the mat",
    "def double(n):",
    "a theory of ducks",
    "12 + 34 =",
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        max_new_tokens=16,
        device="cpu",
        head="off",
        update_interval=2,
        steps_per_update=2,
        batch_size=2,
        lora_rank=4,
    )


@pytest.fixture(scope="module")
def recorded(names: tuple[str, str], settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    [*record(TargetRecords(folder, *names, settings), TEXTS, settings)]
    return folder


@pytest.fixture
def world(names: tuple[str, str], settings: Settings, recorded: Path, tmp_path: Path) -> World:
    return World(
        names[1],
        settings,
        {"one": TEXTS[:2], "two": TEXTS[2:4]},
        {"one": TEXTS[4:5], "two": TEXTS[5:]},
        recorded,
        tmp_path,
    )


def shape(done: Round) -> tuple[Any, ...]:
    """What a round did, without probabilities and times."""
    ids = tuple(token.id for token in done.tokens), tuple(token.id for token in done.discarded)
    sources = tuple(token.source for token in done.tokens)
    return (
        *ids,
        sources,
        done.drafted,
        done.proposed,
        done.accepted,
        done.judged,
        done.ngram_hits,
        done.inserts,
        done.finish_reason,
    )


# replay
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "length"),
    [("ngram-exact", 4), ("token-intersection", 1), ("ngram-merge", 6), ("autoregressive", 4)],
)
def test_a_replay_does_what_the_pair_does(
    names: tuple[str, str], settings: Settings, recorded: Path, method: str, length: int
) -> None:
    pair = build_pair(*names, settings)
    traces: list[Any] = []
    pair.learners.append(traces.append)
    replay = Replay(TargetRecords(recorded, *names, settings), pair.drafter, settings)
    for text in TEXTS:  # the n-gram caches grow alike, too
        made, trace = replay.answer(text, method=method, draft_length=length, domain="default")
        real = pair.generate(text, method=method, draft_length=length, max_new_tokens=16, reuse=False)
        assert [shape(done) for done in made.rounds] == [shape(done) for done in real.rounds]
        for name in ("acceptance_rate", "alpha", "block_efficiency", "ngram_hits"):
            assert made.metrics[name] == real.metrics[name]
        for name in ("drafter_ids", "starts", "lengths", "accepted", "top_ids"):
            assert getattr(trace, name).tolist() == getattr(traces[-1], name).tolist()
        np.testing.assert_allclose(trace.top_p, traces[-1].top_p, atol=1e-5)
    assert len(replay.pair.ngrams) == len(pair.ngrams) > 0


def test_a_replayed_answer_is_drafted_by_its_own_line(
    names: tuple[str, str], settings: Settings, recorded: Path
) -> None:
    replay = Replay(TargetRecords(recorded, *names, settings), build_pair(*names, settings).drafter, settings)
    replay.pair.publish(7, {}, domain="maths")
    versions = [replay.answer(TEXTS[0], domain=domain)[0].adapter_version for domain in ("default", "maths")]
    assert versions == [0, 7]


def test_a_recording_goes_on_where_it_was(names: tuple[str, str], settings: Settings, tmp_path: Path) -> None:
    records = TargetRecords(tmp_path, *names, settings)
    with pytest.raises(ValueError, match="shorten"):
        [*record(records, [TEXTS[0], "the cat " * 400, *TEXTS[1:3]], settings)]  # ends after the first
    again = TargetRecords(tmp_path, *names, settings)
    assert again.missing([*TEXTS[:3], TEXTS[0]]) == TEXTS[1:3]
    other = TargetRecords(tmp_path, *names, settings.model_copy(update={"max_new_tokens": 5}))
    assert other.missing(TEXTS[:1]) == TEXTS[:1]
    with pytest.raises(FileNotFoundError):
        again.load(TEXTS[2])


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    with pytest.raises(KeyError), replacing(tmp_path / "kept") as partial:
        partial.write_text("half")
        raise KeyError
    assert (tmp_path / "kept").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


# streams
# ------------------------------------------------------------------------------------------------------------


def test_a_stream_is_seeded_and_asks_every_prompt_before_one_again() -> None:
    prompts = {"one": [str(n) for n in range(10)], "two": list("abcde")}
    arm = Arm("x", (Phase("t", {"one": 1.0}, 20), Phase("u", {"two": 1.0}, 5)))
    events = list(stream(arm, prompts, 1))
    assert (
        Counter(event.prompt for event in events[:10])
        == Counter(prompts["one"])
        == Counter(event.prompt for event in events[10:20])
    )
    assert sorted(event.prompt for event in events[20:]) == list("abcde") and {
        event.target for event in events[20:]
    } == {"u"}
    assert (
        events
        == list(stream(replace(arm, name="y", lines="target"), prompts, 1))
        != list(stream(arm, prompts, 2))
    )
    assert checkpoints(arm) == [0, 10, 20, 22, 25]


def test_a_gradual_shift_goes_from_one_topic_to_the_other() -> None:
    phase = Phase("t", {"one": 1.0}, 400, {"two": 1.0})
    assert phase.shares(0.25) == {"one": 0.75, "two": 0.25}
    found = [event.source for event in stream(Arm("x", (phase,)), {"one": ["a"], "two": ["b"]}, 0)]
    first, last = Counter(found[:100])["two"], Counter(found[300:])["two"]
    assert first < 25 and last > 75


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_plan_has_arms_that_can_be_told_apart(name: str) -> None:
    arms = EXPERIMENTS[name].plan(("a", "b", "c"), ("maths", "code", "howto"), 200)
    labels = [(arm.name, reading.name) for arm in arms for reading in arm.readings]
    assert len(set(labels)) == len(labels) >= 2
    for arm in arms:
        Settings(**arm.settings)  # every change is one of a setting


def test_an_experiment_without_enough_targets_or_topics_says_so() -> None:
    with pytest.raises(ValueError, match=r"2 targets; give --target"):
        EXPERIMENTS["target-shift"].plan(("a",), ("maths",), 4)
    with pytest.raises(ValueError, match=r"3 topics; give --domain"):
        EXPERIMENTS["routing"].plan(("a",), ("maths", "code"), 4)


# arms
# ------------------------------------------------------------------------------------------------------------


def test_an_arm_learns_reads_and_grows_its_caches(names: tuple[str, str], world: World) -> None:
    readings = (
        Reading("all"),
        Reading("none", cache_share=0.0),
        Reading("half", cache_share=0.5, cache_policy="lru"),
    )
    run = Run(world, Arm("x", (Phase(names[0], {"one": 1.0}, 4),), readings, watched=2), 0)
    assert len([*run.go()]) > 2
    held = pd.DataFrame([row for row in run.rows if row["kind"] == "held-out"])
    assert held[held["reading"] == "all"]["requests"].tolist() == [0, 2, 4]
    assert held[held["reading"] == "half"]["requests"].tolist() == [4]
    assert held[held["reading"] == "all"]["steps"].tolist() == [0, 2, 4]
    ends = {one.name: run.replays[names[0], one.cache].pair.ngrams for one in readings}
    assert len(ends["none"]) == 0 < len(ends["half"]) <= ends["half"].size == math.ceil(len(ends["all"]) / 2)
    traffic = [row for row in run.rows if row["kind"] == "traffic"]
    assert [row["requests"] for row in traffic if row["reading"] == "all"] == [0, 1, 2, 3]
    assert traffic[-1]["tokens"] == 4 * 16
    # The second half of the traffic met another drafter than the first.
    assert run.replays[names[0], readings[0].cache].pair.adapter_version == 2


def test_lines_by_target_domain_and_classifier(names: tuple[str, str], world: World) -> None:
    phases = (Phase(names[0], {"one": 1.0}, 2), Phase(names[0], {"two": 1.0}, 2))
    for lines, expected in (
        ("one", {"default"}),
        ("target", {names[0]}),
        ("domain", {"one", "two"}),
        ("router", {"one", "two"}),
    ):
        run = Run(world, Arm("x", phases, lines=lines), 0)  # type: ignore[arg-type]
        assert len([*run.go()]) > 2
        assert set(run.lines) == expected and sum(line.steps for line in run.lines.values()) == 4
        assert {row["source"] for row in run.rows if row["kind"] == "held-out"} == {"one", "two"}


def test_offline_passes_over_the_traffic(names: tuple[str, str], world: World) -> None:
    run = Run(world, Arm("x", (Phase(names[0], {"one": 1.0}, 4),), offline=True), 0)
    assert len([*run.go()]) > 2
    held = [row for row in run.rows if row["kind"] == "held-out"]
    # two steps every two answers make two epochs of batches of two; half as many again
    assert [row["epoch"] for row in held] == [1, 2, 3] and [row["steps"] for row in held] == [2, 4, 6]
    plan = run.line("default").plan
    assert plan.schedule == "cosine" and plan.schedule_steps == 6


def test_labels_are_the_papers_unless_an_arm_takes_todays(names: tuple[str, str], world: World) -> None:
    trace = world.recorded(names[0]).load(TEXTS[0]).trace
    assert trace.first_ids is not None
    arm = Arm("x", (Phase(names[0], {"one": 1.0}, 2),))
    assert Run(world, arm, 0)._labelled(trace).first_ids is None
    assert Run(world, replace(arm, first_labels=True), 0)._labelled(trace) is trace


def test_the_ngram_loss_alone(names: tuple[str, str], settings: Settings, recorded: Path) -> None:
    trace = TargetRecords(recorded, *names, settings).load(TEXTS[0]).trace
    lengths = without_direct(trace).lengths
    assert (trace.lengths == 1).any() and not (lengths == 1).any() and lengths.max() == trace.lengths.max()


# from beginning to end
# -------------------------------------------------------------------------------------------------------


def test_an_experiment_is_resumed_and_reported(names: tuple[str, str], world: World, tmp_path: Path) -> None:
    order = ExperimentRequest("methods", [names[0]], ["one"], 2, [0, 1], 0)
    events = list(run(world, order))
    arms = order.arms()
    assert {event.name: event.total for event in events} == {
        "recordings": 0, "answers of the arms": None, "arms": 10,
    }  # fmt: skip
    assert len({event.done for event in events if event.name == "answers of the arms"}) > 10
    table = pd.read_csv(tmp_path / "methods.csv")
    assert set(table["kind"]) == {"traffic", "held-out", "prompt"} and set(table["seed"]) == {0, 1}
    text = (tmp_path / "methods.md").read_text()
    shown = [
        line.split("|")[1].strip()
        for line in text.splitlines()
        if line.startswith("| ") and "---" not in line
    ][1:]
    assert shown == [f"{arm.name} · {reading.name}" for arm in arms for reading in arm.readings]
    assert "±" in text and "2" in text

    lost = result_path(world, arms[2], 1)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "arms").iterdir() if path.stem != lost.stem}
    lost.unlink()
    assert [name for name, _ in arms_left(world, arms, order.seeds)] == [f"{arms[2].name}, seed 1"]
    assert [event.total for event in run(world, order) if event.name == "arms"] == [1, 1]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept and lost.exists()
    other = replace(world, settings=world.settings.model_copy(update={"learning_rate": 1e-3}))
    assert len(arms_left(other, arms, [0])) == len(arms)  # other settings, other results


def test_arms_run_in_processes_of_their_own(names: tuple[str, str], world: World, tmp_path: Path) -> None:
    arm = Arm("x", (Phase(names[0], {"one": 1.0}, 2),))
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    answers = len([*run_arm(world, arm, 0, here)])
    told = [*run_jobs([("x", partial(run_arm, world, arm, 0, there))], 1)]
    assert told[-1] == (1, answers) and answers > 2 and told == sorted(told)
    assert [*run_jobs([("x", partial(iter, "ab")), ("y", partial(iter, "c"))], 0)] == [
        (0, 1), (0, 2), (1, 2), (1, 3), (2, 3),
    ]  # fmt: skip
    told_here, told_there = (
        [{**row, "train_seconds": None} for row in json.loads(path.read_text())] for path in (here, there)
    )
    assert told_here == told_there and any(row.get("steps") for row in told_here)


def test_a_failed_job_ends_the_others_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Jobs of a module that imports little, so that their processes start at once; how a worker is prepared is
    # the test's above.
    monkeypatch.setattr(jobs, "_prepare_worker", light_jobs.prepare)
    pid = tmp_path / "pid"
    running = run_jobs(
        [("sleeper", partial(light_jobs.sleep, pid)), ("cheese", partial(light_jobs.fail, pid))], 2
    )
    with pytest.raises(
        RuntimeError, match="cheese failed: the cheese of moon is off; start the command again"
    ):
        list(running)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


# sums
# ------------------------------------------------------------------------------------------------------------


def row(arm: str, seed: int, value: float, requests: int = 8, **more: Any) -> dict[str, Any]:
    place = {
        "arm": arm,
        "reading": "",
        "seed": seed,
        "kind": "held-out",
        "requests": requests,
        "target": "t",
        "source": "s",
        "epoch": 0,
    }
    return {**place, **dict.fromkeys(experiment_report.SHOWN, 1.0), "acceptance_rate": value, **more}


def test_the_table_pairs_by_prompt() -> None:
    found = {"a": ((0.2, 0.4), (0.4, 0.6)), "b": ((0.3, 0.5), (0.6, 0.8))}  # of each prompt, its seeds
    rows = [
        row(arm, seed, value, kind="prompt", prompt=prompt)
        for arm, prompts in found.items()
        for prompt, seeds in enumerate(prompts)
        for seed, value in enumerate(seeds)
    ]
    rows.append(row("b", 1, 0.9, requests=2))  # a mean on the way
    headings, lines = experiment_report.table(experiment_report.framed(rows))
    shown = [dict(zip(headings, line, strict=True)) for line in lines]
    assert [one["acceptance"] for one in shown] == ["0.400 ± 0.100", "0.550 ± 0.150"]
    # of 0.1 and 0.2: the prompts' own spread is gone
    assert [one["Δ acceptance"] for one in shown] == ["", "+0.150 ± 0.050"]
    assert [one["seeds"] for one in shown] == ["2", "2"]


def test_the_gap_is_closed_against_the_best_epoch() -> None:
    rows = [
        row("fresh", 0, 0.2),
        row("online", 0, 0.5),
        row("offline", 0, 0.6, epoch=9),
        row("offline", 0, 0.55, epoch=18),
    ]
    frame = experiment_report.framed(rows)
    assert experiment_report.gap_closed(frame, "fresh", "online", "offline") == {0: pytest.approx(0.75)}
    assert experiment_report.gap_closed(frame[:2], "fresh", "online", "offline") == {}


def test_sources(tmp_path: Path) -> None:
    traffic, held = sources.bundled(["maths"], 5)
    assert len(held["maths"]) == 5 and not set(held["maths"]) & set(traffic["maths"])
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(f'{{"prompt": "{n}"}}' for n in [1, 2, 3, 1]))
    assert sources.files([path], 1) == ({"mine": ["1", "2"]}, {"mine": ["3"]})
    with pytest.raises(ValueError, match="two prompt files are called mine"):
        sources.files([path, path], 1)
    with pytest.raises(ValueError, match="unknown topic"):
        sources.bundled(["cheese"], 1)
    assert sources.numbers("2, 0,2", "--seeds") == [2, 0]
    with pytest.raises(ValueError, match="whole numbers"):
        sources.numbers("few", "--seeds")
