"""Rounds of target and drafter that are made in one call: the same as round by round, whatever comes in
between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends import compile_kernels, compiled_passes, compiled_rounds, fused_cache
from omnidemo.backends.choice import make_backend
from omnidemo.backends.compiled_rounds import MadeRound
from omnidemo.backends.cpu_backend import CpuBackend
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.records import Round
from omnidemo.decoding import engine
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.cost_policy import CostPolicy
from omnidemo.decoding.draft_policy import HOLD, FixedPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.methods import make_method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.sampling import SamplingParams, as_tensor
from omnidemo.decoding.state import TargetContext
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import LONGEST
from tests.support.cost_models import known
from tests.support.models import PROMPT, save
from tests.support.runners import close
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import UNREAD, questions
from tests.support.worlds import NESTED, World, copy_nothing, distance, law_of, p_value, use_streams

METHODS = ("ngram-exact", "token-intersection", "union")
PROMPTS = (
    "Tell me a short story about a fox.",
    "Tom has 3 apples and buys 4 more. How many has he?",
    "How do I clean a window?",
)

HEATS = (0.0, 0.6, 1.0)
# of a model that was taught to chat
MANNER: dict[str, Any] = {"temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.15}
OPTIONS: list[dict[str, Any]] = [
    {},
    MANNER,
    {"temperature": 1.0, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 0.0, "repetition_penalty": 1.3, "draft_policy": "confidence"},
    {"temperature": 0.7, "repetition_penalty": 1.3, "stop": ("the",), "draft_length": 6},
    {"draft_policy": "confidence"},
    {"stop": ("the", "a b"), "draft_length": 7},
    {"max_new_tokens": 27},
    {"learn": True, "draft_policy": "head"},
]


@pytest.fixture(autouse=True)
def nothing_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_nothing(monkeypatch)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("tandem")
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


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[MadeRound]]:
    """The rounds of each call from now on."""
    assert compile_kernels.wait()
    found: list[list[MadeRound]] = []
    original = fused_cache.make_rounds

    def noted(*given: Any) -> list[MadeRound] | None:
        turns = original(*given)
        found.extend([turns] if turns else [])
        return turns

    monkeypatch.setattr(fused_cache, "make_rounds", noted)
    return found


def kinds(made: list[list[MadeRound]]) -> Counter[str]:
    """How often things happened."""
    found: Counter[str] = Counter(rounds=0, several=sum(len(turns) > 1 for turns in made))
    for turn in (turn for turns in made for turn in turns):
        found["rounds"] += 1
        found["host"] += turn.result is None
        found["merged"] += turn.result is not None and any(
            len(slot.draft_ids) > 1 for slot in turn.result.slots
        )
        found["corrected"] += turn.result is not None and turn.result.rejected
        found["bonus"] += turn.result is not None and not turn.result.rejected
        found["nothing"] += turn.proposal == []
    return found


def facts(rounds: Any) -> list[Any]:
    """What has to be the same."""
    kept = [
        (
            r.draft_length,
            r.drafted,
            r.proposed,
            r.accepted,
            r.judged,
            r.ngram_hits,
            r.inserts,
            r.finish_reason,
        )
        for r in rounds
    ]
    texts = [[(t.id, t.text, t.source, t.pieces) for t in (*r.tokens, *r.discarded)] for r in rounds]
    return [kept, texts]


def shares(rounds: Any) -> list[float]:
    """What has to be nearly the same."""
    tokens = [token for r in rounds for token in (*r.tokens, *r.discarded)]
    return [
        -1.0 if share is None else share for token in tokens for share in (token.p, token.q, token.accept)
    ]


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuBackend, "_make", lambda self, *given: [])


def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    yield True
    with monkeypatch.context() as patch:
        one_by_one(patch)
        yield False


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "number", range(len(OPTIONS)), ids=[" ".join(options) or "plain" for options in OPTIONS]
)
def test_answers_are_those_of_round_by_round(
    trained: Pair, method: str, number: int, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every two of method, temperature and options meet."""
    options, temperature = OPTIONS[number], HEATS[(number + METHODS.index(method)) % len(HEATS)]
    given = {"method": method, "max_new_tokens": 40, "temperature": temperature, "learn": False} | options
    answers = []
    for _ in both(monkeypatch):
        trained._conversations._idle.clear()
        trained._lines.clear()
        if given["learn"]:
            trained.clear_cache()
        else:
            fill(trained)
        asked = [(seed, prompt, reuse) for seed, prompt in enumerate(PROMPTS[:2]) for reuse in (False, True)]
        done = [trained.generate(prompt, seed=seed, reuse=reuse, **given) for seed, prompt, reuse in asked]
        assert all(one.metrics["context_mismatch"] == 0 for one in done)
        answers.append(done)
        count = kinds(made)
    assert count["rounds"] > 6 and (count["several"] > 0 or "stop" in options)
    assert count["host"] < count["rounds"] / 3
    for one, other in zip(*answers, strict=True):
        assert one.token_ids == other.token_ids
        assert facts(one.rounds) == facts(other.rounds)
        assert shares(one.rounds) == pytest.approx(shares(other.rounds), rel=1e-3, abs=1e-6)


