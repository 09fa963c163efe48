"""Each turn of a long chat reads what is new, also when the chat has outgrown the window."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from lab.equality.tiny import SENTENCES
from omnidemo import load_pair
from omnidemo.decoding.state import TargetContext
from omnidemo.models.catalogue import ReadingLimits
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import newest
from tests.support.models import save

ANSWER = 12
Chat = list[dict[str, str]]
Load = Callable[[int], Pair]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """A pair whose models read so many tokens."""

    def loaded(window: int) -> Pair:
        root = tmp_path_factory.mktemp("long")
        target = save(root / "target", "byte-level", window=window, ends=False)
        return load_pair(target, save(root / "drafter", "sentence-piece", seed=1, window=window))

    return cache(loaded)


@pytest.fixture()
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(ids of a prompt, how many of them the target had read already) of each answer."""
    found: list[tuple[int, int]] = []
    begin = TargetContext.begin

    def noting(self: TargetContext, prompt: Any) -> int:
        kept = begin(self, prompt)
        found.append((len(prompt), kept))
        return kept

    monkeypatch.setattr(TargetContext, "begin", noting)
    return found


def converse(pair: Pair, turns: int, words: str) -> tuple[Chat, list[int]]:
    """A chat of so many turns, and how many messages were dropped in each."""
    chat, dropped = Chat(), list[int]()
    for turn in range(turns):
        chat.append({"role": "user", "content": f"{turn} {words}"})
        given = newest(pair, chat, ReadingLimits(), ANSWER)
        dropped.append(given.dropped)
        made = pair.generate(given.messages, method="ngram-exact", max_new_tokens=ANSWER, learn=False)
        assert (
            made.context_limit == pair.target.context and made.context_tokens == made.prompt_tokens + ANSWER
        )
        chat.append({"role": "assistant", "content": made.text})
    return chat, dropped


def test_each_turn_reads_what_is_new(load: Load, read: list[tuple[int, int]]) -> None:
    _, dropped = converse(load(8192), 30, SENTENCES[0])
    assert dropped == [0] * 30 and len(read) == 30
    for (before, _), (_, kept) in pairwise(read):
        assert kept >= before - 1, "the whole prompt of the turn before was read already"
    assert sum(length - kept for length, kept in read) < 2 * read[-1][0]


def test_a_chat_that_outgrows_the_window_is_seldom_read_anew(load: Load, read: list[tuple[int, int]]) -> None:
    """It begins alike for several turns, and keeps three quarters of what fits."""
    _, dropped = converse(load(2048), 50, " ".join(SENTENCES[:2] * 2))
    assert dropped == sorted(dropped) and dropped[-1] > 20
    moves = [turn for turn in range(1, 50) if dropped[turn] > dropped[turn - 1]]
    assert min(later - earlier for earlier, later in pairwise(moves)) >= 3
    space = 2048 - ANSWER
    assert all(length <= space for length, _ in read)
    for turn in range(1, 50):
        length, kept = read[turn]
        if turn in moves:
            assert 0.7 * space < length, "no more went than had to"
        else:
            assert kept >= read[turn - 1][0] - 1
