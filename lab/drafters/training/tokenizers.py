"""Three tokenizers that disagree: byte-level BPE (`a`), SentencePiece-style BPE (`b`), a small byte-level BPE
(drafter and `c`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from omnidemo.vocab.vocabulary import Vocabulary, read_vocabulary

ROLES = {"user": "<|user|>", "assistant": "<|assistant|>", "system": "<|system|>"}
BEGIN, END, PAD, UNKNOWN = "<|begin|>", "<|end|>", "<|pad|>", "<unk>"
SPECIALS = (BEGIN, *ROLES.values(), END, PAD)
SIZES = {"a": 8192, "b": 8000, "drafter": 2000}
TEMPLATE = (
    "<|begin|>{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>'"
    " }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Words with one leading space or sign, digits one by one, signs with the line ends that follow them, white
# space.
GPT4_STYLE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Names and words with all the spaces before them (so that indentation merges), digits and signs one by one,
# line ends alone.
SPACES_STYLE = r" *[\p{L}\p{M}_']+|\p{N}| *[^\s\p{L}\p{M}\p{N}_']| +|\s"


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """For `transformers`, with the roles and the chat template that all bundled tokenizers share."""
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


def train_byte_level(
    texts: Iterable[str], size: int, splits: Sequence[str] = (GPT4_STYLE,)
) -> PreTrainedTokenizerFast:
    """Byte-level BPE of `size` pieces, the special ones and 256 bytes among them. `splits`: the patterns at
    which text is split, one after the other; by default GPT-4's, as Qwen2 and Llama 3 have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(split), "isolated") for split in splits),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIALS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wrap(tokenizer)


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
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[
            AddedToken(token, special=True, normalized=False) for token in (UNKNOWN, *SPECIALS, *byte_tokens)
        ],
        initial_alphabet=[*map(chr, range(33, 127)), "▁", "\n"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # The trainer can place tokens only as special ones; as such a typed "<0x41>" would turn into an "A".
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in byte_tokens]
    return wrap(Tokenizer.from_str(json.dumps(state)))


def ids_of(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str] = SPECIALS) -> list[int]:
    """The ids of special tokens. KeyError for one that the tokenizer does not have."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary[token] for token in tokens]


def encode_bytes(vocabulary: Vocabulary, data: bytes) -> list[int]:
    """Tokens of a byte string; byte by byte where it is not whole characters. For byte-level tokenizers."""
    ids = vocabulary.encode(data)
    return [vocabulary.by_bytes[bytes([value])] for value in data] if ids is None else list(ids)


def respell(tokenizer: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast) -> list[list[int]]:
    """For every token of `other`, the tokens of `tokenizer` that continue a text with the same bytes."""
    own, given = read_vocabulary(tokenizer), read_vocabulary(other)
    named = dict(zip(ids_of(other), ids_of(tokenizer), strict=True))
    return [
        [named[index]] if index in named else [] if data is None else encode_bytes(own, data)
        for index, data in enumerate(given.tokens)
    ]
