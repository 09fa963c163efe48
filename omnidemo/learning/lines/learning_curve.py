"""The curve that shows learning: tokens per pass of the target on a topic's probe prompts, for the fresh
drafter and each version. All figures come from the same recorded answers, replayed with drafts of 4 tokens
and the same n-grams, so that draft policy, temperature and clock have no influence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from omnidemo.core.records import Replayed
from omnidemo.learning.lines.router import OTHER
from omnidemo.learning.probes.probe import DRAFT_LENGTH
from omnidemo.storage.line_store import replayed
from omnidemo.storage.store import Store

LOOKED_AT = 1000  # newest requests of a line that are searched for changes of topic
MOST_CHANGES = 12
STRETCH = 3  # requests of one topic in a row that make a stretch
Counts = Sequence[Sequence[int]]  # (tokens, passes) of each prompt


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """The same recorded answers, replayed with the fresh drafter and with a version of a line, without
    times."""

    after_version: int
    before: tuple[Replayed, ...]
    after: tuple[Replayed, ...]


def curve(store: Store, target: str, drafter: str, line: str, topic: str) -> dict[str, Any]:
    """The curve as plain data. `topic`: "" takes the newest measured topic of the line.

    points: one per replayed version, oldest first: version, examples (answers before it), steps (tokens per
    pass), error (`error_of_change` of steps against fresh), agreement, same_first, rolled_back. fresh: the
    point of version 0. today: the point of the version that drafts now. Both are None where not measured yet.
    marks: x (examples), kind (swap, rollback or topic), label; the swap is at `today`. topics: the measured
    ones.
    """
    rows = store.probes(target, drafter, line)
    measured = sorted({row["topic"] for row in rows})
    asked = store.topics(target, drafter, line, LOOKED_AT)
    topic = topic or next((name for name, _ in reversed(asked) if name and name in measured), "")
    own = [row for row in rows if row["topic"] == topic]  # of one recording: the store keeps no others
    versions = {version.version: version for version in store.adapters(target, drafter, line)}
    gone = {number for number, version in versions.items() if version.effect.get("rolled_back")}
    start = next((row["counts"] for row in own if row["version"] == 0), None)
    points = [_point(row, row["version"] in gone, start) for row in own]
    fresh = next((point for point in points if point["version"] == 0), None)
    active = store.active_version(target, drafter, line)
    today = next((point for point in points if point["version"] == active), None)
    learned = [point for point in points if point["version"]]
    marks = [
        {"x": point["examples"], "kind": "rollback", "label": f"v{point['version']} taken back"}
        for point in learned
        if point["rolled_back"]
    ]
    if today in learned:
        marks.append({"x": today["examples"], "kind": "swap", "label": f"v{today['version']}"})
    return {
        "target": target, "drafter": drafter, "line": line, "topic": topic, "draft_length": DRAFT_LENGTH,
        "prompts": own[-1]["prompts"] if own else 0,
        "fresh": fresh,
        "today": today,
        "points": learned,
        "marks": sorted(marks + _changes(asked, versions), key=lambda mark: mark["x"]),
        "topics": measured,
    }  # fmt: skip


def before_after(store: Store, target: str, drafter: str, line: str, topic: str) -> BeforeAfter | None:
    """The probe prompts whose rounds are kept, by the fresh drafter and by the version that drafts now, or by
    the newest measured one before it. None where either is missing, or the fresh drafter drafts."""
    rows = store.probes(target, drafter, line, topic, shown=True)
    shown = {row["version"]: tuple(replayed(row["shown"])) for row in rows if row["shown"]}
    active = store.active_version(target, drafter, line)
    newest = max((version for version in shown if version <= active), default=0)
    if not newest or 0 not in shown:
        return None
    now = shown[newest]
    pairs = [(before, after) for before in shown[0] for after in now if before.prompt == after.prompt]
    return BeforeAfter(newest, tuple(before for before, _ in pairs), tuple(after for _, after in pairs))


def error_of_change(before: Counts | None, after: Counts | None) -> float | None:
    """The standard error of the relative change of tokens per pass, as a share, from (tokens, passes) of each
    prompt in one order, by the linearised ratio estimator (Cochran, 6.4). The prompts are a sample of their
    topic.

    Both sides have the same answers, so the change is a ratio of passes minus 1, and a prompt adds its
    deviation from that ratio. With few prompts the error is a little too small. None for unknown counts,
    other answers, or fewer than two prompts.
    """
    if not before or not after or len(before) < 2 or [t for t, _ in before] != [t for t, _ in after]:
        return None
    passes, count = sum(each for _, each in after), len(after)
    ratio = sum(each for _, each in before) / passes
    squares = sum((old - ratio * new) ** 2 for (_, old), (_, new) in zip(before, after, strict=True))
    return math.sqrt(squares * count / (count - 1)) / passes


def topic_changes(topics: Sequence[Any]) -> dict[int, Any]:
    """Index at which a stretch of another topic begins → the topic before. A stretch has STRETCH requests."""
    found: dict[int, Any] = {}
    place, before = 0, None
    for topic, group in groupby(topics):
        length = len(list(group))
        if topic is not None and length >= STRETCH and topic != before:
            if before is not None:
                found[place] = before
            before = topic
        place += length
    return found


def _point(row: Mapping[str, Any], rolled_back: bool, start: Counts | None) -> dict[str, Any]:
    names = ("version", "examples", "agreement", "same_first")
    return {name: row[name] for name in names} | {
        "steps": row["tokens"] / row["passes"],
        "error": error_of_change(start, row["counts"]),
        "rolled_back": rolled_back,
    }


def _changes(asked: Sequence[tuple[str | None, str]], versions: Mapping[int, Any]) -> list[dict[str, Any]]:
    """Marks where the topic of a line's requests changed, at the number of its answers by then."""
    topics = [(topic, at) for topic, at in asked if topic and topic != OTHER]
    changes = list(topic_changes([topic for topic, _ in topics]).items())[-MOST_CHANGES:]
    times = [at for _, at in asked]
    return [
        {
            "x": _examples(times, topics[place][1], versions),
            "kind": "topic",
            "label": f"{before} → {topics[place][0]}",
        }
        for place, before in changes
    ]


def _examples(times: Sequence[str], now: str, versions: Mapping[int, Any]) -> int:
    """Answers of a line by the time `now`: those before its newest version then, and those since. `times`: of
    its answers."""
    earlier = [version for version in versions.values() if version.created_at <= now]
    last = max(earlier, key=lambda version: version.version, default=None)
    since = last.created_at if last is not None else ""
    return (last.requests_seen if last is not None else 0) + sum(since < at < now for at in times)
