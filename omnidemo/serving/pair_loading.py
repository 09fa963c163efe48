"""Building a pair from names: load both models, join them, attach storage and adapter lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from omnidemo.backends import compile_kernels
from omnidemo.backends.choice import waits
from omnidemo.backends.fused_llama import FusedLlama, pick_threads
from omnidemo.core.config import DEFAULT, GREEDY, Settings
from omnidemo.learning.lines.trainer_pool import TrainerPool, Trainers
from omnidemo.models.known_phrases import phrases_of
from omnidemo.models.load import LanguageModel, load_model, weight_bytes
from omnidemo.models.memory_need import LEARNING
from omnidemo.models.names import drafter_of, resolve
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.linked_pair import LinkedPair, linked_target
from omnidemo.storage.store import Store

StageReport = Callable[[str, float, str], None]  # (stage, fraction of the whole from 0 to 1, detail)


def build_pair(
    target: str, drafter: str, settings: Settings, progress: StageReport = lambda stage, fraction,
    detail: None,
    make: Callable[..., Pair] = Pair, large: LanguageModel | None = None,
) -> Pair:  # fmt: skip
    """Load both models and join them by `make`. `large`: a target that is loaded already. ModelError or
    ValueError, one sentence, where that fails."""

    def reporter(role: str, low: float, high: float, name: str) -> Callable[[str, float], None]:
        def report(stage: str, fraction: float) -> None:
            shown = stage if stage in ("files", "downloading", "tokenizers", "compiling") else role
            progress(shown, low + (high - low) * fraction, f"{stage}: {name}")

        return report

    if drafter == DEFAULT:
        drafter = drafter_of(target, settings)
    small_at, compact = resolve(drafter, settings), settings.compact == "auto"
    # Only the target's weights can stay packed: the drafter's are trained.
    if large is None:
        large_at = resolve(target, settings)
        large = load_model(
            large_at.where, packed=settings.packed, compact=compact,
            learning=0.0 if settings.training in ("off", "inline") else LEARNING,
            progress=reporter("target", 0.0, 0.6, large_at.name),
            device=settings.device, **settings.loading,
        )  # fmt: skip
    small = load_model(
        small_at.where, progress=reporter("drafter", 0.6, 0.8, small_at.name), writes=False, compact=compact,
        device=str(large.device), **settings.loading,
    )  # fmt: skip
    if large.device.type == "cpu":
        # Threads of torch and of a compiled pass spin for a while after their work, on the others' cores.
        shared = isinstance(large.runner, FusedLlama) and large.runner.passes is not None
        for runner in (large.runner, small.runner):
            if isinstance(runner, FusedLlama):
                runner.threads = settings.threads if shared or runner is large.runner else 1
        torch.set_num_threads(1 if shared else settings.threads or pick_threads(large.parameters))
    progress("vocabulary map", 0.8, f"{len(large.vocabulary):,} × {len(small.vocabulary):,} tokens")
    pair = make(large, small, **settings.limits)
    pair.phrases = phrases_of(large.name) if pair.here else None
    if waits(large.runner) or waits(small.runner):
        compile_kernels.when_ready(lambda: use_kernels(pair))
    return pair


def use_kernels(pair: Pair) -> None:
    """Let the next answers be made by compiled passes; of a GGUF target's packed weights, if it waits for
    that."""
    before = runner = pair.target.runner
    if pair.target.packs is not None:
        runner = pair.target.packs.packed()
        assert isinstance(before, FusedLlama)
        runner.threads = before.threads
    pair.take_target(runner, weight_bytes(runner))


def build_linked_pair(address: str, drafter: str, settings: Settings, progress: StageReport) -> Pair:
    """A pair whose target is served at an address, with the first key of the settings. Errors as
    `build_pair`, and LinkError where the target does not answer."""
    progress("target", 0.0, address)
    target, about = linked_target(address, settings.api_keys.split(",")[0].strip())
    settings, make = settings.model_copy(update={"training": "off"}), partial(LinkedPair, about=about)
    return build_pair(target.name, drafter, settings, progress, make, target)


def build_measured_pair(target: str, drafter: str, settings: Settings) -> Pair:
    """As `build_pair`, for measurements: waits until the kernels are compiled, and gives the target greedy
    defaults (`Manner`)."""
    pair = build_pair(target, drafter, settings)
    pair.target = replace(pair.target, manner=GREEDY)
    wait_for_kernels(pair, settings)
    return pair


def wait_for_kernels(pair: Pair, settings: Settings) -> None:
    """Wait until the kernels are compiled, where a pair on a CPU uses them."""
    if pair.target.device.type == "cpu" and settings.backend != "reference":
        compile_kernels.wait()


def attach_storage(
    pair: Pair, settings: Settings, store: Store, trainers: Trainers | None = None
) -> TrainerPool:
    """Restore the pair's n-gram cache and the active adapter of its default line, and let its lines learn.
    `trainers`: makes the worker of each line; None: one process trains all of them."""
    pair.attach(store)
    pair.prices.keep_in(Path(settings.storage))
    if settings.warm_start and not len(pair.ngrams):
        pair.fill_cache()
    lines = TrainerPool(pair, settings, store, trainers)
    lines.get()
    pair.learners.append(lines.observe)
    return lines


def open_store(settings: Settings) -> Store:
    """The store of the settings: their URL, else SQLite in the storage folder."""
    return Store(settings.database_url or Path(settings.storage).absolute() / "omnidemo.db")
