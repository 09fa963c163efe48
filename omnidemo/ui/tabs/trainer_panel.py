"""The trainer panel: what one adapter line learns now, the expected gain, and the present draft length."""

from __future__ import annotations

from typing import Any

from omnidemo.core.config.controls import CONTROLS
from omnidemo.core.private_folders import without_folders
from omnidemo.serving.public_services import PublicServices
from omnidemo.storage.recorded_rounds import finite
from omnidemo.ui import text
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.shell import if_loaded


def drafting_json(services: PublicServices, target: str, drafter: str, domain: str) -> dict[str, Any] | None:
    """How far the pair guesses ahead now; None while it is not loaded."""
    now = if_loaded(services.drafting, target, drafter, domain, otherwise=None)
    return now and {
        "title": CONTROLS["draft_policy"].choices[services.settings.draft_policy],
        "length": finite(now.length, 2),
        "speculating": bool(now.speculating),
        "untrained": now.untrained,
        "costs": [finite(cost) for cost in now.costs],
        "off": now.policy == "fixed" and not now.length,
    }


def trainer_json(services: PublicServices, target: str, drafter: str, domain: str = "default") -> str:
    """Trainer, draft length and state of the database for one adapter line, as the value of the `trainer`
    widget."""
    # No line may have the name that somebody is typing.
    status = if_loaded(services.trainer, target, drafter, domain, otherwise=None) or services.trainer(
        target, drafter
    )
    store = services.store.status
    names = (
        "state", "why", "version", "step", "requests_seen", "last_swap", "rolled_back",
    )  # fmt: skip
    shown = {name: getattr(status, name) for name in names} | {
        "loaded": services.state(target, drafter).stage == "ready",
        "domain": status.domain,
        "title": text.TRAINER.get(status.state, status.state),
        "error": without_folders(status.error or (store.message if store.ok else None) or "") or None,
        "mode": CONTROLS["training"].choices.get(status.mode, status.mode),
        "loss": finite(status.loss),
        "seconds": finite(status.seconds, 2),
        "drafting": drafting_json(services, target, drafter, status.domain),
        "store": {"ok": store.ok, "message": without_folders(store.message), "pending": store.pending},
    }
    return for_browser(shown)
