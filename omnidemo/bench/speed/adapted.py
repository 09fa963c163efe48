"""An adapted drafter for the benchmark: the one that a storage folder has, or one distilled on the spot and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from omnidemo.adapters import version_folders
from omnidemo.bench.experiments.line import Line
from omnidemo.bench.record_target import record
from omnidemo.config import Settings
from omnidemo.models import model_files
from omnidemo.private_folders import replacing
from omnidemo.probes.replayed_target import TargetRecords


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Merged drafter weights by name, and in words where they come from."""

    weights: dict[str, Tensor]
    origin: str


def stored(storage: Path, settings: Settings, target: str, topic: str) -> Learned | None:
    """The active version of the topic's line in a storage folder, else of the default line; None where there is none."""
    for domain in (topic, "default"):
        line = version_folders.line_folder(storage, settings.drafter, target, domain)
        noted, found = version_folders.read_note(line, "active"), version_folders.versions(line)
        version = noted if noted is not None else found[0] if found else 0
        if version in found:
            kept = version_folders.load_version(version_folders.version_folder(line, version))
            base = version_folders.BaseWeights(model_files.find(settings.drafter, hub=settings.trust_hub))
            seen = kept.info.requests_seen
            return Learned(dict(version_folders.merged_weights(base, kept.adapter)), f"line {domain}, version {version}, {seen} requests")
    return None


class Distilled:
    """A drafter distilled from recorded greedy answers of the target, an update every few answers as in the app."""

    def __init__(self, folder: Path, settings: Settings, target: str, prompts: Sequence[str], seed: int) -> None:
        """`folder` keeps recordings and results. ModelError where a model is not there."""
        self.settings, self.prompts, self.seed = settings.model_copy(update={"head": "off"}), list(prompts), seed
        self.records = TargetRecords(folder / "records", target, settings.drafter, self.settings)
        rules = self.settings.model_dump(mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share", "threads"})
        key = hashlib.sha256(repr((self.records.key, rules, self.prompts, seed)).encode()).hexdigest()[:16]
        self.path = folder / "bench" / "adapters" / f"{key}.safetensors"

    @property
    def done(self) -> bool:
        return self.path.exists()

    def make(self) -> Iterator[int]:
        """Record and learn, unless that has been done; yields how many answers have been learned from."""
        if self.done:
            return
        for _ in record(self.records, self.records.missing(self.prompts), self.settings):
            pass
        line = Line(model_files.find(self.settings.drafter, hub=self.settings.trust_hub), self.settings, {}, self.seed)
        for count, prompt in enumerate(self.prompts, 1):
            line.observe(self.records.load(prompt).trace)
            yield count
        facts = {"requests": len(self.prompts), "steps": line.steps, "seconds": round(line.seconds, 1)}
        with replacing(self.path) as partial:
            save_file({name: one.contiguous() for name, one in line.weights().items()}, partial, {"facts": json.dumps(facts)})

    def load(self) -> Learned:
        """FileNotFoundError before `make`."""
        with safe_open(self.path, "pt") as opened:
            facts = json.loads(opened.metadata()["facts"])
        origin = f"distilled from {facts['requests']} recorded answers in {facts['steps']} steps ({facts['seconds']:.0f} s)"
        return Learned(load_file(self.path), origin)
