"""What makes the rounds of a pair faster than the reference: `backend_of` names it, `make_backend` builds it
from the caches. Models loaded with `fast=False`, as `OMNIDEMO_BACKEND=reference` loads them, have caches
without a backend: plain torch, one forward per pass.
"""

from __future__ import annotations

from typing import Literal

from omnidemo.backends import compile_kernels
from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.decoding.backend import Backend, KVCache

Name = Literal["reference", "cpu", "cuda"]


def backend_of(target: Runner, drafter: Runner) -> Name:
    """What makes the rounds of two loaded models faster, if only of one of them."""
    return next((name for name in map(_able, (target, drafter)) if name != "reference"), "reference")


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


def conditions_of(runner: Runner, dtype: str, digest: str) -> str:
    """Everything that a target's numbers, and so a seeded answer, depend on: how its passes are computed,
    their device and dtype, how its weights were rounded (the setting `dtype`), the arithmetic of products
    where it is not the dtype, and a digest of its weights."""
    own = str(runner.dtype).removeprefix("torch.")
    asked = (dtype, arithmetic_of(runner))
    form = "-in-".join([*(name for name in asked if name not in ("auto", "", own)), own])
    return ".".join([kind_of(runner), str(runner.device), form, digest]).rstrip(".")


def arithmetic_of(runner: Runner) -> str:
    """The arithmetic of a runner's products; empty where it is the runner's dtype."""
    return "int8" if isinstance(runner, FusedLlama) and runner.form == "packed" else ""


def described(**runners: object) -> dict[str, str | int]:
    """`<role>_form`, `<role>_form_bytes` and `<role>_arithmetic` of each runner with compiled passes: the
    form of its weights, the bytes that a pass reads, and the arithmetic of its products."""
    found: dict[str, str | int] = {}
    for role, runner in runners.items():
        if isinstance(runner, FusedLlama) and runner.passes is not None:
            found |= {f"{role}_form": runner.form, f"{role}_form_bytes": runner.passes.nbytes}
            found |= {f"{role}_arithmetic": arithmetic_of(runner) or "float32"}
    return found


def _able(runner: Runner) -> Name:
    """The fastest backend that this runner supports."""
    if isinstance(runner, FusedLlama) and runner.fast:
        return "cpu" if runner.passes is not None else "cuda" if runner.fixed is not None else "reference"
    return "reference"


def make_backend(target: KVCache, drafter: KVCache) -> Backend | None:
    """The backend of one generation with these caches; None where the reference computes all of it."""
    able = any(isinstance(cache, FusedCache) and cache.compiled for cache in (target, drafter))
    return CompiledBackend() if able else None
