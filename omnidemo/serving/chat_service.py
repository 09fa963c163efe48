"""Answers for page, endpoint and MCP tools: chats and comparisons."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal

from omnidemo.core.config import GenerationConfig, shown_by
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.metrics import measure
from omnidemo.core.records import Generation, Part, Prompt, Reading, Round
from omnidemo.decoding.methods import make_method
from omnidemo.learning.lines.line_names import AUTO
from omnidemo.learning.lines.router import DEFAULT, Route
from omnidemo.models.catalogue import reading
from omnidemo.models.chat_template import plain_messages
from omnidemo.pair.pair import Pair
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.answers.listening import listen
from omnidemo.serving.comparison import Asked, Comparison, compare, race
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.speed import Speeds
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.tables import utc

LEARN_SECONDS = 8.0  # longest pause between two answers of a task
COMMIT_SECONDS = 15.0  # longest wait for the row of an answer, which takes milliseconds
STOP_SECONDS = 1.0  # the same for a stopped answer: the page gives up a stop after three seconds
NOTED = tuple(shown_by("history"))
PACE_ANSWERS = 5  # newest answers whose median is a target's pace
PACE_TOKENS = 16  # least tokens of such an answer
Kind = Literal["chat", "traffic", "api"]


@dataclass(slots=True)
class _Request:
    """A request while it is answered. `domain`: the requested line. `options`: first the requested ones, then
    those of the answer."""

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
    on_draft: Callable[[list[str]], object] | None = None
    created: str = field(default_factory=utc)
    began: float = field(default_factory=time.perf_counter)
    page_closed: threading.Event = field(default_factory=threading.Event)

    @property
    def prompt(self) -> str:
        return str(self.messages[-1]["content"]) if self.messages else ""

    def cancelled(self) -> bool:
        return any(one is not None and one.is_set() for one in (self.page_closed, self.cancel, self.ending))


class ChatService:
    """Generates with the pairs of a pool. Thread-safe."""

    def __init__(self, pool: PairPool, adaptation: AdaptationService, store: Store, speeds: Speeds) -> None:
        self._pool, self._adaptation, self._store, self._speeds = pool, adaptation, store, speeds
        self._paces: dict[str, deque[float]] = {}  # by target: tokens a second of its newest answers

    def pace_of(self, target: str) -> float | None:
        """Median tokens/s of a target's newest PACE_ANSWERS answers; None for fewer."""
        paces = list(self._paces.get(self._pool.known(target), ()))
        return median(paces) if len(paces) == PACE_ANSWERS else None

    def chat(
        self, *, session: str, target: str, drafter: str, messages: Sequence[Mapping[str, str]],
        raw: bool = False, control_tokens: bool = False, keep: bool = True,
        cancel: threading.Event | None = None, kind: Kind = "chat", domain: str | None = None,
        watch: Callable[[Pair, GenerationConfig, Prompt], object] | None = None,
        on_draft: Callable[[list[str]], object] | None = None,
        **options: Any,
    ) -> Iterator[Part]:  # fmt: skip
        """Yield a `Reading` for each piece of a long prompt, then the rounds, then the `Generation`, of a
        cancelled answer too. RuntimeError or ValueError, one sentence, where it cannot start.

        options: those of `GenerationConfig`. Missing options of DRAFTING come from the settings, missing
        options of SAMPLING from the target's defaults (`Manner`), and a missing seed is drawn.
        keep: record the request (the option `learn`: learn from it).
        domain: the adapter line that drafts and learns; None: that of the settings; "auto": by the prompt.
        messages: shortened to what the catalogue says the target was made for, with the catalogue's system
        prompt where they have none (`newest`).
        raw: continue the text of the last message without a chat template. control_tokens: names of control
        tokens in that text are read as control tokens.
        watch: called just before the answer. on_draft: as in `Pair.parts`; other processes call nothing.
        """
        usual = self._pool.settings.drafting
        options |= {name: value for name, value in usual.items() if options.get(name) is None}
        asked = GenerationConfig.of(**options)  # raises before anything is done
        messages = plain_messages(messages)
        ending = self._pool.ending
        request = _Request(
            session, target, drafter, messages, keep, kind, domain, asked, cancel, ending, watch, on_draft
        )
        self._speeds.hold()
        with self._pool.using(target, drafter) as (pair, lines):
            request.options = asked = asked.in_manner(pair.target.manner).seeded()
            route = self._adaptation.choose(lines, domain, messages)
            if request.cancelled():  # before it began: there is nothing to record
                name, none = make_method(asked.method, pair.map).name, measure((), None)
                yield Generation((), "", (), none, "cancelled", name, 0, asked.seed, domain=route.domain)
                return
            # Now, so that the end of the answer waits for one write instead of two.
            self._store.start_session(session, keep=keep, learn=asked.learn)
            with lines.using(route.domain):
                yield from self._answer(pair, request, route, raw, control_tokens)
                if asked.learn:
                    lines.run_pending(route.domain)

    def _answer(
        self, pair: Pair, request: _Request, route: Route, raw: bool, control_tokens: bool
    ) -> Iterator[Part]:
        messages, most = request.messages, request.options.max_new_tokens
        window = None if raw else newest(pair, messages, reading(pair.target.name), most, request.cancelled)
        remember = request.keep and self._pool.settings.keep_text
        changes = {"domain": route.domain, "remember": remember}
        request.options = request.options.model_copy(update=changes)
        before = self._speeds.before(pair, route.domain) if request.kind == "chat" else None
        read = pair.prompt_ids(request.prompt, raw, control_tokens) if window is None else window.messages

        def finish(generation: Generation) -> None:
            if not generation.token_ids and generation.finish_reason == "cancelled":
                return  # it was stopped while the prompt was read: there is nothing to record
            if request.options.learn and self._chosen(request.domain) not in (AUTO, DEFAULT):
                self._adaptation.teach(request.prompt, route.domain)
            if request.keep:
                self._record(pair, request, route, generation)
            pace = generation.metrics["tokens_per_second"]
            if pace is not None and len(generation.token_ids) >= PACE_TOKENS:
                self._paces.setdefault(pair.target.name, deque(maxlen=PACE_ANSWERS)).append(pace)
            if request.kind == "chat":
                names = request.target, request.drafter
                self._speeds.add(*names, read, request.options, before, generation)

        parts, dropped = self._written(pair, request, read, route), window.dropped if window else 0
        yield from listen(parts, request.page_closed, finish, request.began, dropped)

    def _written(
        self, pair: Pair, request: _Request, read: Prompt, route: Route
    ) -> Generator[Reading | Round, None, Generation]:
        """The pair's answer, with its conditions and its topic."""
        names = request.target, request.drafter
        before = self._pool.conditions(*names)
        if request.watch is not None:
            request.watch(pair, request.options, read)
        told: dict[str, Any] = {"on_draft": request.on_draft} if pair.here and request.on_draft else {}
        made = yield from pair.parts(read, cancelled=request.cancelled, **told, **dict(request.options))
        after = self._pool.conditions(*names)  # they change where the kernels were compiled meanwhile
        conditions = before if after == before else f"{before}-then-{after}"
        return replace(made, conditions=conditions, topic=route.topic, topic_why=route.topic_why)

    def let_learn(self, target: str, drafter: str, domain: str, *, longest: float = LEARN_SECONDS) -> None:
        """Wait between two requests while a due update runs and its effect is measured, for at most `longest`
        seconds."""
        until = time.monotonic() + longest
        while time.monotonic() < until:
            status = self._adaptation.trainer(target, drafter, domain)
            learns = status.state == "training" or (
                status.state in ("waiting", "idle") and not status.next_in
            )
            if not learns:
                return
            time.sleep(0.05)

    def compare(
        self, *, target: str, drafter: str, prompts: Sequence[Asked], methods: Sequence[str],
        max_new_tokens: int, temperature: float, draft_length: int | None = None, seed: int | None = 0,
        cancel: threading.Event | None = None, domain: str | None = None, runs: int = 1,
        seconds: float = math.inf, draft_policy: Policy | None = None, **sampling: float | None,
    ) -> Iterator[Comparison]:  # fmt: skip
        """Each method on each prompt, in turns; `runs` and `seconds` as in `comparison.compare`. domain: the
        adapter line that drafts; None: that of the settings, "default" for "auto". draft_length: a fixed one;
        None: `draft_policy` decides, by default that of the settings. sampling: further options of SAMPLING;
        missing ones come from the target's defaults (`Manner`)."""
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

    def race(
        self, *, target: str, drafter: str, messages: Sequence[Mapping[str, str]], methods: Sequence[str],
        seconds: float, max_new_tokens: int, domain: str | None = None, **options: Any,
    ) -> list[list[Generation]]:  # fmt: skip
        """The runs of each method on a chat, shortened as `chat` does, by `comparison.race`. domain: the
        adapter line that drafts; None: no method does. Missing options of SAMPLING come from the target's
        defaults (`Manner`). RuntimeError or ValueError, one sentence, where it cannot be made."""
        with self._pool.using(target, drafter) as (pair, lines):
            if domain is not None and domain not in lines.names():  # a race must not create one
                raise ValueError(
                    "There is no answer of this line yet, so there is nothing to compare. Let it answer"
                    " first."
                )
            prompt = newest(pair, messages, reading(pair.target.name), max_new_tokens).messages
            options |= {"max_new_tokens": max_new_tokens, "domain": domain or DEFAULT}
            with lines.using(options["domain"]):
                return race(pair, prompt, methods, seconds, **options)

    def _chosen(self, domain: str | None) -> str:
        return self._pool.settings.domain if domain is None else domain

    def _record(self, pair: Pair, request: _Request, route: Route, made: Generation) -> None:
        """Put a request into the history. The reason of its route quotes the prompt, so both are kept or
        neither."""
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
        # An answer that was shown to its end is in the history even if the process is killed now. A failing
        # database is not waited for. Nor is any after the page was closed: then this is the event loop's
        # thread.
        if self._store.status.ok and not request.page_closed.is_set():
            longest = STOP_SECONDS if made.finish_reason == "cancelled" else COMMIT_SECONDS
            self._store.flush(longest, while_ok=True)
