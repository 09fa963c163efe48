"""Vocabulary maps on disk: built once for two tokenizers, read back at the next start."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from omnidemo.private_folders import replacing
from omnidemo.vocab.vocabulary import Vocabulary
from omnidemo.vocab.vocabulary_map import VocabularyMap

FORMAT = "1"  # changes with the way that maps are built, so that older files are not read
log = logging.getLogger(__name__)


def load_or_build(
    target: Vocabulary,
    drafter: Vocabulary,
    target_rows: int,
    drafter_rows: int,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
) -> VocabularyMap:
    """The map of two vocabularies for models with so many logit rows: from `folder` where it was kept, else built and kept there.

    A damaged or foreign file is built anew; a folder that cannot be written to is logged and nothing more. ValueError where the
    vocabularies share no token.
    """
    if folder is None:
        return VocabularyMap(target, drafter, target_rows, drafter_rows, device)
    key = hashlib.sha256(repr((FORMAT, target.digest, drafter.digest, target_rows, drafter_rows)).encode()).hexdigest()
    path = Path(folder) / f"{key[:32]}.safetensors"
    kept = _read(path, key, target_rows, drafter_rows)
    if kept is not None:
        return VocabularyMap.restore(target, drafter, *kept, device)
    built = VocabularyMap(target, drafter, target_rows, drafter_rows, device)
    try:
        _write(path, key, built.to_drafter.to("cpu", torch.int32), built.draftable.cpu())
    except OSError as error:
        log.warning("the vocabulary map cannot be kept in %s (%s); it will be built again at the next start", folder, error.strerror)
    return built


def _read(path: Path, key: str, target_rows: int, drafter_rows: int) -> tuple[Tensor, Tensor] | None:
    """`to_drafter` int64 and `draftable` as they were written, or None where there is no such file or not this one."""
    try:
        with safe_open(path, "pt") as opened:
            # Copies: the file may be replaced while its mapped memory is still in use.
            to_drafter, draftable = opened.get_tensor("to_drafter").clone(), opened.get_tensor("draftable").clone()
            whole = (opened.metadata() or {}).get("seal") == _seal(key, to_drafter, draftable)
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError) as error:
        log.warning("the vocabulary map %s cannot be read (%s); it is built again", path, error)
        return None
    # The seal covers types and contents; the sizes are looked at all the same, for they bound what the engine may index.
    if not whole or to_drafter.shape != (target_rows,) or draftable.shape != (drafter_rows,):
        log.warning("the vocabulary map %s is damaged or belongs to another pair; it is built again", path)
        return None
    return to_drafter.long(), draftable


def _write(path: Path, key: str, to_drafter: Tensor, draftable: Tensor) -> None:
    """A reader sees the whole file or none. OSError."""
    data = save({"to_drafter": to_drafter, "draftable": draftable}, {"seal": _seal(key, to_drafter, draftable)})
    with replacing(path) as partial:
        partial.write_bytes(data)


def _seal(key: str, to_drafter: Tensor, draftable: Tensor) -> str:
    found = hashlib.sha256(f"{key} {to_drafter.dtype} {draftable.dtype} {len(to_drafter)}".encode())
    found.update(to_drafter.numpy().tobytes())
    found.update(draftable.numpy().tobytes())
    return found.hexdigest()
