"""The decoding methods, by name."""

from __future__ import annotations

from omnidemo.decoding.method import Method
from omnidemo.decoding.methods.autoregressive import Autoregressive
from omnidemo.decoding.methods.block_verification import BlockVerification
from omnidemo.decoding.methods.copy import Copy
from omnidemo.decoding.methods.ngram_exact import NgramExact
from omnidemo.decoding.methods.ngram_merge import NgramMerge
from omnidemo.decoding.methods.speculative import Speculative
from omnidemo.decoding.methods.string_exact_match import StringExactMatch
from omnidemo.decoding.methods.string_rejection import StringRejection
from omnidemo.decoding.methods.token_intersection import TokenIntersection
from omnidemo.decoding.methods.typical_acceptance import TypicalAcceptance
from omnidemo.decoding.methods.union import Union
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

AUTO = "auto"
BASELINE = Autoregressive.name  # no drafting: the baseline of every speedup
AUTO_HELP = (
    "One vocabulary: the original speculative decoding. Two: our exact merging. Both are exact at every"
    " temperature."
)
METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        NgramExact, NgramMerge, TokenIntersection, BlockVerification, TypicalAcceptance, StringExactMatch,
        StringRejection, Union,
        Speculative, Copy, Autoregressive,
    )
}  # fmt: skip


def check_method(name: str) -> str:
    """The name of a method, or "auto". ValueError, which lists the names, for another."""
    if name not in METHODS and name != AUTO:
        raise ValueError(f"unknown method {name!r}; choose one of {', '.join(METHODS)} or {AUTO}")
    return name


def fitting(vocabulary: VocabularyMap) -> list[str]:
    """The methods that can serve a pair."""
    return [name for name, method in METHODS.items() if method.refusal(vocabulary) is None]


def pick(vocabulary: VocabularyMap) -> str:
    """The method for "auto": `speculative` with one vocabulary; else merging, which proposes what token
    intersection does and n-grams too."""
    return Speculative.name if Speculative.refusal(vocabulary) is None else NgramExact.name


def make_method(name: str, vocabulary: VocabularyMap) -> Method:
    """The method of that name for a pair. ValueError for an unknown name, and for a method that cannot serve
    the pair, with the reason."""
    method = METHODS[pick(vocabulary) if check_method(name) == AUTO else name]
    reason = method.refusal(vocabulary)
    if reason:
        raise ValueError(
            f"{method.name} cannot be used here: {reason}; choose one of {', '.join(fitting(vocabulary))}"
        )
    return method()
