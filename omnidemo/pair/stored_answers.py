"""Fills the memory from the history, in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from omnidemo.pair.copy_memory import TAIL, CopyMemory
from omnidemo.storage.store import Store
from omnidemo.vocabulary.vocabulary import Vocabulary

log = logging.getLogger(__name__)
LONGEST_PROMPT = 4000  # characters; a longer prompt is not tokenised for the few ids at its end
IDLE_SECONDS = 0.25  # longest wait before each answer while answers are written


class StoredAnswers:
    """Tokenises stored answers, the newest first, until a domain's memory is full, in one thread, which ends
    without orders. `names`: of target and drafter. `prompt_ids`, `vocabulary`: tokenise prompts and texts.
    `busy`: whether an answer is being written, which would be slower meanwhile."""

    def __init__(
        self, memory: CopyMemory, store: Store, names: tuple[str, str],
        prompt_ids: Callable[[str], Sequence[int]],
        vocabulary: Vocabulary, busy: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._memory, self._store, self._names = memory, store, names
        self._prompt_ids, self._vocabulary, self._busy = prompt_ids, vocabulary, busy
        self._asked: deque[tuple[str, threading.Event]] = deque()
        self._lock = threading.Lock()
        self._runs = False

    def ask(self, domain: str, asked: threading.Event) -> None:
        """Order `CopyMemory.put_before` for a domain, and then set `asked`. Until it is set, also by an
        answer that stops waiting, running answers do not delay the work."""
        with self._lock:
            self._asked.append((domain, asked))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="stored answers", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    self._runs = False
                    return
                domain, asked = self._asked.popleft()
            try:
                self._memory.put_before(domain, asked, [*self._spelled(domain, asked)][::-1])
            except Exception:  # answers only have fewer copies
                log.exception("the stored answers of %s could not be read for copying", self._names[0])
            finally:
                asked.set()

    def _spelled(self, domain: str, asked: threading.Event) -> Iterator[list[int]]:
        """The ids of the texts, the newest first, as far as there is room."""
        room = self._memory.room
        for prompt, answer in self._store.copied_from(*self._names, domain, room):
            waited = time.monotonic() + IDLE_SECONDS
            while asked.is_set() and self._busy() and time.monotonic() < waited:
                time.sleep(IDLE_SECONDS / 10)
            spelled = self._vocabulary.encode(answer.encode(errors="replace"))
            if not spelled:  # with half a character, or a control token's name
                continue
            ids = [*self._end_of(prompt), *spelled]
            room -= len(ids) + 1
            if room < 0:
                return
            yield ids

    def _end_of(self, prompt: str) -> Sequence[int]:
        """The last ids of a prompt, before its answer; none for a prompt that cannot be read alone."""
        if len(prompt) > LONGEST_PROMPT:
            return ()
        try:
            return self._prompt_ids(prompt)[-TAIL:]
        except ValueError:
            return ()
