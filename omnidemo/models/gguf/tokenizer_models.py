"""A `tokenizers` model for both kinds of vocabularies in GGUF files: byte-level BPE by merges, SentencePiece
BPE by scores."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from omnidemo.core.config import ModelError
from omnidemo.models.gguf.pre_tokenizers import PRE_TOKENIZERS
from omnidemo.models.gguf.token_table import Kind, TokenTable, key, read_flag, read_id
from omnidemo.vocabulary.alphabets import byte_alphabet

log = logging.getLogger(__name__)
NOT_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
MOST_MERGES = 2**21
BESIDE = "put the model's tokenizer.json beside the file, or choose another model"


def build_tokenizer(metadata: Mapping[str, Any], table: TokenTable) -> tuple[Tokenizer, bool]:
    """(the tokenizer without added tokens, whether texts begin with the begin token where the file does not
    say). ModelError for an unknown kind of tokenizer."""
    name = check_tokenizer(metadata)
    if metadata[key("model")] == "llama":
        return _sentence_piece(metadata, table), True
    if not name:
        log.warning(
            "this GGUF file does not say how its tokenizer cuts words; it is read as llama.cpp does"
            " (default), and answers may be worse than the model's own; a newer file of the same model"
            " says it"
        )
    pre = PRE_TOKENIZERS[name or "default"]
    known = {text: token_id for token_id, text in enumerate(table.texts) if text}
    merges = _merges(metadata)
    unused = {table.texts[token_id] for token_id in table.ids_of(Kind.UNUSED)}
    if unused:  # a hole that the converter filled, unless a merge makes something of it
        for left, right in merges:
            unused -= {left, right, left + right}
        known = {text: token_id for text, token_id in known.items() if text not in unused}
    unknown = _unknown(metadata, table)
    if lacking := {sign for sign, byte in byte_alphabet().items() if byte not in NOT_IN_UTF8} - known.keys():
        if unknown is None:
            log.warning(
                "the tokenizer of this GGUF file has no token for %d bytes of texts, and none that stands for"
                " what is unknown: characters with these bytes are left out",
                len(lacking),
            )
    else:
        unknown = None
    tokenizer = Tokenizer(
        models.BPE(vocab=known, merges=merges, ignore_merges=pre.whole_words, unk_token=unknown)
    )
    tokenizer.pre_tokenizer = pre.build()
    tokenizer.decoder = decoders.ByteLevel()
    if "Ċ" in lacking and "\n" in known:  # a newline that is written as it is
        tokenizer.add_tokens([AddedToken("\n", normalized=False)])
    return tokenizer, pre.add_begin


def check_tokenizer(metadata: Mapping[str, Any]) -> str:
    """The name of the pre-tokenizer, "" for none. ModelError for an unknown kind of tokenizer. Builds
    nothing."""
    kind, name = (metadata.get(key(one)) or "" for one in ("model", "pre"))
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
    return str(name)


def _merges(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The merges of a byte-level vocabulary, most important first; `tokenizers` refuses what is not of its
    tokens."""
    merges = []
    for written in dict.fromkeys(metadata.get(key("merges"), [])):
        space = written.index(" ", 1)
        merges.append((written[:space], written[space + 1 :]))
    if not merges:
        raise ValueError("it has no merges")
    return merges


def _unknown(metadata: Mapping[str, Any], table: TokenTable) -> str | None:
    """The text of the unknown token."""
    named = read_id(metadata, "unknown_token_id", table)
    kinds = [named] if named is not None else table.ids_of(Kind.UNKNOWN)
    return table.texts[kinds[0]] if kinds else "<unk>" if "<unk>" in table.texts else None


def _sentence_piece(metadata: Mapping[str, Any], table: TokenTable) -> Tokenizer:
    prefix = read_flag(metadata, "add_space_prefix", True)
    unused = set(table.ids_of(Kind.UNUSED))
    known = {text: token_id for token_id, text in enumerate(table.texts) if text and token_id not in unused}
    unknown = _unknown(metadata, table)
    if unknown is None and not all(f"<0x{byte:02X}>" in known for byte in range(256)):
        raise ValueError("it has neither a token for each byte nor one for what is unknown")
    tokenizer = Tokenizer(
        models.BPE(
            vocab=known, merges=_merges_by_score(table), unk_token=unknown, fuse_unk=True, byte_fallback=True
        )
    )
    spaces = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces]) if prefix else spaces
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return tokenizer


def _merges_by_score(table: TokenTable) -> list[tuple[str, str]]:
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
