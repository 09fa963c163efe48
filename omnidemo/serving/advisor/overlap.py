"""How much of a target's vocabulary a drafter has: measured where both tokenizers are on this machine, else
as a paper or the catalogue says."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from omnidemo.core.asset_files import ASSETS
from omnidemo.learning.lines import sample_prompts
from omnidemo.models.load import ModelError
from omnidemo.serving.advisor.model_facts import ModelFacts
from omnidemo.serving.measuring import vocabularies
from omnidemo.vocabulary.vocabulary import Vocabulary

TEXTS = 120
REPORTED = ASSETS / "reported.json"


@dataclass(frozen=True, slots=True)
class Overlap:
    """`mapped` of the target's `tokens` have a drafter token with the same bytes; None: all, without a count.
    `direct`: their share of the tokens of sample prompts, 0 to 1; None where only a count is known. `source`:
    who says so."""

    mapped: int | None
    tokens: int | None
    direct: float | None
    source: str

    @property
    def words(self) -> str:
        """The figures in a few words."""
        count = "all" if self.mapped is None else f"{self.mapped:,} of {self.tokens:,}"
        return (
            count if self.direct is None or self.mapped is None else f"{count}, {self.direct:.0%} of a text"
        )


@cache
def reported() -> dict[str, Any]:
    """What papers report of pairs and vocabularies, each figure with its source. None of it was measured by
    this project."""
    found: dict[str, Any] = json.loads(REPORTED.read_text(encoding="utf-8"))
    return found


def prompts_of(topic: str, count: int) -> list[str]:
    """The first sample prompts of a topic, for "mixed" of all topics in turn. ValueError for an unknown
    topic."""
    if topic != "mixed":
        return sample_prompts.sample(topic, count)
    each = [
        sample_prompts.sample(one, -(-count // len(sample_prompts.TOPICS))) for one in sample_prompts.TOPICS
    ]
    return [prompt for row in zip(*each, strict=True) for prompt in row][:count]


def read_vocabulary(model: ModelFacts) -> Vocabulary | None:
    """The vocabulary of a model whose tokenizer is on this machine, else None."""
    with suppress(ModelError):
        if model.folder is not None:
            return vocabularies.read_tokenizer(
                str(model.folder) if model.folder.is_dir() else model.name, hub=False
            )
        if model.gguf:
            return vocabularies.read_tokenizer(model.name, hub=False)
    return None


def overlap(target: ModelFacts, large: Vocabulary | None, drafter: ModelFacts) -> Overlap | None:
    """The overlap of two models; None where nobody has measured it. `large`: the target's vocabulary."""
    small = read_vocabulary(drafter) if large is not None else None
    if large is not None and small is not None:
        source = f"measured here on the bytes of both tokenizers and {TEXTS} sample prompts"
        try:
            found = vocabularies.report(
                (target.name, large), (drafter.name, small), prompts_of("mixed", TEXTS)
            )
        except ValueError:  # no token in common
            return Overlap(0, len(large), 0.0, source)
        return Overlap(found.mapped, len(large), found.direct / max(1, found.tokens), source)
    if target.family and target.family == drafter.family:
        return Overlap(None, None, 1.0, f"one tokenizer ({target.family}), by the catalogue")
    for row in reported()["overlaps"]:
        if (row["target_family"], row["drafter_family"]) == (target.family, drafter.family):
            return Overlap(row["shared"], row["tokens"], None, row["source"])
    return None
