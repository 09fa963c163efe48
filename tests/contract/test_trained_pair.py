"""Models that know something: exact against transformers, better after learning, and the same again after a
restart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.core.records import Generation
from omnidemo.decoding.methods import BASELINE, fitting
from omnidemo.learning.distill.trainer_status import TrainerStatus
from omnidemo.learning.lines import sample_prompts
from omnidemo.models.model_files import find
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import build_pair
from omnidemo.serving.services import Services
from tests.contract.sides import TEXTS
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import TOPICS, UNREAD, questions

ANSWER = 48  # tokens
SAME = 32  # those that are compared
LEARNED, UNSEEN = 40, 20  # prompts
WEATHER = questions(UNREAD, LEARNED + UNSEEN)


@pytest.mark.parametrize(
    ("target", "drafter", "texts"),
    [
        (TARGET, DRAFTER, [text for topic in TOPICS for text in questions(topic, 1)]),
        ("bundled/large", "bundled/drafter", TEXTS),
    ],
    ids=["trained", "large"],
)
def test_greedy_ids_equal_transformers(target: str, drafter: str, texts: Sequence[str]) -> None:
    pair = load_pair(target, drafter, device="cpu", dtype="float32", settings=Settings(threads=1))
    pair.fill_cache()
    model = AutoModelForCausalLM.from_pretrained(find(target), dtype=torch.float32).eval()
    merged = 0
    for text in texts:
        ids = pair.prompt_ids(text)
        expected = pair.generate(ids, method=BASELINE, max_new_tokens=SAME, reuse=False).token_ids
        assert len(expected) == SAME or expected[-1] in pair.target.vocabulary.roles["end"]
        with torch.inference_mode():  # one pass says what greedy decoding would have written at each place
            rows = model(torch.tensor([[*ids, *expected[:-1]]])).logits[0, len(ids) - 1 :]
        assert tuple(rows.argmax(-1).tolist()) == expected, text
        for method in fitting(pair.map):
            # copies of the plain answer would leave nothing to guess
            answer = pair.generate(ids, method=method, max_new_tokens=SAME, reuse=False, copying=False)
            assert answer.token_ids == expected, (text, method)
            merged += sum(token.source == "ngram" for done in answer.rounds for token in done.tokens)
    assert merged > 0, "merging was never put to the test"


def ready(services: Services) -> Pair:
    services.pool.load(TARGET, DRAFTER)
    end = time.monotonic() + 60
    while services.pool.state(TARGET, DRAFTER).stage not in ("ready", "failed") and time.monotonic() < end:
        time.sleep(0.05)
    assert services.pool.state(TARGET, DRAFTER).stage == "ready", services.pool.state(TARGET, DRAFTER)
    return services.pair(TARGET, DRAFTER)


def learn(services: Services, count: int) -> None:
    for prompt in sample_prompts.sample(UNREAD, count, 0, "train"):  # each with the update due after it
        messages = [{"role": "user", "content": prompt}]
        list(services.chats.chat(
            session="test", target=TARGET, drafter=DRAFTER, messages=messages, max_new_tokens=ANSWER
        ))  # fmt: skip
    services.adaptation._lines(TARGET, DRAFTER).measurer.settle()


def alpha(pair: Pair, held_out: Sequence[str]) -> float:
    """Accepted / judged proposals over all answers; nothing is learned from them."""
    rounds = [
        one
        for text in held_out
        for one in pair.generate(text, max_new_tokens=ANSWER, learn=False, reuse=False).rounds
    ]
    return sum(one.accepted for one in rounds) / sum(one.judged for one in rounds)


@dataclass(frozen=True)
class Learnt:
    """What was seen of a pair that learned from its traffic, whose storage is closed."""

    settings: Settings
    status: TrainerStatus
    before: float  # the share of proposals that are accepted on prompts nothing was learned from
    after: float
    without: float  # with the first drafter again
    answer: Generation  # with the learnt one
    history: list[Any]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    """Learning in line with the answers, so that a run is the same each time."""
    learning: dict[str, Any] = {
        "training": "inline",
        "update_interval": 5,
        "steps_per_update": 8,
        "batch_size": 4,
    }
    settings = Settings(
        storage=tmp_path_factory.mktemp("storage"), device="cpu", dtype="float32", threads=1, **learning
    )
    services = Services(settings)
    with pytest.MonkeyPatch.context() as patched, contextlib.closing(services):
        patched.setattr(sample_prompts, "prompts", lambda topic, kind="test": WEATHER[UNSEEN:])
        pair, held_out = ready(services), WEATHER[:UNSEEN]
        before = alpha(pair, held_out)
        learn(services, LEARNED)
        status = services.adaptation.trainer(TARGET, DRAFTER)
        after = alpha(pair, held_out)
        answer = ask(pair)
        services.adaptation.activate(TARGET, DRAFTER, 0)
        without = alpha(pair, held_out)
        services.adaptation.activate(TARGET, DRAFTER, status.version)
        services.store.flush()
        return Learnt(
            settings,
            status,
            before,
            after,
            without,
            answer,
            services.store.requests(target=TARGET, drafter=DRAFTER),
        )


def ask(pair: Pair) -> Generation:
    return pair.generate(WEATHER[0], max_new_tokens=ANSWER, learn=False, reuse=False)


def test_learning_raises_acceptance_on_unseen_prompts(learnt: Learnt) -> None:
    assert learnt.status.version == LEARNED // 5 and learnt.status.error is None, learnt.status
    assert learnt.answer.adapter_version == learnt.status.version
    assert learnt.after > learnt.before + 0.01, (learnt.before, learnt.after)
    # The gain is the adapter's: without it most of it is gone.
    assert learnt.without < (learnt.before + learnt.after) / 2


def test_a_restart_restores_cache_adapter_and_history(learnt: Learnt) -> None:
    first = learnt.answer
    assert first.adapter_version > 0 and first.cache_entries > 0 and len(learnt.history) == LEARNED
    again = Services(learnt.settings)
    try:
        pair = ready(again)
        assert again.adaptation.trainer(TARGET, DRAFTER).version == first.adapter_version
        second = ask(pair)
        assert second.cache_entries == first.cache_entries
        assert second.adapter_version == first.adapter_version
        assert second.token_ids == first.token_ids
        # the same guesses, to the last digit
        assert [one.discarded for one in second.rounds] == [one.discarded for one in first.rounds]
        assert again.store.requests(target=TARGET, drafter=DRAFTER) == learnt.history
    finally:
        again.close()


@pytest.mark.parametrize(("whose", "compact"), [("auto", (True, True)), ("neither", (False, False))])
def test_the_setting_says_whether_weights_take_two_bytes(whose: str, compact: tuple[bool, bool]) -> None:
    pair = build_pair(TARGET, DRAFTER, Settings.model_validate({"device": "cpu", "compact": whose}))
    runners: list[Any] = [pair.target.runner, pair.drafter.runner]
    assert tuple(runner.form == "bfloat16" for runner in runners) == compact
    ids = pair.prompt_ids("How much is 18 divided by 6?")
    found = pair.generate(ids, max_new_tokens=24, learn=False).token_ids
    model = AutoModelForCausalLM.from_pretrained(pair.target.folder, dtype=torch.float32)
    with torch.no_grad():
        wanted = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=24, do_sample=False
        )
    assert list(found) == wanted[0, len(ids) :].tolist()
