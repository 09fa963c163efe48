"""An answer as JSON lines for the browser: its head, its live figures and its end. Pure: no gradio.

The lines of the rounds and tokens between them are made in `store/recorded_rounds.py`, for live and recorded answers alike. An answer is
an append-only string; each line is one JSON object with a key `k`:

    run     first line: run, method, target, drafter, and the temperature and top_p that were asked for
    t, x, r the rounds: see `recorded_rounds.round_lines`
    f       figures so far (names of Generation.metrics) and counts per class
    end     finish, version, figures, counts, text (the answer, for a check against the joined tokens);
            plain: microseconds of a plain round beside these ones and the time (UNIX) of the newest one, where they are known;
            line: the adapter line that drafted, why: the router's reason, note: a sentence on how it was decoded
    error   text: cause and next step
"""

from __future__ import annotations

from collections.abc import Mapping

from omnidemo.metrics import measure
from omnidemo.records import Generation, Round
from omnidemo.store.recorded_rounds import finite, json_line


class Tally:
    """Counts and live figures of one answer, built up round by round."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("direct", "ngram", "corrected", "bonus", "plain", "discarded"), 0)
        self.rounds: list[Round] = []
        self.first: float | None = None

    def add(self, record: Round, elapsed: float) -> None:
        """Count one round; `elapsed` is the time since the request, in seconds."""
        if self.first is None and record.tokens:
            self.first = elapsed
        self.rounds.append(record)
        for token in record.tokens:
            self.counts[token.source] += 1
        self.counts["discarded"] += len(record.discarded)

    def line(self) -> str:
        """The figures so far, by the definitions of `metrics.py`; the time is the sum of the rounds'."""
        seconds = sum(record.seconds.get("total", 0.0) for record in self.rounds)
        return json_line("f", f=_figures(measure(self.rounds, seconds, self.first)), c=self.counts)


def plain_pace(metrics: Mapping[str, float | None]) -> list[float | None] | None:
    """[microseconds of a plain round, UNIX time of the newest one], None where no plain round is known."""
    seconds = metrics.get("plain_seconds")
    return None if seconds is None else [finite(1e6 * seconds, 1), finite(metrics.get("plain_at"), 1)]


def _figures(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: finite(value) for key, value in metrics.items()}


def end_line(generation: Generation, tally: Tally, **about: str) -> str:
    """The last line of an answer: the engine's own figures, which replace the live ones, and the fields `about` it."""
    return json_line(
        "end",
        finish=generation.finish_reason,
        method=generation.method,
        version=generation.adapter_version,
        cache=generation.cache_entries,
        prompt=generation.prompt_tokens,
        seed=generation.seed,
        text=generation.text,
        plain=plain_pace(generation.metrics),
        f=_figures(generation.metrics),
        c=tally.counts,
        **about,
    )
