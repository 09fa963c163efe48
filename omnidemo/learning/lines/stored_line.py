"""The trainer of an adapter line that is not in memory, as its files tell it."""

from __future__ import annotations

from omnidemo.core.config import Settings
from omnidemo.learning.distill.trainer_status import State, TrainerStatus, explain
from omnidemo.storage.line_versions import LineVersions


def status_on_disk(line: LineVersions, settings: Settings, paused: bool, waiting: int) -> TrainerStatus:
    """`waiting`: how many answers of the line no update has learned from yet."""
    version = line.active
    info = line.info(version)
    state: State = "off" if settings.training == "off" else "paused" if paused else "idle"
    waits = (
        "This line waits on disk until the next answer of its topic."
        if line.numbers()
        else "This line has no answer."
    )
    return TrainerStatus(
        state=state,
        why=waits if state == "idle" else explain(state, 0),
        version=version,
        step=info.steps if info else 0,
        loss=info.loss if info else None,
        requests_seen=(info.requests_seen if info else 0) + waiting,
        next_in=max(1, settings.update_interval - waiting),
        mode=settings.training,
        domain=line.domain,
    )
