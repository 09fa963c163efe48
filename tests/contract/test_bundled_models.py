"""The bundled models themselves: exact against transformers, better after learning, and the same again after a restart."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo import load_pair
from omnidemo.config import Settings
from omnidemo.lines import sample_prompts
from omnidemo.methods import fitting
from omnidemo.models.model_files import BUNDLED
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.services import Services
from tests.support.models import needs

TARGET, DRAFTER = "bundled/a", "bundled/drafter"
TOPIC = "news"
ANSWER = 48  # tokens
SAME = 32  # those that are compared


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name, "drafter")) for name in ("a", "b", "c")])
def test_greedy_ids_equal_transformers(name: str) -> None:
    pair = load_pair(f"bundled/{name}", DRAFTER, device="cpu", dtype="float32", settings=Settings(threads=1))
    pair.fill_cache()
    model = AutoModelForCausalLM.from_pretrained(BUNDLED / name, dtype=torch.float32).eval()
    merged = 0
    for topic in sample_prompts.TOPICS:
        ids = pair.prompt_ids(sample_prompts.sample(topic, 1)[0])
        seen = torch.ones(1, len(ids), dtype=torch.long)
        written = model.generate(torch.tensor([ids]), attention_mask=seen, max_new_tokens=SAME, do_sample=False)
        expected = tuple(written[0, len(ids) :].tolist())
        for method in fitting(pair.map):
            answer = pair.generate(ids, method=method, max_new_tokens=SAME, reuse=False)
            assert answer.token_ids == expected, (topic, method)
            merged += sum(token.source == "ngram" for done in answer.rounds for token in done.tokens)
    assert merged > 0 or name == "c", "merging was never put to the test"  # c shares the drafter's tokenizer


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Learning in line with the answers, so that a run is the same each time."""
    settings = Settings(
        storage=tmp_path, device="cpu", dtype="float32", threads=1, training="inline", update_interval=5, steps_per_update=8, batch_size=8
    )
    services = Services(settings)
    yield services
    services.close()


def ready(services: Services) -> Pair:
    services.load(TARGET, DRAFTER)
    end = time.monotonic() + 60
    while services.state(TARGET, DRAFTER).stage not in ("ready", "failed") and time.monotonic() < end:
        time.sleep(0.05)
    assert services.state(TARGET, DRAFTER).stage == "ready", services.state(TARGET, DRAFTER)
    return services.pair(TARGET, DRAFTER)


def learn(services: Services, count: int) -> None:
    played = services.play(session="test", target=TARGET, drafter=DRAFTER, topic=TOPIC, count=count, max_new_tokens=ANSWER)
    for *_, made in played:
        services.let_learn(TARGET, DRAFTER, made.domain, topic=TOPIC)


def alpha(pair: Pair, held_out: Sequence[str]) -> float:
    """Accepted / judged proposals over all answers; nothing is learned from them."""
    rounds = [one for text in held_out for one in pair.generate(text, max_new_tokens=ANSWER, learn=False, reuse=False).rounds]
    return sum(one.accepted for one in rounds) / sum(one.judged for one in rounds)


@needs("a", "drafter")
def test_learning_raises_acceptance_on_unseen_prompts(services: Services) -> None:
    pair = ready(services)
    held_out = sample_prompts.sample(TOPIC, 20)
    assert not set(held_out) & set(sample_prompts.prompts(TOPIC, "train"))
    before = alpha(pair, held_out)
    learn(services, 40)
    status = services.trainer(TARGET, DRAFTER)
    assert status.version == 8 and status.error is None, status
    after = alpha(pair, held_out)
    assert pair.adapter_version == 8
    assert after > before + 0.03, (before, after)

    services.activate(TARGET, DRAFTER, 0)  # the gain is the adapter's: without it most of it is gone
    assert alpha(pair, held_out) < (before + after) / 2


@needs("a", "drafter")
def test_a_restart_restores_cache_adapter_and_history(services: Services) -> None:
    pair = ready(services)
    learn(services, 10)
    question = sample_prompts.sample(TOPIC, 1)[0]
    first = pair.generate(question, max_new_tokens=ANSWER, learn=False, reuse=False)
    assert first.adapter_version == 2 and first.cache_entries > 0
    services.store.flush()
    history = services.store.requests(target=TARGET, drafter=DRAFTER)
    assert len(history) == 10
    services.close()

    again = Services(services.settings)
    try:
        pair = ready(again)
        assert again.trainer(TARGET, DRAFTER).version == 2
        second = pair.generate(question, max_new_tokens=ANSWER, learn=False, reuse=False)
        assert second.cache_entries == first.cache_entries
        assert second.adapter_version == first.adapter_version
        assert second.token_ids == first.token_ids
        assert [one.discarded for one in second.rounds] == [one.discarded for one in first.rounds]  # the same guesses, to the last digit
        assert again.store.requests(target=TARGET, drafter=DRAFTER) == history
    finally:
        again.close()


@needs("a", "drafter")
@pytest.mark.parametrize(("whose", "compact"), [("drafter", (False, True)), ("both", (True, True)), ("neither", (False, False))])
def test_the_setting_says_whose_weights_take_two_bytes(whose: str, compact: tuple[bool, bool]) -> None:
    pair = build_pair("bundled/a", "bundled/drafter", Settings.model_validate({"device": "cpu", "compact": whose}))
    runners: list[Any] = [pair.target.runner, pair.drafter.runner]
    assert tuple(runner.passes.two_bytes for runner in runners) == compact
    ids = pair.prompt_ids("How much is 18 divided by 6?")
    found = pair.generate(ids, max_new_tokens=24, learn=False).token_ids
    model = AutoModelForCausalLM.from_pretrained(pair.target.folder, dtype=torch.float32)
    with torch.no_grad():
        wanted = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=24, do_sample=False)
    assert list(found) == wanted[0, len(ids) :].tolist()
