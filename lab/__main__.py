"""The laboratory's command line, `python -m lab --help`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from lab.cli import (
    experiment_commands,
    model_commands,
    overhead_commands,
    source_commands,
    speed_commands,
    trial_commands,
)
from omnidemo.cli.common import Commands, run

# Commands whose functions lie beside what they call, imported when they are asked for.
ELSEWHERE = {
    "conversations": ("lab.bundled.conversations", "main"),
    "evaluate": ("lab.bundled.evaluate", "main"),
    "loops": ("lab.bundled.loops", "main"),
    "write-prompts": ("lab.bundled.write_prompts", "write_all"),
}


class Laboratory(Commands):
    program = "lab"

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *ELSEWHERE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, function = ELSEWHERE[cmd_name]
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name)(getattr(import_module(module), function))
        return typer.main.get_command(alone)


HELP = (
    "The laboratory: races, shapes, experiments, equality, torture, and data and training of our own models."
    " lab/README.md says more."
)
app = typer.Typer(
    cls=Laboratory, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP
)
for command in (
    speed_commands.bench,
    speed_commands.bench_growth,
    speed_commands.bench_shapes,
    overhead_commands.bench_endpoint,
    overhead_commands.bench_replicas,
    overhead_commands.bench_memory,
    experiment_commands.compare_peer,
    experiment_commands.experiment,
    trial_commands.equality,
    trial_commands.torture,
    model_commands.answers,
    model_commands.tokenizer,
    model_commands.rows,
    model_commands.train,
    model_commands.ceilings,
    model_commands.learning,
    model_commands.steps,
    model_commands.train_bundled,
    source_commands.sources,
):
    app.command()(command)


def main() -> None:
    run(app, "lab")


if __name__ == "__main__":
    main()
