"""From a name as a person writes it to a GGUF file on this machine; and all files on it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from omnidemo.backends.runner import ModelError
from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf import identity, places
from omnidemo.models.gguf.gguf_facts import GgufFile, about
from omnidemo.models.gguf.header import part_names
from omnidemo.models.gguf.places import FilePlace, Walk, all_places, is_file, is_within

HUB_SPEC = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*):(.+\.gguf)", re.IGNORECASE | re.DOTALL)
PLAIN = re.compile(r"[A-Za-z0-9_][\w.-]*")  # a file name that is no path
OLLAMA, LM_STUDIO = "ollama/", "lmstudio/"
LONGEST, NEAR = 1024, 3  # characters of a name; names in a sentence
OFF = "{} is not on this machine and downloads are switched off; allow them with OMNIDEMO_TRUST_HUB=true"
HOW = "`python -m omnidemo models` lists what is on this machine"


class NotHere(ModelError):
    """A file of the Hub that is not on this machine."""


_known: dict[str, FilePlace] = {}  # by the name that a file is known by: where it was seen last


def is_gguf(name: str) -> bool:
    """Whether a name means a GGUF file: by its form, as one of the catalogue, or as a folder that holds such
    files and no other weights. Reads no file."""
    if name.startswith((identity.PREFIX, OLLAMA, LM_STUDIO)) or name.lower().endswith(".gguf"):
        return True
    if identity.named(name) is not None:
        return True
    with suppress(OSError, ValueError, RuntimeError):
        folder = Path(name).expanduser()
        there = folder.is_dir() and not any(folder.glob("*.safetensors"))
        return there and any(Walk().models(folder, folder, 0))
    return False


def find(name: str, folders: Sequence[str] = ()) -> GgufFile:
    """The file of a name; `folders` are searched for `gguf/` names, beside the places of programs.
    ModelError, one sentence, for an unknown name and an unusable file; `NotHere` for a file that has to be
    downloaded."""
    if not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise ModelError(f"{name[:60]!r} is no name of a model; {HOW}")
    found = (
        _by_known_name(name, folders) if name.startswith(identity.PREFIX) else about(_by_form(name, folders))
    )
    if found.reason:
        raise ModelError(found.reason)
    _known[found.name] = FilePlace(found.path, found.spec, found.source, note=found.note)
    return found


def installed(folders: Sequence[str] = ()) -> list[GgufFile]:
    """Every GGUF file that can be found on this machine, or was named in this process, once; unusable ones
    included."""
    found: dict[str, GgufFile] = {}
    for place in all_places(folders):
        one = about(place)
        found.setdefault(one.name or one.spec, one)
        if one.name and not one.reason:
            _known.setdefault(one.name, place)
    for name in [name for name in _known if name not in found]:
        if (still := seen(name)) is not None:
            found[name] = still
    return list(found.values())


def seen(name: str) -> GgufFile | None:
    """The file of a public name, if this process has seen it and it is still there. Searches nowhere."""
    place = _known.get(name)
    if place is None or not is_file(place.path) or (found := about(place)).name != name:
        return None
    return found


def catalogued(entry: identity.CatalogueFile, folders: Sequence[str] = ()) -> GgufFile | None:
    """The file of a catalogue's entry in OmniDemo's folder, a given one or the Hub's cache. Searches nowhere
    else."""
    with suppress(NotHere):
        place = _of_catalogue(entry, folders)
        found = about(place)
        if found.name == entry.known and not found.reason:
            _known[found.name] = place
            return found
    return None


def _of_catalogue(entry: identity.CatalogueFile, folders: Sequence[str]) -> FilePlace:
    place = places.in_models(entry.file, folders)
    if place is not None and place.path.stat().st_size == entry.bytes:
        return place
    return _in_hub_cache(entry.hub_name, entry.repository, entry.file)


def _by_form(name: str, folders: Sequence[str]) -> FilePlace:
    here = is_file(Path(name))
    if not here and (entry := identity.named(name)) is not None:
        return _of_catalogue(entry, folders)
    if name.startswith(OLLAMA):
        model, _, tag = name.removeprefix(OLLAMA).partition(":")
        spec = places.ollama_spec(model, tag)
        return _kept(
            spec, "Ollama", places.in_ollama(Walk()), f"run `ollama pull {spec.removeprefix(OLLAMA)}`"
        )
    if name.startswith(LM_STUDIO):
        folder, _, file = name.rpartition("/")
        name = f"{folder}/{part_names(file)[0]}"
        otherwise = "download it there (a name is lmstudio/<publisher>/<model>/<file>.gguf)"
        return _kept(name, "LM Studio", places.in_lm_studio(Walk()), otherwise)
    if not here and (hub := hub_file(name)) is not None:
        return _in_hub_cache(name, *hub)
    return _path(name, folders)


def _by_known_name(name: str, folders: Sequence[str]) -> GgufFile:
    if (found := seen(name)) is not None:
        return found
    listed = installed(folders)
    there = {one.name: one for one in listed if one.name}
    if name in there:
        return there[name]
    if identity.named(name) is not None:
        raise NotHere(OFF.format(name))
    near = difflib.get_close_matches(name, there, NEAR, 0.5)
    instead = f"near are {', '.join(near)}" if near else HOW
    cut = next((f"; {one.reason}" for one in listed if one.path.is_dir()), "")
    raise ModelError(
        f"no file on this machine is known as {name[:120]}; {instead}, and its path or its folder in"
        f" OMNIDEMO_MODEL_FOLDERS finds it{cut}"
    )


def _kept(name: str, program: str, there: Iterator[FilePlace], otherwise: str) -> FilePlace:
    """The file that a program keeps by this name."""
    found = {place.spec: place for place in reversed(list(there))}
    if name in found:
        return found[name]
    near = difflib.get_close_matches(name, found, NEAR, 0.5) or list(found)[:NEAR]
    instead = f"near are {', '.join(near)}, or {otherwise}" if near else otherwise
    raise ModelError(f"{program} has no {name[:120]} on this machine; {instead}")


def hub_file(name: str) -> tuple[str, str] | None:
    """(repository, file) of `<org>/<repo>:<file>.gguf`; None for other names. ModelError for a file outside
    the repository."""
    found = HUB_SPEC.fullmatch(name)
    if found is None or name.startswith((identity.PREFIX, OLLAMA, LM_STUDIO)):
        return None
    file = PurePosixPath(found[2])
    if file.is_absolute() or ".." in file.parts or "\\" in found[2]:
        raise ModelError(
            f"{name[:120]} names no file within {found[1]}; write it as <org>/<repo>:<file>.gguf"
        )
    return found[1], (file.parent / part_names(file.name)[0]).as_posix()


def hub_parts(file: str) -> list[str]:
    """All files of a model in a repository, given one of them."""
    path = PurePosixPath(file)
    return [path.with_name(name).as_posix() for name in part_names(path.name)]


def _in_hub_cache(name: str, repository: str, file: str) -> FilePlace:
    try:
        found = [try_to_load_from_cache(repository, part) for part in hub_parts(file)]
    except HFValidationError:
        raise ModelError(
            f"{name[:120]} is no name of a file of the Hub; write it as <org>/<repo>:<file>.gguf"
        ) from None
    paths = [
        Path(path) for path in found if isinstance(path, str) and is_within(Path(path), places.hub_root())
    ]
    if len(paths) < len(found):
        raise NotHere(OFF.format(name[:120]))
    return FilePlace(paths[0], f"{repository}:{file}", "hub")


def _path(name: str, folders: Sequence[str]) -> FilePlace:
    """A file, or a folder with one model; a bare file name also means a file in OmniDemo's folder or the
    given ones."""
    with explained(f"{name[:120]} cannot be looked at", "check the path"):
        path = Path(name).expanduser().absolute()
        exists = path.exists()
        if path.is_dir():
            path = _only(path, list(Walk().models(path, path, 0)))
    first = path.with_name(part_names(path.name)[0])
    path = first if is_file(first) else path
    if is_file(path):
        return FilePlace(path, str(path), places.keeper(path))
    if PLAIN.fullmatch(name) and (place := places.in_models(name, folders)):
        return place
    why = "is no file that can be read as one" if exists else "is not there"
    raise ModelError(
        f"{name[:120]} {why}; give the path of a .gguf file, or a name such as <org>/<repo>:<file>.gguf;"
        f" {HOW}"
    )


def _only(folder: Path, files: list[Path]) -> Path:
    if not files:
        raise ModelError(f"the folder {folder.name} holds no .gguf file; give the path of one")
    if len(files) > 1:
        shown = ", ".join([*(path.name for path in files[:NEAR]), *["…"][: len(files) > NEAR]])
        raise ModelError(
            f"the folder {folder.name} holds {len(files)} models ({shown}); give the path of one"
        )
    return files[0]
