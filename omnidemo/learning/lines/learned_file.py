"""One file with all that was learned for a target: the adapter in PEFT's format, n-grams and memory.

It is a zip in PEFT's format with two more members, which PEFT passes over: `learned.json` says what it was
made for and how; `learned.safetensors` has ids. The answers are in it as ids, no prompt is.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from omnidemo.core.private_folders import replacing
from omnidemo.models.adapters.adapter_state import StoredVersion
from omnidemo.models.adapters.peft_export import export_peft
from omnidemo.models.weights_digest import weights_digest
from omnidemo.pair.pair import Pair

FACTS, IDS = "learned.json", "learned.safetensors"
MOST_FACTS, MOST_IDS = 1 << 20, 64 << 20  # bytes
AGAIN = "make it again with `omnidemo learn`"


@dataclass(frozen=True, slots=True)
class Learned:
    """`ngrams`: (target id, drafter ids). `answers`: target ids, the oldest first. `facts`: names and digests
    of target and drafter, and how the file was made."""

    ngrams: Sequence[tuple[int, Sequence[int]]] = ()
    answers: Sequence[Sequence[int]] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def facts_of(pair: Pair, **more: Any) -> dict[str, Any]:
    """What a file says it was made for."""
    return {
        "target": pair.target.name, "target_digest": weights_digest(pair.target.folder),
        "drafter": pair.drafter.name, "drafter_digest": weights_digest(pair.drafter.folder), **more,
    }  # fmt: skip


def write_learned(file: Path, version: StoredVersion, learned: Learned) -> Path:
    """Write a file, whole or not at all. OSError; ValueError for a full fine-tuning."""
    with replacing(file) as partial:
        export_peft(version, partial)
        with zipfile.ZipFile(partial, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(FACTS, json.dumps(dict(learned.facts), indent=1))
            archive.writestr(IDS, _packed(learned))
    return file


def read_learned(file: Path, pair: Pair) -> Learned | None:
    """What a file holds beside its adapter; None for a zip or folder of PEFT's alone. ValueError, one
    sentence, for a damaged file and for that of another target or drafter."""
    try:
        with zipfile.ZipFile(file) as archive:
            if FACTS not in archive.namelist():
                return None
            facts = json.loads(_bytes(archive, FACTS, MOST_FACTS))
            tensors = load(_bytes(archive, IDS, MOST_IDS))
        if not isinstance(facts, dict):
            raise ValueError(f"{FACTS} is no object")
        ngrams = list(zip(_ids(tensors["ngram_targets"]), _parts(tensors, "ngrams"), strict=True))
        found = Learned(ngrams, _parts(tensors, "answers"), facts)
        check_ids(found, pair)
    except (IsADirectoryError, FileNotFoundError, zipfile.BadZipFile):
        return None  # which the reader of adapters tells
    except (OSError, KeyError, ValueError, RuntimeError, SafetensorError, RecursionError) as error:
        raise ValueError(f"{file.name} is damaged ({error}): {AGAIN}.") from None
    own = facts_of(pair)
    for role in ("target", "drafter"):
        name, digest = found.facts.get(role), found.facts.get(f"{role}_digest")
        if digest != own[f"{role}_digest"]:
            other = "other weights of that name" if name == own[role] else str(own[role])
            raise ValueError(
                f"{file.name} was learned for the {role} {str(name)[:80]} ({str(digest)[:12]}), and here is"
                f" {other} ({own[f'{role}_digest']}): choose the {role} it was made for, or {AGAIN}."
            )
    return found


def check_ids(learned: Learned, pair: Pair) -> None:
    """ValueError for ids that target or drafter do not have."""
    targets, drafters = pair.target.runner.rows, pair.drafter.runner.rows
    for ids, rows in (
        ([target for target, _ in learned.ngrams], targets),
        ([one for _, spelled in learned.ngrams for one in spelled], drafters),
        ([one for answer in learned.answers for one in answer], targets),
    ):
        if ids and not 0 <= min(ids) <= max(ids) < rows:
            raise ValueError("an id is out of the vocabulary")


def keep_memory(file: Path, learned: Learned) -> None:
    """Keep the answers of a line's file beside its versions."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as partial:
        partial.write_bytes(_packed(Learned(answers=learned.answers)))


def kept_memory(file: Path) -> list[list[int]]:
    """The answers that `keep_memory` has kept; none where there are none."""
    try:
        return _parts(load(file.read_bytes()), "answers")
    except (OSError, KeyError, ValueError, SafetensorError):
        return []


def _packed(learned: Learned) -> bytes:
    return save(
        {
            "ngram_targets": _tensor([target for target, _ in learned.ngrams]),
            **_joined("ngrams", [spelled for _, spelled in learned.ngrams]),
            **_joined("answers", learned.answers),
        }
    )


def _bytes(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    size = archive.getinfo(name).file_size
    if size > most:
        raise ValueError(f"{name} has {size:,} bytes, more than the {most:,} that are read")
    return archive.read(name)


def _tensor(ids: Sequence[int]) -> Tensor:
    return torch.from_numpy(np.array(ids, np.int32))


def _joined(name: str, rows: Iterable[Sequence[int]]) -> dict[str, Tensor]:
    """Rows of ids as one row and where each ends."""
    rows = list(rows)
    return {
        name: _tensor([one for row in rows for one in row]),
        f"{name}_ends": _tensor(np.cumsum([len(row) for row in rows], dtype=np.int64).tolist()),
    }


def _ids(tensor: Tensor) -> list[int]:
    if tensor.dim() != 1 or tensor.dtype != torch.int32:
        raise ValueError("ids are no row of whole numbers")
    return list(tensor.tolist())


def _parts(tensors: Mapping[str, Tensor], name: str) -> list[list[int]]:
    ids, ends = _ids(tensors[name]), _ids(tensors[f"{name}_ends"])
    bounds = [0, *ends]
    if any(after < before for before, after in pairwise(bounds)) or bounds[-1] != len(ids):
        raise ValueError("rows do not fill their ids")
    return [ids[before:after] for before, after in pairwise(bounds)]
