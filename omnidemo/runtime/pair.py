"""A target and a drafter, ready to generate: the public API's `Pair`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor

from omnidemo.core.contexts import DrafterContext, TargetContext, common_prefix
from omnidemo.core.metrics import measure
from omnidemo.core.ngrams import NgramCache
from omnidemo.core.sampling import Sampler, Warp
from omnidemo.core.tracing import Tracer
from omnidemo.engine import Conversation, Limits, decode
from omnidemo.methods import make_method
from omnidemo.records import FinishReason, Generation, Prompt, Round, Trace
from omnidemo.runtime.maps import load_or_build
from omnidemo.runtime.models import LanguageModel
from omnidemo.runtime.store import Store

IDLE_CONVERSATIONS = 4  # contexts kept for the next turn of a chat
PLAIN_ROUNDS = 15  # newest rounds without a draft, whose median is the time of a plain round


class Pair:
    """A target model and the drafter that guesses ahead for it.

    Shared by everybody who generates with it; all state of one generation is its own. `learners` receive the trace of each
    answer that may be learned from. New drafter weights (`publish`) are swapped in between two rounds.
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
        device = target.device
        self.map = load_or_build(target.vocabulary, drafter.vocabulary, target.runner.rows, drafter.runner.rows, device, maps)
        self.ngrams = NgramCache(drafter.runner.rows, cache_size, cache_policy, device)
        self.learners: list[Callable[[Trace], object]] = []
        self.adapter_version = 0
        self._plain: deque[float] = deque(maxlen=PLAIN_ROUNDS)
        self.mismatches = 0  # answers after which the drafter's bytes did not spell the target's
        self._runner = drafter.runner  # what drafts: the drafter itself, or the pair's own copy once there are adapters
        self._idle: list[Conversation] = []
        self._turn = threading.Lock()  # held for one round, a swap, or a change of the trie
        self._published: tuple[int, Mapping[str, Tensor]] | None = None
        self._store: Store | None = None
        self._top_k = top_k
        self._in_flight = 0

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
        draft_length: int = 4,
        seed: int | None = None,
        stop: Sequence[str] = (),
        cancelled: Callable[[], bool] = lambda: False,
        learn: bool = True,
        reuse: bool = True,
        probe_every: int = 0,
    ) -> Generator[Round, None, Generation]:
        """Yield one `Round` after another; the generator's value is the finished `Generation`.

        prompt: a text (one user message where the target has a chat template, else the text itself), chat messages, or ids.
        method: a name of `omnidemo.methods.METHODS`, or "auto" for the one that suits the pair. temperature 0 is greedy; the other
        warps are those of `Warp`. draft_length: drafter tokens per round. seed: repeats a run above temperature 0 as long as the
        adapter and the n-gram cache are the same. stop: strings after which the answer ends (they stay in it). learn: whether the
        answer may feed the n-gram cache and the learners. reuse: go on from a conversation that begins like the prompt.
        probe_every: every so many rounds one without a draft, from which the speedup of this chat is estimated (0: none).
        ValueError, before anything runs, for options or prompts that cannot be served.
        """
        chosen, warp = make_method(method, self.map), Warp(temperature, top_k, top_p, min_p, repetition_penalty)
        if max_new_tokens < 1 or draft_length < 0:
            raise ValueError("max_new_tokens must be at least 1 and draft_length at least 0")
        ids = self.prompt_ids(prompt)
        limits = Limits(max_new_tokens, tuple(s for s in stop if s), cancelled)

        def budget(index: int) -> int:
            return 0 if probe_every and index % probe_every == probe_every - 1 else draft_length

        began = perf_counter()
        with self._turn:
            self._swap()
            talk = self._conversation(ids, reuse)
            self._in_flight += 1
        rounds: list[Round] = []
        tracer = Tracer(self.map, len(ids), self._top_k) if learn and self.learners else None
        version, entries = self.adapter_version, len(self.ngrams)
        first: float | None = None
        reason: FinishReason = "cancelled"
        started = perf_counter()
        try:
            with self._turn, torch.inference_mode():
                talk.start(ids)
            started = perf_counter()
            steps = decode(talk, chosen, self.map, self.ngrams, warp, Sampler(seed, self.target.device), limits, budget, tracer)
            while True:
                with self._turn, torch.inference_mode():
                    self._swap(talk)
                    done = next(steps, None)
                    if done is not None and learn:
                        self._remember(done)
                if done is None:
                    break
                first = first if first is not None else perf_counter() - began
                rounds.append(done)
                self._time_plain(done)
                reason = done.finish_reason or reason
                yield done
        finally:
            seconds = perf_counter() - started
            with self._turn:
                self._in_flight -= 1
                self._keep(talk)
                mismatch = float(talk.drafter is not None and not talk.drafter.spells(talk.target.ids))
                self.mismatches += int(mismatch)
                if learn:
                    self.ngrams.clock += 1
            if tracer is not None and rounds and talk.drafter is not None:
                self._teach(tracer.finish(talk.drafter))
            self._save()
        return Generation(
            token_ids=tuple(token.id for r in rounds for token in r.tokens),
            text="".join(r.text for r in rounds),
            rounds=tuple(rounds),
            metrics={**measure(rounds, seconds, first, self.plain_seconds if chosen.drafts else None), "context_mismatch": mismatch},
            finish_reason=reason,
            method=chosen.name,
            prompt_tokens=len(ids),
            seed=seed,
            adapter_version=version,
            cache_entries=entries,
        )

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        """The target's ids of a prompt; ValueError where it is empty or does not fit the window."""
        tokenizer = self.target.tokenizer
        if isinstance(prompt, str) and self.target.chat:
            prompt = [{"role": "user", "content": prompt}]
        if isinstance(prompt, str):
            ids = list(tokenizer(prompt)["input_ids"])
        elif all(isinstance(part, int) for part in prompt):
            ids = [int(part) for part in prompt]  # type: ignore[arg-type]
        elif self.target.chat:
            try:
                ids = list(tokenizer.apply_chat_template(list(prompt), add_generation_prompt=True, tokenize=True, return_dict=False))
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

    def warm_up(self) -> None:
        """Run each model once, so that the first answer does not pay for it, and time plain rounds."""
        prompt = self.prompt_ids("Hello")
        for method in ("autoregressive", "ngram-exact"):
            self.generate(prompt, method=method, max_new_tokens=12, learn=False, reuse=False)

    # adapting ------------------------------------------------------------------------------------------------------------

    @property
    def plain_seconds(self) -> float | None:
        """Seconds of one round without a draft: the median of the newest ones, measured on the way."""
        return median(self._plain) if self._plain else None

    def drafting_weights(self) -> dict[str, Tensor]:
        """The weights that draft now, the adapter merged; they change in place with the next swap."""
        return self._runner.weights()

    @property
    def busy(self) -> bool:
        """Whether a generation is in flight."""
        return self._in_flight > 0

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Have these drafter weights (by name; all others go back to the base) swapped in before the next round."""
        self._published = (version, weights)

    def attach(self, store: Store) -> None:
        """Take the n-gram cache from the store, and keep it there from now on."""
        self._store = store
        with self._turn:
            self.ngrams.load(store.load_ngrams(self.target.name, self.drafter.name))

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

    def _swap(self, talk: Conversation | None = None) -> None:
        """Swap in published weights. What the drafter has read with the old ones is forgotten."""
        if self._published is None:
            return
        (version, weights), self._published = self._published, None
        with torch.inference_mode(False):  # a copy made between two rounds must stay writable outside of them
            if self._runner is self.drafter.runner:
                self._runner = self.drafter.runner.copy()  # the given drafter may serve other pairs, so it never changes
            self._runner.overwrite({**self.drafter.runner.weights(), **weights})
        self.adapter_version = version
        for known in [*self._idle, *([talk] if talk else [])]:
            if known.drafter is not None:
                known.drafter.read_again(self._runner.new_cache())

    def _conversation(self, ids: Sequence[int], reuse: bool) -> Conversation:
        """The idle conversation with the longest common beginning, or a new one."""
        best = max(self._idle, key=lambda talk: common_prefix(talk.target.ids, ids), default=None)
        # Half of a context in common: below, another chat may want it more.
        if reuse and best is not None and 2 * common_prefix(best.target.ids, ids) >= len(best.target.ids):
            self._idle.remove(best)
            return best
        drafter = DrafterContext(self._runner.new_cache(), self.map)
        return Conversation(TargetContext(self.target.runner.new_cache()), drafter)

    def _keep(self, talk: Conversation) -> None:
        self._idle.append(talk)
        del self._idle[:-IDLE_CONVERSATIONS]

    def _remember(self, done: Round) -> None:
        """Feed the n-gram cache: what the round would insert, and which n-grams were proposed and accepted."""
        for target_id, drafter_ids in done.inserts:
            self.ngrams.insert(target_id, drafter_ids)
        for token in done.tokens:
            if token.source == "ngram":
                self.ngrams.touch(token.id, True)
        for token in done.discarded:
            if token.source == "ngram" and token.accept is not None:
                self.ngrams.touch(token.id, False)

    def _time_plain(self, done: Round) -> None:
        if done.draft_length == 0 and done.index > 0:
            self._plain.append(sum(done.seconds.values()))

    def _teach(self, trace: Trace | None) -> None:
        if trace is not None:
            for learner in self.learners:
                learner(trace)

    def _save(self) -> None:
        if self._store is not None:
            with self._turn:
                changed, removed = self.ngrams.take_changes()
            if changed or removed:
                self._store.save_ngrams(self.target.name, self.drafter.name, changed, removed)
