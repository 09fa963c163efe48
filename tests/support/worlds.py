"""Tiny worlds: vocabularies of a few tokens, models that read their logits from a table, and randomness that
takes every branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from omnidemo.decoding import randomness
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.constraint import Constraint
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.form_source import FormSource
from omnidemo.decoding.methods import Method, fitting
from omnidemo.decoding.randomness import Place, Randomness
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource, Source
from omnidemo.decoding.state import TargetContext
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary import Vocabulary
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

Budget = int | Callable[[], DraftPolicy]  # a fixed draft length, or what makes the rule of a round


def copy_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of pairs copy nothing, nor what an earlier one has said; so equal ones have equal rounds."""
    monkeypatch.setattr(
        Pair, "asked", lambda self, **options: ASKED(self, **options).model_copy(update={"copying": False})
    )


ASKED = Pair.asked


def use_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer by the rule without a seed, p / q and a correction, but with numbers that a seed repeats."""
    monkeypatch.setattr(
        "omnidemo.pair.answer_plan.randomness_of", lambda seed, *more: randomness.Sampler(seed)
    )


def vocabulary(tokens: Sequence[bytes | None], **roles: int) -> Vocabulary:
    return Vocabulary(
        tuple(tokens), {role: (token_id,) for role, token_id in roles.items()}, lambda data: None
    )


@cache
def _table(seed: int, rows: int, scale: float, padded: bool, key: tuple[int, ...]) -> NDArray[np.float64]:
    generator = torch.Generator().manual_seed(hash((seed, *key)) % 2**31)
    row: NDArray[np.float64] = (torch.randn(rows, generator=generator, dtype=torch.float64) * scale).numpy()
    if padded:
        row[-1] = -30.0
    return row


@lru_cache(1 << 16)
def _chances(
    table: tuple[int, int, float, bool], key: tuple[int, ...], sampling: SamplingParams
) -> list[float]:
    """The law of the next id behind the last two."""
    return list(sampling.probs(_table(*table, key)).tolist())


@lru_cache(2000)
def _law(
    rows: int, seed: int, ends: frozenset[int], prompt: tuple[int, ...], sampling: SamplingParams, count: int,
    begun: tuple[int, ...], formed: bool,
) -> Mapping[tuple[int, ...], float]:  # fmt: skip
    """`World.law`, which many tests ask for."""
    table = _Padded(rows, seed)
    laws = {begun: 1.0}
    for _ in range(len(begun), count):
        grown: dict[tuple[int, ...], float] = {}
        for ids, mass in laws.items():
            if ids and ids[-1] in ends:
                grown[ids] = grown.get(ids, 0.0) + mass
                continue
            text = [*prompt, *ids]
            if sampling.penalises or formed:
                row = table.row(text)
                if formed:
                    row = np.where(legal_after(ids, rows), row, -np.inf)
                seen = np.zeros(len(row), np.bool_)
                seen[[*(prompt if sampling.penalty_scope == "text" else ()), *ids]] = True
                row = sampling.penalised(row, seen) if sampling.penalises else row
                chances = sampling.probs(row).tolist()
            else:
                chances = _chances((seed, rows, table.scale, table.padded), tuple(text[-2:]), sampling)
            for token, p in enumerate(chances):
                if p > 0:
                    grown[(*ids, token)] = mass * p
        laws = grown
    return laws


@lru_cache(1 << 16)
def legal_after(ids: tuple[int, ...], rows: int) -> NDArray[np.bool_]:
    """A form drawn from the answer's ids: about 60 % of the ids are legal, at least one, never the padded
    one."""
    drawn = [blake2b(repr((ids, token)).encode(), digest_size=1).digest()[0] for token in range(rows - 1)]
    legal = np.array([*(number < 150 for number in drawn), False])
    legal[0] |= not legal.any()
    return legal


class DrawnForm(Constraint):
    """The form of `legal_after`. What it calls forced is anything."""

    def __init__(self, rows: int, end: int) -> None:
        self.rows, self.end = rows, end
        self.ids: list[int] = []

    def allowed(self) -> NDArray[np.bool_]:
        return legal_after(tuple(self.ids), self.rows)

    def step(self, token: int) -> None:
        self.ids.append(token)

    def back(self, count: int) -> None:
        del self.ids[len(self.ids) - count :]

    def forced(self, most: int) -> list[int]:
        drawn = blake2b(repr((self.ids, self.rows)).encode(), digest_size=4).digest()
        return [number % (self.rows - 1) for number in drawn[: min(most, drawn[0] % 3)]]


class TableCache:
    """A model whose logits depend on the last two ids, through a seeded table."""

    # whether the last of the logits lies past the tokenizer, as in padded vocabularies, and is never likely
    padded = False

    def __init__(self, rows: int, seed: int, limit: int = 1000, scale: float = 1.5) -> None:
        self.rows, self.seed, self.max_positions, self.scale = rows, seed, limit, scale
        self.ids: list[int] = []
        self.passes = 0

    nbytes = 0

    @property
    def length(self) -> int:
        return len(self.ids)

    def row(self, ids: Sequence[int]) -> NDArray[Any]:
        """Not to be written to."""
        return _table(self.seed, self.rows, self.scale, self.padded, tuple(ids[-2:]))

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        assert len(ids) >= max(1, last), "a pass reads at least one id"
        self.passes += 1
        self.ids.extend(ids)
        assert self.length <= self.max_positions
        ends = range(len(self.ids) - last + 1, len(self.ids) + 1)
        return Pass(
            np.stack([self.row(self.ids[max(0, end - 2) : end]) for end in ends])
            if last
            else np.empty((0, self.rows))
        )

    def trim(self, length: int) -> int:
        assert 0 <= length <= self.length
        del self.ids[length:]
        return length


MAPS: dict[tuple[int, int], VocabularyMap] = {}


@dataclass(frozen=True)
class World:  # worlds are shared by modules: one that is changed would change the others' tests
    """A pair of vocabularies, with n-grams in the cache. `copying`: drafts may be copied from the text.
    `formed`: answers have the form of `legal_after`."""

    target: Vocabulary
    drafter: Vocabulary
    prompt: tuple[int, ...]
    seed: int = 1
    copying: bool = False
    formed: bool = False

    @property
    def map(self) -> VocabularyMap:
        """That of all worlds with these vocabularies."""
        key = id(self.target), id(self.drafter)  # which the map keeps
        if key not in MAPS:
            # padded rows
            MAPS[key] = VocabularyMap(self.target, self.drafter, len(self.target) + 1, len(self.drafter) + 2)
        return MAPS[key]

    def cache(self) -> NgramCache:
        cache = NgramCache(len(self.drafter) + 2)
        for target_id in range(len(self.target)):
            spelled = self.map.ngram(target_id)
            if spelled:
                cache.insert(target_id, spelled)
        return cache

    def conversation(self, prompt: Sequence[int], limit: int = 1000) -> DecodingState:
        target = _Padded(len(self.target) + 1, self.seed)
        drafter = TableCache(len(self.drafter) + 2, self.seed + 100, limit)
        state = DecodingState(TargetContext(target), DrafterContext(drafter, self.map))
        state.start(prompt)
        return state

    def copier(self, state: DecodingState) -> Source | None:
        """What proposes ids from memory."""
        ends = self.target.roles.get("end", ())
        return MemorySource(state.text, CopyChances(), ends, len(self.prompt)) if self.copying else None

    def sources(self, state: DecodingState, before: Sequence[int] = ()) -> dict[str, Any]:
        """Source and constraint of a plan, where an answer has the ids `before`."""
        copier = self.copier(state)
        if not self.formed:
            return {"memory": copier}
        form = DrawnForm(len(self.target) + 1, self.target.roles.get("end", (-1,))[0])
        form.ids += before
        return {"memory": FormSource(form, copier) if copier else None, "constraint": form}

    def round(
        self,
        method: Method,
        sampling: SamplingParams,
        rng: Randomness,
        budget: Budget,
        cache: NgramCache,
        before: Sequence[int] = (),
    ) -> tuple[int, ...]:
        """The ids that one round emits after `before`."""
        state = self.conversation((*self.prompt, *before))
        length = DraftPolicy(budget) if isinstance(budget, int) else budget()
        plan = AnswerPlan(
            method, self.map, cache, sampling, rng, Limits(50), length, **self.sources(state, before)
        )  # fmt: skip
        done = next(decode(state, plan))
        return tuple(t.id for t in done.tokens)

    def acceptance(self, method: Method, sampling: SamplingParams, budget: int) -> float:
        """The exact probability that the first thing proposed after the prompt is accepted, ∅ counting as a
        rejection."""
        cache = self.cache()

        def run(rng: Randomness) -> tuple[int, ...]:
            state = self.conversation(self.prompt)
            plan = AnswerPlan(method, self.map, cache, sampling, rng, Limits(50), DraftPolicy(budget))
            done = next(decode(state, plan))
            return (int(done.accepted > 0),)

        return exact_law(run).get((1,), 0.0)

    def round_law(
        self, method: Method, sampling: SamplingParams, budget: Budget, count: int, shared: bool = False
    ) -> dict[tuple[int, ...], float]:
        """The exact law of the first `count` ids where one round is made by the method, over every branch of
        every random choice, and the target alone writes what is then missing. It is the target's own law
        where no id of the round can be told from the target's."""
        cache, found = self.cache(), dict[tuple[int, ...], float]()
        for ids, mass in exact_law(
            lambda rng: self.round(method, sampling, rng, budget, cache), shared
        ).items():
            for whole, p in self.law(sampling, count, ids[:count]).items():
                found[whole] = found.get(whole, 0.0) + mass * p
        return found

    def emitted_law(
        self, method: Method, sampling: SamplingParams, budget: Budget, count: int, shared: bool = False
    ) -> dict[tuple[int, ...], float]:
        """The exact law of the first `count` ids where all rounds are made by the method, over every branch
        of every random choice.

        What a round does depends on the ids before it alone, so the rounds after the first are enumerated
        once per prefix.
        """
        cache = self.cache()
        ends = set(self.target.roles.get("end", ()))
        laws: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {}
        finished: dict[tuple[int, ...], float] = {}
        pending = {(): 1.0}
        while pending:
            before, mass = pending.popitem()
            if before not in laws:
                laws[before] = exact_law(
                    lambda rng, before=before: self.round(method, sampling, rng, budget, cache, before),
                    shared,
                )
            for ids, p in laws[before].items():
                after = (*before, *ids)[:count]
                into = finished if len(after) == count or after[-1] in ends else pending
                into[after] = into.get(after, 0.0) + mass * p
        return finished

    def sample(
        self,
        method: Method,
        sampling: SamplingParams,
        rng: Randomness,
        budget: int,
        count: int,
        cache: NgramCache | None = None,
    ) -> tuple[int, ...]:
        """The first `count` ids (fewer after an end token) of one generation that could go on, so that they
        may be drafted."""
        cache = self.cache() if cache is None else cache
        state, limits, policy = self.conversation(self.prompt), Limits(count + budget), DraftPolicy(budget)
        plan = AnswerPlan(
            method, self.map, cache, sampling, rng, limits, policy, **self.sources(state)
        )  # fmt: skip
        rounds = decode(state, plan)
        ids: list[int] = []
        while len(ids) < count and (made := next(rounds, None)) is not None:
            ids += [token.id for token in made.tokens]
        return tuple(ids[:count])

    def draft_law(self, sampling: SamplingParams, path: tuple[int, ...] = ()) -> NDArray[Any]:
        """The drafter's own law [D] after the prompt and `path`, over what it may write: nothing of ours but
        its table."""
        state = self.conversation(self.prompt)
        assert state.drafter is not None
        for piece in path:
            state.drafter.push(piece)
        return sampling.probs(np.where(self.map.readable, state.drafter.logits(), -np.inf))

    def law(
        self, sampling: SamplingParams, count: int, begun: tuple[int, ...] = ()
    ) -> Mapping[tuple[int, ...], float]:
        """The exact law of the first `count` ids of the target alone, of which it has `begun` with some."""
        ends = frozenset(self.target.roles.get("end", ()))
        return _law(len(self.target) + 1, self.seed, ends, self.prompt, sampling, count, begun, self.formed)


