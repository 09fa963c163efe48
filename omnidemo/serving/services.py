"""The services that page, endpoint and command line call: models, pairs, chats, comparisons and learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from omnidemo.core import private_folders
from omnidemo.core.config import Manner, Settings
from omnidemo.decoding.methods import AUTO, AUTO_HELP, METHODS
from omnidemo.learning.lines.trainer_pool import Trainers
from omnidemo.models.catalogue import ModelCard, list_models
from omnidemo.models.names import drafter_of, resolve
from omnidemo.pair.pair import Pair
from omnidemo.pair.zerogpu import start as zero_gpu
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.answers.checked_drafts import CheckedDrafts
from omnidemo.serving.answers.repeated_answers import RepeatedAnswers
from omnidemo.serving.better_target import BetterTarget, first_target
from omnidemo.serving.chat_service import ChatService
from omnidemo.serving.pair_loading import StageReport, build_pair, open_store
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.speed import Speeds
from omnidemo.serving.visitor_lines import VisitorLines
from omnidemo.storage.backup import Backup
from omnidemo.storage.visitors import is_public

if TYPE_CHECKING:
    from omnidemo.serving.public_services import PublicServices


class Cluster(Protocol):
    """Further processes, on this or other machines. `processes`: how many write the answers of a pair."""

    processes: int

    def build(self, target: str, drafter: str, settings: Settings, progress: StageReport = ..., /) -> Pair:
        """As `build_pair`, with replicas that answer."""

    def trainers(self, pair: Pair) -> Trainers:
        """Makes the workers of a pair's lines."""


@dataclass(frozen=True, slots=True)
class MethodInfo:
    name: str
    title: str
    lossless: bool
    help: str


class Services:
    """The application without its pages. Thread-safe. ValueError where another process uses the storage. Its
    parts: `pool` loads pairs, `chats` answers, `tasks` repeats them, `adaptation` learns, `speeds` measures,
    `drafts` checks what other machines draft."""

    def __init__(self, settings: Settings | None = None, cluster: Cluster | None = None) -> None:
        """`cluster`: other processes that write answers and train; None: this process and its children."""
        settings = settings or Settings()
        self.better, self._given = BetterTarget(settings), settings
        settings = first_target(settings)
        self._held = settings.storage
        private_folders.hold(self._held)
        self._backup = Backup(settings)
        self.store = open_store(settings)
        self._backup.start(self.store)
        self.public_services: PublicServices | None = None  # set by the page
        self.processes = cluster.processes if cluster else 1  # that write the answers of a pair
        build = cluster.build if cluster else zero_gpu.build if zero_gpu.started() else build_pair
        self.pool = PairPool(
            settings,
            self.store,
            lambda: self.adaptation.prepare(),
            build,
            cluster.trainers if cluster else None,
        )
        self.adaptation = AdaptationService(self.pool, self.store)
        self.visitor_lines = VisitorLines(self.pool, self.store)
        self.speeds = Speeds(self.pool, self.store)
        self.speeds.public = is_public(settings)
        self.chats = ChatService(self.pool, self.adaptation, self.store, self.speeds)
        self.tasks = RepeatedAnswers(self.pool, self.chats)
        self.drafts = CheckedDrafts(self.pool, self.speeds)

    @property
    def settings(self) -> Settings:
        """The settings now; `configure` and `change_over` replace them."""
        return self.pool.settings

    def change_over(self, target: str) -> tuple[str, str]:
        """Make a target and its drafter the pair of the settings until the app ends, for new pages and the
        endpoint; returns the pair."""
        self.pool.change_over(target, drafter_of(target, self._given))
        return self.settings.target, self.settings.drafter

    def end_answers(self, seconds: float) -> None:
        """Begin no further answer, cancel the running ones, and wait until they are recorded, for at most so
        many seconds."""
        self.speeds.close()
        self.pool.end_answers(seconds)

    def close(self) -> None:
        """Stop the trainers, write the queue of the store, and back up where the settings name a folder."""
        self.better.stop()
        self.speeds.close()
        self.pool.close()
        self.adaptation.close()
        self.store.flush()
        self._backup.close()
        self.store.close()
        private_folders.let_go(self._held)

    def forget_copies(self, domain: str = "") -> None:
        """As `AdaptationService.forget_copies`; measured speeds, which hold texts of answers, are dropped
        too."""
        self.adaptation.forget_copies(domain)
        self.speeds.forget()

    def models(self, scan: bool = True) -> list[ModelCard]:
        """`scan`: as in `list_models`."""
        cards, fixed = list_models(self.settings, scan), (self.settings.target, self.settings.drafter)
        return [card for card in cards if card.name in fixed] if zero_gpu.started() else cards

    def resolve(self, name: str) -> str:
        """The known name of a model for any of its names. ModelError, one sentence, for a missing or unusable
        GGUF file."""
        return resolve(name.strip(), self.settings).name

    def methods(self) -> list[MethodInfo]:
        """All decoding methods, then "auto", which stands for one of them."""
        methods = [MethodInfo(m.name, m.title, m.lossless, m.help) for m in METHODS.values()]
        return [*methods, MethodInfo(AUTO, "Automatic", True, AUTO_HELP)]

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        """The methods that a loaded pair cannot use → the reason; empty while it is not loaded."""
        try:
            pair = self.pair(target, drafter)
        except RuntimeError:
            return {}
        reasons = {name: method.refusal(pair.map) for name, method in METHODS.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def pair(self, target: str, drafter: str) -> Pair:
        """A loaded pair. RuntimeError, one sentence, while it is not ready."""
        return self.pool.ready(target, drafter)[0]

    def check_form(self, target: str, drafter: str, schema: str) -> None:
        """ValueError, one sentence, for a schema that answers of a loaded pair cannot be held to."""
        pair = self.pair(target, drafter)
        pair.constraint(pair.asked(method=self.settings.method, schema=schema))

    def manner(self, target: str, drafter: str) -> Manner:
        """The sampling of a loaded pair's target where a request leaves it out."""
        return self.pair(target, drafter).target.manner
