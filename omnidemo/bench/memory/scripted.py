"""Pairs whose passes cost what they cost and whose words are scripted: the time of a round then depends on nothing that was learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.bench.tiny import random_model
from omnidemo.decoding.backend import KVCache, Pass
from omnidemo.models.load import LanguageModel
from omnidemo.pair.pair import Pair
from omnidemo.vocab.vocabulary import Vocabulary

SURE = 1e4  # added to the scripted token's logit: the others' probabilities vanish
WRONG = 9  # the drafter is wrong at every ninth position: of four drafted tokens a round, seven in eight are accepted
Script = Callable[[int, int], int]  # (id read last, position of the next one) → the next id


class Scripted:
    """A runner that reads with its model and says what the script says."""

    def __init__(self, runner: Runner, script: Script) -> None:
        self.runner, self.script = runner, script
        self.rows, self.max_positions, self.parameters = runner.rows, runner.max_positions, runner.parameters
        self.device, self.dtype = runner.device, runner.dtype

    def new_cache(self) -> KVCache:
        return ScriptedCache(self.runner.new_cache(), self.script)

    def copy(self) -> Runner:
        return Scripted(self.runner.copy(), self.script)

    def weights(self) -> dict[str, Tensor]:
        return self.runner.weights()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.runner.overwrite(named)


class ScriptedCache:
    def __init__(self, cache: KVCache, script: Script) -> None:
        self.cache, self.script = cache, script
        self.length, self.max_positions = cache.length, cache.max_positions

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        logits = self.cache.forward(ids, last).logits
        self.length = self.cache.length
        for row in range(last):
            back = last - 1 - row
            logits[row, self.script(ids[len(ids) - 1 - back], self.length - back)] += SURE
        return Pass(logits)

    def trim(self, length: int) -> int:
        self.length = self.cache.trim(length)
        return self.length


def scripted(pair: Pair, target: Script, drafter: Script, cache_size: int = 0, maps: Path | None = None) -> Pair:
    """The pair's models, saying other things. An n-gram cache of its own."""
    large, small = (replace(one, runner=Scripted(one.runner, say)) for one, say in ((pair.target, target), (pair.drafter, drafter)))
    made = Pair(large, small, cache_size=cache_size, maps=maps)
    made.map = pair.map
    return made


def one_word(pair: Pair) -> tuple[Pair, list[int]]:
    """A pair that writes one directly mapped word again and again, and ids to make prompts of."""
    shared = [int(one) for one in pair.map.mapped_targets if pair.target.vocabulary.writes(int(one))]
    word, other = shared[-1], shared[-2]
    mine, wrong = pair.map.drafters[word], pair.map.drafters[other]
    made = scripted(pair, lambda last, position: word, lambda last, position: wrong if position % WRONG == 0 else mine)
    return made, shared


# vocabularies of any size -----------------------------------------------------------------------------------------------------


def invented(target_tokens: int, drafter_tokens: int, *, width: int = 64, window: int = 2048, cache_size: int = 0, seed: int = 0) -> Pair:
    """A pair of small random models. The drafter has bytes and words; the target has these too, and compounds of two words."""
    singles = [bytes([byte]) for byte in range(256)]
    words = [f" {number:x}".encode() for number in range(drafter_tokens - len(singles))]
    compounds = _compounds(words, target_tokens - drafter_tokens)
    sizes = {"max_position_embeddings": window, "tie_word_embeddings": True}
    target = _model([*singles, *words, *compounds], seed, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=4, **sizes)
    drafter = _model([*singles, *words], seed + 1, hidden_size=max(16, width // 2), intermediate_size=width, num_hidden_layers=1, **sizes)
    return Pair(target, drafter, cache_size=cache_size)


def _compounds(words: Sequence[bytes], count: int) -> list[bytes]:
    """Pairs of different words, each pair once."""
    found: list[bytes] = []
    for step in range(1, len(words)):
        for place, first in enumerate(words):
            if len(found) == count:
                return found
            found.append(first + words[(place + step) % len(words)])
    return found


def _model(tokens: Sequence[bytes], seed: int, **shape: Any) -> LanguageModel:
    table = {token: token_id for token_id, token in enumerate(tokens)}
    vocabulary = Vocabulary(tuple(tokens), {}, lambda data: [table[data]] if data in table else None)
    with torch.inference_mode(False):
        runner = FusedLlama(random_model("llama", len(tokens), seed, noise=0.02, **shape).requires_grad_(False))
    return LanguageModel(
        name="invented", tokenizer=None, vocabulary=vocabulary, runner=runner, context=runner.max_positions, parameters=runner.parameters,
        memory_bytes=4 * runner.parameters, device=runner.device, dtype=runner.dtype, folder=Path(), chat=False,
    )  # fmt: skip


def compounds_only(pair: Pair) -> Pair:
    """An invented pair that writes one compound again and again, which the drafter has to merge from two words."""
    word = len(pair.drafter.vocabulary)  # the first compound
    first, second = pair.map.ngram(word) or (0, 0)

    def draft(last: int, position: int) -> int:
        return first if last != first else second if position % WRONG else first

    return scripted(pair, lambda last, position: word, draft, cache_size=len(pair.target.vocabulary))


def fill(pair: Pair, count: int) -> None:
    """Have the n-gram cache hold so many compounds, the first ones."""
    pair.ngrams.clear()
    first = len(pair.drafter.vocabulary)
    for target_id in range(first, first + count):
        pair.ngrams.insert(target_id, pair.map.ngram(target_id) or ())
