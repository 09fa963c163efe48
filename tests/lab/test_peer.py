"""The comparison with `transformers`' assisted generation: what it counts, what it tests, and what it writes.
No timing is judged."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lab.races import peer as bench
from lab.races.arms import Answer, Request
from lab.races.assisted import ASSISTED, DEFAULTS, LOOKUP, PEER, PLAIN, Peer
from lab.races.peer import chi_square, compare_with_peer, upper_tail
from omnidemo.core.config import Settings
from omnidemo.serving.measuring.report_tables import Stage
from omnidemo.serving.pair_loading import build_pair
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import questions

ANSWER, SAMPLES = 36, 16
CPU = Settings(device="cpu", threads=1, target=TARGET, drafter=DRAFTER, max_new_tokens=ANSWER)


def test_every_method_answers_every_prompt(tmp_path: Path) -> None:
    # answers that go on in one of two ways, equally often
    texts, out = questions("code", 2), tmp_path / "peer.csv"
    ours = ["autoregressive", "ngram-exact", "token-intersection"]
    events = list(compare_with_peer(CPU, texts, ours[1:], out, SAMPLES))
    draws = [event for event in events if isinstance(event, Stage) and event.name.startswith("draws")]
    assert len(draws) == 2 * (len(PEER) + len(ours)) and all(
        event.done == event.total == SAMPLES for event in draws
    )
    found = [event for event in events if not isinstance(event, Stage)]
    told = [event for event in events if isinstance(event, Stage) and event not in draws]
    rows = [SimpleNamespace(**row) for row in found]
    methods = [*PEER, *ours]
    kinds = [("greedy", i) for i in (0, 1)] + [("sampled", i) for i in (0, 1)]
    assert [(row.kind, row.prompt_index, row.method) for row in rows if row.tokens] == [
        (*k, m) for k in kinds for m in methods
    ]
    assert told == [Stage("rows", count, len(rows)) for count in range(1, len(rows) + 1)] and not any(
        row.error for row in rows
    )
    for row in rows:
        if row.kind == "greedy":
            assert row.identical or row.method in PEER, row
        if row.kind not in ("greedy", "sampled"):
            assert row.samples == SAMPLES if row.kind == "first token" else (row.samples or 0) <= SAMPLES
            assert row.p_value is None or 0 <= row.p_value <= 1
            continue
        assert (
            row.target_passes
            and row.proposed is not None
            and row.accepted is not None
            and row.drafted is not None
        )
        assert (
            row.tokens <= ANSWER
            and row.tokens <= row.accepted + row.target_passes
            and row.accepted <= row.proposed
        )
        assert row.block_efficiency_tokens_per_pass == row.tokens / row.target_passes
        assert (row.drafted > 0) == (row.method not in (PLAIN, LOOKUP, "autoregressive"))
        if row.method in (PLAIN, "autoregressive"):
            assert row.target_passes == row.tokens and row.proposed == 0 and row.own_speedup == 1
    # The fixed draft length is the one asked for; the peer's own settings draft otherwise.
    assert all((row.drafted or 0) <= 4 * (row.target_passes or 0) for row in rows if row.method == ASSISTED)
    drafted = {
        method: [row.drafted for row in rows if row.method == method] for method in (ASSISTED, DEFAULTS)
    }
    assert drafted[ASSISTED] != drafted[DEFAULTS]
    with out.open(encoding="utf-8-sig", newline="") as file:
        written = list(csv.DictReader(file))
    assert [(row["kind"], row["method"], int(row["prompt_index"])) for row in written] == [
        (row.kind, row.method, row.prompt_index) for row in rows
    ]
    lines = bench.summary(found)
    assert [line[0] for line in lines] == methods * 2 and all(
        len(line) == 1 + len(bench.HEADINGS) for line in lines
    )
    assert {line[2] for line in lines if line[0] in ours and line[1] == "greedy"} == {"2/2"}
    assert all(
        "first token: χ²" in line[2] and f"n {2 * SAMPLES}" in line[2]
        for line in lines
        if line[1] == "sampled"
    ), lines


def test_a_drafter_that_is_the_target_is_always_right_and_a_failure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = Peer.generate

    def sometimes(self: Peer, method: str, request: Request) -> Answer:
        if method == DEFAULTS:
            raise RuntimeError("no such\ncache")
        return generate(self, method, request)

    monkeypatch.setattr(Peer, "generate", sometimes)
    text = questions("sums", 1)[0]
    alike = CPU.model_copy(update={"drafter": TARGET})
    events = compare_with_peer(alike, [text], ["auto"], tmp_path / "peer.csv", samples=0)
    rows = [event for event in events if isinstance(event, dict)]
    greedy = {row["method"]: SimpleNamespace(**row) for row in rows if row["kind"] == "greedy"}
    assert list(greedy) == [*PEER, "autoregressive", "speculative"]
    for method in (ASSISTED, "speculative"):
        row = greedy[method]
        assert row.identical and row.acceptance_rate == 1 and row.accepted == row.proposed and row.proposed
        assert (row.target_passes or 0) <= 1 + ANSWER // 5
    assert greedy[DEFAULTS].error == "RuntimeError: no such cache" and greedy[DEFAULTS].identical is None
    assert any(line[0] == DEFAULTS and "no such cache" in line[2] for line in bench.summary(rows))


def test_the_peer_has_the_same_law_and_the_same_adapted_drafter() -> None:
    pair = build_pair(TARGET, DRAFTER, CPU.model_copy(update={"dtype": "float32"}))
    name = "model.layers.0.mlp.up_proj.weight"
    changed = pair.drafter.runner.weights()[name] * 1.5
    pair.publish(1, {name: changed})
    pair.warm_up()
    peer = Peer(pair, 4)
    for drafter in peer.drafters.values():
        assert torch.equal(drafter.get_parameter(name), changed.bfloat16().float())
    ids = pair.prompt_ids(questions("stories", 1)[0])
    first = pair.generate(ids, method="autoregressive", max_new_tokens=1).rounds[0].tokens[0]
    with torch.inference_mode():
        law = peer.laws(ids)[-1]
    assert float(law.sum()) == pytest.approx(1) and int(law.argmax()) == first.id
    assert float(law[first.id]) == pytest.approx(first.p, abs=1e-4)


def test_chi_square() -> None:
    assert upper_tail(3.841458820694124, 1) == pytest.approx(0.05) and upper_tail(0.0, 3) == 1
    law = torch.tensor([0.5, 0.3, 0.16, 0.02, 0.02])
    drawn = [0] * 50 + [1] * 30 + [2] * 16 + [3] * 2 + [4] * 2
    # The two rare tokens are too few even together: they join the rarest of the others.
    assert chi_square(drawn, law) == pytest.approx((0.0, 2))
    # together 8 are expected: a cell of their own
    assert chi_square(drawn * 2, law) == pytest.approx((0.0, 3))
    chi, freedom = chi_square([0] * 100, law)
    assert freedom == 2 and chi == pytest.approx(50**2 / 50 + 30 + 20) and upper_tail(chi, freedom) < 1e-9
    assert chi_square([], law) == (0.0, 0) and chi_square([0] * 9, torch.tensor([1.0, 0.0])) == (0.0, 0)
    # A token that the law excludes is never left out.
    assert chi_square([0] * 50 + [1] * 40 + [2] * 10, torch.tensor([0.5, 0.5, 0.0]))[0] > 0


def test_bad_input_is_refused_before_a_model_is_loaded() -> None:
    for wrong in ({"draft_length": 0}, {"max_new_tokens": 1}):
        nowhere = CPU.model_copy(update={"target": "nowhere", "drafter": "nowhere", **wrong})
        with pytest.raises(ValueError, match="at least"):
            next(compare_with_peer(nowhere, ["a"], ["auto"], Path("x.csv")))
    assert bench.summary([]) == []
