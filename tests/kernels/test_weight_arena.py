"""Memory for weights: arrays of their own, on cache lines; models that live in it are copied, saved and
overwritten as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.weight_arena import LINE, WeightArena
from tests.support.runners import LEAN, close, make, some_ids


@pytest.mark.parametrize("kind", [np.float32, np.uint16])
def test_arrays_lie_apart_and_on_lines(kind: type[np.float32] | type[np.uint16]) -> None:
    shapes = [(3, 5), (1, 1), (7, 16), (2, 33)]
    memory = WeightArena(sum(rows * columns for rows, columns in shapes), len(shapes), kind)
    arrays = [memory.take(*shape) for shape in shapes]
    for number, array in enumerate(arrays):
        array[:] = number
    for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        assert (
            array.shape == shape
            and array.dtype == kind
            and array.ctypes.data % LINE == 0
            and array.flags.c_contiguous
        )
        assert (array == number).all()


@pytest.mark.parametrize("shape", LEAN)
def test_a_model_in_one_piece_is_copied_saved_and_overwritten(shape: str, tmp_path: Path) -> None:
    model, ids = make(shape), some_ids(12)
    with torch.inference_mode():
        wanted = model(torch.tensor([ids])).logits[0].numpy()
    runner = FusedLlama(model)
    places = [weight.data_ptr() for weight in runner.whole.matrices()]
    assert places == sorted(places) and places[-1] + runner.whole.head.weight.nbytes - places[
        0
    ] <= 4 * runner.parameters + LINE * len(places)
    copy = runner.copy()
    with torch.no_grad():
        for name, weight in runner.weights().items():
            assert torch.equal(weight, copy.weights()[name]), name
        copy.whole.layers[0].out.weight.zero_()
    assert not torch.equal(copy.whole.layers[0].out.weight, runner.whole.layers[0].out.weight)
    assert close(runner.new_cache().forward(ids, len(ids)).logits, wanted, 1e-4)
    assert not close(copy.new_cache().forward(ids, len(ids)).logits, wanted, 1e-4)
    copy.overwrite(runner.weights())
    assert close(copy.new_cache().forward(ids, len(ids)).logits, wanted, 1e-4)

    model.save_pretrained(tmp_path)
    stored = sum(weight.nbytes for weight in load_file(tmp_path / "model.safetensors").values())
    assert stored <= sum(weight.nbytes for weight in model.state_dict().values())
    with torch.inference_mode():
        again = (
            AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)(torch.tensor([ids]))
            .logits[0]
            .numpy()
        )
    assert close(again, wanted, 1e-4)
