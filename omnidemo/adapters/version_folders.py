"""Adapter versions as folders: written whole or not at all, checked when read, merged into the drafter's
weights."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from safetensors.torch import load, save
from torch import Tensor

from omnidemo.private_folders import replacing
from omnidemo.records import AdapterVersion

WEIGHTS, CONFIG, OPTIMISER, MANIFEST = (
    "adapter_model.safetensors",
    "adapter_config.json",
    "optimizer.safetensors",
    "manifest.json",
)
HEAD = "head.safetensors"  # of the acceptance head, in the versions that have one
FILES = {WEIGHTS, CONFIG, OPTIMISER, MANIFEST, HEAD}
GONE = ".gone-"  # before the name of a folder that is being removed
PREFIX = "base_model.model."  # PEFT's, before the name of the base model's parameter
# magnitude of a weight: trained ones stay below 1,000, and products of larger ones leave float32
LARGEST = 1e9
# files beside the versions: which one drafts, and the last one that was better, or chosen by hand
Note = Literal["active", "trusted"]


@dataclass(frozen=True, slots=True, eq=False)
class AdapterState:
    """A LoRA adapter: `weights` under PEFT's names (`….lora_A.weight` [r, in], `….lora_B.weight` [out, r],
    float32, CPU) and PEFT's configuration as plain JSON values. With the configuration {"peft_type": "FULL"}
    the weights are whole matrices under the base model's names. `head` are the weights of the acceptance head
    (`adapters/acceptance_head.py`), if there is one."""

    weights: Mapping[str, Tensor]
    config: Mapping[str, Any]
    head: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether this is a full fine-tuning, not a LoRA adapter."""
        return self.config.get("peft_type") == "FULL"


@dataclass(frozen=True, slots=True, eq=False)
class OptimiserState:
    """AdamW: steps taken in this line, its moments as `exp_avg.<weight>` and `exp_avg_sq.<weight>`, and the
    weights that it moves as `weight.<weight>` (the adapter holds their running average)."""

    step: int
    moments: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class StoredVersion:
    info: AdapterVersion
    adapter: AdapterState
    optimiser: OptimiserState


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


def write_version(
    line: Path, info: AdapterVersion, adapter: AdapterState, optimiser: OptimiserState
) -> AdapterVersion:
    """Write a version and return its record with path and sha256. It appears in one rename. Raises
    OSError."""
    contents = {
        WEIGHTS: save(_plain(adapter.weights), {"format": "pt"}),
        CONFIG: _json(dict(adapter.config)),
        OPTIMISER: save(_plain(optimiser.moments), {"step": str(optimiser.step)}),
    }
    if adapter.head:
        contents[HEAD] = save(_plain(adapter.head), {"format": "pt"})
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    stored = replace(info, path=str(version_folder(line, info.version)), sha256=sums[WEIGHTS])
    manifest = {key: value for key, value in asdict(stored).items() if key not in ("path", "drafter")}
    contents[MANIFEST] = _json(manifest | {"base": info.drafter, "files": sums})
    write_files(line, info.version, contents)
    return stored


def read_files(folder: Path) -> dict[str, bytes]:
    """The files of a version by name, as `write_files` takes them. Raises OSError."""
    return {entry.name: entry.read_bytes() for entry in Path(folder).iterdir() if entry.is_file()}


