"""Every setting once: name, type, default, help. Each is read from the environment as `OMNIDEMO_<NAME>`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of the app and the command line. Unknown `OMNIDEMO_*` names are refused by `check_environment`."""

    model_config = SettingsConfigDict(env_prefix="OMNIDEMO_", extra="forbid")

    target: str = Field("bundled/a", description="Target model at start: bundled name, Hub id or local folder.")
    drafter: str = Field("bundled/drafter", description="Drafter model: bundled name, Hub id or local folder.")
    method: str = Field("ngram-exact", description="Decoding method at start.")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:N, mps, or a device map such as `balanced`.")
    dtype: str = Field("auto", description="auto, float32, bfloat16 or float16; auto is float32 on a CPU, the model's own elsewhere.")
    quantization: Literal["", "4bit", "8bit"] = Field("", description="Weights of the target through bitsandbytes; CUDA only.")
    threads: int = Field(0, ge=0, description="CPU threads of a forward pass; 0 picks by the model's size.")
    draft_length: int = Field(4, ge=0, le=32, description="Drafter tokens per round.")
    max_new_tokens: int = Field(256, ge=1, description="Longest answer, in target tokens.")

    storage: Path = Field(Path("storage"), description="Folder of the database and the adapters.")
    database_url: str = Field("", description="SQLAlchemy URL; empty: SQLite inside the storage folder.")
    backup: str = Field("", description="Folder that receives a copy of the SQLite database and adapters, such as /data on a Space.")
    keep_text: bool = Field(True, description="Store prompts and answers in the history (sessions can opt out by themselves).")
    adapters_kept: int = Field(20, ge=2, description="Adapter versions kept on disk per line; older files are pruned.")
    cache_size: int = Field(20_000, ge=0, description="Most n-grams kept per pair; 0 switches merging off.")
    cache_policy: Literal["lfu", "lru"] = Field("lfu", description="Which n-gram leaves a full cache first.")
    warm_start: bool = Field(False, description="Fill the n-gram cache with every spellable target token at first load.")

    training: Literal["idle", "inline", "off"] = Field("idle", description="When the drafter learns: while idle, after each answer, never.")
    update_interval: int = Field(4, ge=1, description="Requests between two training updates.")
    steps_per_update: int = Field(12, ge=1, description="Optimiser steps of one update.")
    batch_size: int = Field(8, ge=1, description="Requests in one optimiser step.")
    learning_rate: float = Field(5e-4, gt=0, description="AdamW learning rate of the adapter.")
    lora_rank: int = Field(128, ge=1, description="Rank of the LoRA adapter.")
    ngram_weight: float = Field(0.2, ge=0, description="λ: weight of the n-gram loss.")
    top_k_traces: int = Field(128, ge=1, description="Target probabilities kept per answer position for training.")
    buffer_mb: int = Field(64, ge=1, description="Most memory of the replay buffer.")

    host: str = Field("127.0.0.1", description="Address the app listens on; 0.0.0.0 for every interface.")
    port: int = Field(7860, ge=0, description="Port of the app; 0 picks a free one.")
    share: bool = Field(False, description="Ask Gradio for a public link.")
    auth: str = Field("", description="user:password that the app asks for; empty: none.")
    queue_size: int = Field(32, ge=1, description="Most requests that wait; more get a clear refusal.")
    trust_hub: bool = Field(True, description="Allow downloads from the Hugging Face Hub (safetensors only, no remote code).")
