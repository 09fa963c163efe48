"""What guessing gains by the clock: answers that are drafted by the cost table, each between two plain ones.

Of a set of prompts no answer remembers an earlier one. Of a repeated task the drafted answers remember those
before them, and each order of its inputs has a line of its own. With `fresh` sets remember, too, and each
prompt is drafted a second time with nothing remembered. Rounds are timed without the prompt's reading, and
the first round is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import sub
from pathlib import Path
from statistics import fmean, median
from typing import Any

from lab.measured_rows import make_writable, markdown_table, report, with_error
from lab.races.machine import facts
from omnidemo.core.config import GREEDY, Settings
from omnidemo.core.records import Generation, Prompt, Round
from omnidemo.core.tasks import task
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.methods import BASELINE
from omnidemo.pair.pair import Pair
from omnidemo.pair.repeated_task import prompt_of
from omnidemo.serving.measuring.report_tables import Stage, group_by
from omnidemo.serving.pair_loading import build_measured_pair, build_pair

FRESH: Mapping[str, Any] = {"learn": False}  # an answer that knows no other
LEAST = 8  # tokens behind the first round, below which an answer tells nothing
HEADINGS = (
    "prompts", "answers", "median ×", "from", "to", "pooled ×", "plain × itself", "tokens a round",
    "× by the list", "part of the oracle's", "ids",
)  # fmt: skip
FRESH_HEADINGS = (
    "prompts", "answers", "tokens a round, fresh", "taught", "change", "× fresh", "× taught", "change of ×",
)  # fmt: skip
NOTE = (
    "× plain decoding by the clock, each answer held against the mean of two plain ones; pooled:"
    " the seconds of all answers. By the list: charged by prices that never change. The oracle makes the same"
    " drafts, each cut where the first wrong guess stands, and none where that is dearer than plain rounds."
)


@dataclass(frozen=True, slots=True)
class GainRequest:
    """What to time. sets: name → prompts. tasks: names of repeated tasks, each in the given orders from its
    first input on; `behind`: answers that are remembered and not timed, because little is remembered before
    them. own_manner: sampled as the target's card says, and not greedy; tasks are always without a
    penalty."""

    target: str
    out: Path
    sets: Mapping[str, Sequence[str]]
    tasks: Sequence[str] = ()
    orders: Sequence[int] = (1,)
    answers: int = 12
    behind: int = 0
    own_manner: bool = False
    max_new_tokens: int = 64
    policy: str = "cost"
    fresh: bool = False
    command: str = ""


@dataclass(frozen=True, slots=True)
class Gain:
    """An answer. `number`: from 1, in its set or order. Seconds are of all rounds but the first; `plain` of
    the two plain answers, mean; `itself`: the first of these against the second. `listed`, `oracle`: ×
    plain by the list. `fresh_rounds`, `fresh_seconds`: of the same answer with nothing remembered."""

    name: str
    order: int
    number: int
    tokens: int
    rounds: int
    seconds: float
    plain: float
    itself: float
    listed: float
    oracle: float
    same_ids: bool
    fresh_rounds: int | None = None
    fresh_seconds: float | None = None

    @property
    def gain(self) -> float:
        return self.plain / self.seconds


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str
    order: int
    number: int
    prompt: Prompt
    options: Mapping[str, Any]  # of the drafted answer
    timed: bool  # else it is only remembered


def run(order: GainRequest, settings: Settings) -> Iterator[Stage | Gain]:
    """Yield how far it is, and each answer; then `gains.json` and `gains.md` are written, with what there is
    where it is stopped. ValueError or ModelError, before anything is timed, for what cannot be."""
    make_writable(order.out / "gains.json")
    pair = (build_pair if order.own_manner else build_measured_pair)(order.target, settings.drafter, settings)
    coming = [*_of_sets(order), *_of_tasks(order, pair)]
    pair.warm_up()
    prices, found = pair.prices.list.fixed(), list[Gain]()
    try:
        for count, asked in enumerate(coming):
            yield Stage(f"{order.target}: answers", count, len(coming))
            made = _timed(pair, asked, order, prices)
            if made is not None:
                found.append(made)
                yield made
    finally:
        _write(order, pair, prices, found)


def _of_sets(order: GainRequest) -> Iterator[_Asked]:
    for name, prompts in order.sets.items():
        options = {"learn": True, "domain": name} if order.fresh else FRESH
        for number, text in enumerate(prompts, 1):
            timed = not order.fresh or number > order.behind
            yield _Asked(name, 0, number, [{"role": "user", "content": text}], options, timed)


def _of_tasks(order: GainRequest, pair: Pair) -> Iterator[_Asked]:
    for name in order.tasks:
        one = task(name)
        for seed in order.orders:
            options = {"learn": True, "domain": f"{name} in order {seed}"}
            for number, text in enumerate(one.inputs(order.answers, seed), 1):
                yield _Asked(name, seed, number, prompt_of(pair, one, text), options, number > order.behind)


def _timed(pair: Pair, asked: _Asked, order: GainRequest, prices: CostTable) -> Gain | None:
    """None where the answer is too short to tell anything."""
    options: dict[str, Any] = {"max_new_tokens": order.max_new_tokens, "seed": asked.number}
    options |= {"repetition_penalty": 1.0} if order.own_manner and asked.order else {}
    options |= {} if order.own_manner else GREEDY.options
    plain: dict[str, Any] = {"method": BASELINE, "copying": False, "learn": False}
    drafted: dict[str, Any] = {"draft_policy": order.policy}
    if not asked.timed:
        pair.generate(asked.prompt, **options, **drafted, **asked.options)
        return None
    fresh_too = [{**drafted, **FRESH}] if order.fresh else []
    ways = [plain, {**drafted, **asked.options}, *fresh_too, plain]
    before, made, *fresh, after = answers = [pair.generate(asked.prompt, **options, **way) for way in ways]
    tokens = sum(len(one.tokens) for one in made.rounds[1:])
    if tokens < LEAST:
        return None
    first, second = (seconds_of(one) * tokens / (len(one.token_ids) - 1) for one in (before, after))
    listed, oracle = charged(made.rounds[1:], prices)
    return Gain(
        asked.name, asked.order, asked.number, tokens, len(made.rounds) - 1, seconds_of(made),
        (first + second) / 2, first / second, listed, oracle,
        all(one.token_ids == before.token_ids for one in answers),
        *((len(fresh[0].rounds) - 1, seconds_of(fresh[0])) if fresh else ()),
    )  # fmt: skip


def seconds_of(made: Generation) -> float:
    return sum(one.seconds["total"] for one in made.rounds[1:])


def charged(rounds: Sequence[Round], prices: CostTable) -> tuple[float, float]:
    """× plain decoding by a list of prices: of the rounds as they were, and of an oracle's."""
    plain, paid, least = prices.price(1), 0.0, 0.0
    tokens = sum(len(one.tokens) for one in rounds)
    for one in rounds:
        paid += prices.price(1 + one.proposed, drafted=one.drafted)
        written = len(one.tokens)
        needed = min(one.drafted, written - 1) if one.drafted else 0
        least += min(written * plain, prices.price(written, drafted=needed))
    return tokens * plain / paid, tokens * plain / least


