"""Vocabulary trimming: the drafter guesses only what the target has often written, and its output layer is
smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.drafters.ceilings import Prices, simulate
from lab.drafters.guesses import Guesses, guess, trace_of
from lab.drafters.shards import Recorded
from lab.drafters.spelling import Spelling
from lab.sources.early_exit import total
from lab.sources.outcome import LEAST, Outcome
from lab.sources.pass_bytes import Parts
from omnidemo.distill.losses import MASKED
from omnidemo.vocab.vocabulary import Vocabulary

COLUMNS = [
    "most frequent", "output rows", "step ÷ whole step",
    *(f"{what}, {side}" for side in ("in the domain", "outside") for what in ("coverage", "right",
        "tokens/s")),
]  # fmt: skip


@dataclass(slots=True)
class Side:
    """What is measured in the domain of the counts, or outside."""

    covered: int = 0
    emitted: int = 0
    found: list[Guesses] = field(default_factory=list)

    def figures(self, prices: Prices, ends: Sequence[int]) -> list[float]:
        """Coverage, guesses right, tokens a second; none where nothing was measured."""
        tokens = sum(len(one.right) for one in self.found)
        if not tokens:
            return []
        sums = total(simulate(self.found, prices, ends, ("drafter",)), "drafter")
        right = sum(int(one.right.sum()) for one in self.found) / tokens
        return [self.covered / self.emitted, right, 1e3 * sums.tokens / sums.milliseconds]


def cells(figures: Sequence[float]) -> list[str]:
    return (
        [f"{one:{form}}" for one, form in zip(figures, (".3f", ".3f", ".0f"), strict=True)]
        if figures
        else [""] * 3
    )


def always(vocabulary: Vocabulary) -> set[int]:
    """What a drafter keeps whatever is counted: single bytes, and all tokens without a text, those of roles
    and ends among them."""
    return {one for one, token in enumerate(vocabulary.tokens) if token is None or len(token) == 1}


def keep(counts: Counter[int], size: int, rows: int, needed: set[int]) -> NDArray[np.bool_]:
    """The `size` most frequent of all ids, and those that are needed. Of equals the first ids, which the
    tokenizer learned first."""
    kept = np.zeros(rows, bool)
    kept[sorted(range(rows), key=lambda one: (-counts[one], one))[:size]] = True
    kept[[one for one in needed if one < rows]] = True
    return kept


@torch.inference_mode()
def logits_along(model: Any, ids: NDArray[np.int32]) -> torch.Tensor:
    return model(torch.from_numpy(ids.astype(np.int64))[None]).logits


def trimming(
    model: Any, spelling: Spelling, drafter: Vocabulary, answers: Sequence[Recorded], sizes: Sequence[int],
    parts: Parts, prices: Prices,
    ends: Sequence[int],
) -> Outcome:  # fmt: skip
    """Each set is the domain once: its first half is counted, the second halves of all sets are measured. A
    step of the drafter, whose bytes are `parts`, costs `prices.step`; one with fewer output rows is taken to
    cost its share of the bytes."""
    rows, needed = model.lm_head.weight.shape[0], always(drafter)
    traces = [(answer, found) for answer in answers if (found := trace_of(answer, spelling)) is not None]
    sets: dict[str, list[tuple[Recorded, NDArray[np.int32], int]]] = {}
    for answer, (trace, first) in traces:
        sets.setdefault(answer.set, []).append((answer, trace.drafter_ids, first))
    counted = {
        name: Counter(one for _, ids, first in some[: len(some) // 2] for one in ids[first:].tolist())
        for name, some in sets.items()
    }
    grid = [*sorted(size for size in set(sizes) if size < rows), rows]
    kept = {
        (name, size): keep(counts, size, rows, needed) for name, counts in counted.items() for size in grid
    }
    sides = {(size, inside): Side() for size in grid for inside in (True, False)}
    for name, some in sets.items():
        for answer, ids, first in some[len(some) // 2 :]:
            logits = logits_along(model, ids)
            for (domain, size), mask in kept.items():
                _measure(sides[size, domain == name], answer, ids[first:], logits, mask, spelling, domain)
    lines, speeds = list[list[str]](), dict[int, list[float]]()
    for size in grid:
        output = sum(int(kept[name, size].sum()) for name in sets) / max(1, len(sets))
        share = 1 - parts.head / parts.whole * (1 - output / rows)
        own = replace(prices, step=prices.step * share)
        inside, outside = (sides[size, where].figures(own, ends) for where in (True, False))
        speeds[size] = [side[2] for side in (inside, outside) if side]
        lines.append(
            [
                f"{size:,}" if size < rows else "all",
                f"{output:,.0f}",
                f"{share:.2f}",
                *cells(inside),
                *cells(outside),
            ]
        )
    return Outcome("trimming", "Vocabulary trimming", COLUMNS, lines, _says(speeds, grid))


def _measure(
    side: Side, answer: Recorded, ids: NDArray[np.int32], logits: torch.Tensor, kept: NDArray[np.bool_],
    spelling: Spelling, domain: str
) -> None:  # fmt: skip
    masked = logits.masked_fill(~torch.from_numpy(kept), MASKED)
    found = guess(lambda _: SimpleNamespace(logits=masked), answer, spelling)
    assert found is not None
    # Lines of other domains are others: what one learned of its drafts is not another's.
    found.answer = replace(answer, set=f"{domain} for {answer.set}")
    side.found.append(found)
    side.covered += int(kept[ids].sum())
    side.emitted += len(ids)


def _says(speeds: Mapping[int, Sequence[float]], grid: Sequence[int]) -> str:
    best = max(grid, key=lambda size: speeds[size][0])
    gains = [own / whole for own, whole in zip(speeds[best], speeds[grid[-1]], strict=True)]
    said = (
        f"the best size in the domain, {best:,}, makes {gains[0]:.2f} × the tokens/s of all {grid[-1]:,}"
        " there"
    )
    said += "".join(f", {gain:.2f} × outside" for gain in gains[1:])
    return (
        f"Trimming brings nothing here: {said}."
        if gains[0] < LEAST
        else f"Trimming could bring something: {said}."
    )
