"""The services as a caller may use them: a visitor has a line, n-grams and a history; the operator may use
all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidemo.core.records import Generation, Part
from omnidemo.learning.distill.trainer_status import TrainerStatus
from omnidemo.learning.lines.line_names import LineInfo
from omnidemo.learning.lines.router import DEFAULT, Route
from omnidemo.models.catalogue import ModelCard
from omnidemo.pair.drafting_now import Drafting
from omnidemo.serving.better_target import BetterTarget
from omnidemo.serving.caller_rights import CallerRights
from omnidemo.serving.comparison import Asked, Comparison, turns_of
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.quotas import BUSY, LONGEST_ANSWER, MOST_PROMPTS, WHY, Refused
from omnidemo.serving.services import Services
from omnidemo.serving.visitor_store import VisitorStore
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import OWN, Caller, owned


class PublicServices(CallerRights):
    """What page, endpoint and MCP tools may call, with the names and arguments of `Services`. Each method
    says what it does for a visitor of a public app. For the operator, for the program itself, and in a
    private app it passes the call on. A service without a method here cannot be called."""

    def __init__(self, services: Services, who: Callable[[], Caller | None]) -> None:
        super().__init__(services, who)
        # Open to everybody: these show no visitor's data and change nothing.
        self.processes = services.processes
        self.methods, self.refusals, self.manner = services.methods, services.refusals, services.manner
        self.topics, self.examples, self.sample_prompts = (
            services.topics, services.examples, services.sample_prompts,
        )  # fmt: skip
        self.pace_of = services.pace_of
        # Open too, because nobody can guess the key of another's answer.
        self.speeds_of, self.speed_lanes = services.speeds_of, services.speed_lanes

    def forget_copies(self, domain: str = "") -> None:
        """Open to everybody: answers only take longer until there are new ones to copy from."""
        self._services.forget_copies(domain)

    # Refused to visitors, because it concerns everybody.

    def configure(self, /, **changes: Any) -> None:
        self._refuse_visitors()
        self._services.configure(**changes)

    def change_over(self, target: str) -> tuple[str, str]:
        self._refuse_visitors()
        return self._services.change_over(target)

    def import_adapter(self, target: str, drafter: str, domain: str, path: Path) -> int:
        self._refuse_visitors()
        return self._services.import_adapter(target, drafter, domain, path)

    def stop(self, target: str, drafter: str) -> PairState:
        """Others may wait for the model."""
        self._refuse_visitors()
        return self._services.stop(target, drafter)

    def resolve(self, name: str) -> str:
        """The answer tells which files are there."""
        self._refuse_visitors()
        return self._services.resolve(name)

    def close(self) -> None:
        self._refuse_visitors()
        self._services.close()

    # Models.

    def models(self) -> list[ModelCard]:
        """For visitors the bundled models and the configured pair; no folder is searched for them."""
        everything = self._sees_all_models()
        cards = self._services.models(scan=everything)
        return [card for card in cards if everything or self._offered(card.name)]

    def load(self, target: str, drafter: str) -> PairState:
        """A visitor loads models of the list; for others the state is failed, with the reason."""
        if self._visitor() is None or (self._offered(target) and self._offered(drafter)):
            return self._told(self._services.load(target, drafter))
        said = f"Only the models of the list are loaded here. {self.refusal()}"
        return replace(self._services.state(target, drafter), stage="failed", error=said)

    def state(self, target: str, drafter: str) -> PairState:
        return self._told(self._services.state(target, drafter))

    def changed_over(self) -> bool:
        """Whether the settings had another pair before."""
        return bool(self._services.former)

    def better(self) -> BetterTarget | None:
        """The target that is fetched meanwhile; None for visitors, who use the configured one."""
        return self._services.better if self._visitor() is None else None

    # Answers. A visitor's are made in their session and with their line, and count in their quota.

    def chat(self, *, session: str = "api", domain: str | None = None, **options: Any) -> Iterator[Part]:
        """Refused where a quota is used up; a begun answer is finished."""
        visitor = self._visitor()
        if visitor is None:
            return self._services.chat(session=self.caller_name or session, domain=domain, **options)
        self._begin(visitor)
        most = max(LONGEST_ANSWER, self._services.settings.max_new_tokens)
        options["max_new_tokens"] = min(options["max_new_tokens"], most)
        return self._counted(visitor, self._services.chat(session=visitor.own, domain=visitor.own, **options))

    def play(
        self, *, session: str = "api", domain: str | None = None, count: int, **options: Any
    ) -> Iterator[tuple[int, str, Generation]]:
        """Each prompt counts as an answer of the visitor when it begins; playing ends with the quota."""
        visitor = self._visitor()
        if visitor is None:
            name = self.caller_name or session
            yield from self._services.play(session=name, domain=domain, count=count, **options)
            return
        self._begin(visitor)
        played = self._services.play(session=visitor.own, domain=visitor.own, count=count, **options)
        for index, prompt, generation in played:
            left = self.quotas.spend(visitor.name, len(generation.token_ids))
            yield index, prompt, replace(generation, domain=DEFAULT)
            if not left:
                return
            if index + 1 < count:
                self._begin(visitor)

    def repeat(self, *, session: str = "api", domain: str | None = None, **options: Any) -> Iterator[Any]:
        """As `chat` for each answer of a task, until the quota ends."""
        visitor = self._visitor()
        if visitor is None:
            name = self.caller_name or session
            return self._services.repeat(session=name, domain=domain, **options)
        return self._each_counted(visitor, **options)

    def compare(
        self, *, prompts: Sequence[Asked], methods: Sequence[str], max_new_tokens: int, **options: Any
    ) -> Iterator[Comparison]:
        """A visitor compares a few prompts with short answers, which count as one answer, until the quota
        ends."""
        visitor = self._visitor()
        if visitor is not None:
            if sum(len(turns_of(asked)) for asked in prompts) > MOST_PROMPTS:
                raise Refused(f"A comparison takes at most {MOST_PROMPTS} prompts here; choose fewer.")
            self._begin(visitor)
            max_new_tokens = min(max_new_tokens, LONGEST_ANSWER)
            options["domain"] = visitor.own
        for comparison in self._services.compare(
            prompts=prompts, methods=methods, max_new_tokens=max_new_tokens, **options
        ):
            tokens = len(comparison.generation.token_ids)
            left = visitor is None or self.quotas.spend(visitor.name, tokens)
            yield comparison
            if not left:
                return

    def plain(self, **options: Any) -> list[Generation]:
        """For a visitor all runs count as one answer, with the tokens of all."""
        return self._beside(lambda **given: (self._services.plain(**given),), options)[0]

    def fresh_and_today(self, *, domain: str, **options: Any) -> Sequence[list[Generation]]:
        """As `plain`, with the visitor's own line."""
        return self._beside(self._services.fresh_and_today, options | {"domain": self._own(domain)})

    def _beside(
        self, run: Callable[..., Sequence[list[Generation]]], options: dict[str, Any]
    ) -> Sequence[list[Generation]]:
        visitor = self._visitor()
        if visitor is None:
            return run(**options)
        self.quotas.ask(visitor.name)
        options["max_new_tokens"] = min(options["max_new_tokens"], LONGEST_ANSWER)
        made = run(**options)
        for generation in (generation for runs in made for generation in runs):
            self.quotas.spend(visitor.name, len(generation.token_ids))
        return made

    # Where questions went. A visitor sees their own session, and their own line as the default one.

    def following(self, session: str) -> Route | None:
        own = self.own
        route = self._services.following(own or self.caller_name or session)
        return replace(route, domain=DEFAULT) if route and own else route

    def routed(self, session: str) -> Route | None:
        visitor = self._visitor()
        if visitor is None:
            return self._services.routed(self.caller_name or session)
        route = self._services.routed(visitor.own)
        return None if route is None else replace(route, domain=DEFAULT, why=WHY)

    # Adapter lines. Whatever the visitor's page calls the line, it is the visitor's own one.

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        """A visitor's own line; for all others the lines that are no visitor's."""
        own, lines = self.own, self._services.lines(target, drafter)
        if not own:
            return [line for line in lines if not owned(line.domain)]
        return [replace(line, domain=DEFAULT) for line in lines if line.domain == own]

    def trainer(self, target: str, drafter: str, domain: str = DEFAULT) -> TrainerStatus:
        return replace(self._services.trainer(target, drafter, self._own(domain)), domain=domain)

    def drafting(self, target: str, drafter: str, domain: str = DEFAULT) -> Drafting:
        return self._services.drafting(target, drafter, self._own(domain))

    def let_learn(self, target: str, drafter: str, line: str = DEFAULT, *more: Any, **named: Any) -> None:
        self._services.let_learn(target, drafter, self._own(line), *more, **named)

    def pause(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.pause(target, drafter, self._own_changed(domain))

    def resume(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.resume(target, drafter, self._own_changed(domain))

    def reset(self, target: str, drafter: str, domain: str = DEFAULT) -> None:
        self._services.reset(target, drafter, self._own_changed(domain))

    def activate(self, target: str, drafter: str, version: int, domain: str = DEFAULT) -> None:
        self._services.activate(target, drafter, version, self._own_changed(domain))

    def on_disk(self, target: str, drafter: str, domain: str = DEFAULT) -> list[int]:
        return self._services.on_disk(target, drafter, self._own(domain))

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        return self._services.export_adapter(target, drafter, self._own(domain), version)

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
        services.forget_exports(own)
        services.speeds.forget()
        gone = 0
        for session in (own, name):  # `name`: from before the app was public, or as its operator
            services.forget_asked(session)
            gone += services.store.forget_visitor(session)
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
