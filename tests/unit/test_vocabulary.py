"""Vocabularies as bytes, and the map between them."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from omnidemo.decoding.methods.string_rejection import strings_of
from omnidemo.vocabulary.vocabulary import read_vocabulary
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.tokenizer_families import (
    byte_level,
    llama,
    sentence_piece,
    unigram_bytes,
)
from tests.support.worlds import vocabulary

BYTE_LEVEL, SENTENCE_PIECE = byte_level(), sentence_piece()
READ = {"byte-level": read_vocabulary(BYTE_LEVEL), "sentence-piece": read_vocabulary(SENTENCE_PIECE)}


def test_a_whole_text_is_encoded_as_the_tokenizer_does_or_not_at_all() -> None:
    read = READ["byte-level"]
    assert read.encode(b"the small duck") == tuple(
        BYTE_LEVEL.encode("the small duck", add_special_tokens=False)
    )
    assert read.encode(b"\xe2\x80") is None
    assert read.encode(b"a<|end|>b") is None  # written out, it would become the special token


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


def plain_byte_level(extra: list[str] = [], **model: str) -> Tokenizer:  # noqa: B006
    signs = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *extra]
    tokenizer = Tokenizer(models.BPE({sign: i for i, sign in enumerate(signs)}, [], **model))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def test_one_id_that_begins_ends_and_pads_is_mapped_as_the_end() -> None:
    """As GPT-2 has it; proposing the end is what matters, and its unknown token is none."""
    tokenizer = plain_byte_level()
    one = "<|endoftext|>"
    gpt = read_vocabulary(
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token=one, eos_token=one, pad_token=one, unk_token=one
        )
    )
    assert gpt.roles == {"begin": (256,), "end": (256,), "pad": (256,)}
    other = READ["sentence-piece"]
    forth = VocabularyMap(other, gpt, len(other), len(gpt))
    assert forth.targets[256] == other.roles["end"][0] and bool(forth.draftable[256])
    back = VocabularyMap(gpt, other, len(gpt), len(other))
    assert back.drafters[256] == other.roles["end"][0] and bool(back.draftable[back.drafters[256]])
    assert back.targets[other.roles["begin"][0]] == -1


def test_an_added_token_wins_over_a_token_of_the_same_bytes() -> None:
    """GPT-NeoX lists runs of spaces as added tokens, which are found before the model sees the text."""
    tokenizer = plain_byte_level(["ĠĠ"])
    tokenizer.add_tokens([AddedToken("  ", normalized=False)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    read = read_vocabulary(fast)
    assert read.writes(256) == read.writes(257) == b"  "
    assert fast.encode("a  b") == [read.by_bytes[b"a"], 257, read.by_bytes[b"b"]]
    assert read.by_bytes[b"  "] == 257 and read.spell(b"  ") == (257,)


def test_of_a_letter_and_its_byte_token_the_letter_wins() -> None:
    for family in (sentence_piece, llama):
        fast = family()
        read = read_vocabulary(fast)
        letter, byte = fast.convert_tokens_to_ids(["a", "<0x61>"])
        assert read.writes(letter) == read.writes(byte) == b"a" and letter > byte
        assert read.by_bytes[b"a"] == letter and fast.encode("a", add_special_tokens=False)[-1] != byte


def test_tokens_with_a_role_write_nothing_even_when_they_are_not_flagged_as_special() -> None:
    tokenizer = plain_byte_level()
    tokenizer.add_tokens(["</s>", "<|assistant|>", "<tool>"])
    read = read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer))
    assert [read.writes(i) for i in (256, 257, 258)] == [b"", b"", b"<tool>"]
    assert read.roles == {"end": (256,), "assistant": (257,)}


def test_an_unknown_token_that_nobody_lists_is_not_taken_for_text() -> None:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("a", -1.0), ("b", -2.0)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    read = read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer))
    assert read.roles == {"unknown": (0,)} and read.tokens == (None, b" ", b"a", b"b")
    assert read.spell(b"<unk>") is None
    assert (
        "unknown" not in read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=plain_byte_level())).roles
    )
    assert read_vocabulary(unigram_bytes()).roles["unknown"] == (0,)


def test_holes_and_end_ids_that_mean_none() -> None:
    tokenizer = Tokenizer(models.BPE({"Ġ": 0, "a": 3, "€": 4}, []))
    tokenizer.decoder = decoders.ByteLevel()
    read = read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer), extra_end_ids=[-1])
    # € is no sign of the byte table
    assert read.tokens == (b" ", None, None, b"a", None) and read.roles == {}
    table = VocabularyMap(read, read, 2, 9)
    assert table.drafters == [0, -1] and table.spelling(1) == ()


def test_a_prefix_space_is_taken_back() -> None:
    for family in (llama, unigram_bytes):
        fast = family()
        read = read_vocabulary(fast)
        text = "the small duck"
        own = fast.encode(text, add_special_tokens=False)
        assert read.text_bytes(own) == b" " + text.encode()
        ids = read.encode(text.encode())
        assert ids is not None and read.text_bytes(ids) == text.encode() and list(ids[-2:]) == own[-2:]
        assert read.encode(b"") == ()


def test_unreadable_families_are_refused() -> None:
    marked = PreTrainedTokenizerFast(tokenizer_object=plain_byte_level(end_of_word_suffix="</w>"))
    words = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    for tokenizer, name in ((marked, "BPE with word marks"), (words, "WordLevel")):
        with pytest.raises(ValueError, match=name):
            read_vocabulary(tokenizer)
    with pytest.raises(ValueError, match="has no fast tokenizer"):
        read_vocabulary(object())


def test_bars_and_shown_texts() -> None:
    table = VocabularyMap(vocabulary([b"a", b"\xe2", None]), vocabulary([b"a", "✓".encode(), None]), 4, 5)
    assert table.draftable_logit_mask.tolist() == [
        0.0 if allowed else -math.inf for allowed in table.draftable.tolist()
    ]
    assert table.readable_logit_mask.tolist() == [
        0.0 if allowed else -math.inf for allowed in table.readable.tolist()
    ]
    assert {math.copysign(1.0, bar) for bar in table.readable_logit_mask.tolist() if bar == 0} == {1.0}
    for _ in range(2):  # the second time from what was kept
        assert [table.target.shown[token_id] for token_id in range(5)] == ["a", "\ufffd", "", "", ""]
        assert table.drafter.shown[1] == "✓"


def test_string_rejection_does_not_keep_the_map_of_a_pair_that_is_gone() -> None:
    kept = VocabularyMap(READ["byte-level"], READ["sentence-piece"], len(BYTE_LEVEL), len(SENTENCE_PIECE))
    assert strings_of(kept) is strings_of(kept)
    gone = weakref.ref(kept)
    del kept
    gc.collect()
    assert gone() is None


def test_names_that_end_a_message_and_not_the_answer() -> None:
    tokenizer = plain_byte_level()
    # as gpt-oss has the first three
    tokenizer.add_special_tokens(["<|end|>", "<|return|>", "<|call|>", "<s>", "</s>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|return|>")
    read = read_vocabulary(fast, [258])
    assert read.roles == {"begin": (259,), "end": (257, 258, 260)} and read.writes(256) == b""
    assert read_vocabulary(fast, [258], by_name=False).roles == {"end": (257, 258)}


@pytest.mark.parametrize("listed", [[], [258], [257, 258]])
def test_an_end_that_a_list_forgets_is_known_by_its_name(listed: list[int]) -> None:
    tokenizer = plain_byte_level()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    assert set(read_vocabulary(fast, listed).roles["end"]) == {257, 258}
