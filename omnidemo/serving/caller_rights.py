"""Who calls the services of a public app, what belongs to the caller, and how much the caller may still
ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, Self

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import Generation, Part, Round
from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.pair.remote.draft_checks import Check, Checked
from omnidemo.pair.repeated_task import Repeated
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.quotas import LONGEST_ANSWER, NO_ID, UPLOADS, Quotas, Refused
from omnidemo.serving.services import Services
from omnidemo.storage.visitors import Caller, Visitors, is_operator, is_public


class CallerRights:
    """The checks that `PublicServices` makes before it acts. `who()` is the caller; None: the program itself.

    In an app that only this computer can reach, everybody may do everything. In a public app only the
    operator may; everybody else is a visitor.
    """

    def __init__(self, services: Services, who: Callable[[], Caller | None]) -> None:
        self._services, self._who = services, who
        self._proxied = False
        settings = services.settings
        self.visitors = Visitors(settings.storage, lambda own: services.store.common_key(own))
        each = (settings.visitor_requests, settings.visitor_tokens)
        self.quotas = Quotas(each, (settings.public_requests, settings.public_tokens))
        most = settings.upload_mb * 1000
        self.uploads = Quotas((UPLOADS, 5 * most), (10 * UPLOADS, 50 * most), words=("files", "kB of files"))

    def calling_as(self, caller: Caller) -> Self:
        """The same services for a given caller; the endpoint identifies callers by keys."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, _who=lambda: caller)
        return view

    @property
    def caller_name(self) -> str:
        """The name of the calling visitor; "" for a call without one."""
        caller = self._who()
        return caller.name if caller is not None else ""

    @property
    def own(self) -> str:
        """The line and session of the calling visitor; "" for a caller who may do everything."""
        return "" if (visitor := self._visitor()) is None else visitor.own

    @property
    def public(self) -> bool:
        """Whether the app can be reached from elsewhere."""
        settings = self._services.settings
        return is_public(settings) or (self._proxied and settings.public == "auto")

    def seen_through_proxy(self) -> None:
        """A request came through a proxy: with the setting `auto` the app is public from now on."""
        self._proxied = True
        self._services.speeds.public = self.public

    @property
    def settings(self) -> Settings:
        """The settings as the caller sees them: `public` is "true" or "false"."""
        stated = "true" if self.public and not self._operator() else "false"
        return self._services.settings.model_copy(update={"public": stated})

    def fits(self, key: str | None) -> bool:
        """Whether a key is the operator's."""
        return is_operator(self._services.settings, key)

    def refusal(self) -> str:
        """The sentence that refuses a call that concerns all visitors."""
        keyed = self._services.settings.operator_key
        how = "enter the operator's key first" if keyed else "it is off, for the app has no operator's key"
        return f"This concerns everybody who uses this app: {how}."

    def _operator(self) -> bool:
        return (caller := self._who()) is not None and caller.operator

    def _visitor(self) -> Caller | None:
        """The calling visitor; None for the operator, in a private app, and for the program itself. `Refused`
        for a visitor without an id."""
        caller = self._who()
        if caller is None or caller.operator or not self.public:
            return None
        if not caller.name:
            raise Refused(NO_ID)
        return caller

    def _refuse_visitors(self) -> None:
        if self._visitor() is not None:
            raise Refused(self.refusal())

    def _own(self, domain: str) -> str:
        """The line that a call is about: a visitor's own, which the page calls the default line. `Refused`
        where the visitor names another one."""
        own = self.own
        if own and domain not in ("", DEFAULT, AUTO, own):
            raise Refused(f"The line {domain[:40]} is not yours. {self.refusal()}")
        return own or domain

    def _own_changed(self, domain: str) -> str:
        """As `_own`, for a call that changes the line; the line counts as used now."""
        line = self._own(domain)
        if self.own:
            self._services.visitor_lines.use(line)
        return line

    def _sees_all_models(self) -> bool:
        return not self.public or self._operator()

    def _offered(self, name: str) -> bool:
        """Whether visitors may use a model: bundled models and the configured pair, also one before it, which
        open pages have."""
        settings = self._services.settings
        pairs = [(settings.target, settings.drafter), *self._services.former]
        return name.startswith("bundled/") or any(self._services.known(name) in pair for pair in pairs)

    def _told(self, state: PairState) -> PairState:
        """The state of a pair; a visitor's names no folder of the server."""
        if self._visitor() is None:
            return state
        there = state.meanwhile if state.meanwhile and all(map(self._offered, state.meanwhile)) else None
        return replace(state, error=state.error and without_folders(state.error), meanwhile=there)

    def _begin(self, visitor: Caller) -> None:
        """Count an answer of the visitor; the line counts as used now. `Refused` where the quota is used
        up."""
        self.quotas.ask(visitor.name)
        self._services.visitor_lines.use(visitor.own)

    def _counted(self, visitor: Caller, answer: Iterator[Any]) -> Iterator[Any]:
        """The answer. Its tokens count as they are written, and its line is called the default one."""
        with closing(answer):  # type: ignore[type-var]
            for item in answer:
                if isinstance(item, Round):
                    self.quotas.spend(visitor.name, len(item.tokens))
                yield replace(item, domain=DEFAULT) if isinstance(item, Generation) else item

    def check_draft(self, target: str, drafter: str, asked: Check) -> Checked:
        """As `CheckedDrafts.check`. A visitor's new session counts as an answer, and accepted tokens as its
        tokens."""
        visitor = self._visitor()
        if visitor is None:
            return self._services.drafts.check(target, drafter, asked, "")
        if not asked.session:
            self._begin(visitor)
        made = self._services.drafts.check(target, drafter, asked, visitor.own)
        self.quotas.spend(visitor.name, made.accepted + (made.token is not None))
        return made

    def describe_target(self, target: str, drafter: str, tokenizer: bool = False) -> dict[str, Any]:
        """As `CheckedDrafts.describe`."""
        return self._services.drafts.describe(target, drafter, tokenizer)

    def _each_counted(
        self, visitor: Caller, *, count: int = 10, first: int = 0, **options: Any
    ) -> Iterator[Part | Repeated]:
        """The answers of a task, by the visitor's line; each counts when it begins."""
        if options.get("max_new_tokens"):
            options["max_new_tokens"] = min(options["max_new_tokens"], LONGEST_ANSWER)
        for number in range(first, first + count):
            self._begin(visitor)
            named = {"session": visitor.own, "domain": visitor.own, "count": 1, "first": number}
            item: Part | Repeated | None = None
            for item in self._counted(visitor, self._services.repeat(**options | named)):
                if isinstance(item, Repeated):
                    item = replace(item, generation=replace(item.generation, domain=DEFAULT))
                yield item
            if not isinstance(item, Repeated):  # it was stopped, or there are no more inputs
                return
