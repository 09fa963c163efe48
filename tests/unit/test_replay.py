"""An answer replayed as if something had not been learned: by its ids alone, and by the reference round over
the target's rows, which must say the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from omnidemo import Generation, Pair, load_pair
from omnidemo.core.records import PROPOSED, Round
from omnidemo.decoding.backend import Pass
from omnidemo.pair.conversation_pool import DOMAIN
from omnidemo.pair.replay import Beginning, KnownTarget, Replay, SameAnswer, Without, newly_right
from tests.support.models import save

ALL = [Without(memory, learning) for learning in (False, True) for memory in (False, True)]
PROMPTS = ("the other ducks swim", "the other ducks swam", "the other ducks swim")
POLICIES: dict[str, dict[str, Any]] = {
    "fixed": {"draft_policy": "fixed", "draft_length": 4},
    "confidence": {"draft_policy": "confidence", "confidence": 0.2},
    "chance": {"draft_policy": "chance"},
    "cost": {"draft_policy": "cost"},
    "head": {"draft_policy": "head", "gamma": 0.9},
}
MANNERS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "greedy, penalty": {"temperature": 0.0, "repetition_penalty": 1.3},
    "seeded": {"temperature": 0.8, "top_p": 0.95, "seed": 7},
}


class PointMass(KnownTarget):
    """Rows of the recorded target at every temperature: all probability is on the token of the answer, and
    off the answer all tokens are alike."""

    def __init__(self, path: Sequence[int], rows: int, limit: int) -> None:
        super().__init__(limit)
        self.path, self.rows, self.read = path, rows, list[int]()

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        self.read[self.length :] = ids
        self.length = len(self.read)
        logits = np.zeros((last, self.rows), np.float32)
        for row, end in enumerate(range(self.length - last + 1, self.length + 1)):
            if end < len(self.path) and self.read[:end] == list(self.path[:end]):
                logits[row] = -np.inf
                logits[row, self.path[end]] = 0.0
        return Pass(logits)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A random target, and a drafter of another vocabulary."""
    root = tmp_path_factory.mktemp("models")
    return {
        "target": save(root / "target", "byte-level", ends=False),
        "drafter": save(root / "drafter", "sentence-piece", seed=1),
    }


def moved(pair: Pair, scale: float, seed: int = 0) -> dict[str, Tensor]:
    """The target's own weights, moved at random: a drafter that is right as often as the moves are small."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: weight + scale * weight.std() * torch.randn(weight.shape, generator=generator)
        for name, weight in pair.target.runner.weights().items()
        if weight.dim() == 2
    }


def likely(folders: dict[str, str]) -> Pair:
    """A pair of one vocabulary whose base drafter is often right."""
    pair = load_pair(folders["target"], folders["target"])
    pair.drafter.runner.overwrite(moved(pair, 0.06))
    return pair


def crossing(folders: dict[str, str]) -> Pair:
    """A pair of two vocabularies, whose answers grow the n-gram cache."""
    return load_pair(folders["target"], folders["drafter"])


Make = Callable[[dict[str, str]], Pair]


def answers(pair: Pair, **options: Any) -> list[tuple[Beginning, list[int], Generation, Replay]]:
    """One after another, each with what it began with."""
    made = []
    options = {"max_new_tokens": 30, **options}
    for prompt in PROMPTS:
        asked, ids = pair.asked(**options), pair.prompt_ids(prompt)
        beginning = Beginning.of(pair, asked.domain)
        answer = pair.generate(ids, **options)
        made.append((beginning, ids, answer, Replay(pair, beginning, ids, asked, answer)))
    return made


def facts(rounds: tuple[Round, ...] | list[Round] | None) -> list[Any]:
    """All that a round decides, and where its tokens are from."""
    assert rounds is not None
    names = ("draft_length", "drafted", "proposed", "accepted", "judged", "inserts", "finish_reason")
    found: list[Any] = []
    for one in rounds:
        found.append([getattr(one, name) for name in names])
        found += [(token.id, token.source, token.pieces, token.match) for token in one.tokens]
        found += [(token.id, token.source, token.match) for token in one.discarded]
    return found


def reference(pair: Pair, replay: Replay, ids: list[int], answer: Generation, without: Without) -> Any:
    """The same replay by plain torch: `make_round` over the target's rows."""
    runner = pair.target.runner
    rows = PointMass([*ids, *answer.token_ids], runner.rows, runner.max_positions)
    return replay.rounds(without, rows)


