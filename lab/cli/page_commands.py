"""The command that makes what the page shows before anything was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# column of `adapt --task`'s CSV → field of an answer on the page (ui/live_answers.py)
FIELDS = {
    "number": "number", "tokens": "tokens", "tokens_per_round": "steps", "alpha": "alpha",
    "adapter_version": "version", "copied_earlier_tokens": "memory", "guessed_tokens": "guessed",
    "own_tokens": "own", "nothing_learned_tokens_per_round": "nothing_learned",
}  # fmt: skip


def recorded_run(
    csv: Annotated[Path, typer.Argument(help="The rows that `adapt --task` wrote, as it left them.")],
    task: Annotated[str, typer.Option(help="The task's name.")],
    target: Annotated[str, typer.Option(help="The target that wrote the answers.")],
    drafter: Annotated[str, typer.Option(help="The drafter that guessed.")] = "bundled/drafter-4",
    out: Annotated[Path | None, typer.Option(help="The file; default: where the page looks for it.")] = None,
) -> None:
    """Make the recorded run that the Adaptation tab shows before anything was asked, from the rows of a real
    one. Its date is that of the file."""
    import json
    from datetime import UTC, datetime

    import pandas

    from omnidemo.ui.live_answers import RECORDED

    answers = []
    for row in pandas.read_csv(csv).to_dict("records"):
        one = {field: row[column] for column, field in FIELDS.items()}
        one = {name: None if value != value else round(value, 4) for name, value in one.items()}
        answers.append(one | {"chat": row["copied_tokens"] - row["copied_earlier_tokens"]})
    date = datetime.fromtimestamp(csv.stat().st_mtime, UTC).date().isoformat()
    about = {"task": task, "target": target, "drafter": drafter, "date": date}
    lines = ",\n  ".join(json.dumps(one) for one in answers)
    head = json.dumps(about)[1:-1]
    text = f'{{{head}, "answers": [\n  {lines}\n]}}\n'
    (out or RECORDED).write_text(text, encoding="utf-8")
