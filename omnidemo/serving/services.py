"""Everything that pages and command line call: models, pairs, chats, comparisons, traffic and learning."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from omnidemo import private_folders
from omnidemo.config import Manner, Settings
from omnidemo.decoding.draft_policy import Drafting
from omnidemo.distill.trainer_status import TrainerStatus
from omnidemo.lines import sample_prompts
from omnidemo.lines.learning_curve import BeforeAfter
from omnidemo.lines.line_names import LineInfo
from omnidemo.lines.router import DEFAULT, Route
from omnidemo.lines.trainer_pool import Trainers
from omnidemo.methods import AUTO, AUTO_HELP, METHODS
from omnidemo.metrics import Speed
from omnidemo.models.catalogue import ModelCard, list_models
from omnidemo.models.names import resolve
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation, Round
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.beside import Beside
from omnidemo.serving.chat_service import ChatService
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.pair_loading import StageReport, build_pair, open_store
from omnidemo.serving.pair_pool import PairPool, PairState
from omnidemo.serving.speed import Speeds
from omnidemo.serving.visitor_lines import VisitorLines
from omnidemo.store.backup import Backup
from omnidemo.store.visitors import is_public
from omnidemo.zerogpu import start as zero_gpu

if TYPE_CHECKING:
    from omnidemo.serving.public_services import PublicServices

__all__ = ["MethodInfo", "PairState", "Services"]


class Cluster(Protocol):
    """Processes beside this one, here or on other machines. `processes`: how many write the answers of a
    pair."""

    processes: int

    def build(self, target: str, drafter: str, settings: Settings, progress: StageReport = ..., /) -> Pair:
        """As `build_pair`, with replicas that answer."""

    def trainers(self, pair: Pair) -> Trainers:
        """What trains the lines of a pair."""


@dataclass(frozen=True, slots=True)
class MethodInfo:
    name: str
    title: str
    lossless: bool
    help: str


class Services:
    """The application without its pages. All methods may be called from any thread. ValueError where another
    process uses the storage.

    Most methods are those of `PairPool`, `ChatService`, `AdaptationService`, `Speeds` and `Beside` that
    somebody outside calls; they are documented there.
    """

    def __init__(self, settings: Settings | None = None, cluster: Cluster | None = None) -> None:
        """`cluster`: other processes that write answers and train; None: this one and its children."""
        settings = settings or Settings()
        self._held = settings.storage
        private_folders.hold(self._held)
        self._backup = Backup(settings)
        self.store = open_store(settings)
        self._backup.start(self.store)
        self.public_services: PublicServices | None = None  # the wrapper that the page uses
        self.processes = cluster.processes if cluster else 1  # that write the answers of a pair
        build = cluster.build if cluster else zero_gpu.build if zero_gpu.started() else build_pair
        # After a pair was loaded the router's counts are read, so that the first prompt need not wait for it.
        self._pool = PairPool(
            settings,
            self.store,
            lambda: self._adaptation.prepare(),
            build,
            cluster.trainers if cluster else None,
        )
        self._adaptation = AdaptationService(self._pool, self.store)
        self.visitor_lines = VisitorLines(self._pool, self.store)
        self.speeds = Speeds(self._pool, self.store)
        self.speeds.public = is_public(settings)
        self._chats = ChatService(self._pool, self._adaptation, self.store, self.speeds)
        self._beside = Beside(self._pool)

    @property
    def settings(self) -> Settings:
        """The settings now; `configure` replaces them."""
        return self._pool.settings

    def close(self) -> None:
        """Stop the trainers, write what is queued, and back up where the settings name a folder."""
        self.speeds.close()
        self._pool.close()
        self._adaptation.close()
        self.store.flush()
        self._backup.close()
        self.store.close()
        private_folders.let_go(self._held)

    def forget_copies(self, domain: str = "") -> None:
        """As `AdaptationService.forget_copies`; what is known of the speed of answers holds their texts, too,
        and goes."""
        self._adaptation.forget_copies(domain)
        self.speeds.forget()

    def models(self, scan: bool = True) -> list[ModelCard]:
        """`scan`: as in `list_models`."""
        cards, fixed = list_models(self.settings, scan), (self.settings.target, self.settings.drafter)
        return [card for card in cards if card.name in fixed] if zero_gpu.started() else cards

    def resolve(self, name: str) -> str:
        """What a model is known by, for any name by which a person may call it. ModelError, one sentence, for
        a GGUF file that is not there or cannot be used."""
        return resolve(name.strip(), self.settings).name

    def methods(self) -> list[MethodInfo]:
        """All decoding methods, and at the end "auto", which stands for one of them."""
        methods = [MethodInfo(m.name, m.title, m.lossless, m.help) for m in METHODS.values()]
        return [*methods, MethodInfo(AUTO, "Automatic", True, AUTO_HELP)]

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        """The methods that a loaded pair cannot use, with the reason; empty while it is not loaded."""
        try:
            pair = self.pair(target, drafter)
        except RuntimeError:
            return {}
        reasons = {name: method.refusal(pair.map) for name, method in METHODS.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def topics(self) -> list[str]:
        return list(sample_prompts.TOPICS)

    def examples(self, target: str) -> list[dict[str, str]]:
        """The page's hand-picked examples for a target in order: kind, label, prompt."""
        return list(sample_prompts.examples(target))

    def sample_prompts(self, topic: str, count: int, seed: int = 0) -> list[str]:
        return sample_prompts.sample(topic, count, seed)

    def pair(self, target: str, drafter: str) -> Pair:
        """The ready pair; RuntimeError, one sentence, while it is not."""
        return self._pool.ready(target, drafter)[0]

    def manner(self, target: str, drafter: str) -> Manner:
        """How the target of a ready pair writes where a request says nothing."""
        return self.pair(target, drafter).target.manner

    # Pairs in memory: `PairPool`.

    def load(self, target: str, drafter: str) -> PairState:
        return self._pool.load(target, drafter)

    def state(self, target: str, drafter: str) -> PairState:
        return self._pool.state(target, drafter)

    def stop(self, target: str, drafter: str) -> PairState:
        return self._pool.stop(target, drafter)

    def known(self, name: str) -> str:
        return self._pool.known(name)

    def conditions(self, target: str, drafter: str) -> str:
        return self._pool.conditions(target, drafter)

    # Answers: `ChatService`, `Speeds` and `Beside`.

    def chat(self, **asked: Any) -> Iterator[Round | Generation]:
        return self._chats.chat(**asked)

    def play(self, **asked: Any) -> Iterator[tuple[int, str, Generation]]:
        return self._chats.play(**asked)

    def compare(self, **asked: Any) -> Iterator[Comparison]:
        return self._chats.compare(**asked)

    def plain(self, **asked: Any) -> list[Generation]:
        return self._beside.plain(**asked)

    def fresh_and_today(self, **asked: Any) -> tuple[list[Generation], list[Generation]]:
        return self._beside.fresh_and_today(**asked)

    def speeds_of(self, keys: Sequence[str]) -> dict[str, Speed | None]:
        return self.speeds.of(keys)

    def speed_lanes(self, key: str, patience: float) -> Speed | None:
        return self.speeds.lanes(key, patience)

    def following(self, session: str) -> Route | None:
        return self._chats.following(session)

    def routed(self, session: str) -> Route | None:
        return self._chats.routed(session)

    def forget_asked(self, session: str) -> None:
        self._chats.forget(session)

    # Adapter lines: `AdaptationService`.

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        return self._adaptation.lines(target, drafter)

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        return self._adaptation.trainer(target, drafter, domain)

    def drafting(self, target: str, drafter: str, domain: str = DEFAULT) -> Drafting:
        return self._adaptation.drafting(target, drafter, domain)

    def pause(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._adaptation.pause(target, drafter, domain)

    def resume(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._adaptation.resume(target, drafter, domain)

    def reset(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._adaptation.reset(target, drafter, domain)

    def activate(self, target: str, drafter: str, version: int, domain: str = DEFAULT) -> None:
        self._adaptation.activate(target, drafter, version, domain)

    def on_disk(self, target: str, drafter: str, domain: str = DEFAULT) -> list[int]:
        return self._adaptation.on_disk(target, drafter, domain)

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        return self._adaptation.export_adapter(target, drafter, domain, version)

    def import_adapter(self, target: str, drafter: str, domain: str, path: Path) -> int:
        return self._adaptation.import_adapter(target, drafter, domain, path)

    def forget_exports(self, domain: str) -> None:
        self._adaptation.forget_exports(domain)

    def configure(self, /, **changes: Any) -> None:
        self._adaptation.configure(**changes)

    def route(self, target: str, drafter: str, prompt: str) -> Route:
        return self._adaptation.route(target, drafter, prompt)

    def let_learn(
        self, target: str, drafter: str, line: str, cancel: threading.Event | None = None, topic: str = ""
    ) -> None:
        self._chats.let_learn(target, drafter, line, cancel, topic)

    def measuring(self, target: str, drafter: str, topic: str) -> bool:
        return self._adaptation.measuring(target, drafter, topic)

    def hero(self, target: str, drafter: str, topic: str, domain: str = DEFAULT) -> dict[str, Any]:
        return self._adaptation.hero(target, drafter, topic, domain)

    def before_after(self, target: str, drafter: str, domain: str, topic: str) -> BeforeAfter | None:
        return self._adaptation.before_after(target, drafter, domain, topic)
