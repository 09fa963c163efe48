"""`layers`: nothing is found where nothing is wrong, and what is spoilt is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from lab.equality.layer_by_layer import LayerReport, check, compare
from omnidemo.backends.compiled_passes import CompiledPasses
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.core.config import Settings
from omnidemo.models.load import load_model, open_source
from tests.support.cli import Cli, refused
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.models import save

IDS = [5, 6, 7, 50, 60, 70, 9]
WIDE = {"llama.attention.key_length": 32, "llama.attention.value_length": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save(tmp_path_factory.mktemp("layers"), "byte-level")


@pytest.fixture
def runner(folder: str) -> FusedLlama:
    found = load_model(folder, device="cpu").runner
    assert isinstance(found, FusedLlama)
    return found


@pytest.fixture(scope="module")
def reference(folder: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tiny_model(hidden_size=128, head_dim=32)
    return write_gguf(tmp_path_factory.mktemp("packed") / "m.gguf", model, "Q4_1", metadata=WIDE)


def reports(runner: Any, reference: Any) -> list[LayerReport]:
    return [one for one in compare(runner, reference, IDS) if isinstance(one, LayerReport)]


def test_each_part_is_that_of_transformers(runner: FusedLlama, reference: Any) -> None:
    (found,) = reports(runner, reference)
    layers, each = 2, 2 + 7 + 7 + 2 + 4  # vectors, matrices, products, norms; keys, values, attention, output
    assert not found.different and found.parts == 2 + layers * each + 1 + 1 + 1 + 1
    assert found.closest is not None and 0 < found.closest.share < 1e-5


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_biases_and_norms_of_heads_are_known(kind: str, tmp_path: Path) -> None:
    model = tiny_model(kind)
    with torch.no_grad():
        runner = FusedLlama(tiny_model(kind))
    assert not reports(runner, model)[0].different
    name = "self_attn.k_proj.bias" if kind == "qwen2" else "self_attn.q_norm.weight"
    weight = runner.weights()[f"model.layers.1.{name}"].clone()
    weight[3] += 0.25
    runner.overwrite({f"model.layers.1.{name}": weight})
    found = reports(runner, model)[0]
    assert found.different[0].part == f"model.layers.1.{name}" and found.different[0].most == pytest.approx(
        0.25
    )


@pytest.mark.parametrize(
    "name", ["model.layers.0.self_attn.o_proj", "model.layers.1.mlp.up_proj", "model.norm", "lm_head"]
)
def test_one_spoilt_number_is_named(runner: FusedLlama, reference: Any, name: str) -> None:
    weight = runner.weights()[f"{name}.weight"].clone()
    weight.view(-1)[17] += 0.5
    runner.overwrite({f"{name}.weight": weight})
    (found,) = reports(runner, reference)
    assert found.different[0].part == f"{name}.weight" and found.different[0].most == pytest.approx(0.5)
    assert f"the first that differs is {name}.weight, by up to 0.5 of" in found.lines()[0]
    later = {one.part.split(",")[0] for one in found.different[1:]}
    assert later <= {name, ".".join(name.split(".")[:3])}  # what follows from it is no fault of others


def test_a_wrong_way_of_computing_is_named_by_its_part(
    runner: FusedLlama, reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, right = CompiledPasses.model, runner.rope_at
    rows = [*range(16)]
    rows[8], rows[9] = 9, 8  # keys and values of the second layer
    monkeypatch.setattr(
        CompiledPasses, "model",
        lambda self, buffer: (made := model(self, buffer))._replace(matrices=made.matrices[rows]),
    )  # fmt: skip
    names = [one.part for one in reports(runner, reference)[0].different]
    layer = "model.layers.1"
    assert names[:2] == [f"{layer}.self_attn.k_proj, product", f"{layer}.self_attn.v_proj, product"]
    assert names[2:4] == [f"{layer}, keys", f"{layer}, values"]
    monkeypatch.setattr(CompiledPasses, "model", model)
    monkeypatch.setattr(runner, "rope_at", lambda positions: right(positions * 2))
    runner.rope = (torch.empty(0), torch.empty(0))
    assert reports(runner, reference)[0].different[0].part == "model.layers.0, keys"


def test_packed_weights_are_those_of_the_file_and_their_products_are_numpys(packed: Path) -> None:
    runner: Any = load_model(str(packed), device="cpu", packed=True).runner
    reference = open_source(str(packed)).weights(torch.float32).eval()
    found = reports(runner, reference)
    assert [one.passes for one in found] == ["packed weights"]
    assert not found[0].different and found[0].parts > 20
    name = "model.layers.1.self_attn.v_proj.weight"
    matrix = runner.packed[name]
    assert isinstance(matrix, PackedMatrix)
    matrix.tiles["blocks"]["numbers"][0, 0, 0, 0, 5] *= 2  # the scale of a block of one row
    found = reports(runner, reference)
    first = found[0].different[0]
    assert first.part == name and first.most == pytest.approx(
        np.abs(matrix.values() - reference.get_parameter(name).detach().numpy()).max()
    )


def test_the_command_says_what_it_found(folder: str, packed: Path, lab_cli: Cli) -> None:
    for target in ("bundled/large", folder, packed):
        found = lab_cli("layers", "--target", target)
        assert found.code == 0 and "parts have the reference's numbers, at most" in found.out, found
    assert found.out.count("\n") == 1


def test_a_target_without_compiled_passes_is_refused(tmp_path: Path, lab_cli: Cli) -> None:
    other = save(tmp_path / "gpt", "byte-level", kind="gpt")
    refused(lab_cli("layers", "--target", other), "has no compiled passes here", "Llama")
    with pytest.raises(ValueError, match="has no compiled passes here"):
        list(check(Settings(target=save(tmp_path / "llama", "byte-level"), backend="reference"), "x"))
