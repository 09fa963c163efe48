"""Everything that pages and command line ask for: models, pairs, chats, comparisons, traffic and what is learned from them."""

from __future__ import annotations

from dataclasses import dataclass

from omnidemo import private_folders
from omnidemo.config import Settings
from omnidemo.lines import sample_prompts as prompts
from omnidemo.methods import AUTO, AUTO_HELP, METHODS
from omnidemo.models.catalogue import ModelCard, list_models
from omnidemo.pair.pair import Pair
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.beside import Beside
from omnidemo.serving.chat_service import ChatService
from omnidemo.serving.pair_loading import open_store
from omnidemo.serving.pair_pool import PairPool, PairState
from omnidemo.store.backup import Backup
from omnidemo.store.visitor_state import VisitorLines

__all__ = ["MethodInfo", "PairState", "Services"]


@dataclass(frozen=True, slots=True)
class MethodInfo:
    name: str
    title: str
    lossless: bool
    help: str


class Services:
    """The application without its pages. All methods may be called from any thread. ValueError where another process uses the storage.

    What is done elsewhere is handed out here, and documented there: chats in `ChatService`, learning in `AdaptationService`.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self._held = settings.storage
        private_folders.hold(self._held)
        self._safekeeping = Backup(settings)
        self.store = open_store(settings)
        self._safekeeping.start(self.store)
        self._shelf = PairPool(settings, self.store, then=self._prepare)
        self._adaptation = learning = AdaptationService(self._shelf, self.store)
        self.own = VisitorLines(self._shelf, self.store)
        answers = ChatService(self._shelf, learning, self.store)
        self.chat, self.play, self.compare, self.routed = answers.chat, answers.play, answers.compare, answers.routed
        self.rest, self.following = answers.rest, answers.following
        beside = Beside(self._shelf)
        self.plain, self.fresh_and_today = beside.plain, beside.fresh_and_today
        self.trainer, self.lines, self.drafting, self.route = learning.trainer, learning.lines, learning.drafting, learning.route
        self.pace_of, self.measuring = learning.pace_of, learning.measuring
        self.hero, self.before_after = learning.hero, learning.before_after
        self.controls, self.configure = learning.controls, learning.configure
        self.pause, self.resume, self.reset, self.activate = learning.pause, learning.resume, learning.reset, learning.activate
        self.export_adapter, self.import_adapter = learning.export_adapter, learning.import_adapter
        self.forget_exports, self.forget_asked = learning.forget_exports, answers.forget

    @property
    def settings(self) -> Settings:
        """The settings now; `configure` replaces them."""
        return self._shelf.settings

    def close(self) -> None:
        """Stop the trainers, write what waits, and back up where the settings ask for it."""
        self._shelf.close()
        self._adaptation.close()
        self.store.flush()
        self._safekeeping.close()
        self.store.close()
        private_folders.let_go(self._held)

    # what there is -------------------------------------------------------------------------------------------------------

    def models(self) -> list[ModelCard]:
        return list_models(self.settings)

    def methods(self) -> list[MethodInfo]:
        """All decoding methods, and at the end "auto", which stands for one of them."""
        found = [MethodInfo(m.name, m.title, m.lossless, m.help) for m in METHODS.values()]
        return [*found, MethodInfo(AUTO, "Automatic", True, AUTO_HELP)]

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        """The methods that a loaded pair cannot use, with the reason; empty while it is not loaded."""
        try:
            pair = self.pair(target, drafter)
        except RuntimeError:
            return {}
        reasons = {name: method.refusal(pair.map) for name, method in METHODS.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def topics(self) -> list[str]:
        return list(prompts.TOPICS)

    def examples(self) -> list[dict[str, str]]:
        """The page's hand-picked examples in order: topic, label, prompt."""
        return list(prompts.examples())

    def sample_prompts(self, topic: str, count: int, seed: int = 0) -> list[str]:
        return prompts.sample(topic, count, seed)

    # pairs ---------------------------------------------------------------------------------------------------------------

    def load(self, target: str, drafter: str) -> PairState:
        """Have a pair loaded in the background, if it is not there or on its way; a failed one is tried again. Returns at once."""
        return self._shelf.load(target, drafter)

    def state(self, target: str, drafter: str) -> PairState:
        return self._shelf.state(target, drafter)

    def pair(self, target: str, drafter: str) -> Pair:
        """The ready pair; RuntimeError, one sentence, while it is not."""
        return self._shelf.ready(target, drafter)[0]

    def _prepare(self) -> None:
        """After a pair was loaded: have the router read its counts before the first prompt waits for it."""
        self._adaptation.prepare()
