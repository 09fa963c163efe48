"""Any text, by any family: spelled, translated there and back, decoded piece by piece, and matched with
n-grams."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import cache
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from omnidemo.decoding.contexts import DrafterContext
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.tokenizer_families import FAMILIES, SPECIAL
from tests.support.worlds import TableCache, vocabulary

# the families with a token for each byte
SPELL_ALL = ("byte-level", "sentence-piece", "llama", "unigram-bytes")
PAIRS = list(permutations(FAMILIES, 2))
BOUNDED = settings(max_examples=40, deadline=None)
REWRITTEN = re.compile("▁|<[|]|<unk>|<0x")  # read as a space, a special token or (by Unigram) a byte
HARD = (
    *(
        "def f(x):\n\treturn x  # ok\r\n",
        "if a != b:\n        pass\n\n\n",
        "SELECT * FROM t WHERE a>=1;",
        "the small duck",
        "  ",
        " ",
    ),
    *(
        "👩‍👩‍👧‍👦🏽",
        "🇨🇭",
        "东京タワー",
        "안녕하세요",
        "مرحبا",
        "naïve",
        "e\u0301",
        "\u1e9b\u0323",
        "ﬁ",
        "“x” — …",
    ),
    *(
        "\x00\x07\x1b[0m\x7f",
        "\u200b\ufeff\u2028",
        "▁",
        "▁▁the",
        "Ġ",
        "<0x41>",
        "<0x0A>",
        "##s",
        "\U0010ffff",
        *SPECIAL,
    ),
)
TEXTS = st.lists(st.sampled_from(HARD) | st.text(max_size=8), max_size=6).map("".join)
# Half characters beside whole ones, as a target may write them.
SOUP = st.lists(st.binary(max_size=5) | TEXTS.map(str.encode), max_size=4).map(b"".join)


@cache
def tokenizer(family: str) -> PreTrainedTokenizerFast:
    return FAMILIES[family]()


@cache
def read(family: str) -> Vocabulary:
    return read_vocabulary(tokenizer(family))


@cache
def pair(target: str, drafter: str) -> VocabularyMap:
    return VocabularyMap(read(target), read(drafter), len(read(target)) + 3, len(read(drafter)) + 1)


def context(table: VocabularyMap) -> DrafterContext:
    return DrafterContext(TableCache(len(table.targets), 0, limit=100_000), table)


def segmentable(tokens: Sequence[bytes | None], data: bytes) -> bool:
    words = b"|".join(re.escape(token) for token in tokens if token)
    return re.fullmatch(b"(?:" + words + b")*", data, re.DOTALL) is not None


@pytest.mark.parametrize("family", SPELL_ALL)
@given(data=SOUP)
@BOUNDED
def test_any_bytes_are_spelled_byte_for_byte(family: str, data: bytes) -> None:
    spelled = read(family).spell(data)
    assert spelled is not None and read(family).text_bytes(spelled) == data


@pytest.mark.parametrize("family", ["unigram", "word-piece"])
@given(data=SOUP)
@BOUNDED
def test_a_family_without_byte_tokens_spells_exactly_or_not_at_all(family: str, data: bytes) -> None:
    spelled = read(family).spell(data)
    assert spelled is None or read(family).text_bytes(spelled) == data


@given(
    tokens=st.lists(st.text("abc", min_size=1, max_size=3).map(str.encode), min_size=1, max_size=6),
    text=st.text("abc", max_size=9),
)
@settings(max_examples=200, deadline=None)
def test_only_what_no_tokens_spell_is_not_spelled(tokens: list[bytes], text: str) -> None:
    made = vocabulary(tokens)
    spelled = made.spell(text.encode())
    assert (spelled is not None) == segmentable(tokens, text.encode())
    assert spelled is None or made.text_bytes(spelled) == text.encode()


@pytest.mark.parametrize("family", FAMILIES)
@given(text=TEXTS)
@BOUNDED
def test_a_whole_text_is_encoded_exactly_or_not_at_all(family: str, text: str) -> None:
    ids = read(family).encode(text.encode())
    assert ids is None or read(family).text_bytes(ids) == text.encode()
    if family in SPELL_ALL and not REWRITTEN.search(text):
        assert ids is not None


@pytest.mark.parametrize("family", SPELL_ALL)
@given(text=TEXTS)
@BOUNDED
def test_the_texts_of_the_tokens_join_to_the_text(family: str, text: str) -> None:
    if REWRITTEN.search(text):
        return
    ids = tokenizer(family).encode(text, add_special_tokens=False)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(read(family).writes(token_id)) for token_id in ids]
    joined = "".join(pieces) + decoder.decode(b"", True)
    prefix = (
        ""
        if family in ("byte-level", "sentence-piece")
        or not text
        or (family == "unigram-bytes" and text[0] == " ")
        else " "
    )
    assert joined == prefix + text


@pytest.mark.parametrize("family", FAMILIES)
@given(ids=st.data())
@BOUNDED
def test_any_ids_decode_piece_by_piece_as_they_do_at_once(family: str, ids: st.DataObject) -> None:
    drawn = ids.draw(st.lists(st.integers(0, len(read(family)) + 2), max_size=12))  # padded rows too
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    joined = "".join(decoder.decode(read(family).writes(token_id)) for token_id in drawn) + decoder.decode(
        b"", True
    )
    assert joined == read(family).text_bytes(drawn).decode("utf-8", "replace")


@pytest.mark.parametrize(("target", "drafter"), PAIRS)
@given(data=SOUP)
@settings(max_examples=15, deadline=None)
def test_the_drafter_reads_what_the_target_wrote(target: str, drafter: str, data: bytes) -> None:
    ids = read(target).spell(data)
    if ids is None:  # a target writes what it has tokens for
        ids = read(target).spell(b" the small duck") or ()
    table = pair(target, drafter)
    state = context(table)
    for end, target_id in enumerate(ids, 1):
        state.follow([target_id])
        assert state.unk_count or state.spells(ids[:end])  # also while bytes wait
    if drafter in SPELL_ALL:
        assert not state.unk_count and not state.pending_bytes
    if not state.unk_count:
        back = context(pair(drafter, target))
        back.follow(state.ids)
        written = read(target).text_bytes(back.ids) + back.pending_bytes
        assert back.unk_count or written + state.pending_bytes == read(target).text_bytes(ids)


@pytest.mark.parametrize(("target", "drafter"), [names for names in PAIRS if names[1] in SPELL_ALL])
@given(text=TEXTS)
@settings(max_examples=15, deadline=None)
def test_a_prompt_is_read_byte_for_byte(target: str, drafter: str, text: str) -> None:
    ids = tokenizer(target).encode(text, add_special_tokens=False)
    state = context(pair(target, drafter))
    state.start(ids, 0)
    assert state.spells(ids) and not state.pending_bytes and not state.unk_count


@pytest.mark.parametrize(("target", "drafter"), PAIRS)
def test_every_target_token_is_spelled_by_its_own_bytes(target: str, drafter: str) -> None:
    table = pair(target, drafter)
    tokens = table.drafter.tokens
    for target_id in range(len(table.drafters)):
        data, spelled = table.target.writes(target_id), table.spelling(target_id)
        assert spelled is None or table.drafter.text_bytes(spelled) == data
        assert spelled is not None or not segmentable(tokens, data)
        ngram = table.ngram(target_id)
        assert ngram is None or (ngram == spelled and len(ngram) > 1 and table.drafters[target_id] < 0)
        if data and table.target.by_bytes[data] == target_id and data in table.drafter.by_bytes:
            assert spelled == (table.drafter.by_bytes[data],)
