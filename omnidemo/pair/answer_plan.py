"""The plan of an answer, and what it began with, so that it can be written again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from omnidemo.core.config import GenerationConfig
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.draft_policy import make_policy
from omnidemo.decoding.engine import AnswerPlan, Limits, OnDraft
from omnidemo.decoding.form_source import FormSource
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import randomness_of
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.phrase_source import PhraseSource
from omnidemo.decoding.sources.text_index import TextIndex
from omnidemo.decoding.state import DecodingState
from omnidemo.pair.drafting_line import DraftingLine
from omnidemo.vocabulary.ngram_cache import NgramCache

if TYPE_CHECKING:
    from omnidemo.pair.pair import Pair


class Earlier(NamedTuple):
    """The earlier answers that a domain copies from, and their continuations."""

    text: TextIndex | None = None
    continuations: Continuations | None = None


def plan_answer(
    pair: Pair, line: DraftingLine, asked: GenerationConfig, state: DecodingState, prompt: int,
    ngrams: NgramCache, earlier: Earlier, *, note: bool = True,
    cancelled: Callable[[], bool] = lambda: False, begun: Sequence[int] = (),
    on_draft: OnDraft | None = None,
) -> AnswerPlan:  # fmt: skip
    """The plan of an answer that begins now after `prompt` target ids. The line's prices are corrected now
    and then hold for the answer. Acceptance probabilities begin anew: other answers, of other kinds and
    temperatures, would mislead. `note`, `cancelled`, `begun`, `on_draft`: as in `Pair.parts`. The pair's lock
    is held."""
    line.cost_model.prices.settle()
    costs = CostModel(line.cost_model.prices)
    if note:
        line.cost_model = costs
    method, ends = pair._method(asked.method), pair.map.target.roles.get("end", ())
    constraint = pair.constraint(asked)
    memory = _copier(costs.copies, asked, method, state, prompt, ends, earlier, pair.phrases)
    return AnswerPlan(
        method, pair.map, ngrams,
        SamplingParams(**{each.name: getattr(asked, each.name) for each in fields(SamplingParams)}),
        randomness_of(asked.seed, method.coupled, len(pair.map.drafters), len(begun)),
        Limits(asked.max_new_tokens, tuple(text for text in asked.stop if text), cancelled, begun),
        make_policy(asked, costs, line.head), clock=pair.clock,
        backend=pair.make_backend(state.target.cache, state.drafter.cache),
        memory=memory if constraint is None or not method.copies else FormSource(constraint, memory),
        constraint=constraint, on_draft=on_draft,
    )  # fmt: skip


def _copier(
    chances: CopyChances, asked: GenerationConfig, method: Method, state: DecodingState, prompt: int,
    ends: Sequence[int], earlier: Earlier, phrases: Continuations | None,
) -> MemorySource | PhraseSource | None:  # fmt: skip
    """The source of drafts from memory; None without copying."""
    if not method.copies or not (asked.copying or not method.drafts):
        return None
    known = earlier if asked.learn or asked.recall else Earlier()
    source = MemorySource(state.text, chances, ends, prompt, *known)
    return source if phrases is None else PhraseSource(source, phrases)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an answer depends on when it begins: the drafting version, the cost table (pickled), the n-grams'
    clock, and copies of the earlier answers and their continuations."""

    version: int
    prices: bytes
    clock: int
    earlier: Earlier

    @classmethod
    def of(cls, pair: Pair, domain: str) -> Beginning:
        """Call just before the answer begins. Takes about a millisecond; the first call waits for stored
        answers, as the answer would."""
        pair.copies.await_stored(domain)
        with pair._lock:
            line = pair._line(domain)
            version = line.published[0] if line.published else line.version
            earlier = deepcopy(Earlier(pair.copies.of(domain), pair.copies.known(domain)))
            return cls(version, pickle.dumps(line.cost_model.prices), pair._memory.of(domain).clock, earlier)

    @property
    def memory_tokens(self) -> int:
        """Target tokens of the earlier answers and of the kept ends of their prompts."""
        return len(self.earlier.text) if self.earlier.text is not None else 0

    @property
    def costs(self) -> CostModel:
        """A new `CostModel` with a copy of the prices."""
        return CostModel(pickle.loads(self.prices))

    def line(self, pair: Pair, domain: str) -> DraftingLine | None:
        """The weights that drafted the answer; None if another version drafts now. The lock is held."""
        own = pair._line(domain)
        if own.version != self.version:
            return None
        return DraftingLine(own.runner, own.version, own.head, self.costs)
