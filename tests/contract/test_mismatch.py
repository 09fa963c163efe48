"""`check-backend`: nothing is found where nothing is wrong, and a planted fault is named at the token where
it begins."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo import Pair, load_pair
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.core.records import Generation, Round, Token
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.methods import METHODS, fitting
from omnidemo.models.load import LanguageModel, load_model
from omnidemo.serving.measuring import mismatch
from omnidemo.serving.measuring.mismatch import BackendReport, differing
from omnidemo.serving.pair_loading import build_measured_pair
from tests.support.cli import Cli, refused
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.models import save

TEXTS = ["the other ducks", "def double(n):", "12 + 34 ="]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("mismatch")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": text}) for text in TEXTS))
    return path


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Pair]]:
    """The pairs of each check from now on, the reference first. The target's output layer of the other is
    slightly wrong."""
    made: list[Pair] = []
    by_torch = mismatch._by_torch

    def right(model: LanguageModel) -> LanguageModel:
        return replace(model, runner=by_torch(replace(model, runner=model.runner.copy())).runner)

    def reference(target: LanguageModel, drafter: LanguageModel, **limits: Any) -> Pair:
        made.insert(0, Pair(target, drafter, **limits))
        made[1].target.runner.overwrite(damaged(made[1]))
        return made[0]

    def other(*given: Any) -> Pair:
        made.append(build_measured_pair(*given))
        return made[-1]

    monkeypatch.setattr(mismatch, "_by_torch", right)
    monkeypatch.setattr(mismatch, "Pair", reference)
    monkeypatch.setattr(mismatch, "build_measured_pair", other)
    yield made


def damaged(pair: Pair) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    weight = pair.target.runner.weights()["lm_head.weight"]
    return {"lm_head.weight": weight + 0.02 * torch.randn_like(weight)}


def options(names: tuple[str, str], tokens: int = 24) -> list[str]:
    return ["--target", names[0], "--drafter", names[1], "--tokens", str(tokens)]


def test_nothing_is_found_where_nothing_is_wrong(names: tuple[str, str], prompts: Path, cli: Cli) -> None:
    found = cli("check-backend", *options(names, 10), "--prompts", prompts)
    served = fitting(load_pair(*names).map)
    count = 3 * (len(served) + sum(METHODS[name].coupled for name in served))
    said = re.fullmatch(
        r"No mismatch between cpu and the reference, over (\d+) answers and ([\d,]+) tokens.\n", found.out
    )
    assert found.code == 0 and said is not None and int(said[1]) == count
    assert 8 * count < int(said[2].replace(",", "")) <= 10 * count  # above temperature 0 an answer may end


def test_a_packed_target_is_held_against_float32(
    names: tuple[str, str], prompts: Path, tmp_path: Path, cli: Cli
) -> None:
    target = write_gguf(tmp_path / "m.gguf", tiny_model(hidden_size=128, head_dim=32), "Q4_1", metadata={
        "llama.attention.key_length": 32, "llama.attention.value_length": 32,
    })  # fmt: skip
    asked = ["--method", "autoregressive", "--temperature", "0"]
    found = cli("check-backend", *options((str(target), names[1])), "--prompts", prompts, *asked)
    assert found.code == 0 and re.search(
        r"A row of logits alone and among up to 16 in int8: the same bits\.\n$",
        found.out,
    ), found


def test_a_row_that_depends_on_its_company_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_gguf(tmp_path / "m.gguf", tiny_model(hidden_size=128, head_dim=32), "Q8_0",
        metadata={"llama.attention.key_length": 32, "llama.attention.value_length": 32})  # fmt: skip
    runner = load_model(str(target), device="cpu", packed=True).runner
    assert isinstance(runner, FusedLlama)
    assert differing(runner, [5, 6, 7]) == 0
    forward = FusedCache.forward

    def wrong(self: FusedCache, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        found = forward(self, ids, last, stats_at)
        if len(ids) == 9:
            found.logits[0, 3:5] += 1e-3
        return found

    monkeypatch.setattr(FusedCache, "forward", wrong)
    report = BackendReport("cpu", 1, 1, batched=differing(runner, [5, 6, 7]))
    assert not report.passed and report.lines()[-1].endswith("in int8: 2 numbers differ.")


@pytest.mark.parametrize("method", ["ngram-exact", "autoregressive"])
def test_a_planted_fault_is_named_where_it_begins(
    names: tuple[str, str],
    prompts: Path,
    planted: list[Pair],
    cli: Cli,
    method: str,
) -> None:
    found = cli(
        "check-backend",
        *options(names),
        "--prompts",
        prompts,
        "--method",
        method,
        "--temperature",
        "0",
    )
    reference, other = planted
    answers = [
        [pair.generate(text, method=method, max_new_tokens=24).token_ids for text in TEXTS]
        for pair in (reference, other)
    ]
    different = [place for place in range(3) if answers[0][place] != answers[1][place]]
    assert found.code == 1 and different
    first = different[0]
    one, two = answers[0][first], answers[1][first]
    position = next(place for place in range(24) if one[place] != two[place])
    # What it says of the logits is what transformers says.
    ids = [*reference.prompt_ids(TEXTS[first]), *one[:position]]
    with torch.no_grad():
        row = AutoModelForCausalLM.from_pretrained(names[0], dtype=torch.float32)(torch.tensor([ids])).logits[
            0, -1
        ]
    gap = float(row[one[position]] - row[two[position]])
    said = dict(line.strip().split(None, 1) for line in found.out.splitlines()[1:])
    assert found.out.startswith(f"{len(different)} of 3 answers differ between cpu and the reference.")
    assert (
        said["prompt"] == repr(TEXTS[first])
        and said["method"] == method
        and said["temperature"] == "0"
        and said["seed"] == str(first)
    )
    assert said["position"].split()[0] == str(position)
    assert f"(id {one[position]}, " in said["reference"] and f"(id {two[position]}, " in said["cpu"]
    assert gap > 0 and float(said["logits"].removeprefix("gap").split()[0]) == pytest.approx(
        gap, rel=0.01, abs=1e-4
    )


def test_a_fault_at_one_place_is_found_at_that_place(names: tuple[str, str]) -> None:
    pair = load_pair(*names, backend="reference")
    case = {"prompt": TEXTS[0], "method": "ngram-exact", "temperature": 0.0, "seed": 0}
    right = pair.generate(TEXTS[0], max_new_tokens=24)
    assert mismatch.parting(pair, case, right, right) is None
    for position in (0, 7, 23):
        wrong = list(right.token_ids)
        wrong[position] = (wrong[position] + 1) % 300
        found = mismatch.parting(pair, case, right, made(wrong))
        assert (
            found is not None
            and found.position == position
            and found.logits is not None
            and found.logits[0] > found.logits[1]
        )
        assert [token.id for token in (found.wanted, found.got) if token] == [
            right.token_ids[position],
            wrong[position],
        ]
    assert (
        found is not None
        and found.gap is not None
        and found.gap == pytest.approx(found.logits[0] - found.logits[1])
    )
    assert (
        not found.near_tie
        and dataclasses.replace(found, gap=5e-5).near_tie
        and not dataclasses.replace(found, gap=None).near_tie
    )
    shorter = mismatch.parting(pair, case, right, made(right.token_ids[:9]))
    assert shorter is not None and shorter.position == 9 and shorter.got is None and shorter.logits is None
    assert "nothing: its answer has ended" in mismatch.BackendReport("cpu", 1, 24, 1, shorter).lines()[-2]


def test_above_temperature_0_a_gap_is_one_of_scores_with_noise(names: tuple[str, str]) -> None:
    pair = load_pair(*names, backend="reference")
    for seed in range(5):
        case = {"prompt": TEXTS[0], "method": "ngram-exact", "temperature": 1.0, "seed": seed}
        right = pair.generate(**case, max_new_tokens=12)
        for position in (0, 11):
            wrong = list(right.token_ids)
            wrong[position] = (wrong[position] + 1) % 300
            found = mismatch.parting(pair, case, right, made(wrong))
            # the token that was drawn has the highest score
            assert found is not None and found.gap is not None and found.gap > 0
    assert "3 part at a near-tie" in mismatch.BackendReport("cpu", 9, 90, near_ties=3).lines()[0]


def made(ids: Any) -> Generation:
    tokens = tuple(Token(token_id, "", "plain", 1.0) for token_id in ids)
    rounds = (Round(0, tokens, (), 0, 0, 0, 0, 0, 0, {}),)
    return Generation(tuple(ids), "", rounds, {}, "length", "ngram-exact", 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "speculative"], ["speculative cannot be used here"]),
        (["--method", "magic"], ["unknown method 'magic'"]),
        (["--method", "typical-acceptance", "--temperature", "1"], ["does not couple typical-acceptance"]),
        (["--temperature", "-1"], ["temperature = -1.0 is not possible"]),
        (["--prompts", "/no/such/file"], ["cannot be read"]),
    ],
)
def test_bad_options_are_one_sentence(
    names: tuple[str, str], arguments: list[str], words: list[str], cli: Cli
) -> None:
    refused(cli("check-backend", *options(names), *arguments), *words)


def test_the_reference_is_not_checked_against_itself(
    names: tuple[str, str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIDEMO_BACKEND", "reference")
    refused(cli("check-backend", *options(names)), "cannot be checked against itself")
