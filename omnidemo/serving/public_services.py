"""The services as a caller may use them: a visitor has a line, n-grams and a history of their own; all else is for the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidemo.decoding.cost_policy import Drafting
from omnidemo.distill.trainer_status import TrainerStatus
from omnidemo.lines.learning_curve import BeforeAfter
from omnidemo.lines.line_names import LineInfo
from omnidemo.lines.router import DEFAULT, Route
from omnidemo.lines.slowdown import Slowdown
from omnidemo.models.catalogue import ModelCard
from omnidemo.private_folders import without_folders
from omnidemo.records import Generation, Round
from omnidemo.serving.callers import Callers
from omnidemo.serving.comparison import Comparison
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.quotas import BUSY, LONGEST_ANSWER, MOST_PROMPTS, UPLOADS, WHY, Quotas, Refused
from omnidemo.serving.services import Services
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.store.store import Store
from omnidemo.store.visitors import OWN, Caller, owned

# Open to all visitors: it shows no visitor's data and changes nothing.
FREE = {"methods", "refusals", "topics", "sample_prompts", "examples", "controls", "conditions", "measuring"}


class PublicServices(Callers):
    """A wrapper of the services for all calls from page, endpoint and MCP tools. `who()` is the caller; None: the program itself.

    In an app that only this computer can reach, and for the operator, it passes every call on. For a visitor of a public app a call is
    changed to their own session, line and rows, or refused in one sentence (`Refused`).
    """

    def __init__(self, services: Services, who: Callable[[], Caller | None]) -> None:
        super().__init__(services, who)
        settings = services.settings
        each, together = (settings.visitor_requests, settings.visitor_tokens), (settings.public_requests, settings.public_tokens)
        self.quotas = Quotas(each, together)
        most = settings.upload_mb * 1000
        self.uploads = Quotas((UPLOADS, 5 * most), (10 * UPLOADS, 50 * most), words=("files", "kB of files"))

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that this class lacks: those not listed in FREE are refused to visitors.
        found = getattr(self._services, name)
        if name.startswith("_") or name in FREE or not callable(found):
            return found

        def guarded(*args: Any, **options: Any) -> Any:
            self._require_operator()
            return found(*args, **options)

        return guarded

    def models(self) -> list[ModelCard]:
        """In a public app the bundled models and the configured pair, for visitors and for the page that all get."""
        found = list(self._services.models())
        return found if not self.public or self._operator() else [card for card in found if self._offered(card.name)]

    def _offered(self, name: str) -> bool:
        settings = self._services.settings
        return name.startswith("bundled/") or name in (settings.target, settings.drafter)

    def load(self, target: str, drafter: str) -> PairState:
        if self._visitor() is None or (self._offered(target) and self._offered(drafter)):
            return self._told(self._services.load(target, drafter))
        state = self._services.state(target, drafter)
        return replace(state, stage="failed", error=f"Only the models of the list are loaded here. {self.refusal()}")

    def state(self, target: str, drafter: str) -> PairState:
        return self._told(self._services.state(target, drafter))

    def _told(self, state: PairState) -> PairState:
        """What a visitor is told of a pair names no folder of the server."""
        return state if self._visitor() is None else replace(state, error=state.error and without_folders(state.error))

    def chat(self, *, session: str = "api", domain: str | None = None, **options: Any) -> Iterator[Round | Generation]:
        """As `ChatService.chat`, in the visitor's session and with their line, as long as the quotas last."""
        visitor = self._visitor()
        if visitor is None:
            return self._services.chat(session=self.caller_name or session, domain=domain, **options)
        self.quotas.ask(visitor.name)
        self._use(visitor)
        options["max_new_tokens"] = min(options["max_new_tokens"], max(LONGEST_ANSWER, self._services.settings.max_new_tokens))
        return self._counted(visitor, self._services.chat(session=visitor.own, domain=visitor.own, **options))

    def _counted(self, visitor: Caller, answer: Iterator[Any]) -> Iterator[Any]:
        try:
            for item in answer:
                if isinstance(item, Round):
                    self.quotas.spend(visitor.name, len(item.tokens))
                yield replace(item, domain=DEFAULT) if isinstance(item, Generation) else item
        finally:
            close = getattr(answer, "close", None)
            if close is not None:
                close()

    def play(self, *, session: str = "api", domain: str | None = None, count: int, **options: Any) -> Iterator[tuple[int, str, Generation]]:
        visitor = self._visitor()
        if visitor is None:
            yield from self._services.play(session=self.caller_name or session, domain=domain, count=count, **options)
            return
        self.quotas.ask(visitor.name)
        self._use(visitor)
        for index, prompt, generation in self._services.play(session=visitor.own, domain=visitor.own, count=count, **options):
            left = self.quotas.spend(visitor.name, len(generation.token_ids))
            yield index, prompt, replace(generation, domain=DEFAULT)
            if not left:
                return
            if index + 1 < count:  # each prompt counts as an answer, when it begins
                self.quotas.ask(visitor.name)

    def compare(self, *, prompts: Sequence[str], methods: Sequence[str], max_new_tokens: int, **options: Any) -> Iterator[Comparison]:
        visitor = self._visitor()
        if visitor is not None and len(prompts) > MOST_PROMPTS:
            raise Refused(f"A comparison takes at most {MOST_PROMPTS} prompts here; choose fewer.")
        if visitor is not None:
            max_new_tokens = min(max_new_tokens, LONGEST_ANSWER)
            self.quotas.ask(visitor.name)
            self._use(visitor)
            options["domain"] = visitor.own
        for one in self._services.compare(prompts=prompts, methods=methods, max_new_tokens=max_new_tokens, **options):
            left = visitor is None or self.quotas.spend(visitor.name, len(one.generation.token_ids))
            yield one
            if not left:
                return

    def let_learn(self, target: str, drafter: str, line: str = DEFAULT, cancel: Any = None, topic: str = "") -> None:
        self._services.let_learn(target, drafter, self._own(line) or line, cancel, topic)

    def following(self, session: str) -> Route | None:
        visitor = self._visitor()
        found = self._services.following(session if visitor is None else visitor.own)
        return found if visitor is None or found is None else replace(found, domain=DEFAULT)

    def pace_of(self, target: str, drafter: str, topic: str, domain: str = DEFAULT) -> Slowdown:
        return self._services.pace_of(target, drafter, topic, self._own(domain) or domain)

    def hero(self, target: str, drafter: str, topic: str, domain: str = DEFAULT) -> dict[str, Any]:
        return self._services.hero(target, drafter, topic, self._own(domain) or domain) | {"line": domain}

    def before_after(self, target: str, drafter: str, domain: str, topic: str) -> BeforeAfter | None:
        found = self._services.before_after(target, drafter, self._own(domain) or domain, topic)
        return None if found is None else replace(found, line=domain)

    def plain(self, **options: Any) -> list[Generation]:
        return self._beside(lambda **given: (self._services.plain(**given),), options)[0]

    def fresh_and_today(self, *, domain: str, **options: Any) -> Sequence[list[Generation]]:
        own = self._own(domain)
        return self._beside(self._services.fresh_and_today, options | {"domain": own or domain})

    def _beside(self, run: Callable[..., Sequence[list[Generation]]], options: dict[str, Any]) -> Sequence[list[Generation]]:
        """Measured repetitions of an answer, which count as one answer in the quotas, with the tokens of all."""
        visitor = self._visitor()
        if visitor is None:
            return run(**options)
        self.quotas.ask(visitor.name)
        options["max_new_tokens"] = min(options["max_new_tokens"], LONGEST_ANSWER)
        made = run(**options)
        for one in (one for runs in made for one in runs):
            self.quotas.spend(visitor.name, len(one.token_ids))
        return made

    def _use(self, visitor: Caller) -> None:
        self._services.visitor_lines.use(visitor.own)

    def routed(self, session: str) -> Route | None:
        visitor = self._visitor()
        if visitor is None:
            return self._services.routed(self.caller_name or session)
        found = self._services.routed(visitor.own)
        return None if found is None else replace(found, domain=DEFAULT, why=WHY)

    def route(self, target: str, drafter: str, prompt: str) -> Route:
        return self._services.route(target, drafter, prompt) if self._visitor() is None else Route(DEFAULT, 1.0, "")

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        visitor = self._visitor()
        if visitor is None:
            return self._services.trainer(target, drafter, domain)
        return replace(self._services.trainer(target, drafter, visitor.own), domain=DEFAULT)

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        visitor, found = self._visitor(), self._services.lines(target, drafter)
        if visitor is None:
            return [line for line in found if not owned(line.domain)]
        return [replace(line, domain=DEFAULT) for line in found if line.domain == visitor.own]

    def drafting(self, target: str, drafter: str, domain: str = DEFAULT) -> Drafting:
        visitor = self._visitor()
        return self._services.drafting(target, drafter, domain if visitor is None else visitor.own)

    def pause(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.pause(target, drafter, domain=self._line(domain))

    def resume(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.resume(target, drafter, domain=self._line(domain))

    def reset(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.reset(target, drafter, domain=self._line(domain))

    def activate(self, target: str, drafter: str, version: int, domain: str = DEFAULT) -> None:
        self._services.activate(target, drafter, version, domain=self._line(domain))

    def _line(self, domain: str) -> str:
        """The line to change: in a public app the visitor's own, whatever the page calls it, which counts as used now."""
        own = self._own(domain)
        if own is not None:
            self._services.visitor_lines.use(own)
        return own or domain

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        own = self._own(domain)
        return self._services.export_adapter(target, drafter, own or domain, version)

    @property
    def store(self) -> Store | VisitorStore:
        visitor = self._visitor()
        return self._services.store if visitor is None else VisitorStore(self._services.store, visitor)

    def forget(self, name: str) -> str:
        """Delete everything that is kept about a visitor; what happened, in one sentence."""
        services, own = self._services, OWN + name
        if not services.visitor_lines.forget(own):
            raise Refused(BUSY)
        services.forget_exports(own)
        services.forget_asked(own)
        gone = services.store.forget_visitor(own) + services.store.forget_visitor(name)  # the latter from before the app was public
        if not services.store.status.ok:
            return "Your adapter and n-grams are deleted; your history not yet, for the database does not work now. Try again later."
        return f"Deleted: {gone} request{'' if gone == 1 else 's'} and all that was learned from you."

    def sweep(self) -> None:
        """Delete visitors' lines and rows whose time is over. `ui/guard.py` calls it at the start and every few minutes."""
        settings = self._services.settings
        self._services.visitor_lines.sweep()
        self._services.store.prune_visitors(settings.visitor_hours, settings.visitor_rows, settings.public_rows)
