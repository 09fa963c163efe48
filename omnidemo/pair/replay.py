"""Drafts a finished answer again as if something had not been learned: how many target passes would it have
taken? The target does not run.

At temperature 0 and with a seed the text does not depend on drafts, so a draft token is right if it equals
the answer's id. Drafter and memory draft again in the same loop (`decoding/engine.py`), by the same policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.core.config import GenerationConfig
from omnidemo.core.records import PROPOSED, Generation, Round
from omnidemo.decoding.backend import Acceptance, Draft, Judged, KVCache, Pass
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.engine import RoundContext, decode
from omnidemo.decoding.method import Method
from omnidemo.decoding.state import DecodingState, TargetContext
from omnidemo.pair.answer_plan import Beginning, Earlier, plan_answer
from omnidemo.pair.drafting_line import DraftingLine
from omnidemo.pair.ngram_memory import remember

if TYPE_CHECKING:
    from omnidemo.pair.pair import Pair

FRESH = "\x00replay"  # `check_domain` refuses this name, so no version is ever swapped into its contexts
UNKNOWN = -2  # the id after the end of an answer, which no draft token equals


Pieces = list[tuple[int, int]]  # of an answer: first token, number of tokens
MOST_PIECES, PIECE = 5, 12  # pieces that are named, and tokens of one


def newly_right(before: Sequence[Round], now: Sequence[Round]) -> Pieces:
    """Pieces of one answer, in its order, that `now` guesses right in one round and `before` did not: those
    with the most tokens that were not guessed right before."""
    known = [token.source in PROPOSED for done in before for token in done.tokens]
    found, at = [], 0
    for done in now:
        count = min(PIECE, sum(token.source in PROPOSED for token in done.tokens))
        if count > 1 and (new := known[at : at + count].count(False)):
            found.append((-new, at, count))
        at += len(done.tokens)
    return sorted((at, count) for _, at, count in sorted(found)[:MOST_PIECES])


@dataclass(frozen=True, slots=True)
class SameAnswer:
    """Tokens per pass of the target of one answer, drafted four times by its policy and first cost table.

    as_it_was: with all that was learned when the answer began. empty_memory: without earlier answers to copy
    from. fresh_drafter: with the base weights and no n-grams. nothing_learned: both, as in the first answer
    of a new pair. learned: what is guessed right as it was, and not with nothing learned (`newly_right`).
    """

    as_it_was: float
    empty_memory: float
    fresh_drafter: float
    nothing_learned: float
    learned: Pieces


@dataclass(frozen=True, slots=True)
class Without:
    """What a replay leaves out: the earlier answers (`memory`), all that the drafter has learned
    (`learning`)."""

    memory: bool = False
    learning: bool = False


class Replay:
    """A finished answer and its `Beginning`. `prompt`: its ids. `asked`: its options without defaults."""

    def __init__(
        self, pair: Pair, beginning: Beginning, prompt: Sequence[int], asked: GenerationConfig,
        answer: Generation,
    ) -> None:  # fmt: skip
        self._pair, self._beginning, self._prompt, self._answer = pair, beginning, prompt, answer
        # A stopped answer ends at its length; another ends by itself, and its drafts reach beyond its end
        # again.
        most = len(answer.token_ids) if answer.finish_reason == "cancelled" else asked.max_new_tokens
        self._asked = asked.model_copy(update={"max_new_tokens": most})
        self._method = pair._method(asked.method)

    @property
    def known(self) -> bool:
        """Whether the text does not depend on drafts, so that it shows which draft tokens are right."""
        asked, method = self._asked, self._method
        fixed = asked.temperature == 0.0 or (method.lossless and method.coupled and asked.seed is not None)
        whole = bool(self._answer.token_ids) and len(self._prompt) == self._answer.prompt_tokens
        return fixed and whole and self._pair.here and (method.drafts or method.copies)

    def same_answer(self) -> SameAnswer | None:
        """The four figures; None where the answer is not `known`, or another version was swapped in since it
        began. RuntimeError where a replay writes other ids than the answer, which is a fault."""
        found = []
        for learning in (False, True):
            for memory in (False, True):
                rounds = self.rounds(Without(memory, learning)) if self.known else None
                if rounds is None:
                    return None
                found.append(rounds)
        was, empty, fresh, nothing = (len(self._answer.token_ids) / len(rounds) for rounds in found)
        return SameAnswer(was, empty, fresh, nothing, newly_right(found[-1], found[0]))

    def rounds(self, without: Without, target: KVCache | None = None) -> list[Round] | None:
        """The rounds of one replay; None where another version drafts now. `target`: a cache with logits, by
        which the reference judges instead of by the answer's ids."""
        pair, asked, before, made = self._pair, self._asked, self._beginning, list[Round]()
        own = not without.learning  # whether the line's own weights and n-grams draft
        with pair._lock:
            base = DraftingLine(pair.drafter.runner, cost_model=before.costs)
            line = before.line(pair, asked.domain) if own else base
            if line is None:
                return None
            ngrams = pair._memory.of(asked.domain).copy_as_of(before.clock if own else 0)
            drafter = DrafterContext(line.runner.new_cache(), pair.map)
            cache = target or KnownTarget(pair.target.runner.max_positions)
            state = DecodingState(TargetContext(cache), drafter, asked.domain if own else FRESH)
            state.start(self._prompt)
            earlier = Earlier() if without.memory else before.earlier
            plan = plan_answer(pair, line, asked, state, len(self._prompt), ngrams, earlier)
            plan.backend = KnownAnswer(len(self._prompt), self._answer.token_ids) if target is None else None
            pair._conversations.running.append(state)  # training waits, as for an answer
        steps = decode(state, plan)
        try:
            while True:
                with pair._lock:
                    if own and pair._line(asked.domain).version != line.version:
                        return None
                    done = next(steps, None)
                if done is None:
                    break
                made.append(done)
                if asked.learn:
                    remember(ngrams, done)
        finally:
            with pair._lock:
                pair._conversations.end(state)
        if [token.id for done in made for token in done.tokens] != list(self._answer.token_ids):
            raise RuntimeError("a replay has written other ids than the answer, so its figures mean nothing")
        return made


