"""The benchmark: what it counts, what it writes, and what it says of it. Times are only asked to be there."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo.bench import tiny
from omnidemo.bench.peer import ASSISTED, DEFAULTS, LOOKUP, PLAIN
from omnidemo.bench.speed import growth, machine, memory, report
from omnidemo.bench.speed.adapted import stored
from omnidemo.bench.speed.floor import Pass, Shape, floor
from omnidemo.bench.speed.machine import Probe
from omnidemo.bench.speed.rows import Row
from omnidemo.bench.speed.run import Order, run
from omnidemo.bench.speed.scripted import compounds_only, fill, invented, one_word
from omnidemo.bench.speed.watch import bare, reads_of, watched
from omnidemo.config import Settings
from omnidemo.runtime.loading import attach_storage, build_pair, open_store
from omnidemo.runtime.pair import Pair

TEXTS = ["the small duck", "def double(n):", "therefore there is another"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("models")
    target = tiny.save(folder / "target", "llama", "byte-level", seed=1)
    return str(target), str(tiny.save(folder / "drafter", "llama grouped, wide heads", "sentence-piece", seed=2))


@pytest.fixture
def settings(models: tuple[str, str], tmp_path: Path) -> Settings:
    return Settings(
        target=models[0], drafter=models[1], device="cpu", threads=1, storage=tmp_path / "storage", update_interval=2, steps_per_update=1,
        batch_size=1, lora_rank=4, max_new_tokens=12,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def order(settings: Settings, out: Path, **changes: object) -> Order:
    base = Order([settings.target], {"texts": TEXTS[:2]}, {"texts": TEXTS[2:]}, 2, out, methods=["ngram-exact"], max_new_tokens=12)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_every_arm_answers_and_the_files_say_so(settings: Settings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    events = list(run(order(settings, out), settings))
    rows = [event for event in events if isinstance(event, Row)]
    stages = {event[0] for event in events if not isinstance(event, Row)}
    assert stages == {f"{settings.target}: learning texts", f"{settings.target}: answers"}
    theirs = [PLAIN, LOOKUP, *(f"{name} {state}" for state in ("fresh", "adapted") for name in (ASSISTED, DEFAULTS))]
    ours = [f"ngram-exact {state} {policy}" for state in ("fresh", "adapted") for policy in ("fixed", "cost")]
    assert [(row.temperature, row.arm) for row in rows] == [(heat, arm) for heat in (0, 1) for arm in [*theirs, *ours, "autoregressive"]]
    assert events[-2] == (f"{settings.target}: answers", len(rows), len(rows))
    for row in rows:
        assert not row.error and row.tokens and row.seconds and row.floor_seconds and row.floor_bytes and row.floor_operations, row
        assert row.tokens_per_second == row.tokens / row.seconds and row.over_floor == row.seconds / row.floor_seconds
        assert row.identical is (True if row.temperature == 0 else None), row
        assert row.first_token_ms and 0 < row.first_token_ms <= row.seconds * 1e3
        if row.arm in ours or row.arm == "autoregressive":
            assert row.bare_ms and row.round_ms and row.overhead == pytest.approx(1 - row.bare_ms / row.round_ms)
            assert sum((row.draft_ms, row.verify_ms, row.settle_ms, row.other_ms)) == pytest.approx(row.round_ms)  # type: ignore[arg-type]
    plain = {row.temperature: row for row in rows if row.arm == PLAIN}
    for row in rows:
        assert row.speedup == pytest.approx(row.tokens_per_second / plain[row.temperature].tokens_per_second)  # type: ignore[operator]
    assert {row.own_speedup for row in rows if row.arm == "autoregressive"} == {1}
    with (out / "speed.csv").open(encoding="utf-8-sig", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["arm"] for row in written] == [row.arm for row in rows] and float(written[0]["seconds"]) == rows[0].seconds
    about = json.loads((out / "speed.json").read_text())
    assert about["commit"] and about["torch"] == torch.__version__
    assert about[settings.target]["threads"] == {"transformers": 1, "omnidemo": 1}
    text = (out / "speed.md").read_text()
    assert text.count("| ngram-exact adapted cost |") == 6 and "Our plain decoding: " in text and "× as fast." in text
    # The drafter that was distilled stays.
    again = list(run(order(settings, tmp_path / "again", temperatures=[0.0], methods=["token-intersection"]), settings))
    assert {event[0] for event in again if not isinstance(event, Row)} == {f"{settings.target}: answers"}


def test_an_adapter_of_the_storage_is_preferred(settings: Settings, tmp_path: Path) -> None:
    storage = tmp_path / "kept"
    assert stored(storage, settings, settings.target, "texts") is None
    kept = settings.model_copy(update={"storage": storage, "training": "inline", "cost_aware": False})
    pair, store = build_pair(settings.target, settings.drafter, kept), open_store(kept)
    lines = attach_storage(pair, kept, store)
    for text in TEXTS[:2]:
        pair.generate(text, max_new_tokens=12, draft_length=0)
    assert lines.run_pending() and lines.status().error is None
    lines.close()
    store.close()
    found = stored(storage, settings, settings.target, "texts")
    assert found is not None and found.origin == "line default, version 1, 2 requests"
    pair.publish(1, found.weights)  # they fit the drafter
    events = list(run(order(settings, tmp_path / "out", adapters=storage, temperatures=[0.0]), settings))
    assert {event[0] for event in events if not isinstance(event, Row)} == {f"{settings.target}: answers"}
    assert found.origin in (tmp_path / "out" / "speed.md").read_text()


def test_without_requests_no_drafter_is_adapted_and_a_failure_of_theirs_is_told(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnidemo.bench.peer import Peer

    assistance = Peer._assistance

    def failing(self: Peer, method: str, sampled: bool) -> dict[str, object]:
        if method == DEFAULTS:
            raise RuntimeError("no such\ncache")
        return assistance(self, method, sampled)

    monkeypatch.setattr(Peer, "_assistance", failing)
    events = list(run(order(settings, tmp_path / "out", requests=0, temperatures=[0.0]), settings))
    rows = {event.arm: event for event in events if isinstance(event, Row)}
    assert not any("adapted" in arm for arm in rows)
    assert rows[f"{DEFAULTS} fresh"].error == "RuntimeError: no such cache" and rows[f"{DEFAULTS} fresh"].seconds is None
    assert "failed: RuntimeError: no such cache" in (tmp_path / "out" / "speed.md").read_text()


def test_bad_orders_are_refused_before_a_model_is_loaded(settings: Settings, tmp_path: Path) -> None:
    nowhere = settings.model_copy(update={"drafter": "nowhere"})
    cases = (({"requests": 1}, "every 2 answers"), ({"max_new_tokens": 1}, "at least 2"), ({"temperatures": [-1.0]}, "0 or more"))
    for wrong, words in cases:
        with pytest.raises(ValueError, match=words):
            next(iter(run(order(nowhere, tmp_path, **wrong), nowhere)))


# floors and probes -----------------------------------------------------------------------------------------------------------


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
    # Each of ten tokens looks at itself and those before it: 55 pairs, two products of the hidden size in each layer.
    assert shape.operations_of(reading) == 2 * (10 * shape.matrices + 55 * 2 * config.num_hidden_layers * config.hidden_size)
    probe = Probe(CPU, torch.float32)
    found = floor([(shape, reading), (shape, one)], probe, 1)
    assert found.bytes == shape.bytes_of(one) + shape.bytes_of(reading) and found.seconds > 0
    fast, slow = (probe.bandwidth(shape.bytes_of(one), 1), 1e3)
    probe.bandwidth = lambda size, threads: slow  # type: ignore[method-assign]
    assert floor([(shape, one)], probe, 1).seconds == pytest.approx(shape.bytes_of(one) / slow) and fast > slow
    assert floor([], probe, 1).seconds == 0


def test_probes_are_taken_once_for_a_size() -> None:
    probe = Probe(CPU, torch.float32)
    first = probe.bandwidth(1 << 16, 1)
    assert first > 1e8 and probe.bandwidth(1 << 16, 1) == first and probe.bandwidth((1 << 16) - 9, 1) == first
    assert probe.rate(1) > 1e8 and "0.0655 MB" in probe.table(1)


def test_memory_is_seen() -> None:
    if machine.resident() == 0:
        pytest.skip("this system does not say")
    with machine.Peak(CPU) as peak:
        held = torch.ones(8_000_000)
    count, size = machine.live_tensors()
    assert peak.rss_growth > 20e6 and peak.cuda is None and size >= held.nbytes
    del held
    assert machine.live_tensors()[1] <= size - 32_000_000 and machine.live_tensors()[0] < count
    known = machine.facts(CPU)
    assert known["cores"] >= 1 and known["transformers"] and known["commit"]


def test_bare_passes_are_the_ones_that_were_made(settings: Settings) -> None:
    plain = build_pair(settings.target, settings.drafter, settings)
    pair = Pair(watched(plain.target), watched(plain.drafter))
    made = pair.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False, reuse=False)
    assert made.token_ids == plain.generate(TEXTS[0], max_new_tokens=12, draft_length=3, learn=False).token_ids
    target = reads_of(pair.target)
    prompt, rounds = target[0], target[1:]
    assert prompt.rows == 0 and len(prompt.ids) == made.prompt_tokens - 1
    assert [(len(read.ids), read.rows) for read in rounds] == [(one.proposed + 1, one.proposed + 1) for one in made.rounds]
    assert rounds[0].start == len(prompt.ids)
    counted: list[int] = []
    seconds = bare(pair.target, target, lambda read: bool(counted.append(read.rows)) or read.rows > 0)
    assert seconds > 0 and counted == [read.rows for read in target] and len(reads_of(pair.target)) == len(target)


# reports ---------------------------------------------------------------------------------------------------------------------


def row(arm: str, speed: float, topic: str = "maths", index: int = 0, **changes: object) -> Row:
    method, drafter, policy = [*arm.split(), "", ""][:3]
    base = Row("t", topic, 0.0, index, arm, method, drafter, policy, 1, tokens_per_second=speed, own_speedup=speed / 30, speedup=speed / 10)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_verdicts_compare_medians_on_the_same_prompts() -> None:
    rows = [row(PLAIN, 10), row(f"{ASSISTED} adapted", 15), row("autoregressive", 30), row("ngram-exact adapted fixed", 45)]
    rows += [row("ngram-exact fresh cost", 36), row(PLAIN, 10, "code"), row("autoregressive", 30, "code")]
    rows += [row("ngram-exact fresh cost", 27, "code"), row(LOOKUP, 5, error="out of memory")]
    said = report.verdicts(rows)
    assert said[0] == "Our plain decoding: 3.00 × plain `transformers`."
    assert said[1] == "Our best, `ngram-exact adapted fixed`: 4.50 × plain `transformers`, 1.50 × our plain decoding."
    assert said[2] == f"Their best assisted mode, `{ASSISTED} adapted`: 1.50 × plain; ours is 3.00 × as fast."
    assert said[3].startswith("Fresh drafter") and "0.90 ×" in said[3] and "on code" in said[3]
    assert report.verdicts(rows[:2]) == []


def test_spreads_are_ranges_and_unknown_values_are_dashes() -> None:
    assert report.Middle.of([1.0, 2.0, 3.0, None]).text(".1f") == "2.0 (1.2–2.8)"
    assert report.Middle.of([2.0]).text(".1f") == "2.0" and report.Middle.of([None]).text(".1f") == "–"
    assert report.table(["a"], [["x|y"]]).splitlines() == ["| a |", "| --- |", "| x\\|y |"]


# growth and memory -----------------------------------------------------------------------------------------------------------


def test_a_scripted_drafter_is_accepted_at_any_size() -> None:
    for size in (600, 900):
        pair, ids = one_word(invented(size, 400))
        made = pair.generate(ids[:8], max_new_tokens=40, draft_length=4, learn=False)
        plain = pair.generate(ids[:8], max_new_tokens=40, method="autoregressive", learn=False)
        assert made.token_ids == plain.token_ids and len(set(made.token_ids)) == 1 and len(made.token_ids) == 40
        shares = [one.accepted / one.proposed for one in made.rounds if one.proposed]
        assert 0.5 < sum(shares) / len(shares) < 1 and pair.mismatches == 0


def test_scripted_compounds_are_merged_from_the_cache() -> None:
    pair = compounds_only(invented(700, 300, width=32))
    fill(pair, 0)
    without = pair.generate([256, 257], max_new_tokens=20, draft_length=4, learn=False)
    fill(pair, 100)
    with_them = pair.generate([256, 257], max_new_tokens=20, draft_length=4, learn=False)
    assert len(pair.ngrams) == 100 and without.token_ids == with_them.token_ids and pair.mismatches == 0
    assert without.metrics["ngram_hits"] == 0 and (with_them.metrics["ngram_hits"] or 0) > 0.5


def test_growth_has_a_point_for_each_size_and_a_plot(settings: Settings, tmp_path: Path) -> None:
    found = list(growth.run(settings, growth.QUICK, tmp_path))
    points = [point for point, _ in found]
    assert {total for _, total in found} == {len(points)} and {point.question for point in points} == set(growth.TITLES)
    assert [(p.size, p.method) for p in points if p.question == "ngrams"] == [(0, "ngram-exact"), (50, "ngram-exact")]
    for point in points:
        assert point.rounds and point.round_ms and point.verify_ms and point.host_ms and point.round_ms >= point.verify_ms, point
    with (tmp_path / "growth.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [float(line["round_ms"]) for line in csv.DictReader(file)] == [point.round_ms for point in points]
    page = (tmp_path / "growth.html").read_text()
    assert all(f"over the {title.split(',')[0]}" in page for title in growth.TITLES.values())
    assert len(growth.summary(points)) == 7


def test_memory_is_sampled_while_the_drafter_learns(settings: Settings, tmp_path: Path) -> None:
    samples = list(memory.run(settings, TEXTS, 8, 2, tmp_path / "memory.csv"))
    assert [sample.requests for sample in samples] == [0, 2, 4, 6, 8]
    first, last = samples[0], samples[-1]
    assert first.version == 0 and first.optimiser_tensors == 0 and last.version >= 1 and last.adapters >= 1 and last.adapters_mb > 0
    assert last.optimiser_tensors == samples[1].optimiser_tensors > 0 and last.optimiser_mb == samples[1].optimiser_mb
    assert last.mismatches == 0
    slope = memory.growth(samples)
    assert slope is not None and set(slope) == {"rss_mb", "tensors", "tensor_mb"} and memory.growth(samples[:1]) is None
    with (tmp_path / "memory.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [int(line["requests"]) for line in csv.DictReader(file)] == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="at least 1"):
        next(memory.run(settings, TEXTS, 0, 1, tmp_path / "memory.csv"))


def test_a_slope_is_that_of_the_second_half() -> None:
    base = memory.Sample(0, 0.0, 100.0, 10, 1.0, 0, 0, 0.0, 0, 0.0, 0, 0)
    samples = [replace(base, requests=n, rss_mb=100 + min(n, 500) + 0.01 * n) for n in range(0, 1001, 100)]
    slope = memory.growth(samples)
    assert slope is not None and slope["rss_mb"] == pytest.approx(10) and slope["tensors"] == pytest.approx(0)
