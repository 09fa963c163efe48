"""The status of a line that is not in memory, read from its files."""

from __future__ import annotations

from pathlib import Path

from omnidemo.adapters import version_folders
from omnidemo.config import Settings
from omnidemo.distill.trainer_status import State, TrainerStatus, explain
from omnidemo.records import AdapterVersion


def status_on_disk(folder: Path, domain: str, settings: Settings, paused: bool, waiting: int) -> TrainerStatus:
    """The status of the line whose versions are in `folder`. `waiting`: how many of its answers no update has learned from yet."""
    noted, stored = version_folders.read_note(folder, "active"), version_folders.versions(folder)
    version = noted if noted is not None else max(stored, default=0)
    known = version_folders.manifest_of(version_folders.version_folder(folder, version)) if version else {}
    state: State = "off" if settings.training == "off" else "paused" if paused else "idle"
    waits = "This line waits on disk until the next answer of its topic." if stored else "This line has no answer yet."
    return TrainerStatus(
        state=state,
        why=waits if state == "idle" else explain(state, 0),
        version=version,
        step=int(known.get("steps") or 0),
        loss=known.get("loss"),
        requests_seen=int(known.get("requests_seen") or 0) + waiting,
        next_in=max(1, settings.update_interval - waiting),
        mode=settings.training,
        domain=domain,
    )


def domains(folder: Path, known: dict[str, str]) -> list[str]:
    """The domains of the lines in `folder`. A line's folder name is not its domain, so that is read from a manifest, once: `known` (folder
    name → domain) is filled in."""
    try:
        folders = [one for one in folder.iterdir() if not one.name.startswith(".")]
        held = {one.name: stored for one in folders if (stored := version_folders.versions(one))}
    except OSError:  # nothing was learned yet, or the disk is gone: the open lines remain
        return []
    for name in held.keys() - known.keys():
        read = (version_folders.manifest_of(version_folders.version_folder(folder / name, version)).get("domain") for version in held[name])
        if (domain := next(filter(None, read), None)) is not None:
            known[name] = str(domain)
    return [known[name] for name in held if name in known]


def info(folder: Path, version: int) -> AdapterVersion | None:
    """The record of a version, from its manifest; None where it is damaged."""
    path = version_folders.version_folder(folder, version)
    found = version_folders.manifest_of(path)
    found.pop("files", None)
    try:
        return AdapterVersion(drafter=found.pop("base"), path=str(path), **found)
    except (KeyError, TypeError):
        return None
