"""Passes over the packed weights of a GGUF file say what those over the same weights in float32 say."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo.backends import bf16_weights, compile_kernels, compiled_passes
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import ModelError
from omnidemo.gguf.header import read_header
from omnidemo.gguf.packing import packed_weights
from omnidemo.gguf.weights import build_model
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.load import load_model
from tests.support.gguf_files import TOKENS, packed, tiny_model, write_gguf

LARGER = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
KEYS = {"llama.attention.key_length": 64, "llama.attention.value_length": 64}
TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


def runner_of(path: Path) -> FusedLlama:
    runner = load_model(str(path), device="cpu").runner
    assert isinstance(runner, FusedLlama)
    return runner


def written(folder: Path, kind: str, **options: Any) -> Path:
    return write_gguf(folder / "m.gguf", tiny_model(**LARGER | options), kind, metadata=KEYS)


def form(runner: FusedLlama) -> str:
    assert runner.passes is not None
    return runner.passes.form


def logits(runner: FusedLlama, pieces: list[list[int]]) -> list[np.ndarray[Any, Any]]:
    cache = runner.new_cache()
    return [np.asarray(cache.forward(ids, len(ids)).logits) for ids in pieces]


def exactly(path: Path, ids: list[int]) -> np.ndarray[Any, Any]:
    """The logits in float64."""
    header = read_header(path)
    model = build_model(header, GgufModel(path).config, torch.float64).eval()
    with torch.no_grad():
        found: np.ndarray[Any, Any] = model(torch.tensor([ids])).logits[0].numpy()
    return found


def greedy(runner: FusedLlama, count: int) -> list[int]:
    cache, ids = runner.new_cache(), [5, 80, 33]
    read = ids
    for _ in range(count):
        read = [int(np.asarray(cache.forward(read, 1).logits)[0].argmax())]
        ids = ids + read
    return ids


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_they_say_what_float32_says(
    kind: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0 if threads == 2 else 10**12)
    monkeypatch.setattr(compiled_passes.thread_pool, "pick_size", lambda given=0: threads - 1)
    runner = runner_of(written(tmp_path, kind, tie_word_embeddings=kind in ("Q4_1", "Q8_0", "Q6_K")))
    assert form(runner) == "float32" and compile_kernels.kernels() is not None
    rng = np.random.default_rng(0)
    pieces = [rng.integers(0, runner.rows, size).tolist() for size in (20, 1, 2, 6, 7, 12, 13, 5)]
    exact = exactly(tmp_path / "m.gguf", [token for piece in pieces for token in piece])
    plain, answer = logits(runner, pieces), greedy(runner, 40)
    runner.compact(True)
    assert form(runner) == "packed"
    theirs, ours = (
        np.abs(np.concatenate(found) - exact).max(-1) / np.abs(exact).max()
        for found in (plain, logits(runner, pieces))
    )
    assert ours.max() <= 2 * theirs.max() + 1e-6 and np.median(ours) <= 2 * np.median(theirs) + 1e-7, (
        "sums are in another order alone"
    )
    assert greedy(runner, 40) == answer
    copy = runner.copy()
    assert form(copy) == "packed" and greedy(copy, 40) == answer


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_has_the_bits_that_it_has_alone(
    kind: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pass of any number of rows, and wherever a prompt is cut."""
    monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0 if threads == 2 else 10**12)
    monkeypatch.setattr(compiled_passes.thread_pool, "pick_size", lambda given=0: threads - 1)
    runner = runner_of(written(tmp_path, kind))
    ids = np.random.default_rng(1).integers(0, runner.rows, 120).tolist()
    for expected in ("float32", "packed"):
        runner.compact(expected == "packed")
        assert form(runner) == expected
        alone = np.concatenate(logits(runner, [[token] for token in ids]))
        for sizes in ((120,), (87, 33), (12, 16, 17, 75), (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 28)):
            ends = np.cumsum(sizes)
            pieces = [ids[end - size : end] for size, end in zip(sizes, ends, strict=True)]
            assert np.array_equal(np.concatenate(logits(runner, pieces)), alone), (expected, sizes)


def test_matrices_of_several_types_stand_beside_each_other(tmp_path: Path) -> None:
    """As in most files: here one of a layer's in another type, and one that has no packed form."""
    model = tiny_model(**LARGER)
    others = {"blk.0.attn_v.weight": "Q6_K", "blk.1.ffn_up.weight": "Q8_0"}
    values = {name: np.random.default_rng(0).normal(size=(rows, 256)).astype(np.float32) * 0.1 for name,
        rows in
              {"blk.0.attn_v.weight": 128, "blk.1.ffn_up.weight": 512,
                  "blk.1.attn_k.weight": 128}.items()}  # fmt: skip
    path = tmp_path / "m.gguf"
    with pytest.MonkeyPatch.context() as patched:
        from tests.support.gguf_files import gguf

        plain = gguf.GGUFWriter.add_tensor

        def add(writer: Any, name: str, data: Any, raw_dtype: Any = None) -> None:
            if name in others:
                data, raw_dtype = packed(values[name], others[name]), gguf.GGMLQuantizationType[others[name]]
            elif name in values:
                data, raw_dtype = values[name], gguf.GGMLQuantizationType.F32
            plain(writer, name, data, raw_dtype=raw_dtype)

        patched.setattr(gguf.GGUFWriter, "add_tensor", add)
        write_gguf(path, model, "Q4_1", metadata=KEYS)
    runner = runner_of(path)
    answer = greedy(runner, 40)
    runner.compact(True)
    assert form(runner) == "packed" and "model.layers.1.self_attn.k_proj.weight" not in runner.packed
    assert len({one.form for one in runner.packed.values()}) == 3
    assert greedy(runner, 40) == answer


