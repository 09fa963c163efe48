"""What an adapter line learns from a target's answers: prompts of several sets teach, in a random order or
all again and again, and prompts that were kept tell."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lab.drafters.prompt_sets import Prompt, some
from lab.line import Line
from lab.measured_rows import markdown_table
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.core.records import Trace
from omnidemo.learning.distill.distiller import Distiller
from omnidemo.learning.distill.train_step import agree, evaluate
from omnidemo.models.adapters.adapter_state import AdapterState
from omnidemo.pair.pair import Pair
from omnidemo.storage.store import Store

FIGURES = ("overlap", "same first", "accepted")
ARRAYS = ("drafter_ids", "starts", "lengths", "accepted", "p", "top_ids", "top_p", "first_ids", "first_p")
HEADINGS = ("requests", "set", *FIGURES, "pace", "rolled back")


@dataclass(frozen=True, slots=True)
class Reading:
    """After so many requests (0: the fresh drafter itself), of one set: the mean change of each of FIGURES
    against the fresh drafter, and its standard error.

    Agreement is that of `learning/distill/trace_agreement.py`: Σ min(p, q), the same first choice, and at the
    temperature of the answer how probably a guess would be accepted, its repetition penalty apart. The pace
    of the line (`Evaluation.pace`) and how many versions were rolled back are those of that moment."""

    requests: int
    source: str
    means: tuple[float, ...]
    errors: tuple[float, ...]
    pace: float = 1.0
    rolled_back: int = 0

    def cells(self) -> list[str]:
        sign = "+" if self.requests else ""
        pairs = zip(self.means, self.errors, strict=True)
        return [
            str(self.requests),
            self.source,
            *(f"{mean:{sign}.4f} ± {error:.4f}" for mean, error in pairs),
            f"{self.pace:g}",
            str(self.rolled_back),
        ]


def recorded(
    pair: Pair, prompts: Sequence[Prompt], most: int, length: int, folder: Path | None = None
) -> list[Trace]:
    """The traces of answers in the target's own manner, of tasks at temperature 0, at most so many prompts
    and tokens. What is in `folder` is not answered again."""
    found: list[Trace] = []
    for prompt in some(prompts, most):
        digest = hashlib.sha256(prompt.text.encode()).hexdigest()[:24]
        path = folder / f"{digest}-{length}.npz" if folder is not None else None
        if path is not None and path.exists():
            with np.load(path) as arrays:
                kept = {name: arrays[name] for name in ARRAYS if name in arrays}
                found.append(Trace(**kept, temperature=float(arrays["temperature"])))
            continue
        pair.learners.append(found.append)
        try:
            asked = prompt.messages() if prompt.system and pair.target.chat else prompt.plain()
            heat = {} if prompt.system is None else {"temperature": 0.0}
            pair.generate(asked, max_new_tokens=length, seed=int(digest[:4], 16), **heat)
        finally:
            pair.learners.remove(found.append)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            given = {name: getattr(found[-1], name) for name in (*ARRAYS, "temperature")}
            with replacing(path) as partial, partial.open("wb") as file:
                np.savez(file, **{name: value for name, value in given.items() if value is not None})
    return found


def learn(
    folder: Path, settings: Settings, taught: Mapping[str, Sequence[Trace]],
    kept: Mapping[str, Sequence[Trace]], requests: int, every: int, seed: int, direct: bool = False,
    then: tuple[str, int] = ("", 0), epochs: int = 0,
) -> Iterator[Reading]:  # fmt: skip
    """Readings of all kept sets: of the fresh drafter, and every so many requests. `direct`: with the labels
    of the paper, the directly mapped tokens alone. `then`: after the requests so many of one set. `epochs`:
    offline instead, so many passes over all answers, a reading after each."""
    settings = settings.model_copy(update={"head": "off", "training_seed": seed, "training": "inline"})
    if epochs:
        line, traces = Line(folder, settings, {}), list(chain(*taught.values()))
        counts = (epoch * len(traces) for epoch in line.epochs(traces, epochs))
        yield from _readings(line, lambda: (line.adapter, 1.0, 0), counts, kept)
        return
    with TemporaryDirectory() as storage:
        store = Store(Path(storage) / "omnidemo.db")
        judged = Distiller(
            folder, "drafter", "target", settings, Path(storage), publish=lambda *_: None, store=store
        )

        def observed() -> Iterator[int]:
            for count, trace in enumerate(_in_turns(taught, requests, seed, *then), 1):
                judged.observe(replace(trace, first_ids=None, first_p=None) if direct else trace)
                judged.run_pending()
                if judged.status().error:
                    raise RuntimeError(judged.status().error)
                if not count % every or count in (requests, requests + then[1]):
                    yield count

        def state() -> tuple[AdapterState | None, float, int]:
            evaluation = judged.evaluation
            return judged.versions.current.adapter, evaluation.pace, evaluation.rolled_back

        try:
            yield from _readings(Line(folder, settings, {}), state, observed(), kept)
        finally:
            judged.close()
            store.close()


def _readings(
    line: Line, state: Callable[[], tuple[AdapterState | None, float, int]], counts: Iterator[int],
    kept: Mapping[str, Sequence[Trace]],
) -> Iterator[Reading]:  # fmt: skip
    """`state`: the adapter, the pace and the versions rolled back at this moment."""
    fresh: dict[str, np.ndarray] = {}
    for count in chain([0], counts):
        line.adapter, pace, rolled_back = state()
        for name, traces in kept.items():
            found = _figures(line, traces)
            change = found - fresh.setdefault(name, np.zeros_like(found))
            errors = change.std(axis=0) / np.sqrt(len(change))
            means = tuple(change.mean(axis=0).tolist())
            yield Reading(count, name, means, tuple(errors.tolist()), pace, rolled_back)
            if not count:
                fresh[name] = found


def table(readings: Sequence[Reading]) -> str:
    return markdown_table(HEADINGS, [reading.cells() for reading in readings])


def _in_turns(
    sets: Mapping[str, Sequence[Trace]], requests: int, seed: int, last: str, after: int
) -> Iterator[Trace]:
    """So many answers: one of each set in a random order, again and again, each set in an order of its own;
    then `after` of the set `last`, which goes on in its order."""
    chance = random.Random(seed)
    orders = {name: cycle(chance.sample(list(traces), len(traces))) for name, traces in sets.items()}
    names: list[str] = []
    for _ in range(requests):
        names = names or chance.sample(list(orders), len(orders))
        yield next(orders[names.pop(0)])
    yield from islice(orders.get(last, ()), after)


def _figures(line: Line, traces: Sequence[Trace]) -> np.ndarray:
    """FIGURES [traces, 3]."""
    learner = line.learner()
    agreed = agree(learner, line.adapter, traces)
    accepted = [float(evaluate(learner, [line.adapter], [trace])[0].mean()) for trace in traces]
    return np.array(
        [(one.overlap, one.same_first, chance) for one, chance in zip(agreed, accepted, strict=True)]
    )
