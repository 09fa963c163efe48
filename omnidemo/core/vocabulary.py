"""Vocabularies as bytes, and the map between two of them. Pure: works on what `read_vocabulary` was given, opens no files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

# Names under which models know the special tokens of a role. The tokenizer's own bos/eos/pad/unk come first.
ROLE_NAMES: Mapping[str, tuple[str, ...]] = {
    "begin": ("<|begin|>", "<s>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": ("<|end|>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|eot|>", "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "pad": ("<|pad|>", "<pad>", "<|finetune_right_pad_id|>", "[PAD]"),
    "unknown": ("<unk>", "<|unk|>", "[UNK]"),
    "user": ("<|user|>",),
    "assistant": ("<|assistant|>",),
    "system": ("<|system|>",),
}


def byte_alphabet() -> dict[str, int]:
    """The GPT-2 byte table: the printable character that stands for each byte in a byte-level vocabulary → the byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {chr(byte): byte for byte in printable}
    for offset, byte in enumerate(byte for byte in range(256) if byte not in printable):
        table[chr(256 + offset)] = byte
    return table


@dataclass(frozen=True)
class Vocabulary:
    """One tokenizer's vocabulary. `tokens[i]` are the bytes that id i writes in the middle of a text, None for specials and holes.

    `roles` maps a role to its ids, the id the tokenizer itself uses first; `end_ids` are all ids that end an answer.
    `pieces(bytes)` gives the tokenizer's own spelling of a few bytes as a continuation (no prefix space, no BOS), or None if
    it cannot; `encode_text(text)` the tokenizer's own ids of a whole text.
    """

    tokens: tuple[bytes | None, ...]
    roles: Mapping[str, tuple[int, ...]]
    pieces: Callable[[bytes], list[int] | None] = field(repr=False, compare=False)
    encode_text: Callable[[str], list[int]] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def by_bytes(self) -> Mapping[bytes, int]:
        """bytes → the id the tokenizer itself emits for them (one id for each string of bytes)."""
        table: dict[bytes, int] = {}
        for token_id, token in enumerate(self.tokens):
            if not token:
                continue
            if token not in table or self.pieces(token) == [token_id]:
                table[token] = token_id
        return table

    @cached_property
    def role_of(self) -> Mapping[int, str]:
        return {token_id: role for role, ids in reversed(list(self.roles.items())) for token_id in ids}

    @cached_property
    def longest_token(self) -> int:
        return max((len(token) for token in self.tokens if token), default=1)

    def spell(self, data: bytes) -> tuple[int, ...] | None:
        """Ids whose bytes, joined, are `data`: the tokenizer's own spelling, else the longest match from the left, else None."""
        own = self.pieces(data)
        if own is not None and b"".join(self.tokens[i] or b"" for i in own) == data:
            return tuple(own)
        ids: list[int] = []
        start = 0
        while start < len(data):
            for stop in range(min(len(data), start + self.longest_token), start, -1):
                token_id = self.by_bytes.get(data[start:stop])
                if token_id is not None:
                    ids.append(token_id)
                    start = stop
                    break
            else:
                return None
        return tuple(ids)

    def encode(self, data: bytes) -> tuple[int, ...] | None:
        """Ids of a whole text as the tokenizer itself spells it, or None where that is not byte for byte the same text
        (half characters, an added prefix space, lower-casing, a special token written out)."""
        if self.encode_text is None:
            return None
        try:
            ids = self.encode_text(data.decode())
        except UnicodeDecodeError:
            return None
        return tuple(ids) if self.text_bytes(ids) == data else None

    def writes(self, token_id: int) -> bytes:
        """The bytes of one id; empty for special tokens and for ids past the tokenizer (padded logits)."""
        return (self.tokens[token_id] or b"") if token_id < len(self.tokens) else b""

    def text_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self.writes, ids))


