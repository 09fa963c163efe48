"""The settings of training, a part of `Settings`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class LearningSettings(BaseSettings):
    """When and how adapter lines learn."""

    # fmt: off
    training: Literal["idle", "concurrent", "inline", "off"] = Field("idle", description=
        "When the drafter trains: idle (no request is running), concurrent (beside requests), inline (at the"
        " end of each answer), off.")
    patience: float = Field(20.0, ge=0, le=1e6, description=
        "Training `idle`: seconds for which unbroken answers hold up an update. Then it runs a quarter of the"
        " time.")
    update_interval: int = Field(4, ge=1, le=1_000_000, description=
        "Answers of a line between two updates.")
    steps_per_update: int = Field(12, ge=1, le=1_000_000, description=
        "Optimiser steps of an update; fewer by default for targets that the drafter was trained on.")
    batch_size: int = Field(8, ge=1, le=1024, description="Requests in one optimiser step.")
    learning_rate: float = Field(5e-4, gt=0, le=1, description=
        "AdamW learning rate of a line's first updates; lower by default for targets that the drafter was"
        " trained on. Clearly better versions double it, up to 0.0005.")
    schedule: Literal["constant", "cosine"] = Field("constant", description=
        "Learning rate over the steps of a line.")
    schedule_steps: int = Field(600, ge=1, le=100_000_000, description=
        "Steps over which `cosine` falls to a tenth.")
    lora_rank: int = Field(128, ge=0, le=1024, description="Rank of the LoRA adapter; 0 trains all weights.")
    divergence: Literal["forward", "reverse", "jsd", "tv", "acceptance", "nll"] = Field(
        "acceptance", description=
        "Loss on each first token: forward or reverse KL divergence, jsd (Jensen-Shannon), tv (total"
        " variation), acceptance (its −log) or nll (−log likelihood).")
    jsd_beta: float = Field(0.5, gt=0, lt=1, description="β of the Jensen-Shannon divergence.")
    ngram_loss: Literal["nll", "dynamic", "kl"] = Field("nll", description=
        "Loss on n-grams: nll (−log likelihood), dynamic (the same, weighted by the target's probability)"
        " or kl (the approximate KL of equation 2).")
    ngram_weight: float = Field(0.2, ge=0, le=1000, description="λ: weight of the n-gram loss.")
    head: Literal["off", "joint", "interleaved"] = Field("interleaved", description=
        "Policy `head`: how the acceptance head is trained.")
    top_k_traces: int = Field(128, ge=1, le=65_536, description=
        "Target probabilities kept per answer position for training.")
    buffer_positions: Literal["all", "errors"] = Field("all", description=
        "Learn from all positions, or from errors of the drafter.")
    buffer_order: Literal["mixed", "newest", "informative", "uniform"] = Field("mixed", description=
        "Which answers an update draws: mixed (half new, half old), newest, informative (mostly the badly"
        " guessed) or uniform (any).")
    buffer_mb: int = Field(64, ge=1, le=65_536, description="Most memory of the replay buffer.")
    training_seed: int = Field(0, ge=0, lt=2**31, description=
        "Seed of the trainer: which answers its steps draw, and how a new adapter starts.")
    # fmt: on