def info_of(line: Path, version: int) -> AdapterVersion | None:
    """The record of a version; None where there is none, or it is damaged (`load_version` says so when the
    version is used)."""
    try:
        return _read_manifest(version_folder(line, version))[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _read_manifest(folder: Path) -> tuple[AdapterVersion, dict[str, str]]:
    """The record of a version, and the sha256 of each file. Raises whatever a damaged one makes happen."""
    found = json.loads((folder / MANIFEST).read_bytes())
    sums = found.pop("files")
    return AdapterVersion(drafter=found.pop("base"), path=str(folder), **found), sums


def write_files(line: Path, version: int, contents: Mapping[str, bytes]) -> None:
    """Write a version's files. The folder appears in one rename, in the place of one of that number. Raises
    OSError."""
    final = version_folder(line, version)
    fresh = line / f".new-{os.getpid()}-{final.name}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        for name, data in contents.items():
            _write(fresh / name, data)
        _sync_folder(fresh)
        if final.exists():
            _remove(final)
        os.rename(fresh, final)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync_folder(line)


def load_version(path: Path) -> StoredVersion:
    """Read a version folder. Raises ValueError, in one sentence, where it is missing, incomplete or
    damaged."""
    path = Path(path)
    try:
        info, sums = _read_manifest(path)
        names = [WEIGHTS, CONFIG, OPTIMISER, *([HEAD] if HEAD in sums else [])]
        contents = {name: (path / name).read_bytes() for name in names}
        for name, data in contents.items():
            if hashlib.sha256(data).hexdigest() != sums[name]:
                raise ValueError(f"{name} does not match its checksum")
        with safe_open(path / OPTIMISER, "pt") as opened:
            step = int(opened.metadata()["step"])
        head = load(contents[HEAD]) if HEAD in contents else {}
        adapter = AdapterState(load(contents[WEIGHTS]), json.loads(contents[CONFIG]), head)
        return StoredVersion(info, adapter, OptimiserState(step, load(contents[OPTIMISER])))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise ValueError(
            f"The adapter version in {path} is incomplete: {missing} is missing; use another version."
        ) from None
    except Exception as error:
        raise ValueError(
            f"The adapter version in {path} is damaged ({error}); use another version."
        ) from error


def prune(line: Path, keep: int, *needed: int) -> list[int]:
    """Remove all but the newest `keep` versions and those that are `needed`; the numbers that are to go."""
    gone = [version for version in versions(line)[keep:] if version not in needed]
    for version in gone:
        with contextlib.suppress(OSError):  # what stays now goes with the next version
            _remove(version_folder(line, version))
    return gone


def sweep(line: Path) -> None:
    """Remove what an interrupted write or removal left behind."""
    for leftover in (*line.glob(".new-*"), *line.glob(f"{GONE}*"), line.with_name(GONE + line.name)):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def remove_line(line: Path) -> None:
    """Remove a line's versions. Raises OSError."""
    if line.is_dir():
        _remove(line)


def _remove(folder: Path) -> None:
    """Remove a folder. It is renamed first, so that a reader, or a restart after a kill, finds all of it or
    nothing."""
    gone = folder.with_name(GONE + folder.name)
    shutil.rmtree(gone, ignore_errors=True)
    os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def read_note(line: Path, note: Note) -> int | None:
    """The version that was noted as active or trusted last; None where none was."""
    try:
        return int((line / note).read_text())
    except (OSError, ValueError):
        return None


def write_note(line: Path, note: Note, version: int) -> None:
    """Note the active or trusted version, in one rename. Raises OSError."""
    with replacing(line / note) as partial:
        _write(partial, str(version).encode())
    _sync_folder(line)


class BaseWeights(Mapping[str, Tensor]):
    """A drafter folder's safetensors, read tensor by tensor when asked for, so that no second copy stays in
    memory."""

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
    if adapter.whole:
        return list(adapter.weights)
    ending = ".lora_A.weight"
    return [
        name.removeprefix(PREFIX).removesuffix(ending) + ".weight"
        for name in adapter.weights
        if name.endswith(ending)
    ]


def base_matrices(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """The base weights, in float32, of the matrices that the adapter changes. Raises ValueError where one is
    missing."""
    try:
        return {name: base[name].float() for name in changed_names(adapter)}
    except KeyError as error:
        raise ValueError(
            f"The adapter changes {error}, which the drafter does not have: it belongs to another drafter."
        ) from None


def merged_weights(base: Mapping[str, Tensor], adapter: AdapterState) -> dict[str, Tensor]:
    """Full weights, in float32, of the changed matrices only, under the base model's parameter names: W +
    (alpha/r)·B·A, or those of a full fine-tuning as they are. Raises ValueError where the adapter does not
    fit the base, or a weight would be no finite number: finite A and B say nothing about their product."""
    merged = {}
    for name, matrix in base_matrices(base, adapter).items():
        change = adapter.weights[name].float() if adapter.whole else _delta(adapter, name)
        if change.shape != matrix.shape:
            shapes = f"{tuple(change.shape)}, the drafter's {tuple(matrix.shape)}"
            raise ValueError(f"The adapter's {name} is {shapes}: it belongs to another drafter.")
        merged[name] = change if adapter.whole else matrix + change
        if not bool((merged[name].abs() < LARGEST).all()):  # also where it is not a number
            raise ValueError(
                f"The adapter makes weights of {name} that are not finite or too large to compute with: use"
                " another one."
            )
    return merged


def _delta(adapter: AdapterState, name: str) -> Tensor:
    stem = PREFIX + name.removesuffix(".weight")
    scale = float(adapter.config["lora_alpha"]) / float(adapter.config["r"])
    delta = scale * (
        adapter.weights[f"{stem}.lora_B.weight"].float() @ adapter.weights[f"{stem}.lora_A.weight"].float()
    )
    return delta.T if adapter.config.get("fan_in_fan_out") else delta


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
