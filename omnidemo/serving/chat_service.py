"""Answers for page, endpoint and MCP tools: chats that are recorded and learned from, played traffic,
comparisons."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import median
from typing import Any, Literal

from omnidemo.core.config import GenerationConfig, shown_by
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.metrics import measure
from omnidemo.core.records import Generation, Part, Prompt, Reading, Round
from omnidemo.decoding.methods import make_method
from omnidemo.learning.lines import sample_prompts
from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT, Route
from omnidemo.learning.lines.session_routes import SessionRoutes
from omnidemo.models.catalogue import reading
from omnidemo.models.chat_template import check_messages
from omnidemo.pair.pair import Pair
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.answers.listening import listen
from omnidemo.serving.comparison import Asked, Comparison, compare
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.speed import Speeds
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import TRAFFIC

LEARN_SECONDS = 8.0  # longest pause between two requests of played traffic
# longest wait for a row at the end of an answer: it takes milliseconds, and a lock is reported after five
# seconds
COMMIT_SECONDS = 15.0
STOP_SECONDS = 1.0  # the same for one that was stopped: the page gives a stop up after three
NOTED = tuple(shown_by("history"))
PACE_ANSWERS, PACE_TOKENS = (
    5,
    16,
)  # newest answers that a target's pace is taken from, and the least tokens of one
Kind = Literal["chat", "traffic", "api"]


@dataclass(slots=True)
class _Request:
    """A request while it is answered. `domain`: the line that was asked for; `options` become those that the
    answer is made with."""

    session: str
    target: str
    drafter: str
    messages: Sequence[Mapping[str, str]]
    keep: bool
    kind: Kind
    domain: str | None
    options: GenerationConfig
    cancel: threading.Event | None
    ending: threading.Event
    watch: Callable[[Pair, GenerationConfig, Prompt], object] | None = None
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    began: float = field(default_factory=time.perf_counter)
    page_closed: threading.Event = field(default_factory=threading.Event)

    @property
    def prompt(self) -> str:
        return str(self.messages[-1]["content"]) if self.messages else ""

    def cancelled(self) -> bool:
        return any(one is not None and one.is_set() for one in (self.page_closed, self.cancel, self.ending))


class ChatService:
    """Generates with the pairs of a pool. All methods may be called from any thread."""

    def __init__(self, pool: PairPool, adaptation: AdaptationService, store: Store, speeds: Speeds) -> None:
        self._pool, self._adaptation, self._store, self._speeds = pool, adaptation, store, speeds
        self._routes = SessionRoutes()
        self._paces: dict[str, deque[float]] = {}  # by target: tokens a second of its newest answers

    def pace_of(self, target: str) -> float | None:
        """Tokens a second of a target's newest answers, the median; None where there are too few."""
        paces = list(self._paces.get(self._pool.known(target), ()))
        return median(paces) if len(paces) == PACE_ANSWERS else None

    def chat(
        self, *, session: str, target: str, drafter: str, messages: Sequence[Mapping[str, str]],
        raw: bool = False, control_tokens: bool = False, keep: bool = True,
        cancel: threading.Event | None = None, kind: Kind = "chat", domain: str | None = None,
        topic: str | None = None, watch: Callable[[Pair, GenerationConfig, Prompt], object] | None = None,
        **options: Any,
    ) -> Iterator[Part]:  # fmt: skip
        """Yield how far the prompt is read, where that takes several pieces, then the rounds of an answer and
        at the end its one `Generation`, also when it was cancelled.

        `options` are those of `GenerationConfig`. The request is recorded (unless `keep` is off) and learned
        from (unless `learn` is off). domain: the adapter line that drafts and learns, "auto" to have it
        chosen by the prompt. Where it or an option of DRAFTING is None or missing, the settings' value is
        used. A missing option of SAMPLING is taken from the target's manner, and a missing seed is drawn. The
        session's `routed` says which line it became and why. A target reads as much of the conversation as
        the catalogue says it was made for; where it is `raw`, it goes on from the last message's text,
        without a chat template (with `control_tokens` names of such tokens in it are read as these). topic:
        what the prompt is about, where that is known; else the router labels it. watch: called just before
        the answer begins. RuntimeError or ValueError, one sentence, if it cannot start.
        """
        usual = self._pool.settings.drafting
        options |= {name: value for name, value in usual.items() if options.get(name) is None}
        asked = GenerationConfig.of(**options)  # raises before anything is done
        check_messages(messages, texts=True)
        ending = self._pool.ending
        request = _Request(
            session, target, drafter, messages, keep, kind, domain, asked, cancel, ending, watch
        )
        self._speeds.hold()
        with self._pool.using(target, drafter) as (pair, lines):
            request.options = asked = asked.in_manner(pair.target.manner).seeded()
            route = self._adaptation.choose(lines, domain, messages)
            if topic is not None:
                route = replace(route, topic=topic, topic_why=f"Sample prompts of the topic “{topic}”.")
            self._routes.note(session, route)
            if asked.learn:
                lines.measurer.topic(route.topic, route.domain)
            if request.cancelled():  # while it waited for its turn: there is nothing to record
                name, none = make_method(asked.method, pair.map).name, measure((), None)
                yield Generation((), "", (), none, "cancelled", name, 0, asked.seed, domain=route.domain)
                return
            # Written while the answer is made; its end waits for one write, not for two.
            self._store.start_session(session, keep=keep, learn=asked.learn)
            with lines.using(route.domain):
                yield from self._answer(pair, request, route, raw, control_tokens)
                if asked.learn:
                    lines.run_pending(route.domain)

    def _answer(
        self, pair: Pair, request: _Request, route: Route, raw: bool, control_tokens: bool
    ) -> Iterator[Part]:
        """The answer of the line of a route, recorded at its end."""
        messages, most = request.messages, request.options.max_new_tokens
        window = None if raw else newest(pair, messages, reading(request.target), most, request.cancelled)
        remember = request.keep and self._pool.settings.keep_text
        changes = {"domain": route.domain, "remember": remember}
        request.options = request.options.model_copy(update=changes)
        before = self._speeds.before(pair, route.domain) if request.kind == "chat" else None
        read = pair.prompt_ids(request.prompt, raw, control_tokens) if window is None else window.messages

        def finish(generation: Generation) -> None:
            if not generation.token_ids and generation.finish_reason == "cancelled":
                # it was stopped while the prompt was read: there is nothing to record, as where it waited
                return
            if request.options.learn and self._chosen(request.domain) not in (AUTO, DEFAULT):
                self._adaptation.teach(request.prompt, route.domain)
            if request.keep:
                self._record(pair, request, route, generation)
            pace = generation.metrics["tokens_per_second"]
            if pace is not None and len(generation.token_ids) >= PACE_TOKENS:
                self._paces.setdefault(pair.target.name, deque(maxlen=PACE_ANSWERS)).append(pace)
            names = request.target, request.drafter
            self._speeds.add(*names, read, request.options, before, generation)

        parts, dropped = self._written(pair, request, read), window.dropped if window else 0
        yield from listen(parts, request.page_closed, finish, request.began, dropped)

    def _written(
        self, pair: Pair, request: _Request, read: Prompt
    ) -> Generator[Reading | Round, None, Generation]:
        """The pair's answer, with the conditions that it was made under."""
        names = request.target, request.drafter
        before = self._pool.conditions(*names)
        if request.watch is not None:
            request.watch(pair, request.options, read)
        made = yield from pair.parts(read, cancelled=request.cancelled, **dict(request.options))
        after = self._pool.conditions(*names)  # another one where its passes were compiled within the answer
        return replace(made, conditions=before if after == before else f"{before}-then-{after}")

    def play(
        self, *, session: str, target: str, drafter: str, topic: str, count: int, seed: int = 0,
        learn: bool = True, cancel: threading.Event | None = None, domain: str | None = None,
        **options: Any,
    ) -> Iterator[tuple[int, str, Generation]]:  # fmt: skip
        """Answer `count` sample prompts of a topic, one after another: yields (index, prompt, generation)
        each.

        Where the default line or "auto" drafts, the router learns the topic of each, and with "auto" the
        topic is the line; with another shared line it learns that line's name. `options` are those of `chat`.
        The requests belong to a session of their own: no visitor wrote them, so no opt-out applies to them.
        """
        chosen = self._chosen(domain)
        line = topic if chosen == AUTO else chosen
        options["max_new_tokens"] = options.get("max_new_tokens") or self._pool.settings.max_new_tokens
        for index, prompt in enumerate(sample_prompts.sample(topic, count, seed, "train")):
            if cancel is not None and cancel.is_set():
                return
            # To its end, which gives line and pair back: whoever plays may stay away for good after any
            # prompt.
            *_, made = self.chat(
                session=f"{session}{TRAFFIC}",
                target=target,
                drafter=drafter,
                messages=[{"role": "user", "content": prompt}],
                learn=learn, cancel=cancel, kind="traffic", domain=line, topic=topic, **options,
            )  # fmt: skip
            assert isinstance(made, Generation)
            yield index, prompt, made
            if learn and line == DEFAULT:
                self._adaptation.teach(prompt, topic)

    def let_learn(
        self, target: str, drafter: str, line: str, cancel: threading.Event | None = None, topic: str = "",
        longest: float = LEARN_SECONDS,
    ) -> None:  # fmt: skip
        """Pause between two requests of one run while an update that is due runs and its effect is measured;
        `longest`: seconds at most."""
        until = time.monotonic() + longest
        while time.monotonic() < until and not (cancel is not None and cancel.is_set()):
            status = self._adaptation.trainer(target, drafter, line)
            learns = status.state == "training" or (
                status.state in ("waiting", "idle") and not status.next_in
            )
            if not learns and not self._adaptation.measuring(target, drafter, topic):
                return
            time.sleep(0.05)

    def compare(
        self, *, target: str, drafter: str, prompts: Sequence[Asked], methods: Sequence[str],
        max_new_tokens: int, temperature: float, draft_length: int | None = None, seed: int | None = 0,
        cancel: threading.Event | None = None, domain: str | None = None, runs: int = 1,
        seconds: float = math.inf, draft_policy: Policy | None = None, **sampling: float | None,
    ) -> Iterator[Comparison]:  # fmt: skip
        """Each method on each prompt, in turns; `runs` and `seconds` as in `comparison.compare`. The adapter
        line `domain` drafts (None: the settings' line, or `default` where that is chosen by topic). Without a
        `draft_length` the `draft_policy` decides, else that of the settings. `sampling`: the others of
        SAMPLING; what it leaves out is as the target's manner has it."""
        domain = self._chosen(domain)
        domain = DEFAULT if domain == AUTO else domain
        drafting = self._pool.settings.drafting | ({"draft_policy": draft_policy} if draft_policy else {})
        if draft_length is not None:
            drafting |= {"draft_policy": "fixed", "draft_length": draft_length}
        flags = [self._pool.ending, *([] if cancel is None else [cancel])]
        with self._pool.using(target, drafter) as (pair, lines), lines.using(domain):
            yield from compare(
                pair, prompts, methods, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed,
                domain=domain, warm=True, runs=runs, seconds=seconds,
                cancelled=lambda: any(one.is_set() for one in flags),
                **drafting,
                **sampling,
            )  # fmt: skip

    def following(self, session: str) -> Route | None:
        """Line and topic of the session's newest question or played prompt; None where there was none
        lately."""
        return self._routes.newest(session)

    def routed(self, session: str) -> Route | None:
        """The line of a session's newest question, and why; None for a session that asked nothing lately."""
        return self._routes.of(session)

    def forget(self, session: str) -> None:
        self._routes.forget(session)

    def _chosen(self, domain: str | None) -> str:
        return self._pool.settings.domain if domain is None else domain

    def _record(self, pair: Pair, request: _Request, route: Route, made: Generation) -> None:
        """Put a request into the history. The reason of a route quotes the prompt, so it is kept only where
        that is."""
        keep_text, asked = self._pool.settings.keep_text, request.options
        settings = {name: getattr(asked, name) for name in NOTED}
        settings |= {"conditions": made.conditions, "guesses": made.guesses}
        settings |= {"route_confidence": route.confidence}
        settings |= {"route_why": route.why if keep_text else None}
        record = RequestRecord(
            session=request.session, target=pair.target.name, drafter=pair.drafter.name, domain=made.domain,
            method=made.method, prompt=request.prompt if keep_text else None, generation=made,
            settings=settings, created_at=request.created, kind=request.kind,
            cache_entries=len(pair.ngrams), cache_bytes=pair.ngrams.nbytes, topic=route.topic,
            remembered=asked.learn and keep_text and made.finish_reason != "cancelled",
        )  # fmt: skip
        self._store.record_request(record, agreed=True)
        # So that an answer that was shown to its end is in the history even if the process is killed now. A
        # database that is known to fail at the moment is not waited for, nor is any where nobody sees the
        # end: a page that goes is closed by the thread that serves all others.
        if self._store.status.ok and not request.page_closed.is_set():
            longest = STOP_SECONDS if made.finish_reason == "cancelled" else COMMIT_SECONDS
            self._store.flush(longest, while_ok=True)
