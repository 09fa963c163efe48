"""Loading by name: what works, and one clear sentence for what does not. No network is used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as tokenizer_models
from transformers import AutoTokenizer, MoshiConfig, MoshiForCausalLM, PreTrainedTokenizerFast
from transformers.cache_utils import DynamicCache

from omnidemo import load_pair
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.models import catalogue, model_files
from omnidemo.models.catalogue import list_models
from omnidemo.models.load import ModelError, load_model, pick_device
from omnidemo.models.transformers_runner import TransformersCache, TransformersRunner, boundaries
from omnidemo.models.weights_digest import weights_digest
from omnidemo.pair.pair import Pair

TINY: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with a begin token, an end of turn and a chat template."""
    backend = Tokenizer(tokenizer_models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    specials = ["<|begin|>", "<|end|>", "<|stop|>", "<|pad|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["the cat sat on the mat and the dog sat on the log"] * 5, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|pad|>"
    )
    made.chat_template = "{{ messages[0]['content'] }}"
    return made


@pytest.fixture
def save(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> Callable[..., Path]:
    """Save a tiny random model with the tokenizer; the returned folder can then be damaged."""

    def saved(
        kind: str = "Llama",
        *,
        with_tokenizer: bool = True,
        generation: dict[str, Any] | None = None,
        **options: Any,
    ) -> Path:
        folder = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**{"vocab_size": len(tokenizer), **TINY, **options})
        model = getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.bfloat16)
        for name, value in (generation or {}).items():
            setattr(model.generation_config, name, value)
        model.save_pretrained(folder)
        if with_tokenizer:
            tokenizer.save_pretrained(folder)
        return folder

    return saved


