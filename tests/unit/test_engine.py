"""The data path: contexts that never drift, texts that join, limits, and what a round costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from time import perf_counter

import pytest
import torch

from omnidemo.core.records import Round
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.methods import make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import SamplingParams, softmax
from omnidemo.decoding.tracing import Tracer
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.worlds import CASES, NESTED, WORLDS, TableCache, World, vocabulary


def run(
    world: World,
    method: str,
    sampling: SamplingParams,
    limits: Limits,
    budget: int = 4,
    state: DecodingState | None = None,
    **options: object,
) -> list[Round]:
    state = state or world.conversation(world.prompt)
    chosen, sampler = make_method(method, world.map), Sampler(1)
    options = {"clock": perf_counter} | options
    cache, policy = world.cache(), DraftPolicy(budget)
    plan = AnswerPlan(chosen, world.map, cache, sampling, sampler, limits, policy, **options)  # type: ignore[arg-type]
    rounds = []
    for r in decode(state, plan):
        assert state.drafter is not None and (
            state.drafter.unk_count or state.drafter.spells(state.target.ids)
        )
        assert state.target.cache.length == len(state.target.ids) - 1
        rounds.append(r)
    return rounds


@pytest.mark.parametrize(("world", "method"), CASES, ids=lambda one: one if isinstance(one, str) else "")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_contexts_never_drift_and_every_round_adds_up(world: World, method: str, temperature: float) -> None:
    for seed in range(5):
        rounds = run(replace(world, seed=seed), method, SamplingParams(temperature), Limits(30))
        for r in rounds:
            assert r.accepted <= r.judged <= r.proposed and len(r.tokens) - r.accepted in (0, 1)
            assert len(r.discarded) == r.proposed - r.accepted
            assert r.ngram_hits == sum(token.source == "ngram" for token in r.tokens)
            assert all(0 <= token.p <= 1 + 1e-6 for token in r.tokens)
        assert [r.finish_reason for r in rounds[:-1]] == [None] * (len(rounds) - 1)
        assert rounds[-1].finish_reason in ("end", "length")


@pytest.mark.parametrize(("world", "method"), CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_a_draft_is_told_before_it_is_checked_and_changes_nothing(world: World, method: str) -> None:
    told: list[list[str]] = []
    limits, sampling = Limits(30), SamplingParams(1.0)
    rounds = run(world, method, sampling, limits, on_draft=told.append)
    shown = world.map.target.shown
    assert told == [[shown[one.id] for one in (*r.tokens[: r.accepted], *r.discarded)] for r in rounds]
    assert any(told) or not any(r.proposed for r in rounds)
    unseen = run(world, method, sampling, limits)
    assert [[t.id for t in r.tokens] for r in unseen] == [[t.id for t in r.tokens] for r in rounds]


def test_a_round_is_timed_by_the_clock_that_the_engine_is_given() -> None:
    ticks = iter(range(10_000))
    rounds = run(
        WORLDS["sparse"], "ngram-exact", SamplingParams(1.0), Limits(30), clock=lambda: float(next(ticks))
    )
    assert [r.seconds for r in rounds] == [
        {"draft": 2.0, "verify": 1.0, "settle": 2.0, "other": 1.0, "total": 6.0}
    ] * len(rounds)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_drafter_token_of_two_target_tokens_does_not_exceed_it(count: int) -> None:
    world = World(vocabulary([b"a", b"b"]), vocabulary([b"a", b"b", b"ba"]), (0,))
    for seed in range(20):
        rounds = run(replace(world, seed=seed), "string-exact-match", SamplingParams(1.0), Limits(count))
        assert sum(len(r.tokens) for r in rounds) == count


def test_texts_join_to_the_decoded_bytes_across_split_characters() -> None:
    target = vocabulary([b"\xe2", b"\x9c\x93", b"a", b"\xff"])
    world = World(target, vocabulary([b"\xe2", b"\x9c", b"\x93", b"a"]), (2,))
    for seed in range(20):
        rounds = run(replace(world, seed=seed), "ngram-exact", SamplingParams(1.0), Limits(12))
        ids = [token.id for r in rounds for token in r.tokens]
        assert "".join(r.text for r in rounds) == target.text_bytes(ids).decode("utf-8", "replace")


def test_bytes_that_cannot_be_spelled_yet_wait_and_stop_the_drafting() -> None:
    target = vocabulary([b"\xe2", b"\x9c\x93", b"a"])
    table = VocabularyMap(target, vocabulary([b"a", "✓".encode()]), 3, 2)
    drafter = DrafterContext(TableCache(2, 0), table)
    drafter.start([2], 0)
    drafter.follow([0])
    assert drafter.pending_bytes == b"\xe2" and not drafter.can_draft and drafter.spells([2, 0])
    drafter.follow([1])
    assert drafter.ids == [0, 1] and drafter.can_draft and drafter.spells([2, 0, 1])


def test_a_stop_string_ends_after_the_token_that_completes_it() -> None:
    cut = 0
    for seed in range(10):
        world = replace(NESTED, seed=seed)
        whole = [
            token for r in run(world, "autoregressive", SamplingParams(0.0), Limits(60)) for token in r.tokens
        ]
        texts = ["".join(token.text for token in whole[:count]) for count in range(len(whole) + 1)]
        expected = next((count for count, text in enumerate(texts) if "aa" in text), len(whole))
        rounds = run(world, "ngram-exact", SamplingParams(0.0), Limits(60, stop=("aa",)))
        assert [token.id for r in rounds for token in r.tokens] == [token.id for token in whole[:expected]]
        last = rounds[-1]
        assert (last.finish_reason == "stop") == ("aa" in texts[expected])
        # within the draft, whose rest was not wrong
        if last.finish_reason == "stop" and last.tokens[-1].accept is not None:
            cut += 1
            assert last.proposed == last.accepted == last.judged == len(last.tokens) and last.discarded == ()
    assert cut


def test_a_drafter_with_a_short_window_slides_and_the_ids_stay_the_same() -> None:
    world = WORLDS["sparse"]
    greedy = [
        token.id for r in run(world, "autoregressive", SamplingParams(0.0), Limits(60)) for token in r.tokens
    ]
    state = world.conversation(world.prompt, limit=12)
    rounds = run(world, "ngram-exact", SamplingParams(0.0), Limits(60), state=state)
    assert [token.id for r in rounds for token in r.tokens] == greedy
    assert sum(r.drafted for r in rounds) > 20


def test_a_second_turn_reads_only_what_is_new() -> None:
    world = WORLDS["sparse"]
    state = world.conversation(world.prompt)
    run(world, "ngram-exact", SamplingParams(0.0), Limits(20), state=state)
    before = list(state.target.ids)
    assert state.target.start([*before, 1, 2]) == len(before) - 1
    assert state.drafter is not None
    kept = len(state.drafter.ids)
    state.drafter.start([*before, 1, 2], len(before))
    assert len(state.drafter.ids) > kept and (
        state.drafter.unk_count or state.drafter.spells([*before, 1, 2])
    )


def test_a_prompt_is_read_in_pieces_and_what_was_left_is_read_later() -> None:
    world = WORLDS["sparse"]
    prompt = [*world.prompt, *([1, 2, 3] * 7)]
    whole, parted = world.conversation(world.prompt), world.conversation(world.prompt)
    whole.start(prompt)
    parted.target.chunk = 4
    begun = parted.begin(prompt)
    assert (
        parted.target.read_chunk() and parted.target.read_chunk() and parted.target.cache.length == begun + 8
    )
    assert (
        len(parted.target.unread) > 1
        and whole.target.unread == prompt[-1:]
        and whole.drafter.ids == parted.drafter.ids
    )
    answers = [
        [
            token.id
            for r in run(world, "ngram-exact", SamplingParams(0.0), Limits(20), state=one)
            for token in r.tokens
        ]
        for one in (whole, parted)
    ]
    assert answers[0] == answers[1] and len(answers[0]) == 20


def test_one_target_pass_a_round_and_one_drafter_pass_a_drawn_token() -> None:
    world = WORLDS["plain"]
    state = world.conversation(world.prompt)
    assert (
        isinstance(state.target.cache, TableCache)
        and state.drafter is not None
        and isinstance(state.drafter.cache, TableCache)
    )
    rounds = run(world, "token-intersection", SamplingParams(0.0), Limits(40), state=state)
    assert state.target.cache.passes == len(rounds)  # a prompt of one id needs no pass of its own
    assert state.drafter.cache.passes == sum(r.drafted for r in rounds)


def test_a_trace_holds_the_targets_own_probabilities() -> None:
    state = NESTED.conversation(NESTED.prompt)
    tracer = Tracer(NESTED.map, len(NESTED.prompt), top_k=100)
    rounds = run(NESTED, "ngram-exact", SamplingParams(0.0), Limits(25), state=state, tracer=tracer)
    assert state.drafter is not None
    trace = tracer.finish(state.drafter)
    ids = [token.id for r in rounds for token in r.tokens]
    assert (
        trace is not None
        and len(trace.p) == len(ids)
        and trace.first_ids is not None
        and trace.first_p is not None
    )
    target = state.target.cache
    assert isinstance(target, TableCache)
    for position, token_id in enumerate(ids):
        law = softmax(target.row([*NESTED.prompt, *ids[:position]]))
        assert trace.p[position] == pytest.approx(float(law[token_id]), rel=1e-5)
        assert trace.top_p[position].sum() == pytest.approx(
            float(law[NESTED.map.mapped_targets].sum()), rel=1e-5
        )
        first: Counter[int] = Counter()
        for other, probability in enumerate(law.tolist()):
            first[(NESTED.map.spelling(other) or (-1,))[0]] += probability
        for drafter_id, probability in zip(trace.first_ids[position], trace.first_p[position], strict=True):
            assert drafter_id == -1 or probability == pytest.approx(first[drafter_id], abs=1e-3)
        assert trace.first_p[position].sum() == pytest.approx(1 - first[-1], abs=0.01)
        spelled = trace.drafter_ids[trace.starts[position] :][: trace.lengths[position]]
        if trace.lengths[position]:
            assert tuple(spelled.tolist()) == NESTED.map.spelling(token_id)


@pytest.mark.parametrize(("tokens", "flat"), [(40, False), (40, True), (3_000, False), (3_000, True)])
@pytest.mark.parametrize("mass", [0.01, 0.3, 0.9, 0.999])
def test_top_p_keeps_what_a_full_sort_keeps(tokens: int, flat: bool, mass: float) -> None:
    """Also where many tokens are equally probable, and where more than the first few hundred hold the
    mass."""
    logits = torch.randn(5, tokens, generator=torch.Generator().manual_seed(tokens)) * (0.1 if flat else 4.0)
    logits = (logits * 4).round() / 4
    law = logits.softmax(-1)
    ordered, order = law.sort(descending=True, stable=True)
    kept = ordered.masked_fill(ordered.cumsum(-1) - ordered >= mass, 0.0)
    wanted = torch.zeros_like(law).scatter_(-1, order, kept)
    found = torch.from_numpy(SamplingParams(1.0, top_p=mass).probs(logits.numpy()))
    count = (found > 0).sum(-1) - (wanted > 0).sum(-1)
    assert (count.abs() <= 1).all()  # sums of another order may differ in the last bit
    same = count == 0
    assert same.any()
    torch.testing.assert_close(found[same], (wanted / wanted.sum(-1, keepdim=True))[same])
