"""Adapter folders: written whole or not at all; merged as PEFT does; out and in in PEFT's own format."""

from __future__ import annotations

import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from omnidemo.core.config import Settings
from omnidemo.learning.distill import train_step
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.learning.distill.learner import Learner
from omnidemo.learning.distill.worker import TrainingPlan
from omnidemo.models.adapters import adapter_state, version_folders
from omnidemo.models.adapters.adapter_state import AdapterState, AdapterVersion, OptimiserState
from omnidemo.models.adapters.peft_export import export_peft
from omnidemo.models.adapters.peft_zip import import_peft
from omnidemo.models.model_files import BUNDLED
from tests.support.learning import LAYER, VOCAB, FakeStore, Owner, make_trace, noise, save_drafter
from tests.support.models import save as save_model

torch.set_num_threads(1)
INFO = AdapterVersion(
    1, "bundled/drafter", "bundled/large", "default", None, None, 0, 5, 5, 0.5, "2025-01-01T00:00:00+00:00"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_drafter(tmp_path_factory.mktemp("drafter"))


@pytest.fixture(scope="module")
def trained(folder: Path) -> AdapterState:
    plan = TrainingPlan(rank=4, learning_rate=1e-2, warmup=2, head="off")
    return train_step.train(Learner(folder, 4), None, None, [[make_trace(0)]] * 5, plan)[0]


def make(folder: Path, storage: Path, **settings: Any) -> tuple[Distiller, Owner]:
    owner = Owner()
    values = {"training": "inline", "update_interval": 2, "steps_per_update": 3, "lora_rank": 4} | settings
    return (
        Distiller(
            folder,
            "bundled/drafter",
            "bundled/large",
            Settings(**values),
            storage,
            publish=owner.publish,
            store=FakeStore(),
        ),
        owner,
    )


def learn(distiller: Distiller, seed: int = 0) -> None:
    for index in range(2):
        distiller.observe(make_trace(seed + index))
    assert distiller.run_pending()


def logits(model: Any) -> Tensor:
    ids = torch.arange(20).reshape(2, 10) % VOCAB
    with torch.no_grad():
        return model(ids).logits


def merged(folder: Path, adapter: AdapterState) -> Any:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in adapter_state.merged_weights(adapter_state.BaseWeights(folder), adapter).items():
            parameters[name].copy_(tensor)
    return model


# --- folders ------------------------------------------------------------------------------------------------


def test_names_are_safe_and_do_not_collide() -> None:
    names = ["a/b", "a-b", "A/b", "../..", "", "x" * 500, "C:\\models\\ü", "a/b "]
    safe = [version_folders.safe_name(name) for name in names]
    assert len({one.lower() for one in safe}) == len(names)
    assert all(
        "/" not in one and "\\" not in one and not one.startswith(".") and len(one) < 100 and one.isascii()
        for one in safe
    )


def test_a_version_comes_back_as_it_was_and_a_damaged_head_is_noticed(
    trained: AdapterState, tmp_path: Path
) -> None:
    head = {"out.weight": torch.randn(1, 4)}
    optimiser = OptimiserState(7, {"exp_avg.x": torch.randn(3)})
    stored = version_folders.write_version(tmp_path / "line", INFO, replace(trained, head=head), optimiser)
    assert stored.path is not None
    back = version_folders.load_version(Path(stored.path))
    assert back.info == stored and back.optimiser.step == 7 and back.adapter.config == trained.config
    assert torch.equal(back.adapter.head["out.weight"], head["out.weight"])
    assert torch.equal(back.optimiser.moments["exp_avg.x"], optimiser.moments["exp_avg.x"])
    assert all(torch.equal(back.adapter.weights[name], tensor) for name, tensor in trained.weights.items())
    (Path(stored.path) / version_folders.HEAD).write_bytes(b"0" * 100)
    with pytest.raises(ValueError, match=r"head.safetensors does not match its checksum"):
        version_folders.load_version(Path(stored.path))
    bare = version_folders.write_version(
        tmp_path / "line", replace(INFO, version=2), trained, OptimiserState(0, {})
    )
    assert version_folders.load_version(Path(str(bare.path))).adapter.head == {}


def test_a_write_that_is_interrupted_between_files_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distiller, owner = make(folder, tmp_path)
    learn(distiller)
    assert distiller.status().version == 1
    written: list[Path] = []
    whole = version_folders._write

    def fails_at_third(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        whole(path, data)

    monkeypatch.setattr(version_folders, "_write", fails_at_third)
    learn(distiller)
    status = distiller.status()
    assert status.state == "failed" and "No space left" in (status.error or "") and status.version == 1
    assert distiller.versions.numbers() == [1] and [version for version, _ in owner.published] == [1]
    monkeypatch.setattr(version_folders, "_write", whole)
    (distiller.versions.folder / ".new-v000002").mkdir()  # as after a kill, when nothing could clean up
    (distiller.versions.folder / ".new-active").write_text("2")
    again, _ = make(folder, tmp_path)
    assert again.restore() == 1 and not list(distiller.versions.folder.glob(".new-*"))
    learn(distiller)
    assert distiller.status().version == 2 and distiller.status().error is None


@pytest.mark.parametrize(
    "name",
    [adapter_state.WEIGHTS, adapter_state.CONFIG, version_folders.OPTIMISER, version_folders.MANIFEST],
)
def test_a_damaged_version_falls_back_to_the_one_before(folder: Path, tmp_path: Path, name: str) -> None:
    first, _ = make(folder, tmp_path)
    for _ in range(2):
        learn(first)
    file = version_folders.version_folder(first.versions.folder, 2) / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        version_folders.load_version(file.parent)
    second, owner = make(folder, tmp_path)
    assert second.restore() == 1 and owner.published[-1][0] == 1
    learn(second)
    assert second.status().version == 3  # a number is never used twice
    file.unlink()
    with pytest.raises(ValueError, match="missing"):
        version_folders.load_version(file.parent)


# --- weights ------------------------------------------------------------------------------------------------


def test_merged_weights_are_the_peft_model(folder: Path, trained: AdapterState, tmp_path: Path) -> None:
    stored = version_folders.write_version(tmp_path / "line", INFO, trained, OptimiserState(5, {}))
    fresh = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    before, mine = logits(fresh), logits(merged(folder, trained))
    assert (mine - before).abs().max() > 1e-3
    torch.testing.assert_close(
        mine, logits(PeftModel.from_pretrained(fresh, str(stored.path)).eval()), atol=1e-5, rtol=1e-5
    )


def test_a_full_fine_tuning_is_its_weights_and_must_fit(folder: Path) -> None:
    base = adapter_state.BaseWeights(folder)
    weights = {"model.norm.weight": torch.randn(16), f"{LAYER}.weight": torch.randn(16, 16)}
    whole = AdapterState(weights, {"peft_type": "FULL"})
    assert adapter_state.changed_names(whole) == list(weights)
    result = adapter_state.merged_weights(base, whole)
    assert all(torch.equal(result[name], tensor) for name, tensor in weights.items())
    assert torch.equal(
        adapter_state.base_matrices(base, whole)["model.norm.weight"], base["model.norm.weight"].float()
    )
    with pytest.raises(ValueError, match="belongs to another drafter"):
        adapter_state.merged_weights(
            base, AdapterState({"model.norm.weight": torch.randn(17)}, {"peft_type": "FULL"})
        )


# --- PEFT's format ------------------------------------------------------------------------------------------


def test_an_exported_adapter_is_what_peft_loads_and_comes_back_the_same(
    folder: Path, trained: AdapterState, tmp_path: Path
) -> None:
    stored = version_folders.write_version(tmp_path / "line", INFO, trained, OptimiserState(5, {}))
    file = export_peft(version_folders.load_version(Path(str(stored.path))), tmp_path / "out" / "adapter.zip")
    with zipfile.ZipFile(file) as packed:
        assert sorted(packed.namelist()) == ["README.md", "adapter_config.json", "adapter_model.safetensors"]
        card = packed.read("README.md").decode()
        packed.extractall(tmp_path / "unpacked")
    assert (
        'base_model: "bundled/drafter"' in card and "bundled/large" in card and "its line had seen: 5" in card
    )
    assert (
        json.loads((tmp_path / "unpacked" / "adapter_config.json").read_text())["base_model_name_or_path"]
        == "bundled/drafter"
    )
    fresh = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    theirs = logits(PeftModel.from_pretrained(fresh, tmp_path / "unpacked").eval())
    torch.testing.assert_close(logits(merged(folder, trained)), theirs, atol=1e-5, rtol=1e-5)
    for source in (file, tmp_path / "unpacked"):
        back = import_peft(source, folder)
        torch.testing.assert_close(logits(merged(folder, back)), theirs, atol=1e-5, rtol=1e-5)
    whole = AdapterState({"model.norm.weight": torch.randn(16)}, {"peft_type": "FULL"})
    full = version_folders.write_version(
        tmp_path / "line", replace(INFO, version=2), whole, OptimiserState(0, {})
    )
    with pytest.raises(ValueError, match="full fine-tuning"):
        export_peft(version_folders.load_version(Path(str(full.path))), tmp_path / "no.zip")
    assert not (tmp_path / "no.zip").exists()


def test_an_adapter_made_by_peft_becomes_a_version_and_learns_on(folder: Path, tmp_path: Path) -> None:
    """Of another rank and scale, and on all linear layers, as PEFT saves it."""
    base = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    config = LoraConfig(
        r=2, lora_alpha=3, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False
    )
    model = get_peft_model(base, config).eval()
    model.save_pretrained(tmp_path / "theirs")
    theirs = logits(model)
    adapter = import_peft(tmp_path / "theirs", folder)
    assert adapter.config["lora_alpha"] == 4
    torch.testing.assert_close(logits(merged(folder, adapter)), theirs, atol=1e-5, rtol=1e-5)

    distiller, owner = make(folder, tmp_path / "storage")
    learn(distiller)
    assert distiller.adopt(adapter) == 2 and owner.published[-1][0] == 2
    status = distiller.status()
    assert (status.version, status.step) == (2, 0) and distiller.versions.trusted.version == 2
    assert distiller.versions.noted("active") == 2
    assert [distiller.versions.info(version).requests_seen for version in (1, 2)] == [
        2,
        2,
    ]  # type: ignore[union-attr]
    learn(distiller, 5)
    status = distiller.status()
    assert (status.version, status.step, status.error) == (3, 3, None)
    for version, said in (
        (2, "which has not trained it"),
        (3, "OmniDemo trained it on the target's own answers"),
    ):
        file = export_peft(distiller.versions.load(version), tmp_path / "out.zip")
        assert said in zipfile.ZipFile(file).read("README.md").decode()
    again, _ = make(folder, tmp_path / "storage")
    assert again.restore() == 3
    with pytest.raises(ValueError, match="belongs to another drafter"):
        distiller.adopt(
            AdapterState(
                {name.replace("q_proj", "x_proj"): t for name, t in noise(0).weights.items()}, noise(0).config
            )
        )
    assert distiller.status().version == 3


@pytest.mark.parametrize("init", ["pissa", "olora", "gaussian", "orthogonal", "mica"])
def test_an_adapter_that_peft_began_otherwise_is_computed_or_refused(
    folder: Path, tmp_path: Path, init: str
) -> None:
    """PEFT changes the base weights for some beginnings; an adapter that was saved as plain LoRA instead is
    one."""
    base = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    config = LoraConfig(
        r=2,
        lora_alpha=3,
        target_modules=["q_proj", "down_proj"],
        task_type="CAUSAL_LM",
        init_lora_weights=init,
    )
    model = get_peft_model(base, config).eval()
    torch.manual_seed(2)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight += torch.randn_like(weight) * 0.1
    model.save_pretrained(tmp_path / "theirs")
    if init in ("pissa", "olora"):
        with pytest.raises(ValueError, match=f"begun as '{init}'"):
            import_peft(tmp_path / "theirs", folder)
    else:
        adapter = import_peft(tmp_path / "theirs", folder)
        torch.testing.assert_close(logits(merged(folder, adapter)), logits(model), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_kind_of_a_layer_says_how_its_weights_lie(tmp_path: Path, kind: str, said: bool) -> None:
    """PEFT goes by it whatever `fan_in_fan_out` says; by the setting a square layer was changed by the
    transpose in silence."""
    drafter = Path(save_model(tmp_path / "drafter", "byte-level", kind))
    base = AutoModelForCausalLM.from_pretrained(drafter, dtype=torch.float32).eval()
    square = "o_proj" if kind == "llama" else "attn.c_proj"
    asked = LoraConfig(
        r=2, lora_alpha=3, target_modules=[square], fan_in_fan_out=kind == "gpt2", task_type="CAUSAL_LM",
        init_lora_weights=False,
    )  # fmt: skip
    model = get_peft_model(base, asked).eval()
    model.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"fan_in_fan_out": said}))
    mine = merged(drafter, import_peft(tmp_path / "theirs", drafter))
    torch.testing.assert_close(logits(mine), logits(model), atol=1e-5, rtol=1e-5)


