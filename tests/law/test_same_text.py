"""The same text for the same seed: what is emitted has the target's own law, and no method, draft length or
guess changes one id of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, decode
from omnidemo.decoding.methods import (
    METHODS,
    Autoregressive,
    Method,
    NgramMerge,
    Speculative,
    StringRejection,
    TokenIntersection,
)
from omnidemo.decoding.randomness import Place, SharedNoise, randomness_of, stream_of
from omnidemo.decoding.row_ops import gumbel_max, noise
from omnidemo.decoding.sampling import SamplingParams
from tests.law.test_exactness import LOSSLESS, WARPS, emitted
from tests.support.worlds import (
    CROSSING,
    NESTED,
    PLAIN,
    SAME,
    SPARSE,
    WORLDS,
    World,
    distance,
    p_value,
)

SEEDS = 2_000


def test_the_numbers_are_philoxs() -> None:
    """Known answers of Random123's Philox4x32-10: all zeros, and digits of π (counter 243f6a88 85a308d3
    13198a2e 03707344)."""
    assert [hex(number) for number in noise(0, 0, 0, 256)[::64]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    found = _philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])
    assert found == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    seed, position, stream = 0x299F31D0_A4093822, 5_000_017, stream_of((3, 1, 4))
    row = noise(seed, position, stream, 1000)
    for token in (0, 63, 64, 255, 256, 777, 999):
        counter = [token // 256 * 64 + token % 64, position, stream & 0xFFFFFFFF, stream >> 32]
        assert row[token] == _philox(counter, [seed & 0xFFFFFFFF, seed >> 32])[token % 256 // 64]


def _philox(counter: list[int], key: list[int]) -> list[int]:
    for step in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        keys = [(key[0] + step * 0x9E3779B9) % 2**32, (key[1] + step * 0xBB67AE85) % 2**32]
        counter = [
            (second >> 32) ^ counter[1] ^ keys[0],
            second % 2**32,
            (first >> 32) ^ counter[3] ^ keys[1],
            first % 2**32,
        ]
    return counter


def test_no_row_depends_on_its_length() -> None:
    whole = noise(11, 3, 0, 5_000)
    assert all((noise(11, 3, 0, count) == whole[:count]).all() for count in (1, 63, 64, 65, 255, 257, 4_999))
    assert (
        len(
            {
                noise(*place, 8).tobytes()
                for place in [(11, 3, 0), (12, 3, 0), (11, 4, 0), (11, 3, 1), (11 + 2**32, 3, 0)]
            }
        )
        == 5
    )


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "compiled"])
@pytest.mark.parametrize("kind", ["flat", "steep", "filtered", "one"])
def test_a_race_is_won_by_the_least_time(kind: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", None)
    chance = np.random.default_rng(5)
    for seed in range(100):
        weights = chance.exponential(size=int(chance.integers(1, 1500))) ** {"flat": 0.1, "steep": 12.0}.get(
            kind, 2.0
        )
        if kind == "filtered":
            weights[chance.random(len(weights)) < 0.97] = 0.0
            weights[-1] = 1.0
        if kind == "one":
            weights[:-1] = 0.0
        probs = (weights / weights.sum()).astype(np.float32)
        numbers = noise(seed, 9, 0, len(probs))
        with np.errstate(divide="ignore"):
            times = -np.log((numbers + 0.5) / 2**32) / probs.astype(np.float64)
        assert gumbel_max(probs, numbers) == times.argmin()
        assert gumbel_max(probs.astype(np.float64), numbers) == times.argmin()


def test_compiled_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [(0, 0, 0, 256), (2**63 - 1, 8_191, stream_of((7, 70_000)), 49_153), (3, 1, 1, 5)]
    compiled = [noise(*place) for place in places]
    monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", None)
    assert all((noise(*place) == there).all() for place, there in zip(places, compiled, strict=True))


@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_the_law_is_the_targets_own(world: World, budget: int, method: Method) -> None:
    assert emitted(world, method, SamplingParams(1.0), budget, shared=True) < 1e-12


@pytest.mark.parametrize("method", [*LOSSLESS.values(), NgramMerge()], ids=[*LOSSLESS, "merge"])
def test_round_after_round(method: Method) -> None:
    """Any guess is lossless where the target draws its own token: also the paper's merging."""
    law = PLAIN.emitted_law(method, SamplingParams(1.0), 1, 3, shared=True)
    assert distance(law, PLAIN.law(SamplingParams(1.0), 3)) < 1e-12


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("method", [*LOSSLESS.values(), Autoregressive()], ids=[*LOSSLESS, "plain"])
def test_filters_and_penalties(sampling: SamplingParams, method: Method) -> None:
    assert emitted(PLAIN, method, sampling, 2, shared=True) < 1e-12


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_filters_and_penalties_of_one_vocabulary(sampling: SamplingParams) -> None:
    assert emitted(SAME, Speculative(), sampling, 2, shared=True) < 1e-12


