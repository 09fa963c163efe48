"""A feature drafter along kept answers, beside a drafter with a vocabulary of its own: `python -m lab
feature-scores`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lab.drafters.ceilings import Prices
from lab.drafters.features.feature_training import AHEAD, Steps
from lab.drafters.features.layer import Features, load
from lab.drafters.features.recorder import Walk, walks
from lab.drafters.guesses import Guesses
from lab.drafters.score import ALL, table

# By guesses ahead [AHEAD, n], of an answer of n tokens: what a chain that begins at a token guesses so many
# further on, where all before it was right; NaN beyond the end. First Σ min(p, q) at temperature 1, then
# whether the first choice is what was written.
Ahead = tuple[NDArray[np.float64], NDArray[np.float64]]


def known(guesses: Guesses) -> Ahead:
    """Of a drafter that has read all before each token, however far ahead it guesses."""

    def shifted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        padded = np.concatenate([values, np.full(AHEAD, np.nan)])
        return np.stack([padded[ahead : ahead + len(values)] for ahead in range(AHEAD)])

    return shifted(guesses.agreed), shifted(guesses.right.astype(float))


@torch.inference_mode()
def guess_ahead(model: Features, walk: Walk) -> Ahead:
    steps, count = Steps.of([walk], model.places), len(walk.answer.ids)
    agreed, right = np.full((2, AHEAD, count), np.nan)
    states = model.enters(steps.states[:count].float())
    for ahead in range(AHEAD):
        places = (torch.arange(count) + ahead).clamp(max=count - 1)
        states, logits = model.step(states, steps.tokens[places])
        both = torch.minimum(steps.probs[places], logits.softmax(-1).gather(-1, steps.labels[places])).sum(-1)
        first, within = model.named["kept"].long()[logits.argmax(-1)], count - ahead
        agreed[ahead, :within] = both[:within]
        right[ahead, :within] = (first == torch.tensor(walk.answer.ids)[places])[:within]
    return agreed, right


def count_rounds(right: NDArray[np.float64]) -> int:
    """Rounds of `AHEAD` guesses, right or not, that it takes to write a greedy answer."""
    rounds, at = 0, 0
    while at < right.shape[1]:
        wrong = np.flatnonzero(~(right[:, at] > 0))
        at += 1 + (int(wrong[0]) if len(wrong) else AHEAD)
        rounds += 1
    return rounds


def score(
    path: Path, shards: Path, states: Path, target: str, other: Mapping[str, Guesses], name: str,
    prices: Prices, step: float, report: Callable[[str], None],
) -> None:  # fmt: skip
    """Report tables of the drafter in `path`, whose step takes `step` ms, and of another one's guesses by
    order, whose step is that of the prices, along the answers that both can guess."""
    model = load(path)
    both = [
        (walk, guess_ahead(model, walk), known(other[walk.answer.order]))
        for walk in walks(shards, target, states)
        if walk.answer.order in other
    ]
    chains, speeds = [], []
    for one in [*sorted({walk.answer.set for walk, *_ in both}), ALL]:
        chosen = [each for each in both if one in (each[0].answer.set, ALL)]
        mine = np.nanmean(np.concatenate([own for _, (own, _), _ in chosen], 1), 1)
        average = np.nanmean(np.concatenate([agreed for *_, (agreed, _) in chosen], 1))
        changes = [
            (np.nanmean(own[0] - theirs[0]), np.nanmean(own - theirs)) for _, (own, _), (theirs, _) in chosen
        ]
        agreed = [f"{mean:.3f}" for mean in (*mine, average)]
        chains.append([one, f"{len(chosen)}", *agreed, *_with_errors(np.array(changes))])
        greedy = [each for each in chosen if each[0].answer.temperature <= 0]
        speeds.append([one, f"{len(greedy)}", *_speeds(greedy, prices, step)])
    heads = ["set", "answers", *(f"{ahead + 1} ahead" for ahead in range(AHEAD)), name]
    report(table([*heads, "1 ahead, change", "1 to 4 ahead, change"], chains))
    heads = ["set", "greedy answers", "tokens a round", f"of {name}", "ms a token", f"of {name}"]
    report("\n" + table([*heads, "tokens a second, change"], speeds))


def _speeds(greedy: Sequence[tuple[Walk, Ahead, Ahead]], prices: Prices, step: float) -> list[str]:
    tokens = sum(len(walk.answer.ids) for walk, *_ in greedy)
    rounds = np.array([(count_rounds(own), count_rounds(theirs)) for _, (_, own), (_, theirs) in greedy])
    spent = rounds * [prices.of_rows(AHEAD + 1)[-1] + AHEAD * one for one in (step, prices.step)]
    cells = [*(tokens / rounds.sum(0)), *(spent.sum(0) / tokens)]
    return [*(f"{cell:.2f}" for cell in cells), *_with_errors((spent[:, 1] / spent[:, 0] - 1)[:, None])]


def _with_errors(values: NDArray[np.float64]) -> list[str]:
    errors = values.std(0, ddof=1) / len(values) ** 0.5
    return [f"{mean:+.3f} ± {error:.3f}" for mean, error in zip(values.mean(0), errors, strict=True)]
