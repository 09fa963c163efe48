"""How well a drafter guesses that sees the newest tokens alone, with or without the first ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lab.drafters.guesses import trace_of
from lab.drafters.shards import Recorded
from lab.drafters.spelling import Spelling
from omnidemo.learning.distill.losses import positions
from omnidemo.learning.distill.trace_agreement import agreement
from omnidemo.serving.measuring.report_tables import markdown_table

SINKS = 4
WHOLE = 1 << 20  # a window that sees everything


def seen(length: int, window: int, sinks: int) -> torch.Tensor:
    """[1, 1, length, length], what is added to scores: 0 for the newest `window` tokens and the first
    `sinks`."""
    place = torch.arange(length)
    behind = place[:, None] - place
    allowed = (behind >= 0) & ((behind < window) | (place < sinks))
    return torch.zeros(1, 1, length, length).masked_fill(~allowed, torch.finfo(torch.float32).min)


@torch.inference_mode()
def window_table(
    model: Any, answers: Sequence[Recorded], spelling: Spelling, windows: Sequence[int], behind: int
) -> str:
    """A line for each window: agreement at temperature 1, and how often the likeliest tokens spell the
    target's. `behind`: drafter tokens of other answers before each prompt, which its target has not read."""
    found = [one[0] for answer in answers if (one := trace_of(answer, spelling)) is not None]
    others = np.concatenate([one.drafter_ids for one in found])
    kinds = [*((window, sinks) for window in windows for sinks in (0, SINKS)), (WHOLE, 0)]
    figures: dict[tuple[int, int], list[tuple[float, float, int]]] = {}
    for number, trace in enumerate(found):
        before = np.roll(others, -sum(len(one.drafter_ids) for one in found[: number + 1]))[:behind]
        ids = np.concatenate([before, trace.drafter_ids])
        at = positions([replace(trace, drafter_ids=ids, starts=trace.starts + len(before))])
        for window, sinks in kinds:
            mask = seen(len(ids), window, sinks)
            logits = model(torch.from_numpy(ids.astype(np.int64))[None], attention_mask=mask).logits[0]
            agreed, same = agreement(logits[at.rows[:, 1]], at)
            sums = float(agreed.sum()), float(same.sum()), len(trace.starts)
            figures.setdefault((window, sinks), []).append(sums)
    lines = []
    for (window, sinks), kept in figures.items():
        agreed, same, tokens = np.array(kept).sum(0)
        named = "all" if window == WHOLE else f"{window:,}"
        lines.append([named, str(sinks), f"{agreed / tokens:.3f}", f"{same / tokens:.3f}"])
    return markdown_table(["window", "first tokens", "agreement", "same first choice"], lines)
