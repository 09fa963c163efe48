"""The law of what is emitted, with every random choice branched, against the law of the target alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from omnidemo.decoding.backend import Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import subtract
from omnidemo.decoding.methods import (
    METHODS,
    Autoregressive,
    BlockVerification,
    Copy,
    Method,
    NgramExact,
    NgramMerge,
    Speculative,
    StringExactMatch,
    StringRejection,
    TokenIntersection,
    Union,
    fitting,
    make_method,
)
from omnidemo.decoding.methods.string_rejection import strings_of
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import SamplingParams
from tests.support.worlds import CROSSING, NESTED, PLAIN, SAME, WORLDS, World, distance, p_value, vocabulary

WARPS = {
    "t1": SamplingParams(1.0),
    "t0.7": SamplingParams(0.7),
    "t1.5": SamplingParams(1.5),
    "top-p": SamplingParams(1.0, top_p=0.9),
    "top-k": SamplingParams(1.0, top_k=3),
    "min-p": SamplingParams(1.0, min_p=0.2),
    "penalty": SamplingParams(1.0, repetition_penalty=1.7),
    "penalty of the answer": SamplingParams(1.0, repetition_penalty=1.7, penalty_scope="answer"),
}
SAMPLES = 2_000  # enough for p < 0.001 where a method is not lossless
# Every method that claims to be lossless, with its variants.
LOSSLESS: dict[str, Method] = {
    "exact": NgramExact(),
    "exact, no overrun": NgramExact(overrun=0),
    "exact, by closer bounds": NgramExact(attempts=0),
    "intersection": TokenIntersection(),
    "block": BlockVerification(),
    "union": Union(),
    "string match": StringExactMatch(),
    "string rejection": StringRejection(),
    "string rejection, enumerated": StringRejection(attempts=0),
}


def emitted(
    world: World, method: Method, sampling: SamplingParams, budget: int, shared: bool = False
) -> float:
    """How far one round is from the target's law of the next budget + 2 ids, one more than it emits where
    each takes a drafter token."""
    law = world.round_law(method, sampling, budget, budget + 2, shared)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return distance(law, world.law(sampling, budget + 2))


@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_methods_emit_the_targets_own_law(world: World, budget: int, method: Method) -> None:
    assert emitted(world, method, SamplingParams(1.0), budget) < 1e-12


@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_one_round_after_another_keeps_the_law(world: World, method: Method) -> None:
    law = world.emitted_law(method, SamplingParams(1.0), 1, 3)
    assert distance(law, world.law(SamplingParams(1.0), 3)) < 1e-12


@pytest.mark.parametrize("budget", [3, 4])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_longer_drafts_are_lossless_too(budget: int, method: Method) -> None:
    assert emitted(PLAIN, method, SamplingParams(1.0), budget) < 1e-12


@pytest.mark.parametrize("sampling", [SamplingParams(0.7), *WARPS.values()], ids=["a temperature", *WARPS])
@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("method", [Speculative(), BlockVerification()], ids=["speculative", "block"])
def test_one_vocabulary(method: Method, budget: int, sampling: SamplingParams) -> None:
    assert emitted(SAME, method, sampling, budget) < 1e-12


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("world", [PLAIN, CROSSING], ids=["plain", "crossing"])
@pytest.mark.parametrize("method", [*LOSSLESS.values(), Autoregressive()], ids=[*LOSSLESS, "plain"])
def test_warping_keeps_them_lossless(world: World, sampling: SamplingParams, method: Method) -> None:
    assert emitted(world, method, sampling, 2) < 1e-12


def test_every_lossless_method_is_tried() -> None:
    # the last one: `test_copies.py`
    tried = {type(method) for method in LOSSLESS.values()} | {Autoregressive, Speculative, Copy}
    assert tried == {method for method in METHODS.values() if method.lossless}


def test_the_papers_merging_is_not_lossless_and_the_test_sees_it() -> None:
    assert emitted(NESTED, NgramMerge(), SamplingParams(1.0), 2) > 1e-3


def test_a_broken_residual_is_seen() -> None:
    assert emitted(NESTED, Broken(), SamplingParams(1.0), 2) > 1e-3


@pytest.mark.parametrize("method", [*LOSSLESS.values(), NgramMerge()], ids=[*LOSSLESS, "merge"])
@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
def test_greedy_ids_are_the_targets_own(world: World, method: Method) -> None:
    for seed in range(20):
        own = replace(world, seed=seed)
        expected = next(iter(own.law(SamplingParams(0.0), 8)))
        assert own.sample(method, SamplingParams(0.0), Sampler(0), 4, 8) == expected


class Broken(TokenIntersection):
    def residual(self, context: RoundContext, slot: Slot, law: np.ndarray) -> int:
        return subtract(context.rng, law, np.zeros_like(law))


@pytest.mark.parametrize("method", [*LOSSLESS.values(), Speculative()], ids=[*LOSSLESS, "speculative"])
def test_samples_agree_with_the_law(method: Method) -> None:
    """A second witness with the real sampler: χ² of the first two ids emitted, fixed seed, p > 0.001."""
    world = (
        SAME
        if isinstance(method, Speculative)
        else CROSSING
        if isinstance(method, StringRejection)
        else NESTED
    )
    assert chi_square(world, method, SAMPLES) > 0.001


@pytest.mark.parametrize("method", [NgramMerge(), Broken()], ids=["the paper's merging", "a broken residual"])
def test_samples_of_what_is_not_lossless_do_not_agree(method: Method) -> None:
    assert chi_square(NESTED, method, SAMPLES) < 0.001


def chi_square(world: World, method: Method, runs: int, count: int = 2) -> float:
    """p-value of the counts of the first ids emitted."""
    sampling, sampler, cache = SamplingParams(1.0), Sampler(3), world.cache()
    with torch.inference_mode():
        # Two drafter tokens are too few for the overrun of a walk to be all there is, and enough for it to
        # happen.
        counts = Counter(world.sample(method, sampling, sampler, 2, count, cache) for _ in range(runs))
    return p_value(counts, world.law(sampling, count), runs)


# Expected acceptance (Timor et al., table 3)
# ------------------------------------------------------------------------------


def first_tokens(world: World, sampling: SamplingParams, budget: int) -> dict[int, float]:
    """ψ by brute force: the law of the first target token of a string that is drafted until it is settled."""
    found: dict[int, float] = {}
    pending: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    strings = strings_of(world.map)
    while pending:
        path, mass = pending.pop()
        for drawn, share in enumerate(world.draft_law(sampling, path).tolist()):
            if share > 0 and strings.stopped((*path, drawn), budget):
                token = strings.first((*path, drawn))
                found[token] = found.get(token, 0.0) + mass * share
            elif share > 0:
                pending.append(((*path, drawn), mass * share))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("base", [NESTED, PLAIN, CROSSING], ids=["nested", "plain", "crossing"])
def test_expected_acceptance_is_the_papers(base: World, seed: int) -> None:
    world, sampling = World(base.target, base.drafter, base.prompt, seed), SamplingParams(1.0)
    p = target_law(world, sampling)
    q = world.draft_law(sampling)
    mapped = list(zip(world.map.mapped_targets.tolist(), world.map.mapped_drafters.tolist(), strict=True))
    shared = sum(float(q[d]) for _, d in mapped)
    union = sum(min(float(p[t]), float(q[d])) for t, d in mapped)
    intersection = sum(min(float(p[t]), float(q[d]) / shared) for t, d in mapped)
    assert world.acceptance(Union(), sampling, 1) == pytest.approx(union, abs=1e-9)
    assert world.acceptance(TokenIntersection(), sampling, 1) == pytest.approx(intersection, abs=1e-9)
    assert intersection >= union - 1e-12  # theorem 4.1
    for budget in (1, 2, 3):
        psi = {token: mass for token, mass in first_tokens(world, sampling, budget).items() if token >= 0}
        rejection = sum(min(float(p[token]), mass) for token, mass in psi.items())
        assert world.acceptance(StringRejection(), sampling, budget) == pytest.approx(rejection, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_expected_acceptance_of_string_match(seed: int) -> None:
    """Σ p·q', with q' the law of the first token of the draft's own spelling."""
    world, sampling, budget = (
        World(CROSSING.target, CROSSING.drafter, CROSSING.prompt, seed),
        SamplingParams(1.0),
        2,
    )
    p, q_first = target_law(world, sampling), Counter[int]()
    for one, share in enumerate(world.draft_law(sampling).tolist()):
        if share > 0 and world.map.targets[one] in world.target.roles["end"]:
            q_first[world.map.targets[one]] += share
        elif share > 0:
            for two, other in enumerate(world.draft_law(sampling, (one,)).tolist()):
                spelled = world.target.spell(world.drafter.writes(one) + world.drafter.writes(two))
                if other > 0 and spelled:
                    q_first[spelled[0]] += share * other
    wanted = sum(float(p[token]) * mass for token, mass in q_first.items())
    assert world.acceptance(StringExactMatch(), sampling, budget) == pytest.approx(wanted, abs=1e-9)


