"""Which runner reads ids with a loaded model. A forward pass of its own for another family gets its branch here."""

from __future__ import annotations

from typing import Any

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.models.transformers_runner import TransformersRunner


def make_runner(model: Any, fast: bool, spread: bool = False) -> Runner:
    """The fastest runner that serves a model of `transformers`. fast: whether its passes may be compiled or recorded. spread: the model
    lies on several devices. ValueError for a model that can neither draft nor verify."""
    # On a GPU the fused forward pays too, but a model spread over several keeps accelerate's hooks.
    return FusedLlama(model, fast) if not spread and FusedLlama.fits(model.config) else TransformersRunner(model)
