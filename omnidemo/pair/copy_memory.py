"""The memory of a pair, by domain: earlier answers that drafts are copied from, and what followed short
contexts in them. No visitor drafts from another's text."""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b

from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.ngram_table import LONGEST
from omnidemo.decoding.sources.text_index import BREAK, TextIndex
from omnidemo.storage.visitors import OWN

TAIL = 32  # ids of the prompt that are kept before an answer, so that its beginning can be copied
PATIENCE = 2.0  # seconds that an answer waits for stored answers
# bytes of continuations ÷ bytes of earlier answers: of a line, of a visitor, and of all together
LINE, VISITOR, ALL = 4.0, 0.5, 32.0


class CopyMemory:
    """Finished answers, at most `most` bytes in each domain (the oldest go first), and their continuations.
    If all continuations take too much, those of the domain unused for longest go. The memory is not stored:
    after a restart the history fills it. `lock`: the pair's, held while the memory changes."""

    def __init__(self, most: int, lock: threading.Lock) -> None:
        self._most, self._lock = most, lock
        self._texts: dict[str, TextIndex] = {}
        self._known: dict[str, Continuations] = {}  # in order of last use
        self._lengths: dict[str, deque[int]] = {}  # ids of each answer
        self._digests: dict[str, bytes] = {}
        # by domain; set when its stored answers are here, or an answer has stopped waiting for them
        self._asked: dict[str, threading.Event] = {}
        # orders `put_before`, which sets the event at its end; returns at once
        self.restore: Callable[[str, threading.Event], object] = lambda domain, asked: asked.set()

    def of(self, domain: str) -> TextIndex | None:
        """The answers of a domain; None for none. The first call for a domain, and the first after `forget`,
        requests the stored answers, which arrive between rounds. The lock is held."""
        if domain not in self._asked and self._most:
            self._asked[domain] = asked = threading.Event()
            self.restore(domain, asked)
        return self._texts.get(domain)

    def await_stored(self, domain: str) -> None:
        """Request a domain's stored answers as `of` does, and wait for them, once and for at most PATIENCE.
        The lock is not held."""
        with self._lock:
            self.of(domain)
            asked = self._asked.get(domain)
        if asked is not None and not asked.wait(PATIENCE):
            asked.set()

    def known(self, domain: str) -> Continuations | None:
        """The continuations of a domain, to which each finished answer adds; None without a memory. The lock
        is held."""
        if not self._most:
            return None
        found = self._known.pop(domain, None) or self._new_known(domain)
        self._known[domain] = found
        while sum(each.nbytes for each in self._known.values()) > ALL * self._most and len(self._known) > 1:
            self._known.pop(next(iter(self._known))).clear()
        return found

    def _new_known(self, domain: str) -> Continuations:
        return Continuations(int(self._most * (VISITOR if domain.startswith(OWN) else LINE)))

    def digest(self, domain: str) -> str:
        """Eight hexadecimal digits of a domain's answers in the order of their arrival; "" for none. The lock
        is held."""
        return self._digests.get(domain, b"").hex()

    @property
    def room(self) -> int:
        """Ids that a domain may have."""
        return self._most // TextIndex.BYTES

    def put_before(self, domain: str, asked: threading.Event, texts: Sequence[Sequence[int]]) -> None:
        """Put texts, the oldest first, before the answers of a domain, as far as there is room. Nothing
        happens where the domain was forgotten since the order (`asked`). The lock is not held, and is taken
        after the texts are indexed."""
        whole, lengths = TextIndex(), deque[int]()
        for text in texts:
            whole.extend([*text, BREAK])
            lengths.append(len(text) + 1)
        stored, known = whole.ids.tolist(), self._new_known(domain)
        known.learn_newest(texts)
        with self._lock:
            if self._asked.get(domain) is not asked or not texts:
                return
            own_known, later = self.known(domain), self._texts.get(domain)
            if own_known is not None:
                if later is not None:  # answers since the order
                    known.learn_newest(_split(later.ids))
                own_known.become(known)
            own = self._texts.get(domain)
            if own is not None:
                whole.extend(own.ids)
            self._lengths[domain] = deque([*lengths, *self._lengths.get(domain, ())])
            self._texts[domain] = whole if own is None else own
            if own is not None:  # running answers hold this object
                own.become(whole)
            self._drop_oldest(domain)
            self._mark(domain, stored)

    def begin_with(self, domain: str, texts: Sequence[Sequence[int]]) -> None:
        """Put texts that come from elsewhere, the oldest first, before the answers of a domain. The lock is
        not held."""
        with self._lock:
            self.of(domain)
            asked = self._asked.get(domain)
        if asked is not None:
            self.put_before(domain, asked, texts)

    def add(self, domain: str, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """Keep a finished answer (target ids) with the end of its prompt; the oldest are dropped where there
        is no room. The lock is held."""
        ids = [*prompt[-TAIL:], *answer, BREAK]
        if not answer or len(ids) > self.room:
            return
        if (known := self.known(domain)) is not None:
            begun = prompt[-LONGEST:]
            known.learn([*begun, *answer], len(begun))
        text, lengths = self._texts.setdefault(domain, TextIndex()), self._lengths.setdefault(domain, deque())
        text.extend(ids)
        lengths.append(len(ids))
        self._drop_oldest(domain)
        self._mark(domain, ids)

    def forget(self, domain: str) -> None:
        """Drop the answers of a domain, for running answers too."""
        with self._lock:
            self._drop(domain)

    def clear(self) -> None:
        """Drop all answers."""
        with self._lock:
            for domain in [*self._texts, *self._asked, *self._known]:
                self._drop(domain)

    def _mark(self, domain: str, new: Sequence[int]) -> None:
        known = self._digests.get(domain, b"")
        self._digests[domain] = blake2b(known + array("q", new).tobytes(), digest_size=4).digest()

    def _drop_oldest(self, domain: str) -> None:
        text, lengths = self._texts[domain], self._lengths[domain]
        while len(text) > self.room:
            text.drop(lengths.popleft())

    def _drop(self, domain: str) -> None:
        self._asked.pop(domain, None)
        text = self._texts.pop(domain, None)
        self._lengths.pop(domain, None)
        self._digests.pop(domain, None)
        known = self._known.pop(domain, None)
        for each in (text, known):
            if each is not None:
                each.clear()

    @property
    def nbytes(self) -> int:
        texts, known = self._texts.values(), self._known.values()
        return sum(text.nbytes for text in texts) + sum(each.nbytes for each in known)


def _split(ids: Sequence[int]) -> list[list[int]]:
    """The texts of an index."""
    texts: list[list[int]] = [[]]
    for token in ids:
        if token == BREAK:
            texts.append([])
        else:
            texts[-1].append(token)
    return texts
