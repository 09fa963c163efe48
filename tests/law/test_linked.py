"""The law of what is written where the drafter drafts at one end of a link and the target judges at the
other."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, decode
from omnidemo.decoding.methods import Autoregressive, Method, Speculative
from omnidemo.decoding.randomness import Randomness, SharedNoise
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.state import DecodingState, TargetContext
from omnidemo.pair.remote import draft_checks
from omnidemo.pair.remote.draft_checks import Check, DraftChecker, SessionGone
from omnidemo.pair.remote.linked_pair import LinkedCache, LinkedRounds
from tests.law.test_exactness import LOSSLESS, WARPS
from tests.support.worlds import CROSSING, NESTED, PLAIN, SAME, TableCache, World, distance, exact_law

METHODS = {name: method for name, method in LOSSLESS.items() if method.coupled}
EACH = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
WORLDS = [pytest.param(world, id=name) for name, world in {"plain": PLAIN, "crossing": CROSSING}.items()]


class Wire:
    """Both ends of a link to the target of a world, with JSON between. `forgets`: every so many checks the
    server loses all sessions."""

    def __init__(self, world: World, forgets: int = 0) -> None:
        self.address, self.rows, self.max_positions, self.link = (
            "http://there",
            len(world.target) + 1,
            500,
            self,
        )
        self.forgets, self.checks, self.sent = forgets, 0, 0
        pool = SimpleNamespace(
            take=lambda ids, *_: world.conversation(ids[:1]),
            resume=lambda state: True,
            give_back=lambda state: None,
        )
        runner = SimpleNamespace(rows=self.rows)
        pair = SimpleNamespace(
            target=SimpleNamespace(runner=runner, context=500, name="there"), map=world.map, ngrams=None,
            make_backend=lambda *_: None, clock=lambda: 0.0, _lock=threading.Lock(), _conversations=pool,
            _line=lambda domain: SimpleNamespace(runner=None),
        )  # fmt: skip
        self.held: list[DecodingState] = []
        pool.give_back = self.held.append
        self.checker = DraftChecker(pair)  # type: ignore[arg-type]

    def check(self, order: dict[str, Any]) -> dict[str, Any] | None:
        self.checks += 1
        if self.forgets and self.checks % self.forgets == 0:
            self.checker._sessions.clear()
        self.sent += len(order["ids"])
        try:
            made = self.checker.check(Check.model_validate_json(json.dumps(order)))
        except SessionGone:
            return None
        return dict(json.loads(json.dumps(asdict(made))))


def begun(world: World, wire: Wire, prompt: Sequence[int]) -> DecodingState:
    drafter = TableCache(len(world.drafter) + 2, world.seed + 100, 1000)
    cache = LinkedCache(wire)  # type: ignore[arg-type]
    state = DecodingState(TargetContext(cache), DrafterContext(drafter, world.map))
    state.start(prompt)
    return state


def written(
    world: World, method: Method, sampling: SamplingParams, rng: Randomness, budget: int, count: int,
    wire: Wire | None = None,
) -> tuple[int, ...]:  # fmt: skip
    state = begun(world, wire or Wire(world), world.prompt)
    plan = AnswerPlan(
        method, world.map, world.cache(), sampling, rng, Limits(count), DraftPolicy(budget),
        backend=LinkedRounds(), **world.sources(state),
    )  # fmt: skip
    return tuple(token.id for done in decode(state, plan) for token in done.tokens)


@pytest.mark.parametrize("world", WORLDS)
@EACH
@pytest.mark.parametrize("shared", [False, True], ids=["no seed", "a seed"])
def test_the_law_is_the_targets(
    world: World, method: Method, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over every branch of every choice of either end, for several rounds."""

    def run(rng: Randomness) -> tuple[int, ...]:
        monkeypatch.setattr(draft_checks, "randomness_of", lambda *_: rng)
        return written(world, method, SamplingParams(1.0), rng, 1, 2)

    law = exact_law(run, shared)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert distance(law, world.law(SamplingParams(1.0), 2)) < 1e-12


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_every_manner_goes_over_the_link(sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(rng: Randomness) -> tuple[int, ...]:
        monkeypatch.setattr(draft_checks, "randomness_of", lambda *_: rng)
        return written(PLAIN, METHODS["exact"], sampling, rng, 1, 2)

    assert distance(exact_law(run), PLAIN.law(sampling, 2)) < 1e-12


@pytest.mark.parametrize("sampling", [SamplingParams(0.0), *WARPS.values()], ids=["greedy", *WARPS])
@pytest.mark.parametrize("world", [*WORLDS, pytest.param(NESTED, id="nested")])
@EACH
def test_a_seed_gives_the_local_targets_ids(world: World, method: Method, sampling: SamplingParams) -> None:
    for seed in range(2):
        own = replace(world, seed=world.seed + seed, copying=bool(seed % 2))
        noise = SharedNoise(seed, len(own.target) + 1)
        expected = own.sample(Autoregressive(), sampling, noise, 0, 12)
        assert written(own, method, sampling, SharedNoise(seed, len(own.target) + 1), 3, 12) == expected


def test_one_vocabulary() -> None:
    noise = SharedNoise(4, len(SAME.target) + 1)
    expected = SAME.sample(Autoregressive(), SamplingParams(1.0), noise, 0, 20)
    assert (
        written(SAME, Speculative(), SamplingParams(1.0), SharedNoise(4, len(SAME.target) + 1), 4, 20)
        == expected
    )


@pytest.mark.parametrize("forgets", [1, 2, 3])
def test_a_server_that_forgets_gets_the_text_again(forgets: int) -> None:
    sampling = SamplingParams(0.0)
    wire, expected = (
        Wire(NESTED, forgets),
        NESTED.sample(Autoregressive(), sampling, SharedNoise(0, 9), 0, 40),
    )
    method = METHODS["exact"]
    assert written(NESTED, method, sampling, SharedNoise(0, 9), 3, 40, wire) == expected


def test_a_round_sends_what_is_new_alone() -> None:
    """One id, the target's own of the round before; the text went there once."""
    wire = Wire(NESTED)
    ids = written(NESTED, Autoregressive(), SamplingParams(0.0), SharedNoise(0, 9), 0, 30, wire)
    assert wire.sent == len(NESTED.prompt) + len(ids) - 1 and wire.checks == len(ids)
    checked = wire.checker._sessions.popitem()[1]
    assert checked.ids == [*NESTED.prompt, *ids]


@pytest.mark.parametrize(
    "wrong", [{"at": 5}, {"ids": [99]}, {"draft": [99]}, {"begin": 9}, {"ids": [1] * 501}]
)
def test_what_the_target_cannot_read_is_refused(wrong: dict[str, Any]) -> None:
    wire = Wire(NESTED)
    made = wire.check({"ids": [0, 1], "draft": []})
    assert made is not None
    order = {"session": made["session"], "at": 2, "ids": [1], "draft": [0], **wrong}
    if "at" in wrong:
        assert wire.check(order) is None
        return
    with pytest.raises(ValueError, match=r"ids|window|begin"):
        wire.check(order)