def table(found: Sequence[Gain]) -> list[list[str]]:
    """Lines under `HEADINGS`, one for each set or task."""
    lines = []
    for name, group in group_by(found, lambda one: one.name).items():
        gains = [one.gain for one in group]
        pooled = sum(one.plain for one in group) / sum(one.seconds for one in group)
        itself = [one.itself for one in group]
        share = fmean(one.listed / one.oracle for one in group)
        figures = (median(gains), min(gains), max(gains), pooled)
        lines.append(
            [
                name, str(len(group)), *(f"{one:.2f}" for one in figures),
                f"{min(itself):.2f}–{max(itself):.2f}",
                f"{sum(one.tokens for one in group) / sum(one.rounds for one in group):.2f}",
                f"{median(one.listed for one in group):.2f}", f"{share:.2f}",
                "equal" if all(one.same_ids for one in group) else "differ",
            ]
        )  # fmt: skip
    return lines


def against_fresh(found: Sequence[Gain]) -> list[list[str]]:
    """Lines under `FRESH_HEADINGS`, one for each set or task. The error is over its orders, of a set over its
    answers."""
    lines = []
    for name, group in group_by(found, lambda one: one.name).items():
        units = list(group_by(group, lambda one: one.order or -one.number).values())
        figures = list[tuple[float, float, float, float]]()
        for unit in units:
            tokens, plain = sum(one.tokens for one in unit), sum(one.plain for one in unit)
            rounds, before = sum(one.rounds for one in unit), sum(one.fresh_rounds or 0 for one in unit)
            seconds, fresh = sum(one.seconds for one in unit), sum(one.fresh_seconds or 0.0 for one in unit)
            figures.append((tokens / before, tokens / rounds, plain / fresh, plain / seconds))
        had, has, slow, fast = zip(*figures, strict=True)
        lines.append(
            [
                name, str(len(group)),
                f"{fmean(had):.2f}", f"{fmean(has):.2f}", with_error(map(sub, has, had), "+.2f"),
                f"{fmean(slow):.2f}", f"{fmean(fast):.2f}", with_error(map(sub, fast, slow), "+.2f"),
            ]
        )  # fmt: skip
    return lines


def _write(order: GainRequest, pair: Pair, prices: CostTable, found: Sequence[Gain]) -> None:
    about = {"command": order.command} if order.command else {}
    about |= facts(pair.target.device) | {
        "target": order.target, "manner": "its own" if order.own_manner else "greedy",
        "arithmetic": str(pair.summary().get("target_arithmetic", "")), "policy": order.policy,
    }  # fmt: skip
    passes = {str(rows): round(1e3 * seconds, 2) for rows, seconds in prices.passes.items()}
    answers = [asdict(one) | {"gain": one.gain} for one in found]
    kept = about | {"pass_ms": passes, "answers": answers}
    (order.out / "gains.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    listed = f"The list, ms by rows: {', '.join(f'{rows}: {ms}' for rows, ms in passes.items())}."
    tables = [markdown_table(HEADINGS, table(found)), listed]
    tables += [markdown_table(FRESH_HEADINGS, against_fresh(found))] if order.fresh else []
    (order.out / "gains.md").write_text(report("What guessing gains", NOTE, about, tables), encoding="utf-8")
