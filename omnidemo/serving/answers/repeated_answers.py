"""The inputs of one task, answered one after another in a session."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from omnidemo.core.records import Generation, Part
from omnidemo.core.tasks import Task
from omnidemo.core.tasks import task as named_task
from omnidemo.pair.repeated_task import Repeated, Watched, options_of
from omnidemo.serving.pair_pool import PairPool

if TYPE_CHECKING:
    from omnidemo.serving.chat_service import ChatService


class RepeatedAnswers:
    """Answers the inputs of a task by `ChatService.chat`. Thread-safe."""

    def __init__(self, pool: PairPool, chats: ChatService) -> None:
        self._pool, self._chats = pool, chats

    def repeat(
        self, *, target: str, drafter: str, task: Task | str, count: int = 10, first: int = 0,
        order: int = 0, cancel: threading.Event | None = None, **options: Any,
    ) -> Iterator[Part | Repeated]:  # fmt: skip
        """Yield the parts of each answer as `chat` does, and behind each `Generation` its `Repeated`.

        task, count, first, order: as in `Pair.repeat`. options: those of `chat`; by default temperature 0,
        the policy "chance" and an adapter line of the task's name. Each answer is recorded and learned from
        like a chat. A cancelled answer is the last, and has no `Repeated`.
        """
        task = named_task(task) if isinstance(task, str) else task
        given = {name: value for name, value in options.items() if value is not None}
        options = options_of(task, {"method": self._pool.settings.method, "kind": "traffic", **given})
        begun = deque[Watched](maxlen=1)
        for number, text in enumerate(task.inputs(count, order, first), first + 1):
            if cancel is not None and cancel.is_set():
                return
            chat = self._pool.ready(target, drafter)[0].target.chat
            messages = task.messages(text) if chat else [{"role": "user", "content": task.prompt(text)}]
            answer = self._chats.chat(
                target=target, drafter=drafter, messages=messages, raw=not chat, cancel=cancel,
                watch=lambda *given: begun.append(Watched(*given)), **options,
            )  # fmt: skip
            with closing(answer):  # type: ignore[type-var]
                for part in answer:
                    yield part
                    if isinstance(part, Generation):
                        if part.finish_reason == "cancelled":
                            return
                        yield begun[0].repeated(task, number, text, part)
