"""Methods side by side on the prompts of a file: a CSV row for each answer, and mean and spread for each method."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TextIO

from omnidemo.methods import check_method
from omnidemo.pair.pair import Pair
from omnidemo.serving.comparison import BASELINE, Comparison, compare
from omnidemo.store.csv_export import FORMULA

# CSV column: metric. The units are in the names.
FIGURES = {
    "tokens": "tokens",
    "rounds": "rounds",
    "seconds": "seconds",
    "tokens_per_second": "tokens_per_second",
    "time_to_first_token_seconds": "time_to_first_token",
    "acceptance_rate": "acceptance_rate",
    "alpha": "alpha",
    "block_efficiency_tokens_per_round": "block_efficiency",
    "ngram_hits_per_round": "ngram_hits",
    "proposed": "proposed",
    "accepted": "accepted",
    "drafted": "drafted",
    "draft_seconds": "draft_seconds",
    "verify_seconds": "verify_seconds",
    "settle_seconds": "settle_seconds",
    "other_seconds": "other_seconds",
}
COLUMNS = ("prompt_index", "method", "speedup", "identical", *FIGURES, "finish_reason", "prompt_tokens", "adapter_version")
COLUMNS += ("cache_entries", "prompt", "answer")
HEADINGS = ("prompts", "speedup", "tokens/s", "α", "acceptance", "tokens/round", "n-grams/round", "identical")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation over prompts; both None where no prompt has a value, `deviation` also for one prompt."""

    mean: float | None
    deviation: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread:
        known = [value for value in values if value is not None]
        return cls(fmean(known) if known else None, stdev(known) if len(known) > 1 else None)

    def __str__(self) -> str:
        if self.mean is None:
            return "–"
        return f"{self.mean:.2f}" if self.deviation is None else f"{self.mean:.2f} ± {self.deviation:.2f}"


@dataclass(frozen=True, slots=True)
class Summary:
    """One method over all prompts. `speedup`: ratios of tokens/s to the baseline's on the same prompt. `identical`: how many
    answers have the baseline's ids; None above temperature 0."""

    method: str
    prompts: int
    speedup: Spread
    tokens_per_second: Spread
    alpha: Spread
    acceptance_rate: Spread
    block_efficiency: Spread
    ngram_hits: Spread
    identical: int | None

    def cells(self) -> list[str]:
        """The figures as text, under `HEADINGS`."""
        spreads = (self.speedup, self.tokens_per_second, self.alpha, self.acceptance_rate, self.block_efficiency, self.ngram_hits)
        identical = "–" if self.identical is None else f"{self.identical}/{self.prompts}"
        return [str(self.prompts), *map(str, spreads), identical]


def read_prompts(path: Path, limit: int | None = None) -> list[str]:
    """The `prompt` of each line of a JSON Lines file. ValueError, with the line's number, for a file that cannot serve."""
    try:
        rows = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; give a JSON Lines file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a JSON Lines file with a prompt on each line") from None
    prompts = [_prompt(path, number, row) for number, row in enumerate(rows, 1) if row.strip()]
    if not prompts:
        raise ValueError(f'{path} has no prompts; write one {{"prompt": "…"}} on each line')
    return prompts[:limit]


def _prompt(path: Path, number: int, row: str) -> str:
    try:
        value = json.loads(row)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {number}: this is not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError(f'{path}, line {number}: this is nested too deeply; write {{"prompt": "…"}}') from None
    prompt = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError(f'{path}, line {number}: there is no prompt; write {{"prompt": "…"}}')
    return prompt


def check_methods(names: Sequence[str]) -> list[str]:
    """The methods to run, the baseline first and each once. ValueError for an unknown one, or none."""
    if not names:
        raise ValueError("choose at least one method to compare")
    for name in names:
        check_method(name)
    return list(dict.fromkeys([BASELINE, *names]))


def check_prompts(pair: Pair, prompts: Sequence[str]) -> None:
    """ValueError, before anything was measured, for a prompt that the target cannot read."""
    for prompt in prompts:
        try:
            pair.prompt_ids(prompt)
        except ValueError as error:
            raise ValueError(f"the prompt {prompt[:40]!r}… cannot be used: {error}") from None


def check_writable(path: Path) -> None:
    """Make the folder of an output file; ValueError, before anything was measured, where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder of {path} cannot be made ({error.strerror}); name another file") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written; name a file in a folder that you may write to")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A CSV file that holds every row at once, so that an interrupted run leaves what it had measured."""

    file: TextIO
    writer: csv.DictWriter[str]

    def write(self, row: Mapping[str, Any]) -> None:
        self.writer.writerow({name: _cell(value) for name, value in row.items()})
        self.file.flush()


@contextmanager
def sheet(path: Path, columns: Sequence[str]) -> Iterator[Sheet]:
    """Start a CSV with a header; an older file of that name is replaced."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark tells spreadsheets the encoding
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        file.flush()
        yield Sheet(file, writer)


def csv_row(done: Comparison) -> dict[str, Any]:
    """A result under `COLUMNS`."""
    made = done.generation
    return {
        "prompt_index": done.prompt_index,
        "method": done.method,
        "speedup": done.speedup,
        "identical": done.identical,
        **{column: made.metrics[name] for column, name in FIGURES.items()},
        "finish_reason": made.finish_reason,
        "prompt_tokens": made.prompt_tokens,
        "adapter_version": made.adapter_version,
        "cache_entries": made.cache_entries,
        "prompt": done.prompt,
        "answer": made.text,
    }


def _cell(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA) else value


def run(pair: Pair, prompts: Sequence[str], methods: Sequence[str], out: Path, **options: Any) -> Iterator[Comparison]:
    """Measure the methods, interleaved and after a warm-up; each result is in the CSV `out` when it is yielded.

    The options are those of `serving.comparison.compare`. ValueError, at the call, for methods or prompts that cannot be used.
    """
    names = check_methods(methods)
    check_prompts(pair, prompts)

    def measure() -> Iterator[Comparison]:
        with sheet(out, COLUMNS) as rows:
            for done in compare(pair, prompts, names, **options):
                rows.write(csv_row(done))
                yield done

    return measure()


def summarise(results: Iterable[Comparison]) -> list[Summary]:
    """The methods in the order of their first result."""
    groups: dict[str, list[Comparison]] = {}
    for done in results:
        groups.setdefault(done.method, []).append(done)
    return [_summary(method, group) for method, group in groups.items()]


def _summary(method: str, group: Sequence[Comparison]) -> Summary:
    def over(metric: str) -> Spread:
        return Spread.of(done.generation.metrics[metric] for done in group)

    judged = [done.identical for done in group if done.identical is not None]
    return Summary(
        method=method,
        prompts=len(group),
        speedup=Spread.of(done.speedup for done in group),
        tokens_per_second=over("tokens_per_second"),
        alpha=over("alpha"),
        acceptance_rate=over("acceptance_rate"),
        block_efficiency=over("block_efficiency"),
        ngram_hits=over("ngram_hits"),
        identical=sum(judged) if judged else None,
    )
