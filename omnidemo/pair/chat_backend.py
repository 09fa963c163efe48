"""What answers a chat: a pair in this process, or one whose answers are written elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol

from omnidemo.records import Generation, Prompt, Round


class Named(Protocol):
    """A model by name. `context`: positions of its window; `tokenizer`: that of `transformers`."""

    @property
    def name(self) -> str: ...
    @property
    def context(self) -> int: ...
    @property
    def tokenizer(self) -> Any: ...


class Sizes(Protocol):
    """How many n-grams there are, and what they take."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


class ChatBackend(Protocol):
    """All that chats, page and endpoint need of a pair. `Pair` computes by itself, `RemotePair` has others compute."""

    @property
    def target(self) -> Named: ...
    @property
    def drafter(self) -> Named: ...
    @property
    def ngrams(self) -> Sizes: ...

    def prompt_ids(self, prompt: Prompt, raw: bool = False) -> list[int]:
        """The target's ids of a prompt; ValueError where it is empty or does not fit the window."""

    def stream(
        self, prompt: Prompt, *, cancelled: Callable[[], bool] = ..., note: bool = ..., **options: Any
    ) -> Generator[Round, None, Generation]:
        """The rounds of an answer; the generator's value is the finished `Generation`. See `Pair.stream`."""
