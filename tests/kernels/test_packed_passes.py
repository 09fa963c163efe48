"""The packed weights of a GGUF file are its own, and serve as soon as there is compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo import load_pair
from omnidemo.backends import choice, compile_kernels
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.backends.runner import ModelError
from omnidemo.core.config import Settings
from omnidemo.models import load, model_files
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.load import load_model
from omnidemo.models.memory_need import least_need
from tests.support.gguf_files import packed, tiny_model, write_gguf
from tests.support.models import save

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
    runner = load_model(str(path), device="cpu", packed=packed).runner
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


def logits(runner: FusedLlama, pieces: list[list[int]]) -> list[np.ndarray[Any, Any]]:
    cache = runner.new_cache()
    return [np.asarray(cache.forward(ids, len(ids)).logits) for ids in pieces]


def greedy(runner: FusedLlama, count: int) -> list[int]:
    cache, ids = runner.new_cache(), [5, 80, 33]
    read = ids
    for _ in range(count):
        read = [int(np.asarray(cache.forward(read, 1).logits)[0].argmax())]
        ids = ids + read
    return ids


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
    assert runner.packed is not None and runner.form == "packed"
    own = runner.packed
    matrices = {name: one for name, one in own.items() if isinstance(one, PackedMatrix)}
    assert len({one.form for one in matrices.values()}) == 3
    assert [name for name in own if name not in matrices and own[name].ndim == 2] == [
        "model.layers.1.self_attn.k_proj.weight"
    ]
    plain = runner_of(path, packed=False)
    ids = np.random.default_rng(0).integers(0, runner.rows, 40).tolist()
    wanted, found = (np.concatenate(logits(one, [ids])) for one in (plain, runner))
    assert np.median(np.abs(found - wanted)) < 0.02 * np.abs(wanted).max(), "it computes in int8"


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_weights_are_packed_bit_for_bit(architecture: str, turn: int, tmp_path: Path) -> None:
    """With biases, norms of heads and interleaved rows, as each architecture has them. Every type is met with
    an output layer of its own and without."""
    keys = {key.replace("llama", architecture): value for key, value in KEYS.items()}
    for place, kind in enumerate(TYPES[turn::2]):
        tied = (place + (architecture == "qwen2")) % 2 == 0
        model = tiny_model(architecture, **LARGER, tie_word_embeddings=tied)
        path = write_gguf(tmp_path / "m.gguf", model, kind, architecture, keys)
        wanted, runner = runner_of(path, packed=False).weights(), runner_of(path)
        assert runner.packed is not None
        own = runner.packed
        assert {"model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"} <= own.keys()
        for name, one in own.items():
            values = one.values() if isinstance(one, PackedMatrix) else one
            assert np.array_equal(values, wanted[name].numpy()), (kind, name)
        assert (runner.parameters, runner.rows, runner.tied) == (
            sum({one.data_ptr(): one.numel() for one in wanted.values()}.values()),
            len(wanted["lm_head.weight"]),
            tied,
        )


def test_what_is_packed_is_told_before_it_is_read(tmp_path: Path) -> None:
    for kind in TYPES:
        path = written(tmp_path, kind, tie_word_embeddings=kind == "Q4_1")
        model = load_model(str(path), device="cpu", packed=True)
        assert model.runner.form == "packed" and GgufModel(path).packed_bytes == model.memory_bytes, kind  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_plain_numbers_have_no_packed_form(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, kind)
    assert GgufModel(path).packed_bytes is None
    runner = runner_of(path)
    assert runner.form == "float32" and runner.packed is None


def test_rotary_factors_of_a_file_hold_for_packed_weights(tmp_path: Path) -> None:
    factors = {"rope_freqs.weight": np.linspace(1, 4, 32, dtype=np.float32)}
    path = write_gguf(tmp_path / "m.gguf", tiny_model(**LARGER), "Q4_1", metadata=KEYS, more=factors)
    runner, plain = runner_of(path), runner_of(path, packed=False)
    assert torch.equal(runner.frequencies, plain.frequencies)
    assert not torch.equal(plain.frequencies, runner_of(written(tmp_path, "Q4_1")).frequencies)


def test_weights_of_another_file_are_not_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_1")
    model = GgufModel(path)
    path.unlink()
    with pytest.raises(ModelError, match="whether the file is still there"):
        model.packed()
    written(tmp_path, "Q8_0")
    with pytest.raises(ModelError, match="is another file than when"):
        model.packed()


def test_the_form_that_is_told_is_the_one_that_is_read(tmp_path: Path) -> None:
    runner = runner_of(written(tmp_path, "Q4_1"))
    assert runner.passes is not None
    assert choice.described(target=runner) == {
        "target_form": "packed", "target_arithmetic": "int8", "target_form_bytes": runner.passes.nbytes,
    }  # fmt: skip
    assert runner.passes.nbytes < runner.passes.weights
    assert choice.arithmetic_of(runner) == "int8"
    assert "int8" in choice.conditions_of(runner, "auto", "digest")
    drafter = FusedLlama(tiny_model(**LARGER), form="bfloat16")
    assert drafter.passes is not None
    assert choice.described(drafter=drafter) == {
        "drafter_form": "bfloat16", "drafter_arithmetic": "float32",
        "drafter_form_bytes": 2 * drafter.passes.weights,
    }  # fmt: skip
    assert choice.described(target=object()) == {} and choice.arithmetic_of(drafter) == ""


@pytest.mark.parametrize("short", ["cores", "memory"])
@pytest.mark.parametrize("comes", [True, False])
def test_one_that_is_large_or_does_not_fit_in_float32_waits_for_compiled_code(
    comes: bool, short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ready, said = written(tmp_path, "Q4_1"), compile_kernels.kernels(), list[str]()
    file = GgufModel(path)
    assert file.packed_bytes is not None
    needs = [least_need(file.packed_bytes, file.config, 2), least_need(4 * file.parameters, file.config, 4)]
    free = sum(one.total for one in needs) / 2 if short == "memory" else 10**12

    def wait() -> bool:
        if comes:
            monkeypatch.setattr(compile_kernels, "_ready", ready)
        return comes

    monkeypatch.setattr(load, "WAITS", 1 if short == "cores" else 10**12)
    monkeypatch.setattr(model_files, "free_memory", lambda place: free)
    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "wait", wait)
    monkeypatch.setattr(compile_kernels, "failure", lambda: "no numba")

    def form() -> str:
        found = load_model(
            str(path), device="cpu", packed=True, progress=lambda stage, share: said.append(stage)
        ).runner
        assert isinstance(found, FusedLlama)
        return found.form

    if not comes and short == "memory":
        with pytest.raises(ModelError, match=r"cannot be compiled \(no numba\) and cpu has 0\.0 GB free"):
            form()
    else:
        assert form() == ("packed" if comes else "float32")
    assert "compiling" in said


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_is_small_waits_for_machine_code_that_is_kept(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ready, waited = written(tmp_path, "Q4_1"), compile_kernels.kernels(), list[float]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        monkeypatch.setattr(compile_kernels, "_ready", ready)
        return True

    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "wait", wait)
    monkeypatch.setattr(compile_kernels, "kept", lambda: kept)
    assert (runner_of(path).form == "packed") == kept and len(waited) == kept


def test_answers_are_made_of_packed_weights_as_soon_as_passes_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that has begun ends with the weights in float32."""
    path = written(tmp_path, "Q4_K")
    drafter = save(tmp_path / "drafter", "sentence-piece", seed=1)
    quiet = {"settings": Settings(training="off"), "device": "cpu"}
    asked: dict[str, Any] = {"temperature": 0.0, "max_new_tokens": 24, "method": "autoregressive"}
    packed, plain = (
        load_pair(str(path), drafter, arithmetic=one, **quiet).generate("12 + 34 =", **asked).token_ids  # type: ignore[arg-type]
        for one in ("int8", "float32")
    )
    calls = list[Callable[[], None]]()
    monkeypatch.setattr(compile_kernels, "kept", lambda: False)
    monkeypatch.setattr(compile_kernels, "when_ready", calls.append)
    with monkeypatch.context() as patched:
        patched.setattr(compile_kernels, "_ready", None)
        pair = load_pair(str(path), drafter, **quiet)  # type: ignore[arg-type]
        assert pair.summary()["target_form"] == "float32"
        running = pair.stream("12 + 34 =", **asked)
        begun = [next(running)]
    (use,) = calls
    use()
    assert pair.summary()["target_form"] == "packed" and pair.target.packs is None
    begun += list(running)
    assert [token.id for one in begun for token in one.tokens] == list(plain)
    assert pair.generate("12 + 34 =", **asked).token_ids == packed
    assert pair.target.memory_bytes == GgufModel(path).packed_bytes
