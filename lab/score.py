"""How well a drafter guesses recorded answers: agreement, and tokens a round where drafts have a fixed length.

At temperature 0 the tokens a round are exactly those of `ngram-exact` once all n-grams of the answer are known: a draft is right as long as
the drafter's most probable tokens, given the text so far, spell the target's. At temperature 1 each token of the recorded answer is
accepted with the probability Σ min(p, q) of its place, drawn with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from lab.shards import Recorded
from lab.spelling import Spelling
from omnidemo.distill.losses import positions
from omnidemo.distill.trace_agreement import agreement
from omnidemo.records import Trace


@dataclass(slots=True)
class Scores:
    """Of one set. `agreement` and `rounds` are sums over answers' tokens; `rounds[length]` [drafted at temperature 0, at 1]."""

    answers: int = 0
    tokens: int = 0
    agreed: float = 0.0
    same: float = 0.0
    direct: int = 0
    written: dict[tuple[int, int], int] = field(default_factory=dict)
    rounds: dict[tuple[int, int], int] = field(default_factory=dict)

    def add_rounds(self, temperature: int, length: int, tokens: int, rounds: int) -> None:
        key = temperature, length
        self.written[key] = self.written.get(key, 0) + tokens
        self.rounds[key] = self.rounds.get(key, 0) + rounds

    def tokens_a_round(self, temperature: int, length: int) -> float:
        return self.written.get((temperature, length), 0) / max(1, self.rounds.get((temperature, length), 0))


def trace_of(answer: Recorded, spelling: Spelling) -> Trace | None:
    """The trace that an answer would have left behind; None for one that the drafter cannot spell."""
    assert answer.top is not None and answer.logprobs is not None
    spelled = spelling.spell(answer.prompt, answer.ids)
    if not spelled.owners:
        return None
    drafters = np.array(spelling.map.drafters)
    probs = np.exp(answer.logprobs.astype(np.float32))
    top = np.where(answer.top < len(drafters), drafters[np.minimum(answer.top, len(drafters) - 1)], -1)
    may = np.array(spelling.map.may_draft)
    top = np.where((top >= 0) & may[top], top, -1)
    n = len(answer.ids)
    starts, lengths = np.zeros(n, np.int32), np.zeros(n, np.int32)
    starts[spelled.owners] = spelled.starts[:-1]
    lengths[spelled.owners] = np.diff(spelled.starts)
    order = np.argsort(top < 0, axis=1, kind="stable")  # what has no direct map last: padding points at the first
    own = np.where(answer.top == np.array(answer.ids)[:, None], probs, 0.0).sum(1)
    top, probs = np.take_along_axis(top, order, 1), np.take_along_axis(probs, order, 1)
    lengths[top[:, 0] < 0] *= lengths[top[:, 0] < 0] > 1
    return Trace(
        drafter_ids=np.array(spelled.ids, np.int32), starts=starts, lengths=lengths, accepted=np.zeros(n, bool), p=own.astype(np.float32),
        top_ids=top.astype(np.int32), top_p=np.where(top >= 0, probs, 0.0).astype(np.float32), temperature=answer.temperature,
    )  # fmt: skip


@torch.inference_mode()
def guesses(model: Any, trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """[n] Σ min(p, q) at temperature 1, and [n] whether the drafter's most probable tokens spell the target's most probable one; 0 for
    positions without a spelling. `model` is of `transformers`."""
    at = positions([trace])
    logits = model(torch.from_numpy(trace.drafter_ids.astype(np.int64))[None]).logits[0]
    agreed, same = agreement(logits[at.rows[:, 1]], at)
    places = np.flatnonzero((trace.starts >= 1) & (trace.lengths >= 1))
    single = trace.lengths[places] == 1
    places = np.concatenate([places[single], places[~single]])  # the order of `positions`
    found = np.zeros((2, len(trace.starts)))
    found[0, places], found[1, places] = agreed.numpy(), same.numpy()
    return found[0], found[1]


def count_rounds(accepts: Sequence[bool], lengths: Sequence[int], budget: int) -> int:
    """Rounds that it takes to write tokens of so many drafter tokens each, with drafts of at most `budget` of these, where a guess at each
    place is accepted or not. The last round's draft ends with the answer."""
    rounds, at = 0, 0
    while at < len(accepts):
        left = budget
        while at < len(accepts) and accepts[at] and 0 < lengths[at] <= left:
            left -= lengths[at]
            at += 1
        rounds += 1
        at += 1  # what the target writes itself
    return rounds


def score(model: Any, answers: Iterable[Recorded], spelling: Spelling, budgets: Sequence[int] = (4, 8), seed: int = 0) -> dict[str, Scores]:
    """Scores of each set of answers."""
    found: dict[str, Scores] = {}
    generator = np.random.default_rng(seed)
    for answer in answers:
        trace = trace_of(answer, spelling)
        if trace is None:
            continue
        agreed, same = guesses(model, trace)
        one = found.setdefault(answer.set, Scores())
        one.answers += 1
        one.tokens += len(agreed)
        one.agreed += float(agreed.sum())
        one.same += float(same.sum())
        one.direct += int((trace.lengths == 1).sum())
        greedy = answer.temperature <= 0
        accepts = same > 0 if greedy else generator.random(len(agreed)) < agreed
        for budget in budgets:
            one.add_rounds(0 if greedy else 1, budget, len(agreed), count_rounds(accepts.tolist(), trace.lengths.tolist(), budget))
    return found


def table(found: dict[str, Scores], budgets: Sequence[int] = (4, 8)) -> str:
    heads = ["set", "answers", "tokens", "direct", "agreement", "same", *(f"T{t} k{k}" for t in (0, 1) for k in budgets)]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for name, one in sorted(found.items()):
        shares = (one.direct / one.tokens, one.agreed / one.tokens, one.same / one.tokens)
        rounds = [one.tokens_a_round(t, k) for t in (0, 1) for k in budgets]
        cells = [name, str(one.answers), str(one.tokens), *(f"{x:.3f}" for x in shares), *(f"{x:.2f}" for x in rounds)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
