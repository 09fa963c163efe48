"""The vocabulary in a GGUF file: texts, kinds and scores of its tokens, and what other keys say of them. What
is wrong raises any error; `read_tokenizer` makes a sentence of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

LONGEST_TOKEN = 512  # characters; the longest known has 128 spaces or some more


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
        found = np.flatnonzero(np.isin(self.kinds, kinds)).tolist()
        return [token_id for token_id in found if self.texts[token_id]]


def key(name: str) -> str:
    return f"tokenizer.ggml.{name}"


def read_tokens(metadata: Mapping[str, Any]) -> TokenTable:
    """The tokens of a file."""
    texts = metadata.get(key("tokens"), [])
    if not isinstance(texts, list) or not texts:
        raise ValueError("it has no tokens")
    text, count = max(
        (one for one in Counter(texts).items() if one[0]), key=lambda one: one[1], default=("", 1)
    )
    if count > 1:
        raise ValueError(f"it has {text[:40]!r} {count} times")
    if (longest := max(map(len, texts))) > LONGEST_TOKEN:
        raise ValueError(f"it has a token of {longest:,} characters")
    kinds, scores = _numbers(metadata, "token_type", np.int64), _numbers(metadata, "scores", np.float64)
    for name, numbers in (("token_type", kinds), ("scores", scores)):
        if numbers is not None and numbers.shape != (len(texts),):
            raise ValueError(f"it has {numbers.size:,} numbers as {name} of {len(texts):,} tokens")
    return TokenTable(texts, np.full(len(texts), Kind.NORMAL) if kinds is None else kinds, scores)


def _numbers(metadata: Mapping[str, Any], name: str, dtype: type) -> np.ndarray | None:
    found = metadata.get(key(name))
    return None if found is None else np.asarray(found).astype(dtype)


def read_id(metadata: Mapping[str, Any], name: str, table: TokenTable) -> int | None:
    """The id of a key such as `bos_token_id`; None where it is absent or names no token."""
    value = metadata.get(key(name))
    return None if value is None else named_id(value, table)


def named_id(value: Any, table: TokenTable) -> int | None:
    """A value as an id; None where it names no token, as −1 does."""
    if isinstance(value, (bool, str)):
        raise ValueError(f"it has {str(value)[:20]!r} as an id")
    return int(value) if 0 <= value < len(table) and table.texts[int(value)] else None


def read_flag(metadata: Mapping[str, Any], name: str, otherwise: bool) -> bool:
    """A key such as `add_bos_token`."""
    value = metadata.get(key(name), otherwise)
    if value not in (0, 1):
        raise ValueError(f"it has {str(value)[:20]!r} as its {name}")
    return bool(value)
