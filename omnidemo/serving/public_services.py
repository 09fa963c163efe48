"""The services as a caller may use them: a visitor has a line, n-grams and a history of their own; all else
is for the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from omnidemo.config import Settings
from omnidemo.decoding.draft_policy import Drafting
from omnidemo.distill.trainer_status import TrainerStatus
from omnidemo.lines.learning_curve import BeforeAfter
from omnidemo.lines.line_names import AUTO, LineInfo
from omnidemo.lines.router import DEFAULT, Route
from omnidemo.models.catalogue import ModelCard
from omnidemo.private_folders import without_folders
from omnidemo.records import Generation, Round
from omnidemo.serving.comparison import Asked, Comparison, turns_of
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.quotas import BUSY, LONGEST_ANSWER, MOST_PROMPTS, NO_ID, UPLOADS, WHY, Quotas, Refused
from omnidemo.serving.services import Services
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.store.store import Store
from omnidemo.store.visitors import OWN, Caller, Visitors, is_operator, is_public, owned

# Open to all visitors: it shows no visitor's data and changes nothing.
FREE = {
    "methods",
    "refusals",
    "topics",
    "sample_prompts",
    "examples",
    "conditions",
    "manner",
    "measuring",
    "forget_copies",
}
FREE |= {"speeds_of", "speed_lanes"}  # by the key of an answer, which nobody can guess


class PublicServices:
    """A wrapper of the services for all calls from page, endpoint and MCP tools. `who()` is the caller; None:
    the program itself.

    In an app that only this computer can reach, and for the operator, it passes every call on. For a visitor
    of a public app a call is changed to their own session, line and rows, or refused in one sentence
    (`Refused`).
    """

    def __init__(self, services: Services, who: Callable[[], Caller | None]) -> None:
        self._services, self._who = services, who
        self._proxied = False
        settings = services.settings
        self.visitors = Visitors(settings.storage, lambda own: services.store.common_key(own))
        each, together = (
            (settings.visitor_requests, settings.visitor_tokens),
            (settings.public_requests, settings.public_tokens),
        )
        self.quotas = Quotas(each, together)
        most = settings.upload_mb * 1000
        self.uploads = Quotas((UPLOADS, 5 * most), (10 * UPLOADS, 50 * most), words=("files", "kB of files"))

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that this class lacks: those not listed in FREE are refused to visitors.
        found = getattr(self._services, name)
        if name.startswith("_") or name in FREE or not callable(found):
            return found

        def guarded(*args: Any, **options: Any) -> Any:
            if self._visitor() is not None:
                raise Refused(self.refusal())
            return found(*args, **options)

        return guarded

    def calling_as(self, caller: Caller) -> Self:
        """The same services for one given caller, for the endpoint, which identifies callers by keys and not
        by the page's headers."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, _who=lambda: caller)
        return view

    @property
    def caller_name(self) -> str:
        """The name of the visitor who calls; "" for a call without one."""
        caller = self._who()
        return caller.name if caller is not None else ""

    @property
    def own(self) -> str:
        """The line and session of the visitor who calls; "" for whoever may do everything."""
        return "" if (visitor := self._visitor()) is None else visitor.own

    @property
    def public(self) -> bool:
        """Whether the app can be reached from elsewhere."""
        own = self._services.settings
        return is_public(own) or (self._proxied and own.public == "auto")

    def seen_through_proxy(self) -> None:
        """Note that a request came through a proxy: with the setting `auto` the app is public from now on."""
        self._proxied = True
        self._services.speeds.public = self.public

    @property
    def settings(self) -> Settings:
        """The settings for the caller: `public` is "true" or "false"."""
        stated = "true" if self.public and not self._operator() else "false"
        return self._services.settings.model_copy(update={"public": stated})

    def fits(self, key: str | None) -> bool:
        """Whether a key is the operator's."""
        return is_operator(self._services.settings, key)

    def refusal(self) -> str:
        """The sentence of a refusal where a call concerns all visitors."""
        how = (
            "enter the operator's key first"
            if self._services.settings.operator_key
            else "it is off, for the app has no operator's key"
        )
        return f"This concerns everybody who uses this app: {how}."

    def _operator(self) -> bool:
        return (caller := self._who()) is not None and caller.operator

    def _visitor(self) -> Caller | None:
        """The visitor who calls; None for the operator, on this computer alone, and for the program
        itself."""
        caller = self._who()
        if caller is None or caller.operator or not self.public:
            return None
        if not caller.name:
            raise Refused(NO_ID)
        return caller

    def _own(self, domain: str) -> str:
        """The line that a call is about: a visitor's own, whatever the page calls it. `Refused` where they
        named another one."""
        own = self.own
        if own and domain not in ("", DEFAULT, AUTO, own):
            raise Refused(f"The line {domain[:40]} is not yours. {self.refusal()}")
        return own or domain

    def models(self) -> list[ModelCard]:
        """In a public app the bundled models and the configured pair, for all but the operator; for them no
        folder is searched."""
        everything = not self.public or self._operator()
        return [
            card for card in self._services.models(scan=everything) if everything or self._offered(card.name)
        ]

    def _offered(self, name: str) -> bool:
        pair = (self._services.settings.target, self._services.settings.drafter)
        return name.startswith("bundled/") or self._services.known(name) in pair

    def load(self, target: str, drafter: str) -> PairState:
        if self._visitor() is None or (self._offered(target) and self._offered(drafter)):
            return self._told(self._services.load(target, drafter))
        state = self._services.state(target, drafter)
        return replace(
            state, stage="failed", error=f"Only the models of the list are loaded here. {self.refusal()}"
        )

    def state(self, target: str, drafter: str) -> PairState:
        return self._told(self._services.state(target, drafter))

    def _told(self, state: PairState) -> PairState:
        """What a visitor is told of a pair names no folder of the server."""
        return (
            state
            if self._visitor() is None
            else replace(state, error=state.error and without_folders(state.error))
        )

    def chat(
        self, *, session: str = "api", domain: str | None = None, **options: Any
    ) -> Iterator[Round | Generation]:
        """As `ChatService.chat`, in the visitor's session and with their line. Refused where a quota is used
        up; an answer that has begun is finished."""
        visitor = self._visitor()
        if visitor is None:
            return self._services.chat(session=self.caller_name or session, domain=domain, **options)
        self._begin(visitor)
        options["max_new_tokens"] = min(
            options["max_new_tokens"], max(LONGEST_ANSWER, self._services.settings.max_new_tokens)
        )
        return self._counted(visitor, self._services.chat(session=visitor.own, domain=visitor.own, **options))

    def _begin(self, visitor: Caller) -> None:
        """Count an answer of the visitor's, whose line counts as used now."""
        self.quotas.ask(visitor.name)
        self._services.visitor_lines.use(visitor.own)

    def _counted(self, visitor: Caller, answer: Iterator[Any]) -> Iterator[Any]:
        with closing(answer):  # type: ignore[type-var]
            for item in answer:
                if isinstance(item, Round):
                    self.quotas.spend(visitor.name, len(item.tokens))
                yield replace(item, domain=DEFAULT) if isinstance(item, Generation) else item

    def play(
        self, *, session: str = "api", domain: str | None = None, count: int, **options: Any
    ) -> Iterator[tuple[int, str, Generation]]:
        visitor = self._visitor()
        if visitor is None:
            yield from self._services.play(
                session=self.caller_name or session, domain=domain, count=count, **options
            )
            return
        self._begin(visitor)
        for index, prompt, generation in self._services.play(
            session=visitor.own, domain=visitor.own, count=count, **options
        ):
            left = self.quotas.spend(visitor.name, len(generation.token_ids))
            yield index, prompt, replace(generation, domain=DEFAULT)
            if not left:
                return
            if index + 1 < count:  # each prompt counts as an answer, when it begins
                self._begin(visitor)

    def compare(
        self, *, prompts: Sequence[Asked], methods: Sequence[str], max_new_tokens: int, **options: Any
    ) -> Iterator[Comparison]:
        visitor = self._visitor()
        if visitor is not None:
            if sum(len(turns_of(asked)) for asked in prompts) > MOST_PROMPTS:
                raise Refused(f"A comparison takes at most {MOST_PROMPTS} prompts here; choose fewer.")
            self._begin(visitor)
            max_new_tokens = min(max_new_tokens, LONGEST_ANSWER)
            options["domain"] = visitor.own
        for one in self._services.compare(
            prompts=prompts, methods=methods, max_new_tokens=max_new_tokens, **options
        ):
            left = visitor is None or self.quotas.spend(visitor.name, len(one.generation.token_ids))
            yield one
            if not left:
                return

    def let_learn(
        self, target: str, drafter: str, line: str = DEFAULT, cancel: Any = None, topic: str = ""
    ) -> None:
        self._services.let_learn(target, drafter, self._own(line), cancel, topic)

    def following(self, session: str) -> Route | None:
        own = self.own
        found = self._services.following(own or self.caller_name or session)
        return replace(found, domain=DEFAULT) if found and own else found

    def hero(self, target: str, drafter: str, topic: str, domain: str = DEFAULT) -> dict[str, Any]:
        return self._services.hero(target, drafter, topic, self._own(domain)) | {"line": domain}

    def before_after(self, target: str, drafter: str, domain: str, topic: str) -> BeforeAfter | None:
        return self._services.before_after(target, drafter, self._own(domain), topic)

    def plain(self, **options: Any) -> list[Generation]:
        return self._beside(lambda **given: (self._services.plain(**given),), options)[0]

    def fresh_and_today(self, *, domain: str, **options: Any) -> Sequence[list[Generation]]:
        return self._beside(self._services.fresh_and_today, options | {"domain": self._own(domain)})

    def _beside(
        self, run: Callable[..., Sequence[list[Generation]]], options: dict[str, Any]
    ) -> Sequence[list[Generation]]:
        """Measured repetitions of an answer, which count as one answer in the quotas, with the tokens of
        all."""
        visitor = self._visitor()
        if visitor is None:
            return run(**options)
        self.quotas.ask(visitor.name)
        options["max_new_tokens"] = min(options["max_new_tokens"], LONGEST_ANSWER)
        made = run(**options)
        for one in (one for runs in made for one in runs):
            self.quotas.spend(visitor.name, len(one.token_ids))
        return made

    def routed(self, session: str) -> Route | None:
        visitor = self._visitor()
        if visitor is None:
            return self._services.routed(self.caller_name or session)
        found = self._services.routed(visitor.own)
        return None if found is None else replace(found, domain=DEFAULT, why=WHY)

    def route(self, target: str, drafter: str, prompt: str) -> Route:
        return (
            self._services.route(target, drafter, prompt)
            if self._visitor() is None
            else Route(DEFAULT, 1.0, "")
        )

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        return replace(self._services.trainer(target, drafter, self._own(domain)), domain=domain)

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        own, found = self.own, self._services.lines(target, drafter)
        if not own:
            return [line for line in found if not owned(line.domain)]
        return [replace(line, domain=DEFAULT) for line in found if line.domain == own]

    def drafting(self, target: str, drafter: str, domain: str = DEFAULT) -> Drafting:
        return self._services.drafting(target, drafter, self._own(domain))

    def pause(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.pause(target, drafter, domain=self._line(domain))

    def resume(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.resume(target, drafter, domain=self._line(domain))

    def reset(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.reset(target, drafter, domain=self._line(domain))

    def activate(self, target: str, drafter: str, version: int, domain: str = DEFAULT) -> None:
        self._services.activate(target, drafter, version, domain=self._line(domain))

    def _line(self, domain: str) -> str:
        """As `_own`, of a line that is changed, which counts as used now."""
        own = self._own(domain)
        if self.own:
            self._services.visitor_lines.use(own)
        return own

    def on_disk(self, target: str, drafter: str, domain: str = DEFAULT) -> list[int]:
        return self._services.on_disk(target, drafter, self._own(domain))

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        return self._services.export_adapter(target, drafter, self._own(domain), version)

    @property
    def store(self) -> Store | VisitorStore:
        return (
            self._services.store
            if (visitor := self._visitor()) is None
            else VisitorStore(self._services.store, visitor)
        )

    def forget(self, name: str) -> str:
        """Delete everything that is kept about a visitor; what happened, in one sentence."""
        services, own = self._services, OWN + name
        if not services.visitor_lines.forget(own):
            raise Refused(BUSY)
        services.forget_exports(own)
        services.speeds.forget()
        gone = 0
        for session in (own, name):  # the latter from before the app was public, or as its operator
            services.forget_asked(session)
            gone += services.store.forget_visitor(session)
        if not services.store.status.ok:
            return (
                "Your adapter and n-grams are deleted; your history not yet, for the database does not work"
                " now. Try again later."
            )
        return f"Deleted: {gone} request{'' if gone == 1 else 's'} and all that was learned from you."

    def sweep(self) -> None:
        """Delete visitors' lines and rows whose time is over. `ui/guard.py` calls it at the start and every
        few minutes."""
        settings = self._services.settings
        self._services.visitor_lines.sweep()
        self._services.store.prune_visitors(
            settings.visitor_hours, settings.visitor_rows, settings.public_rows
        )
