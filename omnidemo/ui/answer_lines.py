"""An answer as JSON lines for the browser: its head, its live figures and its end. Pure: no gradio.

The lines of the rounds and tokens between them are made in `storage/recorded_rounds.py`, for live and
recorded answers alike. An answer is an append-only string; each line is one JSON object with a key `k`:

    run     first line: run, method, target, its name, drafter, and what the text is drawn with
            (`config.SAMPLING`)
    p       before the rounds, where reading the prompt takes long: the names of `Reading`
    t, x, r the rounds: see `recorded_rounds.round_lines`
    m       Markdown (`ui/markdown_tree.py`) of the text up to here: b the blocks after those of earlier lines
            that no later line changes, o the ones after them, until the next such line
    g       at the end of an update, where it was asked for: the draft that the target checks now, of round
            r, as texts t
    f       f figures so far (names of Generation.metrics), c counts per class
    end     finish, method, version, cache (n-grams), prompt (its tokens), seed, topic, f and c as above, text
            (the answer, for a check against the joined tokens); context_tokens of context_limit (prompt and
            answer, the target's window), dropped_messages (of the chat, no longer read); line: the adapter
            line that drafted, why: the router's reason; guessing, key: of `Generation`
    error   text: cause and next step
    speed   later, by the page itself: `speed` of an answer that was measured
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from omnidemo.core.metrics import Speed, measure
from omnidemo.core.records import Generation, Reading, Round, Source
from omnidemo.storage.recorded_rounds import finite, json_line
from omnidemo.ui.code_colours import coloured
from omnidemo.ui.markdown_tree import Node

UPDATE_SECONDS = 1 / 12  # at most this often to the browser


def _counts(rounds: Sequence[Round]) -> dict[str, int]:
    """How many tokens of each class of the legend there are."""
    found = Counter(token.source for record in rounds for token in record.tokens)
    return {name: found[name] for name in get_args(Source)} | {
        "discarded": sum(len(record.discarded) for record in rounds)
    }


def reading_line(done: Reading) -> str:
    """How far the prompt is read."""
    return json_line("p", read=done.read, total=done.total, kept=done.kept)


def markdown_line(blocks: Sequence[Node], open_blocks: Sequence[Node]) -> str:
    """The blocks of the text so far, of which the open ones may still change; code in those that may not is
    cut by its colours."""
    return json_line("m", b=coloured(blocks), o=open_blocks)


def figures_line(rounds: Sequence[Round], first: float | None) -> str:
    """The figures so far, by the definitions of `metrics.py`. `first`: seconds to the first token."""
    return json_line("f", f=_figures(measure(rounds, first)), c=_counts(rounds))


def _figures(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: finite(value) for key, value in metrics.items()}


def speed(found: Speed | str | None) -> dict[str, Any] | None:
    """What the page is told of a measured speed: the median, the range that holds it, and which tokens were
    written again; of none, why; null while it is measured."""
    if not isinstance(found, Speed):
        return None if found is None else {"why": found}
    return {
        "speedup": finite(found.speedup),
        "low": finite(found.low),
        "high": finite(found.high),
        "first": found.first,
        "tokens": found.tokens,
    }


def end_line(generation: Generation) -> str:
    """The last line of an answer: the engine's own figures, which replace the live ones."""
    return json_line(
        "end",
        finish=generation.finish_reason,
        method=generation.method,
        guessing=generation.guessing,
        key=generation.key,
        version=generation.adapter_version,
        cache=generation.cache_entries,
        prompt=generation.prompt_tokens,
        context_tokens=generation.context_tokens,
        context_limit=generation.context_limit,
        dropped_messages=generation.dropped_messages,
        seed=generation.seed,
        text=generation.text,
        f=_figures(generation.metrics),
        c=_counts(generation.rounds),
        line=generation.domain,
        topic=generation.topic,
        why=generation.topic_why,
    )
