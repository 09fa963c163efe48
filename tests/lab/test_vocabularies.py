"""How well two tokenizers fit, by hand and from folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import vocabularies as coverage
from omnidemo.backends.runner import ModelError
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary
from tests.support.tokenizer_families import byte_level, sentence_piece
from tests.support.worlds import vocabulary

BYTE_LEVEL, SENTENCE_PIECE = byte_level(), sentence_piece()
READ = {"byte-level": read_vocabulary(BYTE_LEVEL), "sentence-piece": read_vocabulary(SENTENCE_PIECE)}


def test_coverage_counts_a_text_by_how_its_tokens_can_be_proposed() -> None:
    tokens: list[bytes | None] = [b"a", b"b", b"ab", b"aba", b"ababa", b"bbbb", b"x", None]
    target = Vocabulary(
        tuple(tokens), {"end": (7,)}, lambda data: None, lambda text: [int(sign) for sign in text]
    )
    drafter = vocabulary([b"a", b"b", b"ba", None], end=3)
    found = coverage.report(("big", target), ("small", drafter), ["00122", "3344556", "7"])
    assert (found.target, found.drafter, found.mapped) == ("big", "small", 3)
    # ab = a+b, aba = a+ba, ababa = a+ba+ba, bbbb = b+b+b+b; x is not spelled, and the end token is no text.
    assert (found.tokens, found.direct, found.spelled, found.distinct) == (
        12,
        3,
        {0: 1, 1: 3, 2: 4, 3: 2, 4: 2},
        4,
    )
    assert found.shares() == [3 / 12, 4 / 9, 2 / 9, 2 / 9, 0.0, 1 / 9]
    assert (
        dict(zip(coverage.HEADINGS, found.cells(), strict=True))["2-grams"] == "44.44%" and found.seconds >= 0
    )


def test_tokenizers_are_compared_in_both_directions(tmp_path: Path) -> None:
    BYTE_LEVEL.save_pretrained(tmp_path / "one")
    SENTENCE_PIECE.save_pretrained(tmp_path / "two")
    names = str(tmp_path / "one"), str(tmp_path / "two")
    forth, back = coverage.compare(*names, ["the small duck — naïve"], hub=False)
    assert (forth.target, forth.drafter) == names and (back.target, back.drafter) == names[::-1]
    assert forth.mapped == back.mapped > 100 and len(forth.cells()) == len(coverage.HEADINGS)
    ids = BYTE_LEVEL.encode("the small duck — naïve", add_special_tokens=False)
    assert forth.tokens == len(ids) and 0 not in forth.spelled
    empty = coverage.report(("one", READ["byte-level"]), ("two", READ["sentence-piece"]), [])
    assert empty.shares() == [None] * 6 and "–" in empty.cells()


def test_a_tokenizer_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for name in (str(tmp_path), str(tmp_path / "missing")):
        with pytest.raises(ModelError) as caught:
            coverage.read_tokenizer(name, hub=False)
        assert name in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="without its tokenizer"):
        coverage.report(("one", vocabulary([b"a"])), ("two", vocabulary([b"a"])), ["a"])
