"""Old names of commands that are in the laboratory now, or gone. For one version they say so."""

from __future__ import annotations

from typing import Any

from omnidemo.cli.common import Commands

TO_THE_LABORATORY = (
    "bench",
    "bench-endpoint",
    "bench-memory",
    "bench-replicas",
    "equality",
    "experiment",
    "torture",
)
GONE = {
    "bench-growth": "lab/notebook/growth.md has its table, and the commit at which it runs",
    "bench-shapes": "lab/notebook/real-shapes.md has its tables, and the commit at which it runs",
    "compare-peer": "`python -m lab bench --only answers` races transformers' assisted generation",
    "train-bundled": "bundled models are not trained here any more; the card of bundled/large names the"
    " commit at which they can be",
}


class Product(Commands):
    """The commands of `python -m omnidemo`, and the old names."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in GONE:
            raise ValueError(f"`{cmd_name}` is gone: {GONE[cmd_name]}")
        if cmd_name in TO_THE_LABORATORY:
            raise ValueError(f"`{cmd_name}` is a command of the laboratory now: python -m lab {cmd_name}")
        return super().get_command(ctx, cmd_name)
