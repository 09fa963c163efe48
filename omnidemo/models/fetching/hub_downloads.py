"""Downloads from the Hub into its own cache: with progress, and so that a large file resumes after a stop,
and counts only once it is complete."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from filelock import Timeout
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    DryRunError,
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.utils import WeakFileLock, build_hf_headers, tqdm

from omnidemo.core.config import ModelError
from omnidemo.core.shell_network import wrong_variable
from omnidemo.models.fetching.fetch_job import SPARE

LARGE = 8 * 2**20  # bytes of a file that is resumed
LOCK_SECONDS = 2.0
TRANSPORT: type[Exception] = HfHubHTTPError.__bases__[0]  # of httpx, or of its successor
# errors of a failed download
REFUSED = (DryRunError, EntryNotFoundError, FileMetadataError, OSError, HFValidationError, TRANSPORT)

Progress = Callable[[str, float], None]


def reporting(progress: Progress, total: int, before: int = 0) -> type[tqdm]:
    """A progress bar that draws nothing and reports the fraction of `total` bytes, of which `before` were
    there; the Hub's own total grows as files begin. Errors of `progress` end the download."""
    best = 0.0

    class Reporting(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            self.bytes = options.get("unit") == "B"
            self.done = before + (options.get("initial") or 0.0)
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal best
            self.done += n or 0
            if self.bytes and total:
                best = max(best, min(1.0, self.done / total))
                progress("downloading", best)
            return None

    return Reporting


def fetch(
    repository: str,
    files: Sequence[tuple[str, int]],
    revision: str,
    progress: Progress,
    total: int,
) -> int:
    """Download the large ones of some files (name, bytes) of a revision into the Hub's cache, each from where
    an earlier download ended; returns their bytes. The Hub's own functions, which would restart after a stop,
    find them afterwards and download the rest."""
    done = 0
    for name, size in files:
        if size >= LARGE:
            _fetch_one(repository, name, revision, progress, total, done)
            done += size
    return done


def _fetch_one(
    repository: str, name: str, revision: str, progress: Progress, total: int, before: int
) -> None:
    url = hf_hub_url(repository, name, revision=revision)
    told = get_hf_file_metadata(url)
    if told.etag is None or told.size is None or not re.fullmatch(r"[\w-]+", told.etag):
        return  # the Hub's own functions take it
    kept = repo_folder_name(repo_id=repository, repo_type="model")
    cache = Path(constants.HF_HUB_CACHE)
    whole = cache / kept / "blobs" / told.etag
    part = whole.with_name(f"{told.etag}.incomplete")
    locks = cache / ".locks" / kept
    for folder in (whole.parent, locks):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with WeakFileLock(locks / f"{told.etag}.lock", timeout=LOCK_SECONDS):
            if whole.exists():
                return
            begun = part.stat().st_size if part.exists() else 0
            if begun > told.size:
                part.unlink()
                begun = 0
            check_disk(repository, told.size - begun, whole.parent)
            with part.open("r+b" if begun else "wb") as opened:
                opened.seek(begun)
                bar = reporting(progress, total, before)
                http_get(
                    url, opened, resume_size=begun, headers=build_hf_headers(), expected_size=told.size,
                    tqdm_class=bar,
                )  # fmt: skip
            _check(part, told.etag, name)
            part.replace(whole)
    except Timeout as error:
        raise ModelError(
            f"another process downloads {name} just now; wait until it is done and try again"
        ) from error


def _check(part: Path, etag: str, name: str) -> None:
    """ModelError where the contents do not have the Hub's hash. The file is deleted, so that the next try
    restarts."""
    if not re.fullmatch(r"[0-9a-f]{64}", etag):
        return  # no hash of the contents
    with part.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != etag:
        part.unlink()
        raise ModelError(
            f"what was downloaded as {name} is not what the Hub has (its sha256 differs); try again"
        )


def check_disk(name: str, need: int, folder: Path) -> None:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if need + SPARE > free:
        raise ModelError(
            f"{name} needs {need / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free where the Hub's"
            " cache is; free space or set HF_HOME to another disk"
        )


def download_gguf(
    name: str,
    repository: str,
    files: Sequence[str],
    progress: Progress,
    fits: Callable[[int], None],
) -> Path:
    """Download the files of one model; the path of the first. `fits` receives the bytes of all and raises
    where that is too much. ModelError, one sentence, where the download fails."""
    check_variables(name)
    try:
        there = [hf_hub_download(repository, file, dry_run=True) for file in files]
        sizes = [(one.filename, int(one.file_size or 0)) for one in there if one.will_download]
        fits(sum(int(one.file_size or 0) for one in there))
        total = sum(size for _, size in sizes)
        check_disk(repository, total - begun(repository), Path(constants.HF_HUB_CACHE))
        progress("downloading", 0.0)
        done = fetch(repository, sizes, there[0].commit_hash, progress, total)
        bar = reporting(progress, total, done)
        paths = [
            hf_hub_download(repository, file, revision=there[0].commit_hash, tqdm_class=bar) for file in files
        ]
        # so that the file is found by its branch too
        return Path(hf_hub_download(repository, files[0])) if sizes else Path(paths[0])
    except REFUSED as error:
        raise ModelError(hub_sentence(name, error)) from error


def begun(repository: str) -> int:
    """Bytes of a repository's downloads that were stopped."""
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")
    return sum(part.stat().st_size for part in folder.glob("blobs/*.incomplete"))


def check_variables(name: str) -> None:
    """ModelError where a variable of the shell prevents downloads."""
    if why := wrong_variable():
        raise ModelError(f"{name} is not on this machine, and {why}")


def hub_sentence(name: str, error: BaseException) -> str:
    """Why a download failed, and what to do."""
    if isinstance(error, (DryRunError, LocalEntryNotFoundError)) and error.__cause__ is not None:
        error = error.__cause__  # the cause says more than that nothing is cached
    if isinstance(error, GatedRepoError):
        repository = name.partition(":")[0]
        return (
            f"{name} is gated: accept its licence at https://huggingface.co/{repository}, then run `hf auth"
            " login` or set HF_TOKEN to your token"
        )
    if isinstance(error, RepositoryNotFoundError) or (
        isinstance(error, HfHubHTTPError) and error.response.status_code == 401
    ):
        return (
            f"the Hub knows no model {name}, or it is private; check the spelling, or log in with `hf auth"
            " login` if it is yours"
        )
    if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
        repository, _, file = name.partition(":")
        where = f"https://huggingface.co/{repository}/tree/main"
        return (
            f"{repository} has no file {file or 'of that name'} on the Hub; {where} shows those that it has"
        )
    if isinstance(error, HFValidationError):
        return (
            f"{name} is neither a folder nor a Hub id such as Qwen/Qwen2.5-0.5B-Instruct; check the spelling"
        )
    if isinstance(error, OSError) and error.errno == 28:
        return f"the disk is full, so {name} cannot be downloaded; free space or set HF_HOME to another disk"
    if isinstance(error, OSError) and error.errno in (13, 30):
        return (
            f"{name} cannot be written to the Hub's cache ({error.strerror}); set HF_HOME to a folder that"
            " can be written"
        )
    if isinstance(error, HfHubHTTPError):
        return f"the Hub answered {error.response.status_code} for {name}; try again in a few minutes"
    where = "on this machine" if ":" in name or " " in name else "a folder here, nor in the Hub's cache"
    return (
        f"{name} is not {where}, and the Hub cannot be reached; check the connection and the name, or choose"
        " a bundled model"
    )
