"""Drawing ahead: what the device draws in a row is what the host's walk would have drawn, with one wait. A
CPU plays the device here."""

from __future__ import annotations

import logging
import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends import fused_cache
from omnidemo.backends.cuda_graphs import GraphCache
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.graph_rollout import GraphRollout, roller_of
from omnidemo.backends.rollout_backend import RolledDraws, RolloutBackend, roll_out
from omnidemo.decoding.backend import RoundPlan
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import FixedPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.methods import NgramExact, make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import ProposalRule, RolloutRequest, token_by_token
from omnidemo.decoding.round import RoundContext
from omnidemo.decoding.sampling import RepetitionPenalty, SamplingParams, as_tensor
from omnidemo.decoding.state import TargetContext
from omnidemo.vocabulary import trie_table
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.trie_table import CHILD, FAR, SIBLING, TOKEN, TrieTable
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.fake_graphs import CUDA, Notes, recorded
from tests.support.models import save
from tests.support.rollout_sides import (
    DRAFTER,
    MAP,
    TARGET,
    TOKENS,
    WARPS,
    Asking,
    Counting,
    Side,
    answers_agree,
    left_over,
    random_trie,
    rounds,
    same,
    sharp_model,
)
from tests.support.runners import close
from tests.support.worlds import Branching, TableCache, pretend_device, use_streams


@pytest.fixture(scope="module")
def model() -> Any:
    return sharp_model()


def side_of(model: Any, rolls: bool) -> Side:
    """One whose passes are recorded, as a device's are."""
    return Side(recorded(model)[0], rolls)


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("overrun", [0, 2])
@pytest.mark.parametrize("budget", [1, 2, 4, 6])
def test_a_rollout_is_the_hosts_walk(model: Any, sampling: SamplingParams, overrun: int, budget: int) -> None:
    rollouts = deeper = own = drafted = 0
    for seed in range(2):
        ahead, plain = side_of(model, True), side_of(model, False)
        ngrams = random_trie(seed)
        rounds(ahead, plain, NgramExact(overrun), ngrams, sampling, budget, seed)
        rollouts += ahead.cache.rollouts
        deeper += plain.cache.passes - ahead.cache.passes
        own, drafted = own + ahead.own, drafted + plain.own
        assert plain.cache.rollouts == 0
    assert rollouts >= 8 and (budget == 1 or deeper > 0)
    # the first round's, and what came after walks that were thrown away
    assert own <= 0.35 * drafted + 1, (own, drafted)


@pytest.mark.parametrize(
    "sampling", [SamplingParams(0.0), SamplingParams(1.0, top_p=0.9)], ids=["greedy", "top-p"]
)
@pytest.mark.parametrize("name", ["token-intersection", "union", "string-exact-match", "ngram-merge"])
def test_other_methods_draw_ahead_too(model: Any, name: str, sampling: SamplingParams) -> None:
    ahead, plain = side_of(model, True), side_of(model, False)
    rounds(ahead, plain, make_method(name, MAP), random_trie(1), sampling, 5, 1)
    assert ahead.cache.rollouts >= 4 and ahead.cache.passes < plain.cache.passes