def test_packed_matrices_are_the_weights_bit_for_bit(tmp_path: Path) -> None:
    for kind in TYPES:
        path = written(tmp_path, kind)
        weights = runner_of(path).weights()
        model = GgufModel(path)
        matrices = model.pack()
        assert {"model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"} <= matrices.keys()
        for name, matrix in matrices.items():
            assert np.array_equal(matrix.values(), weights[name].numpy()), (kind, name)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_plain_numbers_have_no_packed_form(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, kind)
    assert not packed_weights(read_header(path), GgufModel(path).config)
    runner = runner_of(path)
    runner.compact(True)
    assert form(runner) != "packed"


def test_new_weights_are_not_packed(tmp_path: Path) -> None:
    """A packed form belongs to its file: where weights are overwritten, or rounded for drafting, passes read
    these."""
    path = written(tmp_path, "Q4_1")
    runner = runner_of(path)
    runner.compact(True)
    before = greedy(runner, 30)
    name = "model.layers.0.mlp.up_proj.weight"
    runner.overwrite({name: runner.weights()[name] * 1.5})
    assert form(runner) == "float32" and greedy(runner, 30) != before
    runner.compact(True)
    assert form(runner) == "float32"
    drafter = runner_of(path)
    drafter.compact(True, rounding=True)
    assert form(drafter) == "bfloat16"


@pytest.mark.parametrize(("seconds", "chosen"), [((1.0, 2.0), "packed"), ((2.0, 1.0), "float32")])
def test_the_form_is_that_in_which_it_decodes_fastest(
    seconds: tuple[float, float], chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, now = runner_of(written(tmp_path, "Q4_1")), 0.0

    def forward(self: compiled_passes.CompiledPasses, *given: Any) -> Any:
        nonlocal now
        now += dict(zip(("packed", "float32"), seconds, strict=True))[self.form]
        return ()

    with monkeypatch.context() as patched:
        patched.setattr(compiled_passes.CompiledPasses, "forward", forward)
        bf16_weights.pick(runner, lambda: now)
    assert form(runner) == chosen


def test_weights_that_no_pass_reads_are_given_up_and_made_again(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    runner, plain = runner_of(path), runner_of(path)
    before = {name: weight.clone() for name, weight in runner.weights().items()}
    held = [weakref.ref(weight.untyped_storage()) for weight in runner.weights().values() if weight.dim() > 1]
    runner.compact(True)
    assert all(one() is not None for one in held)
    runner.use(runner.passes_over("packed"))
    assert not runner.whole and not any(one() is not None for one in held)
    assert greedy(runner, 30) == greedy(plain, 30) and not runner.whole
    assert runner.passes is not None and runner.passes.form == "packed"
    copy = runner.copy()
    assert not runner.whole and greedy(copy, 30) == greedy(plain, 30)
    again = runner.weights()
    assert (
        runner.whole
        and again.keys() == before.keys()
        and all(torch.equal(again[name], weight) for name, weight in before.items())
    )
    runner.use(runner.passes_over("packed"))
    tokens, buffer = torch.tensor([5, 80, 33]), torch.zeros(runner.buffer_size(3))
    runner.extend_rope(3)
    plain.extend_rope(3)
    with torch.inference_mode():  # as torch reads them
        ours, theirs = (one.forward(tokens, 0, buffer, 3)[0] for one in (runner, plain))
    assert runner.whole and torch.equal(ours, theirs)


def test_matrices_without_a_packed_form_stay_when_the_others_are_given_up(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1", vocab_size=len(TOKENS))
    runner, plain = runner_of(path), runner_of(path)
    runner.compact(True)
    runner.packed = {
        name: one for name, one in runner.packed.items() if "k_proj" not in name and "embed" not in name
    }
    held = weakref.ref(runner.layers[0].qkv.weight.untyped_storage())
    runner.use(runner.passes_over("packed"))
    assert not runner.whole and held() is None and greedy(runner, 30) == greedy(plain, 30)


def test_weights_of_another_file_are_not_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    runner = runner_of(path)
    runner.compact(True)
    runner.use(runner.passes_over("packed"))
    answer = greedy(runner, 20)
    path.unlink()
    with pytest.raises(ModelError, match="is the file still there"):
        runner.weights()
    written(tmp_path, "Q8_0")
    with pytest.raises(ModelError, match="is another file than when"):
        runner.weights()
    assert greedy(runner, 20) == answer


def test_another_form_that_wins_leaves_no_packed_one(tmp_path: Path) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    runner.compact(True)
    runner.use(runner.passes_over("float32"))
    assert (
        runner.whole and not runner.packed and form(runner) == "float32" and form(runner.copy()) == "float32"
    )


def test_the_form_that_is_told_is_the_one_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    runner.compact(True)
    assert runner.passes is not None
    packed_bytes = runner.passes.nbytes
    assert bf16_weights.described(target=runner) == {
        "target_form": "packed",
        "target_form_bytes": packed_bytes,
    }
    matrices = sum(one.numel() for one in bf16_weights.matrices(runner))
    with monkeypatch.context() as patched:
        patched.setattr(compile_kernels, "_ready", None)
        assert bf16_weights.described(target=runner) == {
            "target_form": "float32",
            "target_form_bytes": 4 * matrices,
        }
    assert packed_bytes < matrices
    runner.compact(True, rounding=True)
    assert bf16_weights.described(drafter=runner) == {
        "drafter_form": "bfloat16",
        "drafter_form_bytes": 2 * matrices,
    }
    assert bf16_weights.described(target=object()) == {}


def test_without_compiled_code_torch_reads_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    answer = greedy(runner, 20)
    runner.compact(True)
    monkeypatch.setattr(compile_kernels, "_ready", None)
    assert greedy(runner, 20) == answer
