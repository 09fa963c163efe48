"""Three tokenizers that disagree: byte-level BPE (`a`), SentencePiece-style BPE (`b`), a small byte-level BPE (drafter and `c`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

ROLES = {"user": "<|user|>", "assistant": "<|assistant|>", "system": "<|system|>"}
BEGIN, END, PAD, UNKNOWN = "<|begin|>", "<|end|>", "<|pad|>", "<unk>"
SPECIALS = (BEGIN, *ROLES.values(), END, PAD)
SIZES = {"a": 8192, "b": 8000, "drafter": 2000}
TEMPLATE = (
    "<|begin|>{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Words with one leading space or sign, digits one by one, signs with the line ends that follow them, white space.
GPT4_STYLE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Names and words with all the spaces before them (so that indentation merges), digits and signs one by one, line ends alone.
SPACES_STYLE = r" *[\p{L}\p{M}_']+|\p{N}| *[^\s\p{L}\p{M}\p{N}_']| +|\s"


def _wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    unknown = {"unk_token": UNKNOWN} if tokenizer.token_to_id(UNKNOWN) is not None else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(ROLES.values()),
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
        padding_side="left",
        chat_template=TEMPLATE,
        **unknown,
    )


def train_byte_level(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE with a GPT-4 style splitter, as Qwen2 and Llama 3 have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(GPT4_STYLE), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIALS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _wrap(tokenizer)


def train_spaces(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """BPE over characters with `▁` for a space and a byte fallback, as SentencePiece models have it.

    Like those it cannot tell a `▁` (U+2581) in the text from a space; every other text comes back as it was.
    """
    byte_tokens = [f"<0x{value:02X}>" for value in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPACES_STYLE), "isolated"),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in (UNKNOWN, *SPECIALS, *byte_tokens)],
        initial_alphabet=[*map(chr, range(33, 127)), "▁", "\n"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # The trainer can place tokens only as special ones; as such a typed "<0x41>" would turn into an "A".
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in byte_tokens]
    return _wrap(Tokenizer.from_str(json.dumps(state)))


@lru_cache(maxsize=1)
def _byte_of_char() -> dict[str, int]:
    """The byte that each printable stand-in of a byte-level vocabulary means (the table of GPT-2)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(value): value for value in printable}
    others = [value for value in range(256) if value not in printable]
    return table | {chr(256 + index): value for index, value in enumerate(others)}


def token_bytes(tokenizer: PreTrainedTokenizerFast) -> list[bytes | None]:
    """The bytes that every token stands for; `None` for special tokens."""
    byte_level = "ByteLevel" in type(tokenizer.backend_tokenizer.decoder).__name__
    special = set(tokenizer.all_special_tokens) | set(SPECIALS)
    found: list[bytes | None] = [None] * len(tokenizer)
    for token, index in tokenizer.get_vocab().items():
        if token in special:
            continue
        if byte_level:
            found[index] = bytes(_byte_of_char()[char] for char in token)
        elif len(token) == 6 and token.startswith("<0x"):
            found[index] = bytes([int(token[3:5], 16)])
        else:
            found[index] = token.replace("▁", " ").encode()
    return found


def id_of(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    found = tokenizer.backend_tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(token)
    return found


def encode_bytes(tokenizer: PreTrainedTokenizerFast, data: bytes) -> list[int]:
    """Tokens of a byte string; byte by byte where it is not whole characters. For byte-level tokenizers."""
    try:
        ids: list[int] = tokenizer.backend_tokenizer.encode(data.decode(), add_special_tokens=False).ids
        return ids
    except UnicodeDecodeError:
        char_of = {value: char for char, value in _byte_of_char().items()}
        return [id_of(tokenizer, char_of[value]) for value in data]


def respell(tokenizer: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast) -> list[list[int]]:
    """For every token of `other`, the tokens of `tokenizer` that continue a text with the same bytes."""
    by_name = {token: id_of(tokenizer, token) for token in SPECIALS}
    names = other.convert_ids_to_tokens(list(range(len(other))))
    return [
        [by_name[names[index]]] if names[index] in by_name else [] if data is None else encode_bytes(tokenizer, data)
        for index, data in enumerate(token_bytes(other))
    ]
