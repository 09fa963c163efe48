"""The places of GGUF files on this machine: OmniDemo, the Hub's cache, Ollama, LM Studio, folders. Walks are
bounded, and no link leads out of its root."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import constants

from omnidemo.core.resources import home
from omnidemo.models.gguf import identity
from omnidemo.models.gguf.header import part_names

Source = Literal["fetched", "hub", "ollama", "lmstudio", "folder"]
DEPTH, MOST_ENTRIES = 6, 20_000  # of folders below a root; of all walks of one listing
MOST_BYTES = 2**20  # of a manifest or a pointer
LAYER = "application/vnd.ollama.image."
MODEL_LAYER = f"{LAYER}model"
# Ollama's parameters that change an answer
PARAMETERS = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed", "num_predict", "stop")
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
OLLAMA_HOST, OLLAMA_NAMESPACE = "registry.ollama.ai", "library"  # the defaults of a name


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file, the name by which another process of this project finds it, and the program that keeps it.
    `wrong`: why there is none; `note`: what its program adds to it, and OmniDemo does not."""

    path: Path
    spec: str
    source: Source
    wrong: str = ""
    note: str = ""


class Walk:
    """The bound of one listing in entries of folders. `cut`: the first folder that it left out, with the
    reason; None for a complete list."""

    def __init__(self) -> None:
        self._left = MOST_ENTRIES
        self.cut: FilePlace | None = None

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """The entries of a folder by name, as far as the bound allows; none where it cannot be read."""
        found = list[os.DirEntry[str]]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if self._left <= 0:
                    self._stop(folder, f"it ends after {MOST_ENTRIES:,} files")
                    break
                self._left -= 1
                found.append(entry)
        return sorted(found, key=lambda entry: entry.name)

    def _stop(self, folder: Path, why: str) -> None:
        said = f"the list of models is incomplete at {folder}, because {why}; name a model there by its path"
        self.cut = self.cut or FilePlace(folder, str(folder), "folder", said)

    def folders(self, folder: Path) -> list[Path]:
        return [Path(entry.path) for entry in self.entries(folder) if is_folder(entry)]

    def files(self, root: Path, depth: int) -> Iterator[Path]:
        """The files below a root, as deep as `depth`. Links to folders are not followed."""
        for entry in self.entries(root):
            path = Path(entry.path)
            if not is_folder(entry):
                yield path
            elif depth > 0 and not entry.name.startswith("."):
                yield from self.files(path, depth - 1)
            elif not entry.name.startswith("."):
                self._stop(path, "it lies too deep in its folder")

    def models(self, root: Path, inside: Path, depth: int = DEPTH) -> Iterator[Path]:
        """The GGUF files below a root, without the later parts of split ones. Links to files are followed
        within `inside` alone."""
        for path in self.files(root, depth):
            first = path.with_name(part_names(path.name)[0])  # of a split model
            leads = path.name.lower().endswith(".gguf") and (first == path or not first.exists())
            if leads and is_within(path, inside):
                yield path


def is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def is_file(path: Path) -> bool:
    """Whether it is a regular file: opening a pipe, say, would wait for ever."""
    with suppress(OSError, ValueError):  # a name may be too long, or hold a NUL
        return stat.S_ISREG(path.stat().st_mode)
    return False


def is_within(path: Path, root: Path) -> bool:
    """Whether a path, with its links followed, lies in a folder."""
    with suppress(OSError, RuntimeError, ValueError):
        return path.resolve().is_relative_to(root.resolve())
    return False


def all_places(folders: Sequence[str] = ()) -> Iterator[FilePlace]:
    """Every GGUF file that can be found, the likeliest places first; `folders` may contain files. A file with
    an error is listed too, and so is the folder where the bound ended the search."""
    walk, own = Walk(), models_root()
    # a fetched file may be a link to where it was found
    linked = filter(is_file, (own / entry.file for entry in identity.files()))
    yield from (FilePlace(path, str(path), "fetched") for path in (*linked, *walk.models(own, own)))
    for name, snapshot in hub_snapshots(walk):
        for path in walk.models(snapshot, hub_root()):
            yield FilePlace(path, f"{name}:{path.relative_to(snapshot).as_posix()}", "hub")
    yield from in_ollama(walk)
    yield from in_lm_studio(walk)
    for folder in folders:
        with suppress(OSError, ValueError, RuntimeError):
            root = Path(folder).expanduser().absolute()
            if root != own:
                files = [root] if is_file(root) else walk.models(root, root)
                yield from (FilePlace(path, str(path), "folder") for path in files)
    if walk.cut:
        yield walk.cut


def models_root(given: str = "") -> Path:
    """The folder of OmniDemo's models: the given one, else OMNIDEMO_MODELS, else one in the user's cache
    folder, which all checkouts share."""
    if named := given or os.environ.get("OMNIDEMO_MODELS", "").strip():
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache")
    return cache / "omnidemo" / "models"


def in_models(file: str, folders: Sequence[str] = ()) -> FilePlace | None:
    """A file in OmniDemo's folder or one of the given folders, by its name."""
    with suppress(OSError, ValueError, RuntimeError):
        for root in (models_root(), *(Path(folder).expanduser().absolute() for folder in folders)):
            if is_file(path := root / file):
                return FilePlace(path, str(path), keeper(path))
    return None