def law_of(
    row: Callable[[list[int]], NDArray[Any]],
    prompt: Sequence[int],
    ends: set[int],
    sampling: SamplingParams,
    count: int,
) -> dict[tuple[int, ...], float]:
    """The exact law of `count` ids after a prompt, fewer after an end, of a model whose logits after some ids
    are a `row`."""
    laws: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        grown: dict[tuple[int, ...], float] = {}
        for ids, mass in laws.items():
            ended = bool(ids) and ids[-1] in ends
            for token, p in (
                [(None, 1.0)] if ended else enumerate(sampling.probs(row([*prompt, *ids])).tolist())
            ):
                grown[ids if token is None else (*ids, token)] = mass * p
        laws = grown
    return laws


def p_value(counts: Mapping[tuple[int, ...], int], law: Mapping[tuple[int, ...], float], runs: int) -> float:
    """Of χ² of the counts against a law; what is too rare to be counted by itself is taken together."""
    likely = {ids: mass for ids, mass in law.items() if mass * runs >= 5}
    rest = 1 - sum(likely.values())
    chi = sum((counts[ids] - runs * mass) ** 2 / (runs * mass) for ids, mass in likely.items())
    if rest * runs >= 5:
        chi += (runs - sum(counts[ids] for ids in likely) - runs * rest) ** 2 / (runs * rest)
    freedom = len(likely) - (rest * runs < 5)
    return float(1 - torch.special.gammainc(torch.tensor(freedom / 2.0), torch.tensor(chi / 2.0)))


