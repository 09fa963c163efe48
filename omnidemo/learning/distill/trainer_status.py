"""The state of a line's trainer, as numbers and as sentences for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnidemo.core.config import Settings
from omnidemo.storage.line_versions import LineVersions

SUSPICIOUS_SECONDS = 10.0
State = Literal["idle", "waiting", "training", "paused", "off", "failed"]


@dataclass(frozen=True, slots=True)
class TrainerStatus:
    state: State
    why: str  # one or two sentences for people
    version: int = 0
    step: int = 0
    loss: float | None = None
    requests_seen: int = 0
    next_in: int = 0  # requests until the next update
    last_swap: str | None = None  # UTC ISO
    seconds: float = 0.0  # training seconds of the last update, without pauses
    error: str | None = None
    mode: str = "idle"
    domain: str = "default"
    rolled_back: int = 0  # versions


def explain(state: State, left: int, remark: str = "", mode: str = "idle") -> str:
    """The state and its reason for people. `left`: answers until the next update; `remark`: a sentence about
    the last one."""
    requests = "one more answer" if left == 1 else f"{left} more answers"
    due = f"An update is due and starts {'with the next answer' if mode == 'inline' else 'at once'}."
    sentences = {
        "off": (
            "Learning is switched off in the settings, or the drafter is a GGUF file, which cannot be"
            " trained."
        ),
        "paused": "Learning is paused; answers are still collected.",
        "failed": f"Learning met a problem; it is tried again after {requests}.",
        "training": "The small model is learning from the latest answers.",
        "waiting": "An update is due and waits while an answer is being written, or another topic learns.",
        "idle": f"The small model learns after {requests}." if left else due,
    }
    return " ".join(filter(None, (sentences[state], remark if state != "off" else "")))


def hanging(silent: float) -> str:
    """A sentence about a training process without a sign of life for so many seconds; "" while that is
    usual."""
    if silent < SUSPICIOUS_SECONDS:
        return ""
    return (
        f"The training process has given no sign of life for {silent:.0f} s; it is killed and started again"
        " if that goes on."
    )


def status_on_disk(line: LineVersions, settings: Settings, paused: bool, waiting: int) -> TrainerStatus:
    """The status of a line that is not in memory. `waiting`: its answers that no update has read."""
    version = line.active
    info = line.info(version)
    state: State = "off" if settings.training == "off" else "paused" if paused else "idle"
    on_disk = "This line waits on disk until the next answer of its topic."
    waits = on_disk if line.numbers() else "This line has no answer."
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
