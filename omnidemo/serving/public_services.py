"""The services as a caller may use them. In an app that only this computer can reach everybody may do
everything. In a public app only the operator may; everybody else is a visitor, with a line, n-grams and a
history of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import Generation, Part, Round
from omnidemo.learning.distill.trainer_status import TrainerStatus
from omnidemo.learning.lines.line_names import AUTO, LineInfo
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.models.catalogue import ModelCard
from omnidemo.pair.remote.draft_checks import Check, Checked
from omnidemo.pair.repeated_task import Repeated
from omnidemo.serving.better_target import BetterTarget
from omnidemo.serving.comparison import Asked, Comparison, turns_of
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.quotas import BUSY, LONGEST_ANSWER, MOST_PROMPTS, NO_ID, UPLOADS, Quotas, Refused
from omnidemo.serving.services import Services
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.serving.waiting_line import WaitingLine
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import OWN, Caller, Visitors, is_operator, is_public, owned

STREAMS = 3  # answers of a public app that each process writes at the same time, round by round
EVERYBODY, OWN_LINE, USED_LINE, OPERATOR = range(4)
# Who may call the services that are passed on as they are, and the part of `Services` that has each.
# EVERYBODY: nothing of a visitor is shown, nothing is changed that others would miss, and nobody can guess
# the key of another's answer. OWN_LINE, USED_LINE: a visitor for the own line alone, which counts as used now
# by the second. OPERATOR: it concerns everybody, or tells which files are there.
RIGHTS: Mapping[str, tuple[int, str]] = {
    name: (right, part)
    for right, part, names in (
        (EVERYBODY, "", "methods refusals manner check_form forget_copies"),
        (EVERYBODY, "chats", "pace_of"),
        (EVERYBODY, "drafts", "describe_target"),
        (EVERYBODY, "speeds", "speeds_of learned_of speed_lanes"),
        (OWN_LINE, "adaptation", "drafting on_disk export_adapter"),
        (OWN_LINE, "chats", "let_learn"),
        (USED_LINE, "adaptation", "pause resume reset activate"),
        (OPERATOR, "adaptation", "configure import_adapter"),
        (OPERATOR, "pool", "stop"),
        (OPERATOR, "", "change_over resolve close"),
    )
    for name in names.split()
}


def may(caller: Caller | None, action: str, public: bool) -> bool:
    """Whether a caller (None: the program itself) may call a service, of the own line at least."""
    return RIGHTS[action][0] != OPERATOR or not public or caller is None or caller.operator


class PublicServices:
    """What page, endpoint and MCP tools may call, with the names and arguments of `Services`: those of
    RIGHTS, and those that have a method here, which says what it does for a visitor of a public app. For the
    operator, for the program itself, and in a private app calls are passed on. `who()` is the caller; None:
    the program itself."""

    def __init__(self, services: Services, who: Callable[[], Caller | None]) -> None:
        self._services, self._who = services, who
        self._proxied = False
        self.processes, settings = services.processes, services.settings
        self.visitors = Visitors(settings.storage, lambda own: services.store.common_key(own))
        each = (settings.visitor_requests, settings.visitor_tokens)
        self.quotas = Quotas(each, (settings.public_requests, settings.public_tokens))
        most = settings.upload_mb * 1000
        self.uploads = Quotas((UPLOADS, 5 * most), (10 * UPLOADS, 50 * most), words=("files", "kB of files"))
        # One answer at a time is quickest for one person; of many several interleave, so that nobody waits
        # for a comparison.
        at_once = lambda: STREAMS * self.processes if self.public else 1  # noqa: E731
        self.line = WaitingLine(at_once, settings.queue_size)
        self.beside = WaitingLine(lambda: 1, settings.queue_size)  # what is measured beside answers

    def __getattr__(self, name: str) -> Any:
        if name not in RIGHTS:
            raise AttributeError(f"there is no service {name} for callers")
        right, part = RIGHTS[name]
        act: Callable[..., Any] = getattr(getattr(self._services, part) if part else self._services, name)
        return act if right == EVERYBODY else partial(self._allowed, name, act)

    def _allowed(self, name: str, act: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        """What a service returns to a caller who may call it. `Refused` for others."""
        visitor = self._visitor()
        if not may(self._who(), name, self.public):
            raise Refused(self.refusal())
        if visitor is None or RIGHTS[name][0] == OPERATOR:
            return act(*given, **named)
        asked = signature(act).bind(*given, **named)
        asked.apply_defaults()
        asked.arguments["domain"] = line = self._own(asked.arguments["domain"])
        if RIGHTS[name][0] == USED_LINE:
            self._services.visitor_lines.use(line)
        return act(*asked.args, **asked.kwargs)

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
    def waiting_as(self) -> str:
        """Whose place in a line it is: a visitor of a public app has a limited number of them."""
        return self.caller_name if self.public else ""

    @property
    def session(self) -> str:
        """The session of the caller, whose answers are stored under it; "" for one without an id."""
        return self.own or self.caller_name

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
        return self._services.settings.model_copy(update={"public": "false" if self._sees_all else "true"})

    def fits(self, key: str | None) -> bool:
        """Whether a key is the operator's."""
        return is_operator(self._services.settings, key)

    def refusal(self) -> str:
        """The sentence that refuses a call that concerns all visitors."""
        keyed = self._services.settings.operator_key
        how = "enter the operator's key first" if keyed else "it is off, for the app has no operator's key"
        return f"This concerns everybody who uses this app: {how}."

    def _visitor(self) -> Caller | None:
        """The calling visitor; None for the operator, in a private app, and for the program itself. `Refused`
        for a visitor without an id."""
        caller = self._who()
        if caller is None or caller.operator or not self.public:
            return None
        if not caller.name:
            raise Refused(NO_ID)
        return caller

    def _own(self, domain: str) -> str:
        """The line that a call is about: a visitor's own, which the page calls the default line. `Refused`
        where the visitor names another one."""
        own = self.own
        if own and domain not in ("", DEFAULT, AUTO, own):
            raise Refused(f"The line {domain[:40]} is not yours. {self.refusal()}")
        return own or domain

    @property
    def _sees_all(self) -> bool:
        caller = self._who()
        return not self.public or (caller is not None and caller.operator)

    def _offered(self, name: str) -> bool:
        """Whether visitors may use a model: bundled models and the configured pair, also one before it, which
        open pages have."""
        settings = self._services.settings
        pairs = [(settings.target, settings.drafter), *self._services.pool.former]
        return name.startswith("bundled/") or any(self._services.pool.known(name) in pair for pair in pairs)

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

    def _shorten(self, options: dict[str, Any], most: int = LONGEST_ANSWER) -> None:
        if options.get("max_new_tokens"):
            options["max_new_tokens"] = min(options["max_new_tokens"], most)

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

    # Models.

    def models(self) -> list[ModelCard]:
        """For visitors the bundled models and the configured pair; no folder is searched for them."""
        everything = self._sees_all
        cards = self._services.models(scan=everything)
        return [card for card in cards if everything or self._offered(card.name)]

    def load(self, target: str, drafter: str) -> PairState:
        """A visitor loads models of the list; for others the state is failed, with the reason."""
        if self._visitor() is None or (self._offered(target) and self._offered(drafter)):
            return self._told(self._services.pool.load(target, drafter))
        said = f"Only the models of the list are loaded here. {self.refusal()}"
        return replace(self._services.pool.state(target, drafter), stage="failed", error=said)

    def state(self, target: str, drafter: str) -> PairState:
        return self._told(self._services.pool.state(target, drafter))

    def changed_over(self) -> bool:
        """Whether the settings had another pair before."""
        return bool(self._services.pool.former)

    def better(self) -> BetterTarget | None:
        """The target that is fetched meanwhile; None for visitors, who use the configured one."""
        return self._services.better if self._visitor() is None else None

    # Answers. A visitor's are made in their session and with their line, and count in their quota.

    def chat(self, *, session: str = "api", domain: str | None = None, **options: Any) -> Iterator[Part]:
        """Refused where a quota is used up; a begun answer is finished."""
        visitor = self._visitor()
        if visitor is None:
            return self._services.chats.chat(session=self.caller_name or session, domain=domain, **options)
        self._begin(visitor)
        self._shorten(options, max(LONGEST_ANSWER, self._services.settings.max_new_tokens))
        return self._counted(
            visitor, self._services.chats.chat(session=visitor.own, domain=visitor.own, **options)
        )

    def repeat(
        self, *, session: str = "api", domain: str | None = None, count: int = 10, first: int = 0,
        **options: Any,
    ) -> Iterator[Part | Repeated]:  # fmt: skip
        """As `chat` for each answer of a task, until the quota ends; each counts when it begins."""
        visitor = self._visitor()
        if visitor is None:
            named: dict[str, Any] = {"session": self.caller_name or session, "domain": domain}
            yield from self._services.tasks.repeat(count=count, first=first, **named, **options)
            return
        self._shorten(options)
        own: dict[str, Any] = {"session": visitor.own, "domain": visitor.own, "count": 1}
        for number in range(first, first + count):
            self._begin(visitor)
            item: Part | Repeated | None = None
            for item in self._counted(visitor, self._services.tasks.repeat(first=number, **own, **options)):
                if isinstance(item, Repeated):
                    item = replace(item, generation=replace(item.generation, domain=DEFAULT))
                yield item
            if not isinstance(item, Repeated):  # it was stopped, or there are no more inputs
                return

    def compare(
        self, *, prompts: Sequence[Asked], methods: Sequence[str], **options: Any
    ) -> Iterator[Comparison]:
        """A visitor compares a few prompts with short answers, which count as one answer, until the quota
        ends."""
        visitor = self._visitor()
        if visitor is not None:
            if sum(len(turns_of(asked)) for asked in prompts) > MOST_PROMPTS:
                raise Refused(f"A comparison takes at most {MOST_PROMPTS} prompts here; choose fewer.")
            self._begin(visitor)
            self._shorten(options)
            options["domain"] = visitor.own
        for comparison in self._services.chats.compare(prompts=prompts, methods=methods, **options):
            tokens = len(comparison.generation.token_ids)
            left = visitor is None or self.quotas.spend(visitor.name, tokens)
            yield comparison
            if not left:
                return

    def race(self, *, domain: str | None = None, **options: Any) -> list[list[Generation]]:
        """For a visitor all runs count as one answer, with the tokens of all. A line is the visitor's own."""
        visitor, domain = self._visitor(), domain and self._own(domain)
        if visitor is None:
            return self._services.chats.race(domain=domain, **options)
        self.quotas.ask(visitor.name)
        self._shorten(options)
        made = self._services.chats.race(domain=domain, **options)
        self.quotas.spend(visitor.name, sum(len(one.token_ids) for runs in made for one in runs))
        return made

    # Adapter lines. Whatever the visitor's page calls the line, it is the visitor's own one.

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        """A visitor's own line; for all others the lines that are no visitor's."""
        own, lines = self.own, self._services.adaptation.lines(target, drafter)
        if not own:
            return [line for line in lines if not owned(line.domain)]
        return [replace(line, domain=DEFAULT) for line in lines if line.domain == own]

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        return replace(self._services.adaptation.trainer(target, drafter, self._own(domain)), domain=domain)

    # Stored data.

    @property
    def store(self) -> Store | VisitorStore:
        """The history; a visitor reads and changes only their own rows."""
        visitor = self._visitor()
        return self._services.store if visitor is None else VisitorStore(self._services.store, visitor)

    def forget(self, name: str) -> str:
        """Delete everything that is stored about a visitor; the result in one sentence."""
        services, own = self._services, OWN + name
        if not services.visitor_lines.forget(own):
            raise Refused(BUSY)
        services.adaptation.forget_exports(own)
        services.speeds.forget()
        # `name`: from before the app was public, or as its operator
        gone = sum(map(services.store.forget_visitor, (own, name)))
        if not services.store.status.ok:
            return (
                "Your adapter and n-grams are deleted. Your history is not: the database does not work now."
                " Try again later."
            )
        return f"Deleted: {gone} request{'' if gone == 1 else 's'} and all that was learned from you."

    def sweep(self) -> None:
        """Delete expired lines and rows of visitors. `ui/guard.py` calls it at the start and every few
        minutes."""
        settings, services = self._services.settings, self._services
        services.visitor_lines.sweep()
        services.store.prune_visitors(settings.visitor_hours, settings.visitor_rows, settings.public_rows)
