"""The page's examples, fresh and after mixed answers in the same process: does what was learned make a prompt
of another kind slower? And asked a second time: what does memory bring?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lab.measured_rows import markdown_table
from omnidemo.core.config import GREEDY, GenerationConfig, Settings
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Generation, Round
from omnidemo.learning.lines import sample_prompts
from omnidemo.pair.answer_plan import Beginning, Earlier
from omnidemo.pair.pair import Pair
from omnidemo.pair.replay import Replay, Without
from omnidemo.serving.measuring.learning_pair import learning

ALONE = Without(memory=True)
# How an example is drafted again. Compare shows "without memory".
WAYS = ("after", "without memory", "again", "again without copies")


@dataclass(frozen=True, slots=True)
class Measured:
    """One example in one way: tokens a step, and tokens for the price of a plain step, each ÷ fresh."""

    policy: Policy
    order: int
    way: str
    label: str
    tokens: float
    gain: float
    fresh_tokens: float
    fresh_gain: float


@dataclass(frozen=True, slots=True)
class _Asked:
    label: str
    ids: list[int]
    config: GenerationConfig
    answer: Generation


def measure(
    pair: Pair, settings: Settings, *, answers: int, orders: int, length: int, examples: int | None = None,
    policies: Sequence[Policy] = ("cost", "chance"),
) -> Iterator[Measured]:  # fmt: skip
    """Yield each example in each of WAYS. Mixed answers are sample prompts of all topics in the target's own
    manner, with training after each that makes an update due. Examples are greedy, and guessed again along
    their known answers; only `again` really answers them once more."""
    pair.clock = lambda: 0.0  # so that no round corrects the prices
    topics = (sample_prompts.sample(topic, answers, 0, "train") for topic in sample_prompts.TOPICS)
    mixed = [prompt for several in zip(*topics, strict=True) for prompt in several][:answers]
    shown = sample_prompts.examples(pair.target.name)[:examples]
    for policy in policies:
        options = {**GREEDY.options, "max_new_tokens": length, "draft_policy": policy, "reuse": False}
        with learning(pair, settings, training="inline") as learner:
            asked = []
            for example in shown:
                ids = pair.prompt_ids(example["prompt"])
                config = pair.asked(**options)
                answer = pair.generate(ids, **dict(config) | {"learn": False, "note": False})
                asked.append(_Asked(example["label"], ids, config, answer))
            pair.clear_cache()
            fresh = _drafted(pair, asked, Beginning.of(pair, "fresh"), "fresh")
            for order in range(orders):
                line, prompts = f"{policy}-{order}", list(mixed)
                random.Random(order).shuffle(prompts)
                pair.clear_cache()
                with learner.lines.using(line):
                    for number, prompt in enumerate(prompts, 1):
                        chat = {"max_new_tokens": length, "draft_policy": policy, "seed": number}
                        pair.generate(prompt, domain=line, **chat)
                        learner.update(line, number)
                    for way, found in _ways(pair, asked, line):
                        for one, new, old in zip(asked, found, fresh, strict=True):
                            yield Measured(policy, order, way, one.label, *new, *old)
        pair.learners.clear()
        pair.round_listeners.clear()


def _ways(pair: Pair, asked: Sequence[_Asked], line: str) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    with pair._lock:
        pair._ready_line(line)
    before = Beginning.of(pair, line)
    for way, without in zip(WAYS, (Without(), ALONE), strict=False):
        yield way, _drafted(pair, asked, before, line, without)
    for one in asked:
        pair.generate(one.ids, **dict(one.config) | {"domain": line})
    after = Beginning.of(pair, line)
    yield WAYS[2], _drafted(pair, asked, after, line)
    alone = replace(after, earlier=Earlier(None, after.earlier.continuations))
    yield WAYS[3], _drafted(pair, asked, alone, line)


def _drafted(
    pair: Pair, asked: Sequence[_Asked], beginning: Beginning, line: str, without: Without | None = None
) -> list[tuple[float, float]]:
    """(tokens a step, tokens for the price of a plain step) of each example."""
    found = []
    for one in asked:
        config = one.config.model_copy(update={"domain": line})
        rounds = Replay(pair, beginning, one.ids, config, one.answer).rounds(without or Without())
        assert rounds is not None, "nothing is published meanwhile"
        count = len(one.answer.token_ids)
        found.append((count / len(rounds), count / _price(pair, rounds)))
    return found


def _price(pair: Pair, rounds: Sequence[Round]) -> float:
    prices = pair.prices.list
    return sum(prices.price(done.proposed + 1, 0, done.drafted) for done in rounds) / prices.price(1)


def table(found: Sequence[Measured]) -> str:
    """Of each policy, way and order: the means, their changes against fresh, and the example that lost
    most."""
    rows = []
    for policy, way, order in dict.fromkeys((one.policy, one.way, one.order) for one in found):
        these = [one for one in found if (one.policy, one.way, one.order) == (policy, way, order)]
        changes = [one.tokens / one.fresh_tokens for one in these]
        gains = [one.gain / one.fresh_gain for one in these]
        worst = these[changes.index(min(changes))]
        rows.append([
            policy, way, str(order), f"{fmean(one.fresh_tokens for one in these):.2f}",
            f"{fmean(one.tokens for one in these):.2f}", f"{fmean(changes):.3f}", f"{fmean(gains):.3f}",
            f"{min(changes):.2f}", f"{worst.label} {worst.fresh_tokens:.2f} → {worst.tokens:.2f}",
        ])  # fmt: skip
    headings = (
        "policy", "drafted", "order", "fresh", "tokens a step", "÷ fresh", "by prices ÷ fresh", "least",
        "which",
    )  # fmt: skip
    return markdown_table(headings, rows)
