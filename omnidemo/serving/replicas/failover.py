"""An answer whose replica was lost: another replica continues it behind its last token."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from secrets import token_hex

from omnidemo.core.records import FinishReason, Generation, Reading
from omnidemo.pair.remote.messages import Behind, Call, Failed, Finished, Insertions, Message

LOSSES = 8  # replicas that an answer may lose in a row without a new token

Batches = Generator[Sequence[Message], None, None]


class Lost(Exception):
    """The replica that wrote the answer is gone."""


def whole_answer(
    ask: Callable[[Call], Batches],
    call: Call,
    cancelled: Callable[[], bool],
    ngrams_since: Callable[[int], Insertions],
    method: str,
) -> Generator[Message, None, None]:
    """The messages of one answer, by one or several replicas. `ask` raises `Lost` where a replica is gone;
    closing its generator ends the answer there. `ngrams_since`: the n-grams from a number on, for a replica
    that lacks them. `method`: the method's name, for an end that no replica reports. Raises `Lost` after more
    than LOSSES in a row.

    The text is the same as by one replica, at temperature 0 and with a seed, whose numbers belong to
    positions. A lossy method above temperature 0 draws the rest with other numbers (`randomness_of`).
    """
    asked, losses, behind = call, 0, 0
    written: list[int] = []
    rounds = 0
    reason: FinishReason | None = None
    while True:
        try:
            with closing(ask(asked)) as batches:
                for message in (one for batch in batches for one in batch):
                    if isinstance(message, Behind):
                        behind += 1
                        asked = replace(asked, ngrams=ngrams_since(message.number if behind < 2 else 0))
                        break
                    if isinstance(message, Failed | Finished):
                        yield message
                        return
                    losses = 0
                    if isinstance(message, Reading):
                        yield message
                    else:
                        yield message if message.index == rounds else replace(message, index=rounds)
                        written += [token.id for token in message.tokens]
                        rounds, reason = rounds + 1, message.finish_reason
                    if reason is None and cancelled():
                        yield _ended(call, "cancelled", method)
                        return
                else:
                    raise Lost("a replica ended before its answer did")
        except Lost:
            if reason is not None:  # only the last message is missing
                yield _ended(call, reason, method)
                return
            losses += 1
            if losses > LOSSES:
                raise
            asked = _rest(call, tuple(written), ngrams_since(0))


def _rest(call: Call, written: tuple[int, ...], ngrams: Insertions) -> Call:
    """The call for the missing rest."""
    options = dict(call.options)
    options["max_new_tokens"] -= len(written)
    return replace(call, options=options, begun=written, ngrams=ngrams)


def _ended(call: Call, reason: FinishReason, method: str) -> Finished:
    """An end that no replica reports. No drafter learns from the answer; the app has text and figures from
    its rounds."""
    version, entries = call.adapter.version, call.ngrams.since + len(call.ngrams.added)
    generation = Generation(
        (), "", (), {"context_mismatch": 0.0}, reason, method, 0,
        adapter_version=version, cache_entries=entries, domain=call.options["domain"], key=token_hex(12),
    )  # fmt: skip
    return Finished(generation, (), call.knowledge, 0)
