"""Vocabularies as bytes, and the map between two of them. Pure: works on what `read_vocabulary` was given, opens no files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.vocab.alphabets import alphabet_of

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


LONGEST = 8  # drafter tokens by which a target token is spelled, where compiled code is to know it


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
            # Only duplicates need the tokenizer's word: asking it for every token would take seconds.
            if token and (table.setdefault(token, token_id) == token_id or self.pieces(token) == [token_id]):
                table[token] = token_id
        return table

    @cached_property
    def digest(self) -> str:
        """sha256, in hex, of all that a map is made from: each id's bytes, the winners among equal bytes, and the roles."""
        lengths = np.array([-1 if token is None else len(token) for token in self.tokens], "<i8")
        winners = np.array(list(self.by_bytes.values()), "<i8")
        found = hashlib.sha256(repr((len(lengths), len(winners), list(self.roles.items()))).encode())
        for part in (lengths.tobytes(), winners.tobytes(), b"".join(filter(None, self.tokens))):
            found.update(part)
        return found.hexdigest()

    @cached_property
    def role_of(self) -> Mapping[int, str]:
        return {token_id: role for role, ids in reversed(list(self.roles.items())) for token_id in ids}

    @cached_property
    def longest_token(self) -> int:
        return max((len(token) for token in self.tokens if token), default=1)

    def spell(self, data: bytes) -> tuple[int, ...] | None:
        """Ids whose bytes, joined, are `data`: the tokenizer's own spelling, else the longest tokens from the left that leave
        a rest that can be spelled too; None where no ids spell it."""
        own = self.pieces(data)
        if own is not None and self.text_bytes(own) == data:
            return tuple(own)
        stops: dict[int, int] = {}  # start → end of the longest token there after which the rest can be spelled
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
        """Ids of a whole text as the tokenizer itself spells it, without the prefix space that it may add; None where that is
        not byte for byte the same text (half characters, lower-casing, a special token written out)."""
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
        """The bytes of one id; empty for special tokens and for ids past the tokenizer (padded logits)."""
        return (self.tokens[token_id] or b"") if token_id < len(self.tokens) else b""

    @cached_property
    def shown(self) -> Mapping[int, str]:
        """The bytes of each id for people: those that are no whole characters as �."""
        return _Shown(self)

    def text_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self.writes, ids))


class _Shown(dict[int, str]):
    """Texts of ids, made when they are first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __missing__(self, token_id: int) -> str:
        text = self[token_id] = self.vocabulary.writes(token_id).decode("utf-8", "replace")
        return text


def read_vocabulary(tokenizer: Any, extra_end_ids: Sequence[int] = ()) -> Vocabulary:
    """The vocabulary of a fast `transformers` tokenizer. ValueError when its model cannot be read as bytes.

    Bytes are read from the token itself, never from `decode` of one id, which drops spaces and breaks characters.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(f"{type(tokenizer).__name__} has no fast tokenizer (tokenizer.json); save one with `tokenizers` first")
    alphabet, model, added = alphabet_of(backend), backend.model, backend.get_added_tokens_decoder()
    strings = backend.get_vocab()
    tokens: list[bytes | None] = [None] * (max(strings.values(), default=-1) + 1)
    for string, token_id in strings.items():
        tokens[token_id] = alphabet.read_added(string) if token_id in added else alphabet.read(string)
    roles = _roles(tokenizer, extra_end_ids, _unknown_id(model))
    special = {token_id for token_id, entry in added.items() if entry.special} | set(tokenizer.all_special_ids)
    # Some vocabularies do not flag their end or turn tokens as special (Phi-3's </s>); their role is enough.
    special |= {token_id for ids in roles.values() for token_id in ids if token_id in added} | set(roles.get("unknown", ()))
    for token_id in special.intersection(range(len(tokens))):
        tokens[token_id] = None
    found_first = {tokens[token_id]: token_id for token_id in added if token_id not in special}  # before the model sees the text

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

    return Vocabulary(tuple(tokens), roles, pieces, encode_text)


