"""The settings by which a line learns: which of them may change while it runs, and the training plan that they make."""

from __future__ import annotations

from omnidemo.config import Settings
from omnidemo.distill.train_step import Plan

ADAPTABLE = ["training", "patience", "cost_aware", "update_interval", "steps_per_update", "batch_size", "learning_rate", "schedule"]
ADAPTABLE += ["schedule_steps", "lora_rank", "divergence", "jsd_beta", "ngram_loss", "ngram_weight", "head"]
ADAPTABLE += ["buffer_positions", "buffer_order"]


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
