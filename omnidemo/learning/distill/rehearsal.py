"""What the base drafter writes behind prompts of the project. A line is held to it while it learns, because
answers of one kind would cost the guesses of all others ("learning without forgetting", 1606.09282)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from omnidemo.core.asset_files import ASSETS
from omnidemo.learning.distill import losses

if TYPE_CHECKING:
    from omnidemo.learning.distill.learner import Learner

OF_TOPIC = 4  # prompts of each topic
LENGTH = 96  # most tokens that the base drafter writes behind one
AT_ONCE = 4  # texts of a training step, in turns
KEPT = 64  # most probable tokens of a position; the others count together
CHAT = "{begin}system\nYou are a helpful assistant.{end}\nuser\n{prompt}{end}\nassistant\n"


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """`ids` [L]: a prompt, and m tokens that the base drafter wrote behind it. `top_ids` and `top_p` [m, K]:
    at each of these the most probable tokens, and the base drafter's probabilities of them."""

    ids: Tensor
    top_ids: Tensor
    top_p: Tensor


def loss(learner: Learner, texts: Sequence[Text], number: int) -> Tensor:
    """The mean divergence D(p ‖ q) in nats from the base drafter (p) to the learner as it is now (q), on the
    texts of the training step with this number."""
    start = number * AT_ONCE % len(texts)
    chosen = texts[start : start + AT_ONCE]
    top_ids, top_p = (torch.cat([getattr(text, name) for text in chosen]) for name in ("top_ids", "top_p"))
    logits = _said(learner, [text.ids for text in chosen], [len(text.top_p) for text in chosen])
    return losses.direct_divergence(logits, top_ids, top_p).mean()


@torch.no_grad()
def written(learner: Learner, folder: Path, seed: int) -> list[Text]:
    """The texts of a learner that has the base weights, drawn at temperature 1. OSError or ValueError for a
    folder without a tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token or tokenizer.unk_token
    begin, end = tokenizer.bos_token or "", tokenizer.eos_token or ""
    asked = [CHAT.format(begin=begin, end=end, prompt=prompt) for prompt in _prompts()]
    length = min(LENGTH, learner.context // 2)
    given = tokenizer(
        asked, add_special_tokens=False, padding=True, truncation=True, max_length=learner.context - length,
        return_tensors="pt",
    ).to(learner.device)  # fmt: skip
    ids, mask = given["input_ids"], given["attention_mask"]
    with torch.random.fork_rng(devices=[learner.device] if learner.device.type == "cuda" else []):
        torch.manual_seed(seed)
        answers = learner.base.generate(
            input_ids=ids, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            max_new_tokens=length, pad_token_id=tokenizer.pad_token_id,
        )[:, ids.shape[1] :]  # fmt: skip
    texts = []
    for prompt, known, answer in zip(ids, mask.bool(), answers, strict=True):
        ends = (answer == tokenizer.eos_token_id).nonzero()
        own = answer[: int(ends[0]) + 1] if len(ends) else answer
        text = torch.cat([prompt[known], own])
        p = _said(learner, [text], [len(own)]).softmax(-1)
        top_p, top_ids = p.topk(min(KEPT, p.shape[1]))
        texts.append(Text(text, top_ids, top_p))
    return texts


def _said(learner: Learner, texts: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
    """Logits [Σ counts, D] at the last so many tokens of each text."""
    ends = [len(ids) - 1 for ids in texts]
    rows = [
        (row, at)
        for row, (end, count) in enumerate(zip(ends, counts, strict=True))
        for at in range(end - count, end)
    ]
    ids = pad_sequence(list(texts), batch_first=True)
    return learner.read(ids, torch.tensor(rows, device=ids.device))[1].float()


def _prompts() -> list[str]:
    """OF_TOPIC prompts of each topic, evenly from its file, in turns."""
    topics = []
    for path in sorted((ASSETS / "prompts" / "train").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        topics.append([json.loads(lines[n * len(lines) // OF_TOPIC])["prompt"] for n in range(OF_TOPIC)])
    return [prompt for prompts in zip(*topics, strict=True) for prompt in prompts]