class KnownModel:
    """A `Runner` with the target's shape that computes nothing."""

    def __init__(self, rows: int, limit: int, parameters: int = 0) -> None:
        self.rows, self.max_positions, self.parameters = rows, limit, parameters
        self.device, self.dtype = torch.device("cpu"), torch.float32

    def new_cache(self) -> KVCache:
        return KnownTarget(self.max_positions)

    def spare(self, most: int) -> int:
        return 0

    def copy(self) -> KnownModel:
        return self

    def weights(self) -> dict[str, torch.Tensor]:
        return {}

    def overwrite(self, named: Mapping[str, torch.Tensor]) -> None:
        raise ValueError("the target does not compute here, so its weights cannot be changed")


class KnownTarget:
    """The cache of a target that computes nothing: it counts the ids."""

    nbytes = 0

    def __init__(self, most: int) -> None:
        self.max_positions, self.length = most, 0

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """Count the ids; the logits have no columns."""
        self.length += len(ids)
        return Pass(np.empty((last, 0), np.float32))

    def trim(self, length: int) -> int:
        self.length = min(self.length, length)
        return self.length


class KnownAnswer(CompiledBackend):
    """A backend that judges by the answer's ids."""

    def __init__(self, begin: int, ids: Sequence[int]) -> None:
        """`ids`: of the answer, behind `begin` ids of the prompt."""
        super().__init__()
        self._begin, self._ids = begin, ids

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged:
        at, count = len(context.target.ids) - self._begin, len(draft.slots) + 1
        said = [*self._ids[at : at + count], *[UNKNOWN] * count][:count]
        known = Acceptance(0, said[0], False, [])
        return method.accept_known(context, draft, said) if draft.slots else known, [1.0] * count