@pytest.mark.parametrize(
    ("make", "policy", "manner"),
    [
        *[(likely, policy, "greedy") for policy in POLICIES],
        (likely, "chance", "seeded"),
        *[(crossing, "chance", manner) for manner in MANNERS],
        (crossing, "fixed", "seeded"),
    ],
)
def test_as_it_was_is_what_happened_and_the_reference_says_the_same(
    folders: dict[str, str], make: Make, policy: str, manner: str
) -> None:
    pair = make(folders)
    copied = guessed = 0
    for _, ids, answer, replay in answers(pair, **MANNERS[manner], **POLICIES[policy]):
        found = {without: replay.rounds(without) for without in ALL}
        assert facts(found[Without()]) == facts(answer.rounds)
        for without, rounds in found.items():
            assert facts(rounds) == facts(reference(pair, replay, ids, answer, without)), without
        sources = [token.source for one in answer.rounds for token in one.tokens]
        copied, guessed = copied + sources.count("copied"), guessed + sources.count("direct")
        tokens = len(answer.token_ids)
        expected = [tokens / len(found[without] or ()) for without in ALL]
        learned = newly_right(found[ALL[-1]] or (), answer.rounds)
        was, empty, fresh, nothing = expected
        assert replay.same_answer() == SameAnswer(was, empty, fresh, nothing, learned)
    assert copied and (guessed or make is crossing)


def test_each_replay_lacks_what_its_name_says(folders: dict[str, str]) -> None:
    pair = likely(folders)
    options: dict[str, Any] = {"draft_policy": "chance", "temperature": 0.0}
    answers(pair, **options)
    pair.publish(3, moved(pair, 0.01))
    *_, (beginning, _, answer, replay) = answers(pair, **options)
    assert answer.adapter_version == beginning.version == 3 and beginning.memory_tokens > 100
    origins = {
        without: {
            token.match.origin for one in replay.rounds(without) or () for token in one.tokens if token.match
        }
        for without in ALL
    }
    for without, found in origins.items():
        assert ("earlier" in found) != without.memory
    same = replay.same_answer()
    assert same is not None and same.learned
    right = [
        [token.source in PROPOSED for one in rounds or () for token in one.tokens]
        for rounds in (replay.rounds(ALL[-1]), answer.rounds)
    ]
    for first, count in same.learned:
        before, now = (one[first : first + count] for one in right)
        assert all(now) and not all(before)
    assert newly_right(answer.rounds, answer.rounds) == []
    assert same.as_it_was == answer.metrics["block_efficiency"]
    assert same.as_it_was > same.empty_memory > same.nothing_learned, "memory and weights both help here"
    assert same.as_it_was >= same.fresh_drafter > same.nothing_learned
    new = likely(folders)  # a pair that has never answered
    alone = new.generate(replay._prompt, max_new_tokens=30, **options)
    assert alone.token_ids == answer.token_ids
    assert alone.metrics["block_efficiency"] == same.nothing_learned


def test_a_version_is_seen_in_an_answer_from_before_it(folders: dict[str, str]) -> None:
    pair = likely(folders)
    (beginning, ids, answer, _), *_ = answers(pair, temperature=0.0, **POLICIES["fixed"])
    pair.publish(3, moved(pair, 0.01))
    assert pair.swap_due(DOMAIN) == 3
    asked = pair.asked(temperature=0.0, max_new_tokens=30, **POLICIES["fixed"])
    rounds = Replay(pair, replace(beginning, version=3), ids, asked, answer).rounds(Without())
    assert rounds is not None and len(rounds) < len(answer.rounds)
    assert newly_right(answer.rounds, rounds), "better weights guess more"
    assert not any(token.match and token.match.origin == "earlier" for one in rounds for token in one.tokens)


