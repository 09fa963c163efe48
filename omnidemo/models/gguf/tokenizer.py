"""The tokenizer of a GGUF file as a fast tokenizer of `transformers`: from the file alone, or from a
tokenizer.json beside it with the same tokens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from omnidemo.core.config import ModelError
from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf.end_ids import end_ids
from omnidemo.models.gguf.pre_tokenizers import PRE_TOKENIZERS
from omnidemo.vocabulary.alphabets import BYTE_TOKEN, byte_alphabet

log = logging.getLogger(__name__)
ROLES = {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "padding_token_id", "unk": "unknown_token_id"}
# llama.cpp's ids for files that name none (Llama 2's and Falcon's); here they count only for control tokens
USUAL = {"llama": {"bos": 1, "eos": 2, "unk": 0}, "gpt2": {"bos": 11, "eos": 11}}
NOT_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
MOST_MERGES = 2**21
LONGEST_TOKEN = 512  # characters; the longest known has 128 spaces or some more
BESIDE = "put the model's tokenizer.json beside the file, or choose another model"


class Kind(IntEnum):
    """The kind of a token, by llama.cpp's numbers. A file without kinds has NORMAL tokens only."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Tokens:
    """The vocabulary in a file's key-values. `texts[i]` is the file's name of id i, empty for an unused id;
    `kinds` are numbers of `Kind`; `scores` may be missing. What is wrong raises ValueError."""

    metadata: Mapping[str, Any]
    texts: list[str]
    kinds: np.ndarray
    scores: np.ndarray | None

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Tokens:
        texts = metadata.get("tokenizer.ggml.tokens", [])
        if not isinstance(texts, list) or not texts:
            raise ValueError("it has no tokens")
        text, count = max(
            (one for one in Counter(texts).items() if one[0]), key=lambda one: one[1], default=("", 1)
        )
        if count > 1:
            raise ValueError(f"it has {text[:40]!r} {count} times")
        if (longest := max(map(len, texts))) > LONGEST_TOKEN:
            raise ValueError(f"it has a token of {longest:,} characters")
        kinds, scores = (metadata.get(f"tokenizer.ggml.{name}") for name in ("token_type", "scores"))
        kinds = np.full(len(texts), Kind.NORMAL) if kinds is None else np.asarray(kinds).astype(np.int64)
        scores = None if scores is None else np.asarray(scores).astype(np.float64)
        for name, numbers in (("token_type", kinds), ("scores", scores)):
            if numbers is not None and numbers.shape != (len(texts),):
                raise ValueError(f"it has {numbers.size:,} numbers as {name} of {len(texts):,} tokens")
        return cls(metadata, texts, kinds, scores)

    def ids_of(self, *kinds: Kind) -> list[int]:
        """The ids of these kinds that have a text."""
        found = np.flatnonzero(np.isin(self.kinds, kinds)).tolist()
        return [token_id for token_id in found if self.texts[token_id]]

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.metadata.get(f"tokenizer.ggml.{name}", otherwise)

    def id(self, name: str) -> int | None:
        """The id of a key such as `bos_token_id`; None where it is absent or names no token, as −1 does."""
        return None if (value := self.get(name)) is None else self.as_id(value)

    def as_id(self, value: Any) -> int | None:
        if isinstance(value, (bool, str)):
            raise ValueError(f"it has {str(value)[:20]!r} as an id")
        return int(value) if 0 <= value < len(self.texts) and self.texts[int(value)] else None

    def flag(self, name: str, otherwise: bool) -> bool:
        """A key such as `add_bos_token`."""
        value = self.get(name, otherwise)
        if value not in (0, 1):
            raise ValueError(f"it has {str(value)[:20]!r} as its {name}")
        return bool(value)

    def unknown(self) -> str | None:
        """The text of the unknown token."""
        named = self.id("unknown_token_id")
        kinds = [named] if named is not None else self.ids_of(Kind.UNKNOWN)
        return self.texts[kinds[0]] if kinds else "<unk>" if "<unk>" in self.texts else None

    def roles(self) -> dict[str, int]:
        """Role → id, for the roles in the file."""
        outside = self.ids_of(Kind.CONTROL, Kind.UNKNOWN)
        usual = USUAL.get(str(self.get("model"))[:40], {})
        found = {role: one for role, one in usual.items() if one in outside}
        return found | {role: one for role, name in ROLES.items() if (one := self.id(name)) is not None}


