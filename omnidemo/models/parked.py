"""A model whose weights are loaded here and computed with elsewhere: in a process that is forked later and has the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from torch import Tensor

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.models.transformers_runner import TransformersRunner, context_limit


def runner_of(model: Any, fast: bool, spread: bool = False) -> Runner:
    """What reads ids with a loaded model. ValueError for one that cannot draft or verify. spread: over several devices."""
    # On a GPU the fused forward pays too, but a model spread over several keeps accelerate's hooks.
    return FusedLlama(model, fast) if not spread and FusedLlama.fits(model.config) else TransformersRunner(model)


class ParkedModel:
    """Says what a runner says about its model, and computes nothing; `unpark` gives the runner, in the process that has the device."""

    def __init__(self, model: Any, fast: bool = True) -> None:
        self._model, self._fast = model, fast
        self.rows = int(model.get_input_embeddings().weight.shape[0])
        self.max_positions = context_limit(model.config)
        self.parameters = int(model.num_parameters())
        self.device, self.dtype = model.device, model.dtype

    def unpark(self) -> Runner:
        return runner_of(self._model, self._fast)

    def weights(self) -> dict[str, Tensor]:
        return {name: weight.detach() for name, weight in self._model.named_parameters(remove_duplicate=False)}

    def new_cache(self) -> NoReturn:
        raise RuntimeError("this model computes in the process that has the GPU alone; ask for an answer instead")

    def copy(self) -> NoReturn:
        self.new_cache()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.new_cache()
