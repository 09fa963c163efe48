"""A row of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the CSV: one answer.

    seconds: the whole call, the prompt included; tokens_per_second from it. speedup, own_speedup: its ratios to `transformers`' plain
    generation and to our plain decoding, on the same prompt. The stages are milliseconds per round; of `transformers` after the first
    token, on a CPU only. bare_ms: forward passes of the same shapes with nothing around them, per round; overhead: share of the round
    that is not theirs. floor_seconds: see `floor`; over_floor: seconds over it. identical: the ids of `transformers`' plain
    generation, at temperature 0.
    """

    target: str
    topic: str
    temperature: float
    prompt_index: int
    arm: str
    method: str
    drafter: str
    policy: str
    threads: int
    prompt_tokens: int = 0
    tokens: int = 0
    seconds: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None
    own_speedup: float | None = None
    first_token_ms: float | None = None
    rounds: int = 0
    round_ms: float | None = None
    draft_ms: float | None = None
    verify_ms: float | None = None
    settle_ms: float | None = None
    other_ms: float | None = None
    bare_ms: float | None = None
    overhead: float | None = None
    tokens_per_pass: float | None = None
    acceptance_rate: float | None = None
    drafted_per_round: float | None = None
    floor_bytes: int | None = None
    floor_operations: int | None = None
    floor_seconds: float | None = None
    over_floor: float | None = None
    rss_growth_mb: float | None = None
    cuda_peak_mb: float | None = None
    identical: bool | None = None
    error: str = ""
    prompt: str = ""