def read_tokenizer(
    metadata: Mapping[str, Any], folder: Path | None = None
) -> tuple[PreTrainedTokenizerBase, list[int]]:
    """(a fast tokenizer, all end ids, the tokenizer's own first) from the key-values of a GGUF file, which
    also have the begin, end, padding and unknown tokens and the chat template. `folder`: a tokenizer.json
    there cuts texts, if it has the file's tokens. ModelError, one sentence, for damaged or unknown values."""
    with explained("the tokenizer in this GGUF file cannot be read", "choose another file of this model"):
        table = Tokens.of(metadata)
        template = metadata.get("tokenizer.chat_template")
        if not isinstance(template, str | None):
            raise ValueError("its chat template is no text")
        roles = table.roles()
        ends = end_ids(table, roles.get("eos"))
        backend = _beside(folder, table)
        if backend is None:
            check_tokenizer(metadata)
            backend = _sentence_piece(table) if table.get("model") == "llama" else _byte_level(table)
            _add_tokens(backend, table, {*roles.values(), *ends})
            _frame(backend, table, roles)
        special = {f"{role}_token": table.texts[token_id] for role, token_id in roles.items()}
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=_AsItIs(backend), clean_up_tokenization_spaces=False, **special
        )
        tokenizer.chat_template = template
        return tokenizer, ends


class _AsItIs:
    """Passes a tokenizer to `transformers` without the copy by serialisation, which takes seconds for a large
    vocabulary."""

    truncation = padding = None

    def __init__(self, backend: Tokenizer) -> None:
        self.backend = backend

    def __deepcopy__(self, memo: Any) -> Tokenizer:
        return self.backend


def check_tokenizer(metadata: Mapping[str, Any]) -> None:
    """ModelError for an unknown kind of tokenizer. Builds nothing."""
    kind, name = (metadata.get(f"tokenizer.ggml.{key}") or "" for key in ("model", "pre"))
    if not kind:
        raise ModelError("this GGUF file holds no tokenizer; choose the file of a whole model")
    if kind not in ("gpt2", "llama"):
        raise ModelError(
            f"this GGUF file has a tokenizer of the kind {str(kind)[:40]!r}, and gpt2 and llama are read;"
            f" {BESIDE}"
        )
    if kind == "gpt2" and name and str(name) not in PRE_TOKENIZERS:
        raise ModelError(
            f"this GGUF file cuts words by the pre-tokenizer {str(name)[:40]!r}, which is not known here;"
            f" {BESIDE}"
        )


def _byte_level(table: Tokens) -> Tokenizer:
    """Byte-level BPE by merges, without added tokens."""
    if not table.get("pre"):
        log.warning(
            "this GGUF file does not say how its tokenizer cuts words; it is read as llama.cpp does"
            " (default), and answers may be worse than the model's own; a newer file of the same model"
            " says it"
        )
    pre = PRE_TOKENIZERS[table.get("pre") or "default"]
    merges = _merges(table)
    # a hole that the converter filled, unless a merge makes something of it
    made = {part for left, right in merges for part in (left, right, left + right)}
    unused = {table.texts[token_id] for token_id in table.ids_of(Kind.UNUSED)} - made
    known = {text: token_id for token_id, text in enumerate(table.texts) if text and text not in unused}
    lacking = {sign for sign, byte in byte_alphabet().items() if byte not in NOT_IN_UTF8} - known.keys()
    unknown = table.unknown() if lacking else None
    if lacking and unknown is None:
        log.warning(
            "the tokenizer of this GGUF file has no token for %d bytes of texts, and none that stands for"
            " what is unknown: characters with these bytes are left out",
            len(lacking),
        )
    tokenizer = Tokenizer(models.BPE(known, merges, ignore_merges=pre.whole_words, unk_token=unknown))
    tokenizer.pre_tokenizer = pre.build()
    tokenizer.decoder = decoders.ByteLevel()
    if "Ċ" in lacking and "\n" in known:  # a newline that is written as it is
        tokenizer.add_tokens([AddedToken("\n", normalized=False)])
    return tokenizer


def _merges(table: Tokens) -> list[tuple[str, str]]:
    """The file's merges, most important first; `tokenizers` refuses what is not of its tokens."""
    cuts = [(text, text.index(" ", 1)) for text in dict.fromkeys(table.get("merges", []))]
    if not cuts:
        raise ValueError("it has no merges")
    return [(text[:space], text[space + 1 :]) for text, space in cuts]


