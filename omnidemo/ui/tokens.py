"""Records → JSON lines for the browser. Pure: no gradio, no clock.

A run (one answer) is an append-only string of lines; each line is one JSON object with a key `k`:

    run     first line: run, method, target, drafter, version
    t       an emitted token: i id, t text, s source, r round, n position, p, q, a (acceptance), g pieces, gi their ids
    x       a discarded draft: as `t`; j true for the one that was judged and rejected
    f       figures so far (names of Generation.metrics) and counts per class
    end     finish, version, figures, counts, text (the answer, for a check against the joined tokens);
            line: the adapter line that drafted, why: the router's reason, note: a sentence on how it was decoded
    error   text: cause and next step
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from omnidemo.core.metrics import measure
from omnidemo.records import Generation, Round, Token


def line(kind: str, **fields: Any) -> str:
    """One JSON line: ASCII only, so that lone surrogates and U+2028 travel unharmed, and without a `<`, so that no tag is in it."""
    return json.dumps({"k": kind, **fields}, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c") + "\n"


def finite(value: float | None, digits: int = 4) -> float | None:
    """A number JSON can carry, or None."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def _token(kind: str, token: Token, round_index: int, position: int, **extra: Any) -> str:
    fields: dict[str, Any] = {"i": token.id, "t": token.text, "s": token.source, "r": round_index, "n": position, "p": finite(token.p)}
    if token.q is not None:
        fields["q"] = finite(token.q)
    if token.accept is not None:
        fields["a"] = finite(token.accept)
    if token.pieces:
        fields["gi"] = list(token.pieces)
        fields["g"] = list(token.piece_texts)
    return line(kind, **fields, **extra)


def round_lines(record: Round) -> Iterator[str]:
    """The lines of one round in reading order: accepted, then discarded, then what the target wrote instead."""
    split = len(record.tokens)
    if record.discarded:
        split = next((i for i, token in enumerate(record.tokens) if token.source not in ("direct", "ngram")), split)
    for position, token in enumerate(record.tokens[:split]):
        yield _token("t", token, record.index, position)
    rejected = record.judged > record.accepted
    for offset, token in enumerate(record.discarded):
        yield _token("x", token, record.index, split + offset, j=rejected and offset == 0)
    for position, token in enumerate(record.tokens[split:], start=split):
        yield _token("t", token, record.index, position)


class Tally:
    """Counts and live figures of one answer, built up round by round."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("direct", "ngram", "accepted", "corrected", "bonus", "plain", "discarded"), 0)
        self.rounds: list[Round] = []
        self.first: float | None = None

    def add(self, record: Round, elapsed: float) -> None:
        """Count one round; `elapsed` is the time since the request, in seconds."""
        if self.first is None and record.tokens:
            self.first = elapsed
        self.rounds.append(record)
        for token in record.tokens:
            self.counts[token.source] += 1
        self.counts["accepted"] = self.counts["direct"] + self.counts["ngram"]
        self.counts["discarded"] += len(record.discarded)

    def line(self) -> str:
        """The figures so far, by the definitions of `core.metrics`; the time is the sum of the rounds'."""
        seconds = sum(record.seconds.get("total", 0.0) for record in self.rounds)
        return line("f", f=_figures(measure(self.rounds, seconds, self.first)), c=self.counts)


def _figures(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: finite(value) for key, value in metrics.items()}


def end_line(generation: Generation, tally: Tally, **about: str) -> str:
    """The last line of an answer: the engine's own figures, which win over the live ones, and what is said `about` it."""
    return line(
        "end",
        finish=generation.finish_reason,
        method=generation.method,
        version=generation.adapter_version,
        cache=generation.cache_entries,
        prompt=generation.prompt_tokens,
        seed=generation.seed,
        text=generation.text,
        f=_figures(generation.metrics),
        c=tally.counts,
        **about,
    )


def legend(classes: Mapping[str, tuple[str, str]]) -> list[dict[str, str]]:
    """The legend for the browser: key, title, help, in the order of the page."""
    return [{"key": key, "title": title, "help": text} for key, (title, text) in classes.items()]
