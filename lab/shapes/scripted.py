"""Pairs whose passes cost what they cost and whose words are scripted: the time of a round then depends on
nothing that was learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

from lab.races.watch import WrappedCache, WrappedRunner
from omnidemo.backends.runner import Runner
from omnidemo.decoding.backend import KVCache, Pass
from omnidemo.models.load import LanguageModel
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.vocabulary import Vocabulary

SURE = 1e4  # added to the scripted token's logit: the others' probabilities vanish
# the drafter is wrong at every ninth position: of four drafted tokens a round, seven in eight are accepted
WRONG = 9
Script = Callable[[int, int], int]  # (id read last, position of the next one) → the next id


class ScriptedCache(WrappedCache):
    """A cache that reads with its model and says what the script says."""

    def __init__(self, cache: KVCache, script: Script) -> None:
        super().__init__(cache)
        self.script = script

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        logits = super().forward(ids, last).logits  # without statistics: they would be the model's
        for row in range(last):
            back = last - 1 - row
            logits[row, self.script(ids[len(ids) - 1 - back], self.length - back)] += SURE
        return Pass(logits)


def scripted(pair: Pair, target: Script, drafter: Script, cache_size: int = 0) -> Pair:
    """The pair's models, saying other things. An n-gram cache of its own."""

    def say(model: LanguageModel, script: Script) -> LanguageModel:
        return replace(
            model, runner=WrappedRunner(model.runner, lambda inner: ScriptedCache(inner.new_cache(), script))
        )

    large, small = say(pair.target, target), say(pair.drafter, drafter)
    made = Pair(large, small, cache_size=cache_size)
    made.map = pair.map
    return made


def one_word(pair: Pair) -> tuple[Pair, list[int]]:
    """A pair that writes one directly mapped word again and again, and ids to make prompts of."""
    shared = [int(one) for one in pair.map.mapped_targets if pair.target.vocabulary.writes(int(one))]
    word, other = shared[-1], shared[-2]
    mine, wrong = pair.map.drafters[word], pair.map.drafters[other]
    made = scripted(
        pair, lambda last, position: word, lambda last, position: wrong if position % WRONG == 0 else mine
    )
    return made, shared


# vocabularies of any size
# -----------------------------------------------------------------------------------------------------


def vocabularies(target_tokens: int, drafter_tokens: int) -> tuple[Vocabulary, Vocabulary]:
    """(the target's, the drafter's): both have the bytes and words, and what is left of the larger one are
    compounds of two words."""
    singles = [bytes([byte]) for byte in range(256)]
    words = [f" {number:x}".encode() for number in range(min(target_tokens, drafter_tokens) - len(singles))]
    pairs = (
        first + words[(place + step) % len(words)]
        for step in range(1, len(words))
        for place, first in enumerate(words)
    )
    whole = [*singles, *words, *islice(pairs, abs(target_tokens - drafter_tokens))]
    return _vocabulary(whole[:target_tokens]), _vocabulary(whole[:drafter_tokens])


def _vocabulary(tokens: list[bytes]) -> Vocabulary:
    table = {token: token_id for token_id, token in enumerate(tokens)}
    return Vocabulary(tuple(tokens), {}, lambda data: [table[data]] if data in table else None)


def language_model(name: str, runner: Runner, vocabulary: Vocabulary) -> LanguageModel:
    """A model that was never saved, as if it had been loaded."""
    return LanguageModel(
        name=name, tokenizer=None, vocabulary=vocabulary, runner=runner, context=runner.max_positions,
        parameters=runner.parameters,
        memory_bytes=runner.parameters * runner.dtype.itemsize, device=runner.device, dtype=runner.dtype,
        folder=Path(), chat=False,
    )  # fmt: skip


def fill(pair: Pair, count: int) -> None:
    """Have the n-gram cache hold so many compounds, the first ones."""
    pair.ngrams.clear()
    first = len(pair.drafter.vocabulary)
    for target_id in range(first, first + count):
        pair.ngrams.insert(target_id, pair.map.ngram(target_id) or ())