def test_a_replay_leaves_no_trace(folders: dict[str, str]) -> None:
    pair = likely(folders)
    *_, (_, _, _, replay) = answers(pair, temperature=0.0, draft_policy="chance")
    before = pickle.dumps(pair._line("default").cost_model), pair.copies.digest("default"), pair.ngrams.clock
    heard: list[Round] = []
    pair.round_listeners.append(heard.append)
    assert replay.same_answer() is not None
    after = pickle.dumps(pair._line("default").cost_model), pair.copies.digest("default"), pair.ngrams.clock
    assert before == after and not heard and not pair.in_flight


def test_an_answer_that_ends_at_a_text(folders: dict[str, str]) -> None:
    pair = likely(folders)
    options: dict[str, Any] = {"temperature": 0.0, "draft_policy": "chance"}
    *_, (_, ids, whole, _) = answers(pair, **options)
    asked, beginning = pair.asked(**options, stop=(whole.text[10:13],)), Beginning.of(pair, "default")
    answer = pair.generate(ids, **options, stop=asked.stop)
    assert answer.finish_reason == "stop" and len(answer.token_ids) < len(whole.token_ids)
    replay = Replay(pair, beginning, ids, asked, answer)
    assert facts(replay.rounds(Without())) == facts(answer.rounds)
    assert replay.same_answer() is not None


def test_an_answer_that_was_stopped_by_its_reader(folders: dict[str, str]) -> None:
    pair = likely(folders)
    options: dict[str, Any] = {"temperature": 0.0, "draft_policy": "chance"}
    seen: list[int] = []

    def enough() -> bool:
        seen.append(1)
        return len(seen) == 4

    asked, beginning, ids = pair.asked(**options), Beginning.of(pair, "default"), pair.prompt_ids("a duck")
    answer = pair.generate(ids, cancelled=enough, **options)
    assert answer.finish_reason == "cancelled" and len(answer.rounds) == 4
    same = Replay(pair, beginning, ids, asked, answer).same_answer()
    assert same is not None and same.as_it_was == answer.metrics["block_efficiency"]


def test_what_cannot_be_known_is_none(folders: dict[str, str]) -> None:
    pair = likely(folders)

    def found(**options: Any) -> list[SameAnswer | None]:
        return [replay.same_answer() for *_, replay in answers(pair, **options)]

    assert found(temperature=0.7) == [None] * 3, "without a seed the text depends on the guesses"
    assert found(temperature=0.7, seed=1, method="block-verification") == [None] * 3
    assert found(temperature=0.0, method="autoregressive") == [None] * 3, "nobody guesses"
    assert None not in found(temperature=0.0, method="typical-acceptance"), "at temperature 0 it is lossless"
    *_, (beginning, ids, answer, replay) = answers(pair, temperature=0.0)
    asked = pair.asked(temperature=0.0)
    assert Replay(pair, beginning, ids[1:], asked, answer).same_answer() is None, "another prompt"
    pair.publish(9, moved(pair, 0.1))
    pair.generate("duck", max_new_tokens=2)
    assert replay.same_answer() is None, "what drafted is not there any more"


@pytest.mark.parametrize("policy", ["chance", "cost"])
def test_earlier_answers_change_a_draft_by_what_is_copied_alone(folders: dict[str, str], policy: str) -> None:
    """Chances that answers of other kinds and temperatures have had do not stay."""
    pair = likely(folders)
    pair.clock = lambda: 0.0  # so that no round corrects the prices
    options: dict[str, Any] = {"draft_policy": policy, "max_new_tokens": 40, "temperature": 0.0}
    alone = options | {"learn": False, "reuse": False}
    fresh = pair.generate(PROMPTS[0], **alone)
    for seed, prompt in enumerate([*PROMPTS, *PROMPTS]):
        pair.generate(prompt, **options | {"temperature": 0.2 + 0.4 * (seed % 3), "seed": seed})
    again = pair.generate(PROMPTS[0], **alone)
    assert facts(again.rounds) == facts(fresh.rounds)
    assert [one.offers for one in again.rounds] == [one.offers for one in fresh.rounds]
    pair.generate(PROMPTS[0], **options)
    remembered = pair.generate(PROMPTS[0], **options)
    assert len(remembered.rounds) < len(fresh.rounds), "its own answer is remembered"
