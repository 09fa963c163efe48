"""One pair of models on two backends, and what has to be the same of their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from omnidemo import Generation, Pair, Round

STORY, SUM, WINDOW = (
    "Tell me a short story about a fox.",
    "Tom has 3 apples and buys 4 more. How many has he?",
    "How do I clean a window?",
)
TEXTS = (STORY, SUM, WINDOW)
# A logit is a sum of float32 products, which in another order differs by some 1e-6 of the largest of up to
# 40, and a probability changes by as large a share as its logit does by absolute value: 1e-5 as a rule. After
# a wrong guess the context can be so strange that layers multiply it; there transformers' own float32 passes
# are off by 3e-4 from float64.
NEAR: dict[str, Any] = {"rel": 1e-3, "abs": 1e-6}

GUESSES = ("direct", "ngram", "copied", "forced")  # sources of what was proposed

Between = Callable[[Pair, Round], object]


@dataclass(frozen=True)
class Sides:
    reference: Pair
    fast: Pair
    _said: dict[str, Generation] = field(default_factory=dict)
    _serves: dict[str, bool] = field(default_factory=dict)

    @property
    def both(self) -> tuple[Pair, Pair]:
        return self.reference, self.fast

    def ask(self, prompt: Any, between: Between = lambda pair, done: None, **options: Any) -> Generation:
        """The answer of the fast side, which is that of the reference. `between` is called after each round
        of either."""
        wanted, got = (answer(pair, prompt, between, **options) for pair in self.both)
        same(wanted, got)
        return got

    def plain(self, prompt: str, **options: Any) -> Generation:
        """The answer of the reference before a test has changed anything, written once for all tests that
        need it."""
        key = repr((prompt, sorted(options.items())))
        if key not in self._said:
            self._said[key] = answer(self.reference, prompt, **options)
        return self._said[key]

    def serve(self, method: str) -> bool:
        """Whether a method serves these models, of which both sides say the same."""
        if method not in self._serves:
            found = {served(pair, method) for pair in self.both}
            assert len(found) == 1, f"{method} serves these models on one backend alone"
            self._serves[method] = found.pop()
        return self._serves[method]


def served(pair: Pair, method: str) -> bool:
    try:
        pair.generate(STORY, method=method, max_new_tokens=1, learn=False)
    except ValueError:
        return False
    return True


def answer(pair: Pair, prompt: Any, between: Between = lambda pair, done: None, **options: Any) -> Generation:
    rounds = pair.stream(prompt, **{"learn": False, "reuse": False, "max_new_tokens": 30} | options)
    seen: list[Round] = []
    while True:
        try:
            seen.append(next(rounds))
        except StopIteration as finished:
            made: Generation = finished.value
            assert made.rounds == tuple(seen)
            adds_up(made)
            return made
        between(pair, seen[-1])


def facts(made: Generation) -> list[Any]:
    """What is the same to the letter."""
    about = (
        made.token_ids,
        made.text,
        made.finish_reason,
        made.method,
        made.prompt_tokens,
        made.seed,
        made.adapter_version,
    )
    found: list[Any] = [(*about, made.cache_entries, made.domain)]
    for one in made.rounds:
        found.append(
            (one.index, one.draft_length, one.drafted, one.proposed, one.accepted, one.judged, one.ngram_hits)
        )
        found.append((one.inserts, one.finish_reason))
        found += [
            (token.id, token.text, token.source, token.pieces, token.piece_texts)
            for token in (*one.tokens, *one.discarded)
        ]
    return found


def numbers(made: Generation) -> list[float]:
    """What is the same but for rounding: p, q and the acceptance probability of all tokens; −1 where there is
    none."""
    tokens = [token for one in made.rounds for token in (*one.tokens, *one.discarded)]
    return [
        -1.0 if value is None else value for token in tokens for value in (token.p, token.q, token.accept)
    ]


def same(wanted: Generation, got: Generation) -> None:
    """One draw in some ten thousand falls within 1e-8 of the border of two tokens, so that rounding decides:
    another seed tells such a difference from a fault."""
    assert got.token_ids == wanted.token_ids
    for one, other in zip(facts(got), facts(wanted), strict=True):
        assert one == other
    for place, (number, other) in enumerate(zip(numbers(got), numbers(wanted), strict=True)):
        assert number == pytest.approx(other, **NEAR), f"number {place}"


def adds_up(made: Generation) -> None:
    """What holds of every answer, whoever made it."""
    rounds, metrics = made.rounds, made.metrics
    assert metrics["context_mismatch"] == 0
    assert [one.index for one in rounds] == list(range(len(rounds)))
    assert made.token_ids == tuple(token.id for one in rounds for token in one.tokens)
    assert made.text == "".join(one.text for one in rounds)
    ends = [one.finish_reason for one in rounds]
    assert ends[:-1] == [None] * (len(ends) - 1)
    assert made.finish_reason == (ends[-1] if ends else None) or (
        made.finish_reason == "cancelled" and not any(ends)
    )
    for one in rounds:
        sources = [token.source for token in one.tokens]
        guessed = sum(source in GUESSES for source in sources)
        written = sum(source in ("corrected", "bonus", "plain") for source in sources)
        assert one.accepted == guessed and one.accepted + written == len(one.tokens) and len(one.tokens) >= 1
        assert written <= 1 and all(source in GUESSES for source in sources[: one.accepted])
        assert (
            one.accepted <= one.judged <= one.proposed and len(one.discarded) == one.proposed - one.accepted
        )
        assert one.ngram_hits == sources.count("ngram") and all(
            token.source in GUESSES for token in one.discarded
        )
        assert "bonus" not in sources or one.accepted == one.proposed > 0
        assert ("plain" in sources) == (one.draft_length == 0) and (
            one.draft_length or not (one.drafted or one.proposed)
        )
        assert all(0 <= token.p <= 1 + 1e-6 for token in (*one.tokens, *one.discarded))
        judged = [token.accept for token in (*one.tokens, *one.discarded) if token.accept is not None]
        assert len(judged) == one.judged and all(0 <= accept <= 1 for accept in judged)
        assert (
            set(one.seconds) == {"draft", "verify", "settle", "other", "total"}
            and min(one.seconds.values()) >= 0
        )
        assert one.seconds["total"] == pytest.approx(
            sum(value for name, value in one.seconds.items() if name != "total")
        )
    for name, wanted in (
        ("tokens", len(made.token_ids)),
        ("rounds", len(rounds)),
        ("accepted", sum(one.accepted for one in rounds)),
    ):
        assert metrics[name] == wanted
    assert metrics["drafted"] == sum(one.drafted for one in rounds) and metrics["proposed"] == sum(
        one.proposed for one in rounds
    )
    if rounds:
        assert metrics["block_efficiency"] == pytest.approx(len(made.token_ids) / len(rounds))
