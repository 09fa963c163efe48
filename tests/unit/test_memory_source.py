"""What followed in earlier answers, and what a chain from memory is made of."""

from __future__ import annotations

import random

import numpy as np
import pytest

from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.memory_chain import class_of_continuation, learn_chain
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.ngram_table import BEHIND, DECAY, LONGEST, UNLIKELY, WAYS
from omnidemo.decoding.sources.text_index import BREAK, TextIndex


class ByHand:
    """The same by dictionaries of tuples, without bounds."""

    def __init__(self) -> None:
        self.weight: dict[tuple[int, ...], float] = {}
        self.counts: dict[tuple[int, ...], dict[int, float]] = {}
        self.met: dict[tuple[int, ...], int] = {}

    def learn(self, ids: list[int], first: int) -> None:
        for end in range(first, len(ids)):
            for length in range(1, min(LONGEST, end) + 1):
                context = tuple(ids[end - length : end])
                self.met[context] = self.met.get(context, 0) + 1
                self.weight[context] = DECAY * self.weight.get(context, 0.0) + 1.0
                counts = self.counts.setdefault(context, {})
                for token in counts:
                    counts[token] *= DECAY
                counts[ids[end]] = counts.get(ids[end], 0.0) + 1.0

    def likeliest(self, ids: list[int]) -> tuple[int, float, int]:
        probs: dict[int, float] = {}
        kind = -1
        for length in range(1, LONGEST + 1):
            context = tuple(ids[-length:])
            if len(context) < length or context not in self.weight:
                break
            seen, kind = self.weight[context], 3 * length - 3 + min(self.met[context], 3) - 1
            probs = {token: p * BEHIND / (seen + BEHIND) for token, p in probs.items()}
            for token, much in self.counts[context].items():
                probs[token] = probs.get(token, 0.0) + much / (seen + BEHIND)
        best = max(probs, key=lambda token: probs[token])
        return best, probs[best], kind


def test_shares_are_the_interpolated_ones() -> None:
    chance = random.Random(3)
    table, by_hand = Continuations(1 << 20), ByHand()
    ids = [chance.randrange(4) for _ in range(60)]
    for begin in range(0, 60, 20):
        part = ids[max(0, begin - LONGEST) : begin + 20]
        first = min(LONGEST, begin)
        table.learn(part, first)
        by_hand.learn(part, first)
    same = 0
    for end in range(1, 60):
        best, share, kind = by_hand.likeliest(ids[:end])
        (found,) = table.follow(ids[:end], 1)
        assert share > UNLIKELY and found[2] == kind
        # the least share of short contexts is left out
        assert found[1] == pytest.approx(share, abs=0.1)
        same += found[0] == best
    assert same >= 57


def test_what_follows_is_a_chain() -> None:
    table = Continuations(1 << 16)
    for _ in range(3):
        table.learn([5, 6, 7, 8, 9, 10])
    assert [token for token, _, _ in table.follow([4, 5, 6], 9)] == [7, 8, 9, 10]
    assert [kind for *_, kind in table.follow([4, 5, 6], 9)] == [5, 8, 11, 11]
    assert table.follow([4], 9) == table.follow([], 9) == [] == Continuations(0).follow([5], 3)


def test_the_newer_counts_for_more() -> None:
    table = Continuations(1 << 16)
    for last in (3, 3, 9, 9):
        table.learn([1, 2, last])
    assert table.follow([1, 2], 1)[0][0] == 9


def test_a_full_table_stays_in_its_bounds_and_the_old_goes() -> None:
    """A million tokens are played by compiled code, in tests/kernels/test_ngram_table.py."""
    table, most = Continuations(200_000), 200_000
    text = np.random.default_rng(0).integers(1, 50_000, 8_000).tolist()
    for begin in range(0, len(text), 100):
        part = text[begin : begin + 100]
        table.learn(part)
        assert table.nbytes <= most and table.contexts <= WAYS << table.bits
    assert [token for token, *_ in table.follow(text[-40:-20], 5)] == text[-20:-15]
    assert not table.follow(text[:50], 5)
    table.clear()
    assert not table.contexts and not table.follow(text[-40:-20], 5) and table.nbytes == 0


