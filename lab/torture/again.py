"""The answers of a torture, decoded once more."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from lab.torture.client import SEED
from lab.torture.ledger import Report, fixed
from omnidemo.core.config import DEFAULT, GREEDY, Settings
from omnidemo.models.catalogue import reading
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_loading import build_pair

REPEATED = 300  # answers that are decoded once more at the end


def decode_again(
    target: str, folder: Path, ledgers: Sequence[Path], draw: random.Random, report: Report
) -> None:
    """Note whether answers, with drafts, learning and whatever failed, are those of plain decoding, also
    above temperature 0."""
    given = sorted(fixed(list(ledgers)).items())
    # no OMNIDEMO_*, as the server
    settings = Settings.model_construct(device="cpu", storage=folder / "again")
    pair = build_pair(target, DEFAULT, settings)
    for (prompt, tokens, temperature), told in draw.sample(given, min(REPEATED, len(given))):
        options = GREEDY.options | {"temperature": temperature, "seed": SEED}
        # with the system prompt that a chat gets where it has none
        asked = newest(pair, [{"role": "user", "content": prompt}], reading(target), tokens).messages
        made = pair.generate(asked, method="autoregressive", max_new_tokens=tokens, learn=False, **options)
        report.note(
            f"answers at temperature {temperature:g}, decoded again plainly by one process",
            told == {made.text},
            prompt,
        )
