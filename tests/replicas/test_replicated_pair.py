"""Answers that replicas write say what the plain pair says, also where a replica is lost; and what one has
learned all have."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import GenerationConfig, Settings
from omnidemo.core.records import Generation, Reading, Round, Trace
from omnidemo.decoding.cost_model import CostModel
from omnidemo.pair import conversation_pool
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Adapter, Behind, Call, Finished, Insertions
from omnidemo.pair.remote.remote_pair import _conversation
from omnidemo.pair.remote.writing_pair import WritingPair
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.replicas import ray_cluster
from omnidemo.serving.replicas.failover import LOSSES
from omnidemo.serving.replicas.pair_replica import PairReplica
from omnidemo.serving.replicas.ray_cluster import RayCluster
from omnidemo.serving.replicas.replicated_pair import ALONG, ReplicatedPair
from omnidemo.storage import visitor_state
from omnidemo.storage.visitors import OWN
from tests.support.drafted_elsewhere import drafts, other_weights, stopped
from tests.support.local_replicas import LocalCluster, LocalReplicas
from tests.support.models import PROMPT

FORM = {
    "type": "object", "properties": {"kind": {"enum": ["duck", "goose"]}, "swims": {"type": "boolean"}},
    "required": ["kind", "swims"], "additionalProperties": False,
}  # fmt: skip
PROMPTS = ("the small duck", "= 1 + 1 is a formula", PROMPT)


@pytest.fixture
def settings(models: tuple[str, str], tmp_path: Path) -> Settings:
    names = {"target": models[0], "drafter": models[1]}
    return Settings(storage=tmp_path, device="cpu", backend="reference", compact="neither", **names)


@pytest.fixture
def plain(settings: Settings) -> Pair:
    return build_pair(settings.target, settings.drafter, settings)


@pytest.fixture
def pair(settings: Settings) -> ReplicatedPair:
    made = LocalCluster().build(settings.target, settings.drafter, settings)
    assert isinstance(made, ReplicatedPair)
    return made


def replicas(pair: ReplicatedPair) -> LocalReplicas:
    assert isinstance(pair.replicas, LocalReplicas)
    return pair.replicas


def text(made: Generation) -> str:
    return "".join(done.text for done in made.rounds)


@pytest.mark.parametrize("method", ["autoregressive", "ngram-exact"])
def test_greedy_answers_equal_the_plain_pair(pair: ReplicatedPair, plain: Pair, method: str) -> None:
    for _ in range(2):  # each prompt is answered by one replica and the other
        for prompt in PROMPTS:
            made, wanted = (one.generate(prompt, method=method, max_new_tokens=24) for one in (pair, plain))
            assert (made.token_ids, made.text) == (wanted.token_ids, wanted.text)


def test_the_app_holds_no_weights(pair: ReplicatedPair) -> None:
    assert {
        weight.device.type
        for model in (pair.target, pair.drafter)
        for weight in model.runner.weights().values()
    } == {"meta"}
    assert pair.summary()["device"] == "replicas"


@pytest.mark.parametrize("losses", [[0], [1], [3], [2, 0, 2], [-1]])
def test_an_answer_goes_on_elsewhere_and_is_the_same(
    pair: ReplicatedPair, plain: Pair, losses: list[int]
) -> None:
    options: dict[str, Any] = {"max_new_tokens": 24, "draft_length": 2, "stop": ["never said"]}
    wanted = plain.generate(PROMPT, **options)
    replicas(pair).losses = list(losses)
    made = pair.generate(PROMPT, **options)
    assert (made.token_ids, made.text, made.finish_reason) == (
        wanted.token_ids,
        wanted.text,
        wanted.finish_reason,
    )
    assert text(made) == made.text and [done.index for done in made.rounds] == list(range(len(made.rounds)))
    assert made.prompt_tokens == wanted.prompt_tokens and made.metrics["tokens"] == 24 and made.key
    assert len(replicas(pair).calls) == (1 if losses == [-1] else 1 + len(losses))


def test_any_token_may_be_the_last_one_before_a_loss(plain: Pair) -> None:
    """Also one inside a character, and inside a text that ends the answer."""
    ids = plain.prompt_ids(PROMPT)
    whole = plain.generate(ids, max_new_tokens=24, method="autoregressive", learn=False)
    shown = [token.text for done in whole.rounds for token in done.tokens]
    assert "" in shown or "\ufffd" in whole.text  # a character of several tokens
    stop = whole.text[4:9]
    stopped = plain.generate(ids, max_new_tokens=24, method="autoregressive", learn=False, stop=[stop])
    for cut in range(1, len(shown)):
        options: dict[str, Any] = {"begun": whole.token_ids[:cut], "method": "autoregressive", "learn": False}
        rest = plain.generate(ids, max_new_tokens=24 - cut, **options)
        assert rest.token_ids == whole.token_ids[cut:] and "".join(shown[:cut]) + rest.text == whole.text
        if cut < len(stopped.token_ids):
            rest = plain.generate(ids, max_new_tokens=24 - cut, stop=[stop], **options)
            assert rest.finish_reason == "stop" and "".join(shown[:cut]) + rest.text == stopped.text


@pytest.mark.parametrize("method", ["ngram-exact", "autoregressive", "string-exact-match"])
def test_above_temperature_0_another_replica_writes_the_same_text(
    pair: ReplicatedPair, plain: Pair, method: str
) -> None:
    for seed in range(8):
        options: dict[str, Any] = {
            "temperature": 1.5,
            "seed": seed,
            "max_new_tokens": 24,
            "repetition_penalty": 1.1 + seed / 20,
        }
        replicas(pair).losses = [seed, 0, seed % 3]
        whole = plain.generate(PROMPT, method="autoregressive", learn=False, **options)
        assert (
            pair.generate(PROMPT, method=method, penalty_scope="text", **options).token_ids == whole.token_ids
        )


@pytest.mark.parametrize("losses", [[0], [1], [1, 0]])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_an_answer_of_a_form_keeps_it_and_its_text_elsewhere(
    pair: ReplicatedPair, plain: Pair, losses: list[int], temperature: float
) -> None:
    asked: dict[str, Any] = {"schema": FORM, "temperature": temperature, "seed": 4, "max_new_tokens": 80}
    wanted = plain.generate(PROMPT, method="autoregressive", learn=False, **asked)
    replicas(pair).losses = list(losses)
    made = pair.generate(PROMPT, draft_policy="chance", **asked)
    assert (made.token_ids, made.finish_reason) == (wanted.token_ids, "end")
    assert json.loads(made.text)["kind"] in ("duck", "goose")
    asked_for = [call.options["form"] for call in replicas(pair).calls]
    assert len(asked_for) == 1 + len(losses) and len({*asked_for}) == 1
    forced = sum(token.source == "forced" for done in made.rounds for token in done.tokens)
    assert made.metrics["forced"] == forced > 0


def test_a_form_that_cannot_be_kept_is_refused_before_a_replica_is_asked(pair: ReplicatedPair) -> None:
    with pytest.raises(ValueError, match="greater than maximum"):
        pair.generate(PROMPT, schema={"type": "integer", "minimum": 5, "maximum": 3})
    assert not replicas(pair).calls


def test_an_answer_without_a_seed_gets_one(pair: ReplicatedPair) -> None:
    replicas(pair).losses = [3]
    made = pair.generate(PROMPT, temperature=1.5, max_new_tokens=24)
    assert (
        made.seed is not None
        and pair.generate(PROMPT, temperature=1.5, max_new_tokens=24, seed=made.seed).token_ids
        == made.token_ids
    )
    assert pair.generate(PROMPT, temperature=0, max_new_tokens=4).seed is None


def test_what_was_shown_stays_and_a_lossy_method_goes_on_with_other_numbers(pair: ReplicatedPair) -> None:
    replicas(pair).losses = [2]
    steps = pair.stream(PROMPT, temperature=1.5, seed=5, max_new_tokens=24, method="ngram-merge")
    seen: list[Round] = []
    with pytest.raises(StopIteration) as ended:
        while True:
            seen.append(next(steps))
    made: Generation = ended.value.value
    first, second = replicas(pair).calls
    assert made.token_ids == tuple(token.id for done in seen for token in done.tokens) and made.seed == 5
    assert second.begun == tuple(token.id for done in seen[:2] for token in done.tokens) and not first.begun
    assert second.options["seed"] == first.options["seed"] == 5 and len(made.token_ids) <= 24
    assert second.options["max_new_tokens"] == 24 - len(second.begun)


def test_replicas_that_are_lost_one_after_another_end_in_a_sentence(pair: ReplicatedPair) -> None:
    replicas(pair).losses = [0] * (LOSSES + 1)
    with pytest.raises(
        RuntimeError, match=r"No replica could write the answer \(it was killed\); ask again\."
    ):
        pair.generate(PROMPT)
    assert pair.in_flight == 0
    with pytest.raises(ValueError, match="draft_length = 99"):
        pair.generate(PROMPT, draft_length=99)


def test_what_one_replica_has_learned_the_other_has(pair: ReplicatedPair, plain: Pair) -> None:
    for prompt in PROMPTS * 2:
        for one in (pair, plain):
            one.generate(prompt, max_new_tokens=24, temperature=1.0, seed=3)
    mine = {one.target_id: one.drafter_ids for one in pair.ngrams}
    assert mine == {one.target_id: one.drafter_ids for one in plain.ngrams} and mine
    pair.generate("x", max_new_tokens=1), pair.generate("x", max_new_tokens=1)
    for side in replicas(pair).sides:
        assert {one.target_id: one.drafter_ids for one in side.ngrams} == mine
    pair.clear_cache()
    pair.generate("x", max_new_tokens=1, learn=False), pair.generate("x", max_new_tokens=1, learn=False)
    assert not any(len(side.ngrams) for side in replicas(pair).sides)


def test_a_replica_that_lacks_older_ngrams_gets_them(pair: ReplicatedPair) -> None:
    side = replicas(pair).sides[0]
    pair.ngrams.size = 1000
    for number in range(ALONG + 20):
        pair.ngrams.insert(number, (number, number + 1))
    pair.generate("x", max_new_tokens=1, learn=False)
    first, second, *_ = replicas(pair).calls
    assert (first.ngrams.since, len(first.ngrams.added), second.ngrams.since) == (20, ALONG, 0)
    pair.generate("x", max_new_tokens=1, learn=False)
    held = [{one.target_id for one in one.ngrams} for one in replicas(pair).sides]
    assert set(range(ALONG + 20)) in held
    assert next(side.serve(first, lambda: False), None) is not None  # what it has already does no harm
    fresh = Insertions("another epoch", 7, ())
    assert list(side.serve(replace(first, ngrams=fresh), lambda: False)) == [Behind(0)]


def test_a_replica_keeps_all_ngrams_of_a_visitor(
    pair: ReplicatedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that the visitor's copy begins with, which are the app's shared ones, and of which the replica
    has fewer itself."""
    monkeypatch.setattr(visitor_state, "OWN_NGRAMS", 5)
    for number in range(40):
        pair.ngrams.insert(number, (number, number + 1))
    domain = f"{OWN}0"
    pair.generate("x", max_new_tokens=1, learn=False, domain=domain)
    assert set(range(40)) <= set(replicas(pair).sides[0]._memory.of(domain).target_ids)


