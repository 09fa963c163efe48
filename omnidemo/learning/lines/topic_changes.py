"""Where the requests of a line change their topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

STRETCH = 3  # requests of one topic in a row from which on it is a stretch


def topic_changes(topics: Sequence[Any]) -> dict[int, Any]:
    """Where a stretch of another topic begins → the topic before. Fewer than STRETCH requests in a row are no
    stretch."""
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
