"""Every type's values are, bit for bit, those of the package that defines the format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omnidemo.models.gguf.block_types import BLOCK_TYPES, READABLE
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.weights import GgufWeights
from tests.support.gguf_files import gguf, tiny_model, write_gguf


@pytest.mark.parametrize("number", [number for number, kind in BLOCK_TYPES.items() if kind.read is not None])
def test_values_are_those_of_the_package(number: int) -> None:
    kind, theirs = BLOCK_TYPES[number], gguf.GGMLQuantizationType(number)
    assert (theirs.name, gguf.constants.GGML_QUANT_SIZES[theirs]) == (kind.name, (kind.numbers, kind.size))
    # scales that are no numbers, too
    blocks = np.random.default_rng(number).integers(0, 256, (3000, kind.size)).astype(np.uint8)
    assert kind.read is not None
    with np.errstate(all="ignore"):
        ours = kind.read(blocks)
        values = gguf.quants.dequantize(
            blocks.view({"F32": np.float32, "F16": np.float16}.get(kind.name, np.uint8)), theirs
        )
    wanted = np.asarray(values, np.float32).reshape(ours.shape)
    same = (ours.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(ours) & np.isnan(wanted))
    assert ours.dtype == np.float32 and ours.shape == (3000, kind.numbers)
    assert same.all()


@pytest.mark.parametrize("kind", READABLE)
def test_a_files_weights_are_read_whole(tmp_path: Path, kind: str) -> None:
    wide = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64, "num_hidden_layers": 1}
    heads = {"llama.attention.key_length": 64, "llama.attention.value_length": 64}
    write_gguf(tmp_path / "m.gguf", tiny_model(**wide), kind, metadata=heads)
    header = read_header(tmp_path / "m.gguf")
    weights, theirs = GgufWeights(header), gguf.GGUFReader(tmp_path / "m.gguf")
    assert header.type_name == kind
    for tensor in theirs.tensors:
        wanted = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        assert np.array_equal(
            weights.float32(tensor.name).numpy(), wanted.reshape(header.tensors[tensor.name].shape)
        )
