"""An answer that outlives the replica that began it: another one goes on from its last token."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from secrets import token_hex
from time import perf_counter

from omnidemo.metrics import measure
from omnidemo.records import FinishReason, Generation, Round
from omnidemo.remote.messages import Behind, Call, Failed, Finished, Insertions, Message

LOSSES = 8  # replicas that an answer may lose without a token in between

Batches = Iterator[Sequence[Message]]


class Lost(Exception):
    """Whoever wrote the answer is gone."""


def whole_answer(
    ask: Callable[[Call], Batches], call: Call, cancelled: Callable[[], bool], ngrams_since: Callable[[int], Insertions], method: str
) -> Iterator[Message]:
    """The messages of one answer, whichever replicas write it. `ask` raises `Lost` where one is gone; closing what it returned ends the
    answer there. `ngrams_since`: the n-grams from a number on, for a replica that lacks them. `method`: the name of the
    method, for an end that no replica reports. Raises `Lost` after LOSSES in a row.

    At temperature 0 the text is what one replica alone would have written. Above it what was shown stays, and the rest is drawn with a
    seed of its own, because the numbers that drew the first tokens must not draw the rest too.
    """
    answer = _Answer(call, method)
    asked, losses, behind = call, 0, 0
    while True:
        batches = ask(asked)
        try:
            for message in (one for batch in batches for one in batch):
                if isinstance(message, Behind):
                    behind += 1
                    asked = replace(asked, ngrams=ngrams_since(message.number if behind < 2 else 0))
                    break
                if isinstance(message, Failed):
                    yield message
                    return
                if isinstance(message, Finished):
                    yield answer.end(message)
                    return
                losses = 0
                yield answer.add(message)
                if cancelled():
                    yield answer.ended("cancelled")
                    return
            else:
                raise Lost("a replica ended before its answer did")
        except Lost:
            if answer.reason is not None:  # all but the last message had arrived
                yield answer.ended(answer.reason)
                return
            losses += 1
            if losses > LOSSES:
                raise
            asked = answer.rest(ngrams_since(0))
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()


class _Answer:
    """What has been written of an answer."""

    def __init__(self, call: Call, method: str) -> None:
        self._call, self._method = call, method
        self._rounds: list[Round] = []
        self._began, self._first = perf_counter(), 0.0

    def add(self, done: Round) -> Round:
        if not self._rounds:
            self._first = perf_counter() - self._began
        numbered = done if done.index == len(self._rounds) else replace(done, index=len(self._rounds))
        self._rounds.append(numbered)
        return numbered

    @property
    def reason(self) -> FinishReason | None:
        return self._rounds[-1].finish_reason if self._rounds else None

    @property
    def _ids(self) -> tuple[int, ...]:
        return tuple(token.id for done in self._rounds for token in done.tokens)

    def rest(self, ngrams: Insertions) -> Call:
        """The call for what is missing."""
        written, options = self._ids, dict(self._call.options)
        options["max_new_tokens"] -= len(written)
        if options["seed"] is not None and written:
            options["seed"] = int.from_bytes(hashlib.sha256(f"{options['seed']} {len(written)}".encode()).digest()[:7])
        return replace(self._call, options=options, begun=written, ngrams=ngrams)

    def end(self, last: Finished) -> Finished:
        """The end as the replica says it, which may have written only a part."""
        made = last.generation
        if made.prompt_tokens == len(self._call.ids):
            return last
        found = {name: made.metrics[name] for name in ("context_mismatch", "plain_at")}
        return replace(last, generation=replace(self._generation(made.finish_reason, made.metrics["plain_seconds"], found), key=made.key))

    def ended(self, reason: FinishReason) -> Finished:
        """An end that no replica has told: nothing is learned from the answer."""
        generation = self._generation(reason, None, {"context_mismatch": 0.0, "plain_at": None})
        return Finished(generation, (), self._call.knowledge, self._call.plain_at, 0)

    def _generation(self, reason: FinishReason, plain: float | None, found: dict[str, float | None]) -> Generation:
        call = self._call
        seconds = perf_counter() - self._began
        return Generation(
            token_ids=self._ids,
            text="".join(done.text for done in self._rounds),
            rounds=(),
            metrics={**measure(self._rounds, seconds, self._first, plain), **found},
            finish_reason=reason,
            method=self._method,
            prompt_tokens=len(call.ids),
            seed=call.options["seed"],
            adapter_version=call.adapter.version,
            cache_entries=call.ngrams.since + len(call.ngrams.added),
            domain=call.options["domain"],
            key=token_hex(12),
        )
