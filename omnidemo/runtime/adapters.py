"""Adapter versions as folders: written whole or not at all, checked when read, merged into the drafter's weights."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load, save
from torch import Tensor

from omnidemo.records import AdapterVersion

WEIGHTS, CONFIG, OPTIMISER, MANIFEST = "adapter_model.safetensors", "adapter_config.json", "optimizer.safetensors", "manifest.json"
ACTIVE = "active"
PREFIX = "base_model.model."  # PEFT's, before the name of the base model's parameter


@dataclass(frozen=True, slots=True, eq=False)
class AdapterState:
    """A LoRA adapter: `weights` under PEFT's names (`….lora_A.weight` [r, in], `….lora_B.weight` [out, r], float32, CPU) and
    PEFT's configuration as plain JSON values."""

    weights: Mapping[str, Tensor]
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class OptimiserState:
    """AdamW: steps taken in this line, its moments as `exp_avg.<weight>` and `exp_avg_sq.<weight>`, and the weights that it moves as
    `weight.<weight>` (the adapter holds their running average)."""

    step: int
    moments: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class StoredVersion:
    info: AdapterVersion
    adapter: AdapterState
    optimiser: OptimiserState


# --- folders -------------------------------------------------------------------------------------------------------------


def safe_name(name: str) -> str:
    """A folder name for any model name: readable, and different for different names on every file system."""
    readable = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[-60:].strip("-.") or "model"
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def line_folder(storage: Path, drafter: str, target: str, domain: str) -> Path:
    return Path(storage) / "adapters" / safe_name(drafter) / safe_name(target) / safe_name(domain)


def version_folder(line: Path, version: int) -> Path:
    return line / f"v{version:06d}"


def versions(line: Path) -> list[int]:
    """Numbers of the versions of a line, newest first; damaged ones too."""
    if not line.is_dir():
        return []
    found = (re.fullmatch(r"v(\d{6,})", entry.name) for entry in line.iterdir() if entry.is_dir())
    return sorted((int(match[1]) for match in found if match), reverse=True)


def write_version(line: Path, info: AdapterVersion, adapter: AdapterState, optimiser: OptimiserState) -> AdapterVersion:
    """Write a version and return its record with path and sha256. It appears in one rename. Raises OSError."""
    final = version_folder(line, info.version)
    fresh = line / f".new-{final.name}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    contents = {
        WEIGHTS: save(_plain(adapter.weights), {"format": "pt"}),
        CONFIG: _json(dict(adapter.config)),
        OPTIMISER: save(_plain(optimiser.moments), {"step": str(optimiser.step)}),
    }
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    stored = replace(info, path=str(final), sha256=sums[WEIGHTS])
    manifest = {key: value for key, value in asdict(stored).items() if key not in ("path", "drafter")}
    contents[MANIFEST] = _json(manifest | {"base": info.drafter, "files": sums})
    try:
        for name, data in contents.items():
            _write(fresh / name, data)
        _sync_folder(fresh)
        os.rename(fresh, final)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync_folder(line)
    return stored


def load_version(path: Path) -> StoredVersion:
    """Read a version folder. Raises ValueError, in one sentence, where it is missing, incomplete or damaged."""
    path = Path(path)
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        sums = manifest.pop("files")
        contents = {name: (path / name).read_bytes() for name in (WEIGHTS, CONFIG, OPTIMISER)}
        for name, data in contents.items():
            if hashlib.sha256(data).hexdigest() != sums[name]:
                raise ValueError(f"{name} does not match its checksum")
        with safe_open(path / OPTIMISER, "pt") as opened:
            step = int(opened.metadata()["step"])
        info = AdapterVersion(drafter=manifest.pop("base"), path=str(path), **manifest)
        adapter = AdapterState(load(contents[WEIGHTS]), json.loads(contents[CONFIG]))
        return StoredVersion(info, adapter, OptimiserState(step, load(contents[OPTIMISER])))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise ValueError(f"The adapter version in {path} is incomplete: {missing} is missing; use another version.") from None
    except Exception as error:
        raise ValueError(f"The adapter version in {path} is damaged ({error}); use another version.") from error


