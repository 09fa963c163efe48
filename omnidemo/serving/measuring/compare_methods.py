"""Methods side by side on the prompts of a file: a CSV row for each answer, mean and spread of each
method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from omnidemo.core.answer_figures import columns
from omnidemo.core.metrics import Lengths
from omnidemo.decoding.methods import BASELINE, check_method
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import Asked, Comparison, compare, turns_of
from omnidemo.serving.measuring.prompt_files import check_prompts
from omnidemo.serving.measuring.report_tables import Spread, Stage, group_by, recorded

# CSV column → metric. `right` never had its unit in its name.
FIGURES = {column.replace("right_share", "right"): name for column, name in columns("report").items()}
COLUMNS = (
    "prompt_index", "turn", "category", "temperature", "run", "method", "speedup", "identical", *FIGURES,
)  # fmt: skip
COLUMNS += (
    "rounds_by_tokens", "accepted_by_position", "finish_reason", "prompt_tokens", "adapter_version",
    "cache_entries",
)  # fmt: skip
COLUMNS += ("prompt", "answer")
AVERAGED = ("tokens_per_second", "alpha", "acceptance_rate", "block_efficiency", "ngram_hits")
HEADINGS = ("prompts", "speedup", "tokens/s", "α", "acceptance", "tokens/round", "n-grams/round", "identical")


@dataclass(frozen=True, slots=True)
class Summary:
    """One method over all prompts. `figures`: "speedup" (tokens/s ÷ the baseline's on the same prompt), then
    the metrics AVERAGED. `identical`: answers with the baseline's ids; None where ids may differ."""

    method: str
    prompts: int
    figures: Mapping[str, Spread]
    identical: int | None

    def cells(self) -> list[str]:
        """The figures as text, under HEADINGS."""
        identical = "–" if self.identical is None else f"{self.identical}/{self.prompts}"
        return [str(self.prompts), *map(str, self.figures.values()), identical]


def check_methods(names: Sequence[str]) -> list[str]:
    """The methods to run, the baseline first, each once. ValueError for an unknown one, or none."""
    if not names:
        raise ValueError("choose at least one method to compare")
    for name in names:
        check_method(name)
    return list(dict.fromkeys([BASELINE, *names]))


def csv_row(done: Comparison) -> dict[str, Any]:
    """The row of a result under COLUMNS."""
    made = done.generation
    lengths = Lengths.of(made.rounds)
    return {
        "prompt_index": done.prompt_index, "turn": done.turn, "category": done.category,
        "temperature": done.temperature, "run": done.run, "method": done.method, "speedup": done.speedup,
        "identical": done.identical,
        **{column: made.metrics[name] for column, name in FIGURES.items()},
        "rounds_by_tokens": str(lengths),
        "accepted_by_position": " ".join(
            f"{right}/{judged}" for right, judged in zip(lengths.accepted, lengths.judged, strict=True)
        ),
        "finish_reason": made.finish_reason, "prompt_tokens": made.prompt_tokens,
        "adapter_version": made.adapter_version, "cache_entries": made.cache_entries, "prompt": done.prompt,
        "answer": made.text,
    }  # fmt: skip


def run(
    pair: Pair,
    prompts: Sequence[Asked],
    methods: Sequence[str],
    out: Path,
    temperatures: Sequence[float | None],
    runs: int = 1,
    **options: Any,
) -> Iterator[Comparison | Stage]:
    """Measure the methods (of `check_methods`) at each temperature, interleaved and after a warm-up; a result
    is in the CSV `out` when it is yielded. options: those of `comparison.compare`. ValueError, at the call,
    for unusable prompts."""
    check_prompts(pair, prompts)
    measured = (
        compare(pair, prompts, methods, temperature=temperature, runs=runs, **options)
        for temperature in temperatures
    )
    total = sum(len(turns_of(asked)) for asked in prompts) * len(methods) * runs * len(temperatures)
    return recorded(chain.from_iterable(measured), out, COLUMNS, "answers", total, csv_row)


def summarise(results: Iterable[Comparison]) -> list[Summary]:
    """The methods in the order of their first result."""
    summaries = []
    for method, group in group_by(results, lambda done: done.method).items():
        figures = {"speedup": Spread.of(done.speedup for done in group)}
        figures |= {name: Spread.of(done.generation.metrics[name] for done in group) for name in AVERAGED}
        judged = [done.identical for done in group if done.identical is not None]
        summaries.append(Summary(method, len(group), figures, sum(judged) if judged else None))
    return summaries
