"""`python -m lab bench`: drafters first, then the contest of each target, then the files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from lab.experiments.jobs import record
from lab.races import llama_cpp, speed_report
from lab.races.contest import BenchRequest, Contest
from lab.races.machine import facts
from lab.races.speed_report import Row
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.learning.probes.replayed_target import TargetRecords
from omnidemo.models import model_files
from omnidemo.models.adapters.adapter_state import BaseWeights, merged_weights
from omnidemo.models.names import at_its_pace, drafter_of
from omnidemo.serving.measuring.line import Line
from omnidemo.serving.measuring.prompt_files import make_writable
from omnidemo.serving.measuring.report_tables import Stage, csv_table
from omnidemo.storage.version_store import VersionStore


def run(order: BenchRequest, settings: Settings) -> Iterator[Stage | Row]:
    """Yield how far it is, and each row when it is in `speed.csv`; `speed.json` and `speed.md` follow at the
    end of each target.

    ValueError or ModelError, before anything is measured, for what cannot be.
    """
    if 0 < order.requests < settings.update_interval:
        raise ValueError(
            f"a drafter learns every {settings.update_interval} answers; give at least so many requests, or 0"
            " for none"
        )
    make_writable(order.out / "speed.csv")
    rows: list[Row] = []
    about: dict[str, Any] = {"command": order.command} if order.command else {}
    with csv_table(order.out / "speed.csv", speed_report.COLUMNS) as append:
        for target in order.targets:
            learned: dict[str, Learned] = {}
            own = settings.model_copy(update={"drafter": drafter_of(target, settings)})
            for topic in order.held_out:
                found = stored(order.adapters, own, target, topic) if order.adapters else None
                prompts = list(order.traffic.get(topic, ()))[: order.requests]
                if found is None and prompts:
                    found = yield from distilled(
                        own, target, prompts, order.seed, f"{target}: learning {topic}"
                    )
                if found is not None:
                    learned[topic] = found
            contest = Contest(target, order, {topic: one.weights for topic, one in learned.items()}, own)
            about = facts(contest.target.device) | about
            for count, row in enumerate(contest.run(), 1):
                append(row)
                rows.append(row)
                yield Stage(f"{target}: answers", count, contest.total)
                yield row
            about[target] = _about(contest, learned)
            _write(order.out, rows, about)


def _about(contest: Contest, learned: Mapping[str, Learned]) -> dict[str, Any]:
    """What has to be known about one target's figures."""
    rates = {
        f"{count} threads": f"{contest.probe.rate(count) / 1e9:.0f} Gop/s"
        for count in sorted(set(contest.threads.values()))
    }
    bandwidths = {
        f"{count} threads": contest.probe.table(count) for count in sorted(set(contest.threads.values()))
    }
    tried = {
        side: {str(count): round(seconds, 4) for count, seconds in times.items()}
        for side, times in contest.tried.items()
    }
    return {
        "drafter": contest.drafter.name,
        "weights": contest.forms,
        "dtype": str(contest.target.dtype).removeprefix("torch."),
        "parameters": f"{contest.target.parameters:,} and {contest.drafter.parameters:,}",
        "threads": contest.threads,
        "seconds by threads": tried or "given",
        "bandwidth GB/s": bandwidths,
        "rate": rates,
        "llama.cpp": contest.no_llama or llama_cpp.about(),
        "adapted drafters": {topic: one.origin for topic, one in learned.items()} or "none",
    }


def _write(out: Path, rows: Sequence[Row], about: Mapping[str, Any]) -> None:
    (out / "speed.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "speed.md").write_text(speed_report.markdown(rows, about), encoding="utf-8")


# adapted drafters
# ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Merged drafter weights by name, and in words where they come from."""

    weights: dict[str, Tensor]
    origin: str


def stored(storage: Path, settings: Settings, target: str, topic: str) -> Learned | None:
    """The active version of the topic's line in a storage folder, else of the default line; None where there
    is none."""
    for domain in (topic, "default"):
        line = VersionStore(storage).line(target, settings.drafter, domain)
        noted, numbers = line.active, line.numbers()
        version = noted if noted is not None else numbers[0] if numbers else 0
        if version in numbers:
            kept = line.load(version)
            base = BaseWeights(model_files.find(settings.drafter, hub=settings.trust_hub))
            seen = kept.info.requests_seen
            return Learned(
                dict(merged_weights(base, kept.adapter)),
                f"line {domain}, version {version}, {seen} requests",
            )
    return None


def distilled(
    settings: Settings, target: str, prompts: Sequence[str], seed: int, stage: str
) -> Generator[Stage, None, Learned]:
    """Distil a drafter from recorded greedy answers of the target, an update every few answers as in the app,
    and tell of each answer in a `stage`. The settings' storage keeps recordings and result, so the next time
    it is returned at once. ModelError where a model is not there."""
    settings = at_its_pace(settings, settings.drafter, target).model_copy(
        update={"head": "off", "training_seed": seed}
    )
    records = TargetRecords(settings.storage / "records", target, settings.drafter, settings)
    rules = settings.model_dump(
        mode="json", exclude={"storage", "database_url", "host", "port", "auth", "share", "threads"}
    )
    key = hashlib.sha256(repr((records.key, rules, list(prompts))).encode()).hexdigest()[:16]
    path = settings.storage / "bench" / "adapters" / f"{key}.safetensors"
    if not path.exists():
        yield Stage(stage, 0, len(prompts))
        missing = records.missing(prompts)
        for count, _ in enumerate(record(records, missing, settings), 1):
            yield Stage(f"{stage}, recordings", count, len(missing))
        line = Line(model_files.find(settings.drafter, hub=settings.trust_hub), settings, {})
        for count, prompt in enumerate(prompts, 1):
            line.observe(records.load(prompt).trace)
            yield Stage(stage, count, len(prompts))
        made = {"requests": len(prompts), "steps": line.steps, "seconds": round(line.seconds, 1)}
        with replacing(path) as partial:
            save_file(
                {name: one.contiguous() for name, one in line.weights().items()},
                partial,
                {"facts": json.dumps(made)},
            )
    with safe_open(path, "pt") as opened:
        facts = json.loads(opened.metadata()["facts"])
    origin = (
        f"distilled from {facts['requests']} recorded answers in {facts['steps']} steps"
        f" ({facts['seconds']:.0f} s)"
    )
    return Learned(load_file(path), origin)
