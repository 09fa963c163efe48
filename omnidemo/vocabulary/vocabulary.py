"""One tokenizer's vocabulary as bytes (`vocabulary_map.py` has the map between two). Opens no files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from omnidemo.vocabulary.alphabets import alphabet_of

# Names of the special tokens of a role. The tokenizer's own bos/eos/pad/unk come first; for "unknown" the
# model's own id.
ROLE_NAMES: Mapping[str, tuple[str, ...]] = {
    "begin": ("<|begin|>", "<s>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": (
        "<|end|>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|eot|>", "</s>", "<eos>", "<|endoftext|>",
        "<|end_of_text|>",
    ),
    "pad": ("<|pad|>", "<pad>", "<|finetune_right_pad_id|>", "[PAD]"),
    "unknown": ("<unk>", "<|unk|>", "[UNK]"),
    "user": ("<|user|>",),
    "assistant": ("<|assistant|>",),
    "system": ("<|system|>",),
}  # fmt: skip


@dataclass(frozen=True)
class Vocabulary:
    """One tokenizer's vocabulary. `tokens[i]` are the bytes that id i writes in the middle of a text, None
    for specials and holes.

    `roles` maps a role to its ids, the tokenizer's own first. `pieces(bytes)` gives the tokenizer's spelling
    of a few bytes as a continuation (no prefix space, no BOS), or None; `encode_text(text)` the tokenizer's
    ids of a whole text.
    """

    tokens: tuple[bytes | None, ...]
    roles: Mapping[str, tuple[int, ...]]
    pieces: Callable[[bytes], list[int] | None] = field(repr=False, compare=False)
    encode_text: Callable[[str], list[int]] | None = field(default=None, repr=False, compare=False)
    # ids of control tokens by their names
    control: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def within(self, rows: int) -> Vocabulary:
        """The vocabulary without ids beyond a model's logit rows, which it can neither read nor write."""
        roles = {
            role: kept
            for role, ids in self.roles.items()
            if (kept := tuple(one for one in ids if one < rows))
        }
        control = {name: one for name, one in self.control.items() if one < rows}
        return replace(self, tokens=self.tokens[:rows], roles=roles, control=control)

    @cached_property
    def by_bytes(self) -> Mapping[bytes, int]:
        """bytes → the id that the tokenizer itself emits for them (one id for each string of bytes)."""
        table: dict[bytes, int] = {}
        for token_id, token in enumerate(self.tokens):
            # the tokenizer is asked about duplicates only: asking about every token would take seconds
            if token and (table.setdefault(token, token_id) == token_id or self.pieces(token) == [token_id]):
                table[token] = token_id
        return table

    @cached_property
    def longest_token(self) -> int:
        return max((len(token) for token in self.tokens if token), default=1)

    def spell(self, data: bytes) -> tuple[int, ...] | None:
        """Ids whose joined bytes are `data`: the tokenizer's own spelling, else the longest tokens from the
        left whose rest can be spelled; None for none."""
        own = self.pieces(data)
        if own is not None and self.text_bytes(own) == data:
            return tuple(own)
        # start → end of the longest token there after which the rest can be spelled
        stops: dict[int, int] = {}
        for start in reversed(range(len(data))):
            for stop in range(min(len(data), start + self.longest_token), start, -1):
                if (stop == len(data) or stop in stops) and data[start:stop] in self.by_bytes:
                    stops[start] = stop
                    break
        ids: list[int] = []
        start = 0
        while start < len(data):
            if start not in stops:
                return None
            ids.append(self.by_bytes[data[start : stops[start]]])
            start = stops[start]
        return tuple(ids)

    def encode(self, data: bytes) -> tuple[int, ...] | None:
        """The tokenizer's ids of a whole text, without the prefix space that it may add; None where they are
        not byte for byte the same text (half characters, lower-casing, a written special token)."""
        if self.encode_text is None:
            return None
        try:
            ids = self.encode_text(data.decode())
        except UnicodeDecodeError:
            return None
        written = self.text_bytes(ids)
        if ids and written == b" " + data:
            first = self.spell(self.writes(ids[0])[1:])
            if first is not None:
                return (*first, *ids[1:])
        return tuple(ids) if written == data else None

    def writes(self, token_id: int) -> bytes:
        """The bytes of one id; empty for special tokens and for ids beyond the tokenizer (padded logits)."""
        return (self.tokens[token_id] or b"") if token_id < len(self.tokens) else b""

    @cached_property
    def shown(self) -> Mapping[int, str]:
        """The text of each id for people; incomplete characters as �."""
        return TokenTexts(self)

    def text_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self.writes, ids))


