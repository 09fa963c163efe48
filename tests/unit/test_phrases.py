"""Known phrases: their table, the source that proposes them beside memory, and the file that ships."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lab.drafters.phrases import count_phrases, write_phrases
from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.ngram_table import KEPT, LONGEST, WAYS
from omnidemo.decoding.sources.phrase_source import PhraseSource
from omnidemo.decoding.sources.text_index import TextIndex
from omnidemo.models import known_phrases

SHIPPED = "gguf/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M-6dbf11a0"
PROMPT = [1, 2, 3]


def answers(*texts: list[int]) -> list[WrittenAnswer]:
    return [WrittenAnswer("s", str(number), 0.0, "end", PROMPT, text) for number, text in enumerate(texts)]


def table(*texts: list[int], fewest: int = 2) -> Continuations:
    arrays = count_phrases(answers(*texts), fewest)
    return Continuations.of(*(arrays[name] for name in known_phrases.ARRAYS))


def known(text: Continuations | None, prompt: list[int]) -> MemorySource:
    return MemorySource(TextIndex(), CopyChances(), (99,), len(prompt), known=text)


def test_what_was_met_twice_is_counted() -> None:
    arrays = count_phrases(answers([7, 8, 9], [7, 8, 5], [4]))
    rows = {
        tuple(token for token in row if token >= 0): at for at, row in enumerate(arrays["contexts"].tolist())
    }
    # of what one context of the prompt begins, and of the answer; 9 and 5 stand once behind it
    assert {(7,), (3,), (2, 3), (1, 2, 3), (3, 7), (7, 8), (1, 2, 3, 7), (8,)} <= rows.keys() and (
        9,
    ) not in rows
    at = rows[3,]
    assert arrays["weights"][at] == 3 and arrays["ids"][at][:2].tolist() == [7, 4]
    assert arrays["counts"][at].tolist() == [2, 1, 0, 0]


def test_a_table_says_what_followed_most_often() -> None:
    made = table(*[[7, 8, 9, 10]] * 6, *[[7, 8, 11]] * 2)
    found = made.follow([*PROMPT, 7], 3)
    assert [token for token, *_ in found] == [8, 9, 10] and {kind for *_, kind in found} == {11}
    assert found[1][1] == pytest.approx(6 / 8.4, abs=0.06) and found[0][1] > 0.95
    assert not made.follow([50], 3)


def test_in_a_full_bucket_what_was_met_most_stays() -> None:
    count = 5_000
    draw = np.random.default_rng(0)
    contexts = np.full((count, LONGEST), -1)
    contexts[:, -1] = tokens = draw.choice(1_000_000, count, replace=False)
    weights, ids = draw.integers(2, 1_000, count), np.zeros((count, KEPT), np.int64)
    ids[:, 0], counts = tokens + 1, np.zeros((count, KEPT))
    counts[:, 0] = weights
    made = Continuations.of(contexts, weights, ids, counts)
    found = [made.follow([token], 1) for token in tokens.tolist()]
    there = [bool(each) for each in found]
    assert count > made.contexts == sum(there) > 0.9 * count
    assert all(each[0][0] == token + 1 for each, token in zip(found, tokens, strict=True) if each)
    assert max(Counter(np.flatnonzero(made.arrays[0]) // WAYS).values()) == WAYS
    lost = [weight for weight, stays in zip(weights, there, strict=True) if not stays]
    assert np.mean(lost) < np.mean(weights)


def test_phrases_are_proposed_where_memory_knows_less() -> None:
    phrases = table(*[[7, 8, 9, 10, 11]] * 20)
    source = PhraseSource(known(None, PROMPT), phrases)
    made = source.draft([*PROMPT, 7], 3)
    assert made is not None and made.ids == [8, 9, 10] and made.chances == sorted(made.chances, reverse=True)
    assert [match.origin for match in made.matches] == ["phrase"] * 3
    own = Continuations(1 << 16)
    for _ in range(9):
        own.learn([*PROMPT, 7, 50, 51, 52])
    made = PhraseSource(known(own, PROMPT), table(*[[7, 8, 9]] * 2)).draft([*PROMPT, 7], 3)
    assert (
        made is not None and made.ids == [50, 51, 52] and {one.origin for one in made.matches} == {"earlier"}
    )
    assert PhraseSource(known(None, [60]), phrases).draft([60], 3) is None


def test_copies_from_the_chat_are_still_its_own() -> None:
    prompt = [30, 31, 32, 33, 34, 35, 30, 31, 32]
    made = PhraseSource(known(None, prompt), table([7, 8], [7, 8])).draft(prompt, 3)
    assert (
        made is not None and made.ids == [33, 34, 35] and {one.origin for one in made.matches} == {"prompt"}
    )


def test_a_phrase_that_is_wrong_is_believed_less() -> None:
    source = PhraseSource(known(None, PROMPT), table(*[[7, 8, 9, 10, 11]] * 20))
    chances = []
    for _ in range(30):
        made = source.draft([*PROMPT, 7], 3)
        assert made is not None
        chances.append(made.chances[0])
        source.learn(made, [60])
    assert chances[0] > 0.9 and chances[-1] < 0.4


def test_a_file_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_phrases, "FOLDER", tmp_path)
    arrays = count_phrases(answers(*[[7, 8, 9, 10]] * 6))
    write_phrases(known_phrases.file_of("gguf/a-1", tmp_path), arrays)
    monkeypatch.setattr(known_phrases, "file_of", lambda name: tmp_path / f"{name.rpartition('/')[2]}.npz")
    found = known_phrases.phrases_of("gguf/a-1")
    assert found is not None and found.follow([*PROMPT, 7], 9) == table(*[[7, 8, 9, 10]] * 6).follow(
        [*PROMPT, 7], 9
    )
    assert known_phrases.phrases_of("gguf/a-2") is None and known_phrases.phrases_of("a-1") is None
    whole = (tmp_path / "a-1.npz").read_bytes()
    for damaged in (b"", b"version https://git-lfs.github.com/spec/v1", whole[: len(whole) // 2]):
        (tmp_path / "a-1.npz").write_bytes(damaged)
        assert known_phrases.phrases_of("gguf/a-1") is None


def test_the_file_that_ships_is_small_and_complete() -> None:
    path = known_phrases.file_of(SHIPPED)
    found = known_phrases.phrases_of(SHIPPED)
    assert path.stat().st_size < 12e6 and found is not None and found.nbytes < 40e6
    with np.load(path) as arrays:
        contexts, weights, ids = (arrays[name] for name in ("contexts", "weights", "ids"))
    assert found.contexts > 0.97 * len(weights) and weights.min() == 2
    assert contexts.max() < 151_936 > ids.max() and contexts.min() == -1 <= 0 == ids.min()