def _sentence_piece(table: Tokens) -> Tokenizer:
    """SentencePiece BPE by scores, without added tokens; by merges where the scores tell nothing."""
    unused = set(table.ids_of(Kind.UNUSED))
    known = {text: token_id for token_id, text in enumerate(table.texts) if text and token_id not in unused}
    unknown = table.unknown()
    if unknown is None and not all(f"<0x{byte:02X}>" in known for byte in range(256)):
        raise ValueError("it has neither a token for each byte nor one for what is unknown")
    normal = table.kinds == Kind.NORMAL
    told = table.scores is not None and len(set(table.scores[normal].tolist())) > 1
    merges = _merges(table) if table.get("merges") and not told else _merges_by_score(table)
    tokenizer = Tokenizer(models.BPE(known, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    prefix, spaces = table.flag("add_space_prefix", True), normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if prefix else spaces
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return tokenizer


def _merges_by_score(table: Tokens) -> list[tuple[str, str]]:
    """Every way to make a token of two others, the highest score first, in SentencePiece's order."""
    if table.scores is None or not np.isfinite(table.scores).all():
        raise ValueError("it has no scores, or some that are no numbers")
    pieces = {table.texts[token_id] for token_id in table.ids_of(Kind.NORMAL, Kind.USER_DEFINED)}
    merges: list[tuple[str, str]] = []
    for token_id in np.argsort(-table.scores, kind="stable").tolist():
        text = table.texts[token_id]
        if text in pieces:
            cuts = ((text[:at], text[at:]) for at in range(1, len(text)))
            merges += [cut for cut in cuts if cut[0] in pieces and cut[1] in pieces]
            if len(merges) > MOST_MERGES:
                raise ValueError(f"it has more than {MOST_MERGES:,} ways to join its tokens")
    return merges


def _beside(folder: Path | None, table: Tokens) -> Tokenizer | None:
    """The tokenizer.json of a folder; None where there is none, or it has another vocabulary."""
    path = None if folder is None else folder / "tokenizer.json"
    if path is None or not path.is_file():
        return None
    try:
        found = Tokenizer.from_file(str(path))
        strings = found.get_vocab()
        # Converters rewrite user-defined tokens and fill holes.
        ids = table.ids_of(Kind.NORMAL, Kind.BYTE, Kind.CONTROL, Kind.UNKNOWN)
        fits = max(*strings.values(), len(strings) - 1) < len(table.texts)
        if not fits or any(strings.get(table.texts[token_id]) != token_id for token_id in ids):
            raise ValueError("it is that of another vocabulary")
    except Exception as error:  # `tokenizers` raises plain ones
        log.warning(
            "the tokenizer.json beside the GGUF file is not used (%s); the file's own tokenizer is",
            str(error)[:160],
        )
        return None
    return found


def _add_tokens(backend: Tokenizer, table: Tokens, roles: set[int]) -> None:
    """Add the tokens that are found before a text is cut: control tokens and those of a role as special ones,
    user-defined ones as text. What texts are spelled with is text, whatever its kind: one byte, white
    space."""
    signs = byte_alphabet() if table.get("model") == "gpt2" else {}

    def spells(text: str) -> bool:
        return text.isspace() or bool(BYTE_TOKEN.fullmatch(text)) or text in signs

    control = {one for one in table.ids_of(Kind.CONTROL, Kind.UNKNOWN) if not spells(table.texts[one])}
    name = str(table.metadata.get("general.name"))[:256].lower()
    swallow = "phi-3" in name or "phi3" in name  # its template's line ends after tokens were not trained
    keep = ("<unk>", "<s>", "<|endoftext|>")
    special = [
        (table.texts[one], swallow and table.texts[one] not in keep) for one in sorted(control | roles)
    ]
    backend.add_special_tokens(
        [AddedToken(text, special=True, normalized=False, rstrip=strip) for text, strip in special]
    )
    plain = [table.texts[one] for one in table.ids_of(Kind.USER_DEFINED) if one not in control | roles]
    backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in plain])


def _frame(backend: Tokenizer, table: Tokens, roles: Mapping[str, int]) -> None:
    """Begin and end tokens around a text. A chat has those of its template, and is read without these."""
    begins = table.get("model") == "llama" or PRE_TOKENIZERS[table.get("pre") or "default"].add_begin
    wanted = {"bos": table.flag("add_bos_token", begins), "eos": table.flag("add_eos_token", False)}
    for role, wants in wanted.items():
        if wants and role not in roles and table.get(f"add_{role}_token") is not None:
            raise ValueError(f"it frames a text by its {role} token and names none")
    used = [role for role, wants in wanted.items() if wants and role in roles]
    single = [*(["bos"] if "bos" in used else []), "$A", *(["eos"] if "eos" in used else [])]
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=[*single, "$B"],
        special_tokens=[{"id": role, "ids": [roles[role]], "tokens": [role]} for role in used],
    )  # fmt: skip
