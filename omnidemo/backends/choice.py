"""Which backend computes the rounds of a pair: `backend_of` checks the setting `OMNIDEMO_BACKEND` and names
the backend, `make_backend` builds it from the caches. Models loaded with `fast=False`, as the setting
`reference` loads them, have caches without a backend.

`reference` is plain torch: one forward per pass, each round computed when it is requested. The others must
emit the same tokens.
"""

from __future__ import annotations

from typing import Literal

import torch

from omnidemo.backends import compile_kernels
from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import ModelError, Runner
from omnidemo.decoding.backend import Backend, KVCache

Name = Literal["reference", "cpu", "cuda"]
Setting = Literal["auto", "reference", "cpu", "cuda"]
ELSE = "or set OMNIDEMO_BACKEND=auto, which takes what is there"


def device(setting: Setting, wanted: str) -> str:
    """The device to load models on: `wanted`, or the backend's own where that is "auto". ModelError, one
    sentence, before anything is loaded, for a backend that cannot run on this machine or device."""
    if setting == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            "the backend cuda needs a CUDA device, and torch finds none on this machine; install torch for"
            f" CUDA, {ELSE}"
        )
    if setting in ("auto", "reference"):
        return wanted
    if wanted.partition(":")[0] in {"cpu", "cuda", "mps"} - {setting}:
        raise ModelError(
            f"the backend {setting} needs models on {setting}, and the device is {wanted}; set"
            f" OMNIDEMO_DEVICE={setting}, {ELSE}"
        )
    return setting if wanted == "auto" else wanted


def backend_of(setting: Setting, target: Runner, drafter: Runner) -> Name:
    """The backend of two loaded models. `auto` is the fast backend of either model; it declines rounds that
    it cannot make. ModelError, one sentence, where the named backend cannot serve them. `cpu` waits until its
    code is compiled."""
    able = _able(target), _able(drafter)
    if setting == "auto":
        return next((name for name in able if name != "reference"), "reference")
    if setting != "reference" and able != (setting, setting):
        which = "target" if able[0] != setting else "drafter"
        need = "on a CPU in float32" if setting == "cpu" else "on one CUDA device"
        raise ModelError(
            f"the backend {setting} reads Llama, Qwen2 and Qwen3 shapes {need}, and this {which} is none;"
            f" choose another model, {ELSE}"
        )
    if setting == "cpu" and not compile_kernels.wait():
        why = compile_kernels.failure() or "it takes too long"
        raise ModelError(
            f"the backend cpu cannot be compiled on this machine ({why}); install numba as in"
            f" requirements.txt, {ELSE}"
        )
    return setting


def kind_of(runner: Runner) -> Literal["compiled", "recorded", "torch"]:
    """How a runner's passes are computed now. Another kind rounds differently; the form of weights and the
    threads change nothing."""
    able = _able(runner)
    if able == "cpu":
        return "compiled" if compile_kernels.kernels() is not None else "torch"
    return "recorded" if able == "cuda" else "torch"


def waits(runner: Runner) -> bool:
    """Whether the runner's passes will be compiled, and are not yet."""
    return _able(runner) == "cpu" and compile_kernels.kernels() is None


def conditions_of(runner: Runner, dtype: str, quantization: str, digest: str) -> str:
    """Everything that a target's numbers, and so a seeded answer, depend on: how its passes are computed,
    their device and dtype, how its weights were rounded or packed (the settings `dtype` and `quantization`),
    the arithmetic of products where it is not the dtype, and a digest of its weights."""
    own = str(runner.dtype).removeprefix("torch.")
    asked = (dtype, quantization, arithmetic_of(runner))
    form = "-in-".join([*(name for name in asked if name not in ("auto", "", own)), own])
    return ".".join([kind_of(runner), str(runner.device), form, digest]).rstrip(".")


def arithmetic_of(runner: Runner) -> str:
    """The arithmetic of a runner's products; empty where it is the runner's dtype."""
    own = runner.arithmetic if isinstance(runner, FusedLlama) else "float32"
    return "" if own == "float32" else own


def _able(runner: Runner) -> Name:
    """The fastest backend that this runner supports."""
    if isinstance(runner, FusedLlama) and runner.fast:
        return "cpu" if runner.passes is not None else "cuda" if runner.fixed is not None else "reference"
    return "reference"


def make_backend(target: KVCache, drafter: KVCache) -> Backend | None:
    """The backend of one generation with these caches; None where the reference computes all of it."""
    able = any(isinstance(cache, FusedCache) and cache.rolls for cache in (target, drafter))
    return CompiledBackend() if able else None
