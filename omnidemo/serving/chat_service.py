"""Answers for page, endpoint and MCP tools: chats that are recorded and learned from, played traffic,
comparisons."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from omnidemo.config import DRAFTING, GenerationConfig, shown_by
from omnidemo.lines import sample_prompts
from omnidemo.lines.line_names import AUTO
from omnidemo.lines.router import DEFAULT, Route
from omnidemo.methods import make_method
from omnidemo.metrics import measure
from omnidemo.models.catalogue import reading
from omnidemo.models.chat_template import check_messages
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation, RequestRecord, Round
from omnidemo.serving.adaptation_service import AdaptationService
from omnidemo.serving.comparison import Asked, Comparison, compare
from omnidemo.serving.conversation_window import newest
from omnidemo.serving.listening import listen
from omnidemo.serving.pair_pool import PairPool
from omnidemo.serving.speed import Speeds
from omnidemo.store.store import Store
from omnidemo.store.visitors import TRAFFIC, sessions_of

PROBE_EVERY = 12  # one round in so many is plain: from those the pace of plain rounds is known
LEARN_SECONDS = 8.0  # longest pause between two requests of played traffic
# longest wait for a row at the end of an answer: it takes milliseconds, and a lock is reported after five
# seconds
COMMIT_SECONDS = 15.0
STOP_SECONDS = 1.0  # the same for one that was stopped: the page gives a stop up after three
SESSIONS_KNOWN = 256  # sessions whose newest route is remembered
NOTED = tuple(shown_by("history"))
Kind = Literal["chat", "traffic", "api"]


class ChatService:
    """Generates with the pairs of a pool. All methods may be called from any thread."""

    def __init__(self, pool: PairPool, adaptation: AdaptationService, store: Store, speeds: Speeds) -> None:
        self._pool, self._adaptation, self._store, self._speeds = pool, adaptation, store, speeds
        self._routes: OrderedDict[str, Route] = OrderedDict()  # newest of each session
        self._lock = threading.Lock()

    def chat(
        self,
        *,
        session: str,
        target: str,
        drafter: str,
        messages: Sequence[Mapping[str, str]],
        raw: bool = False,
        control_tokens: bool = False,
        keep: bool = True,
        cancel: threading.Event | None = None,
        kind: Kind = "chat",
        domain: str | None = None,
        topic: str | None = None,
        **options: Any,
    ) -> Iterator[Round | Generation]:
        """Yield the rounds of an answer and at the end its one `Generation`, also when it was cancelled.

        `options` are those of `GenerationConfig`. The request is recorded (unless `keep` is off) and learned
        from (unless `learn` is off). domain: the adapter line that drafts and learns, "auto" to have it
        chosen by the prompt. Where it or an option of DRAFTING is None or missing, the settings' value is
        used, for one of SAMPLING that of the target's manner, and for the seed a new one. The session's
        `routed` says which line it became and why. A target reads as much of the conversation as the
        catalogue says it was made for; where it is `raw`, it goes on from the last message's text, without a
        chat template (with `control_tokens` names of such tokens in it are read as these). topic: what the
        prompt is about, where that is known; else the router labels it. RuntimeError or ValueError, one
        sentence, if it cannot start.
        """
        options |= {
            name: getattr(self._pool.settings, name) for name in DRAFTING if options.get(name) is None
        }
        asked = GenerationConfig.of(**options)  # raises before anything is done
        learn = asked.learn
        created, began = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
        page_closed = threading.Event()
        check_messages(messages, texts=True)
        self._speeds.hold()
        prompt = str(messages[-1]["content"]) if messages else ""
        with self._pool.using(target, drafter) as (pair, lines):
            asked = asked.in_manner(pair.target.manner).seeded()
            route = self._adaptation.choose(lines, domain, messages)
            if topic is not None:
                route = replace(route, topic=topic, topic_why=f"Sample prompts of the topic “{topic}”.")
            self._remember(session, route)
            if learn:
                lines.measurer.topic(route.topic, route.domain)

            def finish(generation: Generation) -> None:
                if not generation.token_ids and generation.finish_reason == "cancelled":
                    # it was stopped while the prompt was read: there is nothing to record, as where it waited
                    return
                if learn and self._chosen(domain) not in (AUTO, DEFAULT):
                    self._adaptation.teach(prompt, route.domain)
                if keep:
                    self._record(pair, session, prompt, generation, asked, route, created, kind)
                    # So that an answer that was shown to its end is in the history even if the process is
                    # killed now. A database that is known to fail at the moment is not waited for, nor is any
                    # where nobody sees the end: a page that goes is closed by the thread that serves all
                    # others.
                    if self._store.status.ok and not page_closed.is_set():
                        self._store.flush(
                            STOP_SECONDS if generation.finish_reason == "cancelled" else COMMIT_SECONDS,
                            while_ok=True,
                        )
                self._speeds.add(target, drafter, read, asked, before, generation)

            def cancelled() -> bool:
                return page_closed.is_set() or (cancel is not None and cancel.is_set())

            if cancelled():  # while it waited for its turn: there is nothing to record
                name = make_method(asked.method, pair.map).name
                yield Generation(
                    (), "", (), measure((), 0.0, None), "cancelled", name, 0, asked.seed, domain=route.domain
                )
                return
            # Written while the answer is made; its end waits for one write, not for two.
            self._store.start_session(session, keep=keep, learn=learn)
            with lines.using(route.domain):
                window = (
                    None if raw else newest(pair, messages, reading(target), asked.max_new_tokens, cancelled)
                )
                remember = keep and self._pool.settings.keep_text
                asked = asked.model_copy(
                    update={"domain": route.domain, "probe_every": PROBE_EVERY, "remember": remember}
                )
                before = self._speeds.before(pair, route.domain) if kind == "chat" else None
                read = pair.prompt_ids(prompt, raw, control_tokens) if window is None else window.messages
                rounds = pair.stream(read, cancelled=cancelled, **dict(asked))
                yield from listen(rounds, page_closed, finish, began, window.dropped if window else 0)
                if learn:
                    lines.run_pending(route.domain)

    def play(
        self,
        *,
        session: str,
        target: str,
        drafter: str,
        topic: str,
        count: int,
        seed: int = 0,
        learn: bool = True,
        cancel: threading.Event | None = None,
        domain: str | None = None,
        **options: Any,
    ) -> Iterator[tuple[int, str, Generation]]:
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
                learn=learn,
                cancel=cancel,
                kind="traffic",
                domain=line,
                topic=topic,
                **options,
            )
            assert isinstance(made, Generation)
            yield index, prompt, made
            if learn and line == DEFAULT:
                self._adaptation.teach(prompt, topic)

    def let_learn(
        self, target: str, drafter: str, line: str, cancel: threading.Event | None = None, topic: str = ""
    ) -> None:
        """Pause between two played requests while an update that is due runs and its effect is measured; at
        most LEARN_SECONDS."""
        until = time.monotonic() + LEARN_SECONDS
        while time.monotonic() < until and not (cancel is not None and cancel.is_set()):
            status = self._adaptation.trainer(target, drafter, line)
            learns = status.state == "training" or (
                status.state in ("waiting", "idle") and not status.next_in
            )
            if not learns and not self._adaptation.measuring(target, drafter, topic):
                return
            time.sleep(0.05)

    def compare(
        self,
        *,
        target: str,
        drafter: str,
        prompts: Sequence[Asked],
        methods: Sequence[str],
        max_new_tokens: int,
        temperature: float,
        draft_length: int | None = None,
        seed: int | None = 0,
        cancel: threading.Event | None = None,
        domain: str | None = None,
        runs: int = 1,
        **sampling: float | None,
    ) -> Iterator[Comparison]:
        """Each method on each prompt, interleaved, in so many `runs`, with what an adapter line has learned
        (None: the settings' line, or `default` where that is chosen by topic); see `comparison.compare`.
        Without a `draft_length` drafts are as long as the settings' policy makes them, as in a chat.
        `sampling`: the others of SAMPLING; what it leaves out is as the target's manner has it."""
        domain = self._chosen(domain)
        domain = DEFAULT if domain == AUTO else domain
        drafting: dict[str, Any] = {name: getattr(self._pool.settings, name) for name in DRAFTING}
        if draft_length is not None:
            drafting |= {"draft_policy": "fixed", "draft_length": draft_length}
        with self._pool.using(target, drafter) as (pair, lines), lines.using(domain):
            yield from compare(
                pair,
                prompts,
                methods,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                seed=seed,
                domain=domain,
                warm=True,
                runs=runs,
                cancelled=cancel.is_set if cancel is not None else lambda: False,
                **drafting,
                **sampling,
            )

    def following(self, session: str) -> Route | None:
        """Line and topic of the session's newest question or played prompt; None where there was none
        lately."""
        with self._lock:
            return next(
                (route for known, route in reversed(self._routes.items()) if known in sessions_of(session)),
                None,
            )

    def routed(self, session: str) -> Route | None:
        """The line of a session's newest question, and why; None for a session that asked nothing lately."""
        return self._routes.get(session)

    def forget(self, session: str) -> None:
        """Forget a session's newest routes: their reasons quote its prompts."""
        with self._lock:
            for known in sessions_of(session):
                self._routes.pop(known, None)

    def _chosen(self, domain: str | None) -> str:
        return self._pool.settings.domain if domain is None else domain

    def _remember(self, session: str, route: Route) -> None:
        with self._lock:
            self._routes[session] = route
            self._routes.move_to_end(session)
            while len(self._routes) > SESSIONS_KNOWN:
                self._routes.popitem(last=False)

    def _record(
        self,
        pair: Pair,
        session: str,
        prompt: str,
        made: Generation,
        asked: GenerationConfig,
        route: Route,
        created: str,
        kind: Kind,
    ) -> None:
        """Put a request into the history. The reason of a route quotes the prompt, so it is kept only where
        that is."""
        keep_text = self._pool.settings.keep_text
        settings = {name: getattr(asked, name) for name in NOTED}
        settings |= {"route_confidence": route.confidence, "route_why": route.why if keep_text else None}
        self._store.record_request(
            RequestRecord(
                session=session,
                target=pair.target.name,
                drafter=pair.drafter.name,
                domain=made.domain,
                method=made.method,
                prompt=prompt if keep_text else None,
                generation=made,
                settings=settings,
                created_at=created,
                kind=kind,
                cache_entries=len(pair.ngrams),
                cache_bytes=pair.ngrams.nbytes,
                topic=route.topic,
                remembered=asked.learn and keep_text and made.finish_reason != "cancelled",
            ),
            agreed=True,
        )
