"""The earlier answers that drafts are copied from: of each domain its own, so that no visitor copies from another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from omnidemo.copying.text_index import BREAK, TextIndex

TAIL = 32  # ids of the prompt that are kept before an answer, so that its beginning is found too


class CopyMemory:
    """Finished answers, first in, first out, of at most `most` bytes in each domain. `lock`: the pair's, held while they change."""

    def __init__(self, most: int, lock: threading.Lock) -> None:
        self._most, self._lock = most, lock
        self._texts: dict[str, TextIndex] = {}
        self._lengths: dict[str, deque[int]] = {}  # ids of each answer

    def of(self, domain: str) -> TextIndex | None:
        """The answers of a domain; None where there are none. It grows with every answer, between two rounds of others. The caller holds
        the lock."""
        return self._texts.get(domain)

    def add(self, domain: str, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """Keep a finished answer (target ids), with the end of its prompt; the oldest go where there is no room. The caller
        holds the lock."""
        ids = [*prompt[-TAIL:], *answer, BREAK]
        room = self._most // TextIndex.BYTES
        if not answer or len(ids) > room:
            return
        text, lengths = self._texts.setdefault(domain, TextIndex()), self._lengths.setdefault(domain, deque())
        text.extend(ids)
        lengths.append(len(ids))
        while len(text) > room:
            text.drop(lengths.popleft())

    def keep(self, domain: str, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """`add` for a stored answer, by a caller that does not hold the lock."""
        with self._lock:
            self.add(domain, prompt, answer)

    def forget(self, domain: str) -> None:
        """Drop the answers of a domain, also for an answer that is being written."""
        with self._lock:
            self._drop(domain)

    def clear(self) -> None:
        """Drop all answers."""
        with self._lock:
            for domain in list(self._texts):
                self._drop(domain)

    def _drop(self, domain: str) -> None:
        text = self._texts.pop(domain, None)
        self._lengths.pop(domain, None)
        if text is not None:
            text.clear()

    @property
    def nbytes(self) -> int:
        return sum(text.nbytes for text in self._texts.values())
