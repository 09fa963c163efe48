"""The laboratory's command line, `python -m lab --help`."""

from __future__ import annotations

from omnidemo.core.processes import end_by_signal

if __name__ == "__main__":
    end_by_signal()  # also while the rest is imported

import typer

from lab.cli import (
    guard_commands,
    model_commands,
    page_commands,
    speed_commands,
    table_commands,
    trial_commands,
)
from omnidemo.cli.common import Commands, run


class Laboratory(Commands):
    program = "lab"


HELP = "The laboratory: races, equality, torture, and data and training of drafters. lab/README.md says more."
app = typer.Typer(
    cls=Laboratory, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP
)
for command in (
    speed_commands.bench,
    speed_commands.gains,
    speed_commands.arena,
    table_commands.compare,
    table_commands.vocabularies,
    table_commands.forms,
    trial_commands.equality,
    trial_commands.layers,
    trial_commands.examples,
    trial_commands.torture,
    guard_commands.ids,
    guard_commands.turns,
    trial_commands.bench_memory,
    model_commands.answers,
    model_commands.tokenizer,
    model_commands.rows,
    model_commands.phrases,
    model_commands.train,
    model_commands.ceilings,
    model_commands.learning,
    model_commands.steps,
    page_commands.recorded_run,
):
    app.command()(command)


def main() -> None:
    run(app, "lab")


if __name__ == "__main__":
    main()