class TokenTexts(dict[int, str]):
    """Texts of ids, made at first use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __missing__(self, token_id: int) -> str:
        text = self[token_id] = self.vocabulary.writes(token_id).decode("utf-8", "replace")
        return text


def read_vocabulary(tokenizer: Any, extra_end_ids: Sequence[int] = (), *, by_name: bool = True) -> Vocabulary:
    """The vocabulary of a fast `transformers` tokenizer. ValueError where its model cannot be read as bytes.

    by_name: names of tokens also make begin and end tokens; otherwise only the tokenizer's own and
    `extra_end_ids` do.

    Bytes are read from the token itself, not from `decode` of one id, which drops spaces and breaks
    characters.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(
            f"{type(tokenizer).__name__} has no fast tokenizer (tokenizer.json); save one with `tokenizers`"
            " first"
        )
    # settings of a training that some were saved with: its lengths, other ids for the same text, and control
    # tokens in pieces
    backend.no_truncation()
    backend.no_padding()
    tokenizer.split_special_tokens = backend.encode_special_tokens = False
    if getattr(backend.model, "dropout", None):
        backend.model.dropout = None
    alphabet, model, added = alphabet_of(backend), backend.model, backend.get_added_tokens_decoder()
    strings = backend.get_vocab()
    tokens: list[bytes | None] = [None] * (max(strings.values(), default=-1) + 1)
    for string, token_id in strings.items():
        tokens[token_id] = alphabet.read_added(string) if token_id in added else alphabet.read(string)
    roles = _roles(tokenizer, extra_end_ids, _unknown_id(model), by_name)
    special = {token_id for token_id, entry in added.items() if entry.special} | set(
        tokenizer.all_special_ids
    )
    # Some vocabularies do not flag end or turn tokens as special (Phi-3's </s>); a role is enough.
    special |= {token_id for ids in roles.values() for token_id in ids if token_id in added} | set(
        roles.get("unknown", ())
    )
    for token_id in special.intersection(range(len(tokens))):
        tokens[token_id] = None
    # added tokens are found before the model sees the text
    found_first = {tokens[token_id]: token_id for token_id in added if token_id not in special}

    def pieces(data: bytes) -> list[int] | None:
        if data in found_first:
            return [found_first[data]]
        text = alphabet.write(data)
        if text is None:
            return None
        ids = [piece.id for piece in model.tokenize(text)]
        return None if special.intersection(ids) else ids

    def encode_text(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    control = {entry.content: token_id for token_id, entry in added.items() if tokens[token_id] is None}
    return Vocabulary(tuple(tokens), roles, pieces, encode_text, control)


def _unknown_id(model: Any) -> int | None:
    """The model's own id for what it cannot spell; not every tokenizer lists it among its special tokens."""
    if type(model).__name__ == "Unigram":  # has no attribute for it
        match = re.search(rb'"unk_id":(\d+)', model.__getstate__()[:200])
        return int(match[1]) if match else None
    return model.token_to_id(model.unk_token) if getattr(model, "unk_token", None) else None


def _roles(
    tokenizer: Any, extra_end_ids: Sequence[int], unknown_id: int | None, by_name: bool
) -> dict[str, tuple[int, ...]]:
    own = {
        "begin": tokenizer.bos_token_id,
        "end": tokenizer.eos_token_id,
        "pad": tokenizer.pad_token_id,
        "unknown": unknown_id,
    }
    if own["unknown"] is None:
        own["unknown"] = tokenizer.unk_token_id
    special = set(tokenizer.all_special_tokens) | {str(t) for t in tokenizer.get_added_vocab()}
    roles: dict[str, tuple[int, ...]] = {}
    for role, names in ROLE_NAMES.items():
        ids = [own[role]] if own.get(role) is not None else []
        if role == "end":
            ids += [int(i) for i in extra_end_ids if i >= 0]  # -1 says "none" in some configurations
        if by_name or role not in ("begin", "end"):
            named = [name for name in names if name in special]
            # gpt-oss, whose <|end|> ends a message and not the answer
            if {"<|return|>", "<|call|>"} <= special:
                named = [name for name in named if name != "<|end|>"]
            ids += [tokenizer.convert_tokens_to_ids(name) for name in named]
        if role == "unknown":  # GPT-2 names its end of text as its unknown token too
            ids = [i for i in ids if i not in roles.get("end", ())]
        if ids:
            roles[role] = tuple(dict.fromkeys(ids))
    return roles