def test_what_drafting_cost_is_forgotten_at_replicas_too(pair: ReplicatedPair) -> None:
    options: dict[str, Any] = {"draft_policy": "confidence", "max_new_tokens": 24}
    for _ in range(2):
        pair.generate("x", **options)
    side = replicas(pair).sides[0]
    one = side._line("default")
    assert one.cost_model.rounds > 10 and side.prices.list.taken()
    pair.publish(0, {})
    pair.forget("default")  # as `TrainerPool.reset` does
    pair.generate("x", **options | {"max_new_tokens": 1})
    assert one.cost_model.rounds == 1 == pair._line("default").cost_model.rounds
    assert one.cost_model.prices is side.prices.list, "what passes cost stays, and is every replica's own"
    assert not pair.prices.list.taken()


def test_answers_at_once_count_their_own_mismatches(settings: Settings) -> None:
    side = build_pair(settings.target, settings.drafter, settings, make=WritingPair)
    assert isinstance(side, WritingPair)
    asked = GenerationConfig.of(max_new_tokens=4).model_dump()
    call = Call(
        tuple(side.prompt_ids("x")), asked, True, False, Adapter(), Insertions("e", 0, ()), CostModel()
    )
    messages = side.serve(call, lambda: False)
    next(messages)
    side.mismatches += 1  # another answer's
    *_, end = messages
    assert isinstance(end, Finished) and end.mismatches == 0


