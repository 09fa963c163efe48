"""Small tokenizers of each family, trained on a few sentences."""

from __future__ import annotations

import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]

SENTENCES = [
    "the small duck swims in the pond and the other ducks swim with the small duck",
    "def double(n):\n    return n * 2\n\ndef half(n):\n    return n / 2\n",
    "therefore there is another theory, in other words: “the naïve café” — 12 + 34 = 46.",
] * 4
SPECIAL = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|pad|>"]
TEMPLATE = (
    "<|begin|>{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def wrap(tokenizer: Tokenizer, template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|pad|>"
    )
    fast.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|assistant|>"]})
    fast.chat_template = template
    return fast


def byte_level(size: int = 360, sentences: list[str] = SENTENCES) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        sentences, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=SPECIAL)
    )
    return wrap(tokenizer)


def sentence_piece(size: int = 420) -> PreTrainedTokenizerFast:
    """BPE with ▁ for spaces and byte fallback, without a prefix space."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n| *[^ \n]+| +"), "isolated"),
            pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = ["<unk>", *SPECIAL]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[*special, *BYTE_TOKENS])
    tokenizer.train_from_iterator([s.replace("é", "e").replace("ï", "i") for s in SENTENCES], trainer)
    fresh = tokenizer.to_str()
    # The trainer marks the byte tokens as special; a SentencePiece vocabulary has them as plain tokens.
    loaded = Tokenizer.from_str(_without_added(fresh, keep=special))
    return wrap(loaded)


def unigram(size: int = 200) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=["<unk>", *SPECIAL], unk_token="<unk>")
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return wrap(tokenizer)


def unigram_bytes() -> PreTrainedTokenizerFast:
    """Unigram with byte fallback and a prefix space, whose unknown token nobody lists as an added one."""
    trained = json.loads(unigram().backend_tokenizer.to_str())["model"]
    pieces = [(piece, score) for piece, score in trained["vocab"]]
    model = models.Unigram(
        [*pieces, *((byte, -20.0) for byte in BYTE_TOKENS)], unk_id=trained["unk_id"], byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    return wrap(tokenizer)


def llama() -> PreTrainedTokenizerFast:
    """As Llama 2 has it: no pre-tokenizer, the normalizer puts ▁ for each space and one more in front."""
    parsed = json.loads(sentence_piece().backend_tokenizer.to_str())
    tokenizer = Tokenizer.from_str(json.dumps(parsed | {"pre_tokenizer": None}))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return wrap(tokenizer)


def word_piece(size: int = 200) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[UNK]", *SPECIAL])
    )
    return wrap(tokenizer)


FAMILIES = {
    "byte-level": byte_level,
    "sentence-piece": sentence_piece,
    "llama": llama,
    "unigram": unigram,
    "unigram-bytes": unigram_bytes,
    "word-piece": word_piece,
}


def _without_added(description: str, keep: list[str]) -> str:
    parsed = json.loads(description)
    parsed["added_tokens"] = [entry for entry in parsed["added_tokens"] if entry["content"] in keep]
    return json.dumps(parsed)
