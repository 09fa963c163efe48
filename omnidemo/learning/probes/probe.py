"""A version of a drafter on recorded answers: the real engine with drafts of a fixed length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.core.records import Replayed
from omnidemo.learning.probes.replayed_target import Replay, TargetRecords
from omnidemo.models import model_files
from omnidemo.models.adapters.adapter_state import AdapterState, BaseWeights, merged_weights
from omnidemo.models.load import load_model

DRAFT_LENGTH = 4  # drafter tokens a round
METHOD = "ngram-exact"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The recordings in `folder` of a target for a drafter. `settings` limit answers as in the recording."""

    folder: Path
    target: str
    drafter: str
    settings: Settings

    def records(self) -> TargetRecords:
        return TargetRecords(self.folder, self.target, self.drafter, self.settings)


class Prober:
    """Replays recorded answers with given adapters. The drafter stays loaded. One caller at a time."""

    def __init__(self, compiled: bool = True) -> None:
        """compiled: whether this process may compile kernels, which takes minutes, where a replay takes half
        a second."""
        self._compiled = compiled
        self._known: tuple[ProbeRequest, Replay] | None = None

    def replay(
        self, request: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]
    ) -> list[Replayed]:
        """The recorded answers to these prompts, drafted with an adapter (None: the base drafter). The n-gram
        cache has the n-grams of these answers for every adapter, so that only the drafter differs. ValueError
        for an adapter that does not fit, FileNotFoundError for a prompt without a recording."""
        replay = self._of(request)
        pair = replay.pair
        base = BaseWeights(pair.drafter.folder)
        weights: Mapping[str, Tensor] = merged_weights(base, adapter) if adapter is not None else {}
        pair.publish(0, weights)
        pair.clear_cache()
        for prompt in prompts:
            for target_id in replay.records.load(prompt).answer_ids:
                if spelled := pair.map.ngram(target_id):
                    pair.ngrams.insert(target_id, spelled)
        found = []
        for prompt in prompts:
            made, _ = replay.answer(
                prompt, learn=False, copying=False, method=METHOD, draft_policy="fixed",
                draft_length=DRAFT_LENGTH,
            )  # fmt: skip
            # without times, because the target did not compute
            found.append(Replayed(prompt, tuple(replace(one, seconds={}) for one in made.rounds)))
        return found

    def _of(self, request: ProbeRequest) -> Replay:
        if self._known is None or self._known[0] != request:
            if not self._compiled:
                compile_kernels.forgo()
            settings = request.settings
            folder = model_files.find(request.drafter, hub=settings.trust_hub)
            drafter = load_model(
                str(folder), device="cpu", dtype="float32", hub=False, writes=False,
                fast=settings.backend != "reference",
            )  # fmt: skip
            if isinstance(drafter.runner, FusedLlama):
                drafter.runner.threads = 1
                if settings.compact != "neither":
                    drafter.runner.compact(True, rounding=True)  # as when it serves
            self._known = request, Replay(request.records(), drafter, settings)
        return self._known[1]