def read_vocabulary(tokenizer: Any, extra_end_ids: Sequence[int] = ()) -> Vocabulary:
    """The vocabulary of a fast `transformers` tokenizer. ValueError when its model cannot be read as bytes.

    Bytes are read from the token itself, never from `decode` of one id, which drops spaces and breaks characters.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(f"{type(tokenizer).__name__} has no fast tokenizer (tokenizer.json); save one with `tokenizers` first")
    description = json.loads(backend.to_str())
    to_bytes, to_alphabet = _alphabets(description)
    added = {entry["id"]: entry for entry in description["added_tokens"]}
    size = max([*tokenizer.get_vocab().values(), -1]) + 1
    tokens: list[bytes | None] = [None] * size
    for text, token_id in tokenizer.get_vocab().items():
        if token_id in added:
            tokens[token_id] = None if added[token_id]["special"] else text.encode()
        else:
            tokens[token_id] = to_bytes(text)
    special_ids = {entry["id"] for entry in added.values() if entry["special"]} | set(tokenizer.all_special_ids)
    for token_id in special_ids:
        if token_id < size:
            tokens[token_id] = None
    model = backend.model

    def pieces(data: bytes) -> list[int] | None:
        text = to_alphabet(data)
        if text is None:
            return None
        ids = [piece.id for piece in model.tokenize(text)]
        return None if special_ids.intersection(ids) else ids

    def encode_text(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    return Vocabulary(tuple(tokens), _roles(tokenizer, extra_end_ids), pieces, encode_text)


def _alphabets(description: dict[str, Any]) -> tuple[Callable[[str], bytes | None], Callable[[bytes], str | None]]:
    """Token → bytes, and bytes → the text that the tokenizer's model works on, for the family that `description` belongs to."""
    parts = json.dumps([description.get("pre_tokenizer"), description.get("decoder"), description.get("normalizer")])
    if '"ByteLevel"' in parts:
        table = byte_alphabet()
        signs = {byte: sign for sign, byte in table.items()}

        def byte_level(token: str) -> bytes | None:
            values = [table.get(sign) for sign in token]
            return None if None in values else bytes(v for v in values if v is not None)

        return byte_level, lambda data: "".join(signs[byte] for byte in data)
    if description["model"]["type"] == "WordPiece":
        prefix = description["model"].get("continuing_subword_prefix", "##")

        def word_piece(token: str) -> bytes | None:
            return token[len(prefix) :].encode() if token.startswith(prefix) else b" " + token.encode()

        return word_piece, lambda data: None  # the longest-match spelling serves: WordPiece itself matches greedily
    if "▁" in description["model"].get("vocab", {}) or "▁" in parts or "Metaspace" in parts:
        byte_token = re.compile(r"<0x([0-9A-F]{2})>")

        def sentence_piece(token: str) -> bytes | None:
            match = byte_token.fullmatch(token)
            return bytes([int(match[1], 16)]) if match else token.replace("▁", " ").encode()

        def alphabet(data: bytes) -> str | None:
            try:
                return data.decode().replace(" ", "▁")
            except UnicodeDecodeError:
                return None

        return sentence_piece, alphabet
    raise ValueError(
        f"the tokenizer's model {description['model']['type']!r} writes text in a way that is not known as bytes; "
        "known are byte-level BPE, SentencePiece (▁) and WordPiece"
    )


def _roles(tokenizer: Any, extra_end_ids: Sequence[int]) -> dict[str, tuple[int, ...]]:
    own = {"begin": tokenizer.bos_token_id, "end": tokenizer.eos_token_id, "pad": tokenizer.pad_token_id, "unknown": tokenizer.unk_token_id}
    special = set(tokenizer.all_special_tokens) | {str(t) for t in tokenizer.get_added_vocab()}
    roles: dict[str, tuple[int, ...]] = {}
    for role, names in ROLE_NAMES.items():
        ids = [own[role]] if own.get(role) is not None else []
        if role == "end":
            ids += [int(i) for i in extra_end_ids]
        ids += [tokenizer.convert_tokens_to_ids(name) for name in names if name in special]
        if ids:
            roles[role] = tuple(dict.fromkeys(ids))
    return roles