def _unknown_id(model: Any) -> int | None:
    """The id that the model itself gives to what it cannot spell; not every tokenizer lists it among its special tokens."""
    if type(model).__name__ == "Unigram":  # has no attribute for it
        match = re.search(rb'"unk_id":(\d+)', model.__getstate__()[:200])
        return int(match[1]) if match else None
    return model.token_to_id(model.unk_token) if getattr(model, "unk_token", None) else None


def _roles(tokenizer: Any, extra_end_ids: Sequence[int], unknown_id: int | None) -> dict[str, tuple[int, ...]]:
    own = {"begin": tokenizer.bos_token_id, "end": tokenizer.eos_token_id, "pad": tokenizer.pad_token_id, "unknown": unknown_id}
    if own["unknown"] is None:
        own["unknown"] = tokenizer.unk_token_id
    special = set(tokenizer.all_special_tokens) | {str(t) for t in tokenizer.get_added_vocab()}
    roles: dict[str, tuple[int, ...]] = {}
    for role, names in ROLE_NAMES.items():
        ids = [own[role]] if own.get(role) is not None else []
        if role == "end":
            ids += [int(i) for i in extra_end_ids if i >= 0]  # -1 says "none" in some configurations
        ids += [tokenizer.convert_tokens_to_ids(name) for name in names if name in special]
        if role == "unknown":  # GPT-2 names its end of text as its unknown token too
            ids = [i for i in ids if i not in roles.get("end", ())]
        if ids:
            roles[role] = tuple(dict.fromkeys(ids))
    return roles