def test_an_output_layer_that_is_the_embedding_takes_no_adapter(tmp_path: Path) -> None:
    drafter = BUNDLED / "drafter"
    described = json.loads((drafter / "config.json").read_text())
    assert described["tie_word_embeddings"]
    width, words = described["hidden_size"], described["vocab_size"]
    weights = {"lora_A": torch.randn(4, width), "lora_B": torch.randn(words, 4)}
    save_file(
        {f"base_model.model.lm_head.{part}.weight": one for part, one in weights.items()},
        str(tmp_path / "adapter_model.safetensors"),
    )
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 4,
        "lora_alpha": 8,
        "target_modules": ["lm_head"],
        "bias": "none",
    }
    (tmp_path / "adapter_config.json").write_text(json.dumps(config | {"ensure_weight_tying": True}))
    with pytest.raises(ValueError, match="lm_head, and this drafter's output layer is its embedding"):
        import_peft(tmp_path, drafter)


Change = Callable[[dict[str, Any], dict[str, Tensor]], object]
REFUSED: list[tuple[str, Change]] = [
    ("kind 'IA3'", lambda config, weights: config.update(peft_type="IA3")),
    ("uses use_dora", lambda config, weights: config.update(use_dora=True)),
    ("uses use_rslora", lambda config, weights: config.update(use_rslora=True)),
    ("uses modules_to_save", lambda config, weights: config.update(modules_to_save=["lm_head"])),
    ("uses rank_pattern", lambda config, weights: config.update(rank_pattern={"q_proj": 2})),
    ("uses use_tomorrow", lambda config, weights: config.update(use_tomorrow={"much": 1})),
    ("begun as 'pissa_niter_4'", lambda config, weights: config.update(init_lora_weights="pissa_niter_4")),
    ("begun as 'OLoRA'", lambda config, weights: config.update(init_lora_weights="OLoRA")),
    ("begun as 'loftq'", lambda config, weights: config.update(init_lora_weights="loftq")),
    ("begun as 'lora_ga'", lambda config, weights: config.update(init_lora_weights="lora_ga")),
    ("begun as", lambda config, weights: config.update(init_lora_weights=[1])),
    ("trains biases", lambda config, weights: config.update(bias="all")),
    ("no usable rank", lambda config, weights: config.update(r="4")),
    ("no usable rank", lambda config, weights: config.update(lora_alpha=float("inf"))),
    ("linear layer of rank 8", lambda config, weights: config.update(r=8)),
    (
        "only LoRA on linear layers",
        lambda config, weights: weights.update({"base_model.model.lm_head.weight": torch.randn(4, 4)}),
    ),
    ("lacks one half", lambda config, weights: weights.pop(f"{adapter_state.PREFIX}{LAYER}.lora_B.weight")),
    ("lacks one half", lambda config, weights: weights.clear()),
    (
        "not finite",
        lambda config, weights: weights[f"{adapter_state.PREFIX}{LAYER}.lora_A.weight"].fill_(float("nan")),
    ),
    (
        "another drafter",
        lambda config, weights: weights.update(
            {f"{adapter_state.PREFIX}{LAYER}.lora_B.weight": torch.randn(17, 4)}
        ),
    ),
    (
        "another drafter",
        lambda config, weights: weights.update({k.replace("0", "9"): weights.pop(k) for k in list(weights)}),
    ),
]


