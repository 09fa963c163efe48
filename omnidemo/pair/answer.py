"""One answer of a pair: its beginning, its rounds, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from secrets import token_hex
from time import perf_counter, time
from typing import TYPE_CHECKING

from omnidemo.core.config import GenerationConfig
from omnidemo.core.metrics import measure
from omnidemo.core.records import FinishReason, Generation, Prompt, Reading, Round
from omnidemo.decoding.engine import OnDraft, decode
from omnidemo.decoding.tracing import Tracer
from omnidemo.pair.answer_plan import Earlier, plan_answer
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.prompt_reader import start_in_turns

if TYPE_CHECKING:
    from omnidemo.pair.pair import Pair


class Answer:
    """An answer that begins now, with the arguments of `Pair.parts`. It takes a conversation of the pair,
    which `write` gives back. ValueError for a prompt or method that cannot be served."""

    def __init__(
        self, pair: Pair, prompt: Prompt, asked: GenerationConfig, cancelled: Callable[[], bool], note: bool,
        begun: Sequence[int], on_draft: OnDraft | None = None,
    ) -> None:  # fmt: skip
        self._pair, self._asked, self._cancelled, self._note = pair, asked, cancelled, note
        self._began = perf_counter()
        self._method = pair._method(asked.method)
        self._ids = [*pair.prompt_ids(prompt), *begun]
        pair.constraint(asked)  # reads the vocabulary before the lock is held
        pair.copies.await_stored(asked.domain)
        with pair._lock:
            self._line = pair._ready_line(asked.domain)
            self._state = pair._conversations.take(self._ids, asked.reuse, asked.domain, self._line.runner)
            self._ngrams = pair._memory.of(asked.domain)
            earlier = Earlier(pair.copies.of(asked.domain), pair.copies.known(asked.domain))
            self._plan = plan_answer(
                pair, self._line, asked, self._state, len(self._ids), self._ngrams, earlier, note=note,
                cancelled=cancelled, begun=begun, on_draft=on_draft,
            )  # fmt: skip
            self._guessing = self._line.guessing(asked, self._method)
            self._adapter, self._guesses = self._line.adapter, pair._guesses(asked, self._line, self._ngrams)
        if asked.learn and pair.learners:
            self._plan.tracer = Tracer(pair.map, len(self._ids), pair._top_k)
        self._version, self._entries, self._key = self._line.version, len(self._ngrams), token_hex(12)
        self._rounds: list[Round] = []
        self._reason: FinishReason = "cancelled"

    def write(self) -> Generator[Reading | Round, None, Generation]:
        """Yield a `Reading` for each prefill chunk of a long prompt, then the rounds. The generator's value
        is the `Generation`."""
        pair, asked, line = self._pair, self._asked, self._line
        first: float | None = None
        mismatch = False
        try:
            going = yield from start_in_turns(self._state, self._ids, pair._lock, self._cancelled)
            if self._state.target.free_positions < 1:  # `begun` fills the window
                self._reason = "context"
            steps = decode(self._state, self._plan)
            while going:
                with pair._lock:
                    pair._swap(asked.domain, line)
                    done = next(steps, None)
                    if done is not None and asked.learn:
                        remember(self._ngrams, done)
                    if done is not None and self._note:
                        line.note(done, len(self._state.target.ids), time())
                if done is None:
                    break
                first = first if first is not None else perf_counter() - self._began
                self._rounds.append(done)
                for listener in pair.round_listeners if self._note else ():
                    listener(done)
                self._reason = done.finish_reason or self._reason
                yield done
        finally:
            mismatch = self._leave()
        return self._generation(first, mismatch)

    def _leave(self) -> bool:
        """Give the conversation back, and the trace to the learners. Returns whether the drafter's bytes
        differ from the target's."""
        pair, asked, trace = self._pair, self._asked, None
        try:
            if self._plan.tracer is not None and self._rounds:
                # before another answer may continue this conversation
                trace = self._plan.tracer.finish(self._state.drafter)
        finally:
            with pair._lock:
                pair._conversations.give_back(self._state)
                mismatch = not self._state.drafter.spells(self._state.target.ids)
                pair.mismatches += int(mismatch)
                self._ngrams.clock += int(asked.learn)
                if asked.learn and asked.remember and self._reason != "cancelled":
                    pair.copies.add(asked.domain, self._ids, self._written())
        if trace is not None:
            trace = replace(
                trace, temperature=self._plan.sampling.temperature, domain=asked.domain,
                version=self._version, key=self._key,
            )  # fmt: skip
            for learner in pair.learners:
                learner(trace)
        pair._memory.save()
        with pair._lock:
            pair.prices.keep_now_and_then()
        return mismatch

    def _written(self) -> list[int]:
        return [token.id for done in self._rounds for token in done.tokens]

    def _generation(self, first: float | None, mismatch: bool) -> Generation:
        pair, asked, line = self._pair, self._asked, self._line
        metrics = {**measure(self._rounds, first), "context_mismatch": float(mismatch)}
        return Generation(
            token_ids=tuple(self._written()), text="".join(done.text for done in self._rounds),
            rounds=tuple(self._rounds), metrics=metrics, finish_reason=self._reason, method=self._method.name,
            prompt_tokens=len(self._ids), seed=asked.seed, adapter_version=self._version,
            cache_entries=self._entries, domain=asked.domain, key=self._key,
            context_limit=pair.target.context, guessing=self._guessing,
            # a version that was swapped in meanwhile has guessed too
            guesses=self._guesses + (f"-then-{line.adapter}" if line.adapter != self._adapter else ""),
        )  # fmt: skip


def rounds_alone(parts: Generator[Reading | Round, None, Generation]) -> Generator[Round, None, Generation]:
    """Yield the rounds of `parts`; the value is that of `parts`."""
    with closing(parts):
        while True:
            try:
                part = next(parts)
            except StopIteration as finished:
                made: Generation = finished.value
                return made
            if isinstance(part, Round):
                yield part