def test_what_was_begun_may_fill_the_window(plain: Pair) -> None:
    begun = plain.prompt_ids("x") * plain.target.context
    made = plain.generate(begun[:1], begun=begun[1 : plain.target.context], method="autoregressive")
    assert (made.token_ids, made.finish_reason) == ((), "context")


def test_a_published_version_drafts_in_the_next_answer_and_goes_with_a_reset(
    pair: ReplicatedPair, plain: Pair
) -> None:
    other = other_weights(plain)
    base = drafts(pair)
    assert base == drafts(pair) == drafts(plain) and base[1].startswith("adapter-0.")
    pair.publish(1, other)
    learned = drafts(pair), drafts(pair)
    # a reference goes along
    assert all(call.adapter.weights == b"" for call in replicas(pair).calls) and len(replicas(pair).kept) == 1
    pair.drop_domain("default")
    pair.publish(1, other)  # another version 1
    pair.publish(0, {})
    assert drafts(pair) == drafts(pair) == base
    plain.publish(1, other)
    assert learned == (drafts(plain), drafts(plain)) and learned[0][1].startswith("adapter-1-")


def test_traces_come_back(pair: ReplicatedPair) -> None:
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    made = pair.generate(PROMPTS[0], max_new_tokens=24)
    assert [trace.key for trace in traces] == [made.key] and traces[0].top_p.size


