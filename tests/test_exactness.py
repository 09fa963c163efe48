"""The law of what is emitted, with every random choice branched, against the law of the target alone."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from omnidemo.core.sampling import Sampler, Warp
from omnidemo.methods import Autoregressive, Method, NgramExact, NgramMerge, TokenIntersection
from omnidemo.methods.base import Hand, Slot, subtract
from worlds import NESTED, WORLDS, World, distance

WARPS = {"t1": Warp(1.0), "t0.7": Warp(0.7), "t1.5": Warp(1.5), "top-p": Warp(1.0, top_p=0.9), "top-k": Warp(1.0, top_k=3)}


def emitted(world: World, method: Method, warp: Warp, budget: int, count: int = 2) -> float:
    law = world.emitted_law(method, warp, budget, count)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return distance(law, world.law(warp, count))


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize(
    "method",
    [NgramExact(), NgramExact(overrun=0), NgramExact(attempts=0), TokenIntersection()],
    ids=["exact", "no-overrun", "enumerated", "tli"],
)
def test_lossless_methods_emit_the_targets_own_law(world: World, budget: int, method: Method) -> None:
    assert emitted(world, method, Warp(1.0), budget) < 1e-12


@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("method", [NgramExact(), TokenIntersection(), Autoregressive()], ids=["exact", "tli", "plain"])
def test_warping_keeps_them_lossless(warp: Warp, method: Method) -> None:
    assert emitted(NESTED, method, warp, 2) < 1e-12


def test_the_papers_merging_is_not_lossless_and_the_test_sees_it() -> None:
    assert emitted(NESTED, NgramMerge(), Warp(1.0), 2) > 1e-3


def test_a_broken_residual_is_seen() -> None:
    class Broken(TokenIntersection):
        def residual(self, hand: Hand, slot: Slot, law: torch.Tensor) -> int:
            return subtract(hand.chooser, law, torch.zeros_like(law))

    assert emitted(NESTED, Broken(), Warp(1.0), 2) > 1e-3


@pytest.mark.parametrize("method", [NgramExact(), NgramMerge(), TokenIntersection()], ids=["exact", "merge", "tli"])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_greedy_ids_are_the_targets_own(world: World, method: Method) -> None:
    for seed in range(20):
        world.seed = seed
        expected = next(iter(world.law(Warp(0.0), 8)))
        assert world.sample(method, Warp(0.0), Sampler(0), 4, 8) == expected


def test_sampled_pairs_agree_with_the_law() -> None:
    """A second witness with the real sampler: χ² of the emitted pairs, fixed seed, p > 0.001."""
    warp, runs, sampler = Warp(1.0), 3_000, Sampler(3)
    counts = Counter(NESTED.sample(NgramExact(), warp, sampler, 3, 2) for _ in range(runs))
    law = {ids: mass for ids, mass in NESTED.law(warp, 2).items() if mass * runs >= 5}
    rest = 1 - sum(law.values())
    chi = sum((counts[ids] - runs * mass) ** 2 / (runs * mass) for ids, mass in law.items())
    others = runs - sum(counts[ids] for ids in law)
    chi += (others - runs * rest) ** 2 / (runs * rest)
    p = 1 - torch.special.gammainc(torch.tensor(len(law) / 2.0), torch.tensor(chi / 2.0))
    assert float(p) > 0.001
