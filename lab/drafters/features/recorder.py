"""What a target's output layer reads along its recorded answers: `python -m lab feature-rows`.

A file `TARGET-NUMBER.npy` beside each shard's name has the states [tokens + answers, H] in float16: of each
answer one more than it has tokens, the first behind all of its prompt but the last id. `embedding.npy` and
`head.npy` are the target's own matrices [V, H].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.drafters.shards import Recorded, read_shard
from lab.drafters.training.pause import hold
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.core.private_folders import replacing
from omnidemo.decoding.sampling import as_array
from omnidemo.models.load import LanguageModel

MATRICES = {"embedding": "model.embed_tokens.weight", "head": "lm_head.weight"}


@dataclass(slots=True)
class Walk:
    """An answer of n tokens, and the states [n + 1, H] along it: what is behind all of the prompt but its
    last id, behind that, and behind each token but the last."""

    answer: Recorded
    states: NDArray[np.float16]

    @property
    def ids(self) -> list[int]:
        """The last id of the prompt, and the answer's: `ids[i]` was read behind `states[i]`."""
        return [self.answer.prompt[-1], *self.answer.ids]


def record(
    model: LanguageModel, shards: Path, target: str, out: Path, most: int, report: Callable[[str], None],
    pause: Path | None = None,
) -> int:  # fmt: skip
    """Read the answers of a target's shards again, until there are states of `most` tokens; returns of how
    many there are. What is in `out` is not read again."""
    runner = model.runner
    if not isinstance(runner, FusedLlama):
        raise ValueError(f"{model.name} has no Llama or Qwen shape, so its states cannot be recorded")
    runner.threads = torch.get_num_threads()
    out.mkdir(parents=True, exist_ok=True)
    _keep_matrices(runner, out)
    total = 0
    for path in sorted(shards.glob(f"{target}-*.jsonl")):
        if total >= most:
            break
        answers, there = list(read_shard(path)), out / f"{path.stem}.npy"
        if not there.exists():
            with replacing(there) as partial, partial.open("wb") as file:
                np.save(file, np.concatenate([_states(runner, one, pause) for one in answers]))
        total += sum(len(one.ids) for one in answers)
        report(f"{total:,} tokens")
    return total


def _states(runner: FusedLlama, answer: Recorded, pause: Path | None) -> NDArray[np.float16]:
    hold(pause)
    ids = [*answer.prompt, *answer.ids[:-1]]
    count = len(answer.ids) + 1
    hidden = runner.new_cache().forward(ids, min(count, len(ids))).hidden[-count:]
    states = np.zeros((count, runner.width), np.float16)
    states[count - len(hidden) :] = as_array(hidden)  # a prompt of one id has nothing before it
    return states


def _keep_matrices(runner: FusedLlama, out: Path) -> None:
    named = runner.named(runner.forms()[0])
    for name, of in MATRICES.items():
        if of in named and not (out / f"{name}.npy").exists():
            matrix = named[of]
            values = matrix.values() if isinstance(matrix, PackedMatrix) else matrix
            np.save(out / f"{name}.npy", values.astype(np.float16))


def walks(shards: Path, target: str, states: Path) -> Iterator[Walk]:
    """The answers of a target's shards, as far as their states are recorded."""
    for path in sorted(shards.glob(f"{target}-*.jsonl")):
        if (found := states / f"{path.stem}.npy").exists():
            rows, at = np.load(found, mmap_mode="r"), 0
            for answer in read_shard(path):
                end = at + len(answer.ids) + 1
                yield Walk(answer, np.array(rows[at:end]))
                at = end


def matrices(states: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """The target's embedding and output layer [V, H], which may be one."""
    embedding = np.load(states / "embedding.npy", mmap_mode="r")
    head = states / "head.npy"
    return embedding, np.load(head, mmap_mode="r") if head.exists() else embedding