def refusal(name: str | Path, **options: Any) -> str:
    """The sentence with which a model is refused; it has to be one."""
    with pytest.raises(ModelError) as caught:
        load_model(str(name), device="cpu", **options)
    sentence = str(caught.value)
    assert "\n" not in sentence and len(sentence) < 500 and not sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_two_bytes_on_a_cpu_take_the_path_of_four(
    save: Callable[..., Path], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are rounded and computed with in float32, by the compiled passes; where there is no room
    they stay."""
    folder = str(save())
    usual, model = load_model(folder, device="cpu"), load_model(folder, device="cpu", dtype=dtype)
    assert (
        isinstance(model.runner, FusedLlama)
        and model.dtype == torch.float32
        and model.runner.passes is not None
    )
    for name, weight in model.runner.weights().items():
        assert torch.equal(weight, usual.runner.weights()[name].to(getattr(torch, dtype)).float())
    if dtype == "bfloat16":  # which is what the file holds
        rows = [one.runner.new_cache().forward([1, 2, 3], 3).logits for one in (usual, model)]
        assert torch.equal(*map(torch.as_tensor, rows))
    monkeypatch.setattr(
        model_files, "free_memory", lambda place: model_files.count_parameters(Path(folder)) * 3
    )
    narrow = load_model(folder, device="cpu", dtype=dtype)
    assert narrow.dtype == getattr(torch, dtype)


def test_a_local_folder(save: Callable[..., Path], tokenizer: PreTrainedTokenizerFast) -> None:
    stages: list[tuple[str, float]] = []
    folder = save(tie_word_embeddings=True)
    model = load_model(
        str(folder), device="cpu", progress=lambda stage, fraction: stages.append((stage, fraction))
    )
    assert isinstance(model.runner, FusedLlama)
    assert (model.dtype, model.device, model.context, model.folder) == (
        torch.float32,
        torch.device("cpu"),
        64,
        folder,
    )
    assert model.chat and len(model.vocabulary) == len(tokenizer) == model.runner.rows
    assert (
        model.parameters == model_files.count_parameters(folder)
        and model.memory_bytes == 4 * model.parameters
    )
    assert list(dict.fromkeys(stage for stage, _ in stages)) == ["files", "tokenizers", "weights"]
    ids = tokenizer("the cat sat").input_ids
    assert model.tokenizer("the cat sat").input_ids == ids
    reloaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        wanted = reloaded(torch.tensor([ids])).logits[0]
    assert np.allclose(model.runner.new_cache().forward(ids, len(ids)).logits, wanted, atol=1e-5)


def test_other_families_get_the_general_runner(save: Callable[..., Path]) -> None:
    model = load_model(str(save("Mistral", num_key_value_heads=1)), device="cpu", dtype="bfloat16")
    assert isinstance(model.runner, TransformersRunner) and model.dtype == torch.bfloat16
    assert model.memory_bytes == 2 * model.parameters
    assert model.runner.new_cache().forward([5, 6, 7], 2).logits.dtype == np.float32


def test_a_tokenizer_with_more_ids_than_the_model_has_rows(save: Callable[..., Path]) -> None:
    folder = save(num_key_value_heads=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<another>"])
    tokenizer.add_special_tokens({"pad_token": "<filler>"})
    tokenizer.save_pretrained(folder)
    model = load_model(str(folder), device="cpu")
    assert (
        len(model.vocabulary) == model.runner.rows
        and max(map(max, model.vocabulary.roles.values())) < model.runner.rows
    )
    pair = Pair(model, model)
    assert pair.fill_cache() == 0 and pair.summary()["ngram_share"] == 0


def test_a_model_that_reads_more_ids_than_it_writes(
    save: Callable[..., Path], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    size = {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = MoshiForCausalLM(
        MoshiConfig(vocab_size=len(tokenizer) - 2, max_position_embeddings=256, sliding_window=200, **size)
    )
    assert model.get_input_embeddings().weight.shape[0] == model.lm_head.weight.shape[0] + 1
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    odd = load_model(str(tmp_path), device="cpu")
    assert odd.runner.rows == len(odd.vocabulary) == len(tokenizer) - 2
    plain = load_model(str(save(num_key_value_heads=1)), device="cpu")
    for target, drafter in ((plain, odd), (odd, plain)):
        pair, asked = Pair(target, drafter), {"max_new_tokens": 12, "temperature": 1.0, "seed": 3}
        made = pair.generate("the duck", draft_policy="fixed", draft_length=3, **asked)
        assert made.metrics["drafted"]
        assert made.token_ids == pair.generate("the duck", method="autoregressive", **asked).token_ids


def test_an_end_that_is_named_by_its_text(save: Callable[..., Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(save())
    known = load_model(str(save()), device="cpu").vocabulary.roles["end"]
    added = tokenizer.convert_tokens_to_ids("<|pad|>")
    for named in ("<|pad|>", ["<|pad|>"], [tokenizer.eos_token_id, "<|pad|>"]):
        found = load_model(str(save(generation={"eos_token_id": named})), device="cpu")
        assert set(found.vocabulary.roles["end"]) == {*known, added}


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123\n"


def test_folders_that_are_no_model_say_what_they_are(save: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        folder = save()
        (folder / name).write_text(POINTER)
        assert f"{name} of {folder} is a pointer of Git LFS" in refusal(folder)
    (tmp_path / "a.gguf").write_text(POINTER)
    assert "a.gguf is a pointer of Git LFS and not the file itself" in refusal(tmp_path / "a.gguf")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    assert "is an adapter alone" in refusal(adapter)


def test_whole_numbers_without_scales_are_no_weights(
    save: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    for dtype, config, said in (
        (torch.int8, {}, "quantized, which are not read from a folder"),
        (torch.int32, {"quantization": {"bits": 4}, "quantization_config": {"bits": 4}}, "quantized, which"),
        (
            torch.int32,
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "quantized by gptq, which",
        ),
    ):
        folder = save()
        weights = load_file(folder / "model.safetensors")
        weights[name] = (weights[name] * 100).to(dtype)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        described = json.loads((folder / "config.json").read_text()) | config
        (folder / "config.json").write_text(json.dumps(described))
        assert said in refusal(folder)
    folder = save()
    weights = load_file(folder / "model.safetensors")
    weights[name.replace("weight", "bias")] = torch.ones(24)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    load_model(str(folder), device="cpu")
    assert "no place for (1, first model.layers.0.mlp.up_proj.bias); they are left out" in caplog.text


def test_a_template_in_a_file_of_its_own(save: Callable[..., Path]) -> None:
    folder = save()
    written = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    assert not load_model(str(folder), device="cpu").chat
    (folder / "chat_template.json").write_text("[]")
    assert not load_model(str(folder), device="cpu").chat
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": written}))
    assert load_model(str(folder), device="cpu").tokenizer.chat_template == written


def test_several_end_ids(save: Callable[..., Path]) -> None:
    assert load_model(
        str(save(eos_token_id=1, generation={"eos_token_id": [1, 2]})), device="cpu"
    ).vocabulary.roles["end"] == (1, 2)
    folder = save(eos_token_id=2)
    (folder / "generation_config.json").unlink()
    assert load_model(str(folder), device="cpu").vocabulary.roles["end"] == (1, 2)


def test_pickles_are_refused_before_they_are_opened(
    save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save()
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    monkeypatch.setattr(torch, "load", lambda *args, **options: pytest.fail("opened a pickle"))
    assert "pickle (pytorch_model.bin)" in refusal(folder)


def test_what_a_folder_can_lack(save: Callable[..., Path], tmp_path: Path) -> None:
    assert "no tokenizer" in refusal(save(with_tokenizer=False))
    bare = save()
    (bare / "model.safetensors").unlink()
    assert "no safetensors weights" in refusal(bare)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no config.json" in refusal(empty)
    assert "no folder" in refusal(tmp_path / "nowhere")
    assert "switched off" in refusal("some/model", hub=False)
    assert "no folder" in refusal("a/b/c") and "no folder" in refusal("two words")


def test_damaged_folders(save: Callable[..., Path]) -> None:
    folder = save()
    (folder / "config.json").write_text("{")
    assert "configuration that transformers cannot read" in refusal(folder)
    folder = save()
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "weights" in refusal(folder)
    folder = save()
    (folder / "model.safetensors").write_bytes(b"\x05")
    assert "weights" in refusal(folder)
    folder = save()
    (folder / "tokenizer.json").write_text("{}")
    assert "tokenizer" in refusal(folder)
    folder = save(num_hidden_layers=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    assert "lacks" in refusal(folder)
    folder = save()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "model-00002-of-00002.safetensors"}})
    )
    assert "lacks model-00002-of-00002.safetensors" in refusal(folder)


@pytest.mark.parametrize("ends", ["</end>", ["<s>", None], True, -1, [[1]], {"id": 1}], ids=repr)
def test_an_end_that_is_no_id_keeps_no_model_from_loading(
    save: Callable[..., Path], caplog: pytest.LogCaptureFixture, ends: object
) -> None:
    folder = save(generation={"eos_token_id": ends})
    assert (
        load_model(str(folder), device="cpu").vocabulary.roles["end"]
        == load_model(str(save()), device="cpu").vocabulary.roles["end"]
    )
    assert [
        one.getMessage()
        for one in caplog.records
        if "eos_token_id in generation_config.json" in one.getMessage()
    ]


def test_weights_are_told_apart_by_all_of_them(save: Callable[..., Path], tmp_path: Path) -> None:
    folder = save()
    first = weights_digest(folder)
    copied = shutil.copytree(folder, tmp_path / "moved")
    assert len(first) == 12 and weights_digest(copied) == first
    weights = copied / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-len(data) // 4] ^= 1  # one bit in the middle of the numbers
    weights.write_bytes(data)
    changed = weights_digest(copied)
    (copied / "config.json").write_text((copied / "config.json").read_text() + " ")
    assert len({first, changed, weights_digest(copied)}) == 3
    weights.unlink()
    (copied / "config.json").unlink()
    with pytest.raises(OSError, match=r"config\.json"):
        weights_digest(copied)


def test_models_of_another_kind(save: Callable[..., Path]) -> None:
    folder = save()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "architectures": ["LlamaForSequenceClassification"]})
    )
    assert "not a causal language model" in refusal(folder)
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "own", "auto_map": {"AutoConfig": "own.Config"}})
    )
    (folder / "own.py").write_text("raise SystemExit('ran code of the model')")
    assert "cannot read" in refusal(folder)


def test_state_space_models_are_refused(save: Callable[..., Path]) -> None:
    folder = save("Mamba", state_size=4)
    (folder / "model.safetensors").write_bytes(b"")  # refused before the weights are looked at
    assert "no key-value cache that can be rolled back" in refusal(folder)


def test_too_big(save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save()
    monkeypatch.setattr(model_files, "free_memory", lambda device: 1000)
    assert "needs about" in refusal(folder)


def test_running_out_of_memory(save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*args: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    folder = save()
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", no_room)
    assert "ran out of memory" in refusal(folder)


def test_devices_and_dtypes(save: Callable[..., Path]) -> None:
    assert pick_device("cpu") == "cpu"
    for unknown in ("toaster", "balanced", "cuda:first", "cpu:1:2", ""):
        with pytest.raises(ModelError, match="unknown"):
            pick_device(unknown)
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="no device 'cuda:1'"):
            pick_device("cuda:1")
    assert "dtype 'int4'" in refusal(save(), dtype="int4")


def words(*vocabulary: str) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words and nothing else."""
    backend = Tokenizer(
        tokenizer_models.WordLevel(
            {word: index for index, word in enumerate(vocabulary)}, unk_token=vocabulary[0]
        )
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def in_hub_cache(folder: Path, cache: Path, name: str) -> Path:
    """Lay a folder out as the Hub's cache does."""
    repository = cache / ("models--" + name.replace("/", "--"))
    snapshot = repository / "snapshots" / ("0" * 40)
    shutil.copytree(folder, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    return snapshot


def test_cached_models_need_no_network(
    save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshot = in_hub_cache(save(), tmp_path / "hub", "some/model")
    model = load_model("some/model", device="cpu", hub=False)
    assert model.folder.samefile(snapshot)
    (snapshot / "model.safetensors").unlink()  # a download that was broken off does not count
    assert model_files.cached_folder("some/model") is None


def test_bundled_models(save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "BUNDLED", tmp_path / "models")
    sentence = refusal("bundled/large")
    assert "this machine: none)" in sentence and "git checkout" in sentence
    folder = shutil.copytree(save(), tmp_path / "models" / "large")
    assert load_model("bundled/large", device="cpu").name == "bundled/large"
    assert "this machine: bundled/large)" in refusal("bundled/zebra")
    cards = {card.name: card for card in list_models(Settings(device="cpu"))}
    card = cards["bundled/large"]
    assert card.availability == "bundled" and cards["bundled/drafter"].availability == "missing"
    assert card.title == "Bundled Large · byte-level BPE, 1 layers" and card.role == "target"
    assert card.parameters == model_files.count_parameters(folder)
    (folder / "model.safetensors").unlink()
    assert next(iter(list_models(Settings(device="cpu")))).availability == "missing"
    (folder / "model.safetensors").write_bytes(b"\xff" * 20)
    assert next(iter(list_models(Settings(device="cpu")))).availability == "missing"


def availability(name: str, **settings: Any) -> str:
    return next(
        card.availability for card in list_models(Settings(device="cpu", **settings)) if card.name == name
    )


def test_availability(save: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gated, free = "google/gemma-3-1b-it", "Qwen/Qwen2.5-0.5B-Instruct"
    monkeypatch.setattr(model_files, "free_memory", lambda device: 10**12)
    monkeypatch.setattr(catalogue, "get_token", lambda: None)
    monkeypatch.setattr(catalogue, "try_to_load_from_cache", lambda name, file: None)
    assert availability(gated) == "gated" and availability(free) == "downloadable"
    assert availability(free, trust_hub=False) == "missing"
    monkeypatch.setattr(catalogue, "get_token", lambda: "hf_x")
    assert availability(gated) == "downloadable"
    monkeypatch.setattr(model_files, "free_memory", lambda device: 3 * 10**9)
    assert availability(free) == "downloadable" and availability("Qwen/Qwen2.5-1.5B-Instruct") == "too big"
    assert availability("Qwen/Qwen2.5-1.5B-Instruct", dtype="bfloat16") == "too big"  # 3.7 GB with the margin
    snapshot = in_hub_cache(save(), tmp_path / "hub", free)
    monkeypatch.setattr(catalogue, "try_to_load_from_cache", lambda name, file: str(snapshot / file))
    monkeypatch.setattr(model_files, "cached_folder", lambda name: snapshot if name == free else None)
    assert availability(free) == "cached" and availability("Qwen/Qwen3-0.6B") == "downloadable"
    monkeypatch.setattr(model_files, "free_memory", lambda device: 0)
    assert availability(free) == "cached", "it may be loaded, and count against itself"


def test_the_catalogue(save: Callable[..., Path], tmp_path: Path) -> None:
    folder = save()
    cards = list_models(Settings(device="cpu", target=str(folder), drafter=str(tmp_path / "nowhere")))
    names = [card.name for card in cards]
    assert len(names) == len(set(names)) and names[:3] == [
        "bundled/large",
        "bundled/drafter",
        "bundled/drafter-4",
    ]
    assert {card.role for card in cards} == {"target", "drafter", "both"}
    assert all(card.note.endswith(".") for card in cards)
    by_name = {card.name: card for card in cards}
    assert by_name[str(folder)].availability == "cached"
    assert cards[-1].availability == "missing" and "no folder" in cards[-1].note
    here = [card.availability in catalogue.HERE for card in cards]
    assert here == sorted(here, reverse=True), "what is on this machine comes first"
    assert len(list_models(Settings(device="cpu", target=str(folder), drafter=str(folder)))) == len(cards) - 1


LONG = {
    "num_hidden_layers": 2, "max_position_embeddings": 256, "original_max_position_embeddings": 64,
    "initializer_range": 0.3,
    "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 64,
        "short_factor": [1.0] * 4, "long_factor": [1.0, 3.0, 9.0, 20.0],
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", ["Phi3", "Llama"])
def test_a_window_ends_before_rotary_frequencies_change(save: Callable[..., Path], kind: str) -> None:
    """Passes of longrope depend on the length that they reach; up to the first boundary all ids are those of
    `transformers`."""
    options = {
        name: value
        for name, value in LONG.items()
        if kind == "Phi3" or name != "original_max_position_embeddings"
    }
    folder = str(save(kind, pad_token_id=3, **options))
    pair = load_pair(folder, folder)
    assert pair.target.context == 64
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = [(5 + 7 * place) % 290 for place in range(30)]
    prompt = pair.target.tokenizer.decode(ids)
    ids = pair.target.tokenizer(prompt, add_special_tokens=False).input_ids
    wanted = model.generate(torch.tensor([ids]), max_new_tokens=64 - len(ids), do_sample=False)[
        0, len(ids) :
    ].tolist()
    for method, draft in (("autoregressive", 1), ("ngram-exact", 3), ("ngram-exact", 8)):
        made = pair.generate(prompt, max_new_tokens=60, method=method, draft_length=draft, temperature=0)
        assert list(made.token_ids) == wanted[: len(made.token_ids)] and (
            len(made.token_ids) == len(wanted)
        ), (method, draft)
        assert made.finish_reason == "context"


def test_a_model_that_cannot_roll_back_at_a_boundary_is_refused(
    save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save("Mistral", num_key_value_heads=1, sliding_window=16, initializer_range=0.3)
    assert load_model(str(folder), device="cpu").context == 64
    assert boundaries(transformers.AutoConfig.from_pretrained(folder)) == [16]
    # Its cache as `transformers` has it forgets what has left the window.
    monkeypatch.setattr(TransformersRunner, "fresh", lambda runner: DynamicCache(config=runner.model.config))
    assert "reading 20 tokens in pieces fails" in refusal(folder)
    monkeypatch.undo()
    forward = TransformersCache.forward  # one that reads otherwise as soon as it reads far enough at once

    def other(cache: TransformersCache, ids: list[int], last: int) -> Any:
        return forward(cache, ids[::-1] if len(ids) > 1 and cache.length + len(ids) > 16 else ids, last)

    monkeypatch.setattr(TransformersCache, "forward", other)
    assert "reads 20 tokens in pieces" in refusal(folder)


def test_caches_of_a_form_of_their_own_are_refused(save: Callable[..., Path]) -> None:
    folder = save()
    kinds = ["heavily_compressed_attention", "compressed_sparse_attention"]
    config = transformers.DeepseekV4Config(
        **{**TINY, "num_hidden_layers": 2, "layer_types": kinds, "sliding_window": 32}
    )
    config.architectures = ["DeepseekV4ForCausalLM"]
    config.save_pretrained(folder)
    assert "keeps its context in a form of its own (DeepseekV4HCACache)" in refusal(folder)


def test_a_tokenizer_is_used_whole_whatever_it_was_saved_with(save: Callable[..., Path]) -> None:
    """Lengths of a training in its file, and an added token for which the model has no row."""
    folder = save()
    path = folder / "tokenizer.json"
    saved = json.loads(path.read_text())
    plain = load_model(str(folder), device="cpu").vocabulary
    assert plain.encode_text is not None
    text, extra = "the cat sat on the mat and the dog sat on the log", len(saved["model"]["vocab"])
    truncation = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 3,
        "pad_type_id": 0, "pad_token": "<|pad|>",
    }  # fmt: skip
    added = {**saved["added_tokens"][0], "id": extra, "content": "<|extra|>"}
    changes = {"truncation": truncation, "padding": padding, "added_tokens": [*saved["added_tokens"], added]}
    path.write_text(json.dumps(saved | changes))
    pair = load_pair(str(folder), str(folder))
    vocabulary = pair.target.vocabulary
    assert vocabulary.encode_text is not None
    assert vocabulary.encode_text(text) == plain.encode_text(text)
    assert len(vocabulary.tokens) == extra
    ids = pair.prompt_ids([{"role": "user", "content": "a <|extra|>"}])
    assert max(ids) < extra and vocabulary.text_bytes(ids) == b"a <|extra|>"
    assert pair.generate("a <|extra|>", max_new_tokens=4).token_ids


def test_a_decoder_that_takes_out_what_its_normalizer_added_is_said(
    save: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = save()
    load_model(str(folder), device="cpu")
    assert not caplog.records
    said = json.loads((folder / "tokenizer.json").read_text())
    replaces = {"type": "Replace", "pattern": {"String": "\n"}, "content": "\n "}
    back = {"type": "Replace", "pattern": {"String": "\n "}, "content": "\n"}
    changes = {"normalizer": replaces, "decoder": {"type": "Sequence", "decoders": [said["decoder"], back]}}
    (folder / "tokenizer.json").write_text(json.dumps(said | changes))
    load_model(str(folder), device="cpu")
    [record] = [one.getMessage() for one in caplog.records]
    assert "answers show what its tokens spell" in record and "c  (d).\\n \\n e" in record


def test_settings_of_a_training_in_saved_files_are_off(save: Callable[..., Path]) -> None:
    """BPE-dropout gave other ids each time, pieces of control tokens tore the template, and a model that
    gives tuples or asks for another attention did not load."""
    plain = load_model(str(save("Mistral", num_key_value_heads=1)), device="cpu")
    folder = save("Mistral", num_key_value_heads=1)
    for name, inner, changes in (
        ("tokenizer.json", "model", {"dropout": 0.5}),
        ("tokenizer_config.json", None, {"split_special_tokens": True}),
        ("config.json", None, {"return_dict": False, "_attn_implementation": "flash_attention_2"}),
    ):
        said = json.loads((folder / name).read_text())
        (said[inner] if inner else said).update(changes)
        (folder / name).write_text(json.dumps(said))
    found = load_model(str(folder), device="cpu")
    for text in ("the cat sat on the mat and the dog", "<|end|>the cat<|stop|>"):
        wanted = plain.tokenizer(text).input_ids
        assert all(found.tokenizer(text).input_ids == wanted for _ in range(5)), text
        assert plain.vocabulary.encode_text and found.vocabulary.encode_text
        assert found.vocabulary.encode_text(text) == plain.vocabulary.encode_text(text)
    one, other = (model.runner.new_cache().forward([5, 6, 7], 3).logits for model in (plain, found))
    assert torch.equal(torch.as_tensor(one), torch.as_tensor(other))


@pytest.mark.parametrize("rope", [{"rope_type": "nope"}, {"rope_type": "linear", "factor": "two"}])
def test_a_configuration_that_makes_no_model_is_not_laid_to_the_weights(
    save: Callable[..., Path], rope: dict[str, Any]
) -> None:
    folder = save()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"rope_parameters": {"rope_theta": 10_000.0} | rope})
    )
    said = refusal(folder)
    assert "configuration from which no model can be made" in said and "again" not in said


def test_a_model_that_cannot_read_in_pieces_is_not_damaged(
    save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **options: Any) -> None:
        raise RuntimeError("The size of tensor a must match")

    monkeypatch.setattr(TransformersCache, "forward", fails)
    said = refusal(save("Mistral", num_key_value_heads=1))
    assert "reading 4 tokens in pieces fails (The size" in said and "again" not in said


def test_chat_templates_for_other_uses_alone_are_none(
    save: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = save()
    (folder / "chat_template.jinja").unlink()
    path = folder / "tokenizer_config.json"
    named = [{"name": "rag", "template": "{{ messages }}"}, {"name": "tool_use", "template": "{{ tools }}"}]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": named}))
    model = load_model(str(folder), device="cpu")
    assert not model.chat and "other uses alone" in caplog.text
    named[0]["name"] = "default"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": named}))
    assert load_model(str(folder), device="cpu").chat
