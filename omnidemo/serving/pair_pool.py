"""The pairs in memory: loaded in the background, one at a time, and unloaded when there are too many."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import monotonic, sleep
from typing import Any, Literal

from omnidemo.backends import choice
from omnidemo.backends.choice import conditions_of
from omnidemo.core.config import Settings
from omnidemo.learning.lines.trainer_pool import TrainerPool, Trainers
from omnidemo.models.fetching.fetch_job import FetchStopped
from omnidemo.models.model_files import TooLarge
from omnidemo.models.names import known_settings, resolve, with_files
from omnidemo.models.weights_digest import weights_digest
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.remote_pair import RemotePair
from omnidemo.serving import gc_pauses
from omnidemo.serving.pair_loading import StageReport, attach_storage, build_pair
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
LoadStage = Literal[
    "absent", "queued", "files", "downloading", "tokenizers", "target", "compiling", "drafter",
    "vocabulary map", "cache and adapter", "ready", "failed",
]  # fmt: skip
Build = Callable[..., Pair]
STOPPED = "The download was stopped. What has come stays, and it goes on from there."
ENDING = "The app is being stopped; ask again when it runs again."
LOG_SECONDS = 10.0  # between two log lines about one stage of loading
PAIRS_LOADED = 3  # idle pairs kept in memory; the one unused for longest is dropped first


class Ending(RuntimeError):
    """A request came while the app stops."""


@dataclass(frozen=True, slots=True)
class PairState:
    """How far loading a pair is. `fraction`: 0 to 1. `error` names cause and next step. `info`:
    `Pair.summary()` once ready. `meanwhile`: names of a loaded pair that can answer until then, if any."""

    target: str
    drafter: str
    stage: LoadStage = "absent"
    fraction: float = 0.0
    detail: str = ""
    error: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    meanwhile: tuple[str, str] | None = None


@dataclass(slots=True)
class _Place:
    state: PairState
    loaded: tuple[Pair, TrainerPool] | None = None
    users: int = 0  # generations that run now
    stop: bool = False  # whether to end its download
    digest: str = ""  # of the target's weight files when they were read


class PairPool:
    """`settings` are the app's, with which pairs are loaded; `AdaptationService.configure` changes them and
    tells the lines of loaded pairs. Methods take any name of a model; pairs are kept by the known names.
    Thread-safe."""

    def __init__(
        self, settings: Settings, store: Store, then: Callable[[], object] = lambda: None,
        build: Build = build_pair, trainers: Callable[[Pair], Trainers] | None = None,
    ) -> None:  # fmt: skip
        """`then` is called after a pair became ready, in the thread that loaded it. `build` makes pairs.
        `trainers`: makes the workers of a pair's lines; None: one process for all of them."""
        self.settings = known_settings(settings)
        self._store, self._then, self._build, self._trainers = store, then, build, trainers
        self._places: dict[tuple[str, str], _Place] = {}  # in order of last use
        self._known: dict[str, str] = {}  # other names of models → known names
        self._lock = threading.Lock()
        self._loading = threading.Lock()  # one pair at a time: two at once would only be slower
        self.ending = threading.Event()  # set when the app stops
        self.former: list[tuple[str, str]] = []  # pairs that the settings named before

    def load(self, target: str, drafter: str) -> PairState:
        """Load a pair in the background, unless it is loaded or being loaded; a failed one is tried again.
        Returns at once."""
        key = self._key(target, drafter)
        if self.ending.is_set():
            return self.state(target, drafter)
        with self._lock:
            place = self._places.get(key)
            known = place is not None and place.state.stage not in ("failed", "absent")
            state = PairState(*key, "queued", 0.0, "waiting for another model to finish loading")
            self._places[key] = self._places.pop(key) if known else _Place(state)
        if not known:
            threading.Thread(target=self._load, args=key, name=f"load {target}", daemon=True).start()
        return self.state(target, drafter)

    def change_over(self, target: str, drafter: str) -> None:
        """Load a pair and make it the pair of the settings. Where it cannot be loaded, the former one is that
        again."""
        names, before = self._key(target, drafter), (self.settings.target, self.settings.drafter)
        if names != before:
            self.former.append(before)
            self._set(names)
        self.load(*names)

    def _set(self, names: tuple[str, str]) -> None:
        self.settings = self.settings.model_copy(update=dict(zip(("target", "drafter"), names, strict=True)))

    def stop(self, target: str, drafter: str) -> PairState:
        """End the download of a pair at its next report of progress. Loading from disk is not stopped."""
        place = self._places.get(self._key(target, drafter))
        if place is not None and place.state.stage in ("queued", "files", "downloading"):
            place.stop = True
        return self.state(target, drafter)

    def known(self, name: str) -> str:
        """The known name of a model for any name by which it was loaded; other names unchanged. Reads no
        files."""
        return self._known.get(name, name)

    def state(self, target: str, drafter: str) -> PairState:
        key = self._key(target, drafter)
        place = self._places.get(key)
        if place is None or place.loaded is None:
            with self._lock:
                there = [other for other, one in self._places.items() if one.loaded is not None]
            known = PairState(*key) if place is None else place.state
            if self.ending.is_set():
                known = replace(known, stage="failed", error=ENDING)
            return replace(known, meanwhile=there[-1] if there else None)
        pair = place.loaded[0]
        # the fastest form of the weights is found after loading
        forms = choice.described(target=pair.target.runner, drafter=pair.drafter.runner)
        return replace(place.state, info={**place.state.info, **forms})

    def ready(self, target: str, drafter: str) -> tuple[Pair, TrainerPool]:
        """A loaded pair and its lines. RuntimeError, one sentence, while it is not ready."""
        place = self._places.get(self._key(target, drafter))
        if place is None or place.loaded is None:
            state = self.state(target, drafter)
            raise RuntimeError(
                state.error or f"{target} is not loaded ({state.stage}); wait until it is ready"
            )
        return place.loaded

    def conditions(self, target: str, drafter: str) -> str:
        """What the numbers of a ready target depend on (`conditions_of`). Where another process writes the
        answers: "replicas" or "ZeroGPU", and the digest."""
        pair, digest = self.ready(target, drafter)[0], self._places[self._key(target, drafter)].digest
        if isinstance(pair, RemotePair):
            return f"{pair.where}.{digest}".rstrip(".")
        return conditions_of(pair.target.runner, self.settings.dtype, digest)

    @contextmanager
    def using(self, target: str, drafter: str) -> Iterator[tuple[Pair, TrainerPool]]:
        """As `ready`; the pair stays in memory within the block. Raises Ending once the app stops."""
        with self._lock:
            if self.ending.is_set():
                raise Ending(ENDING)
            loaded, place = self.ready(target, drafter), self._places[self._key(target, drafter)]
            place.users += 1
        try:
            yield loaded
        finally:
            with self._lock:
                place.users -= 1

    @property
    def users(self) -> int:
        """How many use a pair now."""
        return sum(place.users for place in [*self._places.values()])

    def end_answers(self, seconds: float) -> None:
        """As `Services.end_answers`."""
        self.ending.set()
        until = monotonic() + seconds
        while self.users and monotonic() < until:
            sleep(0.02)

    def all_lines(self) -> list[TrainerPool]:
        with self._lock:
            return [place.loaded[1] for place in self._places.values() if place.loaded]

    def close(self) -> None:
        """Stop the trainers of all pairs."""
        for lines in self.all_lines():
            lines.close()

    def _load(self, target: str, drafter: str) -> None:
        place = self._places[target, drafter]
        with self._loading:
            try:
                if not self._load_into(place):
                    return
            except FetchStopped:
                place.state = replace(place.state, stage="absent", fraction=0.0, detail=STOPPED)
                return
            except Exception as error:  # a folder can cause any error: the page shows it, the app goes on
                if isinstance(error, ValueError):
                    log.info("%s with %s cannot be loaded: %s", target, drafter, error)
                else:
                    log.exception("loading %s with %s failed", target, drafter)
                said = str(error) or type(error).__name__
                place.state = replace(place.state, stage="failed", fraction=0.0, detail="", error=said)
                if self.former and (self.settings.target, self.settings.drafter) == (target, drafter):
                    self._set(self.former.pop())
                return
        self._then()

    def _load_into(self, place: _Place) -> bool:
        """Load the pair of a place; False where it is loaded under other names. Raises any error."""
        names, began = (place.state.target, place.state.drafter), monotonic()
        report = self._reporter(place)
        files = [resolve(name, self.settings) for name in names]
        self.settings = with_files(self.settings, files)
        if not self._rename(place, *(file.name for file in files)):
            return False
        if self._unload(lambda idle: len(idle) - PAIRS_LOADED + 1):
            # a pair is a reference cycle and frozen: its memory and replicas would stay until the next one
            gc_pauses.settle()
        try:
            pair = self._build(*(file.name for file in files), self.settings, report)
        except TooLarge as error:
            if not self._make_room(error.short):
                raise
            gc_pauses.settle()
            pair = self._build(*(file.name for file in files), self.settings, report)
        # the known name of a download is found only now
        if not self._rename(place, pair.target.name, pair.drafter.name):
            return False
        with suppress(OSError, ValueError):  # the files may be gone; the model is loaded
            place.digest = weights_digest(pair.target.folder)
            pair.drafter_digest = weights_digest(pair.drafter.folder)
        place.stop = False
        report("cache and adapter", 0.9, "restoring the n-gram cache and the active adapter")
        lines = attach_storage(pair, self.settings, self._store, self._trainers and self._trainers(pair))
        gc_pauses.settle()
        try:
            pair.warm_up()
        except BaseException:  # such as out of memory: threads of the lines would keep the pair
            lines.close()
            raise
        place.loaded = pair, lines
        lines.configure(self.settings)  # which may have changed meanwhile
        place.state = replace(place.state, stage="ready", fraction=1.0, detail="", info=pair.summary())
        seconds = monotonic() - began
        log.info("%s with %s is ready after %.1f s", pair.target.name, pair.drafter.name, seconds)
        return True

    def _reporter(self, place: _Place) -> StageReport:
        """The function that notes the progress of a place; it raises `FetchStopped` after `stop`."""
        names, said = (place.state.target, place.state.drafter), monotonic()

        def report(stage: str, fraction: float, detail: str) -> None:
            nonlocal said
            if place.stop:
                raise FetchStopped(STOPPED)
            if stage != place.state.stage or monotonic() - said >= LOG_SECONDS:
                said = monotonic()
                log.info("loading %s with %s, %.0f %%: %s", *names, 100 * fraction, detail or stage)
            place.state = replace(place.state, stage=stage, fraction=fraction, detail=detail)  # type: ignore[arg-type]

        return report

    def _rename(self, place: _Place, target: str, drafter: str) -> bool:
        """Keep a place under the known names of its models; False where a pair has these names already."""
        with self._lock:
            asked = (place.state.target, place.state.drafter)
            names = (target, drafter)
            if asked == names:
                return True
            self._known |= {old: new for old, new in zip(asked, names, strict=True) if old != new}
            self._places.pop(asked, None)
            configured = {role: self.known(getattr(self.settings, role)) for role in ("target", "drafter")}
            self.settings = self.settings.model_copy(update=configured)
            if names in self._places and self._places[names].state.stage not in ("failed", "absent"):
                return False
            self._places[names] = place
            place.state = replace(place.state, target=target, drafter=drafter)
            return True

    def _make_room(self, short: float) -> bool:
        """Drop pairs with `short` bytes of weights together; False, and all stay, where they have fewer."""

        def enough(idle: list[Pair]) -> int:
            sizes = accumulate(one.target.memory_bytes + one.drafter.memory_bytes for one in idle)
            return next((count for count, size in enumerate(sizes, 1) if size >= short), 0)

        return self._unload(enough)

    def _unload(self, many: Callable[[list[Pair]], int]) -> bool:
        """Drop `many` of the idle pairs, the one unused for longest first; whether any was dropped."""
        with self._lock:
            idle = {key: one.loaded for key, one in self._places.items() if one.loaded and not one.users}
            gone = [*idle][: max(0, many([pair for pair, _ in idle.values()]))]
            for key in gone:
                del self._places[key]
        for key in gone:
            idle[key][1].close()
        return bool(gone)

    def _key(self, target: str, drafter: str) -> tuple[str, str]:
        """The known names. ValueError for an empty name: a page may not have chosen a pair yet."""
        for name, role in ((target, "target"), (drafter, "drafter")):
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"No {role} is chosen; choose one from the list.")
        return self.known(target), self.known(drafter)
