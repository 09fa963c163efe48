"""The inputs of one task, answered one after another with training on: a CSV row for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from omnidemo.core.config import DRAFTING, Settings, shown_by
from omnidemo.core.tasks import Task
from omnidemo.learning.lines.line_names import check_domain
from omnidemo.pair.repeated_task import COLUMNS, Repeated, options_of
from omnidemo.serving.measuring.learning_pair import learning
from omnidemo.serving.measuring.report_tables import csv_table
from omnidemo.serving.pair_loading import build_measured_pair


def run(
    settings: Settings, task: Task, count: int, out: Path | None, keep: bool, first: int = 0, order: int = 0,
    pause: float = 0.0, **options: Any,
) -> Iterator[Repeated]:  # fmt: skip
    """Yield the answers of a task, each when its row is in the CSV `out`, if there is one.

    A due update runs and is swapped in before the next answer, so that the result does not depend on the
    machine's speed. keep: continue the line and the memory in the settings' storage; else begin with nothing,
    and keep nothing. The other arguments are those of `Pair.repeat`. ModelError or ValueError, before
    anything runs, for an unusable model, task or option; RuntimeError where training failed.
    """
    domain = check_domain(task.name)
    own = {name: getattr(settings, name) for name in DRAFTING if name in settings.model_fields_set}
    if own.get("draft_policy") == "auto":
        del own["draft_policy"]
    own |= {"method": settings.method}
    if "max_new_tokens" in settings.model_fields_set:
        own["max_new_tokens"] = settings.max_new_tokens
    options = options_of(task, {**own, **options, "remember": settings.keep_text})
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    pair.asked(**options)
    with (
        learning(pair, settings, keep, training="inline") as learner,
        csv_table(out, list(COLUMNS)) if out else nullcontext(lambda row: None) as append,
        learner.lines.using(domain),
    ):
        for made in pair.repeat(task, count, first=first, order=order, **options):
            append(made.row)
            asked = pair.asked(**options)
            noted = {name: getattr(asked, name) for name in shown_by("history")}
            learner.record(made.input, made.generation, noted, remembered=settings.keep_text)
            yield made
            learner.lines.measurer.settle()
            learner.update(domain, made.number)
            time.sleep(pause)
