"""What memories bring as sources of drafts, along recorded answers: tokens a pass, and tokens per price."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from lab.drafters.ceilings import Prices
from lab.sources.answer_rows import TOP, AnswerRows
from lab.sources.fused_rounds import ALWAYS, NEVER, Fused, Way
from lab.sources.given_answers import Answer, Costs, Sums
from lab.sources.memories import Copies, Memory, Ngrams, Recycling
from lab.sources.outcome import Outcome
from lab.sources.todays_rounds import Today
from omnidemo.core.tasks import TASKS

PARTS = ((0, 5), (5, 10), (10, 20), (20, 40))  # answers of a set
LONGEST = 16
SCHOOL = 2  # answers of each other set, from which chances are learned beforehand
FREE = Costs([1.0 + 1e-6 * max(0, count - 1) for count in range(8)], 1e-7, 5)  # drafts of up to five

Maker = Callable[[], Memory]
NGRAMS: Mapping[str, Maker] = {"n-grams": partial(Ngrams, soft=False)}
SOFT: Mapping[str, Maker] = {"n-grams": Ngrams}
CHAT: Mapping[str, Maker] = {"chat": partial(Copies, False)}
EARLIER: Mapping[str, Maker] = {"earlier": partial(Copies, True)}
COPIES: Mapping[str, Maker] = {**CHAT, **EARLIER}
MEMORY: Mapping[str, Maker] = {**NGRAMS, **COPIES}

TODAY, WITHOUT = "today", "today without earlier answers"
WAYS: Mapping[str, Way] = {
    "drafter alone": Way(),
    "n-grams alone": Way(NGRAMS, NEVER),
    "soft n-grams alone": Way(SOFT, NEVER),
    "Token Recycling alone": Way({"recycling": Recycling}, NEVER),
    "copies alone": Way(COPIES, NEVER),
    "memory alone": Way(MEMORY, NEVER),
    "memory first .3": Way(MEMORY, 0.3),
    "memory first .5": Way(MEMORY, 0.5),
    "memory first .8": Way(MEMORY, 0.8),
    "memory and drafter": Way(MEMORY, ALWAYS),
    "mixture": Way(MEMORY, ALWAYS, True),
    ".5 with soft n-grams": Way({**SOFT, **COPIES}, 0.5),
    ".5 without n-grams": Way(COPIES, 0.5),
    ".5 without copies": Way(NGRAMS, 0.5),
    ".5 without earlier answers": Way({**NGRAMS, **CHAT}, 0.5),
    ".5 memory emptied": Way(MEMORY, 0.5, False, True),
}


LEARNING = (TODAY, WITHOUT, "drafter alone", "memory alone", "memory first .5", "mixture")  # as a set goes on
AGREEING = ("drafter alone", "n-grams alone", "soft n-grams alone", "mixture")  # ways with a distribution


class Rounds(Protocol):
    def answer(self, given: Answer) -> Sums: ...

    def renew(self) -> None: ...


def ways() -> dict[str, Callable[[Costs], Rounds]]:
    """All ways by name."""
    today = {WITHOUT: partial(Today, memory=False), TODAY: partial(Today, memory=True)}
    return {**today, **{name: partial(Fused, way) for name, way in WAYS.items()}}


def costs_of(prices: Prices, longest: int = LONGEST) -> Costs:
    """In passes of one row."""
    rows = prices.of_rows(longest + 2)
    return Costs([one / rows[1] for one in rows], prices.step / rows[1], longest)


def simulate(
    sets: Mapping[str, Sequence[AnswerRows]], make: Callable[[Costs], Rounds], costs: Costs,
) -> dict[str, list[Sums]]:  # fmt: skip
    """The sums of each answer, by set. Each set begins with empty memories, and with what the first answers
    of the other sets have taught of how often sources are right."""
    given = {name: [Answer.of(one) for one in answers] for name, answers in sets.items()}
    found = {}
    for name, answers in given.items():
        rounds = make(costs)
        for _, others in sorted(one for one in given.items() if one[0] != name):
            for one in others[:SCHOOL]:
                rounds.answer(one)
            rounds.renew()
        found[name] = [rounds.answer(one) for one in answers]
    return found


def pooled(sums: Sequence[Sums], of: str = "rounds") -> float:
    """Tokens for each round, or for a price of one pass."""
    whole = sum(getattr(one, of) for one in sums)
    return sum(one.tokens for one in sums) / whole if whole else float("nan")


def beside(sums: Sequence[Sums], others: Sequence[Sums], of: str) -> tuple[float, float]:
    """(how many times as many tokens for each, its standard error by leaving out each answer in turn)."""
    count = len(sums)
    if count < 2:
        return pooled(sums, of) / pooled(others, of), float("nan")
    parts = np.array([
        pooled([*sums[:place], *sums[place + 1 :]], of) / pooled([*others[:place], *others[place + 1 :]], of)
        for place in range(count)
    ])  # fmt: skip
    error = float(np.sqrt((count - 1) / count * ((parts - parts.mean()) ** 2).sum()))
    return pooled(sums, of) / pooled(others, of), error


def by_part(sets: Mapping[str, Sequence[AnswerRows]], names: Sequence[str]) -> Outcome:
    """Tokens a pass with drafts of up to five ids, at no price, as a task goes on."""
    lines = list[list[str]]()
    sets = {name: one for name, one in sets.items() if name in TASKS}
    parts = [part for part in PARTS if any(len(one) > part[0] for one in sets.values())]
    for way in names:
        for name, sums in simulate(sets, ways()[way], FREE).items():
            cells = [f"{pooled(sums[begin:end]):.2f}" if sums[begin:] else "" for begin, end in parts]
            lines.append([name, way, *cells])
    heads = ["set", "way", *(f"{begin} to {end}" for begin, end in parts)]
    says = "Tokens a pass with drafts of up to five ids, by the number of the answer."
    return Outcome("memory-parts", "As a task goes on", heads, sorted(lines, key=lambda one: one[0]), says)


def by_price(made: Mapping[str, Mapping[str, Sequence[Sums]]], first: int = 0) -> Outcome:
    """Tokens for the price of a plain pass, from answer `first` of each set on, and beside today's. made: by
    way and set, today's among them."""
    kept = [name for name, sums in made[TODAY].items() if len(sums) > first]
    lines = list[list[str]]()
    for way in made:
        cells, logs = list[str](), list[tuple[float, float]]()
        for name in kept:
            own, today = made[way][name][first:], made[TODAY][name][first:]
            times, error = beside(own, today, "price")
            cells.append(f"{pooled(own, 'price'):.2f}")
            logs.append((math.log(times), error / times))
        mean = sum(one for one, _ in logs) / max(1, len(logs))
        error = math.sqrt(sum(one * one for _, one in logs)) / max(1, len(logs))
        lines.append([way, *cells, f"{math.exp(mean):.3f} ± {math.exp(mean) * error:.3f}"])
    says = (
        f"Tokens for the price of a pass of one row, from answer {first} on; the last column is the mean of"
        f" the sets beside {TODAY!r}, ± its standard error over answers."
    )
    return Outcome(f"memory-prices-{first}", "By price", ["way", *kept, "× today"], lines, says)


def agreement(sets: Mapping[str, Sequence[AnswerRows]], names: Sequence[str]) -> Outcome:
    """Σ min(p, q) at temperature 1, where every round is plain."""
    lines = list[list[str]]()
    for way in names:
        cells = list[str]()
        for answers in sets.values():
            rounds, agreed, count = Fused(WAYS[way], FREE), 0.0, 0
            for one in answers:
                given = Answer.of(one, TOP)
                agreed, count = agreed + rounds.agreed(given), count + len(given.ids)
            cells.append(f"{agreed / count:.2f}")
        lines.append([way, *cells])
    says = "Σ min(p, q) at temperature 1, mean over all tokens."
    return Outcome("memory-agreement", "Agreement", ["way", *sets], lines, says)
