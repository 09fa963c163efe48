"""A model that computes in another process: one that is forked later and has the GPU (ZeroGPU), or a replica
elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from omnidemo.backends.runner import Runner
from omnidemo.models.transformers_runner import context_limit, make_runner, token_rows


def absent_model(config: Any, dtype: torch.dtype) -> ParkedModel:
    """The shapes of a model without its weights, which take no memory here."""
    with torch.device("meta"):
        return ParkedModel(AutoModelForCausalLM.from_config(config, dtype=dtype))


class ParkedModel:
    """The attributes of a `Runner` without its passes. `unpark` makes the runner in the process with the
    device."""

    def __init__(self, model: Any, fast: bool = True) -> None:
        self._model, self._fast = model, fast
        self.rows = token_rows(model)
        self.max_positions = context_limit(model.config)
        self.parameters = int(model.num_parameters())
        self.device, self.dtype = model.device, model.dtype

    def unpark(self) -> Runner:
        return make_runner(self._model, self._fast)

    def weights(self) -> dict[str, Tensor]:
        return {
            name: weight.detach() for name, weight in self._model.named_parameters(remove_duplicate=False)
        }

    def new_cache(self) -> NoReturn:
        raise RuntimeError("this model computes in another process alone; ask for an answer instead")

    def spare(self, most: int) -> int:
        return 0

    def copy(self) -> NoReturn:
        self.new_cache()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.new_cache()
