"""Drawing ahead on a CPU: a draft is one call of compiled code, which ends where the rule would end it. That
the draws are the host's walk is in `contract`, which compares every guess."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends.compiled_backend import roll_out
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.core.config import GenerationConfig
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.draft_policy import StopRule, make_policy
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import RolloutRequest, token_by_token
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.pair.pair import Pair
from tests.support.models import PROMPT, save
from tests.support.runners import close
from tests.support.worlds import PLAIN

MAP = PLAIN.map


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    return FusedLlama(random_model("llama", len(MAP.targets), seed=3))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("drawing")
    made = load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )
    made.fill_cache()
    return made


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.0}, {"temperature": 0.7, "seed": 3, "repetition_penalty": 1.3}], ids=str
)
@pytest.mark.parametrize("method", ["ngram-exact", "token-intersection", "string-exact-match"])
def test_a_draft_is_one_call_and_nothing_is_drawn_in_vain(
    pair: Pair, method: str, sampling: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, passes, calls = 0, 0, 0
    roll, forward = FusedCache.roll_out, FusedCache.forward

    def rolled(self: FusedCache, *given: Any) -> Any:
        nonlocal drawn, passes, calls
        before = passes
        found = roll(self, *given)
        passes, calls = before, calls + 1
        drawn += 0 if found is None else len(found.ids)
        return found

    def read(self: FusedCache, *given: Any) -> Any:
        nonlocal passes
        passes += self.runner is pair.drafter.runner
        return forward(self, *given)

    monkeypatch.setattr(FusedCache, "roll_out", rolled)
    monkeypatch.setattr(FusedCache, "forward", read)
    made = pair.generate(
        PROMPT, method=method, max_new_tokens=40, draft_length=5, reuse=False, copying=False, **sampling
    )
    rounds = [done for done in made.rounds if done.drafted]
    assert calls == len(rounds) > 5 and not passes
    assert drawn == sum(done.drafted for done in rounds)


def test_the_given_ids_are_read_too(runner: FusedLlama) -> None:
    for count in (1, 3, 5):
        drafter = DrafterContext(FusedCache(runner), MAP)
        drafter.start([0, 1, 2], 0)
        with torch.inference_mode():
            drafter.logits()
            for one in range(count):
                drafter.push(one % 2)
            order = RolloutRequest(
                token_by_token(MAP.draftable_logit_mask), SamplingParams(0.0), 3, MAP.to_target
            )
            rollout = roll_out(drafter, order)
            assert rollout is not None and len(rollout.ids) == 3 and len(rollout.read) == 2
            read = len(drafter.ids)
            wanted = FusedCache(runner).forward([*drafter.ids, *rollout.read], 3).logits
            assert close(rollout.rows, wanted, 1e-4) and drafter.cache.length == read
            assert [int((row + MAP.draftable_logit_mask).argmax()) for row in wanted] == rollout.ids
            for token in rollout.ids[:2]:
                drafter.push(token)
            assert close(drafter.logits(), wanted[-1], 1e-4) and drafter.cache.length == read + 2


def test_rules_foresee_themselves() -> None:
    """`stop_rule` says what `keep_drafting` says, for calibrations with any history."""
    chance = random.Random(1)
    agreed = stopped = 0
    for _ in range(300):
        known = CostModel()
        for _ in range(chance.randrange(60)):
            known.learn(
                [(chance.random() ** 0.3,) for _ in range(4)],
                [float(chance.random() < 0.7) for _ in range(4)],
            )
        if chance.random() < 0.8:
            known.prices = CostTable.linear(chance.uniform(0.5, 2.0), 0.1, chance.uniform(0.01, 1.0))
        numbers: dict[str, Any] = {"longest_draft": 9, "confidence": chance.random(), "gamma": 0.5}
        for name in ("cost", "confidence", "head"):
            rule = make_policy(GenerationConfig(draft_policy=name, **numbers), known, None)
            rule.begin_round(0, 50, 0)
            rule.plan(None, True)
            for _ in range(5):
                stop, probs = rule.stop_rule(), [chance.random() ** 0.3 for _ in range(chance.choice((1, 2)))]
                guess, said = foretold(stop, math.prod(probs)), rule.keep_drafting(probs, [])
                assert guess == said
                agreed, stopped = agreed + said, stopped + (not said)
                if not said:
                    break
    assert agreed > 300 and stopped > 300


def foretold(stop: StopRule, prob: float) -> bool:
    segment = [segment for segment in stop.segments if prob >= segment[0]][-1]
    cumulative = stop.cumulative * (segment[1] + segment[2] * prob)
    return bool(prob >= stop.min_prob and cumulative * (segment[3] + segment[4] * prob) > stop.price)


def test_a_drafter_context_whose_window_slides(runner: FusedLlama) -> None:
    """A short window: the context goes on drafting, whatever can be drawn ahead."""
    cache = FusedCache(runner)
    cache.max_positions = 16
    drafter = DrafterContext(cache, MAP)
    drafter.start([0, 1, 2], 0)
    rule, drawn = token_by_token(MAP.draftable_logit_mask), 0
    order = RolloutRequest(rule, SamplingParams(1.0), 3, MAP.to_target, Sampler(1).peek(40))
    with torch.inference_mode():
        for turn in range(40):
            rollout = roll_out(drafter, order)
            drawn += rollout is not None
            drafter.logits()
            start = len(drafter.ids)
            drafter.commit(start, [], [turn % 2])
            assert cache.length <= cache.max_positions
    assert 5 < drawn < 40
