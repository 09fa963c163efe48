"""Answers in OpenAI's shape: whole, or as the chunks of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from typing import Any

from omnidemo.core.answer_figures import Figure, figures_of
from omnidemo.core.records import Generation, Part, Reading, Token
from omnidemo.decoding.methods import METHODS
from omnidemo.serving.endpoint.asked_form import ForcedCall
from omnidemo.serving.endpoint.request_body import AnswerRequest, ChatRequest

REASONS = {"end": "stop", "stop": "stop", "length": "length", "context": "length", "cancelled": "length"}
DONE = b"data: [DONE]\n\n"


class StopFilter:
    """Removes the stop string that ended an answer from its text, which comes in pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self._over = False

    def add(self, text: str) -> str:
        """The text that can be shown now, from the new piece and the held-back end of earlier ones."""
        if not self._stops:
            return text
        if self._over:
            return ""
        self._held += text
        places = [place for place in (self._held.find(stop) for stop in self._stops) if place >= 0]
        if places:
            self._over = True
            shown, self._held = self._held[: min(places)], ""
            return shown
        keep = max(self._begun(stop) for stop in self._stops)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def end(self) -> str:
        """The held-back text, which did not become a stop string."""
        rest, self._held = self._held, ""
        return rest

    def _begun(self, stop: str) -> int:
        """How many characters at the end of the text begin the stop string."""
        most = min(len(stop) - 1, len(self._held))
        return next((length for length in range(most, 0, -1) if self._held.endswith(stop[:length])), 0)


class AnswerFormat:
    """The answer to one request as JSON. `facts` go into its field `omnidemo`."""

    def __init__(self, asked: AnswerRequest, model: str, facts: Mapping[str, str]) -> None:
        self._asked, self._facts = asked, facts
        self._chat = isinstance(asked, ChatRequest)
        self._filter = StopFilter(asked.stop)
        self._call = ForcedCall(asked.call) if asked.call is not None else None
        self._base: dict[str, Any] = {
            "id": f"{'chatcmpl' if self._chat else 'cmpl'}-{token_hex(12)}",
            "object": "",
            "created": int(time.time()),
            "model": model,
        }
        self._usage = asked.stream_options.include_usage
        self._first = True

    def whole(self, made: Generation) -> dict[str, Any]:
        text = self._filter.add(made.text) + self._filter.end()
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self._call is not None:
            message |= {"content": None, "tool_calls": [self._call.whole(text)]}
        said = {"message": message} if self._chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self._reason(made)}
        own = self._own(made)
        if self._asked.omnidemo.token_sources:
            own["tokens"] = sources(token for done in made.rounds for token in done.tokens)
        name = "chat.completion" if self._chat else "text_completion"
        return self._base | {
            "object": name, "choices": [choice], "usage": usage(made),
            "system_fingerprint": fingerprint(made), "omnidemo": own,
        }  # fmt: skip

    def event(self, part: Part) -> bytes:
        """The events of a part of the answer. The text of a round is empty while a character or a stop string
        is incomplete."""
        if isinstance(part, Reading):  # a comment
            return f": reading the prompt, {part.read:,} of {part.total:,} tokens\n\n".encode()
        if isinstance(part, Generation):
            return self._last(part)
        own = {"tokens": sources(part.tokens)} if self._asked.omnidemo.token_sources else None
        return self._event(self._filter.add(part.text), None, {"omnidemo": own} if own else {})

    def _last(self, made: Generation) -> bytes:
        """The last events: reason and figures, usage if requested, and DONE."""
        named = {"system_fingerprint": fingerprint(made)}
        own = {"omnidemo": self._own(made)}
        events = self._event(self._filter.end(), self._reason(made), named | own)
        if self._usage:
            events += event(self._chunk() | {"choices": [], "usage": usage(made)} | named)
        return events + DONE

    def _event(self, text: str, reason: str | None, more: Mapping[str, Any]) -> bytes:
        said: dict[str, Any]
        if self._chat:
            said = {"delta": {"content": text} if text or reason is None else {}}
            if self._call is not None:
                called = self._call.delta(text)
                said = {"delta": {"tool_calls": called} if called else {}}
            if self._first:
                own = {"content": None, **said["delta"]} if self._call is not None else {"content": text}
                said["delta"] = {"role": "assistant", **own}
        else:
            said = {"text": text}
        self._first = False
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason}
        return event(
            self._chunk() | {"choices": [choice]} | ({"usage": None} if self._usage else {}) | dict(more)
        )

    def _reason(self, made: Generation) -> str:
        """OpenAI says "stop" behind the call of a function that the client has named."""
        called = self._call is not None and not self._call.named and made.finish_reason == "end"
        return "tool_calls" if called else REASONS[made.finish_reason]

    def _chunk(self) -> dict[str, Any]:
        return self._base | {"object": "chat.completion.chunk" if self._chat else "text_completion"}

    def _own(self, made: Generation) -> dict[str, Any]:
        return {
            **{figure.name: _number(made, figure) for figure in figures_of("endpoint")},
            **self._facts,
            "line": made.domain,
            "method": made.method,
            "adapter_version": made.adapter_version,
            "ngrams": made.cache_entries,
            "finish_reason": made.finish_reason,
            "context_tokens": made.context_tokens,
            "context_limit": made.context_limit,
            "dropped_messages": made.dropped_messages,
        }


def fingerprint(made: Generation) -> str:
    """The conditions under which a seed repeats an answer: what the target's numbers depend on. Above
    temperature 0 the text of a method that is not `coupled` depends on its guesses, so the sources of those
    are named too."""
    if METHODS[made.method].coupled:
        return made.conditions
    return f"{made.conditions}.{made.method}.{made.domain}.{made.guesses}"


def _number(made: Generation, figure: Figure) -> float | None:
    value = made.metrics.get(figure.name)
    return int(value or 0) if figure.form == "count" else value


def usage(made: Generation) -> dict[str, int]:
    written = len(made.token_ids)
    return {
        "prompt_tokens": made.prompt_tokens,
        "completion_tokens": written,
        "total_tokens": made.prompt_tokens + written,
    }


def sources(tokens: Iterable[Token]) -> list[dict[str, Any]]:
    """Each token with its source. `match` of a copied token: how many tokens before it agreed, and with
    what."""
    return [
        {"id": token.id, "text": token.text, "source": token.source}
        | ({"match": token.match._asdict()} if token.match else {})
        for token in tokens
    ]


def event(value: Mapping[str, Any]) -> bytes:
    """An event of a stream."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"data: " + data + b"\n\n"
