"""Rounds with compiled draws and judgements are those of the reference, whatever comes in between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.backends.choice import make_backend
from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.core.records import Round
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.methods import make_method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.state import TargetContext
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.ngram_cache import NgramCache
from tests.support.models import PROMPT, save
from tests.support.runners import close
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.worlds import NESTED, World, copy_nothing, distance, law_of, p_value

METHODS = ("ngram-exact", "token-intersection", "union", "autoregressive", "block-verification")
PROMPTS = ("Tell me a short story about a fox.", "Tom has 3 apples and buys 4 more. How many has he?")
HEATS = (0.0, 0.6, 1.0)
# of a model that was taught to chat
MANNER: dict[str, Any] = {"temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.15}
OPTIONS: list[dict[str, Any]] = [
    {},
    MANNER,
    {"temperature": 1.0, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 0.0, "repetition_penalty": 1.3, "draft_policy": "confidence"},
    {"temperature": 0.7, "repetition_penalty": 1.3, "stop": ("the",), "draft_length": 6},
    {"stop": ("the", "a b"), "draft_length": 7, "draft_policy": "confidence"},
    {"draft_length": 0, "top_p": 0.9},
    {"learn": True, "draft_policy": "head"},
]


@pytest.fixture(autouse=True)
def nothing_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_nothing(monkeypatch)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("compiled")
    return load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )


@pytest.fixture(scope="module")
def trained() -> Pair:
    return load_pair(TARGET, DRAFTER)


FULL: WeakKeyDictionary[Pair, int] = WeakKeyDictionary()  # n-grams of a filled cache


def fill(pair: Pair) -> None:
    """All n-grams and nothing else, which takes a while where a test before has left something else."""
    if len(pair.ngrams) != FULL.get(pair):
        pair.clear_cache()
        FULL[pair] = pair.fill_cache()


def both(*pairs: Pair) -> Iterator[Counter[str]]:
    """The backend, then the reference over the same passes; with what the backend has done so far."""
    assert compile_kernels.wait()
    counts: Counter[str] = Counter()

    class Noted(CompiledBackend):
        def draws(self, context: Any, plan: Any) -> Any:
            found = super().draws(context, plan)
            counts["draws"] += found is not None
            return found

        def judge(self, *given: Any) -> Any:
            found = super().judge(*given)
            counts["judged"] += found is not None
            return found

    for making in (lambda *caches: Noted(), lambda *caches: None):
        for pair in pairs:
            pair.make_backend = making
            pair._conversations._idle.clear()
            pair._lines.clear()
        try:
            yield counts
        finally:
            for pair in pairs:
                pair.make_backend = make_backend


def facts(rounds: Any) -> list[Any]:
    """What has to be the same."""
    kept = [
        (r.draft_length, r.drafted, r.proposed, r.accepted, r.judged, r.ngram_hits, r.finish_reason)
        for r in rounds
    ]
    inserts = [r.inserts for r in rounds]
    texts = [[(t.id, t.text, t.source, t.pieces) for t in (*r.tokens, *r.discarded)] for r in rounds]
    return [kept, inserts, texts]


def shares(rounds: Any) -> list[float]:
    """What has to be nearly the same."""
    tokens = [token for r in rounds for token in (*r.tokens, *r.discarded)]
    return [
        -1.0 if share is None else share for token in tokens for share in (token.p, token.q, token.accept)
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "number", range(len(OPTIONS)), ids=[" ".join(options) or "plain" for options in OPTIONS]
)
@pytest.mark.parametrize("seeded", [True, False], ids=["seeded", "unseeded"])
def test_answers_are_those_of_the_reference(trained: Pair, method: str, number: int, seeded: bool) -> None:
    """Every two of method, temperature and options meet."""
    options, temperature = OPTIONS[number], HEATS[(number + METHODS.index(method)) % len(HEATS)]
    given = {"method": method, "max_new_tokens": 32, "temperature": temperature, "learn": False} | options
    answers, counts = [], Counter[str]()
    for counts in both(trained):  # noqa: B007
        if given["learn"]:
            trained.clear_cache()
        else:
            fill(trained)
        asked = [(seed, prompt, reuse) for seed, prompt in enumerate(PROMPTS) for reuse in (False, True)]
        with pytest.MonkeyPatch.context() as patch:
            if not seeded:  # one stream of numbers, the same for both
                patch.setattr("omnidemo.pair.answer_plan.randomness_of", lambda seed, *_: Sampler(seed))
            done = [trained.generate(text, seed=seed, reuse=reuse, **given) for seed, text, reuse in asked]
        assert all(one.metrics["context_mismatch"] == 0 for one in done)
        answers.append(done)
    drafts = method != "autoregressive" and given.get("draft_length") != 0
    assert bool(counts["draws"]) == drafts and (counts["judged"] or not seeded or method == METHODS[-1])
    for one, other in zip(*answers, strict=True):
        assert one.token_ids == other.token_ids
        assert facts(one.rounds) == facts(other.rounds)
        assert shares(one.rounds) == pytest.approx(shares(other.rounds), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.0}, {"temperature": 1.0}, MANNER], ids=["greedy", "t1", "manner"]
)
def test_models_that_agree_on_little(tiny: Pair, sampling: dict[str, Any]) -> None:
    answers = []
    for _ in both(tiny):
        fill(tiny)
        given = {"max_new_tokens": 40, "reuse": False} | sampling
        answers.append(
            [
                tiny.generate(PROMPT + "x" * seed, method=method, seed=seed, **given)
                for seed in range(3)
                for method in METHODS
            ]
        )
    for one, other in zip(*answers, strict=True):
        assert facts(one.rounds) == facts(other.rounds)


def conversation(pair: Pair, prompt: str = PROMPTS[0]) -> DecodingState:
    state = DecodingState(
        TargetContext(pair.target.runner.new_cache()),
        DrafterContext(pair.drafter.runner.new_cache(), pair.map),
    )
    state.start(pair.prompt_ids(prompt))
    return state


class Unsteady(DraftPolicy):
    """Another budget every few rounds, and sometimes none."""

    def budget(self, index: int) -> int:
        return (4, 4, 2, 4, 4, 4, 0, 4, 6, 4)[index % 10]


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(0.0), SamplingParams(1.0), SamplingParams(0.4, 30, 0.9, 0.0, 1.2)],
    ids=["greedy", "t1", "all"],
)
def test_changes_between_rounds(trained: Pair, sampling: SamplingParams) -> None:
    """Of the budget, the trie and the weights. Ids, and what both caches hold, are the reference's."""
    found = []
    for backend in (CompiledBackend(), None):
        chance, ngrams = random.Random(3), NgramCache(trained.drafter.runner.rows)
        for target_id in range(0, len(trained.target.vocabulary), 2):
            ngrams.insert(target_id, trained.map.ngram(target_id) or ())
        state, rounds = conversation(trained), list[Round]()
        method = make_method("ngram-exact", trained.map)
        plan = AnswerPlan(
            method, trained.map, ngrams, sampling, Sampler(5), Limits(90), Unsteady(4), backend=backend
        )
        for done in decode(state, plan):
            rounds.append(done)
            if done.index % 3 == 2:
                target_id = 2 * chance.randrange(len(trained.target.vocabulary) // 2) + 1
                ngrams.insert(target_id, trained.map.ngram(target_id) or ())
            if done.index % 5 == 3:
                state.drafter.read_again(trained.drafter.runner.new_cache())
        found.append((facts(rounds), state))
    assert found[0][0] == found[1][0]
    for _, state in found:
        with torch.inference_mode():
            drafter = state.drafter
            assert drafter.spells(state.target.ids)
            wanted = FusedCache(trained.drafter.runner).forward(drafter.ids, 1).logits[0]
            assert close(drafter.logits(), wanted, 1e-3)
            wanted = FusedCache(trained.target.runner).forward(state.target.ids, 1).logits
            assert close(state.target.verify([]).logits, wanted, 1e-3)


def test_a_cancelled_answer_leaves_contexts_to_go_on_from(trained: Pair) -> None:
    fill(trained)
    given = {"max_new_tokens": 40, "learn": False}
    fresh = trained.generate(PROMPTS[0], **given, reuse=False)
    for count in range(2, 6):
        trained._conversations._idle.clear()
        rounds = trained.stream(PROMPTS[0], **given)
        for _ in range(count):
            next(rounds)
        rounds.close()
        assert trained.generate(PROMPTS[0], **given).token_ids == fresh.token_ids


@pytest.mark.parametrize("window", [64, 80])
def test_a_window_that_ends(tmp_path: Path, window: int) -> None:
    """Of the target's, and of the drafter's, which slides."""
    for sizes in ((window, 256), (256, window)):
        pair = load_pair(
            *(
                save(tmp_path / f"{sizes}-{side}", "byte-level", window=sizes[side], ends=False)
                for side in (0, 1)
            )
        )
        answers = []
        for _ in both(pair):
            given = {"method": "speculative", "max_new_tokens": 120, "reuse": False, "seed": 1}
            answers.append([pair.generate(PROMPT, **given, temperature=heat) for heat in (0.0, 1.0)])
        for one, other in zip(*answers, strict=True):
            assert facts(one.rounds) == facts(other.rounds) and one.finish_reason == (
                "context" if sizes[0] == window else "length"
            )


def test_without_compiled_code_the_answer_is_the_same(trained: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_kernels.wait()
    expected = trained.generate(PROMPTS[1], max_new_tokens=20, reuse=False).token_ids
    monkeypatch.setattr(compile_kernels, "_ready", None)
    assert trained.generate(PROMPTS[1], max_new_tokens=20, reuse=False).token_ids == expected


def test_a_drafter_whose_logits_are_no_numbers(tmp_path: Path) -> None:
    """The answer is the target's all the same."""
    assert compile_kernels.wait()
    pair = load_pair(
        save(tmp_path / "target", "byte-level"), save(tmp_path / "drafter", "sentence-piece", seed=1)
    )
    expected = pair.generate(PROMPT, method="autoregressive", max_new_tokens=12, reuse=False).token_ids
    weights = pair.drafter.runner.weights()
    pair.drafter.runner.overwrite(
        {name: weight * float("nan") for name, weight in weights.items() if "lm_head" in name}
    )
    made = pair.generate(PROMPT, method="token-intersection", max_new_tokens=12, reuse=False)
    assert made.token_ids == expected


class Compiled(World):
    """A world whose models are small Llamas."""

    @cached_property
    def runners(self) -> list[FusedLlama]:
        return [
            FusedLlama(random_model("llama", rows, seed=rows))
            for rows in (len(self.target) + 1, len(self.drafter) + 2)
        ]

    def conversation(self, prompt: Any, limit: int = 1000) -> DecodingState:
        target, drafter = (FusedCache(runner) for runner in self.runners)
        state = DecodingState(TargetContext(target), DrafterContext(drafter, self.map))
        state.start(prompt)
        return state

    def law(self, sampling: SamplingParams, count: int) -> dict[tuple[int, ...], float]:
        def row(ids: list[int]) -> np.ndarray:
            logits = FusedCache(self.runners[0]).forward(ids, 1).logits[0].astype(np.float64)
            seen = np.zeros(len(logits), np.bool_)
            seen[ids] = True
            return sampling.penalised(logits, seen) if sampling.penalises else logits

        return law_of(row, self.prompt, set(self.target.roles.get("end", ())), sampling, count)


WARPS = [SamplingParams(0.8), SamplingParams(0.8, 4, 0.9, 0.05), SamplingParams(0.8, repetition_penalty=1.7)]


@pytest.mark.parametrize("sampling", WARPS, ids=["temperature", "filters", "penalty"])
@pytest.mark.parametrize("method", METHODS[:3])
def test_what_is_emitted_follows_the_targets_law(
    method: str, sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """χ² of four ids of 4,000 answers, the last two by themselves, for those come from later rounds; fixed
    seed, p > 0.001. One stream of numbers for all answers or a seed for each: either with every method and
    every sampling."""
    assert compile_kernels.wait()
    seeded = bool((METHODS.index(method) + WARPS.index(sampling)) % 2)
    monkeypatch.setattr(
        "tests.support.worlds.decode",
        lambda state, plan: decode(state, replace(plan, backend=CompiledBackend())),
    )
    world = Compiled(NESTED.target, NESTED.drafter, NESTED.prompt)
    sampler, cache, runs, ids = Sampler(3), world.cache(), 4_000, 4
    rule = make_method(method, world.map)
    with torch.inference_mode():
        numbers = (SharedNoise(seed, len(world.target) + 1) if seeded else sampler for seed in range(runs))
        counts = Counter(world.sample(rule, sampling, rng, 2, ids, cache)[-2:] for rng in numbers)

    def fit(law: dict[tuple[int, ...], float]) -> float:
        ends: dict[tuple[int, ...], float] = {}
        for path, mass in law.items():
            ends[path[-2:]] = ends.get(path[-2:], 0.0) + mass
        return p_value(counts, ends, runs)

    law, other = world.law(sampling, ids), world.law(SamplingParams(1.0), ids)
    assert fit(law) > 0.001
    assert distance(law, other) > 1e-2 and fit(other) < 0.001  # so that it would show


def test_short_answers(trained: Pair) -> None:
    """An answer of one token drafts nothing, and one of two at most one proposal."""
    fill(trained)
    for count in (1, 2, 3):
        done: list[Round] = list(trained.stream(PROMPTS[0], max_new_tokens=count, reuse=False))
        assert sum(len(r.tokens) for r in done) == count and all(r.proposed < count for r in done)
