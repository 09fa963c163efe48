"""The vocabulary in a GGUF file: texts, kinds and scores of its tokens, and its merges, checked for the code
that builds a tokenizer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from omnidemo.backends.runner import ModelError

log = logging.getLogger(__name__)
# The largest known vocabulary has 262,144 tokens of 31 characters at most; some have one of 128 spaces or
# more.
MOST_TOKENS, MOST_MERGES, LONGEST_TOKEN, MOST_CHARACTERS = 2**20, 2**21, 512, 2**23
LONGEST_TEMPLATE = 2**20  # characters


class Kind(IntEnum):
    """The kind of a token, by llama.cpp's numbers. A file without kinds has NORMAL tokens only."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class TokenTable:
    """`texts[i]` is the file's name of id i, empty for an unused id; `kinds` are numbers of `Kind`; `scores`
    may be missing."""

    texts: list[str]
    kinds: np.ndarray
    scores: np.ndarray | None

    def __len__(self) -> int:
        return len(self.texts)

    def ids_of(self, *kinds: Kind) -> list[int]:
        """The ids of these kinds that have a text."""
        return [
            token_id
            for token_id in np.flatnonzero(np.isin(self.kinds, kinds)).tolist()
            if self.texts[token_id]
        ]


def damage(what: str) -> ModelError:
    return ModelError(
        f"the tokenizer in this GGUF file {what}; download the file again or choose another one of this model"
    )


def read_tokens(metadata: Mapping[str, Any]) -> TokenTable:
    """The tokens of a file. ModelError for an invalid list."""
    texts = _texts(metadata, "tokens", MOST_TOKENS)
    if not texts:
        raise damage("has no tokens")
    if len(known := set(texts)) < len(texts):
        empty = texts.count("")
        if len(texts) - empty > len(known - {""}):
            raise damage(f"has {_first_twice(texts)!r} twice")
    if (longest := max(map(len, texts))) > LONGEST_TOKEN or sum(map(len, texts)) > MOST_CHARACTERS:
        raise damage(f"has tokens of up to {longest:,} characters")
    kinds = _numbers(metadata, "token_type", len(texts), "iu")
    scores = _numbers(metadata, "scores", len(texts), "iuf")
    if scores is not None and not np.isfinite(scores := scores.astype(np.float64)).all():
        raise damage("has scores that are no numbers")
    return TokenTable(texts, np.full(len(texts), Kind.NORMAL) if kinds is None else kinds, scores)


def read_merges(metadata: Mapping[str, Any], known: Mapping[str, int]) -> list[tuple[str, str]]:
    """The merges of a byte-level vocabulary, most important first. ModelError for a merge that is no pair of
    `known` tokens that make a third."""
    merges: list[tuple[str, str]] = []
    for written in dict.fromkeys(_texts(metadata, "merges", MOST_MERGES)):
        space = written.find(" ", 1)
        left, right = written[:space], written[space + 1 :]
        if space < 0 or left not in known or right not in known or left + right not in known:
            raise damage(f"has the merge {written[:40]!r}, which is not of its tokens")
        merges.append((left, right))
    if not merges:
        raise damage("has no merges")
    return merges


def read_id(metadata: Mapping[str, Any], name: str, table: TokenTable) -> int | None:
    """The id of a key such as `bos_token_id`; None where it is absent or names no token."""
    key = f"tokenizer.ggml.{name}"
    value = metadata.get(key)
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise damage(f"has {str(value)[:20]!r} as its {key}, which is no id")
    if 0 <= value < len(table) and table.texts[value]:
        return int(value)
    if value not in (-1, 2**32 - 1):  # which say "none"
        log.warning(
            "%s of this GGUF file is %s, which is none of its %s tokens; it is left out",
            key,
            str(value)[:20],
            len(table),
        )
    return None


def read_flag(metadata: Mapping[str, Any], name: str, otherwise: bool) -> bool:
    """A key such as `add_bos_token`."""
    value = metadata.get(f"tokenizer.ggml.{name}", otherwise)
    if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
        raise damage(f"has {str(value)[:20]!r} as its tokenizer.ggml.{name}, which is neither true nor false")
    return bool(value)


def read_text(metadata: Mapping[str, Any], key: str, longest: int) -> str | None:
    """A text, None where it is absent."""
    value = metadata.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value or not _can_be_written(value):
        raise damage(f"has a {key} that is no text")
    if len(value) > longest:
        raise damage(f"has a {key} of {len(value):,} characters, more than the {longest:,} that are read")
    return value


def _texts(metadata: Mapping[str, Any], name: str, most: int) -> list[str]:
    found = metadata.get(f"tokenizer.ggml.{name}", [])
    if not isinstance(found, (list, tuple)):
        raise damage(f"has {name} that are no list of texts")
    if len(found) > most:
        raise damage(f"names {len(found):,} {name}, more than the {most:,} that are read")
    texts = list(found)
    if not all(type(text) is str for text in texts) or not _can_be_written("".join(texts)):
        raise damage(f"has {name} that are no list of texts")
    return texts


def _numbers(metadata: Mapping[str, Any], name: str, count: int, kinds: str) -> np.ndarray | None:
    """A list with a number for each token; None where it is absent."""
    found = metadata.get(f"tokenizer.ggml.{name}")
    if found is None:
        return None
    try:
        numbers = np.asarray(found)
    except (ValueError, OverflowError) as error:
        raise damage(f"has a {name} that is no list of numbers") from error
    if numbers.dtype.kind not in kinds or numbers.ndim != 1:
        raise damage(f"has a {name} that is no list of numbers")
    if len(numbers) != count:
        raise damage(f"has {len(numbers):,} numbers as {name} of {count:,} tokens")
    return numbers


def _can_be_written(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _first_twice(texts: list[str]) -> str:
    seen: set[str] = set()
    return next(text for text in texts if text and (text in seen or seen.add(text)))[:40]  # type: ignore[func-returns-value]