class _Padded(TableCache):
    padded = True


class Again(Exception):
    """A repeated attempt came to nothing; its mass is shared out among the attempt's other outcomes."""


class Branching:
    """Randomness that follows a script of choices and notes the branches it did not take. `shared`: as noise
    of a seed is, so that the target draws its own token everywhere. What the drafter drew of the same noise
    is a branch of its own: any guess is to be lossless."""

    def __init__(self, script: Sequence[int], shared: bool = False) -> None:
        self.shared = shared
        self.script, self.taken = list(script), []
        self.mass = 1.0
        self.pending: list[list[int]] = []
        self.repeats: list[tuple[tuple[int, ...], float]] = []

    def _choose(self, masses: Sequence[float]) -> int:
        """The place of one of them that is not 0."""
        if len(self.taken) < len(self.script):
            choice = self.script[len(self.taken)]
        else:
            choice, *others = [place for place, mass in enumerate(masses) if mass > 0]
            self.pending += [[*self.taken, other] for other in others]
        self.taken.append(choice)
        self.mass *= masses[choice]
        return choice

    def draw(self, law: NDArray[Any], place: Place | None = None) -> int:
        masses = law.tolist()
        assert abs(sum(masses) - 1) < 1e-9
        return self._choose(masses)

    def accept(self, probability: float) -> bool:
        return not self._choose([probability, 1 - probability])

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        if attempts == 0:
            return None
        self.repeats.append((tuple(self.taken), self.mass))
        token = attempt()
        if token is None:
            raise Again
        return token


