"""Pairs of small random models saved to disk: greedy ids equal `transformers`' own, whatever happens beside
the generation."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.core.config import Settings
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.offers import Offer
from omnidemo.core.records import Round, Trace
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.tracing import Tracer
from omnidemo.models.adapters import acceptance_head
from omnidemo.pair.pair import Pair
from omnidemo.pair.replay import Beginning, Replay, Without
from omnidemo.vocabulary.ngram_cache import NgramCache
from tests.support.models import PROMPT, save


def reference(folder: str, ids: list[int], count: int) -> tuple[int, ...]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    seen = torch.ones(1, len(ids), dtype=torch.long)
    out = model.generate(torch.tensor([ids]), attention_mask=seen, max_new_tokens=count, do_sample=False)
    return tuple(out[0, len(ids) :].tolist())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("pair")
    return load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )


def test_a_drafter_of_the_same_model_is_always_accepted(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", "byte-level")
    done = load_pair(folder, folder).generate(PROMPT, max_new_tokens=40)
    # Four of four drafted tokens and a bonus, but for rounds after a token that may not be proposed (roles,
    # padding).
    assert done.metrics["alpha"] == 1.0 and (done.metrics["block_efficiency"] or 0) > 3


def test_what_rounds_took_is_noted_under_the_lock(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other answers draft by it, and may be under way in other threads."""
    held: dict[str, list[bool]] = {"note": [], "settle": []}

    def watch(name: str) -> None:
        original = getattr(CostTable, name)

        def watched(self: CostTable, *given: object) -> object:
            held[name].append(pair._lock.locked())
            return original(self, *given)

        monkeypatch.setattr(CostTable, name, watched)

    for name in held:
        watch(name)
    pair.generate(PROMPT, max_new_tokens=12, draft_policy="cost")
    assert all(held.values()) and all(all(one) for one in held.values())


def rounded(weight: torch.Tensor) -> torch.Tensor:
    return weight.bfloat16().float()


def test_one_drafter_serves_two_pairs(pair: Pair) -> None:
    other = Pair(pair.target, pair.drafter)
    before = {name: weight.clone() for name, weight in pair.drafter.runner.weights().items()}
    wanted = other.generate(PROMPT, max_new_tokens=30, learn=False, reuse=False)
    name = next(name for name, weight in before.items() if weight.dim() == 2 and "embed" not in name)
    pair.publish(1, {name: before[name] + 0.5})
    changed = pair.generate(PROMPT, max_new_tokens=30, learn=False)
    assert torch.equal(pair.drafting_weights()[name], rounded(before[name] + 0.5))
    assert all(torch.equal(weight, before[name]) for name, weight in pair.drafter.runner.weights().items())
    again = other.generate(PROMPT, max_new_tokens=30, learn=False, reuse=False)
    assert [r.proposed for r in again.rounds] == [
        r.proposed for r in wanted.rounds
    ] and again.token_ids == changed.token_ids


@pytest.mark.parametrize("policy", ["confidence", "head", "cost"])
def test_every_draft_policy_writes_the_same(pair: Pair, policy: Policy) -> None:
    wanted = pair.generate(
        PROMPT, method="autoregressive", max_new_tokens=40, learn=False, reuse=False
    ).token_ids
    pair.publish(1, {}, acceptance_head.fresh(32), domain=policy)
    pair.prices.list.become(CostTable.linear(1.0, 0.01, 0.01))  # by which "cost" drafts on any machine
    made = pair.generate(
        PROMPT,
        draft_policy=policy,
        longest_draft=6,
        domain=policy,
        max_new_tokens=40,
        learn=False,
        reuse=False,
    )
    assert made.token_ids == wanted and made.domain == policy
    assert max(r.draft_length for r in made.rounds) == 6 and made.metrics["draft_length"]
    drafting = pair.drafting(policy, policy)
    assert drafting.policy == policy and drafting.length > 0
    assert pair.drafting("another", policy).length == 0


def test_each_domain_drafts_with_weights_of_its_own(pair: Pair) -> None:
    base = {name: weight.clone() for name, weight in pair.drafter.runner.weights().items()}
    name = next(name for name, weight in base.items() if weight.dim() == 2 and "embed" not in name)
    pair.publish(4, {name: base[name] * 2}, domain="maths")
    pair.publish(7, {name: base[name] * 3}, domain="code")
    first = pair.generate(PROMPT, max_new_tokens=10, domain="maths", learn=False)
    # The same chat goes on in another domain: the target's part is kept, the drafter's is read again.
    second = pair.generate(PROMPT, max_new_tokens=10, domain="code", learn=False)
    assert (first.domain, first.adapter_version, second.domain, second.adapter_version) == (
        "maths",
        4,
        "code",
        7,
    )
    assert first.token_ids == second.token_ids and not second.metrics["context_mismatch"]
    for domain, factor in (("maths", 2), ("code", 3), ("news", 1)):
        assert torch.equal(pair.drafting_weights(domain)[name], rounded(base[name] * factor))
    pair.drop_domain("maths")
    assert torch.equal(pair.drafting_weights("maths")[name], base[name])


