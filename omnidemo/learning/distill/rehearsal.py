"""Learning without forgetting (1606.09282): while a line learns, it is also held to what the base drafter
wrote after prompts of the project. Otherwise answers of one kind would cost the guesses of all others."""

from __future__ import annotations

import json
import logging
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

log = logging.getLogger(__name__)

OF_TOPIC = 4  # prompts of each topic
LENGTH = 96  # most tokens that the base drafter writes behind one
AT_ONCE = 4  # texts of a training step, in turns
KEPT = 64  # most probable tokens of a position; the others count together
WORK = 200_000_000  # most texts × parameters, so that a large drafter writes for seconds, not minutes
CHAT = "{begin}system\nYou are a helpful assistant.{end}\nuser\n{prompt}{end}\nassistant\n"


@dataclass(frozen=True, slots=True, eq=False)
class RehearsalText:
    """`ids` [L]: a prompt, and m tokens that the base drafter wrote behind it. `top_ids` and `top_p` [m, K]:
    at each of these the most probable tokens, and the base drafter's probabilities of them."""

    ids: Tensor
    top_ids: Tensor
    top_p: Tensor


_WRITTEN: dict[tuple[str, int, str], list[RehearsalText]] = {}  # by folder, seed and device


def loss(learner: Learner, texts: Sequence[RehearsalText], number: int) -> Tensor:
    """The mean divergence D(p ‖ q) in nats from the base drafter (p) to the learner as it is now (q), on the
    texts of the training step with this number."""
    start = number * AT_ONCE % len(texts)
    chosen = texts[start : start + AT_ONCE]
    top_ids, top_p = (torch.cat([getattr(text, name) for text in chosen]) for name in ("top_ids", "top_p"))
    logits = _said(learner, [text.ids for text in chosen], [len(text.top_p) for text in chosen])
    return losses.direct_divergence(logits, top_ids, top_p).mean()


def texts(learner: Learner, folder: Path, seed: int) -> list[RehearsalText]:
    """`written`, once in a process; none, with one warning, where that fails: then a line learns freely."""
    key = (str(folder), seed, str(learner.device))
    if key not in _WRITTEN:
        try:
            _WRITTEN[key] = written(learner, folder, seed)
        except Exception as error:  # of a tokenizer, of memory or of the device
            log.warning("Lines of %s learn without being held to its own words: %s", folder, error)
            _WRITTEN[key] = []
    return _WRITTEN[key]


@torch.no_grad()
def written(learner: Learner, folder: Path, seed: int) -> list[RehearsalText]:
    """The texts of a learner that has the base weights, drawn at temperature 1; fewer of a large drafter."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    begin, end = tokenizer.bos_token or "", tokenizer.eos_token or ""
    length = min(LENGTH, learner.context // 2)
    rows = learner.base.get_input_embeddings().num_embeddings
    size = sum(parameter.numel() for parameter in learner.base.parameters())
    asked = [
        tokenizer.encode(CHAT.format(begin=begin, end=end, prompt=prompt), add_special_tokens=False)
        for prompt in _prompts()[: max(1, WORK // (size * AT_ONCE)) * AT_ONCE]
    ]
    asked = [ids[: learner.context - length] for ids in asked if ids and max(ids) < rows]
    if not asked:
        return []
    longest = max(map(len, asked))
    ids, mask = (
        torch.tensor([[0] * (longest - len(given)) + one for given, one in zip(asked, padded, strict=True)])
        for padded in (asked, [[1] * len(given) for given in asked])
    )
    ids, mask = ids.to(learner.device), mask.to(learner.device)
    with torch.random.fork_rng(devices=[learner.device] if learner.device.type == "cuda" else []):
        torch.manual_seed(seed)
        answers = learner.base.generate(
            input_ids=ids, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            max_new_tokens=length, pad_token_id=0,
        )[:, ids.shape[1] :]  # fmt: skip
    ending = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    found = []
    for prompt, known, answer in zip(ids, mask.bool(), answers, strict=True):
        ends = torch.isin(answer, answer.new_tensor(ending)).nonzero()
        own = answer[: int(ends[0]) + 1] if len(ends) else answer
        text = torch.cat([prompt[known], own])
        p = _said(learner, [text], [len(own)]).softmax(-1)
        top_p, top_ids = p.topk(min(KEPT, p.shape[1]))
        found.append(RehearsalText(text, top_ids, top_p))
    return found


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
