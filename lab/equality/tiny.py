"""Tiny language models of many architectures and tokenizer families, taught a few sentences in a second: for
checks without downloads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from lab.equality.silence import quietly

SENTENCES = (
    "the small duck swims in the pond and the other ducks swim with the small duck.",
    "def double(n):\n    return n * 2\n\ndef half(n):\n    return n / 2\n",
    "therefore there is another theory, in other words: “the naïve café” — 12 + 34 = 46.",
)
SPECIAL = ("<|begin|>", "<|end|>", "<|pad|>")

# architectures
# ------------------------------------------------------------------------------------------------------------

_PLAIN: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_LLAMA = {**_PLAIN, "intermediate_size": 48, "max_position_embeddings": 600}
_GROUPED = {**_LLAMA, "num_key_value_heads": 2}
_WIDE = {**_GROUPED, "head_dim": 8}
_SCALED = {"rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 150}
_LLAMA3 = {**_SCALED, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_SLIDING = {**_GROUPED, "sliding_window": 12}
_MIXED = {**_SLIDING, "layer_types": ["sliding_attention", "full_attention"]}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 600}
_EXPERTS = {**_WIDE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
# name: (configuration class, its options): heads alone, grouped and normed; rotary positions, also scaled,
# learned ones and ALiBi; sliding windows; experts.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", _LLAMA),
    "llama grouped, wide heads": ("LlamaConfig", {**_GROUPED, "head_dim": 12, "tie_word_embeddings": True}),
    "llama linear": (
        "LlamaConfig",
        {**_GROUPED, "rope_parameters": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}},
    ),
    "llama 3.1": ("LlamaConfig", {**_WIDE, "rope_parameters": _LLAMA3}),
    "qwen2": ("Qwen2Config", {**_GROUPED, "tie_word_embeddings": False}),
    "qwen3": ("Qwen3Config", {**_WIDE, "head_dim": 12}),
    "qwen3 yarn": ("Qwen3Config", {**_WIDE, "rope_parameters": {**_SCALED, "rope_type": "yarn"}}),
    "qwen3-moe": ("Qwen3MoeConfig", _EXPERTS),
    "mistral": ("MistralConfig", _SLIDING),
    "gemma2": ("Gemma2Config", {**_SLIDING, "head_dim": 8}),
    "gemma3": ("Gemma3TextConfig", {**_MIXED, "head_dim": 8}),
    "phi": ("PhiConfig", _LLAMA),
    "phi3": ("Phi3Config", _GROUPED),
    "cohere": ("CohereConfig", {**_GROUPED, "logit_scale": 1.0}),
    "cohere2": ("Cohere2Config", {**_MIXED, "head_dim": 8, "logit_scale": 1.0}),
    "olmo2": ("Olmo2Config", _GROUPED),
    "stablelm": ("StableLmConfig", _GROUPED),
    "starcoder2": ("Starcoder2Config", _SLIDING),
    "granite": ("GraniteConfig", _GROUPED),
    "gpt-oss": ("GptOssConfig", {**_MIXED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "gpt2": ("GPT2Config", _GPT),
    "gpt-j": ("GPTJConfig", {**_GPT, "rotary_dim": 4}),
    "gpt-neox": ("GPTNeoXConfig", _LLAMA),
    "opt": (
        "OPTConfig",
        {**_PLAIN, "ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 600},
    ),
    "falcon": ("FalconConfig", {**_PLAIN, "max_position_embeddings": 600}),
    "falcon alibi": ("FalconConfig", {**_PLAIN, "alibi": True}),
    "bloom": ("BloomConfig", _PLAIN),
    "mpt": ("MptConfig", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 600}),
}


def random_model(
    architecture: str, vocabulary: int, seed: int = 0, noise: float = 0.15, **changes: Any
) -> Any:
    """A random model in evaluation mode, with weights large enough that a wrong position or mask shows."""
    kind, options = ARCHITECTURES[architecture]
    # some defaults lie outside a tiny vocabulary
    special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = getattr(transformers, kind)(**{"vocab_size": vocabulary, **special, **options, **changes})
    torch.manual_seed(seed)
    auto: Any = AutoModelForCausalLM
    model = auto.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    return model


# tokenizers
# ------------------------------------------------------------------------------------------------------------

# Some trainers break ties at random, so each tokenizer is trained once: two models may have to share it.


@cache
def byte_level() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _taught(
        tokenizer,
        trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, special_tokens=list(SPECIAL)),
    )


@cache
def sentence_piece() -> PreTrainedTokenizerFast:
    """BPE with ▁ for spaces and byte fallback, without a prefix space."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    words = pre_tokenizers.Split(Regex(r"\n| *[^ \n]+| +"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.Metaspace(prepend_scheme="never", split=False)]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = ["<unk>", *SPECIAL]
    known = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=380, special_tokens=known, show_progress=False)
    tokenizer.train_from_iterator(
        [sentence.replace("é", "e").replace("ï", "i") for sentence in SENTENCES * 4], trainer
    )
    # The trainer marks the byte tokens as special; a SentencePiece vocabulary has them as plain tokens.
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = [
        entry for entry in description["added_tokens"] if entry["content"] in special
    ]
    return _wrapped(Tokenizer.from_str(json.dumps(description)))


@cache
def unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _taught(
        tokenizer,
        trainers.UnigramTrainer(vocab_size=160, special_tokens=["<unk>", *SPECIAL], unk_token="<unk>"),
    )


@cache
def word_piece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return _taught(tokenizer, trainers.WordPieceTrainer(vocab_size=170, special_tokens=["[UNK]", *SPECIAL]))


FAMILIES = {
    "byte-level": byte_level,
    "sentence-piece": sentence_piece,
    "unigram": unigram,
    "word-piece": word_piece,
}


def _taught(tokenizer: Tokenizer, trainer: Any) -> PreTrainedTokenizerFast:
    trainer.show_progress = False
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    return _wrapped(tokenizer)


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=SPECIAL[0], eos_token=SPECIAL[1], pad_token=SPECIAL[2]
    )


# models on disk
# ------------------------------------------------------------------------------------------------------------


def save(
    folder: Path, architecture: str, family: str, *, seed: int = 0, steps: int = 50, window: int = 600
) -> Path:
    """Make a model with a tokenizer of the family, teach it the sentences, and save both. Returns the folder.

    Taught models agree often, as a drafter and its target do, though not always; `steps` 0 leaves the model
    random. The rows of logits exceed the tokenizer, as padded vocabularies do.
    """
    tokenizer = FAMILIES[family]()
    begin, end, padding = (tokenizer.get_vocab()[token] for token in SPECIAL)
    changes: dict[str, Any] = {"bos_token_id": begin, "eos_token_id": end, "pad_token_id": padding}
    changes |= {
        name: window
        for name in ("max_position_embeddings", "n_positions")
        if name in ARCHITECTURES[architecture][1]
    }
    model = random_model(architecture, len(tokenizer) + 3, seed, 0.15 if steps == 0 else 0.02, **changes)
    teach(model, [[begin, *tokenizer(sentence)["input_ids"], end] for sentence in SENTENCES], steps)
    with quietly():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def teach(model: Any, texts: Sequence[Sequence[int]], steps: int) -> None:
    """Fit the model to the texts (ids), one after another, with Adam; it stays in evaluation mode, so nothing
    is random."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        ids = torch.tensor([texts[step % len(texts)]])
        optimiser.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
