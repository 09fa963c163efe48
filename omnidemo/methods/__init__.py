"""The decoding methods, by name."""

from __future__ import annotations

from omnidemo.methods.autoregressive import Autoregressive
from omnidemo.methods.base import Draft, Hand, Method, Settlement, Slot
from omnidemo.methods.ngram_exact import NgramExact
from omnidemo.methods.ngram_merge import NgramMerge
from omnidemo.methods.token_intersection import TokenIntersection

METHODS: dict[str, type[Method]] = {method.name: method for method in (NgramExact, NgramMerge, TokenIntersection, Autoregressive)}

__all__ = ["METHODS", "Draft", "Hand", "Method", "Settlement", "Slot", "make_method"]


def make_method(name: str) -> Method:
    """The method of that name; ValueError that lists the names otherwise."""
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; choose one of {', '.join(METHODS)}")
    return METHODS[name]()
