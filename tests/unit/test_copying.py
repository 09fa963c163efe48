"""Places of a text, and what is copied from there."""

from __future__ import annotations

import random
import threading
import time

import pytest

from omnidemo.core.records import Match
from omnidemo.decoding.sources.copy_chances import CopiedDraft, CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.text_index import BREAK, CANDIDATES, SMALLEST, TextIndex, find_places
from omnidemo.pair import copy_memory
from omnidemo.pair.copy_memory import CopyMemory


def index(ids: list[int]) -> TextIndex:
    text = TextIndex()
    text.extend(ids)
    return text


def places(text: TextIndex, tail: list[int], own: bool) -> list[tuple[int, int]]:
    """(length, index behind) of the places that are found."""
    lengths, found = [0] * CANDIDATES, [0] * CANDIDATES
    count = find_places(text.arrays, tail, own, lengths, found)
    return [*zip(lengths[:count], found[:count], strict=True)]


def by_hand(ids: list[int], tail: list[int], own: bool) -> list[tuple[int, int]]:
    """(length, index behind) of all places, the newest first."""
    found = []
    for end in range(len(ids) - 1, 0, -1):
        length = 0
        while length < min(len(tail), end, 32) and ids[end - 1 - length] == tail[-1 - length]:
            length += 1
        if length >= 2 and not (own and end == len(ids)):
            found.append((length, end))
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length", [3, 40, 300, SMALLEST + 500])
def test_places_are_all_that_there_are(seed: int, length: int) -> None:
    """Entered at once, id by id, and after some were rolled back."""
    draw = random.Random(seed)
    ids = [draw.randrange(12) for _ in range(length)]
    wanted = by_hand(ids, ids, True)[:CANDIDATES]
    whole, single, again = (
        index(ids),
        TextIndex(),
        index([*ids[: length // 2], *[3, 1] * (256 // (1 + seed))]),
    )
    for token in ids:
        single.extend([token])
    again.trim(length // 2)
    again.extend(ids[length // 2 :])
    for text in (whole, single, again):
        found = places(text, ids, True)
        # other pairs may have the same hash
        assert found == wanted[: len(found)] and len(found) >= min(len(wanted), 4)


def test_places_where_the_arrays_have_grown_and_after_going_back() -> None:
    draw = random.Random(0)
    ids = [draw.randrange(40) for _ in range(6000)]
    text = TextIndex()
    for token in [*ids[:900], *[7] * 5000]:
        text.extend([token])
    assert text.nbytes <= TextIndex.BYTES * 5900 and text.nbytes > TextIndex().nbytes
    text.trim(900)
    assert places(text, ids[:900], True) == places(index(ids[:900]), ids[:900], True)
    for token in ids[900:]:
        text.extend([token])
    for end in (6000, 3000, 2000):
        wanted, found = by_hand(ids, ids[:end], False)[:CANDIDATES], places(text, ids[:end], False)
        assert found == wanted[: len(found)] and len(found) >= min(len(wanted), 2)
    text.drop(5500)
    assert places(text, ids, True) == by_hand(ids[5500:], ids[5500:], True)[:CANDIDATES]
    text.extend(ids[:3000])
    again = [*ids[5500:], *ids[:3000]]
    assert list(text.ids) == again and places(text, again, True) == places(index(again), again, True)


def draft(
    ids: list[int], most: int = 16, earlier: list[int] | None = None, ends: tuple[int, ...] = ()
) -> CopiedDraft | None:
    return MemorySource(
        TextIndex(), CopyChances(), ends, len(ids), None if earlier is None else index(earlier)
    ).draft(ids, most)


def test_what_followed_is_copied() -> None:
    found = draft([1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3])
    assert found is not None and found.ids[:5] == [4, 5, 6, 7, 9]
    assert found.matches[:2] == [Match(3, "prompt"), Match(4, "prompt")]
    assert all(before > after for before, after in zip(found.chances, found.chances[1:], strict=False))
    limited = draft([1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3], most=2)
    assert limited is not None and limited.ids == [4, 5]
    assert draft([1, 2, 3, 4, 5]) is None and draft([1]) is None and draft([], 3) is None


def test_most_places_decide_and_an_end_ends() -> None:
    often = draft([1, 2, 3, 0, 1, 2, 4, 0, 1, 2, 4, 9, 1, 2, 3, 1, 2, 4, 5, 8, 1, 2])
    assert often is not None and often.ids[0] == 4
    end = draft([1, 2, 3, 7, 5, 6, 8, 1, 2, 3], ends=(7,))
    assert end is not None and end.ids == [7]


def test_earlier_answers_are_a_source_and_are_not_run_together() -> None:
    found = draft([9, 1, 2, 3], earlier=[1, 2, 3, 4, BREAK, 8, 8])
    assert found is not None and found.ids == [4] and found.matches == [Match(3, "earlier")]


def test_chances_follow_what_is_accepted() -> None:
    ids = [1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3]
    copier = MemorySource(TextIndex(), CopyChances(), (), len(ids))
    before = copier.draft(ids, 4)
    assert before is not None
    for _ in range(60):
        copier.learn(before, [0])
    after = copier.draft(ids, 4)
    assert after is None or after.chances[0] < 0.2 < before.chances[0]
    for _ in range(200):
        copier.learn(before, before.ids)
    mended = copier.draft(ids, 4)
    assert mended is not None and mended.chances[0] > 0.7


@pytest.mark.parametrize(
    "ids", [[7] * 8000, [draw % 5000 for draw in range(8192)]], ids=["one token", "a long prompt"]
)
def test_long_prompts_are_entered_in_one_go(ids: list[int]) -> None:
    """The work, not the clock: ten chats of 8,192 ids by numpy, a look-up by at most so many places."""
    began = time.process_time()
    for _ in range(10):
        assert len(places(index(ids), ids, True)) <= CANDIDATES
    assert time.process_time() - began < 5.0  # 20 ms on a quiet machine


def test_memory_is_bounded_and_of_its_domain() -> None:
    memory = CopyMemory(1 << 16, threading.Lock())
    for answer in range(400):
        memory.add("a", [1, 2, 3], [answer, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    text = memory.of("a")
    known = memory.known("a")
    assert known is not None and known.nbytes <= 4 << 16
    assert text is not None and text.nbytes <= (1 << 16) + 1024 and memory.of("b") is None
    assert [at for _, at in places(text, [399, 5, 6], False)] and not places(text, [0, 5], False)
    before = memory.digest("a")
    memory.add("a", [1, 2, 3], [400, 5])
    assert before != memory.digest("a") and memory.digest("b") == ""
    memory.add("b", [], [1, 2])
    memory.forget("a")
    assert memory.digest("a") == "" != memory.digest("b")
    assert memory.of("a") is None and len(text) == 0 and memory.of("b") is not None
    memory.clear()
    assert memory.nbytes == 0
    nothing = CopyMemory(0, threading.Lock())
    nothing.add("a", [1], [2, 3])
    assert nothing.of("a") is None


def test_stored_answers_come_before_those_of_today() -> None:
    memory, asked = CopyMemory(TextIndex.BYTES * 12, threading.Lock()), list[tuple[str, threading.Event]]()
    memory.restore = lambda domain, mark: asked.append((domain, mark))
    assert memory.of("a") is None and memory.of("a") is None and [domain for domain, _ in asked] == ["a"], (
        "they are asked for once"
    )
    memory.add("a", [], [7, 8, 9])
    text, before = memory.of("a"), memory.digest("a")
    assert text is not None
    memory.put_before(*asked[0], [[1, 2, 3], [4, 5, 6], [1, 2, 9]])
    assert list(text.ids) == [4, 5, 6, BREAK, 1, 2, 9, BREAK, 7, 8, 9, BREAK], (
        "the oldest goes where there is no room"
    )
    assert memory.digest("a") != before
    assert places(text, [0, 8, 9], False) == [(2, 11)] and places(text, [1, 2], False) == [(2, 6)], (
        "and an answer under way finds them"
    )
    memory.add("a", [], [3, 3, 3])
    assert list(text.ids)[:4] == [1, 2, 9, BREAK]


def test_an_answer_waits_for_those_that_are_stored_once_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory, asked = CopyMemory(1 << 16, threading.Lock()), list[tuple[str, threading.Event]]()
    memory.await_stored("none")  # nothing is stored
    memory.restore = lambda domain, mark: asked.append((domain, mark))
    waits = threading.Thread(target=memory.await_stored, args=("a",))
    waits.start()
    while not asked:
        time.sleep(0.001)
    memory.put_before(*asked[0], [[1, 2, 3]])
    assert waits.is_alive(), "it waits until it is told"
    asked[0][1].set()
    waits.join(30)
    assert not waits.is_alive() and memory.of("a") is not None
    monkeypatch.setattr(copy_memory, "PATIENCE", 0.01)
    memory.await_stored("b")
    assert asked[1][1].is_set(), "nobody waits any longer"
    monkeypatch.setattr(copy_memory, "PATIENCE", 3600.0)
    memory.await_stored("b")
    memory.put_before(*asked[1], [[4, 5, 6]])
    assert memory.of("b") is not None, "and what comes late still comes"
    nothing = CopyMemory(0, threading.Lock())
    nothing.restore = lambda domain, mark: pytest.fail("there is no room to read anything for")
    nothing.await_stored("a")


def test_what_was_forgotten_meanwhile_does_not_come_back() -> None:
    memory, asked = CopyMemory(1 << 16, threading.Lock()), list[tuple[str, threading.Event]]()
    memory.restore = lambda domain, mark: asked.append((domain, mark))
    memory.of("a")
    memory.forget("a")
    memory.put_before(*asked[0], [[1, 2, 3]])
    assert memory.of("a") is None and len(asked) == 2, "what is left of them is asked for anew"
    memory.clear()
    memory.put_before(*asked[1], [[1, 2, 3]])
    assert memory.of("a") is None and not memory.nbytes


def test_all_together_are_bounded_and_those_used_last_stay() -> None:
    memory = CopyMemory(1 << 14, threading.Lock())
    for domain in range(40):
        memory.add(str(domain), [], list(range(200 * domain, 200 * domain + 150)))
        assert memory.known("0") is not None
    first = memory.known("0")
    assert first is not None and first.contexts, "it was asked for again and again"
    assert sum(each.nbytes for each in memory._known.values()) <= 32 << 14


def test_stored_answers_are_followed_too() -> None:
    memory, asked = CopyMemory(1 << 16, threading.Lock()), list[tuple[str, object]]()
    memory.restore = lambda domain, ticket: asked.append((domain, ticket))
    assert memory.of("a") is None
    held = memory.known("a")
    memory.add("a", [1], [2, 9, 10])
    memory.put_before(*asked[0], [[1, 2, 3, 4], [5, 6, 7]])
    known = memory.known("a")
    assert known is not None and known is held, "which answers that are being written hold"
    assert [token for token, *_ in known.follow([5], 2)] == [6, 7]
    assert [token for token, *_ in known.follow([1, 2], 2)] == [9, 10], "the newest counts most"
