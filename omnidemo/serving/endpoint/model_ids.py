"""Models by their ids: `target@drafter:line`, `target` alone, or `omnidemo` for the pair of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from omnidemo.core.config import EMBEDDED_TARGET
from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.models.model_files import GONE
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.public_services import PublicServices

ALIAS = "omnidemo"
AT_HAND = ("bundled", "cached")  # models that can be loaded without a download
MOST_SHOWN = 12  # ids in an error


@dataclass(frozen=True, slots=True)
class ModelId:
    """A pair and the adapter line that drafts; without a line it is the settings'."""

    target: str
    drafter: str
    line: str | None = None

    @property
    def named_line(self) -> bool:
        """Whether the id names a line that may not exist."""
        return self.line not in (None, DEFAULT, AUTO)

    def written(self, settings: Any) -> str:
        return f"{self.target}@{self.drafter}:{self.line or settings.domain}"


def find_own(settings: Any, name: str) -> ModelId | None:
    """The settings' pair, where the id names it; reads nothing."""
    if name == ALIAS:
        return ModelId(settings.target, settings.drafter)
    return _match(name, [settings.target], [settings.drafter], settings.drafter)


def find(front: PublicServices, name: str) -> ModelId:
    """The pair and line that an id names; reads folders. ApiError 404 for an id that names none.

    Names hold slashes, and may hold `@` and `:`, so an id is held against the known names and not taken
    apart.
    """
    targets, drafters = _known(front)
    found = find_own(front.settings, name) or _match(name, targets, drafters, front.settings.drafter)
    if found is None:
        ids = [ALIAS, *targets[:MOST_SHOWN]]
        instead = f"use one of {', '.join(ids)}, or target@drafter:line"
        if (old := name.partition("@")[0]) in GONE:
            instead = f"{old} is gone, take {EMBEDDED_TARGET} or {ALIAS} instead"
        raise _unknown(name, instead)
    return found


def check_line(front: PublicServices, model: ModelId) -> ModelId:
    """The model of a loaded pair, if that has the line. ApiError 404 where not: a slip of the pen must not
    begin a new one."""
    lines = _lines(front, model)
    if model.line not in lines:
        raise _unknown(model.written(front.settings), f"its lines are {', '.join([AUTO, *lines])[:200]}")
    return model


def listed(front: PublicServices) -> list[str]:
    """The ids of all that can be had without a download: aliases first, then pairs with their lines. May read
    folders."""
    targets, drafters = _known(front, AT_HAND)
    pairs = [ModelId(target, drafter) for target in targets for drafter in drafters]
    return [
        ALIAS,
        *targets,
        *(replace(pair, line=line).written(front.settings) for pair in pairs for line in _lines(front, pair)),
    ]


def _lines(front: PublicServices, pair: ModelId) -> list[str]:
    if front.state(pair.target, pair.drafter).stage != "ready":
        return [DEFAULT]
    return list(dict.fromkeys([DEFAULT, *(line.domain for line in front.lines(pair.target, pair.drafter))]))


def _known(front: PublicServices, availability: Iterable[str] | None = None) -> tuple[list[str], list[str]]:
    """Targets and drafters, those of the settings first."""
    cards = [card for card in front.models() if availability is None or card.availability in availability]
    targets = [card.name for card in cards if card.role in ("target", "both")]
    drafters = [card.name for card in cards if card.role in ("drafter", "both")]
    # the settings' own pair is an id even where its files are gone: loading it says what is wrong
    if availability is None:
        targets, drafters = [front.settings.target, *targets], [front.settings.drafter, *drafters]
    return list(dict.fromkeys(targets)), list(dict.fromkeys(drafters))


def _match(name: str, targets: Iterable[str], drafters: Iterable[str], drafter: str) -> ModelId | None:
    for target, known in product(targets, drafters):
        pair = f"{target}@{known}"
        line = name.removeprefix(f"{pair}:")
        if name == target:
            return ModelId(target, drafter)
        if name == pair:
            return ModelId(target, known)
        if line not in (name, ""):
            return ModelId(target, known, line)
    return None


def _unknown(name: str, instead: str) -> ApiError:
    return ApiError(
        404, f"The model `{name[:120]}` does not exist; {instead}.", param="model", code="model_not_found"
    )
