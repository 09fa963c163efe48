"""Agreement by hand, versions replayed on recorded answers, and that neither depends on a draft policy or
delays an answer."""

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
from omnidemo.core.records import Generation, Probe, Trace
from omnidemo.learning.distill import losses, trace_agreement, train_step
from omnidemo.learning.distill.learner import Learner
from omnidemo.learning.lines import learning_curve, measurer, sample_prompts
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.serving.pair_loading import attach_storage, build_pair, open_store
from omnidemo.storage.request_rows import RequestRecord
from tests.support.learning import FakeWorker, make_trace, save_drafter, until
from tests.support.models import save

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
            storage=storage,
            training="inline",
            update_interval=2,
            steps_per_update=2,
            lora_rank=4,
            cost_aware=False,
            top_k_traces=16,
        )
        self.store = open_store(self.settings)
        self.pair = build_pair(*models, self.settings)
        self.lines = attach_storage(self.pair, self.settings, self.store)
        self.measurer, self.names = self.lines.measurer, models

    def ask(self, text: str, topic: str = "code", **options: object) -> Generation:
        self.measurer.topic(topic, "default")
        made = self.pair.generate(text, max_new_tokens=24, reuse=False, **options)  # type: ignore[arg-type]
        self.lines.run_pending()
        return made

    def rows(self, topic: str = "code") -> list[dict[str, object]]:
        self.store.flush()
        return self.store.probes(*self.names, topic=topic)

    def close(self) -> None:
        self.lines.close()
        self.store.close()


@pytest.fixture
def world(models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(measurer, "ANSWER_TOKENS", 12)
    monkeypatch.setattr(sample_prompts, "probes", lambda topic: (f"a {topic} duck", f"the {topic} pond"))
    made = World(models, tmp_path)
    yield made
    made.close()


def learned(world: World, versions: int = 1) -> None:
    """Answers until so many versions were replayed on the topic, beside the fresh drafter."""
    for count in range(versions):
        for place in range(2):
            world.ask(f"duck {count} {place}")
        until(lambda: not world.measurer.pending("code") and not world.measurer._busy.is_set(), 120)


def test_each_version_is_replayed_on_the_recorded_answers_and_the_agreement_of_an_answer_comes_later(
    world: World,
) -> None:
    answer = world.ask("duck")
    assert world.pair.agreement(Generation((), "", (), {}, "end", "x", 1)) is None
    until(lambda: world.pair.agreement(answer) is not None, 120)
    found = world.pair.agreement(answer)
    assert found is not None and found.positions == 24 and 0 < found.overlap < 1
    learned(world)
    fresh, first = world.rows()
    assert [(row["domain"], row["version"]) for row in (fresh, first)] == [("", 0), ("default", 1)]
    assert fresh["tokens"] == first["tokens"] == 24 and all(
        row["passes"] <= 24 and row["agreement"] for row in (fresh, first)
    )  # type: ignore[operator]
    for row in (fresh, first):
        assert [sum(each) for each in zip(*row["counts"], strict=True)] == [row["tokens"], row["passes"]]  # type: ignore[call-overload]
    both = learning_curve.before_after(world.store, *world.names, "default", "code")
    assert both is not None and both.after_version == 1
    for before, after in zip(both.before, both.after, strict=True):
        # the target's answer, whoever guesses
        assert before.text == after.text and before.prompt == after.prompt
        assert all(not one.seconds for one in (*before.rounds, *after.rounds))
    drawn = learning_curve.curve(world.store, *world.names, "default", "code")
    assert drawn["fresh"]["steps"] == pytest.approx(fresh["tokens"] / fresh["passes"])  # type: ignore[operator]
    assert [one["version"] for one in drawn["points"]] == [1] and drawn["today"]["examples"] == 2
    assert drawn["today"]["error"] == learning_curve.error_of_change(fresh["counts"], first["counts"])  # type: ignore[arg-type]
    assert drawn["today"]["error"] is not None
    assert {"x": 2, "kind": "swap", "label": "v1"} in drawn["marks"] and drawn["topics"] == ["code"]
    # nothing of another topic
    assert learning_curve.curve(world.store, *world.names, "default", "news")["points"] == []


def test_the_error_of_a_change_is_what_its_prompts_tell() -> None:
    before, after = [(40, 10), (40, 20)], [(40, 10), (40, 10)]
    # 30 passes became 20: 1.5, of which 10 and 20 are 5 too few and 5 too many; √(2 · (25 + 25)) / 20
    assert learning_curve.error_of_change(before, after) == pytest.approx(0.5)
    # lists, as the store has them; 31 passes became 30, and the prompts are 1/3, 1/3 and 2/3 of a pass off
    assert learning_curve.error_of_change([[9, 10]] * 2 + [[9, 11]], [[9, 10]] * 3) == pytest.approx(1 / 30)
    # nothing tells prompts apart that all changed alike, or not at all
    assert learning_curve.error_of_change(before, [(40, 5), (40, 10)]) == 0.0
    assert learning_curve.error_of_change(before, before) == 0.0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, [(40, 9), (40, 9)]),  # of an older version
        ([(40, 9), (40, 9)], None),
        ([(40, 9)], [(40, 8)]),  # one prompt tells nothing of others
        ([(40, 9), (40, 9)], [(40, 9), (41, 9)]),  # other answers
        ([(40, 9), (40, 9)], [(40, 9), (40, 9), (40, 9)]),
    ],
)
def test_no_error_is_known_of_answers_that_are_not_the_same(
    before: learning_curve.Counts | None, after: learning_curve.Counts | None
) -> None:
    assert learning_curve.error_of_change(before, after) is None