def test_what_is_cancelled_ends_at_the_replica(pair: ReplicatedPair) -> None:
    assert stopped(pair).method == "autoregressive"
    steps = pair.stream("duck", max_new_tokens=200)
    next(steps)
    steps.close()
    assert replicas(pair).ended == 2 and pair.in_flight == 0
    whole = pair.generate("duck", max_new_tokens=1, cancelled=lambda: True)
    assert whole.finish_reason == "length", "it was whole before anybody looked"


def test_a_long_prompt_is_told_stopped_and_read_on_by_the_same_replica(
    pair: ReplicatedPair, plain: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_pool, "chunk_size", lambda runner: 8)
    del replicas(pair).sides[1:]  # Ray finds the one that read a conversation by its name
    long, asked = " ".join(PROMPTS * 2), threading.Event()
    parts = pair.parts(long, max_new_tokens=12, cancelled=asked.is_set)
    told = [next(parts) for _ in range(3)]
    asked.set()
    with pytest.raises(StopIteration) as ended:
        next(parts)
    total = len(plain.prompt_ids(long)) - 1
    assert told == [Reading(read, total, 0) for read in (0, 8, 16)]
    assert ended.value.value.finish_reason == "cancelled" and not ended.value.value.token_ids
    assert pair.in_flight == 0
    first = next(pair.parts(long, max_new_tokens=12))
    assert isinstance(first, Reading) and first.kept >= 16
    assert text(pair.generate(long, max_new_tokens=12)) == plain.generate(long, max_new_tokens=12).text


def test_conversations_keep_their_name_while_they_grow(pair: ReplicatedPair) -> None:
    for prompt in ("duck", "duck", "goose"):
        pair.generate(prompt, max_new_tokens=1)
    one, again, other = (call.conversation for call in replicas(pair).calls)
    assert one == again != other and len(one) == 16
    begun = [{"role": "user", "content": "hi"}]
    grown = [*begun, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "and?"}]
    first, later = _conversation(begun, (1,), "default"), _conversation(grown, (1, 2), "default")
    assert first == later != _conversation(begun, (1,), "another line")


def test_a_replica_writes_several_answers_at_once_in_batches(settings: Settings, tmp_path: Path) -> None:
    replica = PairReplica(settings.target, settings.drafter, settings, lambda reference: reference)
    pair = ReplicatedPair(replica._pair.target, replica._pair.drafter, {}, LocalReplicas([]))

    def call(prompt: str) -> Call:
        options = GenerationConfig.of(max_new_tokens=40, method="autoregressive").model_dump()
        return Call(
            tuple(pair.prompt_ids(prompt)),
            options,
            True,
            False,
            Adapter(),
            Insertions("e", 0, ()),
            CostModel(),
        )

    async def read(prompt: str) -> list[list[Any]]:
        return [batch async for batch in replica.answer(call(prompt))]

    async def both() -> list[list[list[Any]]]:
        return await asyncio.gather(*(read(prompt) for prompt in PROMPTS[:2]))

    for prompt, batches in zip(PROMPTS, asyncio.run(both()), strict=False):
        flat = [message for batch in batches for message in batch]
        assert isinstance(flat[-1], Finished) and all(isinstance(one, Round) for one in flat[:-1])
        wanted = replica._pair.generate(prompt, max_new_tokens=40, method="autoregressive", learn=False)
        assert (
            flat[-1].generation.token_ids
            == wanted.token_ids
            == tuple(token.id for done in flat[:-1] for token in done.tokens)
        )

    async def leave() -> int:
        answer = replica.answer(call("duck"))
        await anext(answer)
        await answer.aclose()
        for _ in range(1000):
            if not replica._pair.in_flight:
                break
            await asyncio.sleep(0.01)
        return replica._pair.in_flight

    assert asyncio.run(leave()) == 0


def test_without_ray_one_sentence_says_what_to_install(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ValueError, match=r"more than one process needs Ray; run `pip install -r requirements-scale.txt`"
    ):
        RayCluster(settings)


def test_a_token_of_ray_is_found_where_ray_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not ray_cluster._has_token()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert ray_cluster._has_token()
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    assert ray_cluster._has_token()
