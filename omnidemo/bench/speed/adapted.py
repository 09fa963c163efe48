"""An adapted drafter for the benchmark: the one that a storage folder has, or one distilled on the spot and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from omnidemo.adapters import version_folders
from omnidemo.bench.experiments.jobs import record
from omnidemo.bench.experiments.line import Line
from omnidemo.bench.report_tables import Stage
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


def distilled(settings: Settings, target: str, prompts: Sequence[str], seed: int, stage: str) -> Generator[Stage, None, Learned]:
    """Distil a drafter from recorded greedy answers of the target, an update every few answers as in the app, and tell of each answer in a
    `stage`. The settings' storage keeps recordings and result, so the next time it is returned at once. ModelError where a model is not
    there."""
    settings = settings.model_copy(update={"head": "off"})
    records = TargetRecords(settings.storage / "records", target, settings.drafter, settings)
    rules = settings.model_dump(mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share", "threads"})
    key = hashlib.sha256(repr((records.key, rules, list(prompts), seed)).encode()).hexdigest()[:16]
    path = settings.storage / "bench" / "adapters" / f"{key}.safetensors"
    if not path.exists():
        yield Stage(stage, 0, len(prompts))
        record(records, records.missing(prompts), settings)
        line = Line(model_files.find(settings.drafter, hub=settings.trust_hub), settings, {}, seed)
        for count, prompt in enumerate(prompts, 1):
            line.observe(records.load(prompt).trace)
            yield Stage(stage, count, len(prompts))
        made = {"requests": len(prompts), "steps": line.steps, "seconds": round(line.seconds, 1)}
        with replacing(path) as partial:
            save_file({name: one.contiguous() for name, one in line.weights().items()}, partial, {"facts": json.dumps(made)})
    with safe_open(path, "pt") as opened:
        facts = json.loads(opened.metadata()["facts"])
    origin = f"distilled from {facts['requests']} recorded answers in {facts['steps']} steps ({facts['seconds']:.0f} s)"
    return Learned(load_file(path), origin)