def test_growing_moves_nothing_into_a_wrong_place() -> None:
    table, text = Continuations(4 << 20), list(range(1, 500))
    for begin in range(0, len(text), 50):
        part = text[max(0, begin - LONGEST) : begin + 50]
        table.learn(part, min(LONGEST, begin))
    bits, known = table.bits, [table.follow(text[:end], 3) for end in range(1, 499)]
    assert bits > 8 and sum(len(each) == 3 for each in known) > 450
    table._make_room(20_000)
    assert table.bits > bits + 2 and [table.follow(text[:end], 3) for end in range(1, 499)] == known
    assert np.count_nonzero(table.arrays[0]) == table.contexts


def test_of_many_texts_the_newest_are_learned() -> None:
    table = Continuations(200_000)
    assert table.room == 512
    table.learn_newest([[*range(100, 400)], [*range(1000, 1300)], [*range(2000, 2200)]])
    assert [token for token, *_ in table.follow([1000, 1001], 2)] == [1002, 1003]
    assert not table.follow([100, 101], 2), "it would not have fitted"


def source(prompt: list[int], known: Continuations, earlier: list[int] | None = None) -> MemorySource:
    text = None
    if earlier is not None:
        text = TextIndex()
        text.extend([*earlier, BREAK])
    return MemorySource(TextIndex(), CopyChances(), (99,), len(prompt), text, known)


def certain(*texts: list[int], times: int = 3) -> Continuations:
    table = Continuations(1 << 20)
    for text in texts * times:
        table.learn(text)
    return table


def test_a_chain_takes_each_id_from_the_surer_source() -> None:
    prompt = [1, 2, 3, 50, 51, 8, 9, 1, 2]
    copies = source(prompt, Continuations(0)).draft(prompt, 4)
    assert copies is not None and copies.ids == [3, 50, 51, 8]
    made = source(prompt, certain([1, 2, 3, 4, 5, 6])).draft(prompt, 4)
    assert made is not None and made.ids == [3, 4, 5, 6], "three times 4 is surer than 50 once"
    assert [match.origin for match in made.matches] == ["prompt", *["earlier"] * 3]
    weak = source(prompt, certain([0, 2, 7], times=1)).draft(prompt, 4)
    assert weak is not None and weak.ids[:2] == copies.ids[:2], (
        "a copy is surer than what was seen once behind one id"
    )
    assert made.chances == sorted(made.chances, reverse=True)


def test_a_chain_goes_on_from_memory_where_the_copy_ends() -> None:
    prompt = [30, 31, 99, 30]
    made = source([5, 6, 30], certain([5, 6, 30, 31, 32, 33])).draft([5, 6, 30], 16)
    assert made is not None and made.ids == [31, 32, 33]
    ended = source(prompt, certain([30, 99, 5, 5])).draft(prompt, 16)
    assert ended is not None and ended.ids == [99], "nothing follows an end"


def test_chances_are_learned_by_kind_and_share() -> None:
    chances = CopyChances()
    shares = (0.3, 0.4, 0.6, 0.7, 0.85, 0.92, 0.96, 1)
    kinds = {class_of_continuation(kind, share) for kind in range(12) for share in shares}
    assert len(kinds) == 96 and max(kinds) == len(chances.weight) - 1
    one, other = class_of_continuation(11, 0.99), class_of_continuation(8, 0.99)
    before = chances.accepted / chances.weight
    for _ in range(20):  # the id 7 was offered, and 8 written
        learn_chain(*chances.table, [7, 1, 2, 7, one, -1, -1, -1, -1], [8])
    after = chances.accepted / chances.weight
    assert before[one] > 0.9 and after[one] < 0.5 and after[other] == before[other]


def test_sources_that_agree_make_an_id_likelier() -> None:
    """Both know 4 behind 1, 2; a third text stands alone."""
    alone = source([1, 2], certain([1, 2, 4])).draft([1, 2], 1)
    both = source([1, 2, 4, 9, 1, 2], certain([1, 2, 4])).draft([1, 2, 4, 9, 1, 2], 1)
    assert alone is not None and both is not None and alone.ids == both.ids == [4]
    assert 1.0 > both.chances[0] > alone.chances[0]


def test_a_source_that_is_wrong_is_believed_less() -> None:
    prompt = [1, 2, 3, 50, 51, 8, 9, 1, 2]
    made = source(prompt, certain([1, 2, 4, 5]))
    before = made.draft(prompt, 4)
    assert before is not None and before.ids[:2] == [4, 5]
    for _ in range(40):
        draft = made.draft(prompt, 4)
        assert draft is not None
        made.learn(draft, [3, 50])
    after = made.draft(prompt, 4)
    assert after is not None and after.ids[:2] == [3, 50] and after.chances[0] > 0.6
