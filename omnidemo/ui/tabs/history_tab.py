"""The History tab: past requests of the store, CSV downloads, deletion. A visitor of a public app sees only
their own session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gradio as gr

from omnidemo.core.answer_figures import figures_of
from omnidemo.core.private_folders import without_folders
from omnidemo.decoding.methods import AUTO
from omnidemo.models.catalogue import title_of
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.storage.visitors import is_public
from omnidemo.ui import downloads
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import asked_of
from omnidemo.ui.shell import QUIET, Shell, widget

NEWEST = 200
LONGEST_TEXT = 2000  # characters of a prompt or answer that the page gets; the CSV has all
SHOWN: tuple[str, ...] = (
    "id", "created_at", "session", "target", "drafter", "method", "kind", "domain", "topic", "tokens",
)  # fmt: skip
SHOWN += ("adapter_version", "finish_reason")
# Beside the figures of an answer what is measured after it.
FIGURES = (
    *(figure.name for figure in figures_of("history")),
    *("agreement", "same_first", "speedup", "speedup_low", "speedup_high"),
)
SEPARATOR = " ⇠ "


def scope(services: PublicServices, filters: Mapping[str, Any]) -> dict[str, str | None]:
    """The store's filters for what the page asked; "mine" is the session of the caller, where none matches
    nothing. A visitor's store gives that visitor's rows whatever is asked."""
    target, _, drafter = str(filters.get("pair") or "").partition(SEPARATOR)
    wanted = str(filters.get("session") or "") or None
    if wanted == "mine":
        wanted = services.session or "no session"
    return {
        "target": target or None,
        "drafter": drafter or None,
        "method": str(filters.get("method") or "") or None,
        "session": wanted,
    }


def table(services: PublicServices, filters: Mapping[str, Any]) -> dict[str, Any]:
    """The table, the choices of the filters and what is wrong with the database, for the `history` widget."""
    store, settings, status = services.store, services.settings, services.store.status
    where: dict[str, Any] = scope(services, filters)
    asked = filters.get("answer")
    linked = asked if isinstance(asked, int) and 0 < asked < 2**63 else None  # the answer that a link names
    rows = store.requests(**where, id=linked, limit=NEWEST)
    visible = (
        store.requests(session=where["session"], limit=NEWEST) if linked or any(where.values()) else rows
    )
    recorded = store.recorded(row["id"] for row in rows)
    sessions = [entry for entry in store.sessions() if entry["requests"]]
    return {
        "rows": [_row(row) | {"replay": row["id"] in recorded} for row in rows],
        "newest": NEWEST,
        "answer": linked,
        "pairs": sorted({f"{row['target']}{SEPARATOR}{row['drafter']}" for row in visible}),
        # a row names what that became
        "methods": [info.name for info in services.methods() if info.name != AUTO],
        "sessions": [
            {"id": own["id"], "requests": own["requests"], "at": own["created_at"]} for own in sessions
        ],
        "mine": services.session,
        "everyone": not is_public(settings),
        "keep_text": settings.keep_text,
        "store": {"ok": status.ok, "message": without_folders(status.message)},
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    metrics = row.get("metrics") or {}
    shown = {name: row.get(name) for name in SHOWN}
    shown |= {name: finite(row.get(name, metrics.get(name))) for name in FIGURES}
    shown["target_title"] = title_of(str(row.get("target")))
    return shown | {
        name: None if row.get(name) is None else str(row[name])[:LONGEST_TEXT]
        for name in ("prompt", "answer")
    }


def delete(services: PublicServices, what: Mapping[str, Any]) -> str:
    """Delete `ids`, a `session`, or `mine`; what happened, in one sentence. A visitor's store leaves the
    requests of others alone."""
    store = services.store
    if what.get("mine") or what.get("session"):
        wanted = str(what.get("session") or services.session)
        gone = store.delete_session(wanted) if wanted else 0
    else:
        asked = what.get("ids")
        ids = (
            {number for number in asked if isinstance(number, int) and 0 < number < 2**63}
            if isinstance(asked, list)
            else set()
        )
        gone = store.delete_requests(sorted(ids)) if ids else 0
    if gone:
        services.forget_copies(services.own)
        downloads.forget_files(services.own)
    if not gone and not store.status.ok:
        return f"Nothing was deleted: {without_folders(store.status.message)}"
    return f"{gone} request{'' if gone == 1 else 's'} deleted." if gone else "There was nothing to delete."


def export(services: PublicServices, filters: Mapping[str, Any]) -> Path:
    """A CSV file of the requests, or of the rounds, that the visitor may see."""
    kind: Literal["requests", "rounds"] = "rounds" if filters.get("csv") == "rounds" else "requests"
    path = downloads.temporary(f"omnidemo-{kind}.csv", services.own)
    services.store.export_csv(kind, path, **scope(services, filters))
    return path


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the History tab."""
    page = widget("history", events=("poll", "remove", "export"))

    def show(event: gr.EventData) -> Any:
        asked, said = asked_of(event), ""
        if "remove" in asked:
            said = delete(services, downloads.fields(asked["remove"], "requests to delete"))
        value = table(services, asked)
        key = hashlib.sha1(for_browser(value).encode()).hexdigest()
        same = key == asked.get("key") and not said
        return gr.skip() if same else for_browser({**value, "key": key, "said": said})

    for name, api_name in (("poll", "history"), ("remove", "delete_history")):
        getattr(page, name)(show, None, [page], api_name=api_name, **QUIET)
    downloads.download(page.export, "history", partial(export, services))