@pytest.mark.parametrize(("reason", "change"), REFUSED, ids=[str(index) for index in range(len(REFUSED))])
def test_what_is_no_plain_lora_for_this_drafter_is_refused_in_one_sentence(
    folder: Path, tmp_path: Path, reason: str, change: Change
) -> None:
    adapter = noise(1)
    config, weights = dict(adapter.config), dict(adapter.weights)
    change(config, weights)
    (tmp_path / adapter_state.CONFIG).write_text(json.dumps(config))
    (tmp_path / adapter_state.WEIGHTS).write_bytes(save(weights))
    with pytest.raises(ValueError, match=reason) as told:
        import_peft(tmp_path, folder)
    assert str(told.value).count(". ") == 0 and "\n" not in str(told.value)


def test_files_of_strangers_are_not_trusted(folder: Path, tmp_path: Path) -> None:
    adapter = noise(1)
    whole = {
        adapter_state.CONFIG: json.dumps(adapter.config).encode(),
        adapter_state.WEIGHTS: save(dict(adapter.weights)),
    }

    def packed(contents: dict[str, bytes], name: str = "a.zip") -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as file:
            for path, data in contents.items():
                file.writestr(path, data)
        return tmp_path / name

    assert (
        import_peft(packed({f"folder/{name}": data for name, data in whole.items()}), folder).config["r"] == 4
    )
    refused = [
        ({**whole, "../evil.txt": b"x"}, "leaves its folder"),
        ({**whole, "/etc/evil": b"x"}, "leaves its folder"),
        ({**whole, "..\\evil.txt": b"x"}, "leaves its folder"),
        ({**whole, f"two/{adapter_state.WEIGHTS}": b"x"}, "more than one"),
        ({adapter_state.CONFIG: whole[adapter_state.CONFIG], "adapter_model.bin": b"pickle"}, "pickle"),
        ({adapter_state.CONFIG: whole[adapter_state.CONFIG]}, f"has no {adapter_state.WEIGHTS}"),
        ({adapter_state.WEIGHTS: whole[adapter_state.WEIGHTS]}, f"has no {adapter_state.CONFIG}"),
        ({**whole, adapter_state.CONFIG: b"[1, 2]"}, "not a JSON object"),
        ({**whole, adapter_state.CONFIG: b"{" * 100_000}, "not a JSON object"),
        ({**whole, adapter_state.CONFIG: b" " * 2_000_000}, "more than the"),
        ({**whole, adapter_state.WEIGHTS: b"not safetensors at all"}, "not a safetensors file"),
    ]
    for contents, reason in refused:
        with pytest.raises(ValueError, match=reason):
            import_peft(packed(contents), folder)
    assert not (tmp_path.parent / "evil.txt").exists()
    (tmp_path / "text.zip").write_text("no zip")
    for path in (tmp_path / "text.zip", tmp_path / "absent.zip"):
        with pytest.raises(ValueError, match="choose a zip or a folder"):
            import_peft(path, folder)
    data = bytearray(packed(whole).read_bytes())
    data[len(data) // 3] ^= 0xFF
    (tmp_path / "damaged.zip").write_bytes(data)
    with pytest.raises(ValueError):
        import_peft(tmp_path / "damaged.zip", folder)


def test_a_small_zip_of_huge_weights_is_refused_before_it_is_unpacked(folder: Path, tmp_path: Path) -> None:
    """What an adapter can be follows from drafter and rank; more is refused by the size that the zip tells,
    less by the header."""
    adapter = noise(1)
    config, sound = json.dumps(adapter.config).encode(), save(dict(adapter.weights))
    megabytes = 300

    def packed(size: int) -> Path:
        with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr(adapter_state.CONFIG, config)
            with file.open(adapter_state.WEIGHTS, "w", force_zip64=True) as weights:
                weights.write(sound)
                for _ in range(size):
                    weights.write(bytes(1 << 20))
        return tmp_path / "bomb.zip"

    for size, reason in (
        (megabytes, "of an adapter of rank 4 for this drafter"),
        (1, "not a safetensors file"),
    ):
        source = packed(size)
        assert source.stat().st_size < 5 << 20
        tracemalloc.start()
        began = time.thread_time()
        try:
            with pytest.raises(ValueError, match=reason):
                import_peft(source, folder)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20 and time.thread_time() - began < 2.0
        finally:
            tracemalloc.stop()
    with pytest.raises(ValueError, match="no usable rank"):
        (tmp_path / adapter_state.CONFIG).write_text(json.dumps(dict(adapter.config) | {"r": 10**9}))
        (tmp_path / adapter_state.WEIGHTS).write_bytes(sound)
        import_peft(tmp_path, folder)
