"""A target and a drafter, ready to generate: the public API's `Pair`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from secrets import token_hex
from time import perf_counter, time
from typing import Any, Literal

import torch
from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.choice import make_backend
from omnidemo.backends.runner import Runner
from omnidemo.config import GenerationConfig
from omnidemo.decoding.backend import Backend, Clock, KVCache
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.cost_model import Knowledge
from omnidemo.decoding.cost_policy import ByCost, Drafting, describe
from omnidemo.decoding.draft_policy import ByHead, Confidence, DraftLength, Fixed, Head, Policy
from omnidemo.decoding.engine import DecodingState, Limits, decode
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import Warp
from omnidemo.decoding.state import TargetContext, common_prefix
from omnidemo.decoding.tracing import Tracer
from omnidemo.methods import Method, make_method
from omnidemo.metrics import measure
from omnidemo.models.chat_template import Speller
from omnidemo.models.load import LanguageModel
from omnidemo.models.map_cache import load_or_build
from omnidemo.records import Agreement, FinishReason, Generation, Prompt, Round, Trace
from omnidemo.store.store import Store
from omnidemo.store.visitor_state import OwnNgrams
from omnidemo.store.visitors import owned
from omnidemo.vocab.ngram_cache import NgramCache

IDLE_CONVERSATIONS = 4  # contexts kept for the next turn of a chat
DOMAIN = "default"
AGREEMENTS = 500  # answers whose agreement is remembered


@dataclass(slots=True, eq=False)
class _Line:
    """What drafts for one domain: the drafter itself, or a copy with the adapter of that domain."""

    runner: Runner
    version: int = 0
    head: Head | None = None
    knowledge: Knowledge = field(default_factory=Knowledge)
    plain_at: float | None = None  # UNIX time of the newest plain round
    published: tuple[int, Mapping[str, Tensor], Mapping[str, Tensor]] | None = None  # waits for the next round


class Pair:
    """A target model and the drafter that guesses ahead for it.

    Shared by everybody who generates with it; all state of one generation is its own. `learners` receive the trace of each
    answer that may be learned from, `round_listeners` every round. New drafter weights (`publish`) are swapped in between two rounds;
    each domain has weights of its own.
    """

    def __init__(
        self,
        target: LanguageModel,
        drafter: LanguageModel,
        *,
        cache_size: int = 20_000,
        cache_policy: Literal["lfu", "lru"] = "lfu",
        top_k: int = 128,
        maps: Path | None = None,
    ) -> None:
        """`maps`: the folder that keeps vocabulary maps; None builds the map anew."""
        self.target, self.drafter = target, drafter
        self._speller: Speller | None = None
        device = target.device
        self.map = load_or_build(target.vocabulary, drafter.vocabulary, target.runner.rows, drafter.runner.rows, device, maps)
        self.ngrams = NgramCache(drafter.runner.rows, cache_size, cache_policy, device)
        self._own = OwnNgrams()
        self.learners: list[Callable[[Trace], object]] = []
        self.round_listeners: list[Callable[[Round], object]] = []
        self.mismatches = 0  # answers after which the drafter's bytes did not spell the target's
        self._methods: dict[str, Method] = {}
        self._lines: dict[str, _Line] = {}
        self._idle: list[DecodingState] = []
        self._turn = threading.Lock()  # held for one round, a swap, or a change of the trie
        self._store: Store | None = None
        self._top_k = top_k
        self._running: list[DecodingState] = []  # those of the generations in flight
        self._agreements: OrderedDict[str, Agreement] = OrderedDict()  # of the newest answers, by key
        self._compiled = compile_kernels.kernels() is not None  # when what things cost was measured
        self.clock: Callable[[], float] = perf_counter  # seconds, by which the stages of rounds are timed
        self.make_backend: Callable[[KVCache, KVCache | None, Clock], Backend | None] = make_backend  # who makes a generation's rounds

    # generating ----------------------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """Generate an answer. The options are those of `stream`."""
        rounds = self.stream(prompt, **options)
        while True:
            try:
                next(rounds)
            except StopIteration as finished:
                generation: Generation = finished.value
                return generation

    def stream(
        self,
        prompt: Prompt,
        *,
        method: str = "ngram-exact",
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        draft_policy: Policy = "fixed",
        draft_length: int = 4,
        longest_draft: int = 14,
        confidence: float = 0.4,
        gamma: float = 0.7,
        domain: str = DOMAIN,
        seed: int | None = None,
        stop: Sequence[str] = (),
        cancelled: Callable[[], bool] = lambda: False,
        learn: bool = True,
        reuse: bool = True,
        probe_every: int = 0,
        note: bool = True,
    ) -> Generator[Round, None, Generation]:
        """Yield one `Round` after another; the generator's value is the finished `Generation`.

        prompt: a text (one user message where the target has a chat template, else the text itself), chat messages, or ids.
        method: a name of `omnidemo.methods.METHODS`, or "auto" for the one that suits the pair. temperature 0 is greedy; the other
        warps are those of `Warp`. draft_policy: "fixed" drafts `draft_length` drafter tokens per round, the others up to `longest_draft`:
        "confidence" while the drafter gives its tokens at least `confidence`, "head" while the acceptance head finds a rejection no
        likelier than `gamma`, "cost" while it pays, and not at all where plain decoding is faster. domain: the adapter line that drafts,
        and that the answer may teach. seed: repeats a run above temperature 0 as long as adapter and n-gram cache are the same (not with
        "cost", which goes by measured times). stop: strings after which the answer ends (they stay in it). learn: whether the answer may
        feed the n-gram cache and the learners. reuse: go on from a conversation that begins like the prompt. probe_every: one in so many
        rounds, several in a row, goes without a draft; from them the speedup of a chat is estimated (0: none; "cost" has its own).
        note: whether the pair takes note of what the rounds took, by which "cost" drafts.
        ValueError, before anything runs, for options or prompts that cannot be served.
        """
        asked = GenerationConfig.of(
            method=method, max_new_tokens=max_new_tokens, temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p,
            repetition_penalty=repetition_penalty, draft_policy=draft_policy, draft_length=draft_length, longest_draft=longest_draft,
            confidence=confidence, gamma=gamma, domain=domain, seed=seed, stop=stop, learn=learn, reuse=reuse, probe_every=probe_every,
        )  # fmt: skip
        chosen = self._method(asked.method)
        warp = Warp(asked.temperature, asked.top_k, asked.top_p, asked.min_p, asked.repetition_penalty)
        domain, seed, learn = asked.domain, asked.seed, asked.learn
        ids = self.prompt_ids(prompt)
        limits = Limits(asked.max_new_tokens, tuple(text for text in asked.stop if text), cancelled)
        began = perf_counter()
        with self._turn:
            line = self._line(domain)
            self._swap(domain, line)
            if self._compiled != (compile_kernels.kernels() is not None):
                self._compiled = not self._compiled
                for one in self._lines.values():
                    one.knowledge.forget_times()
            length = _rule(asked, line)
            talk, ngrams = self._conversation(ids, asked.reuse, domain), self._own.of(domain, self.ngrams)
            self._running.append(talk)
        rounds: list[Round] = []
        tracer = Tracer(self.map, len(ids), self._top_k) if learn and self.learners else None
        version, entries, key = line.version, len(ngrams), token_hex(12)
        first: float | None = None
        reason: FinishReason = "cancelled"
        started = perf_counter()
        try:
            with self._turn:
                talk.start(ids)
            started = perf_counter()
            caches = talk.target.cache, talk.drafter.cache if talk.drafter is not None else None
            backend = self.make_backend(*caches, self.clock)
            steps = decode(talk, chosen, self.map, ngrams, warp, Sampler(seed), limits, length, tracer, self.clock, backend)
            while True:
                with self._turn:
                    self._swap(domain, line)
                    done = next(steps, None)
                    if done is not None and learn:
                        self._remember(done, ngrams)
                    if done is not None and note:
                        self._note(line, done)
                if done is None:
                    break
                first = first if first is not None else perf_counter() - began
                rounds.append(done)
                for listener in self.round_listeners if note else ():
                    listener(done)
                reason = done.finish_reason or reason
                yield done
        finally:
            seconds = perf_counter() - started
            with self._turn:
                self._running = [one for one in self._running if one is not talk]
                self._keep(talk)
                mismatch = float(talk.drafter is not None and not talk.drafter.spells(talk.target.ids))
                self.mismatches += int(mismatch)
                if learn:
                    ngrams.clock += 1
            if tracer is not None and rounds and talk.drafter is not None:
                self._teach(tracer.finish(talk.drafter), temperature=asked.temperature, domain=domain, version=version, key=key)
            self._save()
        drafts = [(done.drafted, done.seconds["total"]) for done in rounds[1:] if done.drafted]
        with self._turn:
            plain = line.knowledge.plain_beside(drafts) if chosen.drafts else None
        return Generation(
            token_ids=tuple(token.id for r in rounds for token in r.tokens),
            text="".join(r.text for r in rounds),
            rounds=tuple(rounds),
            metrics={**measure(rounds, seconds, first, plain), "context_mismatch": mismatch, "plain_at": line.plain_at if plain else None},
            finish_reason=reason,
            method=chosen.name,
            prompt_tokens=len(ids),
            seed=seed,
            adapter_version=version,
            cache_entries=entries,
            domain=domain,
            key=key,
        )

    def record(self, ids: Sequence[int], max_new_tokens: int, cancelled: Callable[[], bool]) -> tuple[tuple[int, ...], Trace] | None:
        """The target's greedy answer to a prompt, given as ids, with its trace; None where `cancelled` said so after a pass.
        Nobody waits for it: it does not count as a generation, leaves nothing behind, and gives way after each pass."""
        talk = DecodingState(TargetContext(self.target.runner.new_cache()), DrafterContext(self.drafter.runner.new_cache(), self.map))
        tracer, rule = Tracer(self.map, len(ids), self._top_k), Unhurried()
        limits = Limits(max_new_tokens)
        with self._turn:
            talk.start(ids)
        steps = decode(talk, self._method("auto"), self.map, self.ngrams, Warp(0.0), Sampler(0), limits, rule, tracer)
        written: list[int] = []
        while not cancelled():
            with self._turn:
                done = next(steps, None)
            if done is None:
                assert talk.drafter is not None
                trace = tracer.finish(talk.drafter)
                if trace is None:
                    raise ValueError(f"the answer of {self.target.name} left no trace to replay")
                return tuple(written), trace
            written += [token.id for token in done.tokens]
        return None

    def agreement(self, answer: Generation) -> Agreement | None:
        """How far drafter and target agreed on an answer, by the version that drafted at its beginning. It is measured where the drafter
        learns, while nobody waits, so it comes *later*: None until then. None for good without storage, with training off, for an answer
        that was not learned from, and for all but the newest answers (the history keeps theirs)."""
        return self._agreements.get(answer.key)

    def note_agreement(self, key: str, found: Agreement) -> None:
        """Keep what was measured of the answer with this key."""
        self._agreements[key] = found
        while len(self._agreements) > AGREEMENTS:
            self._agreements.popitem(last=False)

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        """The target's ids of a prompt; ValueError where it is empty or does not fit the window."""
        if isinstance(prompt, str) and self.target.chat:
            prompt = [{"role": "user", "content": prompt}]
        parts: list[Any] = list(prompt) if isinstance(prompt, Iterable) and not isinstance(prompt, (str, Mapping)) else []
        if isinstance(prompt, str):
            ids = self._spelling().text(prompt)
        elif isinstance(prompt, Mapping) or not isinstance(prompt, Iterable):
            raise ValueError("the prompt is neither a text, nor a list of messages, nor a list of ids")
        elif all(isinstance(part, Integral) for part in parts):
            ids = [int(part) for part in parts]
        elif self.target.chat:
            try:
                ids = self._spelling().messages(parts)
            except ValueError:
                raise
            except Exception as error:  # a template raises what it likes, jinja2's errors among them
                raise ValueError(f"the chat template of {self.target.name} refuses these messages: {error}") from error
        else:
            raise ValueError(f"{self.target.name} has no chat template; give the prompt as a text")
        begin = self.target.vocabulary.roles.get("begin", ())
        ids = ids or list(begin[:1])
        if not ids:
            raise ValueError("the prompt is empty, and this target has no token to begin with; write something")
        if len(ids) >= self.target.context:
            window = self.target.context
            raise ValueError(f"the prompt has {len(ids)} tokens and {self.target.name} reads {window}; shorten it or start a new chat")
        if not 0 <= min(ids) <= max(ids) < self.target.runner.rows:
            raise ValueError(f"prompt ids must lie between 0 and {self.target.runner.rows - 1}")
        return ids

    def _spelling(self) -> Speller:
        if self._speller is None:  # models that were made for measuring have no tokenizer, and are given ids
            self._speller = Speller(self.target.tokenizer, self.target.vocabulary)
        return self._speller

    def warm_up(self) -> None:
        """Run each model once, so that the first answer does not pay for it, and time plain rounds."""
        prompt = self.prompt_ids("Hello")
        for method in ("autoregressive", "ngram-exact"):
            self.generate(prompt, method=method, max_new_tokens=12, learn=False, reuse=False)

    # adapting ------------------------------------------------------------------------------------------------------------

    @property
    def adapter_version(self) -> int:
        """The version that drafts for the default domain; 0 is the base drafter."""
        return self._line(DOMAIN).version

    def drafting(self, domain: str = DOMAIN, policy: Policy = "cost", draft_length: int = 4) -> Drafting:
        """How the pair drafts for a domain now, with a sentence for people."""
        line = self._lines.get(domain) or _Line(self.drafter.runner)  # asking makes none: others ask for ever new ones
        return describe(policy, line.knowledge, line.head is not None, draft_length)

    def drafting_weights(self, domain: str = DOMAIN) -> dict[str, Tensor]:
        """The weights that draft now, the adapter merged; they change in place with the next swap."""
        return self._line(domain).runner.weights()

    def forget(self, domain: str) -> None:
        """Forget how drafting went for a domain, whose drafter begins anew: what rounds cost, and how often guesses were right."""
        with self._turn:
            self._line(domain).knowledge = Knowledge()

    def drop_domain(self, domain: str) -> None:
        """Free what drafts for a domain; the next answer there starts from the base drafter, until something is published."""
        with self._turn:
            self._lines.pop(domain, None)
            self._idle = [talk for talk in self._idle if talk.domain != domain]

    def forget_domain(self, domain: str) -> None:
        """As `drop_domain`, and the domain's own n-grams go."""
        self.drop_domain(domain)
        with self._turn:
            self._own.forget(domain)

    @property
    def busy(self) -> bool:
        """Whether a generation is in flight."""
        return bool(self._running)

    @property
    def in_flight(self) -> int:
        """How many generations are."""
        return len(self._running)

    def publish(self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor] | None = None, domain: str = DOMAIN) -> None:
        """Have these drafter weights (by name; all others go back to the base) and this acceptance head draft for a domain from the
        next round on."""
        self._line(domain).published = (version, weights, head or {})

    def attach(self, store: Store) -> None:
        """Take the n-gram cache from the store, and keep it there from now on."""
        self._store = store
        store.when_renewed(self._save_again)
        with self._turn:
            self.ngrams.load(store.load_ngrams(self.target.name, self.drafter.name))
            for entry in self.ngrams:
                self.map.spelling(entry.target_id)  # compiled code knows of n-grams what was asked

    def remember(self, done: Round, domain: str = DOMAIN) -> None:
        """Feed the domain's n-gram cache with a round of an answer that was not to be learned from."""
        with self._turn:
            self._remember(done, self._own.of(domain, self.ngrams))

    def fill_cache(self) -> int:
        """Warm start: insert every target token that only an n-gram can spell; returns how many there are now."""
        with self._turn:
            for target_id in range(len(self.target.vocabulary)):
                spelled = self.map.ngram(target_id)
                if spelled and len(self.ngrams) < self.ngrams.size:
                    self.ngrams.insert(target_id, spelled)
        self._save()
        return len(self.ngrams)

    def clear_cache(self) -> None:
        with self._turn:
            self.ngrams.clear()
        self._save()

    def summary(self) -> dict[str, Any]:
        """Facts about the pair for people: sizes, the vocabulary map, device and dtype."""
        return {
            **self.map.summary(),
            "target_parameters": self.target.parameters,
            "drafter_parameters": self.drafter.parameters,
            "context": self.target.context,
            "device": str(self.target.device),
            "dtype": str(self.target.dtype).removeprefix("torch."),
        }

    # inside --------------------------------------------------------------------------------------------------------------

    def _method(self, name: str) -> Method:
        """The method of that name. One serves all answers, whose rounds come one at a time: what it has made of map and trie stays."""
        if name not in self._methods:
            self._methods[name] = make_method(name, self.map)
        return self._methods[name]

    def _line(self, domain: str) -> _Line:
        return self._lines.setdefault(domain, _Line(self.drafter.runner))

    def _swap(self, domain: str, line: _Line) -> None:
        """Swap in published weights. What the drafter has read with the old ones is forgotten, in all conversations of the domain."""
        if line.published is None:
            return
        (version, weights, head), line.published = line.published, None
        with torch.inference_mode(False):  # a copy made between two rounds must stay writable outside of them
            if line.runner is self.drafter.runner:
                line.runner = self.drafter.runner.copy()  # the given drafter may serve other pairs, so it never changes
            line.runner.overwrite({**self.drafter.runner.weights(), **weights})
        line.version, line.head = version, _head(head)
        line.knowledge.renew()
        for known in (*self._idle, *self._running):
            if known.drafter is not None and known.domain == domain:
                known.drafter.read_again(line.runner.new_cache())

    def _conversation(self, ids: Sequence[int], reuse: bool, domain: str) -> DecodingState:
        """The idle conversation with the longest common beginning, or a new one."""
        runner = self._line(domain).runner
        # Nobody goes on from a visitor's conversation but that visitor: else the first token's time would tell what others wrote.
        mine = [talk for talk in self._idle if talk.domain == domain or not (owned(domain) or owned(talk.domain))]
        best = max(mine, key=lambda talk: common_prefix(talk.target.ids, ids), default=None)
        # Half of a context in common: below, another chat may want it more.
        if reuse and best is not None and 2 * common_prefix(best.target.ids, ids) >= len(best.target.ids):
            self._idle.remove(best)
            if best.domain != domain and best.drafter is not None:
                best.domain = domain
                best.drafter.read_again(runner.new_cache())
            return best
        return DecodingState(TargetContext(self.target.runner.new_cache()), DrafterContext(runner.new_cache(), self.map), domain)

    def _keep(self, talk: DecodingState) -> None:
        self._idle.append(talk)
        del self._idle[:-IDLE_CONVERSATIONS]

    def _remember(self, done: Round, ngrams: NgramCache) -> None:
        """Feed the n-gram cache: what the round would insert, and which n-grams were proposed and accepted."""
        for target_id, drafter_ids in done.inserts:
            ngrams.insert(target_id, drafter_ids)
        for token in done.tokens:
            if token.source == "ngram":
                ngrams.touch(token.id, True)
        for token in done.discarded:
            if token.source == "ngram" and token.accept is not None:
                ngrams.touch(token.id, False)

    def _note(self, line: _Line, done: Round) -> None:
        """Take the round's times. The first round of an answer also pays for what the prompt left to be read."""
        if done.index == 0:
            line.knowledge.begin(done.drafted, done.seconds["draft"])
        else:
            line.plain_at = line.plain_at if done.draft_length else time()
            took = (done.seconds["draft"], done.seconds["total"])
            line.knowledge.time(done.draft_length, done.drafted, done.proposed, len(done.tokens), *took)

    def _teach(self, trace: Trace | None, **about: Any) -> None:
        if trace is not None:
            trace = replace(trace, **about)
            for learner in self.learners:
                learner(trace)

    def _save_again(self) -> None:
        with self._turn:
            self.ngrams.forget_saved()
        self._save()

    def _save(self) -> None:
        if self._store is not None:
            with self._turn:
                changed, removed = self.ngrams.take_changes()
            if changed or removed:
                self._store.save_ngrams(self.target.name, self.drafter.name, changed, removed)


class Unhurried(Fixed):
    """Nothing is drafted, and each token is a pass of its own, so that whoever waits comes between any two."""

    def __init__(self) -> None:
        super().__init__(0)

    def resting(self) -> int:
        return 0


def _head(weights: Mapping[str, Tensor]) -> Head | None:
    from omnidemo.adapters.acceptance_head import NumpyHead

    return NumpyHead(weights) if weights else None


def _rule(asked: GenerationConfig, line: _Line) -> DraftLength:
    """The rule of one generation."""
    longest, known, probes = asked.longest_draft, line.knowledge, asked.probe_every
    if asked.draft_policy == "fixed":
        return Fixed(asked.draft_length, probes)
    if asked.draft_policy == "confidence":
        return Confidence(longest, known, asked.confidence, probes)
    if asked.draft_policy == "head":
        return ByHead(longest, known, asked.gamma, line.head, probes)
    return ByCost(longest, known)
