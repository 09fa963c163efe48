"""The vocabulary of a drafter for real text: byte-level BPE, digits one by one, split as SmolLM2 splits."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

ROLES = ("<|user|>", "<|assistant|>", "<|system|>")
BEGIN, END, PAD = "<|begin|>", "<|end|>", "<|pad|>"
TEMPLATE = (
    "<|begin|>{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>'"
    " }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# GPT-2's split behind one of digits. Words with their space and runs of spaces become tokens of most
# byte-level vocabularies.
DIGITS = r"\p{N}"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def learn(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """A vocabulary of `size` pieces, the special ones and 256 bytes among them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(split), "isolated") for split in (DIGITS, WORDS)),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True, normalized=False) for token in (BEGIN, *ROLES, END, PAD)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(ROLES),
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
        padding_side="left",
        chat_template=TEMPLATE,
    )