def exact_law(
    run: Callable[[Randomness], tuple[int, ...]], shared: bool = False
) -> dict[tuple[int, ...], float]:
    """The law of `run`'s result over every branch of every random choice."""
    pending: list[list[int]] = [[]]
    finished: list[tuple[tuple[int, ...], float, list[tuple[tuple[int, ...], float]]]] = []
    again: dict[tuple[int, ...], float] = {}
    while pending:
        rng = Branching(pending.pop(), shared)
        try:
            with torch.inference_mode():  # as an answer is written, and faster
                result = run(rng)
            finished.append((result, rng.mass, rng.repeats))
        except Again:
            key, entered = rng.repeats[-1]
            again[key] = again.get(key, 0.0) + rng.mass / entered
        pending += rng.pending
    law: dict[tuple[int, ...], float] = {}
    for result, mass, repeats in finished:
        for key, _ in repeats:
            mass /= 1.0 - again.get(key, 0.0)
        law[result] = law.get(result, 0.0) + mass
    return law


def distance(left: Mapping[tuple[int, ...], float], right: Mapping[tuple[int, ...], float]) -> float:
    """Total variation between two laws."""
    return 0.5 * sum(abs(left.get(key, 0.0) - right.get(key, 0.0)) for key in left.keys() | right.keys())


# Shared prefixes, a 2-gram below a 3-gram, a 3-gram whose prefix spells nothing, a token without any
# spelling, an end token.
NESTED = World(
    vocabulary([b"a", b"b", b"ab", b"aba", b"bab", b"x", None], end=6),
    vocabulary([b"a", b"b", b"zz", None], end=3),
    (0, 1),
)
PLAIN = World(
    vocabulary([b"a", b"b", b"ab", None], end=3), vocabulary([b"a", b"b", None], end=2), (1,), seed=5
)
# Little but n-grams beside one direct token; a 4-gram.
SPARSE = World(vocabulary([b"a", b"ba", b"baba", b"x"]), vocabulary([b"a", b"b"]), (0,), seed=9)
WORLDS = {"nested": NESTED, "plain": PLAIN, "sparse": SPARSE}
# One vocabulary for both.
SAME = World(
    vocabulary([b"a", b"b", b"ab", None], end=3), vocabulary([b"a", b"b", b"ab", None], end=3), (1,), seed=7
)
# Drafter tokens that reach over the end of a target token, and end inside one.
CROSSING = World(
    vocabulary([b"a", b"b", b"ab", None], end=3), vocabulary([b"a", b"b", b"ba", None], end=3), (0,), seed=3
)


CASES = [(world, method) for world in (*WORLDS.values(), SAME, CROSSING) for method in fitting(world.map)]