def test_a_trace_is_of_its_own_answer_whoever_asks_next(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    finish, first, ids = Tracer.finish, [True], pair.prompt_ids(PROMPT * 3)

    def asked_meanwhile(self: Tracer, drafter: object) -> Trace | None:
        if first[0]:
            first[0] = False
            other = threading.Thread(
                target=lambda: pair.generate([*ids, *ids[:5]], max_new_tokens=4, learn=False)
            )
            other.start()
            other.join(60)
        return finish(self, drafter)  # type: ignore[arg-type]

    monkeypatch.setattr(Tracer, "finish", asked_meanwhile)
    try:
        done = pair.generate(ids, method="ngram-exact", max_new_tokens=12)
    finally:
        pair.learners.clear()
    (trace,) = traces
    assert pair.drafter is not None
    read = pair.drafter.vocabulary.text_bytes(trace.drafter_ids.tolist())
    assert pair.target.vocabulary.text_bytes(done.token_ids) in read and len(trace.p) == len(done.token_ids)


def test_listeners_hear_rounds_and_learners_the_circumstances(pair: Pair) -> None:
    rounds: list[Round] = []
    traces: list[Trace] = []
    pair.round_listeners.append(rounds.append)
    pair.learners.append(traces.append)
    try:
        made = pair.generate(PROMPT, max_new_tokens=12, temperature=0.7, seed=1, domain="maths", reuse=False)
    finally:
        pair.round_listeners.clear()
        pair.learners.clear()
    assert tuple(rounds) == made.rounds
    assert [(trace.temperature, trace.domain) for trace in traces] == [(0.7, "maths")]


def test_a_cache_that_takes_the_place_of_another_is_the_one_that_learns(tmp_path: Path) -> None:
    pair = load_pair(
        save(tmp_path / "target", "byte-level"), save(tmp_path / "drafter", "sentence-piece", seed=1)
    )
    before = pair.ngrams
    pair.ngrams = NgramCache(pair.drafter.runner.rows, 3)
    pair.generate(PROMPT, max_new_tokens=60)
    assert 0 < len(pair.ngrams) <= 3 and len(before) == 0


def test_what_is_not_given_is_taken_from_the_settings(tmp_path: Path) -> None:
    target, drafter = (
        save(tmp_path / "target", "byte-level"),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    settings = Settings(target=target, drafter=drafter)
    pair = load_pair(settings=settings)
    assert (pair.target.name, pair.drafter.name) == (target, drafter)
    pair = load_pair(drafter=target, settings=settings)
    assert (pair.target.name, pair.drafter.name) == (target, target)
    with pytest.raises(ValueError, match="backend = 'fast' is not possible"):
        load_pair(backend="fast", settings=settings)  # type: ignore[arg-type]


def test_prompts_that_cannot_be_served_are_refused_with_a_reason(pair: Pair) -> None:
    with pytest.raises(ValueError, match="shorten"):
        pair.generate([5] * 300)
    with pytest.raises(ValueError, match="between 0 and"):
        pair.generate([10**6])
    with pytest.raises(ValueError, match="unknown method"):
        pair.generate("a", method="magic")
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        pair.generate("a", max_new_tokens=0)


def test_prices_of_other_passes_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once compiled code is there, nothing is decided by what took longer before."""
    ready = compile_kernels.kernels()
    monkeypatch.setattr(compile_kernels, "_ready", None)
    pair = load_pair(
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
        storage=tmp_path / "storage",
    )
    pair.warm_up()
    found = pair.prices.list
    assert found.origin == "measured" and sorted(found.passes) == [1, 2, 4, 6, 8, 16] and not found.taken()
    pair.generate(PROMPT, max_new_tokens=8, draft_policy="fixed")
    assert found.origin == "measured" and found.taken()  # the same passes
    monkeypatch.setattr(compile_kernels, "_ready", ready)
    pair.generate(PROMPT, max_new_tokens=1, draft_policy="fixed")
    assert found.origin == "guessed" and not found.taken() and pair.prices.list is found
    pair.warm_up()
    assert found.origin == "measured" and pair._line("default").cost_model.prices is found
    monkeypatch.setattr(compile_kernels, "_ready", None)
    pair.generate(PROMPT, max_new_tokens=1, draft_policy="fixed")
    assert found.origin == "stored", "both are kept"


def test_a_list_is_kept_for_machine_and_form(tmp_path: Path) -> None:
    names = (
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    first = load_pair(*names, storage=tmp_path / "storage")
    assert first.prices.list.origin == "guessed"
    first.measure_prices()
    kept = tmp_path / "storage" / "prices.json"
    again = load_pair(*names, storage=tmp_path / "storage")
    assert again.prices.list.origin == "stored" and again.prices.list.passes == first.prices.list.passes
    other = load_pair(names[1], names[1], storage=tmp_path / "storage")
    assert other.prices.list.origin == "guessed"
    kept.write_text("no JSON")
    assert load_pair(*names, storage=tmp_path / "storage").prices.list.origin == "guessed"
    first.measure_prices()
    assert load_pair(*names, storage=tmp_path / "storage").prices.list.origin == "stored"


def test_an_answer_played_again_from_the_same_state_has_the_same_drafts(tmp_path: Path) -> None:
    """Whatever its rounds took meanwhile: the memory, the chances and the list are as they were."""
    pair = load_pair(
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    made = list[tuple[tuple[Offer, ...], int, int]]()
    for text in (PROMPT, PROMPT, PROMPT + "!"):
        beginning, ids = Beginning.of(pair, "default"), pair.prompt_ids(text)
        asked = pair.asked(draft_policy="cost", temperature=0.0, max_new_tokens=40, reuse=False)
        answer = pair.generate(ids, **dict(asked))
        replayed = Replay(pair, beginning, ids, asked, answer).rounds(Without())
        assert replayed is not None
        first, again = (
            [(one.offers, one.drafted, one.proposed) for one in each] for each in (answer.rounds, replayed)
        )
        assert first == again and all(sum(offer.taken for offer in offers) == 1 for offers, *_ in first)
        made += first
    assert len({offer for offers, *_ in made for offer in offers}) > 3
