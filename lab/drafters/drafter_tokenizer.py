"""The vocabulary of a drafter for real text: byte-level BPE, digits one by one, split as SmolLM2 splits."""

from __future__ import annotations

from collections.abc import Iterable

from transformers import PreTrainedTokenizerFast

from lab.drafters.training.tokenizers import train_byte_level

# GPT-2's split behind one of digits. Words with their space and runs of spaces become tokens of most
# byte-level vocabularies.
DIGITS = r"\p{N}"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def learn(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """A vocabulary of `size` pieces, the special ones and 256 bytes among them."""
    return train_byte_level(texts, size, (DIGITS, WORDS))