def test_the_curve_marks_the_version_that_drafts_now(tmp_path: Path) -> None:
    store = open_store(Settings(storage=tmp_path))
    for version in (0, 1, 2):
        line = "default" if version else ""
        store.record_probe(Probe("t", "d", line, version, "code", "key", 4 * version, ((20, 20 - version),)))
        if version:
            store.add_adapter(
                AdapterVersion(
                    version,
                    "d",
                    "t",
                    "default",
                    None,
                    None,
                    None,
                    4 * version,
                    1,
                    None,
                    "2026-11-21T01:00:00Z",
                )
            )
    found = []
    for active in (2, 1, 0):
        store.set_active("t", "d", "default", active)
        store.flush()
        found.append(
            [mark["label"] for mark in learning_curve.curve(store, "t", "d", "default", "code")["marks"]]
        )
    store.close()
    assert found == [["v2"], ["v1"], []]


def test_the_curve_of_nothing_in_particular_is_of_the_newest_topic_that_is_measured(tmp_path: Path) -> None:
    """What a browser sees that has asked nothing since the server was started."""
    store, found = open_store(Settings(storage=tmp_path)), list[str]()
    for topic in ("code", "howto"):
        store.record_probe(Probe("t", "d", "", 0, topic, "key", 0, ((20, 10),)))
    answer = Generation((1,), "", (), {}, "end", "x", 1)
    for line, topic in (
        ("default", ""),
        ("default", "howto"),
        ("maths", "code"),
        ("default", "sums"),
        ("default", "code"),
    ):
        store.record_request(
            RequestRecord(
                "s", "t", "d", line, "x", "", answer, {}, "2026-11-21T01:00:00Z", "chat", topic=topic or None
            )
        )
        store.flush()
        found.append(learning_curve.curve(store, "t", "d", "default", "")["topic"])
    store.close()
    assert found == ["", "howto", "howto", "howto", "code"]