def prune(line: Path, keep: int, active: int) -> list[int]:
    """Remove all but the newest `keep` versions and the active one; the numbers removed."""
    gone = [version for version in versions(line)[keep:] if version != active]
    for version in gone:
        shutil.rmtree(version_folder(line, version), ignore_errors=True)
    return gone


def sweep(line: Path) -> None:
    """Remove what an interrupted write left behind."""
    for leftover in line.glob(".new-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def remove_line(line: Path) -> None:
    """Remove a line's versions. It is out of sight in one rename. Raises OSError."""
    if line.is_dir():
        gone = line.with_name(f".gone-{line.name}")
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(line, gone)
        shutil.rmtree(gone, ignore_errors=True)


def read_active(line: Path) -> int | None:
    """The version that was active last; None where none was noted."""
    try:
        return int((line / ACTIVE).read_text())
    except (OSError, ValueError):
        return None


def write_active(line: Path, version: int) -> None:
    """Note the active version. Raises OSError."""
    line.mkdir(parents=True, exist_ok=True)
    _write(line / ".new-active", str(version).encode())
    os.replace(line / ".new-active", line / ACTIVE)
    _sync_folder(line)


# --- weights -------------------------------------------------------------------------------------------------------------


class BaseWeights(Mapping[str, Tensor]):
    """A drafter folder's safetensors, read tensor by tensor when asked for, so that no second copy stays in memory."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError where the folder has no safetensors."""
        self._files: dict[str, Path] = {}
        for file in sorted(Path(folder).glob("*.safetensors")):
            with safe_open(file, "pt") as opened:
                self._files |= dict.fromkeys(opened.keys(), file)
        if not self._files:
            raise ValueError(f"No safetensors weights in {folder}: convert the drafter to safetensors first.")

    def __getitem__(self, name: str) -> Tensor:
        # Old checkpoints lack the model's prefix ("h.0.…" for "transformer.h.0.…").
        for key in (name, name.partition(".")[2]):
            if key in self._files:
                with safe_open(self._files[key], "pt") as opened:
                    return opened.get_tensor(key)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def changed_names(adapter: AdapterState) -> list[str]:
    """Names of the base model's matrices that the adapter changes."""
    ending = ".lora_A.weight"
    return [name.removeprefix(PREFIX).removesuffix(ending) + ".weight" for name in adapter.weights if name.endswith(ending)]


def base_matrices(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """The base weights, in float32, of the matrices that the adapter changes. Raises ValueError where one is missing."""
    try:
        return {name: base[name].float() for name in changed_names(adapter)}
    except KeyError as error:
        raise ValueError(f"The adapter changes {error}, which the drafter does not have: it belongs to another drafter.") from None


def merged_weights(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """Full weights W + (alpha/r)·B·A, in float32, of the changed matrices only, under the base model's parameter names.

    Raises ValueError where the adapter does not fit the base.
    """
    scale = float(adapter.config["lora_alpha"]) / float(adapter.config["r"])
    merged = {}
    for name, matrix in base_matrices(base, adapter).items():
        stem = PREFIX + name.removesuffix(".weight")
        delta = scale * (adapter.weights[f"{stem}.lora_B.weight"].float() @ adapter.weights[f"{stem}.lora_A.weight"].float())
        delta = delta.T if adapter.config.get("fan_in_fan_out") else delta
        if delta.shape != matrix.shape:
            shapes = f"{tuple(delta.shape)}, the drafter's {tuple(matrix.shape)}"
            raise ValueError(f"The adapter's {name} is {shapes}: it belongs to another drafter.")
        merged[name] = matrix + delta
    return merged


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in tensors.items()}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
