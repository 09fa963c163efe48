"""Passes over the packed weights of a GGUF file say what those over the same weights in float32 say."""

from __future__ import annotations

import weakref
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo.backends import choice, compile_kernels, compiled_passes
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.backends.runner import ModelError
from omnidemo.models import gguf_model
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.weights import build_model
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.load import load_model
from tests.support.gguf_files import packed, tiny_model, write_gguf

LARGER = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
KEYS = {"llama.attention.key_length": 64, "llama.attention.value_length": 64}
TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


def runner_of(path: Path, packed: bool = True) -> FusedLlama:
    runner = load_model(str(path), device="cpu", packed=packed, arithmetic="float32").runner
    assert isinstance(runner, FusedLlama)
    return runner


def written(folder: Path, kind: str, **options: Any) -> Path:
    path = folder / "m.gguf"
    path.write_bytes(_file(kind, tuple(sorted(options.items()))))
    return path


@cache
def _file(kind: str, options: tuple[tuple[str, Any], ...]) -> bytes:
    """Many tests read the same one."""
    with TemporaryDirectory() as room:
        model = tiny_model(**LARGER | dict(options))
        return write_gguf(Path(room) / "m.gguf", model, kind, metadata=KEYS).read_bytes()


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
    path = written(tmp_path, kind, tie_word_embeddings=kind in ("Q4_1", "Q8_0", "Q6_K"))
    plain, runner = runner_of(path, packed=False), runner_of(path)
    assert (form(plain), form(runner)) == ("float32", "packed") and compile_kernels.kernels() is not None
    rng = np.random.default_rng(0)
    pieces = [rng.integers(0, runner.rows, size).tolist() for size in (20, 1, 2, 6, 7, 12, 13, 5)]
    exact = exactly(path, [token for piece in pieces for token in piece])
    theirs, ours = (
        np.abs(np.concatenate(logits(one, pieces)) - exact).max(-1) / np.abs(exact).max()
        for one in (plain, runner)
    )
    assert ours.max() <= 2 * theirs.max() + 1e-6 and np.median(ours) <= 2 * np.median(theirs) + 1e-7, (
        "sums are in another order alone"
    )
    answer = greedy(plain, 40)
    assert greedy(runner, 40) == answer and not runner.whole, "nothing was made in float32"
    copy = runner.copy()
    assert form(copy) == "packed" and greedy(copy, 40) == answer and not copy.whole
    assert copy.packed is runner.packed, "what never changes is there once"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_has_the_bits_that_it_has_alone(
    kind: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pass of any number of rows, and wherever a prompt is cut."""
    monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0 if threads == 2 else 10**12)
    monkeypatch.setattr(compiled_passes.thread_pool, "pick_size", lambda given=0: threads - 1)
    path = written(tmp_path, kind)
    for expected in ("float32", "packed"):
        runner = runner_of(path, packed=expected == "packed")
        assert form(runner) == expected
        ids = np.random.default_rng(1).integers(0, runner.rows, 120).tolist()
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
    assert runner.packed is not None and form(runner) == "packed"
    own = runner.packed.weights
    matrices = {name: one for name, one in own.items() if isinstance(one, PackedMatrix)}
    assert len({one.form for one in matrices.values()}) == 3
    assert [name for name in own if name not in matrices and own[name].ndim == 2] == [
        "model.layers.1.self_attn.k_proj.weight"
    ]
    assert greedy(runner, 40) == greedy(runner_of(path, packed=False), 40) and not runner.whole


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_weights_are_packed_bit_for_bit_and_made_for_who_asks(
    architecture: str, turn: int, tmp_path: Path
) -> None:
    """With biases, norms of heads and turned rows, as each architecture has them. Every type is met with an
    output layer of its own and without."""
    keys = {key.replace("llama", architecture): value for key, value in KEYS.items()}
    for place, kind in enumerate(TYPES[turn::2]):
        tied = (place + (architecture == "qwen2")) % 2 == 0
        model = tiny_model(architecture, **LARGER, tie_word_embeddings=tied)
        path = write_gguf(tmp_path / "m.gguf", model, kind, architecture, keys)
        wanted, runner = runner_of(path, packed=False).weights(), runner_of(path)
        assert runner.packed is not None and not runner.whole
        own = runner.packed.weights
        assert {"model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"} <= own.keys()
        for name, one in own.items():
            values = one.values() if isinstance(one, PackedMatrix) else one
            assert np.array_equal(values, wanted[name].numpy()), (kind, name)
        found = runner.weights()
        assert found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in found)
        assert (runner.parameters, runner.rows, runner.tied) == (
            sum({one.data_ptr(): one.numel() for one in wanted.values()}.values()),
            len(wanted["lm_head.weight"]),
            tied,
        )


def test_what_is_packed_is_told_before_it_is_read(tmp_path: Path) -> None:
    for kind in TYPES:
        path = written(tmp_path, kind, tie_word_embeddings=kind == "Q4_1")
        packed = runner_of(path).packed
        assert packed is not None and GgufModel(path).packed_bytes == packed.nbytes, kind
        assert load_model(str(path), device="cpu", packed=True).memory_bytes == packed.nbytes


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_plain_numbers_have_no_packed_form(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, kind)
    assert GgufModel(path).packed_bytes is None
    runner = runner_of(path)
    runner.compact()
    assert form(runner) != "packed" and runner.packed is None and runner.whole


def test_new_weights_are_not_packed(tmp_path: Path) -> None:
    """A packed form belongs to its file: where weights are overwritten, or rounded for drafting, passes read
    these."""
    path = written(tmp_path, "Q4_1")
    runner = runner_of(path)
    before = greedy(runner, 30)
    name = "model.layers.0.mlp.up_proj.weight"
    runner.overwrite({name: runner.weights()[name] * 1.5})
    assert form(runner) == "float32" and greedy(runner, 30) != before
    runner.compact()
    assert form(runner) == "float32" and runner.packed is None
    drafter = runner_of(path)
    drafter.compact(rounding=True)
    assert form(drafter) == "bfloat16"


def test_weights_that_no_pass_reads_are_given_up_and_made_again(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    runner, plain = runner_of(path), runner_of(path, packed=False)
    before = plain.weights()
    held = [weakref.ref(weight.untyped_storage()) for weight in runner.weights().values() if weight.dim() > 1]
    assert runner.whole and all(one() is not None for one in held)
    assert form(runner) == "packed" and runner.passes is not None
    runner.drop_float32()
    assert not runner.whole and not any(one() is not None for one in held)
    assert greedy(runner, 30) == greedy(plain, 30) and not runner.whole
    again = runner.weights()
    assert (
        runner.whole
        and again.keys() == before.keys()
        and all(torch.equal(again[name], weight) for name, weight in before.items())
    )
    runner.drop_float32()
    tokens, buffer = torch.tensor([5, 80, 33]), torch.zeros(runner.buffer_size(3))
    runner.extend_rope(3)
    plain.extend_rope(3)
    with torch.inference_mode():  # as torch reads them
        ours, theirs = (one.forward(tokens, 0, buffer, 3)[0] for one in (runner, plain))
    assert runner.whole and torch.equal(ours, theirs)


def test_rotary_factors_of_a_file_hold_for_packed_weights(tmp_path: Path) -> None:
    factors = {"rope_freqs.weight": np.linspace(1, 4, 32, dtype=np.float32)}
    path = write_gguf(tmp_path / "m.gguf", tiny_model(**LARGER), "Q4_1", metadata=KEYS, more=factors)
    runner, plain = runner_of(path), runner_of(path, packed=False)
    assert torch.equal(runner.frequencies, plain.frequencies)
    assert not torch.equal(plain.frequencies, runner_of(written(tmp_path, "Q4_1")).frequencies)


def test_weights_of_another_file_are_not_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    runner = runner_of(path)
    answer = greedy(runner, 20)
    path.unlink()
    with pytest.raises(ModelError, match="whether the file is still there"):
        runner.weights()
    written(tmp_path, "Q8_0")
    with pytest.raises(ModelError, match="is another file than when"):
        runner.weights()
    assert greedy(runner, 20) == answer


def test_the_form_that_is_told_is_the_one_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    assert runner.passes is not None
    packed_bytes = runner.passes.nbytes
    assert choice.described(target=runner) == {
        "target_form": "packed",
        "target_arithmetic": "float32",
        "target_form_bytes": packed_bytes,
    }
    matrices = runner.passes.weights
    assert matrices == sum(one.numel() for one in runner.matrices())
    with monkeypatch.context() as patched:
        patched.setattr(compile_kernels, "_ready", None)
        assert choice.described(target=runner) == {
            "target_form": "float32",
            "target_arithmetic": "float32",
            "target_form_bytes": 4 * matrices,
        }
    assert packed_bytes < matrices
    runner.compact(rounding=True)
    assert choice.described(drafter=runner) == {
        "drafter_form": "bfloat16",
        "drafter_arithmetic": "float32",
        "drafter_form_bytes": 2 * matrices,
    }
    assert choice.described(target=object()) == {}


def test_without_compiled_code_torch_reads_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    answer = greedy(runner, 20)
    with monkeypatch.context() as patched:
        patched.setattr(compile_kernels, "_ready", None)
        assert not runner.whole and greedy(runner, 20) == answer and runner.whole
    runner.drop_float32()  # as is done once it is there
    assert not runner.whole and greedy(runner, 20) == answer and not runner.whole


def test_a_pass_of_torch_that_has_begun_makes_nothing_again(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    runner, plain = (runner_of(path, packed) for packed in (True, False))
    tokens, buffer = torch.tensor([5, 80, 33]), torch.zeros(runner.buffer_size(3))
    cos, sin = runner.rope_at(torch.arange(3))

    def attend(queries: Any, keys: Any, new_keys: Any, values: Any, new_values: Any) -> Any:
        assert runner.passes is not None
        runner.drop_float32()  # as soon as there is compiled code
        return queries

    with torch.inference_mode():
        found, wanted = (one.run(tokens, cos, sin, buffer, 3, attend)[0] for one in (runner, plain))
    assert torch.equal(found, wanted) and not runner.whole


@pytest.mark.parametrize(("most", "free"), [(1, 10**12), (10**12, 1000)])
@pytest.mark.parametrize("comes", [True, False])
def test_one_that_is_large_or_does_not_fit_in_float32_waits_for_compiled_code(
    comes: bool, most: int, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ready, said = written(tmp_path, "Q4_1"), compile_kernels.kernels(), list[str]()

    def wait() -> bool:
        if comes:
            monkeypatch.setattr(compile_kernels, "_ready", ready)
        return comes

    monkeypatch.setattr(gguf_model, "WAITS", most)
    monkeypatch.setattr(gguf_model, "free_memory", lambda place: free)
    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "wait", wait)
    monkeypatch.setattr(compile_kernels, "failure", lambda: "no numba")

    def load() -> FusedLlama:
        found = load_model(
            str(path), device="cpu", packed=True, progress=lambda stage, share: said.append(stage)
        ).runner
        assert isinstance(found, FusedLlama)
        return found

    if not comes and free == 1000:
        with pytest.raises(ModelError, match=r"cannot be compiled \(no numba\) and cpu has 0\.0 GB free"):
            load()
    else:
        assert load().whole != comes
    assert "compiling" in said


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_is_small_waits_for_machine_code_that_is_kept(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its first pass makes all weights in float32, four to eight times what it keeps."""
    path, ready, waited = written(tmp_path, "Q4_1"), compile_kernels.kernels(), list[float]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        monkeypatch.setattr(compile_kernels, "_ready", ready)
        return True

    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "wait", wait)
    monkeypatch.setattr(compile_kernels, "kept", lambda: kept)
    assert runner_of(path).whole != kept and len(waited) == kept
