"""The drafter in training: the base model with trainable weights. `transformers` and `peft` are imported
where a model is built, and so only by the process that trains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omnidemo.learning.distill.rehearsal import RehearsalText, texts
from omnidemo.learning.distill.worker import TrainingPlan
from omnidemo.models.adapters.adapter_state import AdapterState

FULL: dict[str, Any] = {"peft_type": "FULL"}  # the configuration of a full fine-tuning


class Learner:
    """The base drafter with trainable LoRA matrices on every linear layer but the output layer, or (rank 0)
    with all parameters trainable. Its weights are scratch space."""

    def __init__(self, folder: Path, rank: int, seed: int = 0, device: str = "cpu") -> None:
        """Reads safetensors from a local folder. OSError or ValueError where there is no such model."""
        from omnidemo.models.read_weights import read_model

        base = read_model(folder, dtype=torch.float32, local_files_only=True)
        self.device, self._source = torch.device(device), (folder, seed)
        self.base: Any = base
        if rank:
            self.parameters, self.initial = self._with_lora(rank, seed)
        else:
            self.base.to(device).eval().requires_grad_(True)
            # Tied matrices are one parameter, under the first of their names.
            self.parameters = dict(self.base.named_parameters())
            self.initial = AdapterState(copied(self.parameters), FULL)
        self.context = int(getattr(base.config, "max_position_embeddings", None) or 1 << 30)
        self._head_is_linear = self._check_head()

    def _with_lora(self, rank: int, seed: int) -> tuple[dict[str, Tensor], AdapterState]:
        from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # eval: no dropout, so that a step is deterministic
            model = get_peft_model(self.base, config).to(self.device).eval()
        self.base = model.get_base_model()
        named: dict[str, Tensor] = {
            name.replace(".default.", "."): p for name, p in model.named_parameters() if p.requires_grad
        }
        return named, AdapterState(copied(get_peft_model_state_dict(model)), _plain_config(config))

    def read(self, ids: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """States [n, H] that the output layer reads, and logits [n, D], at (batch, position) pairs `rows` [n,
        2]."""
        if self._head_is_linear:  # only these rows pass the output layer
            states = self.base.base_model(input_ids=ids, use_cache=False).last_hidden_state[
                rows[:, 0], rows[:, 1]
            ]
            return states, self.base.get_output_embeddings()(states)
        seen: list[Tensor] = []
        hook = self.base.get_output_embeddings().register_forward_pre_hook(
            lambda module, given: seen.append(given[0])
        )
        try:
            logits = self.base(input_ids=ids, use_cache=False).logits
        finally:
            hook.remove()
        return seen[-1][rows[:, 0], rows[:, 1]], logits[rows[:, 0], rows[:, 1]]

    @cached_property
    def rehearsed(self) -> list[RehearsalText]:
        """Texts of the base drafter, which is loaded for them; none where it cannot write them."""
        self.load(self.initial.weights)
        return texts(self, *self._source)

    def completed(self, adapter: AdapterState | None) -> AdapterState:
        """The adapter with fresh LoRA matrices (which change nothing) where an imported one lacks them."""
        if adapter is None:
            return self.initial
        if not adapter.weights.keys() <= self.initial.weights.keys():
            return adapter  # of another drafter, which `load` refuses
        return replace(adapter, weights={**self.initial.weights, **adapter.weights})

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Load these weights. ValueError for those of another drafter or rank."""
        for name, parameter in self.parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise ValueError(
                    f"The adapter does not fit this drafter at {name}: it has another rank, or belongs to"
                    " another drafter."
                )
            parameter.copy_(weights[name])

    @torch.no_grad()
    def _check_head(self) -> bool:
        """Whether logits are the output layer of the hidden state; some models scale or cap them
        afterwards."""
        self._head_is_linear = True
        ids = torch.arange(4, device=self.device)[None] % self.base.config.vocab_size
        rows = torch.tensor([[0, 1], [0, 3]], device=self.device)
        full = self.base(input_ids=ids, use_cache=False).logits[0, [1, 3]]
        try:
            return torch.allclose(self.read(ids, rows)[1], full, atol=1e-4, rtol=1e-4)
        except (AttributeError, TypeError, RuntimeError):
            return False


def copied(weights: Any) -> dict[str, Tensor]:
    """Copies of the tensors in the host's memory."""
    return {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}


def _plain_config(config: Any) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return sorted(value) if isinstance(value, set) else str(value)

    return json.loads(json.dumps(config.to_dict() | {"inference_mode": True}, default=plain))


def learner_for(
    learners: dict[tuple[str, int, int], Learner], folder: Path | str, adapter: AdapterState | None,
    plan: TrainingPlan, device: str = "cpu",
) -> Learner:  # fmt: skip
    """The learner of a drafter folder, built on first use and kept in `learners`. An adapter keeps the rank
    of its first version (0: full)."""
    rank = int(adapter.config.get("r", 0)) if adapter else plan.rank
    key = (str(folder), rank, plan.seed)
    if key not in learners:
        learners.clear()  # one model in memory at a time
        learners[key] = Learner(Path(folder), rank, plan.seed, device)
    return learners[key]
