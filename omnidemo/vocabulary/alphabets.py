"""How families of tokenizers write bytes: byte-level BPE, SentencePiece and WordPiece."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def byte_alphabet() -> dict[str, int]:
    """The GPT-2 byte table: printable character → the byte that it stands for in a byte-level vocabulary."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    table = {chr(byte): byte for byte in printable}
    for offset, byte in enumerate(byte for byte in range(256) if byte not in printable):
        table[chr(256 + offset)] = byte
    return table


class Alphabet(NamedTuple):
    """How a family writes bytes: tokens (and added tokens) → bytes, and bytes → the text for its model."""

    read: Callable[[str], bytes | None]
    read_added: Callable[[str], bytes | None]
    write: Callable[[bytes], str | None]


def alphabet_of(backend: Any) -> Alphabet:
    """The alphabet of a `tokenizers.Tokenizer`. ValueError for an unknown family."""
    kind = type(backend.model).__name__
    stages = (backend.normalizer, backend.pre_tokenizer, backend.decoder)
    parts = b"".join(stage.__getstate__() for stage in stages if stage is not None).decode()
    if kind == "BPE" and (backend.model.end_of_word_suffix or backend.model.continuing_subword_prefix):
        kind = "BPE with word marks"  # they are no part of the text; only old encoders have them
    elif '"ByteLevel"' in parts:
        return _byte_level()
    elif kind == "WordPiece":
        mark = backend.model.continuing_subword_prefix
        # no spelling by the model: WordPiece itself takes the longest match from the left
        return Alphabet(
            lambda s: s[len(mark) :].encode() if s.startswith(mark) else b" " + s.encode(),
            str.encode,
            lambda data: None,
        )
    elif "▁" in parts or backend.token_to_id("▁") is not None:
        return _sentence_piece()
    raise ValueError(
        f"the tokenizer's model {kind!r} writes text in a way that is not known as bytes; "
        "known are byte-level BPE, SentencePiece (▁) and WordPiece"
    )


def _byte_level() -> Alphabet:
    signs = byte_alphabet()
    to_byte = dict.fromkeys(range(256), 0xFFFF) | {ord(sign): byte for sign, byte in signs.items()}
    to_sign = {byte: sign for sign, byte in signs.items()}

    def read(token: str) -> bytes | None:
        try:
            return token.translate(to_byte).encode("latin-1")
        except UnicodeEncodeError:  # a sign that is not in the table
            return None

    return Alphabet(read, str.encode, lambda data: data.decode("latin-1").translate(to_sign))


def _sentence_piece() -> Alphabet:
    def read(token: str) -> bytes:
        match = BYTE_TOKEN.fullmatch(token)
        return bytes([int(match[1], 16)]) if match else token.replace("▁", " ").encode()

    def write(data: bytes) -> str | None:
        try:
            return data.decode().replace(" ", "▁")
        except UnicodeDecodeError:
            return None

    return Alphabet(read, read, write)  # Gemma lists runs of ▁ as added tokens
