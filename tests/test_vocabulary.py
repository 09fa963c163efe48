"""Vocabularies as bytes, and the map between them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidemo.core.vocabulary import VocabularyMap, byte_alphabet, read_vocabulary
from tokenizer_families import FAMILIES, byte_level, sentence_piece
from worlds import vocabulary

BYTE_LEVEL, SENTENCE_PIECE = byte_level(), sentence_piece()
READ = {"byte-level": read_vocabulary(BYTE_LEVEL), "sentence-piece": read_vocabulary(SENTENCE_PIECE)}


def test_the_byte_table_is_a_bijection_on_256_bytes() -> None:
    assert sorted(byte_alphabet().values()) == list(range(256))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_writes_a_sentence_back(family: str) -> None:
    tokenizer = FAMILIES[family]()
    read = read_vocabulary(tokenizer)
    ids = tokenizer.encode("the other ducks swim", add_special_tokens=False)
    assert read.text_bytes(ids).strip() == b"the other ducks swim"
    assert read.roles["end"][0] == tokenizer.eos_token_id and read.writes(tokenizer.eos_token_id) == b""


@pytest.mark.parametrize("family", READ)
@given(text=st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_text_is_spelled_byte_for_byte(family: str, text: str) -> None:
    read, data = READ[family], text.encode()
    spelled = read.spell(data)
    # U+2581 stands for a space in SentencePiece vocabularies, so it alone cannot be told apart there.
    if "▁" not in text:
        assert spelled is not None and read.text_bytes(spelled) == data


@given(data=st.binary(max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_byte_level_drafter_spells_half_characters_too(data: bytes) -> None:
    read = READ["byte-level"]
    spelled = read.spell(data)
    assert spelled is not None and read.text_bytes(spelled) == data


def test_a_whole_text_is_encoded_as_the_tokenizer_does_or_not_at_all() -> None:
    read = READ["byte-level"]
    assert read.encode(b"the small duck") == tuple(BYTE_LEVEL.encode("the small duck", add_special_tokens=False))
    assert read.encode(b"\xe2\x80") is None
    assert read.encode(b"a<|end|>b") is None  # written out, it would become the special token


def test_the_map_is_a_bijection_between_equal_bytes() -> None:
    table = VocabularyMap(READ["byte-level"], READ["sentence-piece"], len(READ["byte-level"]) + 7, len(READ["sentence-piece"]) + 3)
    for target_id, drafter_id in enumerate(table.to_drafter.tolist()):
        if drafter_id >= 0:
            assert int(table.to_target[drafter_id]) == target_id
            if table.target.writes(target_id):
                assert table.target.writes(target_id) == table.drafter.writes(drafter_id)
    end = table.target.roles["end"][0]
    assert table.to_drafter[end] == table.drafter.roles["end"][0] and bool(table.draftable[table.to_drafter[end]])
    begin = table.drafter.roles["begin"][0]
    assert not bool(table.draftable[begin])


def test_duplicates_padding_and_unspellable_tokens() -> None:
    target = vocabulary([b"a", b"a", b"ab", b"x", None], end=4)
    drafter = vocabulary([b"b", b"a", None], end=2)
    table = VocabularyMap(target, drafter, 8, 5)
    assert table.to_drafter.tolist() == [1, -1, -1, -1, 2, -1, -1, -1]
    assert table.spelling(2) == (1, 0) and table.ngram(2) == (1, 0)
    assert table.spelling(3) is None and table.ngram(3) is None  # bytes that the drafter cannot write
    assert table.spelling(7) == () and table.ngram(7) is None  # a padded row


def test_several_end_ids_are_all_ends() -> None:
    user = BYTE_LEVEL.convert_tokens_to_ids("<|user|>")
    assert read_vocabulary(BYTE_LEVEL, extra_end_ids=[user]).roles["end"] == (BYTE_LEVEL.eos_token_id, user)


def test_vocabularies_that_share_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="share no token"):
        VocabularyMap(vocabulary([b"a"]), vocabulary([b"b"]), 1, 1)