def keeper(path: Path) -> Source:
    """Who keeps a file, by its path."""
    return "fetched" if path.parent == models_root() else "folder"


def hub_root() -> Path:
    return Path(constants.HF_HUB_CACHE)


def hub_snapshots(walk: Walk) -> Iterator[tuple[str, Path]]:
    """The name of each model of the Hub's cache, and the folder of its revision `main`."""
    for folder in walk.folders(hub_root()):
        kind, *parts = folder.name.split("--")
        revision = read_text(folder / "refs" / "main").strip()
        if kind == "models" and len(parts) in (1, 2) and re.fullmatch(r"[0-9a-f]{40}", revision):
            yield "/".join(parts), folder / "snapshots" / revision


def ollama_roots() -> list[Path]:
    if given := os.environ.get("OLLAMA_MODELS", "").strip():
        return [Path(given).expanduser()]
    return [home() / ".ollama/models", Path("/usr/share/ollama/.ollama/models")]


def in_ollama(walk: Walk) -> Iterator[FilePlace]:
    """What Ollama has; `manifests/<host>/<namespace>/<model>/<tag>` names the layers of each."""
    for root in ollama_roots():
        for path in walk.files(root / "manifests", 3):
            *parts, tag = path.relative_to(root / "manifests").parts
            if len(parts) == 3:
                yield _ollama_place(root, path, ollama_spec("/".join(parts), tag))


def ollama_spec(model: str, tag: str) -> str:
    """The name of a model of Ollama, without the defaults of host and namespace."""
    model = model.removeprefix(f"{OLLAMA_HOST}/").removeprefix(f"{OLLAMA_NAMESPACE}/")
    return f"ollama/{model}:{tag or 'latest'}"


def _ollama_place(root: Path, manifest: Path, spec: str) -> FilePlace:
    """The weights of a manifest. Only digests of one form count, so that no manifest leads elsewhere."""
    pull = f"run `ollama pull {spec.removeprefix('ollama/')}`"
    wrong = note = ""
    try:
        layers = json.loads(read_text(manifest) or "{}")["layers"]
        found = [(one["mediaType"].removeprefix(LAYER), DIGEST.fullmatch(one["digest"])) for one in layers]
        blobs = {kind: root / "blobs" / f"sha256-{digest[1]}" for kind, digest in found if digest}
        path, parts = blobs["model"], [kind for kind, _ in found].count("model")
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        wrong = f"Ollama's manifest of {spec} names no weights that can be read here; {pull}"
        return FilePlace(manifest, spec, "ollama", wrong)
    if "adapter" in blobs:
        wrong = (
            f"{spec} puts an adapter on its weights, and here they would answer without it; choose a model"
            " whose file has it merged in"
        )
    elif parts > 1:
        wrong = f"{spec} has its weights in {parts} files, which are not joined here; choose another model"
    elif not is_file(path):
        wrong = f"{spec} is listed by Ollama, and its weights are gone or cannot be read; {pull}"
    elif not is_within(path, root):
        wrong = f"the weights of {spec} are a link out of Ollama's folder; give the path of the file itself"
    elif added := _additions(blobs):
        note = f"Ollama gives {spec} {added} of its own; here a request has to send these itself"
    return FilePlace(path, spec, "ollama", wrong, note)


def _additions(blobs: dict[str, Path]) -> str:
    """What a Modelfile adds to weights and template, in words; empty for nothing."""
    more = [what for kind, what in (("system", "a system prompt"), ("messages", "messages")) if kind in blobs]
    given: Any = {}
    with suppress(ValueError, KeyError):
        given = json.loads(read_text(blobs["params"]))
    given = given if isinstance(given, dict) else {}
    # Names of control tokens, at which an answer ends anyway, are nothing to say.
    if re.fullmatch(r'\[("(<.*?>|\[.*?\])"(, )?)*\]', json.dumps(given.get("stop", []))):
        given.pop("stop", None)
    if named := [f"{name} {json.dumps(given[name])[:40]}" for name in PARAMETERS if name in given]:
        more.append(f"parameters ({', '.join(named)})")
    return " and ".join(more)


def lm_studio_roots() -> list[Path]:
    told = read_text(home() / ".lmstudio-home-pointer").strip()
    homes = [Path(told)] if told and Path(told).is_absolute() and "\0" not in told else []
    homes += [home() / ".cache/lm-studio", home() / ".lmstudio"]
    return list(dict.fromkeys(home / "models" for home in homes))


def in_lm_studio(walk: Walk) -> Iterator[FilePlace]:
    for root in lm_studio_roots():
        for path in walk.models(root, root, depth=3):
            spec = path.relative_to(root).as_posix()
            if spec.count("/") > 1:
                yield FilePlace(path, f"lmstudio/{spec}", "lmstudio")


def read_text(path: Path) -> str:
    """A small file's text; empty where it cannot be read."""
    with suppress(OSError, ValueError):
        if is_file(path) and path.stat().st_size <= MOST_BYTES:
            return path.read_text(encoding="utf-8")
    return ""
