"""A file that lies complete in one place: on this machine, or on the Hub. It stays there, with a link in
OmniDemo's folder."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from omnidemo.core.config import ModelError
from omnidemo.models.fetching.fetch_job import STOPPED, FetchJob, SourceFailed, Stopped, within
from omnidemo.models.gguf.places import all_places

CONTACT_SHARE = 0.4  # of the patience until the first byte, that the Hub may take


def on_this_machine(job: FetchJob, folders: Sequence[str]) -> Path:
    """A file with the catalogue's size and sha256 where programs and the settings keep GGUF files."""
    for place in all_places(folders):
        with suppress(OSError):  # a file that cannot be read is none
            if not place.wrong and place.path != job.path and job.is_it(place.path):
                return _linked(job, place.path)
    raise SourceFailed("")


def from_hub(job: FetchJob) -> Path:
    """Download the file into the Hub's cache. SourceFailed; Stopped."""
    # a fetch that finds its file needs neither
    from huggingface_hub import constants

    from omnidemo.models.fetching.hub_downloads import hub_sentence

    if constants.HF_HUB_OFFLINE:
        raise SourceFailed("HF_HUB_OFFLINE keeps the Hub from being asked")
    given_up = threading.Event()
    try:
        path = within(
            CONTACT_SHARE * job.patience(), lambda: _download(job, given_up), lambda: job.flowing, job.check
        )
    except TimeoutError as error:
        raise _short(hub_sentence(job.entry.title, error)) from error
    except Stopped:
        raise
    except ModelError as error:
        raise _short(str(error)) from error
    finally:
        given_up.set()
    if not job.is_it(path):
        raise SourceFailed("the file in the Hub's cache is not that of the catalogue (its sha256 differs)")
    return _linked(job, path)


def _download(job: FetchJob, given_up: threading.Event) -> Path:
    """The file in the Hub's cache. ModelError, one sentence, where it cannot be downloaded."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    from omnidemo.models.fetching.hub_downloads import REFUSED, check_variables, download_gguf, hub_sentence

    entry = job.entry
    check_variables(entry.title)

    def progress(stage: str, fraction: float) -> None:
        if given_up.is_set():
            raise Stopped(STOPPED)
        job.flowing = job.flowing or fraction > 0
        job.report(int(fraction * entry.bytes))

    try:
        told = get_hf_file_metadata(hf_hub_url(entry.repository, entry.file))
    except REFUSED as error:
        raise ModelError(hub_sentence(entry.title, error)) from error
    hashed = re.fullmatch("[0-9a-f]{64}", told.etag or "")
    if told.size != entry.bytes or (hashed and told.etag != entry.sha256):
        raise SourceFailed("the Hub has another file by its name")
    return download_gguf(entry.hub_name, entry.repository, [entry.file], progress, lambda size: None)


def _short(sentence: str) -> SourceFailed:
    cause, _, step = sentence.rpartition("; ")
    if "the Hub cannot be reached" in sentence:
        return SourceFailed("the Hub cannot be reached", "check the connection and try again")
    return SourceFailed(cause, step)


def _linked(job: FetchJob, path: Path) -> Path:
    """The link in OmniDemo's folder, by which the next start finds the file without reading it; the file
    itself where no link can be made."""
    with suppress(OSError):
        job.folder.mkdir(parents=True, exist_ok=True)
        job.path.unlink(missing_ok=True)
        job.path.symlink_to(path.resolve())
        return job.path
    return path
