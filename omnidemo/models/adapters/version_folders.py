"""Adapter versions as folders, written atomically and checked when read. `storage/version_store.py` and
`storage/line_versions.py` own them: all other code asks these."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from safetensors import safe_open
from safetensors.torch import load

from omnidemo.core.private_folders import replacing
from omnidemo.models.adapters.adapter_state import (
    CONFIG,
    WEIGHTS,
    AdapterState,
    AdapterVersion,
    OptimiserState,
    StoredVersion,
    packed,
)

OPTIMISER, MANIFEST = "optimizer.safetensors", "manifest.json"
HEAD = "head.safetensors"  # of the acceptance head, in the versions that have one
FILES = {WEIGHTS, CONFIG, OPTIMISER, MANIFEST, HEAD}
FOLDER = "adapters"  # of the storage
NEW, GONE = ".new-", ".gone-"  # before the name of a folder that is being written, or removed
UNFINISHED = (f"{NEW}*", f"{GONE}*")
# files beside the versions: which one drafts, and the last one that was better, or chosen by hand
Note = Literal["active", "trusted"]


def safe_name(name: str) -> str:
    """A folder name for any model name: readable, and unique on every file system."""
    readable = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[-60:].strip("-.") or "model"
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def line_folder(storage: Path, drafter: str, target: str, domain: str) -> Path:
    return Path(storage) / FOLDER / safe_name(drafter) / safe_name(target) / safe_name(domain)


def lines_of(storage: Path, drafter: str = "", target: str = "") -> Iterator[Path]:
    """The folders of a pair's lines, or of all pairs. Raises OSError."""
    if drafter:
        pair = line_folder(storage, drafter, target, "").parent
        yield from (folder for folder in pair.iterdir() if not folder.name.startswith("."))
    else:
        yield from Path(storage).glob(f"{FOLDER}/*/*/*")


def changed_at(line: Path) -> float:
    """The UNIX time of a line's last change; 0 where it cannot be read."""
    try:
        return max((entry.stat().st_mtime for entry in (line, *line.iterdir())), default=0.0)
    except OSError:
        return 0.0


def version_folder(line: Path, version: int) -> Path:
    return line / f"v{version:06d}"


def versions(line: Path) -> list[int]:
    """Version numbers of a line, newest first, damaged ones included."""
    if not line.is_dir():
        return []
    names = (re.fullmatch(r"v(\d{6,})", entry.name) for entry in line.iterdir() if entry.is_dir())
    return sorted((int(name[1]) for name in names if name), reverse=True)


def write_version(
    line: Path, info: AdapterVersion, adapter: AdapterState, optimiser: OptimiserState
) -> AdapterVersion:
    """Write a version in one rename; returns its record with path and sha256. Raises OSError."""
    contents = {
        WEIGHTS: packed(adapter.weights, format="pt"),
        CONFIG: _json(dict(adapter.config)),
        OPTIMISER: packed(optimiser.moments, step=str(optimiser.step)),
    }
    if adapter.head:
        contents[HEAD] = packed(adapter.head, format="pt")
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    stored = replace(info, path=str(version_folder(line, info.version)), sha256=sums[WEIGHTS])
    manifest = {key: value for key, value in asdict(stored).items() if key not in ("path", "drafter")}
    contents[MANIFEST] = _json(manifest | {"base": info.drafter, "files": sums})
    write_files(line, info.version, contents)
    return stored


def info_of(line: Path, version: int) -> AdapterVersion | None:
    """The record of a version; None where there is none, or it is damaged (`load_version` reports that when
    the version is used)."""
    try:
        return _read_manifest(version_folder(line, version))[0]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _read_manifest(folder: Path) -> tuple[AdapterVersion, dict[str, str]]:
    """(the record of a version, the sha256 of each file). Raises whatever a damaged one causes."""
    facts = json.loads((folder / MANIFEST).read_bytes())
    sums = facts.pop("files")
    return AdapterVersion(drafter=facts.pop("base"), path=str(folder), **facts), sums


def write_files(line: Path, version: int, contents: Mapping[str, bytes]) -> None:
    """Write a version's files. The folder appears in one rename, and replaces one of that number. Raises
    OSError."""
    final = version_folder(line, version)
    fresh = line / f"{NEW}{os.getpid()}-{final.name}"
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
    """Read a version folder. ValueError, one sentence, where it is missing, incomplete or damaged."""
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
    """Remove all but the newest `keep` versions and the `needed` ones; returns the removed numbers."""
    gone = [version for version in versions(line)[keep:] if version not in needed]
    for version in gone:
        with contextlib.suppress(OSError):  # what stays now goes with the next version
            _remove(version_folder(line, version))
    return gone


def sweep(line: Path) -> None:
    """Remove the remains of an interrupted write or removal."""
    for leftover in (
        *(entry for name in UNFINISHED for entry in line.glob(name)),
        line.with_name(GONE + line.name),
    ):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def remove_line(line: Path) -> None:
    """Remove a line's versions. Raises OSError."""
    if line.is_dir():
        _remove(line)


def _remove(folder: Path) -> None:
    """Remove a folder, after a rename, so that a reader, or a restart after a kill, finds all of it or
    nothing."""
    gone = folder.with_name(GONE + folder.name)
    shutil.rmtree(gone, ignore_errors=True)
    os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def read_note(line: Path, note: Note) -> int | None:
    """The version that was last noted as active or trusted; None for none."""
    try:
        return int((line / note).read_text())
    except (OSError, ValueError):
        return None


def write_note(line: Path, note: Note, version: int) -> None:
    """Note the active or trusted version, in one rename. Raises OSError."""
    with replacing(line / note) as partial:
        _write(partial, str(version).encode())
    _sync_folder(line)


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
