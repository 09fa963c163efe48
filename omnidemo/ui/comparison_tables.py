"""The results of a comparison, as the page and the CSV show them. It reads an uploaded batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from omnidemo.core.answer_figures import columns, figures_of
from omnidemo.core.metrics import Lengths
from omnidemo.core.private_folders import without_folders
from omnidemo.decoding.methods import BASELINE
from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.models.catalogue import credits_of
from omnidemo.pair.in_turns import median_run
from omnidemo.serving.comparison import FRESH, Asked, Comparison, Question, turns_of
from omnidemo.serving.measuring.prompt_files import read_questions
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import finite, round_lines
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.figures import layout

MOST_PROMPTS = 500
SUMMARY = ("speedup", *(figure.name for figure in figures_of("compare")))
SHOWN = 80  # characters of the prompt
RUNS = 3  # of each method on one prompt; a batch has its prompts in the place of runs


def read_batch(path: str | Path) -> list[Question]:
    """The questions of an uploaded JSON Lines file. Refused, with the line's number, for a file that cannot
    serve."""
    try:
        prompts = read_questions(Path(path))
    except ValueError as error:
        raise Refused(without_folders(f"{error}.")) from None
    if len(prompts) > MOST_PROMPTS:
        raise Refused(
            f"The file holds {len(prompts)} prompts, more than {MOST_PROMPTS}. Split it and run the parts one"
            " after another."
        )
    return prompts


def summary(results: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Per method: n and, for each figure, [median, least, most] over the runs and prompts where it is
    defined. `best`: whether it is the fastest, or cannot be told from it, for the ranges overlap; of a single
    run nothing is told."""
    table = []
    for method in methods:
        own = [result for result in results if result["method"] == method]
        row: dict[str, Any] = {"method": method, "n": len(own)}
        for name in SUMMARY:
            row[name] = _range([result.get(name) for result in own])
        checked = [result["identical"] for result in own if result["identical"] is not None]
        table.append(row | {"identical": sum(checked), "checked": len(checked)})
    paces = [
        row["tokens_per_second"] for row in table if row["n"] > 1 and row["tokens_per_second"][0] is not None
    ]
    border = max(paces, key=lambda pace: pace[0])[1] if len(paces) > 1 else None
    return [
        row | {"best": border is not None and row["n"] > 1 and (row["tokens_per_second"][2] or 0.0) >= border}
        for row in table
    ]


def _range(values: Sequence[float | None]) -> list[float | None]:
    """[median, least, most] of the values that are known."""
    defined = [value for value in map(finite, values) if value is not None]
    return [finite(median(defined)), min(defined), max(defined)] if defined else [None, None, None]


class ComparisonView:
    """The results of one run: what the page shows and the rows of the CSV."""

    def __init__(
        self,
        services: PublicServices,
        run: str,
        prompts: Sequence[Asked],
        methods: Sequence[str],
        common: Mapping[str, Any],
    ) -> None:
        self.infos = {info.name: info for info in services.methods()}
        self.methods, self.common = list(methods), common
        self.results: list[dict[str, Any]] = []
        self.csv: list[dict[str, Any]] = []
        line = services.settings.domain  # as `ChatService.compare` takes it
        count = sum(len(turns_of(asked)) for asked in prompts)
        self.single = count == 1
        self.runs = RUNS if self.single else 1
        target = common["target"]
        self.head = {"run": run, "prompts": count, "runs": self.runs}
        self.head |= {"target": credits_of(target).get("target_title", target)}
        self.head |= {"total": count * len(methods) * self.runs, "line": DEFAULT if line == AUTO else line}
        self.head |= {"prompt": str(turns_of(prompts[0])[0])[:SHOWN] if self.single else ""}

    def add(self, comparison: Comparison) -> None:
        """Take one `Comparison` (prompt_index, method, generation, identical, speedup)."""
        generation, metrics = comparison.generation, comparison.generation.metrics
        about = {
            "method": comparison.method,
            "identical": comparison.identical,
            "speedup": finite(comparison.speedup),
        }
        result = (
            {key: finite(value) for key, value in metrics.items()}
            | about
            | {"version": generation.adapter_version, "guessing": generation.guessing}
        )
        if self.single:
            result["lines"] = "".join(line for round in generation.rounds for line in round_lines(round))
        self.results.append(result)
        row = {  # in the order of the columns
            "run": self.head["run"],
            "created_at_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **{name: self.common[name] for name in ("target", "drafter")},
            "adapter_version": generation.adapter_version,
            "method": comparison.method,
            "prompt_index": comparison.prompt_index,
            "turn": comparison.turn,
            "category": comparison.category,
            "repetition": comparison.run,
            **{name: self.common[name] for name in ("seed", "temperature", "draft_length", "max_new_tokens")},
            "tokens": len(generation.token_ids),
            "rounds": len(generation.rounds),
            **{column: finite(metrics.get(key), 6) for column, key in columns("csv").items()},
            "rounds_by_tokens": str(Lengths.of(generation.rounds)),
            "measured_speedup": finite(comparison.speedup),
            "identical_to_autoregressive": comparison.identical,
            "finish_reason": generation.finish_reason,
            "prompt": comparison.prompt,
            "answer": generation.text,
        }
        self.csv.append(row)

    def json(self, state: str, error: str = "", **more: Any) -> str:
        """The line of the `compare` widget."""
        table = summary(self.results, self.methods)
        titles = {name: text.method_title(info) for name, info in self.infos.items()} | text.LANES
        lanes = [self._middle(row) for row in table if row["n"]] if self.single else []
        methods = [
            {
                "name": name,
                "title": titles.get(name, name),
                "colour": layout.method_colour(name),
                "lossless": name == FRESH or getattr(self.infos.get(name), "lossless", False),
            }
            for name in self.methods
        ]
        now = {
            "state": state,
            "error": error,
            "done": len(self.results),
            "temperature": self.common["temperature"],
        }
        shown = {
            "methods": methods,
            "lanes": lanes,
            "table": table,
            "base": BASELINE in self.methods,
        }
        return for_browser(self.head | now | shown | more) + "\n"

    def _middle(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The run of a method nearest to its median, with the range of all its runs and whether all wrote the
        baseline's text."""
        own = [result for result in self.results if result["method"] == row["method"]]
        nearest = median_run(own, lambda result: result.get("tokens_per_second") or 0.0)
        checked = None if not row["checked"] else row["identical"] == row["checked"]
        return nearest | {"speedup": row["speedup"], "identical": checked, "best": row["best"], "n": row["n"]}
