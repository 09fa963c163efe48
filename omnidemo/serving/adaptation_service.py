"""Learning for page, endpoint and chats: lines, trainers, routing, settings, import and export of
adapters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidemo.core import config, private_folders
from omnidemo.core.config import Settings
from omnidemo.core.config.controls import CONTROLS
from omnidemo.learning.distill.trainer_status import TrainerStatus
from omnidemo.learning.lines import sample_prompts
from omnidemo.learning.lines.line_names import AUTO, LineInfo, check_domain
from omnidemo.learning.lines.router import DEFAULT, OTHER, Route, Router
from omnidemo.learning.lines.trainer_pool import TrainerPool
from omnidemo.pair.drafting_line import Drafting
from omnidemo.serving.pair_pool import PairPool
from omnidemo.storage.store import Store
from omnidemo.storage.version_store import VersionStore
from omnidemo.storage.visitors import owned

log = logging.getLogger(__name__)
SEEDS = 100  # sample prompts of each topic that a new router learns
LABELLED = 0.9  # least confidence of a topic label: a wrong label is worse than none


class AdaptationService:
    """Works on the pairs of a pool and on the app's one router. Thread-safe. Unless its docstring says
    otherwise, a method that takes a pair raises RuntimeError, one sentence, while the pair is not ready. A
    method that takes a line raises ValueError for an impossible name."""

    def __init__(self, pool: PairPool, store: Store) -> None:
        self._pool, self._store = pool, store
        # Text does not depend on the target: one router serves all pairs.
        self.router = Router(pool.settings.storage / "router" / "words.safetensors", _sample_prompts())

    def prepare(self) -> None:
        """Load the router, so that the first prompt need not wait for it. Errors are logged."""
        try:
            self.router.domains()
        except Exception:
            log.exception("the router could not be prepared")

    def close(self) -> None:
        self.router.save()

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        """The trainer of a line; the status of a line on disk is read from its files. Works while no pair is
        loaded."""
        try:
            return self._lines(target, drafter).status(domain)
        except RuntimeError:
            return TrainerStatus("off", "No pair is loaded.", domain=domain)

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        return self._lines(target, drafter).infos()

    def pause(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._lines(target, drafter).pause(domain)

    def resume(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._lines(target, drafter).resume(domain)

    def reset(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        """Reset a line to the base drafter and delete its adapters and its memory. A reset of the default
        line deletes the pair's n-grams too. The history stays."""
        pair, lines = self._pool.ready(target, drafter)
        domain = check_domain(domain)
        lines.reset(domain)
        self._store.forget_copied(domain, pair.target.name, pair.drafter.name)
        pair.copies.forget(domain)
        if domain == DEFAULT:
            pair.clear_cache()

    def activate(self, target: str, drafter: str, version: int, domain: str = DEFAULT) -> None:
        """Swap in a stored version (0: the base drafter). ValueError for a missing or damaged version,
        OSError where the choice cannot be noted for a restart."""
        self._lines(target, drafter).get(domain).activate(version)

    def drafting(self, target: str, drafter: str, domain: str = DEFAULT) -> Drafting:
        """How a line drafts on the page now, by the policy of the settings."""
        pair, _ = self._pool.ready(target, drafter)
        settings = self._pool.settings
        return pair.drafting(check_domain(domain), settings.policy(), settings.draft_length)

    def on_disk(self, target: str, drafter: str, domain: str = DEFAULT) -> list[int]:
        """The versions of a line whose files are kept, newest first. Works while no pair is loaded."""
        names = self._pool.known(target), self._pool.known(drafter)
        return VersionStore(self._pool.settings.storage).line(*names, check_domain(domain)).numbers()

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        """A version as a zip in PEFT's format. The file stays until the app ends or its visitor is forgotten.
        ValueError or RuntimeError, one sentence."""
        try:
            return self._lines(target, drafter).export(
                domain, version, private_folders.temporary_folder() / "adapters"
            )
        except OSError as error:
            raise RuntimeError(
                f"The adapter could not be written ({error}); free some space and try again."
            ) from error

    def forget_copies(self, domain: str = "") -> None:
        """Empty the memory of a line, or of all lines: answers that left the history are not copied from."""
        for lines in self._pool.all_lines():
            lines.forget_copies(domain)

    def forget_exports(self, domain: str) -> None:
        """Delete the zips of a line's versions."""
        for file in (private_folders.temporary_folder() / "adapters").glob(f"*{domain.strip('~')}*"):
            file.unlink(missing_ok=True)

    def import_adapter(self, target: str, drafter: str, domain: str, path: Path) -> int:
        """Make an adapter in PEFT's format (zip or folder) the line's active version; its number. ValueError
        or RuntimeError, one sentence, for anything else."""
        try:
            return self._lines(target, drafter).adopt(domain, Path(path))
        except OSError as error:
            raise RuntimeError(
                f"The adapter could not be stored ({error}); free some space and try again."
            ) from error

    def configure(self, /, **changes: Any) -> None:
        """Change adaptable settings of all pairs, from the next request and update on. ValueError, one
        sentence, for an impossible name or value; then nothing has changed."""
        self._pool.settings = changed(self._pool.settings, changes)
        for lines in self._pool.all_lines():
            lines.configure(self._pool.settings)

    def choose(self, lines: TrainerPool, domain: str | None, messages: Sequence[Mapping[str, str]]) -> Route:
        """The line of an answer. `domain`: a line's name, "auto", or None for that of the settings.
        ValueError for an impossible name."""
        asked = self._pool.settings.domain if domain is None else domain
        said = [str(message["content"]) for message in messages if message["role"] == "user"]
        if asked == AUTO:
            return self._routed(lines, said)
        chosen = Route(
            check_domain(asked), 1.0, "Chosen in the settings." if domain is None else "Chosen by hand."
        )
        about = self._about(said)
        return replace(chosen, topic=about.topic, topic_why=about.topic_why)

    def teach(self, prompt: str, domain: str) -> None:
        """Teach the router that a prompt belongs to a line. Errors are logged: the answer is already
        shown."""
        if owned(domain):  # all visitors share the router
            return
        try:
            self.router.teach(prompt, domain)
        except Exception:
            log.exception("the router could not learn")

    def _routed(self, lines: TrainerPool, said: Sequence[str]) -> Route:
        route = self._about(said)
        if lines.accepts(route.domain):
            return route
        return replace(
            route,
            domain=DEFAULT,
            why=f"{route.why} There are too many lines for another one, so the default one answers.",
        )

    def _about(self, said: Sequence[str]) -> Route:
        """The line that suits the newest message, or all messages together where the newest is too short
        ("and then?"). The topic is that of the newest message, from the confidence LABELLED on."""
        try:
            route = self.router.route(said[-1]) if said else Route(DEFAULT, 0.0, "There is no prompt.")
            sure = route.domain != DEFAULT and route.confidence >= LABELLED
            topic, why = (route.domain, route.why) if sure else (OTHER, "")
            if route.domain == DEFAULT and len(said) > 1:
                route = self.router.route("\n".join(reversed(said)))
            return replace(route, topic=topic, topic_why=why)
        except Exception:
            log.exception("the router failed")
            return Route(DEFAULT, 0.0, "The router failed, so the default line answers; the log says why.")

    def _lines(self, target: str, drafter: str) -> TrainerPool:
        return self._pool.ready(target, drafter)[1]


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with the page's changes. ValueError, one sentence, for a name that is not adaptable or an
    impossible value. The parsed values are compared with the limits, because numbers may come as texts."""
    if changes.get("domain", AUTO) != AUTO:
        changes = {**changes, "domain": check_domain(changes["domain"])}
    made = config.changed(settings, changes, CONTROLS)
    for name in changes:
        most = CONTROLS[name].most
        if most is not None and getattr(made, name) > most:
            raise ValueError(f"{name} = {str(changes[name])[:40]} is not possible: give at most {most:,}.")
    return made


def _sample_prompts() -> list[tuple[str, str]]:
    """Labelled prompts for a new router; none where the files of the project are missing."""
    try:
        return [
            (prompt, topic)
            for topic in sample_prompts.TOPICS
            for prompt in sample_prompts.sample(topic, SEEDS, 0, "train")
        ]
    except (OSError, ValueError, KeyError):
        log.warning("the sample prompts cannot be read, so the router knows no topic yet")
        return []
