"""Downloads from the Hub into its own cache: with progress, and so that a large file resumes after a stop,
and counts only once it is complete."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from filelock import Timeout
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    DryRunError,
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
REFUSED = (DryRunError, FileMetadataError, OSError, HFValidationError, TRANSPORT)

Progress = Callable[[str, float], None]


def download(
    name: str, repository: str, wanted: Sequence[str], unwanted: Sequence[str], progress: Progress,
    fits: Callable[[int], None],
) -> Path:  # fmt: skip
    """Download the files of a repository that match the `wanted` patterns and no `unwanted` one; their
    folder. `fits` receives the bytes of all weights and raises where that is too much. ModelError, one
    sentence, where the download fails."""
    if why := wrong_variable():
        raise ModelError(f"{name} is not on this machine, and {why}")
    options: dict[str, Any] = {"allow_patterns": list(wanted), "ignore_patterns": list(unwanted)}
    try:
        files = snapshot_download(repository, dry_run=True, **options)
        fits(sum(file.file_size for file in files if file.filename.endswith((".safetensors", ".gguf"))))
        missing = [file for file in files if file.will_download]
        if not files:
            file, there = name.partition(":")[2], f"https://huggingface.co/{repository}/tree/main"
            raise ModelError(
                f"{repository} has no file {file or 'of a model'} on the Hub; {there} shows those that it has"
            )
        total = sum(file.file_size for file in missing)
        check_disk(name, total - begun(repository))
        progress("downloading", 0.0)
        done = 0
        for file in missing:
            # The Hub's own function, which would restart after a stop, finds these afterwards.
            if file.file_size >= LARGE:
                _fetch_one(repository, file.filename, file.commit_hash, reporting(progress, total, done))
                done += file.file_size
        return Path(snapshot_download(repository, tqdm_class=reporting(progress, total, done), **options))
    except REFUSED as error:
        raise ModelError(hub_sentence(name, error)) from error


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


def _fetch_one(repository: str, name: str, revision: str, bar: type[tqdm]) -> None:
    """Download one file into the Hub's cache, from where an earlier download ended."""
    url = hf_hub_url(repository, name, revision=revision)
    told = get_hf_file_metadata(url)
    if told.etag is None or told.size is None or not re.fullmatch(r"[\w-]+", told.etag):
        return  # the Hub's own function takes it
    cache, kept = Path(constants.HF_HUB_CACHE), repo_folder_name(repo_id=repository, repo_type="model")
    whole, lock = cache / kept / "blobs" / told.etag, cache / ".locks" / kept / f"{told.etag}.lock"
    part = whole.with_name(f"{told.etag}.incomplete")
    for folder in (whole.parent, lock.parent):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with WeakFileLock(lock, timeout=LOCK_SECONDS):
            if whole.exists():
                return
            there = part.stat().st_size if part.exists() else 0
            at = there if there <= told.size else 0
            with part.open("r+b" if at else "wb") as opened:
                opened.seek(at)
                http_get(
                    url, opened, resume_size=at, headers=build_hf_headers(), expected_size=told.size,
                    tqdm_class=bar,
                )  # fmt: skip
            if re.fullmatch(r"[0-9a-f]{64}", told.etag):  # otherwise it is no hash of the contents
                with part.open("rb") as opened:
                    found = hashlib.file_digest(opened, "sha256").hexdigest()
                if found != told.etag:
                    part.unlink()
                    raise ModelError(
                        f"what was downloaded as {name} is not what the Hub has (its sha256 differs); try"
                        " again"
                    )
            part.replace(whole)
    except Timeout as error:
        raise ModelError(
            f"another process downloads {name} just now; wait until it is done and try again"
        ) from error


def check_disk(name: str, need: int) -> None:
    """ModelError where the disk of the Hub's cache has no room for so many bytes."""
    cache = Path(constants.HF_HUB_CACHE)
    free = shutil.disk_usage(next(path for path in (cache, *cache.parents) if path.exists())).free
    if need + SPARE > free:
        raise ModelError(
            f"{name} needs {need / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free where the Hub's"
            " cache is; free space or set HF_HOME to another disk"
        )


def begun(repository: str) -> int:
    """Bytes of a repository's downloads that were stopped."""
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")
    return sum(part.stat().st_size for part in folder.glob("blobs/*.incomplete"))


def hub_sentence(name: str, error: BaseException) -> str:
    """Why a download failed, and what to do."""
    if isinstance(error, (DryRunError, LocalEntryNotFoundError)) and error.__cause__ is not None:
        error = error.__cause__  # the cause says more than that nothing is cached
    repository, code = name.partition(":")[0], getattr(error, "errno", None)
    if isinstance(error, GatedRepoError):
        return (
            f"{name} is gated: accept its licence at https://huggingface.co/{repository}, then run `hf auth"
            " login` or set HF_TOKEN"
        )
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if isinstance(error, RepositoryNotFoundError) or status == 401:
        return (
            f"the Hub knows no model {repository}, or your login may not see it; check the spelling, or run"
            " `hf auth login`"
        )
    if isinstance(error, HFValidationError):
        return f"{name} is no folder and no Hub id such as Qwen/Qwen2.5-0.5B-Instruct; check the spelling"
    if status:
        return f"the Hub answered {status} for {name}; try again in a few minutes"
    if code == errno.ENOSPC:
        return f"the disk is full, so {name} cannot be downloaded; free space or set HF_HOME to another disk"
    if code in (errno.EACCES, errno.EROFS):
        return f"{name} cannot be written to the Hub's cache ({error}); set HF_HOME to a folder that can be"
    return (
        f"{name} is not on this machine, and the Hub cannot be reached; check the connection and the name, or"
        " choose a bundled model"
    )