@pytest.mark.parametrize("temperature", [0.0])
def test_neither_curve_nor_agreement_depends_on_the_draft_policy(
    models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    monkeypatch.setattr(measurer, "ANSWER_TOKENS", 12)
    monkeypatch.setattr(sample_prompts, "probes", lambda topic: (f"a {topic} duck", f"the {topic} pond"))
    found = []
    for policy in ({"draft_policy": "cost"}, {"draft_policy": "fixed", "draft_length": 2}):
        world = World(models, tmp_path / str(policy["draft_policy"]))
        try:
            answers = [world.ask(f"duck {place}", temperature=temperature, **policy) for place in range(2)]
            until(
                lambda world=world: not world.measurer.pending("code") and not world.measurer._busy.is_set(),
                120,
            )  # type: ignore[misc]
            until(lambda world=world, answers=answers: all(world.pair.agreement(one) for one in answers), 60)  # type: ignore[misc]
            rows = [(row["version"], row["tokens"], row["passes"]) for row in world.rows()]
            agreed = [world.pair.agreement(one) for one in answers]
            found.append((rows, [(one.overlap, one.same_first, one.positions) for one in agreed if one]))
        finally:
            world.close()
    assert found[0][0] == found[1][0] and len(found[0][0]) == 2
    assert np.allclose(found[0][1], found[1][1], atol=1e-6) and len(found[0][1]) == 2


def test_recording_gives_way_to_whoever_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody is answered no pass is made for a recording, and one that has begun ends after the pass
    that it is in."""
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


def test_a_replay_stands_still_while_somebody_is_answered(
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


def test_a_reset_forgets_the_lines_curve_and_keeps_the_fresh_drafters(world: World) -> None:
    learned(world)
    assert len(world.rows()) == 2
    world.lines.reset()
    assert [row["version"] for row in world.rows()] == [0]
    drawn = learning_curve.curve(world.store, *world.names, "default", "code")
    assert drawn["today"] == drawn["fresh"] and drawn["today"]["version"] == 0 and drawn["points"] == []
    assert learning_curve.before_after(world.store, *world.names, "default", "code") is None
    drafting = world.pair.drafting("default", "cost")
    assert drafting.length == 0.0  # no figure of the line that was


def test_before_and_after_show_the_version_that_a_roll_back_brought_back(world: World) -> None:
    learned(world, 2)
    world.store.flush()
    shown = learning_curve.before_after(world.store, *world.names, "default", "code")
    assert shown is not None and shown.after_version == 2
    world.lines.get().activate(1)
    world.store.flush()
    between = learning_curve.before_after(world.store, *world.names, "default", "code")
    assert between is None or between.after_version == 1
    until(lambda: not world.measurer.pending("code") and not world.measurer._busy.is_set(), 120)
    world.store.flush()
    shown = learning_curve.before_after(world.store, *world.names, "default", "code")
    assert shown is not None and shown.after_version == 1


def test_a_replay_of_the_fresh_drafter_that_fails_is_made_with_the_next_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def fail(self: measurer.Measurer, domain: str, version: int) -> None:
        failed.set()
        raise OSError("disk")

    with monkeypatch.context() as patched:
        patched.setattr(measurer.Measurer, "_version", fail)
        world.ask("duck")
        until(lambda: failed.is_set() and not world.measurer.pending("code"), 120)
    learned(world)
    assert [row["version"] for row in world.rows()] == [0, 1]


def test_a_changed_target_is_recorded_anew(models: tuple[str, str], world: World, tmp_path: Path) -> None:
    learned(world)
    key = str(world.rows()[0]["recording"])
    other = save(tmp_path / "changed", "byte-level", seed=5, ends=False)
    scene, asked = world.measurer._recordings[0], sample_prompts.probes("code")
    assert scene.records().key_of(asked) == key != replace(scene, target=other).records().key_of(asked)


def test_other_probe_prompts_begin_the_curve_anew(
    models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an update of the app that has other prompts: figures of different prompts never share a
    curve."""
    monkeypatch.setattr(measurer, "ANSWER_TOKENS", 12)
    found = []
    for asked in (("a duck", "the pond"), ("the old duck",)):
        monkeypatch.setattr(sample_prompts, "probes", lambda topic, asked=asked: asked)
        world = World(models, tmp_path)
        try:
            learned(world)
            found.append({row["version"]: (row["recording"], row["prompts"]) for row in world.rows()})
        finally:
            world.close()
    first, then = found
    assert list(first) == [0, 1] and {0, 2} <= set(then)
    assert {count for _, count in first.values()} == {2} and {count for _, count in then.values()} == {1}
    assert len({key for key, _ in first.values()} | {key for key, _ in then.values()}) == 2


def test_a_pair_that_learns_nothing_measures_nothing(world: World) -> None:
    world.lines.configure(world.settings.model_copy(update={"training": "off"}))
    answer = world.pair.generate("duck", max_new_tokens=8)
    assert world.measurer._thread is None and world.pair.agreement(answer) is None
