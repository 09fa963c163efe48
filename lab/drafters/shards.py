"""Answers of a target in files that are small enough to be committed: `NNN.npz`.

Of a prompt a file has name and hash alone: its ids are made anew from the prompt files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_LZMA, ZipFile

import numpy as np

from omnidemo.backends.batched_writer import WrittenAnswer, order_of

Prompts = Callable[[str, str], list[int]]  # from set and id to a prompt's ids
WHOLE = 255  # a probability of 1


def hash_of(ids: Sequence[int]) -> int:
    return zlib.crc32(np.array(ids, np.uint32).tobytes())


def save(folder: Path, facts: Mapping[str, Any], answers: Sequence[WrittenAnswer]) -> Path:
    """Write a new file. `facts`: how the answers were made."""
    labels, probs = (np.concatenate([getattr(one, name) for one in answers]) for name in ("labels", "probs"))
    ids, there = np.concatenate([one.ids for one in answers]), labels >= 0
    head = [
        [one.set, one.id, hash_of(one.prompt), len(one.ids), one.reason, one.temperature, one.penalty]
        for one in answers
    ]
    arrays = {
        "facts": np.frombuffer(json.dumps({**facts, "answers": head}).encode(), np.uint8),
        # bytes of the same worth side by side are more alike
        "ids": ids.astype(np.uint32).view(np.uint8).reshape(-1, 4).T,
        "counts": there.sum(1).astype(np.uint8),
        "labels": labels[there].astype(np.uint32).view(np.uint8).reshape(-1, 4).T,
        "probs": np.rint(probs[there] * WHOLE).astype(np.uint8),
    }
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".new-{answers[0].set}-{answers[0].id}"
    with ZipFile(partial, "w", ZIP_LZMA) as whole:
        for name, array in arrays.items():
            with whole.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array))
    number = len(list(folder.glob("*.npz")))
    while True:
        path = folder / f"{number:03d}.npz"
        try:
            path.hardlink_to(partial)  # never another process's file
        except FileExistsError:
            number += 1
            continue
        partial.unlink()
        return path


def facts_of(path: Path) -> dict[str, Any]:
    """How a file's answers were made, and (set, id, hash, tokens, reason, temperature, penalty) of each."""
    with np.load(path) as arrays:
        return dict(json.loads(arrays["facts"].tobytes()))


def done(folder: Path) -> dict[str, int]:
    """The orders that the files of a folder hold, with the tokens of each answer."""
    heads = (head for path in sorted(folder.glob("*.npz")) for head in facts_of(path)["answers"])
    return {order_of(name, prompt, heat): tokens for name, prompt, _, tokens, _, heat, _ in heads}


def read_shards(folder: Path, target: str, prompts: Prompts) -> Iterator[WrittenAnswer]:
    """A target's answers, out of all files in a folder and those below it. ValueError for a prompt that is
    another one than was answered."""
    for path in sorted(folder.rglob("*.npz")):
        facts = facts_of(path)
        if facts["target"] != target:
            continue
        with np.load(path) as arrays:
            flat, written = (
                np.ascontiguousarray(arrays[name].T).view(np.uint32)[:, 0].astype(np.int32)
                for name in ("labels", "ids")
            )
            counts, weights = arrays["counts"], arrays["probs"].astype(np.float32) / WHOLE
        there = np.arange(counts.max(initial=1)) < counts[:, None]
        labels, probs = np.full(there.shape, -1, np.int32), np.zeros(there.shape, np.float32)
        labels[there], probs[there] = flat, weights
        at = 0
        for name, prompt, sum_, tokens, reason, heat, penalty in facts["answers"]:
            ids, here = prompts(name, prompt), slice(at, at + tokens)
            if hash_of(ids) != sum_:
                raise ValueError(
                    f"{path.name} answers another prompt {name}/{prompt} than the prompt files have; take "
                    f"those of {facts['prompts']!r}"
                )
            yield WrittenAnswer(
                name, prompt, heat, reason, ids, written[here].tolist(), labels[here], probs[here], penalty
            )
            at += tokens
