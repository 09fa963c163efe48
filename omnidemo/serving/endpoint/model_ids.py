"""Ids of models: `target@drafter:line`, `target` alone, or `omnidemo` for the pair of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.serving.endpoint.api_errors import ApiError
from omnidemo.serving.public_services import PublicServices

ALIAS = "omnidemo"
AT_HAND = ("bundled", "cached")  # models that can be loaded without a download
MOST_SHOWN = 12  # ids in an error


@dataclass(frozen=True, slots=True)
class ModelId:
    """A pair and the adapter line that drafts (None: that of the settings)."""

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
    """The pair of the settings, where the id names it. Reads no files."""
    if name == ALIAS:
        return ModelId(settings.target, settings.drafter)
    return _match(name, [settings.target], [settings.drafter], settings.drafter)


def find(front: PublicServices, name: str) -> ModelId:
    """The pair and line that an id names, among the models in known folders. ApiError 404 for an unknown id.

    Names may hold `@` and `:`, so an id is compared with the known names instead of split.
    """
    targets, drafters = _known(front)
    found = find_own(front.settings, name) or _match(name, targets, drafters, front.settings.drafter)
    if found is None:
        ids = [ALIAS, *targets[:MOST_SHOWN]]
        raise _unknown(name, f"use one of {', '.join(ids)}, or target@drafter:line")
    return found


def check_line(front: PublicServices, model: ModelId) -> ModelId:
    """The model, where its loaded pair has the line. ApiError 404 otherwise: a typing error must not begin a
    new line."""
    lines = _lines(front, model)
    if model.line not in lines:
        raise _unknown(model.written(front.settings), f"its lines are {', '.join([AUTO, *lines])[:200]}")
    return model


def listed(front: PublicServices) -> list[str]:
    """The ids that need no download: aliases first, then pairs with their lines. May read folders."""
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
    # the pair of the settings is an id even where its files are gone: loading says what is wrong
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
