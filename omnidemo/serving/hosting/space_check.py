"""Faults that would stop a checkout from starting on a Space of the Hugging Face Hub, found offline."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from omnidemo.core.config import Settings
from omnidemo.pair.zerogpu import sign
from omnidemo.serving.hosting.front_matter import ZERO_GPU, front_matter_troubles, read_front_matter

LARGEST = 10 * 2**20  # bytes of a file that git may carry to the Hub without LFS
SPACE_PORT = 7860  # where a Gradio Space is asked
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
CALLS_GPU = re.compile(r"\bspaces\.GPU\(")
PROBE_SECONDS = 120
PROBE = """
import importlib.util, sys, threading
spec = importlib.util.spec_from_file_location("the_app", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
slow = ("torch", "gradio", "transformers", "omnidemo.serving.services")
heavy = [name for name in slow if name in sys.modules]
threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
print("FOUND", ",".join(heavy + threads))
"""


class SpaceReport(NamedTuple):
    """Sentences: faults that stop the app, and notes."""

    stops: list[str]
    notes: list[str]


def check(root: Path, settings: Settings, environment: Mapping[str, str]) -> SpaceReport:
    """Check the checkout in `root` with the settings and variables that the Space would have."""
    needed = _requirements(root)
    stops: list[str] = []
    hardware: str | None = None
    try:
        front = read_front_matter(root)
        hardware = front.get("suggested_hardware")
        stops += front_matter_troubles(front, root, needed, sign.names(settings))
    except ValueError as error:
        stops.append(str(error))
    stops += [
        *_large_files(root),
        *_missing(root, needed),
        *_import(root),
        *_storage(settings),
        *_addresses(settings),
    ]
    if hardware == ZERO_GPU or environment.get("SPACES_ZERO_GPU"):
        stops += _zero_gpu(root, settings)
    return SpaceReport(stops, [*_small_binaries(root), *_public(settings)])


def _git(root: Path, *arguments: str) -> list[str]:
    """The output of git, split at zero bytes; [] without git or a repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return [part for part in done.stdout.split("\0") if part]


def _plain_files(root: Path) -> Iterator[tuple[str, int]]:
    """(path, bytes) of the files in git without LFS."""
    for name in _git(root, "ls-files", "-z", ":(exclude,attr:filter=lfs)"):
        if (root / name).is_file():
            yield name, (root / name).stat().st_size


def _large_files(root: Path) -> Iterator[str]:
    if not _git(root, "ls-files", "-z"):
        yield (
            f"{root} is no git checkout with files in it, so nobody can say what a Space would get; run this"
            " in one"
        )
    for name, size in _plain_files(root):
        if size > LARGEST:
            yield (
                f"{name} has {size / 2**20:.1f} MB and the Hub takes no more than 10 MB without LFS;"
                f' run `git lfs track "{name}"` and commit it again'
            )


def _small_binaries(root: Path) -> Iterator[str]:
    names = [
        name
        for name, size in _plain_files(root)
        if size <= LARGEST and b"\0" in (root / name).read_bytes()[:8192]
    ]
    if names:
        yield (
            f"{len(names)} binary files, {names[0]} among them, are in git without LFS, and the Hub may"
            " refuse a `git push` of them; `hf upload OWNER/NAME . --repo-type space` stores them as it"
            " should"
        )


def _requirements(root: Path) -> dict[str, Requirement]:
    path = root / "requirements.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    listed = [Requirement(text) for line in lines if (text := line.partition("#")[0].strip())]
    return {canonicalize_name(requirement.name): requirement for requirement in listed}


def _missing(root: Path, needed: Mapping[str, Requirement]) -> Iterator[str]:
    """Packages that a module imports at its top and that no requirement brings along."""
    if not needed:
        yield (
            "requirements.txt is missing or empty, so a Space would install nothing but Gradio; list what the"
            " app imports"
        )
        return
    brought = _with_dependencies(set(needed))
    owners = packages_distributions()
    seen: set[str] = set()
    for path in sorted((root / "omnidemo").rglob("*.py")):
        for name in _imports(path) - seen - set(sys.stdlib_module_names) - {"omnidemo"}:
            seen.add(name)
            if brought.isdisjoint(map(canonicalize_name, owners.get(name, [name]))):
                yield (
                    f"{path.relative_to(root)} imports {name}, which requirements.txt does not bring along;"
                    " add its package there"
                )


def _imports(path: Path) -> set[str]:
    """The packages that a file imports at its top, outside functions and TYPE_CHECKING."""
    packages = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            packages.add(node.module.split(".")[0])
    return packages


def _with_dependencies(names: set[str]) -> set[str]:
    waiting, needed = list(names), set(names)
    while waiting:
        try:
            wanted = [Requirement(line) for line in requires(waiting.pop()) or ()]
        except PackageNotFoundError:
            continue
        new = {
            canonicalize_name(requirement.name)
            for requirement in wanted
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        } - needed
        needed |= new
        waiting += new
    return needed


def _import(root: Path) -> Iterator[str]:
    """Importing app.py must build nothing: a Space's tools import it, and on ZeroGPU `spaces` is imported
    before torch."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, "app.py"],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        yield (
            f"importing app.py was not done after {PROBE_SECONDS} seconds; have it start the app under `if"
            " __name__ == '__main__'` alone"
        )
        return
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        yield f"importing app.py fails ({last[:160]}); run `python -c 'import app'` and mend what it says"
        return
    built = done.stdout.rpartition("FOUND")[2].strip()
    if built:
        yield (
            f"importing app.py brings {built} along; import and build under `if __name__ == '__main__'` alone"
        )


def _storage(settings: Settings) -> Iterator[str]:
    folders = [("OMNIDEMO_STORAGE", Path(settings.storage))] + (
        [("OMNIDEMO_BACKUP", Path(settings.backup))] if settings.backup else []
    )
    for name, folder in folders:
        there = next(part for part in (folder.absolute(), *folder.absolute().parents) if part.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            yield f"{folder} cannot be written to, for {there} refuses it; set {name} to a folder that can"


def _addresses(settings: Settings) -> Iterator[str]:
    given = settings.model_fields_set
    if "port" in given and settings.port != SPACE_PORT:
        yield f"OMNIDEMO_PORT is {settings.port}, and a Space is asked at {SPACE_PORT}; leave it out"
    if "host" in given and settings.host in ("127.0.0.1", "localhost", "::1"):
        yield f"OMNIDEMO_HOST is {settings.host}, where a Space's proxy does not reach the app; leave it out"
    if settings.public == "false":
        yield (
            "OMNIDEMO_PUBLIC is false, and every visitor of a Space could read and change everything; leave"
            " it out"
        )


def _public(settings: Settings) -> Iterator[str]:
    if not settings.operator_key:
        yield (
            "OMNIDEMO_OPERATOR_KEY is not set, so on a Space nobody may change settings, import adapters or"
            " reset what all share; add it as a secret"
        )
    if not settings.backup:
        yield (
            "OMNIDEMO_BACKUP is not set, so history and adapters go when the Space restarts; mount storage"
            " and set it to /data"
        )


def _zero_gpu(root: Path, settings: Settings) -> Iterator[str]:
    if not any(
        CALLS_GPU.search(path.read_text(encoding="utf-8")) for path in (root / "omnidemo").rglob("*.py")
    ):
        yield (
            "no function is decorated with spaces.GPU, and ZeroGPU ends such an app with “No @spaces.GPU"
            " function detected during startup”; use other hardware, or decorate the function that needs"
            " the GPU"
        )
    if settings.quantization:
        yield sign.PACKED
    for role, name in zip(("TARGET", "DRAFTER"), sign.names(settings), strict=True):
        if name.startswith("bundled/") or not HUB_ID.fullmatch(name):
            yield (
                f"OMNIDEMO_{role} is {name}, and a GPU call is worth a model of the Hub alone; name one"
                " there, or leave it out"
            )