class VocabularyMap:
    """The map between a target's and a drafter's vocabulary.

    to_drafter [|T|], to_target [|D|]: the directly mapped id or −1, a bijection between the mapped ids of both sides.
    draftable [|D|]: drafter ids that may be proposed directly (text, and the end of a turn; never begin, pad or a role).
    Sizes are those of the models' logit rows; ids past a tokenizer have no bytes and no map.
    """

    def __init__(
        self, target: Vocabulary, drafter: Vocabulary, target_rows: int, drafter_rows: int, device: torch.device | str = "cpu"
    ) -> None:
        self.target, self.drafter = target, drafter
        to_drafter = torch.full((target_rows,), -1, dtype=torch.int64)
        to_target = torch.full((drafter_rows,), -1, dtype=torch.int64)
        draftable = torch.zeros(drafter_rows, dtype=torch.bool)
        pairs = [(target.by_bytes[data], drafter_id, True) for data, drafter_id in drafter.by_bytes.items() if data in target.by_bytes]
        for role, drafter_ids in drafter.roles.items():
            for target_id, drafter_id in zip(target.roles.get(role, ()), drafter_ids, strict=False):
                pairs.append((target_id, drafter_id, role == "end"))
        for target_id, drafter_id, may_propose in pairs:
            if target_id < target_rows and drafter_id < drafter_rows and to_drafter[target_id] < 0 and to_target[drafter_id] < 0:
                to_drafter[target_id] = drafter_id
                to_target[drafter_id] = target_id
                draftable[drafter_id] = may_propose
        if not bool(draftable.any()):
            raise ValueError("the two vocabularies share no token, not even a single byte; choose another drafter for this target")
        self.to_drafter, self.to_target, self.draftable = to_drafter.to(device), to_target.to(device), draftable.to(device)
        self.targets: list[int] = to_target.tolist()  # the same as plain ints, for lookups of single ids
        self._spellings: dict[int, tuple[int, ...] | None] = {}

    @cached_property
    def mapped_targets(self) -> Tensor:
        """Target ids [M] with a draftable direct map, ascending; `mapped_drafters` are their drafter ids."""
        mapped = (self.to_drafter >= 0).nonzero().squeeze(-1)
        return mapped[self.draftable[self.to_drafter[mapped]]]

    @cached_property
    def readable(self) -> Tensor:
        """[|D|] bool: drafter ids that may be drawn inside an n-gram: those that write bytes, and what may be proposed itself."""
        writes = torch.tensor([bool(token) for token in self.drafter.tokens][: len(self.to_target)])
        writes = torch.nn.functional.pad(writes, (0, len(self.to_target) - len(writes)))
        return writes.to(self.draftable.device) | self.draftable

    @cached_property
    def mapped_drafters(self) -> Tensor:
        return self.to_drafter[self.mapped_targets]

    def spelling(self, target_id: int) -> tuple[int, ...] | None:
        """How the drafter spells one target token: its direct map, else its bytes as a continuation; () for a special token
        that the drafter has no counterpart of, None for bytes that it cannot spell (they wait). Cached."""
        if target_id in self._spellings:
            return self._spellings[target_id]
        direct = int(self.to_drafter[target_id])
        spelled: tuple[int, ...] | None
        if direct >= 0:
            spelled = (direct,)
        else:
            data = self.target.writes(target_id)
            spelled = self.drafter.spell(data) if data else ()
        self._spellings[target_id] = spelled
        return spelled

    def ngram(self, target_id: int) -> tuple[int, ...] | None:
        """The n-gram (n ≥ 2) of a target token without a direct map, or None."""
        spelled = self.spelling(target_id)
        data = self.target.writes(target_id)
        if not spelled or len(spelled) < 2 or not data or self.target.by_bytes.get(data) != target_id:
            return None
        return spelled

    def summary(self) -> dict[str, int | float]:
        """Sizes of the map, and the share of the target's text tokens that only an n-gram can spell."""
        spelled = [i for i, data in enumerate(self.target.tokens) if data]
        direct = sum(1 for i in spelled if int(self.to_drafter[i]) >= 0)
        return {
            "target_tokens": len(self.target),
            "drafter_tokens": len(self.drafter),
            "mapped": len(self.mapped_targets),
            "ngram_share": 1 - direct / max(1, len(spelled)),
        }