class Stuck(SharedNoise):
    """Draws every token by the numbers of the first position."""

    def draw(self, probs: np.ndarray, place: Place | None = None) -> int:
        assert place is not None
        return super().draw(probs, place._replace(position=0))


def samples(world: World, method: Method, kind: type[SharedNoise]) -> float:
    """p-value of the counts of the first three ids, each answer with a seed of its own."""
    sampling, cache = SamplingParams(1.0), world.cache()
    with torch.inference_mode():
        counts = Counter(
            world.sample(method, sampling, kind(seed, len(world.target) + 1), 2, 3, cache)
            for seed in range(SEEDS)
        )
    return p_value(counts, world.law(sampling, 3), SEEDS)


@pytest.mark.parametrize("method", [*LOSSLESS.values(), Autoregressive()], ids=[*LOSSLESS, "plain"])
def test_seeds_are_samples_of_the_law(method: Method) -> None:
    assert samples(CROSSING if isinstance(method, StringRejection) else NESTED, method, SharedNoise) > 0.001


def test_numbers_that_do_not_change_with_the_position_are_seen() -> None:
    assert samples(NESTED, Autoregressive(), Stuck) < 0.001


ALL = [method for method in METHODS.values() if method.lossless]


@pytest.mark.parametrize(
    "sampling", [*WARPS.values(), SamplingParams(0.9, top_k=4, top_p=0.9, min_p=0.05, repetition_penalty=1.3)]
)
@pytest.mark.parametrize(
    "world", [NESTED, PLAIN, SPARSE, SAME, CROSSING], ids=["nested", "plain", "sparse", "same", "crossing"]
)
def test_no_method_changes_an_id(world: World, sampling: SamplingParams) -> None:
    cache, tokens = world.cache(), len(world.target) + 1
    with torch.inference_mode():
        for seed in range(40):
            texts = {
                world.sample(method(), sampling, SharedNoise(seed, tokens), 1 + seed % 4, 10, cache)
                for method in ALL
                if method.refusal(world.map) is None
            }
            assert len(texts) == 1


def test_an_answer_goes_on_where_it_was_left() -> None:
    """`begun` ids count as positions, and as seen where the answer is penalised."""
    sampling = SamplingParams(1.0, repetition_penalty=1.4, penalty_scope="answer")
    with torch.inference_mode():
        for seed in range(30):
            whole = ids_of(PLAIN, seed, sampling, ())
            for left in range(1, len(whole)):
                assert ids_of(PLAIN, seed, sampling, whole[:left]) == whole[left:]


def ids_of(world: World, seed: int, sampling: SamplingParams, begun: tuple[int, ...]) -> tuple[int, ...]:
    state = world.conversation((*world.prompt, *begun))
    limits = Limits(12 - len(begun), begun=begun)
    rng = SharedNoise(seed, len(world.target) + 1)
    plan = AnswerPlan(TokenIntersection(), world.map, world.cache(), sampling, rng, limits, DraftPolicy(2))
    return tuple(token.id for one in decode(state, plan) for token in one.tokens)


def test_a_drafter_with_the_targets_numbers_agrees_more_often_than_by_chance() -> None:
    """At least (1 − TV) / (1 + TV), which two independent draws are far from."""
    chance = np.random.default_rng(2)
    for _ in range(5):
        p, q = chance.dirichlet(np.full(30, 0.3)), chance.dirichlet(np.full(30, 0.3))
        q = 0.7 * p + 0.3 * q
        apart = 0.5 * float(np.abs(p - q).sum())
        agreed = np.mean(
            [
                gumbel_max(p, noise(seed, 0, 0, 30)) == gumbel_max(q, noise(seed, 0, 0, 30))
                for seed in range(3_000)
            ]
        )
        assert agreed > (1 - apart) / (1 + apart) - 0.02 and agreed > float(p @ q) + 0.1


def test_who_gets_which_numbers() -> None:
    assert isinstance(randomness_of(3, True, 10), SharedNoise) and not randomness_of(None, True, 10).shared
    first, rest, again = (randomness_of(3, False, 10, begun) for begun in (0, 4, 4))
    assert not first.shared
    numbers = [[one.accept(0.5) for _ in range(64)] for one in (first, rest, again)]
    assert numbers[0] != numbers[1] == numbers[2]
