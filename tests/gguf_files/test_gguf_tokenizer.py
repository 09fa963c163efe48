"""The tokenizer of a GGUF file: ids worked out by hand from tokens, merges and scores, or taken from
llama.cpp."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from omnidemo.backends.runner import ModelError
from omnidemo.models.chat_template import Speller
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.pre_tokenizers import PRE_TOKENIZERS
from omnidemo.models.gguf.tokenizer import read_tokenizer
from omnidemo.vocabulary.alphabets import byte_alphabet
from omnidemo.vocabulary.vocabulary import read_vocabulary

SIGNS = sorted(byte_alphabet(), key=byte_alphabet().__getitem__)  # id = byte
SPACES, HE, TWELVE, SPACE_1, T_SIGN, THIRTY_FOUR, WHOLE = range(256, 263)
MERGES = ["Ġ Ġ", "h e", "1 2", "Ġ 1", "t '", "3 4"]
PLAIN = [*SIGNS, *(merge.replace(" ", "") for merge in MERGES), "xyz"]  # no merge makes xyz
BEGIN, END, PAD, TOOL, HOLE = range(263, 268)
TOKENS = [*PLAIN, "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool>", "[PAD267]"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}<|im_end|>{% endfor %}"


def byte_level(pre: str | None = "gpt-2", **more: Any) -> dict[str, Any]:
    """The key-values of a byte-level vocabulary."""
    keys = {
        "model": "gpt2", "pre": pre, "tokens": TOKENS, "merges": MERGES,
        "token_type": [1] * len(PLAIN) + [3, 3, 3, 4, 5],
        "bos_token_id": BEGIN, "eos_token_id": END, "padding_token_id": PAD,
    } | more  # fmt: skip
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


PIECES = ["▁", "a", "b", "c", "ab", "bc", "abc", "▁a"]
SPACE, A, B, C, AB, BC, ABC, SPACE_A = range(259, 267)
TWO_SPACES, TAG, OLD = range(267, 270)


def sentence_piece(**more: Any) -> dict[str, Any]:
    """The key-values of a SentencePiece vocabulary: bc is joined first, then ab, abc and ▁a."""
    keys: dict[str, Any] = {
        "model": "llama", "tokens": ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)),
            *PIECES, "  ", "<tag>", "ca"],
        "scores": np.float32([*[0] * 259, -9, -9, -9, -9, -2, -1, -3, -4, -1000, -1000, 0]),
        "token_type": np.int32([2, 3, 3, *[6] * 256, *[1] * len(PIECES), 4, 4, 5]), "bos_token_id": 1,
        "eos_token_id": 2,
    } | more  # fmt: skip
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


def ids(metadata: dict[str, Any], text: str) -> list[int]:
    return list(read_tokenizer(metadata)[0].encode(text, add_special_tokens=False))


def letters(text: str) -> list[int]:
    return list(text.encode())


CUTS: dict[str, dict[str, list[int]]] = {
    "gpt-2": {"a  12": [97, 32, 32, TWELVE], "12345": [TWELVE, THIRTY_FOUR, 53], "it's": letters("it's")},
    "default": {"a  12": [97, 32, 32, TWELVE], "12345": [TWELVE, 51, 52, 53], "$=": [36, 61],
        "it's": letters("it's")},
    "smollm": {"a  12": [97, SPACES, 49, 50], "12345": letters("12345"), " he": [32, HE]},
    "starcoder": {"a  12": [97, SPACES, 49, 50]},
    "llama-bpe": {"a  12": [97, 32, 32, TWELVE], "12345": [TWELVE, 51, 52, 53], "xyz": [WHOLE],
        " xyz": letters(" xyz")},
    "dbrx": {"12345": [TWELVE, 51, 52, 53], "xyz": letters("xyz")},
    "qwen2": {"a  12": letters("a  12"), "it's": letters("it's"), "\n  \n": [10, SPACES, 10]},
    "qwen35": {"a  12": letters("a  12"), "e\u0301's": letters("e\u0301's")},
    "gpt-4o": {"a  12": [97, 32, 32, TWELVE], "it's": [105, T_SIGN, 115]},
    "tekken": {"12345": letters("12345"), "xyz": [WHOLE], "it's": letters("it's")},
    "falcon": {"a  12": [97, 32, 32, TWELVE], "12345": [TWELVE, 51, 52, 53], "t'": letters("t'")},
    "deepseek-llm": {"12345": [TWELVE, THIRTY_FOUR, 53], "a  ": [97, SPACES], "t'": letters("t'")},
    "deepseek-coder": {"12345": letters("12345"), " he": [32, HE]},
    "deepseek-v3": {"12345": [TWELVE, 51, 52, 53], "a  12": [97, SPACES, TWELVE]},
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in CUTS.items() for text in texts])
def test_each_pre_tokenizer_cuts_as_its_models_do(name: str, text: str) -> None:
    assert ids(byte_level(name), text) == CUTS[name][text]


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_known_pre_tokenizer_keeps_all_bytes(name: str) -> None:
    text = "A1 \n\n\t\u00a0é ½1234 'll 'S 東京 한국어 हिन्दी e\u0301 🎉🏽 <>^~|`$ ... x\r\n   y  "
    tokenizer, ends = read_tokenizer(byte_level(name))
    assert (
        read_vocabulary(tokenizer, ends).text_bytes(tokenizer.encode(text, add_special_tokens=False))
        == text.encode()
    )


@pytest.mark.parametrize(
    ("prefix", "text", "expected"),
    [
        (True, "abc", [SPACE, ABC]),  # bc has the highest score, and abc a higher one than ▁a
        (True, "ab", [SPACE, AB]),
        (True, "a", [SPACE_A]),
        (True, "  a", [TWO_SPACES, SPACE_A]),  # the prefix stands behind every added token
        (True, "é", [SPACE, 3 + 0xC3, 3 + 0xA9]),
        (True, "", []),
        (False, "abc", [ABC]),
        (False, " a", [SPACE_A]),
        (False, "  a", [TWO_SPACES, A]),
        (False, "a<tag>bc", [A, TAG, BC]),
        (False, "a\nb", [A, 3 + 10, B]),
        (False, "ca", [C, A]),  # an unused token is not written
        (False, "<0x41>", [3 + byte if chr(byte) not in "abc" else A for byte in b"<0x41>"]),
    ],
)
def test_sentencepiece_joins_by_scores_and_falls_back_to_bytes(
    prefix: bool, text: str, expected: list[int]
) -> None:
    assert ids(sentence_piece(add_space_prefix=prefix), text) == expected


SOME = ["<unk>", "▁", "a", "\n", "[?]"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"token_type": np.int32([2, 1, 1, 1, 1])}, [1, 2, 0, 3, 2]),
        ({"token_type": np.int32([1, 1, 1, 1, 1])}, [1, 2, 0, 3, 2]),  # a file without kinds
        ({"token_type": np.int32([2, 1, 1, 3, 1])}, [1, 2, 0, 3, 2]),  # whose newline is a control token
        ({"token_type": np.int32([2, 1, 1, 1, 1]), "unknown_token_id": 4}, [1, 2, 4, 3, 2]),
        ({"token_type": np.int32([1, 1, 1, 1, 3]), "unknown_token_id": 4}, [1, 2, 4, 3, 2]),
    ],
)
def test_without_byte_tokens_what_is_unknown_stays_and_a_newline_is_one(
    more: dict[str, Any], expected: list[int]
) -> None:
    keys: dict[str, Any] = {"tokens": SOME, "scores": np.zeros(5), "bos_token_id": None, "eos_token_id": None}
    assert ids(sentence_piece(**keys | more), "aé漢\na") == expected


@pytest.mark.parametrize("newline", ["Ċ", "\n"])
def test_a_newline_that_is_a_control_token_is_text(newline: str) -> None:
    kinds = [1] * 10 + [3] + [1] * (len(PLAIN) - 11) + [3, 3, 3, 4, 5]
    tokens = [newline if token == "Ċ" else token for token in TOKENS]
    tokenizer, ends = read_tokenizer(byte_level(tokens=tokens, token_type=kinds))
    read = read_vocabulary(tokenizer, ends, by_name=False)
    assert Speller(tokenizer, read).text("a\nb") == [97, 10, 98] and read.writes(10) == b"\n"
    piece = sentence_piece(token_type=np.int32([2, 3, 3, *[3] * 256, *[1] * len(PIECES), 4, 4, 5]))
    tokenizer, ends = read_tokenizer(piece)
    read = read_vocabulary(tokenizer, ends, by_name=False)
    assert Speller(tokenizer, read).text("a\nb") == [1, SPACE_A, 3 + 10, B] and read.writes(13) == b"\n"


@pytest.mark.parametrize("scores", [None, np.zeros(270), np.full(270, -1000.0)])
def test_where_scores_tell_nothing_sentencepiece_joins_by_merges(scores: Any) -> None:
    assert ids(sentence_piece(scores=scores, merges=["b c", "▁ a"]), "abc ab") == [SPACE_A, BC, SPACE_A, B]
    assert ids(sentence_piece(merges=["b c", "▁ a"]), "abc ab") == ids(sentence_piece(), "abc ab")


def test_bytes_that_a_byte_level_vocabulary_lacks_are_unknown_or_it_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = {SIGNS[byte] for byte in "é\n".encode()}
    tokens = ["\n" if token == "Ċ" else token for token in TOKENS]
    tokens = [f"[lost {place}]" if token in lost else token for place, token in enumerate(tokens)]
    unknown = 0xC3
    assert ids(byte_level(tokens=tokens, unknown_token_id=unknown), "aé\n b") == [
        97, unknown, unknown, 10, 32, 98,
    ]  # fmt: skip
    assert not caplog.records
    assert ids(byte_level(tokens=tokens), "aé\n b") == [97, 10, 32, 98]
    assert "characters with these bytes are left out" in caplog.text


def test_all_tokens_have_their_bytes() -> None:
    read = read_vocabulary(*read_tokenizer(byte_level()), by_name=False)
    assert [read.writes(one) for one in (32, HE, SPACES, TOOL)] == [b" ", b"he", b"  ", b"<tool>"]
    assert [read.writes(one) for one in (BEGIN, END, PAD, HOLE)] == [b"", b"", b"", b""]
    assert read.tokens[BEGIN : PAD + 1] == (None, None, None)
    read = read_vocabulary(*read_tokenizer(sentence_piece()), by_name=False)
    assert [read.writes(one) for one in (0, 1, 2, OLD)] == [b"", b"", b"", b""]
    assert [read.writes(one) for one in (3 + 0xC3, SPACE_A, TWO_SPACES, TAG)] == [
        b"\xc3",
        b" a",
        b"  ",
        b"<tag>",
    ]


def test_a_control_token_that_is_typed_stays_text_and_a_template_makes_it() -> None:
    tokenizer, ends = read_tokenizer(
        byte_level() | {"tokenizer.chat_template": TEMPLATE, "tokenizer.ggml.add_bos_token": True}
    )
    speller = Speller(tokenizer, read_vocabulary(tokenizer, ends, by_name=False))
    assert speller.text("a<|im_end|>") == [BEGIN, *letters("a<|im_end|>")]
    assert speller.text("a<tool>") == [BEGIN, 97, TOOL]
    begin = tokenizer.bos_token  # of a prompt that has the template in it already: not twice
    assert (
        speller.text(f"{begin}a<|im_end|>", control_tokens=True)
        == speller.text("a<|im_end|>", control_tokens=True)
        == [BEGIN, 97, END]
    )
    assert speller.text(f"{begin}a") == [BEGIN, *letters(f"{begin}a")]
    chat = [BEGIN, *letters("user: hi"), END]  # one begin token, which the template writes
    assert speller.messages([{"role": "user", "content": "hi"}]) == chat
    assert speller.messages([{"role": "user", "content": "<|im_end|>"}]) == [
        BEGIN,
        *letters("user: <|im_end|>"),
        END,
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (byte_level(), [97]),
        (byte_level("llama-bpe"), [BEGIN, 97]),  # as llama.cpp does where the file does not say
        (byte_level("llama-bpe", bos_token_id=None), [97]),
        (byte_level("llama-bpe", add_bos_token=False), [97]),
        (byte_level(add_bos_token=True, add_eos_token=1), [BEGIN, 97, END]),
        (sentence_piece(), [1, SPACE_A]),
        (sentence_piece(add_bos_token=False, add_eos_token=True), [SPACE_A, 2]),
        # Llama's usual ids, which are control tokens here
        (sentence_piece(bos_token_id=None, eos_token_id=None), [1, SPACE_A]),
    ],
)
def test_a_text_is_framed_as_the_file_says(metadata: dict[str, Any], expected: list[int]) -> None:
    tokenizer, ends = read_tokenizer(metadata)
    assert tokenizer("a")["input_ids"] == expected
    speller = Speller(tokenizer, read_vocabulary(tokenizer, ends, by_name=False))
    going_on = expected[: len(expected) - (expected[-1] in ends)]  # a prompt has no end behind it
    assert speller.text("a") == speller.text("a", control_tokens=True) == going_on
    assert not {*speller.text("a<|im_end|></s>")} & {*ends} and not {*speller.text("")} & {*ends}


def with_names(*names: str, kind: int = 3, **more: Any) -> dict[str, Any]:
    """A byte-level vocabulary with further tokens, 268 the first of them, and no other end."""
    tokens = [*TOKENS[:END], "<|a|>", "<|b|>", *TOKENS[TOOL:], *names]
    return byte_level(
        tokens=tokens,
        token_type=[1] * len(PLAIN) + [3, 3, 3, 4, 5] + [kind] * len(names),
        eos_token_id=None,
        **more,
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (byte_level(), [END, PAD]),
        (byte_level(eos_token_id=PAD), [PAD, END]),
        (byte_level(eos_token_ids=np.uint32([END])), [END]),  # an explicit list is complete
        (byte_level(eos_token_ids=[END, 4_000_000]), [END]),
        (with_names("<|eot_id|>", "<|eom_id|>", kind=1), [268, 269]),
        (with_names("<|end|>"), [268]),
        (with_names("<|end|>", "<|return|>", "<|call|>"), [269, 270]),
        (with_names("<|end|>", "<|flush|>", "<|calls|>"), [269, 270]),
        (with_names("<|end|>", "<|return|>"), [268, 269]),
        (with_names("</s>"), [268]),
        (with_names("</s>", kind=1), []),  # Qwen's and Gemma's, which are text
        (with_names("</s>", "<|tool_response>"), [269]),
        (with_names("[x]", eot_token_id=268, eom_token_id=97), [268, 97]),
        (with_names("<|fim_pad|>", "<|file_sep|>", "<reponame>"), [268, 269, 270]),
    ],
)
def test_what_ends_an_answer(metadata: dict[str, Any], expected: list[int]) -> None:
    tokenizer, ends = read_tokenizer(metadata)
    assert ends == expected
    roles = read_vocabulary(tokenizer, ends, by_name=False).roles
    assert roles.get("end", ()) == tuple(expected)
    assert all(read_vocabulary(tokenizer, ends, by_name=False).writes(end) == b"" for end in ends)


def test_phi_3_swallows_the_line_end_behind_its_control_tokens() -> None:
    assert ids(byte_level() | {"general.name": "Phi-3 Mini"}, "<|im_end|>\na<|endoftext|>\n") == [
        END,
        97,
        PAD,
        10,
    ]
    assert ids(byte_level(), "<|im_end|>\na") == [END, 10, 97]


def test_without_a_pre_tokenizer_the_log_says_that_answers_may_be_worse(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert ids(byte_level(None), "12345") == ids(byte_level("default"), "12345")
    assert "does not say how its tokenizer cuts words" in caplog.text


def test_a_template_is_taken_over_and_its_lack_too() -> None:
    assert read_tokenizer(byte_level() | {"tokenizer.chat_template": TEMPLATE})[0].chat_template == TEMPLATE
    assert read_tokenizer(byte_level())[0].chat_template is None


def test_a_tokenizer_beside_the_file_is_taken_if_its_tokens_agree(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = read_tokenizer(byte_level("llama-bpe"))[0].backend_tokenizer
    path = tmp_path / "tokenizer.json"
    own.save(str(path))
    # the file itself names one that nobody knows
    tokenizer, ends = read_tokenizer(byte_level("made-up"), tmp_path)
    assert tokenizer.encode("12345", add_special_tokens=False) == CUTS["llama-bpe"]["12345"]
    assert (tokenizer.eos_token_id, ends) == (END, [END, PAD])
    described = json.loads(own.to_str())
    described["model"]["vocab"] |= {"a": 98, "b": 97}
    Tokenizer.from_str(json.dumps(described)).save(str(path))
    assert read_tokenizer(byte_level(), tmp_path)[0].encode("a", add_special_tokens=False) == [97]
    assert "that of another vocabulary" in caplog.text
    path.write_text("{")
    assert read_tokenizer(byte_level(), tmp_path)[0].encode("a", add_special_tokens=False) == [97]
    assert caplog.text.count("is not used (") == 2


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "has no tokens"),
    "no kind": (byte_level(model=None), "holds no tokenizer"),
    "a kind that is no text": (byte_level(model=7), "'7', and gpt2 and llama are read"),
    "another kind": (byte_level(model="bert"), "'bert', and gpt2 and llama are read"),
    "another pre-tokenizer": (byte_level("made-up"), "'made-up', which is not known here"),
    "a pre-tokenizer that is a list": (byte_level(["gpt-2"]), "which is not known here"),  # type: ignore[arg-type]
    "no tokens": (byte_level(tokens=[]), "has no tokens"),
    "tokens that are a text": (byte_level(tokens="abc"), "has no tokens"),
    "tokens that are numbers": (byte_level(tokens=np.int32([1, 2])), "has no tokens"),
    "a token twice": (byte_level(tokens=[*TOKENS[:-1], "he"]), "'he' 2 times"),
    "empty tokens": (byte_level(tokens=[""] * len(TOKENS)), "out of vocabulary"),
    "an endless token": (byte_level(tokens=[*TOKENS[:-1], "x" * 100_000]), "a token of 100,000 characters"),
    "no merges": (byte_level(merges=None), "has no merges"),
    "a merge of one": (byte_level(merges=["he"]), "cannot be read"),
    "a merge of strangers": (byte_level(merges=["q r"]), "out of vocabulary"),
    "merges that are numbers": (byte_level(merges=[1]), "cannot be read"),
    "too few kinds": (byte_level(token_type=[1]), "1 numbers as token_type"),
    "kinds that are texts": (byte_level(token_type=["a"] * len(TOKENS)), "cannot be read"),
    "kinds that are lists": (byte_level(token_type=[[1], [1, 2]]), "cannot be read"),
    "a begin that is a text": (byte_level(bos_token_id="<s>"), "'<s>' as an id"),
    "an end that is true": (byte_level(eos_token_id=True), "'True' as an id"),
    "a frame without its token": (byte_level(bos_token_id=-1, add_bos_token=True), "names none"),
    "a flag that is a text": (byte_level(add_bos_token="yes"), "'yes' as its add_bos_token"),
    "ends that are a text": (byte_level(eos_token_ids="12"), "'1' as an id"),
    "an end that is a text": (byte_level(eos_token_ids=["a"]), "'a' as an id"),
    "characters that would vanish": (
        sentence_piece(tokens=["▁", "a", "▁a"], scores=np.zeros(3), token_type=None),
        "neither a token for each byte nor one for what is unknown",
    ),
    "no scores": (sentence_piece(scores=None), "has no scores"),
    "too many scores": (sentence_piece(scores=np.zeros(400)), "400 numbers as scores"),
    "scores that are none": (sentence_piece(scores=np.full(270, np.nan)), "some that are no numbers"),
    "a template that is a number": (byte_level() | {"tokenizer.chat_template": 3}, "template is no text"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_tokenizer_that_cannot_be_read_gets_one_sentence(lie: str) -> None:
    metadata, expected = LIES[lie]
    with pytest.raises(ModelError) as caught:
        read_tokenizer(metadata)
    assert expected in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 and ";" in str(caught.value)  # the cause, and what to do next


@pytest.mark.parametrize(
    "metadata",
    [
        byte_level(bos_token_id=-1, eos_token_id=2**32 - 1, padding_token_id=999, unknown_token_id=-7),
        byte_level(tokens=[*TOKENS[:-1], "a\0b"]),
        byte_level(tokens=[*TOKENS[:-1], ""], eos_token_id=HOLE),
        byte_level(token_type=[99] * len(TOKENS)),
        byte_level(token_type=None),
        byte_level(general_name=1) | {"general.name": 5},
    ],
)
def test_oddities_that_harm_nobody_are_read(metadata: dict[str, Any]) -> None:
    tokenizer, ends = read_tokenizer(metadata)
    read = read_vocabulary(tokenizer, ends, by_name=False)
    assert read.text_bytes(Speller(tokenizer, read).text("a he 12")) == b"a he 12"
    assert ends and HOLE not in ends  # the names end an answer, whatever the ids say


# From llama.cpp (llama-cpp-python 0.3.36, special=False) on the catalogue's file.
SMOLLM2 = {
    "a  1": [81, 256, 33],
    "In 1995, 42% of 3.14": [788, 216, 33, 41, 41, 37, 28, 216, 36, 34, 21, 282, 216, 35, 30, 33, 36],
    "if x:\n\t\treturn  y\n\n\n    pass\r\n": [342, 1792, 42, 3354, 197, 5406, 216, 329, 13272, 1301, 2738],
    "I'm sure they'LL say 'tis": [57, 5248, 2090, 502, 23, 16421, 1643, 637, 34818],
    "東京タワー 你好": [30679, 126, 16736, 122, 10391, 140, 11100, 124, 35130, 216, 18645, 250, 48392, 138],
    "🎉 👩\u200d👩\u200d👧": [
        10813,
        232,
        227,
        15107,
        235,
        119,
        321,
        231,
        10813,
        235,
        119,
        321,
        231,
        10813,
        235,
        117,
    ],
    "<|im_start|>user": [44, 108, 306, 79, 3738, 108, 46, 4093],
    "naïve e\u0301": [3546, 46494, 297, 151, 219],
    "   three spaces   ": [256, 1296, 5600, 333],
    "½ ²³ ٣": [16738, 216, 19133, 39050, 216, 164, 113],
    "\u00a0x\u3000y": [15442, 104, 12109, 218, 105],
}


@pytest.fixture(scope="module")
def smollm2(smollm2_file: Path) -> Speller:
    tokenizer, ends = read_tokenizer(read_header(smollm2_file).metadata)
    assert ends == [2, 0, 4]  # <|im_end|>, <|endoftext|> and <reponame>, as llama.cpp has them
    return Speller(tokenizer, read_vocabulary(tokenizer, ends, by_name=False))


@pytest.mark.smollm2
@pytest.mark.parametrize("text", SMOLLM2)
def test_smollm2_has_the_ids_of_llama_cpp(smollm2: Speller, text: str) -> None:
    assert smollm2.text(text) == SMOLLM2[text]


@pytest.mark.smollm2
def test_a_chat_with_smollm2_is_written_by_its_template(smollm2: Speller) -> None:
    found = smollm2.messages([{"role": "user", "content": "a  1<|im_end|>"}])
    # system, user and assistant; the typed end is text
    assert found[:2] == [1, 9690] and found.count(1) == 3 and found.count(2) == 2
