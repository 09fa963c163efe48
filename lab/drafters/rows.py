"""Rows of tokens to train a drafter on, several chats in each, in the files that `training/training_loop.py`
reads."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.drafters.spelling import LABELS, Spelled
from lab.drafters.training.row_files import SHARD_TOKENS, shard_path
from omnidemo.core.private_folders import replacing

CHANNELS = 3 + 2 * LABELS  # ids, mask, beginning of the chat, labels, their weights
WINDOW = 256  # chats among which one is looked for that still fits


@dataclass(slots=True)
class Chat:
    set: str
    block: NDArray[np.uint16]  # [CHANNELS, tokens], its beginning 0


def chat_of(name: str, spelled: Spelled, whole: bool = False) -> Chat:
    """whole: learn the prompt too, not the answer alone."""
    block = np.zeros((CHANNELS, len(spelled.ids)), np.uint16)
    block[0] = spelled.ids
    block[1, 1 if whole else spelled.first :] = 1
    block[3 : 3 + LABELS] = spelled.label_ids.T
    block[3 + LABELS :] = spelled.label_weights.T
    return Chat(name, block)


def pack(chats: Sequence[Chat], length: int, pad: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """Rows [CHANNELS, length] of all chats in a random order. One that is longer than a row is cut at its
    end."""
    waiting = random.Random(seed).sample(list(chats), len(chats))
    waiting.reverse()
    while waiting:
        row = np.zeros((CHANNELS, length), np.uint16)
        row[0] = pad
        at = 0
        while waiting:
            near = range(len(waiting) - 1, max(-1, len(waiting) - 1 - WINDOW), -1)
            fits = (place for place in near if waiting[place].block.shape[1] <= length - at)
            place = next(fits, None if at else len(waiting) - 1)
            if place is None:
                break
            block = waiting.pop(place).block[:, : length - at]
            row[:, at : at + block.shape[1]] = block
            row[2, at : at + block.shape[1]] = at
            at += block.shape[1]
        row[2, at:] = at if at < length else 0
        yield row


def write_rows(chats: Sequence[Chat], folder: Path, length: int, pad: int, epochs: int, seed: int = 0) -> int:
    """Write so many epochs, and return how many rows there are. What does not fill a file is filled up from a
    further epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    each = SHARD_TOKENS // length
    stream = (row for epoch in itertools.count() for row in pack(chats, length, pad, seed + epoch))
    wanted = epochs * sum(1 for _ in pack(chats, length, pad, seed))
    files = -(-wanted // each)
    for number in range(files):
        with replacing(shard_path(folder, length, number)) as partial, partial.open("wb") as file:
            np.save(file, np.stack(list(itertools.islice(stream, each))))
    counts, learned = Counter(chat.set for chat in chats), Counter[str]()
    for chat in chats:
        learned[chat.set] += int(chat.block[1].sum())
    stats = {
        "chats": dict(counts),
        "learned_tokens": dict(learned),
        "rows": files * each,
        "length": length,
        "epochs": epochs,
    }
    with replacing(folder / "stats.json") as partial:
        partial.write_text(json.dumps(stats))
    return files * each
