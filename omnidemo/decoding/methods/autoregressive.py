"""The target alone: the baseline of every speedup."""

from __future__ import annotations

from omnidemo.decoding.method import Method


class Autoregressive(Method):
    """Lossless by definition. Expected acceptance: none. Cost: one target pass per token."""

    name = "autoregressive"
    title = "Plain decoding"
    lossless = True
    help = "The target writes every token itself. The baseline that every speedup is measured against."
    drafts = copies = False
