"""The benchmark: what it counts, what it writes, and what it says of it. Times are only asked to be there."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from lab.equality import tiny
from lab.races import machine, speed_report, watch
from lab.races.assisted import ASSISTED, DEFAULTS, LOOKUP, PLAIN, PLAIN_BF16
from lab.races.contest import BenchRequest
from lab.races.floor import Pass, Shape, floor
from lab.races.machine import Probe
from lab.races.run_bench import run
from lab.races.speed_report import Row
from lab.races.watch import bare, take_reads, unwatched_cache, waiting_clock, watched
from omnidemo.core.config import Settings
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring import report_tables
from omnidemo.serving.measuring.report_tables import Stage
from omnidemo.serving.pair_loading import build_pair

TEXTS = ["the small duck", "def double(n):", "therefore there is another"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("models")
    target = tiny.save(folder / "target", "llama", "byte-level", seed=1)
    return str(target), str(
        tiny.save(folder / "drafter", "llama grouped, wide heads", "sentence-piece", seed=2)
    )


@pytest.fixture
def settings(models: tuple[str, str], tmp_path: Path) -> Settings:
    return Settings(
        target=models[0], drafter=models[1], device="cpu", threads=1, storage=tmp_path / "storage",
        max_new_tokens=12,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def order(settings: Settings, out: Path, **changes: object) -> BenchRequest:
    base = BenchRequest(
        [settings.target], {"texts": TEXTS[2:]}, out, methods=["ngram-exact"], max_new_tokens=12
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_every_arm_answers_and_the_files_say_so(settings: Settings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    events = list(run(order(settings, out), settings))
    rows = [SimpleNamespace(**event) for event in events if isinstance(event, dict)]
    stages = {event.name for event in events if isinstance(event, Stage)}
    assert stages == {f"{settings.target}: answers"}
    theirs = [PLAIN, LOOKUP, ASSISTED, DEFAULTS]
    ours = ["ngram-exact fixed", "ngram-exact cost"]
    assert [(row.temperature, row.arm) for row in rows] == [
        (heat, arm) for heat in (0, 1) for arm in [*theirs, *ours, "autoregressive"]
    ]
    assert events[-2] == Stage(f"{settings.target}: answers", len(rows), len(rows))
    for row in rows:
        assert (
            not row.error
            and row.tokens
            and row.seconds
            and row.floor_seconds
            and row.floor_bytes
            and row.floor_operations
        ), row
        assert (
            row.tokens_per_second == row.tokens / row.seconds
            and row.over_floor == row.seconds / row.floor_seconds
        )
        assert row.identical is (True if row.temperature == 0 else None), row
        assert row.first_token_ms and 0 < row.first_token_ms <= row.seconds * 1e3
        if row.arm in ours or row.arm == "autoregressive":
            assert (
                row.bare_ms and row.round_ms and row.overhead == pytest.approx(1 - row.bare_ms / row.round_ms)
            )
            assert sum((row.draft_ms, row.verify_ms, row.settle_ms, row.other_ms)) == pytest.approx(
                row.round_ms
            )  # type: ignore[arg-type]
    plain = {row.temperature: row for row in rows if row.arm == PLAIN}
    for row in rows:
        assert row.speedup == pytest.approx(row.tokens_per_second / plain[row.temperature].tokens_per_second)  # type: ignore[operator]
    assert {row.own_speedup for row in rows if row.arm == "autoregressive"} == {1}
    with (out / "speed.csv").open(encoding="utf-8-sig", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["arm"] for row in written] == [row.arm for row in rows] and float(
        written[0]["seconds"]
    ) == rows[0].seconds
    about = json.loads((out / "speed.json").read_text())
    assert about["commit"] and about["torch"] == torch.__version__
    assert about[settings.target]["threads"] == {"transformers": 1, "omnidemo": 1}
    text = (out / "speed.md").read_text()
    assert text.count("| ngram-exact cost |") == 6
    assert "Our plain decoding: " in text and "× as fast." in text


def test_transformers_joins_in_two_bytes_where_the_weights_have_no_more(
    settings: Settings, tmp_path: Path
) -> None:
    model = AutoModelForCausalLM.from_pretrained(settings.target).bfloat16()
    half = tmp_path / "half"
    shutil.copytree(settings.target, half)
    model.save_pretrained(half)
    wanted = order(settings, tmp_path, targets=[str(half)], temperatures=[0.0])
    rows = [row for row in run(wanted, settings) if isinstance(row, dict)]
    found = {row["arm"]: SimpleNamespace(**row) for row in rows}
    assert not found[PLAIN_BF16].error and found[PLAIN_BF16].tokens
    assert (
        0
        < (found[PLAIN_BF16].floor_bytes or 0) / found[PLAIN_BF16].tokens
        < (found[PLAIN].floor_bytes or 0) / found[PLAIN].tokens
    )
    assert "× the same in bfloat16." in speed_report.verdicts(rows)[0]


def test_a_failure_of_theirs_is_told(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lab.races.assisted import Peer

    assistance = Peer._assistance

    def failing(self: Peer, method: str, sampled: bool) -> dict[str, object]:
        if method == DEFAULTS:
            raise RuntimeError("no such\ncache")
        return assistance(self, method, sampled)

    monkeypatch.setattr(Peer, "_assistance", failing)
    settings = settings.model_copy(update={"threads": 2})
    events = list(run(order(settings, tmp_path / "out", temperatures=[0.0]), settings))
    rows = {event["arm"]: event for event in events if isinstance(event, dict)}
    assert rows[DEFAULTS]["error"] == "RuntimeError: no such cache" and rows[DEFAULTS]["seconds"] is None
    assert "failed: RuntimeError: no such cache" in (tmp_path / "out" / "speed.md").read_text()
    assert rows["autoregressive"]["threads"] == rows[PLAIN]["threads"] == 2


def test_bad_orders_are_refused_before_a_model_is_loaded(settings: Settings, tmp_path: Path) -> None:
    nowhere = settings.model_copy(update={"drafter": "nowhere"})
    with pytest.raises(ValueError, match="at least 2"):
        next(iter(run(order(nowhere, tmp_path, max_new_tokens=1), nowhere)))


# floors and probes
# -----------------------------------------------------------------------------------------------------------


def test_the_floor_counts_bytes_and_operations(settings: Settings) -> None:
    model = build_pair(settings.target, settings.drafter, settings).target
    shape, module = Shape.of(model), AutoModelForCausalLM.from_pretrained(settings.target)
    config = module.config
    head = module.lm_head.weight
    assert shape.head == 4 * head.numel() and shape.outputs == head.numel()
    embeddings = 0 if config.tie_word_embeddings else module.model.embed_tokens.weight.numel()
    assert shape.weights == 4 * (sum(one.numel() for one in module.parameters()) - head.numel() - embeddings)
    assert shape.position == 2 * config.num_hidden_layers * config.hidden_size * 4
    one, reading = Pass(10, 1, 1), Pass(0, 10, 0)
    assert shape.bytes_of(one) == shape.weights + shape.head + 11 * shape.position
    assert shape.bytes_of(reading) == shape.weights + 10 * shape.position
    # Each of ten tokens looks at itself and those before it: 55 pairs, two products of the hidden size in
    # each layer.
    assert shape.operations_of(reading) == 2 * (
        10 * shape.matrices + 55 * 2 * config.num_hidden_layers * config.hidden_size
    )
    probe = Probe(CPU, torch.float32)
    moved, _, seconds = floor([(shape, reading), (shape, one)], probe, 1)
    assert moved == shape.bytes_of(one) + shape.bytes_of(reading) and seconds > 0
    fast, slow = (probe.bandwidth(shape.bytes_of(one), 1), 1e3)
    probe.bandwidth = lambda size, threads: slow  # type: ignore[method-assign]
    assert floor([(shape, one)], probe, 1)[-1] == pytest.approx(shape.bytes_of(one) / slow) and fast > slow
    assert floor([], probe, 1) == (0, 0, 0)


def test_probes_are_taken_once_for_a_size() -> None:
    probe = Probe(CPU, torch.float32)
    first = probe.bandwidth(1 << 16, 1)
    assert first > 1e8 and probe.bandwidth(1 << 16, 1) == first and probe.bandwidth((1 << 16) - 9, 1) == first
    assert probe.rate(1) > 1e8 and "0.0655 MB" in probe.table(1)


def test_the_machine_is_told() -> None:
    known = machine.facts(CPU)
    assert known["cores"] >= 1 and known["transformers"] and known["commit"]


class Noting:
    """A runner that notes, in order, what is read through its caches."""

    def __init__(self, runner: Any, name: str, notes: list[tuple[str, int, int]]) -> None:
        self.runner, self.name, self.notes, self.device = runner, name, notes, runner.device

    def new_cache(self) -> Any:
        cache = self.runner.new_cache()
        forward = cache.forward

        def noting(ids: Any, last: int, stats_at: float | None = None) -> Any:
            self.notes.append((self.name, cache.length, len(ids)))
            return forward(ids, last, stats_at)

        cache.forward = noting
        return cache


def test_bare_passes_are_the_ones_that_were_made(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build_pair(settings.target, settings.drafter, settings)
    pair = Pair(watched(plain.target), watched(plain.drafter))
    made = pair.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False, reuse=False)
    assert (
        made.token_ids == plain.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False).token_ids
    )
    target = take_reads(pair.target)
    prompt, rounds = target[0], target[1:]
    assert prompt.rows == 0 and len(prompt.ids) == made.prompt_tokens - 1
    assert [(len(read.ids), read.rows) for read in rounds] == [
        (one.proposed + 1, one.proposed + 1) for one in made.rounds
    ]
    assert rounds[0].start == len(prompt.ids)
    drafter = take_reads(pair.drafter)
    order = [read.order for read in sorted([*target, *drafter], key=lambda read: read.order)]
    assert (
        len(set(order)) == len(order)
        and target[0].order < drafter[0].order < target[1].order < drafter[-1].order
    )
    again = Pair(watched(plain.target), watched(plain.drafter))
    read: list[tuple[str, int, int]] = []
    for name, model in (("target", again.target), ("drafter", again.drafter)):
        monkeypatch.setattr(model.runner, "runner", Noting(model.runner.runner, name, read))  # type: ignore[attr-defined]
    caches = unwatched_cache(again.target), unwatched_cache(again.drafter)
    assert bare(CPU, (caches[0], target), (caches[1], drafter)) > 0
    both = sorted(
        [(one.order, "target", one) for one in target] + [(one.order, "drafter", one) for one in drafter]
    )
    assert read == [(name, one.start, len(one.ids)) for _, name, one in both]
    assert bare(CPU, (caches[0], target[:1])) == 0  # a prompt is no part of a round


def test_the_waiting_clock_is_that_of_one_pair_and_only_within(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, other = (build_pair(settings.target, settings.drafter, settings) for _ in range(2))
    waits: list[torch.device] = []
    monkeypatch.setattr(watch, "synchronise", waits.append)
    own = pair.clock = lambda: float(len(waits))
    with waiting_clock(pair):
        made = pair.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False, reuse=False)
        count = len(waits)
        other.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False, reuse=False)
    assert pair.clock is own and len(waits) == count
    # A second passes with each look at it, of which there is one at the end of each stage.
    assert made.rounds[0].seconds["total"] == pytest.approx(6.0)


# reports
# ------------------------------------------------------------------------------------------------------------


def row(arm: str, speed: float, topic: str = "maths", index: int = 0, **changes: object) -> Row:
    method, policy = [*arm.split(), ""][:2]
    place = {"topic": topic, "prompt_index": index, "arm": arm, "method": method, "policy": policy}
    return place | {"tokens_per_second": speed, "own_speedup": speed / 30, "speedup": speed / 10} | changes


def test_verdicts_compare_medians_on_the_same_prompts() -> None:
    rows = [row(PLAIN, 10), row(ASSISTED, 15), row("autoregressive", 30), row("ngram-exact fixed", 45)]
    rows += [row("ngram-exact cost", 36), row(PLAIN, 10, "code"), row("autoregressive", 30, "code")]
    rows += [row("ngram-exact cost", 27, "code"), row(LOOKUP, 5, error="out of memory")]
    said = speed_report.verdicts(rows)
    assert said[0] == "Our plain decoding: 3.00 × plain `transformers`."
    assert said[1] == "Our best, `ngram-exact fixed`: 4.50 × plain `transformers`, 1.50 × our plain decoding."
    assert said[2] == f"Their best assisted mode, `{ASSISTED}`: 1.50 × plain; ours is 3.00 × as fast."
    assert said[3].startswith("Draft length by cost") and "0.90 ×" in said[3] and "on code" in said[3]
    assert speed_report.verdicts(rows[:2]) == []


def test_spreads_are_ranges_and_unknown_values_are_dashes() -> None:
    assert report_tables.Percentiles.of([1.0, 2.0, 3.0, None]).text(".1f") == "2.0 (1.2–2.8)"
    assert (
        report_tables.Percentiles.of([2.0]).text(".1f") == "2.0"
        and report_tables.Percentiles.of([None]).text(".1f") == "–"
    )
    assert report_tables.markdown_table(["a"], [["x|y"]]).splitlines() == ["| a |", "| --- |", "| x\\|y |"]
