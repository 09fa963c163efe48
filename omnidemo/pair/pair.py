"""The public API's `Pair`: a target and a drafter, ready to generate."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from time import perf_counter, time
from typing import Any, Literal

from torch import Tensor

from omnidemo.backends import choice
from omnidemo.backends.choice import make_backend
from omnidemo.backends.runner import Runner
from omnidemo.core.config import GenerationConfig
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Agreement, Generation, Prompt, Reading, Round, Trace, drain
from omnidemo.core.tasks import Task
from omnidemo.decoding.backend import Backend, KVCache
from omnidemo.decoding.constraint import Constraint
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, OnDraft, decode
from omnidemo.decoding.methods import BASELINE, Method, make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.tracing import Tracer
from omnidemo.models.answer_forms import AnswerForms, FormError
from omnidemo.models.load import LanguageModel
from omnidemo.pair.answer import Answer, rounds_alone
from omnidemo.pair.conversation_pool import DOMAIN, Conversations
from omnidemo.pair.copy_memory import CopyMemory
from omnidemo.pair.drafting_line import Drafting, DraftingLine, digest_of
from omnidemo.pair.ngram_memory import NgramMemory, remember
from omnidemo.pair.pair_prices import PairPrices
from omnidemo.pair.prompt_reader import PromptReader, start_in_turns
from omnidemo.pair.repeated_task import Repeated, repeat
from omnidemo.pair.stored_answers import StoredAnswers
from omnidemo.storage.store import Store
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

AGREEMENTS = 500  # answers whose agreement is kept
WARM_UP_SECONDS = 2.0  # after which no further round of a warm-up answer begins


class Pair:
    """A target model and the drafter that guesses ahead for it.

    Many threads may generate at once; each generation has its own state. `learners` get the trace of each
    answer that may be learned from, `round_listeners` every round of answers with `note`. Each domain has its
    own drafting weights; `publish` swaps new ones in between two rounds.
    """

    here = True  # whether this process decodes the answers

    def __init__(
        self, target: LanguageModel, drafter: LanguageModel, *, cache_size: int = 20_000,
        cache_policy: Literal["lfu", "lru"] = "lfu", top_k: int = 128, conversations_mb: int = 1024,
        copy_mb: int = 4,
    ) -> None:  # fmt: skip
        self.target, self.drafter, self._prompts = target, drafter, PromptReader(target)
        self.map = VocabularyMap(
            target.vocabulary, drafter.vocabulary, target.runner.rows, drafter.runner.rows
        )
        self.ngrams = NgramCache(drafter.runner.rows, cache_size, cache_policy)
        self.learners: list[Callable[[Trace], object]] = []
        self.round_listeners: list[Callable[[Round], object]] = []
        self.mismatches = 0  # answers whose bytes the drafter's tokens did not spell
        # One object of each method serves all answers, so that its tables of map and trie are reused.
        self._method: Callable[[str], Method] = cache(partial(make_method, vocabulary=self.map))
        self._lines: dict[str, DraftingLine] = {}
        self._lock = threading.Lock()  # held for one round, a swap, or a change of the trie
        self._memory = NgramMemory(lambda: self.ngrams, self.map, (target.name, drafter.name), self._lock)
        self.phrases: Continuations | None = None  # what the target often writes, to whomever
        self.copies = CopyMemory(copy_mb << 20, self._lock)
        self._top_k = top_k
        self._forms = AnswerForms(self.map.target, target.runner.rows)
        self._conversations = Conversations(target.runner, self.map, conversations_mb << 20)
        self._agreements: OrderedDict[str, Agreement] = OrderedDict()  # of the newest answers, by key
        self.drafter_digest = ""  # of the drafter's weights; set by `PairPool`
        self.prices = PairPrices(target, drafter)
        self.clock: Callable[[], float] = perf_counter  # seconds
        # called once per generation
        self.make_backend: Callable[[KVCache, KVCache], Backend | None] = make_backend

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """Generate an answer. The options are those of `stream`."""
        return drain(self.parts(prompt, **options))

    def stream(self, prompt: Prompt, **options: Any) -> Generator[Round, None, Generation]:
        """Yield one `Round` after another; the generator's value is the finished `Generation`. The options
        are those of `parts`."""
        return (yield from rounds_alone(self.parts(prompt, **options)))

    def parts(
        self, prompt: Prompt, *, cancelled: Callable[[], bool] = lambda: False, note: bool = True,
        begun: Sequence[int] = (), on_draft: OnDraft | None = None, **options: Any,
    ) -> Generator[Reading | Round, None, Generation]:  # fmt: skip
        """As `stream`, with a `Reading` before the first and after each prefill chunk of a long prompt.

        prompt: a text (one user message where the target has a chat template, else the text itself), chat
        messages, or ids. options: those of `omnidemo.core.config.GenerationConfig`, which explains each.
        cancelled: called before each chunk and after each round. note: give the rounds to the
        `CostModel`, the cost table and `round_listeners`. begun: earlier ids of the answer, which is
        continued by up to `max_new_tokens` further ids. on_draft: called with the texts of a round's draft
        before the target checks it; the pair's lock is held. ValueError, before anything runs, for options or
        prompts that cannot be served.
        """
        answer = Answer(self, prompt, self.asked(**options), cancelled, note, begun, on_draft)
        return (yield from answer.write())

    def repeat(
        self, task: Task | str, count: int = 10, *, first: int = 0, order: int = 0, **options: Any
    ) -> Iterator[Repeated]:
        """Answer `count` inputs of a task one after another, on an adapter line of the task's name. Yields
        each answer with its cost, and the cost that it would have had with less learned.

        task: "json", "sql", "cards", "handbook", "commits", or one of your own (`own_task` of
        `omnidemo.core.tasks`).
        first: the input to begin with, by which a run continues another. order: a seed of the order. options:
        those of `stream`; by default temperature 0 without a penalty, and the draft policy "chance".
        ValueError for an unknown task, and as for `stream`. A cancelled answer ends the run and is not
        yielded.
        """
        return repeat(self, task, count, first=first, order=order, **options)

    def asked(self, **options: Any) -> GenerationConfig:
        """`GenerationConfig.of` the options; missing sampling comes from the target's defaults (`Manner`)."""
        return GenerationConfig.of(**options).in_manner(self.target.manner)

    def constraint(self, asked: GenerationConfig) -> Constraint | None:
        """A new constraint of the answer's form; None without one. FormError, a ValueError of one sentence,
        where the form or the method cannot be served. The first one takes about a second."""
        if asked.form is None:
            return None
        if not (method := self._method(asked.method)).lossless:
            raise FormError(f"{method.name} is lossy, and a form needs a lossless method; choose auto")
        return self._forms.constraint(asked.form)

    def record(
        self, ids: Sequence[int], max_new_tokens: int, cancelled: Callable[[], bool]
    ) -> tuple[tuple[int, ...], Trace] | None:
        """The target's greedy answer to a prompt (ids) and its trace; None if `cancelled()` was true before a
        pass. It does not count as a generation, and keeps nothing."""
        state = self._conversations.fresh(self.drafter.runner)
        tracer = Tracer(self.map, len(ids), self._top_k)
        drain(start_in_turns(state, ids, self._lock, cancelled))
        # Without a backend each token is a pass of its own, and other generations get the lock between two.
        plan = AnswerPlan(
            self._method("auto"), self.map, self.ngrams, SamplingParams(0.0), Sampler(0),
            Limits(max_new_tokens), DraftPolicy(0), tracer,
        )  # fmt: skip
        steps, written = decode(state, plan), list[int]()
        while not cancelled():
            with self._lock:
                done = next(steps, None)
            if done is not None:
                written += [token.id for token in done.tokens]
                continue
            trace = tracer.finish(state.drafter)
            if trace is None:
                raise ValueError(f"the answer of {self.target.name} left no trace to replay")
            return tuple(written), trace
        return None

    def agreement(self, answer: Generation) -> Agreement | None:
        """How far drafter and target agreed on an answer, by the version at its beginning. It is measured
        while no request is running, and None until then. It stays None without storage, with training off or
        `learn=False`, and for all but the newest AGREEMENTS answers."""
        return self._agreements.get(answer.key)

    def note_agreement(self, key: str, agreement: Agreement) -> None:
        """Keep the agreement of the answer with this key."""
        self._agreements[key] = agreement
        while len(self._agreements) > AGREEMENTS:
            self._agreements.popitem(last=False)

    def prompt_ids(self, prompt: Prompt, raw: bool = False, control_tokens: bool = False) -> list[int]:
        """As `PromptReader.ids`."""
        return self._prompts.ids(prompt, raw, control_tokens)

    def warm_up(self) -> None:
        """Run each model once, so that the first answer is not slow, and measure prices."""
        prompt = self.prompt_ids("Tell me a short story.")
        for method in (BASELINE, "ngram-exact"):
            until = self.clock() + WARM_UP_SECONDS
            options: dict[str, Any] = {"max_new_tokens": 12, "learn": False, "reuse": False, "note": False}
            self.generate(prompt, cancelled=lambda u=until: self.clock() > u, method=method, **options)
        self.measure_prices()

    def measure_prices(self) -> None:
        """Measure the prices of passes, for at most three seconds, while answers wait."""
        with self._lock:
            self.prices.look()
            self.prices.measure(self.clock, time())

    @property
    def adapter_version(self) -> int:
        """The version that drafts for the default domain; 0 is the base drafter."""
        return self._line(DOMAIN).version

    def swap_due(self, domain: str) -> int:
        """The version that drafts for a domain, after a swap that is due."""
        with self._lock:
            return self._ready_line(domain).version

    def drafting(self, domain: str = DOMAIN, policy: Policy = "cost", draft_length: int = 4) -> Drafting:
        """How the pair drafts for a domain now."""
        line = self._lines.get(domain) or self._new_line()  # not stored, because any name may come
        return line.drafting(policy, draft_length)

    def drafting_weights(self, domain: str = DOMAIN) -> dict[str, Tensor]:
        """The weights that draft now, the adapter merged; they change in place with the next swap."""
        return self._line(domain).runner.weights()

    def forget(self, domain: str) -> None:
        """Reset the `CostModel` of a domain, whose drafter begins anew."""
        with self._lock:
            self._line(domain).cost_model = CostModel(self.prices.list)

    def drop_domain(self, domain: str) -> None:
        """Free the drafting weights of a domain; the base drafter drafts until the next `publish`."""
        with self._lock:
            self._lines.pop(domain, None)
            self._conversations.drop(domain)

    def forget_domain(self, domain: str) -> None:
        """As `drop_domain`, with the domain's own n-grams and earlier answers."""
        self.drop_domain(domain)
        self.copies.forget(domain)
        with self._lock:
            self._memory.forget(domain)

    @property
    def in_flight(self) -> int:
        """How many generations are running."""
        return len(self._conversations.running)

    def publish(
        self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor] | None = None,
        domain: str = DOMAIN,
    ) -> None:  # fmt: skip
        """Draft for a domain with these weights (by name; all others are the base's) and this acceptance
        head, from the next round on."""
        digest = digest_of(weights, head or {})
        self._line(domain).published = (version, weights, head or {}, digest)

    def take_target(self, runner: Runner, nbytes: int) -> None:
        """Use another runner of the target, of `nbytes`, and drop idle conversations. Running answers end
        with the runner, or the passes, with which they began."""
        with self._lock:
            self.target = replace(self.target, runner=runner, memory_bytes=nbytes, packs=None)
            self.prices.target = self.target
            self._conversations.change(runner)

    def attach(self, store: Store) -> None:
        """Restore the n-gram cache from the store and keep it there. Answers may copy from stored ones,
        too."""
        self._memory.attach(store)
        names, busy = (self.target.name, self.drafter.name), lambda: self.in_flight > 0
        self.copies.restore = StoredAnswers(
            self.copies, store, names, self.prompt_ids, self.target.vocabulary, busy
        ).ask

    def remember(self, done: Round, domain: str = DOMAIN) -> None:
        """Feed the domain's n-gram cache with a round of an answer with learn=False."""
        with self._lock:
            remember(self._memory.of(domain), done)

    def know(
        self, domain: str, ngrams: Iterable[tuple[int, Sequence[int]]], answers: Sequence[Sequence[int]]
    ) -> None:
        """Add n-grams, (target id, drafter ids), to those of a domain, and put answers (target ids), the
        oldest first, before its own."""
        self._memory.add(domain, ngrams)
        self.copies.begin_with(domain, answers)

    def fill_cache(self) -> int:
        """As `NgramMemory.fill`, for a warm start."""
        return self._memory.fill()

    def clear_cache(self) -> None:
        """Delete the shared n-grams, in the store too."""
        self._memory.clear()

    def summary(self) -> dict[str, Any]:
        """Facts about the pair for people: sizes, the vocabulary map, device and dtype."""
        return {
            **self.map.summary(),
            **choice.described(target=self.target.runner, drafter=self.drafter.runner),
            "target_parameters": self.target.parameters,
            "drafter_parameters": self.drafter.parameters,
            "context": self.target.context,
            "device": str(self.target.device),
            "dtype": str(self.target.dtype).removeprefix("torch."),
        }

    def _line(self, domain: str) -> DraftingLine:
        return self._lines.get(domain) or self._lines.setdefault(domain, self._new_line())

    def _new_line(self) -> DraftingLine:
        return DraftingLine(self.drafter.runner, cost_model=CostModel(self.prices.list))

    def _ready_line(self, domain: str) -> DraftingLine:
        """The line of a domain after a due swap. The lock is held."""
        line = self._line(domain)
        self._swap(domain, line)
        self.prices.look()
        return line

    def _guesses(self, asked: GenerationConfig, line: DraftingLine, ngrams: NgramCache) -> str:
        """See `Generation.guesses`. It takes constant time. The lock is held."""
        copies = self.copies.digest(asked.domain) if asked.copying and (asked.learn or asked.recall) else ""
        phrases = str(self.phrases.contexts) if asked.copying and self.phrases is not None else ""
        parts = {
            "drafter": self.drafter_digest[:8], "": line.adapter,
            "ngrams": f"{len(ngrams)}-{ngrams.digest}" if len(ngrams) else "0", "copies": copies,
            "phrases": phrases,
        }  # fmt: skip
        told = [f"{name}-{what}" if name else what for name, what in parts.items() if what]
        return ".".join([*told, asked.drafting])

    def _swap(self, domain: str, line: DraftingLine) -> None:
        """Swap in published weights, and reset the drafter's contexts in the conversations of the domain."""
        if line.swap(self.drafter.runner):
            self._conversations.read_again(domain, line.runner)
