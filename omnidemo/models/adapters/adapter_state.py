"""An adapter in memory, in PEFT's terms, and the drafter's matrices with it merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"  # PEFT's files
PREFIX = "base_model.model."  # PEFT's, before the name of the base model's parameter
# magnitude of a weight: trained ones stay below 1,000, and products of larger ones leave float32
LARGEST = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class AdapterState:
    """A LoRA adapter: `weights` under PEFT's names (`….lora_A.weight` [r, in], `….lora_B.weight` [out, r],
    float32, CPU) and PEFT's configuration as plain JSON values. With the configuration {"peft_type": "FULL"}
    the weights are whole matrices under the base model's names. `head` are the weights of the acceptance head
    (`models/adapters/acceptance_head.py`), if there is one."""

    weights: Mapping[str, Tensor]
    config: Mapping[str, Any]
    head: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether this is a full fine-tuning, not a LoRA adapter."""
        return self.config.get("peft_type") == "FULL"


@dataclass(frozen=True, slots=True, eq=False)
class OptimiserState:
    """AdamW: steps taken in this line, its moments as `exp_avg.<weight>` and `exp_avg_sq.<weight>`, and the
    weights that it moves as `weight.<weight>` (the adapter holds their running average)."""

    step: int
    moments: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class AdapterVersion:
    """A published adapter of one line (drafter, target, domain). Version 0 is the base drafter and has no
    file."""

    version: int
    drafter: str
    target: str
    domain: str
    path: str | None
    sha256: str | None
    parent: int | None
    requests_seen: int
    steps: int
    loss: float | None
    created_at: str  # UTC, ISO 8601
    # e.g. {"acceptance_before": 0.41, "acceptance_after": 0.47}
    effect: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class StoredVersion:
    info: AdapterVersion
    adapter: AdapterState
    optimiser: OptimiserState


class BaseWeights(Mapping[str, Tensor]):
    """A drafter folder's safetensors, read tensor by tensor at request, so that memory holds no second
    copy."""

    def __init__(self, folder: Path) -> None:
        """ValueError where the folder has no safetensors."""
        self._files: dict[str, Path] = {}
        for file in sorted(Path(folder).glob("*.safetensors")):
            with safe_open(file, "pt") as opened:
                self._files |= dict.fromkeys(opened.keys(), file)
        if not self._files:
            raise ValueError(f"No safetensors weights in {folder}: convert the drafter to safetensors first.")

    def __getitem__(self, name: str) -> Tensor:
        # Old checkpoints lack the model's prefix ("h.0.…" for "transformer.h.0.…").
        for key in (name, name.partition(".")[2]):
            if key in self._files:
                with safe_open(self._files[key], "pt") as opened:
                    return opened.get_tensor(key)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def changed_names(adapter: AdapterState) -> list[str]:
    """Names of the base model's matrices that the adapter changes."""
    if adapter.whole:
        return list(adapter.weights)
    ending = ".lora_A.weight"
    return [
        name.removeprefix(PREFIX).removesuffix(ending) + ".weight"
        for name in adapter.weights
        if name.endswith(ending)
    ]


def base_matrices(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """The base weights, in float32, of the matrices that the adapter changes. ValueError where one is
    missing."""
    try:
        return {name: base[name].float() for name in changed_names(adapter)}
    except KeyError as error:
        raise ValueError(
            f"The adapter changes {error}, which the drafter does not have: it belongs to another drafter."
        ) from None


def merged_weights(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """The changed matrices in float32 under the base model's names: W + (alpha/r)·B·A, or those of a full
    fine-tuning. ValueError where the adapter does not fit the base, or a weight would not be finite: finite A
    and B do not guarantee a finite product."""
    merged = {}
    for name, matrix in base_matrices(base, adapter).items():
        change = adapter.weights[name].float() if adapter.whole else _delta(adapter, name)
        if change.shape != matrix.shape:
            shapes = f"{tuple(change.shape)}, the drafter's {tuple(matrix.shape)}"
            raise ValueError(f"The adapter's {name} is {shapes}: it belongs to another drafter.")
        merged[name] = change if adapter.whole else matrix + change
        if not bool((merged[name].abs() < LARGEST).all()):  # also where it is not a number
            raise ValueError(
                f"The adapter makes weights of {name} that are not finite or too large to compute with: use"
                " another one."
            )
    return merged


def _delta(adapter: AdapterState, name: str) -> Tensor:
    stem = PREFIX + name.removesuffix(".weight")
    scale = float(adapter.config["lora_alpha"]) / float(adapter.config["r"])
    delta = scale * (
        adapter.weights[f"{stem}.lora_B.weight"].float() @ adapter.weights[f"{stem}.lora_A.weight"].float()
    )
    return delta.T if adapter.config.get("fan_in_fan_out") else delta


def packed(tensors: Mapping[str, Tensor], **facts: str) -> bytes:
    """Tensors in float32 as the bytes of a safetensors file, with `facts` in its header."""
    plain = {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in tensors.items()}
    return save(plain, facts)
