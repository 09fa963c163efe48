"""The settings by which a line learns: which of them may change while it runs, and the training plan that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from omnidemo.config import Settings
from omnidemo.runtime.training import Plan

ADAPTABLE = ["training", "patience", "cost_aware", "update_interval", "steps_per_update", "batch_size", "learning_rate", "schedule"]
ADAPTABLE += ["schedule_steps", "lora_rank", "divergence", "jsd_beta", "ngram_loss", "ngram_weight", "head"]
ADAPTABLE += ["buffer_positions", "buffer_order"]


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with changes (names of `ADAPTABLE`). ValueError, one sentence, for a name or value that is not possible."""
    wrong = sorted(set(changes) - set(ADAPTABLE))
    if wrong:
        raise ValueError(f"{', '.join(wrong)} cannot be changed while the app runs; choose from {', '.join(ADAPTABLE)}.")
    try:
        return Settings.model_validate(settings.model_dump() | dict(changes))
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{first['loc'][0]} = {first['input']!r} is not possible: {first['msg']}.") from None


def plan_of(settings: Settings, seed: int = 0, slower: float = 1.0) -> Plan:
    """The settings as a training plan; `slower` is a factor of the learning rate."""
    return Plan(
        rank=settings.lora_rank,
        learning_rate=settings.learning_rate * slower,
        schedule=settings.schedule,
        schedule_steps=settings.schedule_steps,
        divergence=settings.divergence,
        jsd_beta=settings.jsd_beta,
        ngram_loss=settings.ngram_loss,
        ngram_weight=settings.ngram_weight,
        errors_only=settings.buffer_positions == "errors",
        head=settings.head,
        seed=seed,
    )
