"""The places of GGUF files on this machine: OmniDemo, the Hub's cache, Ollama, LM Studio, folders. Walks are
bounded, and no link leads out of its root."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import constants

from omnidemo.core.resources import home
from omnidemo.models.gguf import identity
from omnidemo.models.gguf.header import part_names

Source = Literal["fetched", "hub", "ollama", "lmstudio", "folder"]
DEPTH, MOST_ENTRIES, SECONDS = 6, 20_000, 3.0  # of folders below a root; of all walks of one listing
MOST_BYTES = 2**20  # of a manifest or a pointer
LAYER = "application/vnd.ollama.image."
MODEL_LAYER = f"{LAYER}model"
# Ollama's parameters that change an answer
PARAMETERS = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed", "num_predict", "stop")
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
OLLAMA_HOST, OLLAMA_NAMESPACE = "registry.ollama.ai", "library"  # the defaults of a name


@dataclass(frozen=True, slots=True)
class Place:
    """A file, the name by which another process of this project finds it, and the program that keeps it.
    `wrong`: why there is none; `note`: what its program adds to it, and OmniDemo does not."""

    path: Path
    spec: str
    source: Source
    wrong: str = ""
    note: str = ""


class Walk:
    """The bounds of one listing, in entries and in seconds of reading folders. `cut`: the first folder that a
    bound left out, with the reason; None for a complete list."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._seconds, self._left = clock, SECONDS, MOST_ENTRIES
        self.cut: Place | None = None

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """The entries of a folder by name, as far as the bounds allow; none where it cannot be read."""
        found, began = list[os.DirEntry[str]](), self._clock()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if self._left <= 0 or self._clock() - began > self._seconds:
                    self._stop(folder, f"it ends after {MOST_ENTRIES:,} files and {SECONDS:g} seconds")
                    break
                self._left -= 1
                found.append(entry)
        self._seconds -= self._clock() - began
        return sorted(found, key=lambda entry: entry.name)

    def _stop(self, folder: Path, why: str) -> None:
        said = f"the list of models is incomplete at {folder}, because {why}; name a model there by its path"
        self.cut = self.cut or Place(folder, str(folder), "folder", said)

    def folders(self, folder: Path) -> list[Path]:
        return [Path(entry.path) for entry in self.entries(folder) if is_folder(entry)]

    def models(self, root: Path, inside: Path, depth: int = DEPTH) -> Iterator[Path]:
        """The GGUF files below a root, without the later parts of split ones. Links to folders are not
        followed, links to files only within `inside`."""
        entries = self.entries(root)
        names = {entry.name for entry in entries}
        for entry in entries:
            if is_folder(entry):
                if depth > 0 and not entry.name.startswith("."):
                    yield from self.models(Path(entry.path), inside, depth - 1)
                elif not entry.name.startswith("."):
                    self._stop(Path(entry.path), "it lies too deep in its folder")
            elif entry.name.lower().endswith(".gguf"):
                first = part_names(entry.name)[0]  # of a split model
                if (first == entry.name or first not in names) and is_within(Path(entry.path), inside):
                    yield Path(entry.path)


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


def all_places(folders: Sequence[str] = ()) -> Iterator[Place]:
    """Every GGUF file that can be found, the likeliest places first; `folders` may contain files. A file with
    an error is listed too, and so is the folder where a bound ended the search."""
    walk = Walk()
    own = models_root()
    # a fetched file may be a link to where it was found
    linked = filter(is_file, (own / identity.file_of(entry) for entry in identity.files()))
    yield from (Place(path, str(path), "fetched") for path in (*linked, *walk.models(own, own)))
    yield from in_hub(walk)
    yield from in_ollama(walk)
    yield from in_lm_studio(walk)
    for folder in folders:
        with suppress(OSError, ValueError, RuntimeError):
            root = Path(folder).expanduser().absolute()
            if root != own:
                files = [root] if is_file(root) else walk.models(root, root)
                yield from (Place(path, str(path), "folder") for path in files)
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


def in_models(file: str, folders: Sequence[str] = ()) -> Place | None:
    """A file in OmniDemo's folder or one of the given folders, by its name."""
    with suppress(OSError, ValueError, RuntimeError):
        for root in (models_root(), *(Path(folder).expanduser().absolute() for folder in folders)):
            if is_file(path := root / file):
                return Place(path, str(path), keeper(path))
    return None


def keeper(path: Path) -> Source:
    """Who keeps a file, by its path."""
    return "fetched" if path.parent == models_root() else "folder"


def hub_root() -> Path:
    return Path(constants.HF_HUB_CACHE)


def in_hub(walk: Walk) -> Iterator[Place]:
    """The Hub's cache: of each repository the revision of `main`, else the newest."""
    root = hub_root()
    for folder in walk.folders(root):
        parts = folder.name.split("--")
        if parts[0] == "models" and len(parts) in (2, 3):
            snapshot = hub_snapshot(folder, walk)
            if snapshot is not None:
                for path in walk.models(snapshot, root):
                    yield Place(path, f"{'/'.join(parts[1:])}:{path.relative_to(snapshot).as_posix()}", "hub")


