"""A file that lies complete in one place: on this machine, or on the Hub. It stays there, with a link in
OmniDemo's folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path

from omnidemo.core.config import ModelError
from omnidemo.models.fetching.fetch_job import FetchJob, FetchStopped, SourceFailed
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
    """Download the file into the Hub's cache. SourceFailed; FetchStopped."""
    # a fetch that finds its file needs neither
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

    from omnidemo.models.fetching.hub_downloads import REFUSED, download, hub_sentence

    entry = job.entry
    if constants.HF_HUB_OFFLINE:
        raise SourceFailed("HF_HUB_OFFLINE keeps the Hub from being asked")

    def progress(stage: str, fraction: float) -> None:
        job.flowing = job.flowing or fraction > 0
        job.report(int(fraction * entry.bytes))

    try:
        url = hf_hub_url(entry.repository, entry.file)
        told = get_hf_file_metadata(url, timeout=CONTACT_SHARE * job.patience())
        hashed = re.fullmatch("[0-9a-f]{64}", told.etag or "")
        if told.size != entry.bytes or (hashed and told.etag != entry.sha256):
            raise SourceFailed("the Hub has another file by its name")
        path = download(
            entry.title, entry.repository, [escape(entry.file)], (), progress, lambda size: None
        ) / entry.file  # fmt: skip
    except FetchStopped:
        raise
    except (*REFUSED, ModelError) as error:
        said = str(error) if isinstance(error, ModelError) else hub_sentence(entry.title, error)
        cause, _, step = said.rpartition("; ")
        if "the Hub cannot be reached" in said:
            cause, step = "the Hub cannot be reached", "check the connection and try again"
        raise SourceFailed(cause, step) from error
    if not job.is_it(path):
        raise SourceFailed("the file in the Hub's cache is not that of the catalogue (its sha256 differs)")
    return _linked(job, path)


def _linked(job: FetchJob, path: Path) -> Path:
    """The link in OmniDemo's folder, by which the next start finds the file without reading it; the file
    itself where no link can be made."""
    with suppress(OSError):
        job.folder.mkdir(parents=True, exist_ok=True)
        job.path.unlink(missing_ok=True)
        job.path.symlink_to(path.resolve())
        return job.path
    return path
