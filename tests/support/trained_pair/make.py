"""Trains the pair in about two minutes of one core: `python -m tests.support.trained_pair.make`.

Everything is seeded, so a machine makes the same weights each time; another machine may round otherwise.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import TOPICS, UNREAD, examples

BEGIN, END, PAD = "<|begin|>", "<|end|>", "<|pad|>"
ROLES = ("<|user|>", "<|assistant|>", "<|system|>")
TEMPLATE = (
    "<|begin|>{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>'"
    " }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Where the two tokenizers split a text before they merge: the target takes every sign by itself and digits
# together, the drafter digits one by one and a word's sign with it. The drafter's tokens are short, so it
# spells the longer words of the target in two or three pieces.
TARGET_SPLIT = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]|\s+(?!\S)|\s+"
DRAFTER_SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SEED, EXAMPLES, ROW, BATCH = 0, 1500, 160, 8  # examples of a topic; tokens of a row, rows of a step


def train_tokenizer(texts: Sequence[str], size: int, longest: int, split: str) -> PreTrainedTokenizerFast:
    """Byte-level BPE of at most `size` tokens, none longer than `longest` bytes."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        max_token_length=longest,
        special_tokens=[
            AddedToken(token, special=True, normalized=False) for token in (BEGIN, *ROLES, END, PAD)
        ],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=list(ROLES),
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
        padding_side="left",
        chat_template=TEMPLATE,
    )


def rows_of(tokenizer: PreTrainedTokenizerFast, chats: Sequence[tuple[str, str]]) -> torch.Tensor:
    """Rows of token ids; each begins with a chat, and what does not fit is left out."""
    rows, row = list[list[int]](), list[int]()
    for asked, told in chats:
        turn = [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]
        row += tokenizer.apply_chat_template(turn, return_dict=False)
        if len(row) >= ROW:
            rows.append(row[:ROW])
            row = []
    return torch.tensor(rows)


def train(
    model: LlamaForCausalLM, rows: torch.Tensor, count: int, rate: float, smoothing: float, name: str
) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=count, pct_start=0.1)
    model.train()
    for step in range(count):
        chosen = rows[torch.randint(len(rows), (BATCH,))]
        logits = model(input_ids=chosen).logits[:, :-1].flatten(0, 1)
        loss = cross_entropy(logits, chosen[:, 1:].flatten(), label_smoothing=smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        if step % 100 == 0 or step == count - 1:
            print(f"{name}: step {step}, loss {loss.item():.3f}", flush=True)


def make(
    folder: str,
    topics: Sequence[str],
    tokens: tuple[int, int, str],
    steps: int,
    rate: float,
    smoothing: float = 0.0,
    **sizes: int,
) -> int:
    """Train one model of the pair and save it in bfloat16; its number of parameters."""
    chats = [chat for topic in topics for chat in examples(topic, EXAMPLES, SEED)]
    random.Random(SEED).shuffle(chats)
    tokenizer = train_tokenizer([text for chat in chats for text in chat], *tokens)
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=1024, rms_norm_eps=1e-6, tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id, **sizes,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    train(model, rows_of(tokenizer, chats), steps, rate, smoothing, Path(folder).name)
    shutil.rmtree(folder, ignore_errors=True)
    model.bfloat16().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    count = make(
        TARGET, tuple(TOPICS), (1024, 32, TARGET_SPLIT), 700, 4e-3, hidden_size=128, intermediate_size=320,
        num_hidden_layers=3, num_attention_heads=2,
    )  # fmt: skip
    read = [topic for topic in TOPICS if topic != UNREAD]
    # Never quite sure: where both give a token nearly 1, rounding would say who gives it more.
    count += make(
        DRAFTER, read, (640, 6, DRAFTER_SPLIT), 500, 6e-3, 0.02, hidden_size=64, intermediate_size=160,
        num_hidden_layers=2, num_attention_heads=2,
    )  # fmt: skip
    print(f"{count:,} parameters")


if __name__ == "__main__":
    main()