def hub_snapshot(folder: Path, walk: Walk) -> Path | None:
    revision = read_text(folder / "refs" / "main").strip()
    if re.fullmatch(r"[0-9a-f]{40}", revision) and (folder / "snapshots" / revision).is_dir():
        return folder / "snapshots" / revision

    def changed(path: Path) -> float:
        with suppress(OSError):
            return path.stat().st_mtime
        return 0.0

    return max(walk.folders(folder / "snapshots"), key=changed, default=None)


def ollama_roots() -> list[Path]:
    given = os.environ.get("OLLAMA_MODELS", "").strip()
    return (
        [Path(given).expanduser()]
        if given
        else [home() / ".ollama/models", Path("/usr/share/ollama/.ollama/models")]
    )


def in_ollama(walk: Walk) -> Iterator[Place]:
    for root in ollama_roots():
        for host in walk.folders(root / "manifests"):
            for namespace in walk.folders(host):
                for model in walk.folders(namespace):
                    for tag in walk.entries(model):
                        if not is_folder(tag):
                            yield ollama_place(root, host.name, namespace.name, model.name, tag.name)


def ollama_spec(host: str, namespace: str, model: str, tag: str) -> str:
    kept = [
        part
        for part, usual in ((host, OLLAMA_HOST), (namespace, OLLAMA_NAMESPACE))
        if part != usual or host != OLLAMA_HOST
    ]
    return "/".join(["ollama", *kept, f"{model}:{tag}"])


def ollama_place(root: Path, host: str, namespace: str, model: str, tag: str) -> Place:
    """The weights of a manifest. Only digests of one form count, so that no manifest leads elsewhere."""
    spec = ollama_spec(host, namespace, model, tag)
    manifest = root / "manifests" / host / namespace / model / tag
    wrong = note = ""
    try:
        layers = json.loads(read_text(manifest) or "{}").get("layers")
        digests = [layer.get("digest") for layer in layers if layer.get("mediaType") == MODEL_LAYER]
        found = DIGEST.fullmatch(digests[0])
        assert found is not None
        path = root / "blobs" / f"sha256-{found[1]}"
        note = _additions(spec, root, layers)
        if any(layer.get("mediaType") == f"{LAYER}adapter" for layer in layers):
            wrong = (
                f"{spec} puts an adapter on its weights, and here they would answer without it; choose a"
                " model whose file has it merged in"
            )
        elif len(digests) > 1:
            wrong = (
                f"{spec} has its weights in {len(digests)} files, which are not joined here; choose another"
                " model"
            )
        elif not is_file(path):
            wrong = (
                f"{spec} is listed by Ollama, and its weights are gone or cannot be read; run `ollama pull"
                f" {spec.removeprefix('ollama/')}`"
            )
        elif not is_within(path, root):
            wrong = (
                f"the weights of {spec} are a link out of Ollama's folder; give the path of the file itself"
            )
    except (ValueError, LookupError, AttributeError, TypeError, AssertionError, RecursionError):
        path = manifest
        wrong = (
            f"Ollama's manifest of {spec} names no weights that can be read here; run `ollama pull"
            f" {spec.removeprefix('ollama/')}`"
        )
    return Place(path, spec, "ollama", wrong, note)


def _additions(spec: str, root: Path, layers: list[dict[str, str]]) -> str:
    """What a Modelfile adds to weights and template, in a sentence; empty for nothing."""
    found = {}
    for layer in layers:
        if digest := DIGEST.fullmatch(layer.get("digest", "")):
            found[layer.get("mediaType", "").removeprefix(LAYER)] = root / "blobs" / f"sha256-{digest[1]}"
    more = [name for kind, name in (("system", "a system prompt"), ("messages", "messages")) if kind in found]
    given: Any = {}
    with suppress(ValueError):
        given = json.loads(read_text(found["params"])) if "params" in found else {}
    given = given if isinstance(given, dict) else {}
    # Names of control tokens, at which an answer ends anyway, are nothing to say.
    if re.fullmatch(r'\[("(<.*?>|\[.*?\])"(, )?)*\]', json.dumps(given.get("stop", []))):
        given.pop("stop", None)
    if named := [f"{name} {json.dumps(given[name])[:40]}" for name in PARAMETERS if name in given]:
        more.append(f"parameters ({', '.join(named)})")
    if not more:
        return ""
    return f"Ollama gives {spec} {' and '.join(more)} of its own; here a request has to send these itself"


def lm_studio_roots() -> list[Path]:
    told = read_text(home() / ".lmstudio-home-pointer").strip()
    homes = [Path(told)] if told and Path(told).is_absolute() and "\0" not in told else []
    homes += [home() / ".cache/lm-studio", home() / ".lmstudio"]
    return list(dict.fromkeys(home / "models" for home in homes))


def in_lm_studio(walk: Walk) -> Iterator[Place]:
    for root in lm_studio_roots():
        for publisher in walk.folders(root):
            for model in walk.folders(publisher):
                for path in walk.models(model, root, depth=1):
                    yield Place(path, f"lmstudio/{path.relative_to(root).as_posix()}", "lmstudio")


def read_text(path: Path) -> str:
    """A small file's text; empty where it cannot be read."""
    with suppress(OSError, ValueError):
        if is_file(path) and path.stat().st_size <= MOST_BYTES:
            return path.read_text(encoding="utf-8")
    return ""
