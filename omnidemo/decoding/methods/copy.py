"""Copied drafts alone, without a drafter: a baseline of every method that fuses them with one."""

from __future__ import annotations

from omnidemo.decoding.method import Method


class Copy(Method):
    """Propose what has followed the newest ids in the text before (prompt lookup, suffix decoding); the work
    is done in `copying/`, for every method.

    Lossless: the proposal is a point mass, accepted with p, else p without it is drawn from. Expected
    acceptance p of the copied token. Cost: its row of the target's pass.
    """

    name = "copy"
    title = "Copying alone"
    lossless = True
    help = (
        "Proposes what has followed the newest words in the text before, without a drafter. Exact at every"
        " temperature."
    )
    drafts = False
