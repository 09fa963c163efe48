"""Stop strings of a stream: the text up to the first one, without what may yet become one."""

from __future__ import annotations

from collections.abc import Sequence


class StopFilter:
    """Takes an answer piece by piece and gives what may be shown of it. A generation ends after the token that completes a stop string,
    and its text has it still; OpenAI's format leaves it out."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self._over = False

    def add(self, text: str) -> str:
        """What can be shown now. Looks at the new text and what was held back, never at the whole answer."""
        if not self._stops:
            return text
        if self._over:
            return ""
        self._held += text
        found = [place for place in (self._held.find(stop) for stop in self._stops) if place >= 0]
        if found:
            self._over = True
            shown, self._held = self._held[: min(found)], ""
            return shown
        keep = max(self._begun(stop) for stop in self._stops)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def end(self) -> str:
        """What was held back and did not become a stop string."""
        rest, self._held = self._held, ""
        return rest

    def _begun(self, stop: str) -> int:
        """Characters at the end of the text with which the stop string begins."""
        most = min(len(stop) - 1, len(self._held))
        return next((length for length in range(most, 0, -1) if self._held.endswith(stop[:length])), 0)
