"""The route of each session's newest question."""

from __future__ import annotations

import threading
from collections import OrderedDict

from omnidemo.learning.lines.router import Route

SESSIONS_KNOWN = 256  # sessions whose newest route is remembered


class SessionRoutes:
    """The newest route of each of the last SESSIONS_KNOWN sessions. Thread-safe."""

    def __init__(self) -> None:
        self._routes: OrderedDict[str, Route] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, session: str, route: Route) -> None:
        with self._lock:
            self._routes[session] = route
            self._routes.move_to_end(session)
            while len(self._routes) > SESSIONS_KNOWN:
                self._routes.popitem(last=False)

    def of(self, session: str) -> Route | None:
        return self._routes.get(session)

    def forget(self, session: str) -> None:
        """Forget a session's routes, whose reasons quote its prompts."""
        with self._lock:
            self._routes.pop(session, None)
