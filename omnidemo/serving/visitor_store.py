"""The store as one visitor of a public app sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidemo.learning.lines.router import DEFAULT
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.serving.quotas import Refused
from omnidemo.storage.database import StoreStatus
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import Caller


class VisitorStore:
    """The store, limited to the rows of one visitor. Every other method is refused."""

    def __init__(self, store: Store, visitor: Caller) -> None:
        self._store, self._visitor = store, visitor

    @property
    def status(self) -> StoreStatus:
        return self._store.status

    def requests(self, *, session: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        rows = self._store.requests(session=self._visitor.own, **filters)
        return [row | {"domain": DEFAULT} for row in rows]

    def curve(self, target: str, drafter: str, limit: int | None = 1000) -> list[dict[str, Any]]:
        rows = self._store.curve(target, drafter, limit, session=self._visitor.own)
        return [row | {"domain": DEFAULT} for row in rows]

    def steps(
        self, target: str, drafter: str, domain: str = DEFAULT, limit: int | None = 1000
    ) -> list[dict[str, Any]]:
        return self._store.steps(target, drafter, self._visitor.own, limit)

    def adapters(self, target: str, drafter: str, domain: str = DEFAULT) -> list[AdapterVersion]:
        return [
            replace(version, domain=DEFAULT, path=None)
            for version in self._store.adapters(target, drafter, self._visitor.own)
        ]

    def sessions(self) -> list[dict[str, Any]]:
        return []

    def recording(self, request: int) -> dict[str, Any] | None:
        return self._store.recording(request, session=self._visitor.own)

    def recorded(self, requests: Iterable[int]) -> set[int]:
        # the page asks for the visitor's own rows; only `recording` returns contents
        return self._store.recorded(requests)

    def delete_session(self, session: str) -> int:
        return self._store.forget_visitor(self._visitor.own)

    def delete_requests(self, ids: Sequence[int]) -> int:
        own = {int(row["id"]) for row in self.requests(limit=None)}
        return self._store.delete_requests([request for request in ids if request in own])

    def export_csv(self, kind: Any, path: Path, /, **filters: str | None) -> int:
        mine: Mapping[str, str | None] = (
            {"domain": self._visitor.own} if kind == "steps" else {"session": self._visitor.own}
        )
        return self._store.export_csv(kind, path, **{**filters, **mine})

    def __getattr__(self, name: str) -> Any:
        raise Refused("In a public app visitors see and change what is theirs only.")
