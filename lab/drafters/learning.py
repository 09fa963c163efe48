"""What an adapter line learns from a target's answers: prompts of several sets in a random order teach, and
prompts that were kept tell."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lab.drafters.prompt_sets import Prompt, some
from omnidemo.adapters.adapter_state import AdapterState
from omnidemo.config import Settings
from omnidemo.distill.learner import Learner, learner_for
from omnidemo.distill.train_step import agree, evaluate
from omnidemo.measuring.line import Line
from omnidemo.measuring.report_tables import markdown_table
from omnidemo.pair.pair import Pair
from omnidemo.records import Trace

FIGURES = ("overlap", "same first", "accepted")
HEADINGS = ("requests", "set", *FIGURES)


@dataclass(frozen=True, slots=True)
class Reading:
    """After so many requests, of one set: the mean change of each of FIGURES against the fresh drafter, and
    its standard error.

    Agreement is that of `distill/trace_agreement.py`: Σ min(p, q), the same first choice, and at the
    temperature of the answer how probably a guess would be accepted, its repetition penalty apart."""

    requests: int
    source: str
    means: tuple[float, ...]
    errors: tuple[float, ...]

    def cells(self) -> list[str]:
        pairs = zip(self.means, self.errors, strict=True)
        return [str(self.requests), self.source, *(f"{mean:+.4f} ± {error:.4f}" for mean, error in pairs)]


def recorded(pair: Pair, prompts: Sequence[Prompt], most: int, length: int) -> list[Trace]:
    """The traces of answers in the target's own manner, at most so many prompts and tokens."""
    found: list[Trace] = []
    pair.learners.append(found.append)
    try:
        for seed, prompt in enumerate(some(prompts, most)):
            pair.generate(prompt.text, max_new_tokens=length, seed=seed)
    finally:
        pair.learners.remove(found.append)
    return found


def learn(
    folder: Path, settings: Settings, taught: Mapping[str, Sequence[Trace]],
    kept: Mapping[str, Sequence[Trace]],
    requests: int, every: int, seed: int, direct: bool = False,
) -> Iterator[Reading]:  # fmt: skip
    """Readings of all kept sets every so many requests. `direct`: with the labels of the paper, the directly
    mapped tokens alone."""
    learners: dict[tuple[str, int], Learner] = {}
    line = Line(folder, settings.model_copy(update={"head": "off"}), learners, seed)
    fresh = {
        name: _figures(learner_for(learners, folder, None, line.plan), None, traces)
        for name, traces in kept.items()
    }
    for count, trace in enumerate(_in_turns(taught, requests, seed), 1):
        line.observe(replace(trace, first_ids=None, first_p=None) if direct else trace)
        if count % every and count != requests:
            continue
        for name, traces in kept.items():
            change = (
                _figures(learner_for(learners, folder, line.adapter, line.plan), line.adapter, traces)
                - fresh[name]
            )
            errors = change.std(axis=0) / np.sqrt(len(change))
            yield Reading(count, name, tuple(change.mean(axis=0).tolist()), tuple(errors.tolist()))


def table(readings: Sequence[Reading]) -> str:
    return markdown_table(HEADINGS, [reading.cells() for reading in readings])


def _in_turns(sets: Mapping[str, Sequence[Trace]], requests: int, seed: int) -> Iterator[Trace]:
    """So many answers: one of each set in a random order, again and again; each set in an order of its
    own."""
    chance = random.Random(seed)
    orders = {name: chance.sample(list(traces), len(traces)) for name, traces in sets.items()}
    for count in range(requests):
        turn, place = divmod(count, len(orders))
        if not place:
            names = chance.sample(list(orders), len(orders))
        order = orders[names[place]]
        yield order[turn % len(order)]


def _figures(learner: Learner, adapter: AdapterState | None, traces: Sequence[Trace]) -> np.ndarray:
    """FIGURES [traces, 3]."""
    agreed = agree(learner, adapter, traces)
    accepted = [float(evaluate(learner, [adapter], [trace])[0].mean()) for trace in traces]
    return np.array(
        [(one.overlap, one.same_first, chance) for one, chance in zip(agreed, accepted, strict=True)]
    )
