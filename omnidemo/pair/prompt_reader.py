"""From a prompt (text, chat messages, ids) to target ids, and prefill in chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from numbers import Integral
from typing import Any

from omnidemo.core.records import Prompt, Reading
from omnidemo.decoding.state import DecodingState
from omnidemo.models.chat_template import Speller
from omnidemo.models.load import LanguageModel

GIVE_WAY_SECONDS = 0.001  # between two prefill chunks, so that waiting threads can take the lock


class TooLong(ValueError):
    """A prompt that does not fit the target's window."""


class PromptReader:
    """Tokenises prompts for one target."""

    def __init__(self, target: LanguageModel) -> None:
        self._target = target

    def ids(self, prompt: Prompt, raw: bool = False, control_tokens: bool = False) -> list[int]:
        """The target's ids of a prompt. raw: a text without the chat template. control_tokens: read names of
        control tokens in it as such tokens. ValueError where it is empty or the chat template refuses it,
        TooLong where it does not fit the window."""
        if isinstance(prompt, str) and self._target.chat and not raw:
            prompt = [{"role": "user", "content": prompt}]
        parts: list[Any] = (
            list(prompt) if isinstance(prompt, Iterable) and not isinstance(prompt, (str, Mapping)) else []
        )
        if isinstance(prompt, str):
            ids = self._speller.text(prompt, control_tokens)
        elif isinstance(prompt, Mapping) or not isinstance(prompt, Iterable):
            raise ValueError("the prompt is neither a text, nor a list of messages, nor a list of ids")
        elif all(isinstance(part, Integral) for part in parts):
            ids = [int(part) for part in parts]
        elif self._target.chat:
            try:
                ids = self._speller.messages(parts)
            except ValueError:
                raise
            except Exception as error:  # templates raise any error, such as jinja2's
                raise ValueError(
                    f"the chat template of {self._target.name} refuses these messages: {error}"
                ) from error
        else:
            raise ValueError(f"{self._target.name} has no chat template; give the prompt as a text")
        begin = self._target.vocabulary.roles.get("begin", ())
        ids = ids or list(begin[:1])
        if not ids:
            raise ValueError(
                "the prompt is empty, and this target has no token to begin with; write something"
            )
        if len(ids) >= self._target.context:
            window = self._target.context
            raise TooLong(
                f"the prompt has {len(ids)} tokens and {self._target.name} reads {window}; shorten it or"
                " start a new chat"
            )
        if not 0 <= min(ids) <= max(ids) < self._target.runner.rows:
            raise ValueError(f"prompt ids must lie between 0 and {self._target.runner.rows - 1}")
        return ids

    @cached_property
    def _speller(self) -> Speller:  # models of tests and measurements have no tokenizer, and are given ids
        return Speller(self._target.tokenizer, self._target.vocabulary)


def start_in_turns(
    state: DecodingState, ids: Sequence[int], lock: AbstractContextManager[Any], cancelled: Callable[[], bool]
) -> Generator[Reading, None, bool]:  # fmt: skip
    """Prefill a prompt chunk by chunk, holding the lock for one chunk at a time. With several chunks it
    yields a `Reading` before the first and after each, and calls `cancelled` before each. The value is False
    if it was cancelled."""
    target = state.target
    with lock:
        kept = state.begin(ids)
    total = len(ids) - 1 - kept
    several = total > target.chunk
    while True:
        if several:
            yield Reading(target.cache.length - kept, total, kept)
            if cancelled():
                return False
        with lock:
            left = target.read_chunk()
        if not left:
            break
        time.sleep(GIVE_WAY_SECONDS)
    if several:
        yield Reading(total, total, kept)
    return True
