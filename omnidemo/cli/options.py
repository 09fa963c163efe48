"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.config import DEFAULT

Target = Annotated[
    str | None,
    typer.Option(
        help=f"Target: bundled name, Hub id, folder or GGUF file; default OMNIDEMO_TARGET, else {DEFAULT}."
    ),
]
Drafter = Annotated[
    str | None, typer.Option(help=f"Drafter, likewise; default OMNIDEMO_DRAFTER, else {DEFAULT}.")
]
Method = Annotated[
    str | None, typer.Option(help="Decoding method; default OMNIDEMO_METHOD, else ngram-exact.")
]
Temperature = Annotated[float, typer.Option(help="0 is greedy.")]
MaxNewTokens = Annotated[
    int | None, typer.Option(help="Longest answer; default OMNIDEMO_MAX_NEW_TOKENS, else 256.")
]
DraftLength = Annotated[
    int | None, typer.Option(help="Drafter tokens per round; default OMNIDEMO_DRAFT_LENGTH, else 4.")
]
Copying = Annotated[
    bool | None,
    typer.Option(
        "--copying/--no-copying",
        help="Whether drafts may be copied from text, too; default OMNIDEMO_COPYING, else they may.",
    ),
]
HELD = "Folder of n-gram cache, adapters and history"
Storage = Annotated[Path | None, typer.Option(help=f"{HELD}; default OMNIDEMO_STORAGE, else storage.")]
KeptIn = Annotated[Path | None, typer.Option("--storage", help=f"{HELD}; without it none is kept.")]
Prompts = Annotated[Path, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')]
Out = Annotated[Path, typer.Option("--csv", help="Where the figures go, row by row.")]
Quick = Annotated[
    bool, typer.Option(help="Tiny sizes, to see that everything runs; the figures mean nothing.")
]
