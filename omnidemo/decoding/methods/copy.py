"""Copied drafts alone, without a drafter: the baseline of methods that combine copies with a drafter."""

from __future__ import annotations

from omnidemo.decoding.method import Method


class Copy(Method):
    """Propose the ids that followed the newest ids earlier in the text (prompt lookup, suffix decoding).
    `decoding/sources/` does the work, for every method.

    Lossless: the proposal is a point mass, accepted with p; a rejection draws from p without it. Expected
    acceptance: p of the copied token. Cost: its row of the target's pass.
    """

    name = "copy"
    title = "Copying alone"
    lossless = True
    help = (
        "Proposes what has followed the newest words in the text before, without a drafter. Exact at every"
        " temperature."
    )
    drafts = False