@pytest.mark.parametrize("sampling", [SamplingParams(0.0), SamplingParams(1.0)], ids=["greedy", "t1"])
@pytest.mark.parametrize(
    ("name", "threshold"),
    [("ngram-exact", 0.0), ("ngram-exact", 0.1), ("union", 0.1), ("string-exact-match", 0.0)],
)
def test_rules_that_watch_hear_the_same(
    model: Any, name: str, threshold: float, sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_device(monkeypatch)
    sides = side_of(model, True), side_of(model, False)
    rules = [Asking(9, threshold=threshold) for _ in sides]
    method, ngrams = make_method(name, MAP), random_trie(2)
    for _ in range(12):
        start = len(sides[0].drafter.ids)
        drafts = [
            side.draft(method, ngrams, sampling, 9, rule) for side, rule in zip(sides, rules, strict=True)
        ]
        same(*drafts)
        for side in sides:
            side.drafter.commit(start, [], [3])
    assert rules[0].heard == pytest.approx(rules[1].heard, rel=1e-4) and len(rules[0].heard) > 12
    assert len(rules[0].states) == len(rules[0].heard)
    for one, other in zip(rules[0].states, rules[1].states, strict=True):
        assert torch.allclose(torch.as_tensor(one), torch.as_tensor(other), atol=1e-4)
    assert sides[0].cache.rollouts >= 9


@pytest.mark.parametrize("budget", [1, 2, 5, 9])
@pytest.mark.parametrize("name", ["ngram-exact", "token-intersection", "union"])
def test_a_whole_draft_is_foreseen(model: Any, name: str, budget: int) -> None:
    side, ngrams = side_of(model, True), NgramCache(TOKENS)
    ngrams.insert(6, (0, 1))
    for turn in range(8):
        side.drafter.rollback(3)
        own = side.own
        draft = side.draft(make_method(name, MAP), ngrams, SamplingParams(1.0), budget)
        assert turn == 0 or (side.own == own and side.cache.rollouts == turn)
        assert draft.drafted >= budget or draft.slots[-1].target_id in (-1, 42)


def test_corrections_of_earlier_slots(model: Any) -> None:
    """Where a rule watches, a draft takes several rollouts, and a correction goes back behind the newest."""
    ahead, plain = side_of(model, True), side_of(model, False)
    for seed in range(3):
        rounds(
            ahead,
            plain,
            make_method("token-intersection", MAP),
            NgramCache(TOKENS),
            SamplingParams(0.0),
            9,
            seed,
            rule=Asking(9),
            count=10,
        )
    assert ahead.cache.rollouts > 30


def test_ids_that_agree_again_after_others_were_read(model: Any) -> None:
    side = side_of(model, True)
    drafter, rule = side.drafter, token_by_token(MAP.draftable_logit_mask)
    with torch.inference_mode():
        order = RolloutRequest(rule, SamplingParams(0.0), 4)
        first = roll_out(drafter, order)  # which reads, and then sees that nothing has been recorded yet
        assert first is not None and not first.ids and not first.read
        rollout = roll_out(drafter, order)
        assert rollout is not None and len(rollout.read) == 3
        other = (rollout.read[0] + 1) % 6

        def check(ids: list[int], passes: int) -> None:
            before = side.cache.passes
            drafter.rollback(3)
            for one in ids:
                drafter.push(one)
            assert close(
                drafter.logits(), FusedCache(side.runner).forward([0, 1, 2, *ids], 1).logits[0], 1e-4
            )
            assert side.cache.passes - before == passes

        check(rollout.read, 0)
        check(rollout.read[:2], 0)
        check([*rollout.read[:2], other], 1)
        check([other], 1)
        check(rollout.read, 1)
        check([*rollout.read, 5], 1)


def test_little_is_drawn_in_vain_where_a_rule_may_stop(model: Any) -> None:
    counts = []
    for rule in (Asking(12), FixedPolicy(12)):
        side = side_of(model, True)
        for _ in range(2):
            side.drafter.rollback(3)
            draft = side.draft(
                make_method("token-intersection", MAP), NgramCache(TOKENS), SamplingParams(0.0), 12, rule
            )
        assert draft.drafted == 12
        counts.append(side.cache.rollouts)
    assert counts == [3, 1]  # a few tokens at a time, or all at once


def watched_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reads a tensor's numbers from here on: on a device, each of them waits."""
    reads: list[str] = []

    def watch(name: str) -> None:
        original = getattr(Tensor, name)

        def reading(self: Tensor, *more: Any, **options: Any) -> Any:
            reads.append(name)
            return original(self, *more, **options)

        monkeypatch.setattr(Tensor, name, reading)

    for name in ("cpu", "item", "tolist", "__int__", "__float__", "__bool__", "__index__", "nonzero"):
        watch(name)
    return reads


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("name", ["ngram-exact", "token-intersection", "string-exact-match"])
def test_the_number_of_waits_does_not_grow_with_the_draft(
    model: Any, name: str, sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_device(monkeypatch)
    method, ngrams, ahead, plain = (
        make_method(name, MAP),
        NgramCache(TOKENS),
        side_of(model, True),
        side_of(model, False),
    )
    for target_id, path in enumerate(((0, 1), (1, 2), (2, 0), (6, 1), (7, 3), (2, 1)), 6):
        ngrams.insert(target_id, path)
    for side in (ahead, plain):
        for _ in range(3):  # until everything is recorded
            side.draft(method, ngrams, sampling, 4)
            side.drafter.rollback(3)
    reads = watched_reads(monkeypatch)
    most: dict[bool, int] = {}
    for side in (ahead, plain):
        for budget in (1, 4, 12):
            for _ in range(4):
                reads.clear()
                side.draft(method, ngrams, sampling, budget)
                # One for all the draws, and one for the bounds of slots that could have become longer.
                assert side is plain or len(reads) <= 1 + (name == "ngram-exact" and not sampling.greedy), (
                    reads
                )
                most[side is ahead] = max(most.get(side is ahead, 0), len(reads))
                side.drafter.rollback(3)
    assert most[False] >= 8


@pytest.mark.parametrize(("temperature", "most"), [(0.0, 3), (1.0, 9)])
@pytest.mark.parametrize("name", ["ngram-exact", "token-intersection"])
def test_waits_of_whole_rounds(
    model: Any, name: str, temperature: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_device(monkeypatch)
    side, ngrams, target = (
        side_of(model, True),
        random_trie(1, count=6),
        FusedLlama(random_model("llama", len(TARGET) + 1, seed=8)),
    )
    target.passes = None
    drafted, waits = [], []
    for budget in (2, 4, 8, 12) * 2:
        state = DecodingState(TargetContext(target.new_cache()), side.drafter)
        state.start([0, 1, 2])
        with monkeypatch.context() as watching, torch.inference_mode():
            reads = watched_reads(watching)
            method = make_method(name, MAP)
            rolled = RolloutBackend(lambda: 0.0)
            plan = AnswerPlan(
                method, MAP, ngrams, SamplingParams(temperature), Sampler(budget), Limits(30),
                FixedPolicy(budget), backend=rolled,
            )  # fmt: skip
            for r in decode(state, plan):
                if r.drafted:
                    drafted.append(r.drafted)
                    waits.append(len(reads))
                reads.clear()
    half = len(waits) // 2  # by then everything has been recorded
    assert max(drafted[half:]) >= 8 and max(waits[half:]) <= most, waits[half:]
    assert temperature > 0 or set(waits[half:]) == {most}


class Asked(TorchDispatchMode):
    """Notes which kernels run."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.kernels.add(str(function.overloadpacket).removeprefix("aten."))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_a_step_asks_the_host_nothing(
    model: Any, sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_device(monkeypatch)
    runner, _ = recorded(model)
    assert runner.fixed is not None
    roller, cache, trie = GraphRollout(runner, runner.fixed), runner.new_cache(), random_trie(0).on_device()
    with torch.inference_mode(), Asked() as asked:
        roller._step(cache._kv.buffer, trie, sampling)
    waits = {"_local_scalar_dense", "is_nonzero", "item", "nonzero", "masked_select", "equal", "multinomial"}
    assert "index_select" in asked.kernels and not waits & asked.kernels
    # tensors of Python's numbers, which a recording may not copy
    made_on_the_host = {"lift_fresh", "scalar_tensor"}
    assert not made_on_the_host & asked.kernels


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_a_step_stays_on_its_device(sampling: SamplingParams) -> None:
    """With tensors that have a device and no numbers: whoever reads a number, or mixes devices, fails."""
    runner: Any = SimpleNamespace(
        device=torch.device("meta"), rows=TOKENS, embed=torch.zeros(TOKENS, 32), dtype=torch.bfloat16
    )
    with torch.inference_mode():
        roller, trie = GraphRollout(runner, None), TrieTable(TOKENS, "meta")  # type: ignore[arg-type]
        state, rows = roller._draw(trie, sampling)
        assert state.device.type == rows.device.type == "meta" and state.shape == (12,)
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            state[0].item()
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            state + torch.arange(12)


@pytest.mark.parametrize("near", [0.0, 0.97], ids=["apart", "near"])
def test_a_residual_rarely_waits_more_than_once(
    model: Any, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tokens by the same numbers as on the host, however many attempts it takes."""
    method, ngrams, found = NgramExact(), random_trie(1, count=4), []
    for device in (False, True):
        side = side_of(model, False)
        if device:
            pretend_device(monkeypatch)
            reads = watched_reads(monkeypatch)
        tokens, waits = [], []
        for seed in range(60):
            with torch.inference_mode():
                draft = side.draft(method, ngrams, SamplingParams(1.0), 3)
                p = torch.rand(len(TARGET) + 1, generator=torch.Generator().manual_seed(seed)) ** 6
                q = torch.zeros_like(p).index_put_(
                    (MAP.mapped_targets,), as_tensor(draft.slots[0].distributions[()])[MAP.mapped_drafters]
                )
                p = (1 - near) * p / p.sum() + near * q / q.sum()
                context = side.context(ngrams, SamplingParams(1.0))
                if device:
                    reads.clear()
                tokens.append(method.residual(context, draft.slots[0], p / p.sum()))
                waits.append(len(reads) if device else 0)
                side.drafter.rollback(3)
        found.append((tokens, side.sampler.uniform()))
    assert found[0] == found[1] and len(set(found[0][0])) > 5
    assert sorted(waits)[len(waits) * 2 // 3] == 1 and max(waits) <= 8, waits


def test_growing_shrinking_and_full_tries(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidemo.vocabulary.trie_table.SIZES", (11, 101, 1009))
    chance, ahead, plain = random.Random(4), side_of(model, True), side_of(model, False)
    ngrams, sampling, method = NgramCache(TOKENS, size=25), SamplingParams(1.0), NgramExact()
    filled: list[int] = []
    original = TrieTable.fill

    def fill(self: TrieTable, paths: Any) -> None:
        filled.append(len(ngrams))
        original(self, paths)

    monkeypatch.setattr(TrieTable, "fill", fill)
    target_id = 6
    for turn in range(30):
        for _ in range(2):
            target_id += 1
            ngrams.insert(
                target_id % 36 + 6,
                tuple(chance.choice((0, 1, 2, 6, 7)) for _ in range(chance.choice((2, 3, 3)))),
            )
        if turn == 20:
            ngrams.clear()
        rounds(ahead, plain, method, ngrams, sampling, 4, turn, count=1)
    assert ahead.cache.rollouts > 10 and len(ngrams) > 10
    # when something was removed or the table was full, and not when something was added
    assert 2 <= len(filled) < 25


@given(
    grams=st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4).map(tuple), unique=True, max_size=20),
    gone=st.integers(0, 19),
    later=st.integers(0, 20),
)
@settings(deadline=None, max_examples=60)
def test_the_table_holds_the_ngrams(grams: list[tuple[int, ...]], gone: int, later: int) -> None:
    cache = NgramCache(4)
    for target_id, ids in enumerate(grams):
        if target_id == later:
            cache.on_device()
        cache.insert(target_id, ids)
    if later > gone in cache:
        for target_id in set(cache.target_ids) - {gone}:
            cache.touch(target_id, True)
        cache.size = 1
        cache._evict()
    trie, known = cache.on_device(), {entry.drafter_ids: entry.target_id for entry in cache}

    def agree(path: tuple[int, ...], number: int) -> None:
        chained, kin = [], int(trie.kin[number, CHILD])
        while kin:
            chained.append(int(trie.kin[kin, TOKEN]))
            kin = int(trie.kin[kin, SIBLING])
        children = trie.find(torch.full((4,), number), torch.arange(4)).tolist()
        assert sorted(chained) == ([token for token, child in enumerate(children) if child] if number else [])
        for token, child in enumerate(children):
            there = (*path, token)
            lengths = [len(ids) for ids in known if ids[: len(there)] == there]
            assert bool(child) == bool(lengths)
            if child:
                below = min((length for length in lengths if length > len(there)), default=FAR)
                assert trie.info[child].tolist() == [0 if there in known else FAR, min(lengths), below]
                assert there not in known or trie.kin[child, [trie_table.TARGET, TOKEN]].tolist() == [
                    known[there],
                    token,
                ]
                agree(there, child)

    agree((), 0)
    assert trie.find(torch.tensor([-1, -1]), torch.tensor([0, 3])).tolist() == [0, 0]


def test_a_table_that_cannot_grow_says_so() -> None:
    trie = TrieTable(1000, sizes=(1,))
    with pytest.raises(ValueError, match="give it a smaller cache_size"):
        trie.fill(((first, second), 0) for first in range(10) for second in range(10))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("ahead")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)


@pytest.mark.parametrize("cache_size", [20_000, 30])
@pytest.mark.parametrize("policy", ["fixed", "confidence", "head"])
def test_answers_are_those_without(
    folders: tuple[str, str], policy: Any, cache_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_streams(monkeypatch)  # a recorded step does not know the noise of a seed
    pair = load_pair(*folders)
    pair.ngrams = NgramCache(pair.drafter.runner.rows, cache_size)
    for one in (pair.target, pair.drafter):
        assert isinstance(one.runner, FusedLlama)
        one.runner.passes, one.runner.fixed = None, GraphCache(one.runner.device, Notes())
    answers_agree(pair, policy, [(0.0, 1.0), (0.7, 0.9)] if cache_size > 30 else [(1.0, 1.0)], monkeypatch)
    assert cache_size > 30 or len(pair.ngrams) <= 30


def test_a_recording_that_fails_falls_back(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    ahead, plain, ngrams = side_of(model, True), side_of(model, False), random_trie(1)
    rounds(ahead, plain, NgramExact(), ngrams, SamplingParams(1.0), 4, 1)
    done = ahead.cache.rollouts
    assert ahead.runner.fixed is not None and isinstance(ahead.runner.fixed.record, Notes)
    ahead.runner.fixed.record.fail = RuntimeError("operation not permitted when stream is capturing")
    with caplog.at_level(logging.WARNING):
        # another sampling is another recording
        rounds(ahead, plain, NgramExact(), ngrams, SamplingParams(0.5), 4, 2)
    assert done > 0 and ahead.cache.rollouts == done
    assert [record.getMessage() for record in caplog.records] == [
        "Passes of this model cannot be recorded (operation not permitted when stream is capturing); it goes"
        " on without, at a higher cost per token."
    ]


def test_where_nothing_is_drawn_ahead(model: Any) -> None:
    ngrams, sampling = random_trie(1), SamplingParams(1.0)
    side = side_of(model, True)
    for _ in range(2):
        draft = side.draft(NgramExact(), ngrams, sampling, 4)
        side.drafter.rollback(draft.slots[0].base)
    assert side.cache.rollouts == 1
    with torch.inference_mode():
        other = side.context(ngrams, sampling)
        other.rng = Branching([])
        penalised = side.context(ngrams, SamplingParams(1.0, repetition_penalty=1.2))
        penalised.penalty = RepetitionPenalty(MAP)
        for one in (other, penalised):
            assert RolloutBackend(lambda: 0.0).run_round(one, NgramExact(), RoundPlan(4, 9, 0)) is None
        side.cache.max_positions = side.cache.length + 4  # near the end of its window
        near = side.context(ngrams, sampling)
        near.begin_slot(NgramExact().drawing_rule, 4)
        assert not left_over(near) and side.cache.rollouts == 1
        side.cache.max_positions = 600
        general = FusedLlama(model)
        general.passes = None
        assert not general.new_cache().rolls


def test_what_was_foreseen_for_another_place_is_dropped(model: Any) -> None:
    side, ngrams = side_of(model, True), random_trie(1)
    side.draft(NgramExact(), ngrams, SamplingParams(1.0), 4)
    side.drafter.rollback(3)
    with torch.inference_mode():
        context = side.context(ngrams, SamplingParams(1.0))
        context.begin_slot(NgramExact().drawing_rule, 4)
        assert left_over(context) >= 2
        side.drafter.push(5)
        drawn, q, law = context.draw(context.readable_logit_mask)
        assert not left_over(context) and float(law[drawn]) == q
        assert torch.allclose(as_tensor(law), as_tensor(context.probs(MAP.readable_logit_mask)))


def test_a_rollout_that_is_done_changes_nothing_more(model: Any) -> None:
    runner, _ = recorded(model)
    assert runner.fixed is not None
    cache, roller, ngrams = runner.new_cache(), roller_of(runner, runner.fixed), random_trie(3)
    row = cache.forward([0, 1, 2], 1).logits[0]
    first = ngrams.nearest.masked_fill(MAP.draftable, 0)
    rule = ProposalRule(
        first, token_by_token(MAP.readable_logit_mask).first, MAP.to_target >= 0, ngrams.on_device(), 2
    )
    sampler = Sampler(9)
    with torch.inference_mode():
        for _ in range(5):
            roller._begin(
                3, RolloutRequest(rule, SamplingParams(1.0), 3, sampler.peek(40)), row, torch.zeros(32)
            )
            roller._draw(rule.trie, SamplingParams(1.0))
            for _ in range(12):
                roller._step(cache._kv.buffer, rule.trie, SamplingParams(1.0))
            before = [
                one.clone()
                for one in (
                    roller.state,
                    roller.ids[:40],
                    roller.rows,
                    roller.distributions[:40],
                    cache._kv.buffer,
                )
            ]
            roller._step(cache._kv.buffer, rule.trie, SamplingParams(1.0))
            after = (roller.state, roller.ids[:40], roller.rows, roller.distributions[:40], cache._kv.buffer)
            assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
            for _ in range(7):
                sampler.uniform()


def test_rooms_grow_and_recordings_are_few(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_cache, "START", 16)
    ahead, plain = side_of(model, True), side_of(model, False)
    ngrams = random_trie(2)
    for seed, temperature in enumerate((1.0, 0.5, 0.6, 0.7, 0.8, 0.9)):
        rounds(ahead, plain, NgramExact(), ngrams, SamplingParams(temperature), 4, seed, count=4)
    assert ahead.cache._kv.capacity >= 64 and 1 <= len(ahead.cache._kv.rollouts) <= 4


def test_numbers_that_were_looked_at_are_used_next() -> None:
    one, other = Sampler(1), Sampler(1)
    seen = one.peek(3).tolist()
    assert one.peek(2).tolist() == seen[:2] and [one.uniform() for _ in range(5)] == [
        other.uniform() for _ in range(5)
    ]
    assert seen == [Sampler(1).uniform(), *seen[1:]]


# Where there is a CUDA device
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_graphs_draw_what_the_host_would(device: str, sampling: SamplingParams) -> None:
    """On a device with real recordings, id for id; a CPU shows that the test itself is sound."""
    vocabulary_map = VocabularyMap(TARGET, DRAFTER, len(TARGET) + 1, TOKENS, device)
    answers = []
    for rolls in (True, False):
        runner = FusedLlama(random_model("llama", TOKENS, seed=3).to(device))
        if device == "cpu":
            runner.passes, runner.fixed = None, GraphCache(runner.device, Notes())
        assert runner.fixed is not None
        cache, ngrams, sampler = Counting(runner, rolls), NgramCache(TOKENS, device=device), Sampler(2)
        drafter = DrafterContext(cache, vocabulary_map)
        drafter.start([0, 1, 2], 0)
        answer = []
        for turn in range(30):
            ngrams.insert(6 + turn, (turn % 3, (turn // 3) % 6, *([turn % 5] if turn % 2 else [])))
            with torch.inference_mode():
                start, target = len(drafter.ids), TargetContext(TableCache(1, 0))
                context = RoundContext(
                    drafter,
                    vocabulary_map,
                    ngrams,
                    sampling,
                    sampler,
                    frozenset({42}),
                    None,
                    start,
                    target=target,
                )
                context.prefetch = RolledDraws() if rolls else None
                draft = NgramExact().draft(context, 5)
                answer.append([(slot.target_id, slot.draft_ids) for slot in draft.slots])
                kept = [slot for slot in draft.slots if slot.target_id >= 0][:2]
                drafter.commit(
                    context.start,
                    [len(slot.draft_ids) for slot in kept],
                    [*(slot.target_id for slot in kept), turn % 6],
                )
        answers.append(answer)
        assert runner.fixed.record is not None and cache.rollouts >= (25 if rolls else 0)
    assert answers[0] == answers[1]