class VocabularyMap:
    """The map between a target's and a drafter's vocabulary.

    to_drafter [|T|], to_target [|D|]: the directly mapped id or −1, a bijection between the mapped ids of both sides;
    `drafters`, `targets` and `may_draft` are these and the next as lists.
    draftable [|D|]: drafter ids that may be proposed directly (text, and the end of a turn; never begin, pad or a role).
    Sizes are those of the models' logit rows; ids past a tokenizer have no bytes and no map.
    """

    def __init__(
        self, target: Vocabulary, drafter: Vocabulary, target_rows: int, drafter_rows: int, device: torch.device | str = "cpu"
    ) -> None:
        texts = [(target.by_bytes[data], drafter_id) for data, drafter_id in drafter.by_bytes.items() if data in target.by_bytes]
        texts = [(target_id, drafter_id) for target_id, drafter_id in texts if target_id < target_rows and drafter_id < drafter_rows]
        if not texts:
            raise ValueError("the two vocabularies share no token, not even a single byte; choose another drafter for this target")
        to_drafter = torch.full((target_rows,), -1, dtype=torch.int64)
        draftable = torch.zeros(drafter_rows, dtype=torch.bool)
        target_ids, drafter_ids = torch.tensor(texts).unbind(1)
        to_drafter[target_ids] = drafter_ids
        draftable[drafter_ids] = True
        taken = set(drafter_ids.tolist())
        # The end of a turn comes first: GPT-2 begins, ends and pads with one id, and only as an end it may be proposed.
        for role in sorted(drafter.roles, key=lambda role: role != "end"):
            for target_id, drafter_id in zip(target.roles.get(role, ()), drafter.roles[role], strict=False):
                if target_id < target_rows and drafter_id < drafter_rows and to_drafter[target_id] < 0 and drafter_id not in taken:
                    to_drafter[target_id] = drafter_id
                    draftable[drafter_id] = role == "end"
                    taken.add(drafter_id)
        self._take(target, drafter, to_drafter, draftable, device)

    @classmethod
    def restore(
        cls, target: Vocabulary, drafter: Vocabulary, to_drafter: Tensor, draftable: Tensor, device: torch.device | str = "cpu"
    ) -> VocabularyMap:
        """The map of which `to_drafter` [|T|] int64 and `draftable` [|D|] bool were kept; they must be those of a map."""
        restored = cls.__new__(cls)
        restored._take(target, drafter, to_drafter, draftable, device)
        return restored

    def _take(self, target: Vocabulary, drafter: Vocabulary, to_drafter: Tensor, draftable: Tensor, device: torch.device | str) -> None:
        self.target, self.drafter = target, drafter
        mapped = (to_drafter >= 0).nonzero().squeeze(-1)
        to_target = torch.full((len(draftable),), -1, dtype=torch.int64)
        to_target[to_drafter[mapped]] = mapped
        self.to_drafter, self.to_target, self.draftable = to_drafter.to(device), to_target.to(device), draftable.to(device)
        # The same as plain ints: looking one id up in a tensor is slow, and on a GPU waits for it.
        self.drafters: list[int] = to_drafter.tolist()
        self.targets: list[int] = to_target.tolist()
        self.may_draft: list[bool] = draftable.tolist()
        self._spellings: dict[int, tuple[int, ...] | None] = {}
        # The same for compiled code, [|T|, 1 + n] int32: by how many drafter tokens each is spelled, and by which; 0 where nobody asked
        # yet, −1 where n do not hold them.
        self.spelled = np.zeros((len(to_drafter), 1 + LONGEST), np.int32)
        self.spelled[:, 0], self.spelled[:, 1] = to_drafter.numpy() >= 0, to_drafter.numpy()

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
    def readable_bars(self) -> Tensor:
        """[|D|] float32: 0 where `readable`, −∞ elsewhere, to be added to logits."""
        return bars(self.readable)

    @cached_property
    def draftable_bars(self) -> Tensor:
        """[|D|] float32: 0 where `draftable`, −∞ elsewhere."""
        return bars(self.draftable)

    @cached_property
    def tables(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int32]]:
        """to_target, to_drafter, draftable and `spelled` on the host."""
        return self.to_target.cpu().numpy(), self.to_drafter.cpu().numpy(), self.draftable.cpu().numpy(), self.spelled

    @cached_property
    def mapped_drafters(self) -> Tensor:
        return self.to_drafter[self.mapped_targets]

    def spelling(self, target_id: int) -> tuple[int, ...] | None:
        """How the drafter spells one target token: its direct map, else its bytes as a continuation; () for a special token
        that the drafter has no counterpart of, None for bytes that it cannot spell (they wait). Cached."""
        if target_id in self._spellings:
            return self._spellings[target_id]
        direct = self.drafters[target_id]
        spelled: tuple[int, ...] | None
        if direct >= 0:
            spelled = (direct,)
        else:
            data = self.target.writes(target_id)
            spelled = self.drafter.spell(data) if data else ()
        self._spellings[target_id] = spelled
        if spelled:
            known = (len(spelled), *spelled) if len(spelled) <= LONGEST else (-1,)
            self.spelled[target_id, : len(known)] = known
        return spelled

    def ngram(self, target_id: int) -> tuple[int, ...] | None:
        """The n-gram (n ≥ 2) of a target token without a direct map, or None."""
        spelled = self.spelling(target_id)
        if not spelled or len(spelled) < 2:
            return None
        data = self.target.writes(target_id)
        return spelled if data and self.target.by_bytes.get(data) == target_id else None

    def summary(self) -> dict[str, int | float]:
        """Sizes of the map, and the share of the target's text tokens that only an n-gram can spell."""
        spelled = [i for i, data in enumerate(self.target.tokens) if data]
        direct = sum(1 for i in spelled if self.drafters[i] >= 0)
        return {
            "target_tokens": len(self.target),
            "drafter_tokens": len(self.drafter),
            "mapped": len(self.mapped_targets),
            "ngram_share": 1 - direct / max(1, len(spelled)),
        }


def bars(allowed: Tensor) -> Tensor:
    """What a mask [V] adds to logits: 0 where it allows a token, −∞ elsewhere. Adding takes a tenth of the time that selecting does."""
    return 1.0 - allowed.float().reciprocal()