def test_everything_that_can_happen_does(trained: Pair, tiny: Pair, made: list[list[MadeRound]]) -> None:
    """So that the comparisons are of all of it."""
    for pair in (trained, tiny):
        fill(pair)
        for method in METHODS:
            for seed, prompt in enumerate(PROMPTS):
                pair.generate(prompt, method=method, temperature=1.0, seed=seed, learn=False, reuse=False)
    count = kinds(made)
    assert min(count[kind] for kind in ("several", "merged", "corrected", "bonus", "nothing")) > 0, count
    assert max(map(len, made)) == compiled_rounds.MOST


@pytest.mark.parametrize(
    "options", [{}, {"top_p": 0.98, "repetition_penalty": 1.2}], ids=["plain", "filtered"]
)
def test_what_takes_too_many_numbers_is_the_hosts(
    tmp_path: Path, options: dict[str, Any], made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models that nearly agree: hardly anything is rejected, and then there is little to put in its place."""
    use_streams(monkeypatch)
    pair = load_pair(
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "byte-level", ends=False),
    )
    weights = pair.drafter.runner.weights()
    pair.drafter.runner.overwrite(
        {name: weight * 1.03 for name, weight in weights.items() if "lm_head" in name}
    )
    answers = []
    for _ in both(monkeypatch):
        given = {
            "method": "token-intersection",
            "max_new_tokens": 90,
            "temperature": 1.0,
            "reuse": False,
        } | options
        answers.append([pair.generate(PROMPT, seed=seed, **given) for seed in range(12)])
    assert kinds(made)["host"] > 0
    for one, other in zip(*answers, strict=True):
        assert facts(one.rounds) == facts(other.rounds)


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.0}, {"temperature": 1.0}, MANNER], ids=["greedy", "t1", "manner"]
)
@pytest.mark.parametrize("seed", range(4))
def test_models_that_agree_on_little(
    tiny: Pair,
    seed: int,
    sampling: dict[str, Any],
    made: list[list[MadeRound]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = []
    for _ in both(monkeypatch):
        fill(tiny)
        given = {"max_new_tokens": 40, "seed": seed, "reuse": False} | sampling
        answers.append([tiny.generate(PROMPT + "x" * seed, method=method, **given) for method in METHODS])
    assert kinds(made)["rounds"] > 30
    for one, other in zip(*answers, strict=True):
        assert facts(one.rounds) == facts(other.rounds)


def conversation(pair: Pair, prompt: str = PROMPTS[0]) -> DecodingState:
    state = DecodingState(
        TargetContext(pair.target.runner.new_cache()),
        DrafterContext(pair.drafter.runner.new_cache(), pair.map),
    )
    state.start(pair.prompt_ids(prompt))
    return state


def fast(state: DecodingState) -> Any:
    assert state.drafter is not None
    return make_backend(state.target.cache, state.drafter.cache, perf_counter)


class Unsteady(FixedPolicy):
    """Another budget every few rounds, and sometimes none."""

    def budget(self, index: int) -> int:
        self._drafts = 5  # which is not true
        return (4, 4, 2, 4, 4, 4, 0, 4, 6, 4)[index % 10]


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(0.0), SamplingParams(1.0), SamplingParams(0.4, 30, 0.9, 0.0, 1.2)],
    ids=["greedy", "t1", "all"],
)
@pytest.mark.parametrize("trouble", ["budget", "trie", "weights", "everything"])
def test_rounds_that_were_made_in_vain_leave_no_trace(
    trained: Pair,
    trouble: str,
    sampling: SamplingParams,
    made: list[list[MadeRound]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ids, and what both caches hold, are as though each round had been made when it came."""
    found = []
    for _ in both(monkeypatch):
        chance, ngrams = random.Random(3), NgramCache(trained.drafter.runner.rows)
        for target_id in range(0, len(trained.target.vocabulary), 2):
            ngrams.insert(target_id, trained.map.ngram(target_id) or ())
        state = conversation(trained)
        rule = Unsteady(4) if trouble in ("budget", "everything") else FixedPolicy(4)
        rounds: list[Round] = []
        method = make_method("ngram-exact", trained.map)
        limits, backend = Limits(90), fast(state)
        plan = AnswerPlan(method, trained.map, ngrams, sampling, Sampler(5), limits, rule, backend=backend)
        for done in decode(state, plan):
            rounds.append(done)
            if trouble in ("trie", "everything") and done.index % 3 == 2:
                target_id = 2 * chance.randrange(len(trained.target.vocabulary) // 2) + 1
                ngrams.insert(target_id, trained.map.ngram(target_id) or ())
            if trouble in ("weights", "everything") and done.index % 5 == 3:
                assert state.drafter is not None
                state.drafter.read_again(trained.drafter.runner.new_cache())
        found.append((facts(rounds), state))
    assert found[0][0] == found[1][0]
    for _, state in found:
        with torch.inference_mode():
            drafter = state.drafter
            assert drafter is not None and drafter.spells(state.target.ids)
            assert close(
                as_tensor(drafter.logits()),
                FusedCache(trained.drafter.runner).forward(drafter.ids, 1).logits[0],
                1e-3,
            )
            wanted = FusedCache(trained.target.runner).forward(state.target.ids, 1).logits
            assert close(as_tensor(state.target.verify([]).logits), wanted, 1e-3)
    assert kinds(made)["several"] > 3


def test_other_passes_overwrite_what_was_made(
    trained: Pair, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context that reads by itself in between knows that nothing is left of later rounds."""
    fill(trained)
    taken: list[MadeRound | None] = []
    original = CpuBackend._next
    monkeypatch.setattr(
        CpuBackend, "_next", lambda self, *given: taken.append(original(self, *given)) or taken[-1]
    )
    for touch in ("drafter", "target"):
        state = conversation(trained)
        drafter = state.drafter
        assert drafter is not None
        method = make_method("ngram-exact", trained.map)
        plan = AnswerPlan(
            method, trained.map, trained.ngrams, SamplingParams(0.0), Sampler(1), Limits(60),
            FixedPolicy(4), backend=fast(state),
        )  # fmt: skip
        for _ in decode(state, plan):
            if touch == "drafter":
                drafter.logits()
            else:
                state.target.verify([7])
                state.target.append([])
        assert kinds(made)["several"] > 5 and len(taken) > 10 and not any(taken)
        made.clear()
        with torch.inference_mode():
            assert close(
                as_tensor(drafter.logits()),
                FusedCache(trained.drafter.runner).forward(drafter.ids, 1).logits[0],
                1e-3,
            )


def test_seconds_are_those_of_each_round(trained: Pair, made: list[list[MadeRound]]) -> None:
    fill(trained)
    for temperature in (0.0, 1.0):
        shares = []
        for seed in range(3):
            began = perf_counter()
            done = trained.generate(
                PROMPTS[0], temperature=temperature, seed=seed, max_new_tokens=80, reuse=False
            )
            lasted = perf_counter() - began
            times = [r.seconds for r in done.rounds]
            assert all(seconds >= 0.0 for one in times for seconds in one.values())
            assert done.metrics["seconds"] == pytest.approx(sum(one["total"] for one in times))
            assert done.metrics["seconds"] <= lasted
            settled = [one["verify"] for one in times[1:-1] if one["verify"] > 0]
            shares.append(max(settled) / sum(settled))
        assert min(shares) < 0.5, "none has those of all; on a busy machine one may wait longer than all"
    assert kinds(made)["several"] > 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_token_that_the_drafter_reads_is_told(
    trained: Pair, temperature: float, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of walks that were thrown away too: as many as the host reads, which comes back for each."""
    fill(trained)
    method, sampling, read = make_method("ngram-exact", trained.map), SamplingParams(temperature), []
    forward, roll_out = FusedCache.forward, FusedCache.roll_out

    def noted(self: FusedCache, ids: Any, last: int, stats_at: float | None = None) -> Any:
        read[-1] += len(ids) * (self.runner is trained.drafter.runner)
        return forward(self, ids, last, stats_at)

    def rolled(self: FusedCache, order: Any, ids: Any, row: Any, state: Any) -> Any:
        found = roll_out(self, order, ids, row, state)
        read[-1] += len(ids) + len(found.read) + found.vain if found is not None else 0
        return found

    monkeypatch.setattr(FusedCache, "forward", noted)
    monkeypatch.setattr(FusedCache, "roll_out", rolled)
    for _ in both(monkeypatch):
        read.append(0)
        with monkeypatch.context() as patch:
            if len(read) == 2:
                patch.setattr(FusedCache, "rolls", property(lambda self: False))
            for seed, prompt in enumerate((*PROMPTS, *questions(UNREAD, 2))):
                state = conversation(trained, prompt)
                plan = AnswerPlan(
                    method, trained.map, trained.ngrams, sampling, Sampler(seed), Limits(90),
                    FixedPolicy(4), backend=fast(state),
                )  # fmt: skip
                for _ in decode(state, plan):
                    pass
    turns = [turn for turns in made for turn in turns]
    told = sum(sum(turn.reads) for turn in turns)
    assert told > 3 * read[0] and told + read[0] == pytest.approx(read[1], rel=0.01)


def test_the_first_token_waits_for_no_other_round(trained: Pair, made: list[list[MadeRound]]) -> None:
    fill(trained)
    rounds = trained.stream(PROMPTS[0], max_new_tokens=40, reuse=False)
    next(rounds)
    assert all(len(turns) == 1 for turns in made)
    next(rounds)
    assert len(made[-1]) > 1
    rounds.close()


def test_a_cancelled_answer_leaves_contexts_to_go_on_from(trained: Pair, made: list[list[MadeRound]]) -> None:
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
    assert kinds(made)["several"] > 4


@pytest.mark.parametrize("window", [64, 80])
def test_a_window_that_ends(
    tmp_path: Path, window: int, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the target's, and of the drafter's, which slides."""
    for sizes in ((window, 256), (256, window)):
        pair = load_pair(
            *(
                save(tmp_path / f"{sizes}-{side}", "byte-level", window=sizes[side], ends=False)
                for side in (0, 1)
            )
        )
        answers = []
        for _ in both(monkeypatch):
            given = {"method": "speculative", "max_new_tokens": 120, "reuse": False, "seed": 1}
            answers.append(
                [pair.generate(PROMPT, **given, temperature=temperature) for temperature in (0.0, 1.0)]
            )
        assert kinds(made)["several"] > 0
        for one, other in zip(*answers, strict=True):
            assert facts(one.rounds) == facts(other.rounds) and one.finish_reason == (
                "context" if sizes[0] == window else "length"
            )
        made.clear()


def test_methods_without_a_rule_are_the_hosts(trained: Pair, made: list[list[MadeRound]]) -> None:
    for method in ("string-exact-match", "ngram-merge"):
        trained.generate(PROMPTS[0], method=method, max_new_tokens=12, seed=1, reuse=False)
    assert not made


def test_at_temperature_0_a_filter_changes_nothing_and_costs_nothing(
    trained: Pair, made: list[list[MadeRound]]
) -> None:
    wanted = trained.generate(PROMPTS[0], max_new_tokens=12, reuse=False).token_ids
    for options in ({"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}):
        made.clear()
        assert trained.generate(PROMPTS[0], max_new_tokens=12, reuse=False, **options).token_ids == wanted
        assert made, "no round was compiled"


def test_large_targets_go_round_by_round(
    trained: Pair, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_passes, "STRIDE", 1)
    trained.generate(PROMPTS[0], max_new_tokens=20, reuse=False)
    assert made and all(len(turns) == 1 for turns in made)


def test_without_compiled_code_nothing_is_made(
    trained: Pair, made: list[list[MadeRound]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trained.generate(PROMPTS[1], max_new_tokens=20, reuse=False).token_ids
    made.clear()
    monkeypatch.setattr(compile_kernels, "_ready", None)
    assert trained.generate(PROMPTS[1], max_new_tokens=20, reuse=False).token_ids == expected
    assert not made


def test_a_drafter_whose_logits_are_no_numbers(tmp_path: Path) -> None:
    """The answer is the target's all the same."""
    assert compile_kernels.wait()
    pair = load_pair(
        save(tmp_path / "target", "byte-level"), save(tmp_path / "drafter", "sentence-piece", seed=1)
    )
    expected = pair.generate(PROMPT, method="autoregressive", max_new_tokens=12, reuse=False).token_ids
    named = {
        name: weight * float("nan")
        for name, weight in pair.drafter.runner.weights().items()
        if "lm_head" in name
    }
    pair.drafter.runner.overwrite(named)
    assert (
        pair.generate(PROMPT, method="token-intersection", max_new_tokens=12, reuse=False).token_ids
        == expected
    )


def test_spellings_are_told_to_compiled_code(trained: Pair) -> None:
    table = trained.map.spelled
    for target_id in range(0, len(trained.target.vocabulary), 7):
        spelled = trained.map.spelling(target_id)
        known = table[target_id, 1 : 1 + table[target_id, 0]].tolist()
        assert known == list(spelled if spelled is not None and len(spelled) <= LONGEST else ())
        assert (table[target_id, 0] == -1) == (len(spelled or ()) > LONGEST)


def test_rules_say_how_long_they_draft() -> None:
    cost, told = CostPolicy(8, known()), []
    for index in range(HOLD):
        cost.begin_round(index, 50, 0)
        assert cost.budget(index) == 8
        told.append(cost.draft_lookahead())
    assert told == [*range(HOLD - 1, -1, -1)] and FixedPolicy(4).draft_lookahead() > HOLD


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
        def row(ids: list[int]) -> torch.Tensor:
            logits = as_tensor(FusedCache(self.runners[0]).forward(ids, 1).logits[0]).double()
            seen = torch.zeros(len(logits), dtype=torch.bool)
            seen[ids] = True
            return sampling.penalised(logits, seen) if sampling.penalises else logits

        return law_of(row, self.prompt, set(self.target.roles.get("end", ())), sampling, count)


WARPS = [SamplingParams(0.8), SamplingParams(0.8, 4, 0.9, 0.05), SamplingParams(0.8, repetition_penalty=1.7)]


@pytest.mark.parametrize("sampling", WARPS, ids=["temperature", "filters", "penalty"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_emitted_follows_the_targets_law(
    method: str,
    sampling: SamplingParams,
    made: list[list[MadeRound]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """χ² of four ids of 4,000 answers, the last two by themselves, for those come from later rounds; fixed
    seed, p > 0.001. One stream of numbers for all answers or a seed for each: either with every method and
    every sampling."""
    seeded = bool((METHODS.index(method) + WARPS.index(sampling)) % 2)
    plan = engine._plan
    # several rounds from the first one on
    monkeypatch.setattr(engine, "_plan", lambda *given: plan(*given[:4], 1, *given[5:]))
    monkeypatch.setattr(
        "tests.support.worlds.decode",
        lambda state, plan: decode(state, replace(plan, backend=fast(state))),
    )
    world = Compiled(NESTED.target, NESTED.drafter, NESTED.prompt)
    sampler, cache, runs, ids = Sampler(3), world.cache(), 4_000, 4
    rule = make_method(method, world.map)
    with torch.inference_mode():
        numbers = (SharedNoise(seed, len(world.target) + 1) if seeded else sampler for seed in range(runs))
        counts = Counter(world.sample(rule, sampling, rng, 2, ids, cache)[-2:] for rng in numbers)
    count = kinds(made)
    assert count["rounds"] > runs and count["host"] < 0.3 * count["rounds"] and count["several"] > 100, count

    def fit(law: dict[tuple[int, ...], float]) -> float:
        ends: dict[tuple[int, ...], float] = {}
        for path, mass in law.items():
            ends[path[-2:]] = ends.get(path[-2:], 0.0) + mass
        return p_value(counts, ends, runs)

    law, other = world.law(sampling, ids), world.law(SamplingParams(1.0), ids)
    assert fit(law) > 0.001
    assert distance(law, other) > 1e-2 and fit(other) < 0.001  # so that it would show


def test_a_round_of_nothing_is_no_round(trained: Pair, made: list[list[MadeRound]]) -> None:
    """An answer of one token drafts nothing, and one of two at most one proposal."""
    fill(trained)
    for count in (1, 2, 3):
        done: list[Round] = list(trained.stream(PROMPTS[0], max_new_tokens=count, reuse=False))
        assert sum(len(r.tokens) for r in done) == count and all(r.proposed < count for r in done)
