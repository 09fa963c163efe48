"""What copying can gain at most: a target's plain answers are known, and copies are proposed where, and as
far as, that saves time.

The price of a row is measured on the target's own passes; rounds themselves are not run, so what the host
does in them is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from lab.races.machine import facts
from omnidemo.core.config import GREEDY, Settings
from omnidemo.decoding.methods import BASELINE
from omnidemo.decoding.sources.copier import LONGEST_COPY, Copier, CopyChances
from omnidemo.decoding.sources.text_index import TextIndex
from omnidemo.pair.pair import Pair
from omnidemo.serving.measuring.prompt_files import check_prompts, make_writable
from omnidemo.serving.measuring.report_tables import Stage, group_by, markdown_table, report
from omnidemo.serving.pair_loading import build_measured_pair, build_pair

BEHIND = 256  # positions before the timed passes, as in the middle of a chat
MOST_ROWS = LONGEST_COPY + 1
HEADINGS = ("prompts", "answers", "median ×", "from", "to", "tokens a round", "median ×, any place")
NOTE = (
    "× plain decoding, were each round to copy what saves the most time in the end: of the drafts that are"
    " made today, and of all places at which the newest two tokens stood before. Nothing from earlier"
    " answers. No policy can know this; one that is as fast knew the answer."
)


@dataclass(frozen=True, slots=True)
class CeilingRequest:
    """What to look at. prompts: topic → prompts. own_manner: sampled as the target's card says, not greedy.
    passes: timed ones of each number of rows."""

    target: str
    prompts: Mapping[str, Sequence[str]]
    out: Path
    own_manner: bool = False
    max_new_tokens: int = 128
    passes: int = 25
    seed: int = 0
    command: str = ""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best over one answer. `gain`, `tokens_per_round`: of today's drafts; `any_gain`: of any place that
    begins alike."""

    topic: str
    tokens: int
    gain: float
    tokens_per_round: float
    any_gain: float


def run(order: CeilingRequest, settings: Settings) -> Iterator[Stage | Ceiling]:
    """Yield how far it is, and each answer's ceiling; then `ceiling.json` and `ceiling.md` are written.
    ValueError or ModelError, before anything is measured, for what cannot be."""
    make_writable(order.out / "ceiling.json")
    pair = (build_pair if order.own_manner else build_measured_pair)(order.target, settings.drafter, settings)
    for prompts in order.prompts.values():
        check_prompts(pair, prompts)
    options = {} if order.own_manner else GREEDY.options
    seconds = row_seconds(pair, order.passes)
    found, total = list[Ceiling](), sum(map(len, order.prompts.values()))
    for topic, prompts in order.prompts.items():
        for prompt in prompts:
            ids, asked = (
                pair.prompt_ids(prompt),
                {"max_new_tokens": order.max_new_tokens, "seed": order.seed, **options},
            )
            answer = pair.generate(ids, method=BASELINE, learn=False, reuse=False, **asked).token_ids
            if len(answer) > 1:
                found.append(ceiling(topic, ids, answer, seconds, pair.map.target.roles.get("end", ())))
                yield found[-1]
            yield Stage(f"{order.target}: answers", len(found), total)
    about = {"command": order.command} if order.command else {}
    about |= facts(pair.target.device) | {
        "target": order.target,
        "manner": "its own" if order.own_manner else "greedy",
    }
    each = {str(rows): round(1e3 * value, 3) for rows, value in enumerate(seconds) if rows}
    kept = about | {"pass_ms": each, "answers": [asdict(one) for one in found]}
    (order.out / "ceiling.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    price = (
        f"ms of a pass behind {BEHIND} tokens, by rows:"
        f" {', '.join(f'{rows}: {ms:.2f}' for rows, ms in each.items())}."
    )
    tables = [markdown_table(HEADINGS, table(found)), price]
    (order.out / "ceiling.md").write_text(
        report("The ceiling of copying", NOTE, about, tables), encoding="utf-8"
    )


def row_seconds(pair: Pair, passes: int) -> list[float]:
    """The median seconds of a pass of 0 … MOST_ROWS rows, timed in turns; of none it is 0."""
    behind = min(BEHIND, pair.target.context - MOST_ROWS)
    ids = (pair.prompt_ids("Tell me a short story.") * BEHIND)[: behind + MOST_ROWS]
    cache, times = pair.target.runner.new_cache(), [list[float]() for _ in range(MOST_ROWS + 1)]
    cache.forward(ids[:behind], 0)
    for turn in range(passes + 1):  # the first is a warm-up
        for rows in range(1, MOST_ROWS + 1):
            began = time.perf_counter()
            cache.forward(ids[behind : behind + rows], rows)
            if turn:
                times[rows].append(time.perf_counter() - began)
            cache.trim(behind)
    return [0.0, *(median(one) for one in times[1:])]


def ceiling(
    topic: str,
    prompt: Sequence[int],
    answer: Sequence[int],
    seconds: Sequence[float],
    ends: Sequence[int] = (),
) -> Ceiling:
    """The ceiling of one answer (target ids), where a pass of n rows takes `seconds[n]`."""
    (gain, rounds), (any_gain, _) = (best(runs, seconds) for runs in right_runs(prompt, answer, ends))
    return Ceiling(topic, len(answer), gain, (len(answer) - 1) / rounds, any_gain)


def right_runs(
    prompt: Sequence[int], answer: Sequence[int], ends: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """For each token of the answer but the first, which the prompt's pass writes: how many right ids a copy
    could have proposed there, by today's drafts and by the best of all places."""
    text, ids = TextIndex(), list(prompt)
    copier = Copier(text, CopyChances(), ends, len(ids))
    drafted, anywhere = list[int](), list[int]()
    for at in range(1, len(answer)):
        ids.append(answer[at - 1])
        rest = answer[at:]
        most = min(LONGEST_COPY, len(rest) - 1)  # a round writes a token behind its copy
        made = copier.draft(ids, most)
        drafted.append(_common(made.ids, rest) if made is not None else 0)
        behind = (text.ids[place : place + most] for _, place in text.places(ids, True))
        anywhere.append(max((_common(one, rest) for one in behind), default=0))
    return drafted, anywhere


def best(runs: Sequence[int], seconds: Sequence[float]) -> tuple[float, int]:
    """(× plain decoding, rounds) at the least time, where up to runs[i] ids can be copied at token i, by
    dynamic programming."""
    least = [(0.0, 0)] * (len(runs) + 1)  # (seconds, rounds) from a token to the end
    for at in reversed(range(len(runs))):
        ways = ((seconds[1 + copied], least[at + 1 + copied]) for copied in range(runs[at] + 1))
        least[at] = min((took + rest[0], 1 + rest[1]) for took, rest in ways)
    return len(runs) * seconds[1] / least[0][0], least[0][1]


def _common(proposed: Sequence[int], written: Sequence[int]) -> int:
    count = 0
    while count < min(len(proposed), len(written)) and proposed[count] == written[count]:
        count += 1
    return count


def table(found: Sequence[Ceiling]) -> list[list[str]]:
    """Lines under `HEADINGS`, one for each topic."""
    lines = []
    for topic, group in group_by(found, lambda one: one.topic).items():
        gains = [one.gain for one in group]
        figures: list[Any] = [
            median(gains),
            min(gains),
            max(gains),
            fmean(one.tokens_per_round for one in group),
        ]
        lines.append(
            [
                topic,
                str(len(group)),
                *(f"{one:.2f}" for one in (*figures, median(one.any_gain for one in group))),
            ]
        )
    return lines
