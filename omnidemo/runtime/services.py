"""Everything that pages and command line ask for: models, pairs, chats, comparisons, traffic and the trainer."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from omnidemo.config import Settings
from omnidemo.methods import AUTO, AUTO_HELP, METHODS
from omnidemo.records import Generation, RequestRecord, Round
from omnidemo.runtime import prompts
from omnidemo.runtime.catalog import ModelCard, list_models
from omnidemo.runtime.comparison import Comparison, compare
from omnidemo.runtime.distiller import Distiller, TrainerStatus
from omnidemo.runtime.loading import attach_storage, build_pair, open_store
from omnidemo.runtime.pair import Pair
from omnidemo.runtime.store import restore

log = logging.getLogger(__name__)
Stage = Literal[
    "absent", "queued", "downloading", "tokenizers", "target", "drafter", "vocabulary map", "cache and adapter", "ready", "failed"
]
PROBE_EVERY = 12  # rounds between two plain ones, from which the speedup of a chat is estimated
BACKUP_SECONDS = 300.0
LEARN_SECONDS = 20.0  # longest rest between two requests of played traffic
PAIRS_LOADED = 3  # pairs kept in memory; the one unused for longest goes first


@dataclass(frozen=True, slots=True)
class MethodInfo:
    name: str
    title: str
    lossless: bool
    help: str


@dataclass(frozen=True, slots=True)
class PairState:
    """How far a pair is. `fraction` is 0 to 1; `error` names cause and next step; `info` is `Pair.summary()` once ready."""

    target: str
    drafter: str
    stage: Stage = "absent"
    fraction: float = 0.0
    detail: str = ""
    error: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Loaded:
    state: PairState
    pair: Pair | None = None
    distiller: Distiller | None = None
    users: int = 0  # generations that run now


class Services:
    """The application without its pages. All methods may be called from any thread."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        if self.settings.backup:
            self._quietly(self._restore)
        self.store = open_store(self.settings)
        self._closing = threading.Event()
        if self.settings.backup:
            threading.Thread(target=self._back_up_now_and_then, name="backup", daemon=True).start()
        self._pairs: dict[tuple[str, str], _Loaded] = {}  # in order of last use
        self._lock = threading.Lock()
        self._loading = threading.Lock()  # one model at a time: two at once would only be slower

    # what there is -------------------------------------------------------------------------------------------------------

    def models(self) -> list[ModelCard]:
        return list_models(self.settings)

    def methods(self) -> list[MethodInfo]:
        """All decoding methods, and at the end "auto", which stands for one of them."""
        found = [MethodInfo(m.name, m.title, m.lossless, m.help) for m in METHODS.values()]
        return [*found, MethodInfo(AUTO, "Automatic", True, AUTO_HELP)]

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        """The methods that a loaded pair cannot use, with the reason; empty while it is not loaded."""
        known = self._pairs.get((target, drafter))
        if known is None or known.pair is None:
            return {}
        reasons = {name: method.refusal(known.pair.map) for name, method in METHODS.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def topics(self) -> list[str]:
        return list(prompts.TOPICS)

    def sample_prompts(self, topic: str, count: int, seed: int = 0) -> list[str]:
        return prompts.sample(topic, count, seed)

    # pairs ---------------------------------------------------------------------------------------------------------------

    def load(self, target: str, drafter: str) -> PairState:
        """Have a pair loaded in the background, if it is not there or on its way; a failed one is tried again. Returns at once."""
        key = (target, drafter)
        with self._lock:
            known = self._pairs.get(key)
            if known is not None and known.state.stage != "failed":
                self._pairs[key] = self._pairs.pop(key)
                return known.state
            self._pairs[key] = _Loaded(PairState(target, drafter, "queued", 0.0, "waiting for another model to finish loading"))
        threading.Thread(target=self._load, args=key, name=f"load {target}", daemon=True).start()
        return self._pairs[key].state

    def state(self, target: str, drafter: str) -> PairState:
        known = self._pairs.get((target, drafter))
        return known.state if known is not None else PairState(target, drafter)

    def pair(self, target: str, drafter: str) -> Pair:
        """The ready pair; RuntimeError, one sentence, while it is not."""
        return self._ready(target, drafter)[0]

    def _ready(self, target: str, drafter: str) -> tuple[Pair, Distiller]:
        known = self._pairs.get((target, drafter))
        if known is None or known.pair is None or known.distiller is None:
            state = self.state(target, drafter)
            raise RuntimeError(state.error or f"{target} is not loaded yet ({state.stage}); wait until it is ready")
        return known.pair, known.distiller

    def _load(self, target: str, drafter: str) -> None:
        known = self._pairs[target, drafter]

        def tell(stage: str, fraction: float, detail: str) -> None:
            known.state = replace(known.state, stage=stage, fraction=fraction, detail=detail)  # type: ignore[arg-type]

        with self._loading:
            try:
                self._make_room()
                pair = build_pair(target, drafter, self.settings, tell, self.settings.storage / "maps")
                tell("cache and adapter", 0.9, "restoring the n-gram cache and the newest adapter")
                distiller = attach_storage(pair, self.settings, self.store)
                pair.warm_up()
                known.pair, known.distiller = pair, distiller
                known.state = PairState(target, drafter, "ready", 1.0, "", None, pair.summary())
            except Exception as error:  # whatever a model folder can cause: the page shows it, the app goes on
                if not isinstance(error, ValueError):
                    log.exception("loading %s with %s failed", target, drafter)
                known.state = PairState(target, drafter, "failed", 0.0, "", str(error) or type(error).__name__)

    def _make_room(self) -> None:
        with self._lock:
            idle = [key for key, loaded in self._pairs.items() if loaded.pair is not None and not loaded.users]
            gone = [self._pairs.pop(key) for key in idle[: max(0, len(idle) - PAIRS_LOADED + 1)]]
        for loaded in gone:
            if loaded.distiller is not None:
                loaded.distiller.close()

    # generating ----------------------------------------------------------------------------------------------------------

    def chat(
        self,
        *,
        session: str,
        target: str,
        drafter: str,
        messages: Sequence[Mapping[str, str]],
        method: str,
        max_new_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        draft_length: int = 4,
        seed: int | None = None,
        learn: bool = True,
        keep: bool = True,
        cancel: threading.Event | None = None,
        kind: Literal["chat", "traffic", "compare", "api"] = "chat",
        domain: str = "default",
    ) -> Iterator[Round | Generation]:
        """Yield the rounds of an answer and at the end its one `Generation`, also when it was cancelled. The request is recorded
        (unless `keep` is off) and learned from (unless `learn` is off). RuntimeError or ValueError, one sentence, if it cannot start."""
        pair, distiller = self._ready(target, drafter)
        loaded = self._pairs[target, drafter]
        options: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "draft_length": draft_length}
        options["max_new_tokens"] = max_new_tokens
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        gone = threading.Event()  # whoever listened has gone: a closed page
        rounds = pair.stream(
            _newest(pair, messages, max_new_tokens),
            method=method,
            seed=seed,
            learn=learn,
            cancelled=lambda: gone.is_set() or (cancel is not None and cancel.is_set()),
            probe_every=PROBE_EVERY,
            **options,
        )

        def record(generation: Generation) -> None:
            self.store.start_session(session, keep=keep, learn=learn)
            if keep:
                prompt = str(messages[-1]["content"]) if self.settings.keep_text else None
                settings = {**options, "seed": seed}
                sizes = {"cache_entries": len(pair.ngrams), "cache_bytes": pair.ngrams.nbytes}
                self.store.record_request(
                    RequestRecord(session, target, drafter, domain, generation.method, prompt, generation, settings, created, kind, **sizes)
                )

        loaded.users += 1
        generation: Generation | None = None
        try:
            while generation is None:
                try:
                    yield next(rounds)
                except StopIteration as finished:
                    generation = finished.value
        except GeneratorExit:
            gone.set()
            partial = _finish(rounds)
            if partial is not None:
                record(partial)
            raise
        finally:
            loaded.users -= 1
        record(generation)
        yield generation
        if learn:
            distiller.run_pending()

    def play(
        self,
        *,
        session: str,
        target: str,
        drafter: str,
        topic: str,
        count: int,
        method: str = "ngram-exact",
        temperature: float = 0.0,
        draft_length: int = 4,
        max_new_tokens: int | None = None,
        seed: int = 0,
        learn: bool = True,
        keep: bool = True,
        cancel: threading.Event | None = None,
    ) -> Iterator[tuple[int, str, Generation]]:
        """Stream sample prompts of a topic through the pair, like a visitor who types fast: (index, prompt, generation) each.

        They belong to a session of their own: nobody wrote them, so no visitor's opt-out is about them.
        """
        for index, prompt in enumerate(prompts.sample(topic, count, seed, "train")):
            if cancel is not None and cancel.is_set():
                return
            for done in self.chat(
                session=f"{session} traffic",
                target=target,
                drafter=drafter,
                messages=[{"role": "user", "content": prompt}],
                method=method,
                max_new_tokens=max_new_tokens or self.settings.max_new_tokens,
                temperature=temperature,
                draft_length=draft_length,
                learn=learn,
                keep=keep,
                cancel=cancel,
                kind="traffic",
            ):
                if isinstance(done, Generation):
                    yield index, prompt, done
            if learn:
                self._let_learn(target, drafter, cancel)

    def _let_learn(self, target: str, drafter: str, cancel: threading.Event | None) -> None:
        """Rest, as a person does between two requests, while an update that is due gets its turn."""
        until = time.monotonic() + LEARN_SECONDS
        while time.monotonic() < until and not (cancel is not None and cancel.is_set()):
            status = self.trainer(target, drafter)
            if status.state not in ("training", "waiting", "idle") or (status.state != "training" and status.next_in > 0):
                return
            time.sleep(0.05)

    def compare(
        self,
        *,
        target: str,
        drafter: str,
        prompts: Sequence[str],
        methods: Sequence[str],
        max_new_tokens: int,
        temperature: float,
        draft_length: int = 4,
        seed: int | None = 0,
        cancel: threading.Event | None = None,
    ) -> Iterator[Comparison]:
        """Each method on each prompt, interleaved; see `runtime.comparison.compare`."""
        pair, _ = self._ready(target, drafter)
        loaded = self._pairs[target, drafter]
        loaded.users += 1
        try:
            yield from compare(
                pair,
                prompts,
                methods,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                draft_length=draft_length,
                seed=seed,
                cancelled=cancel.is_set if cancel is not None else lambda: False,
            )
        finally:
            loaded.users -= 1

    # the trainer ---------------------------------------------------------------------------------------------------------

    def trainer(self, target: str, drafter: str) -> TrainerStatus:
        known = self._pairs.get((target, drafter))
        if known is None or known.distiller is None:
            return TrainerStatus("off", "No pair is loaded.", 0, 0, None, 0, 0, None, 0.0, None)
        return known.distiller.status()

    def pause(self, target: str, drafter: str) -> None:
        self._ready(target, drafter)[1].pause()

    def resume(self, target: str, drafter: str) -> None:
        self._ready(target, drafter)[1].resume()

    def reset(self, target: str, drafter: str) -> None:
        """Back to the base drafter: the line's adapters and the pair's n-gram cache are forgotten. The history stays."""
        pair, distiller = self._ready(target, drafter)
        distiller.reset()
        pair.clear_cache()

    def activate(self, target: str, drafter: str, version: int) -> None:
        """Swap in a stored adapter version (0: the base drafter). ValueError where it is missing or damaged."""
        self._ready(target, drafter)[1].activate(version)

    def close(self) -> None:
        """Stop the trainers, write what waits, and back up where the settings ask for it."""
        for loaded in list(self._pairs.values()):
            if loaded.distiller is not None:
                loaded.distiller.close()
        self._closing.set()
        self.store.flush()
        if self.settings.backup:
            self._quietly(self._back_up)
        self.store.close()

    # backup: a Space's own disk is lost at every restart ----------------------------------------------------------------

    def _restore(self) -> None:
        folder, adapters = Path(self.settings.backup), self.settings.storage / "adapters"
        if not self.settings.database_url:
            restore(folder / "omnidemo.db", f"sqlite:///{self.settings.storage.absolute() / 'omnidemo.db'}")
        if (folder / "adapters").is_dir() and not adapters.exists():
            shutil.copytree(folder / "adapters", adapters)

    def _back_up(self) -> None:
        folder, adapters = Path(self.settings.backup), self.settings.storage / "adapters"
        folder.mkdir(parents=True, exist_ok=True)
        if not self.settings.database_url:
            self.store.backup(folder / "omnidemo.db")
        if adapters.is_dir():
            shutil.copytree(adapters, folder / "adapters", dirs_exist_ok=True)

    def _back_up_now_and_then(self) -> None:
        while not self._closing.wait(BACKUP_SECONDS):
            self._quietly(self._back_up)

    def _quietly(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except (RuntimeError, OSError, ValueError) as error:
            log.warning("backup: %s", error)


def _newest(pair: Pair, messages: Sequence[Mapping[str, str]], max_new_tokens: int) -> list[Mapping[str, str]]:
    """The newest turns of a chat that leave room for an answer in the target's window; at least the last message."""
    kept = list(messages)
    room = pair.target.context - min(max_new_tokens, pair.target.context // 2)
    while len(kept) > 2:
        try:
            if len(pair.prompt_ids(kept)) <= room:
                break
        except ValueError:
            pass
        del kept[:2]  # a question and its answer
    return kept


def _finish(rounds: Generator[Round, None, Generation]) -> Generation | None:
    """What a cancelled generation has come to; it ends at its next round."""
    while True:
        try:
            next(rounds)
        except StopIteration as finished:
            generation: Generation = finished.value
            return generation
        except Exception:  # nobody listens any more; the engine's own trouble was told before
            return None
