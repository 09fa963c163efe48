"""Which backend makes the rounds of a pair: the setting `OMNIDEMO_BACKEND`, held against what is there. Decided here and nowhere else.

`reference` is the plain one: one torch forward a pass, every round made when it comes. What the others write has to equal it.
"""

from __future__ import annotations

from typing import Literal

import torch

from omnidemo.backends import compile_kernels
from omnidemo.backends.cpu_backend import CpuBackend
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.rollout_backend import RolloutBackend
from omnidemo.backends.runner import ModelError, Runner
from omnidemo.decoding.backend import Backend, Clock, KVCache

Name = Literal["reference", "cpu", "cuda"]
Setting = Literal["auto", "reference", "cpu", "cuda"]
ELSE = "or set OMNIDEMO_BACKEND=auto, which takes what is there"


def device(setting: Setting, wanted: str) -> str:
    """Where models are to be loaded: `wanted`, unless that is auto and the backend says where. ModelError, one sentence and before anything
    is loaded, for a backend that this machine or that device cannot have."""
    if setting == "cuda" and not torch.cuda.is_available():
        raise ModelError(f"the backend cuda needs a CUDA device, and torch finds none on this machine; install torch for CUDA, {ELSE}")
    if setting in ("auto", "reference"):
        return wanted
    if wanted.partition(":")[0] in {"cpu", "cuda", "mps"} - {setting}:
        raise ModelError(
            f"the backend {setting} needs models on {setting}, and the device is {wanted}; set OMNIDEMO_DEVICE={setting}, {ELSE}"
        )
    return setting if wanted == "auto" else wanted


def choose(setting: Setting, target: Runner, drafter: Runner) -> Name:
    """What makes the rounds of two loaded models. `auto` takes what both can do. ModelError, one sentence, where a backend that was named
    cannot serve them; `cpu` waits until its code is compiled, to know that."""
    able = _able(target), _able(drafter)
    if setting == "auto":
        return able[0] if able[0] == able[1] else "reference"
    if setting != "reference" and able != (setting, setting):
        which = "target" if able[0] != setting else "drafter"
        need = "on a CPU in float32" if setting == "cpu" else "on one CUDA device"
        raise ModelError(
            f"the backend {setting} reads Llama and Qwen2 shapes {need}, and this {which} is none; choose another model, {ELSE}"
        )
    if setting == "cpu" and not compile_kernels.wait():
        why = compile_kernels.failure() or "it takes too long"
        raise ModelError(f"the backend cpu cannot be compiled on this machine ({why}); install numba as in requirements.txt, {ELSE}")
    return setting


def _able(runner: Runner) -> Name:
    """The backend that this runner's passes were made for."""
    if isinstance(runner, FusedLlama) and runner.fast:
        return "cpu" if runner.passes is not None else "cuda" if runner.fixed is not None else "reference"
    return "reference"


def make_backend(target: KVCache, drafter: KVCache | None, clock: Clock) -> Backend | None:
    """What makes the rounds of a generation with these caches; None where the reference makes all of them."""
    able = [cache for cache in (target, drafter) if isinstance(cache, FusedCache) and cache.rolls]
    if any(cache.runner.passes is not None for cache in able):
        return CpuBackend(clock)
    return RolloutBackend(clock) if able else None