def target_law(world: World, sampling: SamplingParams) -> list[float]:
    law = world.law(sampling, 1)
    return [law.get((token,), 0.0) for token in range(len(world.target) + 1)]


# Which methods a pair can use
# ---------------------------------------------------------------------------------------------


def test_a_pair_is_refused_what_it_cannot_use() -> None:
    assert "speculative" in fitting(SAME.map) and "speculative" not in fitting(PLAIN.map)
    with pytest.raises(ValueError, match=r"different vocabularies .* choose one of ngram-exact"):
        make_method("speculative", PLAIN.map)
    with pytest.raises(ValueError, match="unknown method"):
        make_method("lookahead", PLAIN.map)
    assert (
        make_method("auto", SAME.map).name == "speculative"
        and make_method("auto", PLAIN.map).name == "ngram-exact"
    )


def test_string_rejection_is_refused_past_its_cap() -> None:
    letters = [bytes([letter]) for letter in b"abc"]
    short, long = vocabulary([*letters, b"abcabc"]), vocabulary([*letters, b"abcabcab"])
    pieces = vocabulary([*letters, b"ab", b"bc", b"ca", b"abc", b"bca", b"cab"])
    assert StringRejection.refusal(World(short, pieces, (0,)).map) is None  # 24 spellings
    refusal = StringRejection.refusal(World(long, pieces, (0,)).map)
    assert refusal is not None and "more than 64 spellings" in refusal and "abcabcab" in refusal
