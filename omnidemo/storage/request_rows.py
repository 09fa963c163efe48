"""The record of a request, and the rows of it and its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnidemo.core.records import STAGES, Generation, Round
from omnidemo.storage.tables import REQUESTS, number, utc


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request for the store. `prompt`: None where no texts are kept."""

    session: str
    target: str
    drafter: str
    domain: str
    method: str
    prompt: str | None
    generation: Generation
    settings: Mapping[str, Any]
    created_at: str
    kind: Literal["chat", "traffic", "api"] = "chat"
    cache_entries: int = 0
    cache_bytes: int = 0
    topic: str | None = None  # the router's label
    remembered: bool = False  # whether later answers may copy from it


def drafted_per_round(metrics: Mapping[str, Any]) -> float | None:
    """Mean drafter tokens drawn per round of an answer; None without a round."""
    drafted, rounds = metrics.get("drafted"), metrics.get("rounds")
    return drafted / rounds if drafted is not None and rounds else None


def request_row(record: RequestRecord, pair_id: int) -> dict[str, Any]:
    """The row of `requests` for a record; without a prompt it has no answer either."""
    generation = record.generation
    metrics = {name: number(value) for name, value in generation.metrics.items()}
    row: dict[str, Any] = {name: value for name, value in metrics.items() if name in REQUESTS.c}
    row |= {
        name: getattr(record, name)
        for name in ("kind", "method", "domain", "cache_bytes", "prompt", "topic", "remembered")
    }
    row |= {name: getattr(generation, name) for name in ("adapter_version", "prompt_tokens", "finish_reason")}
    return row | {
        "session_id": record.session,
        "pair_id": pair_id,
        "created_at": utc(record.created_at),
        "seed": None if generation.seed is None else str(int(generation.seed)),
        "tokens": len(generation.token_ids),
        "ngram_hits": sum(done.ngram_hits for done in generation.rounds),
        "copies_proposed": sum(done.copies.proposed for done in generation.rounds),
        "copied": sum(done.copies.accepted for done in generation.rounds),
        "cache_entries": record.cache_entries or generation.cache_entries,
        "settings": dict(record.settings),
        "metrics": metrics,
        "answer": None if record.prompt is None else generation.text,
        "key": generation.key or None,
    }


def round_row(done: Round, request_id: int) -> dict[str, Any]:
    """The row of `rounds` for a round; its tokens are not kept."""
    counters = ("index", "draft_length", "drafted", "proposed", "accepted", "judged", "ngram_hits")
    row = {name: getattr(done, name) for name in counters}
    row |= {f"{part}_seconds": done.seconds.get(part) for part in (*STAGES, "total")}
    row |= {"copies_proposed": done.copies.proposed, "copied": done.copies.accepted}
    return row | {"request_id": request_id, "emitted": len(done.tokens)}
