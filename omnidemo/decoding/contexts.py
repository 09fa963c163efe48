"""One byte stream with two token views: what the target has read, and what the drafter has read of the same text."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.decoding.backend import KVCache
from omnidemo.decoding.rollout import Rollout
from omnidemo.decoding.sampling import Law, as_tensor, highest_each
from omnidemo.vocab.vocabulary_map import VocabularyMap


class DrafterContext:
    """The drafter's ids, read lazily, with the logits rows of this round's positions.

    Invariant (`spells`): the bytes of `ids` plus `waiting` equal the bytes of the target's ids. `waiting` holds bytes that
    the drafter cannot spell yet, such as half a character; a whole character that it has no way to spell becomes its unknown
    token (or nothing) and is counted in `lost`. A drafter with a short window slides: the older half is dropped
    and the rest read again, which costs O(1) per token on average.
    """

    def __init__(self, cache: KVCache, vocabulary_map: VocabularyMap) -> None:
        self.cache, self.map = cache, vocabulary_map
        self.ids: list[int] = []
        self.waiting = b""
        self.lost = 0
        self.passes = 0  # that were made from here
        self.weights = 0  # how often the drafter's weights have changed
        self._dropped = 0  # ids that have slid out of the window
        # Logits after so many ids, and what the output layer read for them, where the model shows it.
        self._rows: dict[int, tuple[Law, Any]] = {}
        self._ahead: tuple[int, Rollout] | None = None  # what lies in the cache beyond its length, after so many ids
        self.marks: list[tuple[int, int]] = [(0, 0)]  # (target ids, drafter ids) at which both views end on the same byte
        self._followed = 0  # target ids taken so far

    def start(self, prompt: Sequence[int], kept: int) -> None:
        """Read a prompt, given as target ids, of which the first `kept` are those of the context before."""
        self.passes += 1
        while self.marks[-1][0] > kept:
            self.marks.pop()
        self._followed, length = self.marks[-1]
        self.rollback(length)
        self.waiting = b""
        self._rows.clear()
        self._ahead = None
        if not self.ids:
            self._begin(prompt)
            self.marks = [(0, 0)]
        self._translate(prompt[self._followed :])
        if len(self.ids) - self._dropped >= self.cache.limit:
            self._slide()

    def read_again(self, cache: KVCache) -> None:
        """Read everything again, into an empty cache (the ids stay): needed when the drafter's weights have changed."""
        self.cache = cache
        self.weights += 1
        self._rows.clear()
        self._ahead = None

    @property
    def can_draft(self) -> bool:
        return bool(self.ids) and not self.waiting

    def logits(self) -> Law:
        """Logits [D] after all ids; costs a forward pass over the ids that the cache has not read, or nothing."""
        end = len(self.ids)
        known = self._rows.get(end) or self._caught_up(end)
        if known is None:
            self._ahead = None  # the pass overwrites it
            self.passes += 1
            if end - self._dropped >= self.cache.limit:
                self._slide()
            read = self.cache.forward(self.ids[self._dropped + self.cache.length :], 1)
            known = self._rows[end] = (read.logits[0], None if read.hidden is None else read.hidden[-1])
        return known[0]

    def score_history(self, least: int, most: int, greedy: bool) -> list[list[float]]:
        """How the drafter would have guessed the newest target tokens, as far as it has not read them: of each the probabilities of its
        pieces (`greedy`: 1 for what it finds most probable, else 0), in the pass that a draft needs anyway. Nothing of fewer than `least`.

        Before temperature, penalty and bars. A token that no pieces of its own spell has none.
        """
        end, read = len(self.ids), self._dropped + self.cache.length
        marks = [mark for mark in self.marks[-most - 1 :] if mark[1] > read]
        if len(marks) <= least or end - self._dropped >= self.cache.limit:
            return []
        first, self._ahead = marks[0][1], None
        self.passes += 1
        found_in = self.cache.forward(self.ids[read:], end - first + 1, 1.0)
        rows, stats, hidden = found_in.logits, found_in.stats, found_in.hidden
        self._rows[end] = (rows[-1], None if hidden is None else hidden[-1])
        pieces = self.ids[first:]
        if greedy:
            best = stats.best()[:-1] if stats is not None else highest_each(as_tensor(rows)[:-1])
            found = [float(one == piece) for one, piece in zip(best, pieces, strict=True)]
        elif stats is not None:
            found = stats.shares(pieces)
        else:
            laws = as_tensor(rows)[:-1].softmax(-1)
            found = laws.gather(1, torch.tensor(pieces, device=laws.device)[:, None]).squeeze(1).tolist()
        tokens: list[list[float]] = []
        for (before, begin), (after, finish) in itertools.pairwise(marks):
            tokens += [[]] * (after - before - 1) + [found[begin - first : finish - first]]
        return tokens

    def state(self, position: int) -> NDArray[np.float32] | None:
        """The input [H] of the output layer at the row after `position` ids, as far as this round has read; None where unknown."""
        found = (self._rows.get(position) or self._caught_up(position) or (None, None))[1]
        return found.float().cpu().numpy() if isinstance(found, Tensor) else found

    def beginning(self) -> tuple[list[int], Law | None, Any] | None:
        """What has to be read before anything can be drawn after all ids; where that is nothing, the logits [D] and the state there. None
        where the window slides, or has slid and what is left of it was not read again."""
        end = len(self.ids)
        row, state = self._rows.get(end) or self._caught_up(end) or (None, None)
        if end - self._dropped >= self.cache.limit or (row is not None and self.cache.length != end - self._dropped):
            return None
        return [] if row is not None else self.ids[self._dropped + self.cache.length :], row, state

    def read_ahead(self, rollout: Rollout) -> None:
        """Take note of what a backend has read after all ids: it counts as read as far as the ids come to agree with it."""
        self.passes += 1
        self.cache.length = len(self.ids) - self._dropped
        self._ahead = (len(self.ids), rollout)
        self._rows[len(self.ids)] = (rollout.rows[0], rollout.states[0])

    def count_read(self, further: int) -> None:
        """Count as read what a backend has read: all ids, and so many `further` tokens that are about to be pushed. Their rows are not
        known."""
        self._ahead = None
        self._rows.clear()
        self.cache.length = len(self.ids) - self._dropped + further

    def _caught_up(self, position: int, last: bool = False) -> tuple[Law, Any] | None:
        """Count what a rollout has read and the ids agree with as read; the row after `position` ids, if that makes it known. `last`: no
        other row will be asked for."""
        if self._ahead is None:
            return None
        start, ahead = self._ahead
        agreed = common_prefix(self.ids[start:], ahead.read)
        if start + agreed - self._dropped > self.cache.length:
            self.cache.length = start + agreed - self._dropped
        for place in range(1, agreed + 1):
            if not last or start + place == position:
                self._rows[start + place] = (ahead.rows[place], ahead.states[place])
        return self._rows.get(position)

    def push(self, drafter_id: int) -> None:
        self.ids.append(drafter_id)

    def rollback(self, length: int) -> None:
        """Keep the first `length` ids, and the rows up to there."""
        if self._ahead is not None and length < self._ahead[0]:
            self._ahead = None
        if length < len(self.ids):
            del self.ids[length:]
            for position in [p for p in self._rows if p > length]:
                del self._rows[position]
            if length < self._dropped:
                self._dropped = 0
                self.cache.trim(0)
        # The row after the last id is gone with a shorter cache unless it is remembered, so one id is left to be read again.
        readable = length - self._dropped if length in self._rows else length - self._dropped - 1
        if self.cache.length > max(0, readable):
            self.cache.trim(max(0, readable))

    def commit(self, start: int, lengths: Sequence[int], target_ids: Sequence[int]) -> None:
        """End a round that began at `start` ids: the first target ids were accepted, each spelled by as many drafter ids as
        `lengths` says (0: by those of a later one), and stay; the others are followed."""
        end = start + sum(lengths)
        self._caught_up(end, last=True)
        self._ahead = None
        self.rollback(end)
        for length in lengths:
            start += length
            self._followed += 1
            if length:
                self.marks.append((self._followed, start))
        self.follow(target_ids[len(lengths) :])
        self._rows = {end: self._rows[end]} if len(self.ids) == end in self._rows else {}

    def follow(self, target_ids: Sequence[int]) -> None:
        """Append the spelling of tokens that the target wrote itself."""
        for target_id in target_ids:
            self._followed += 1
            spelling = self.map.spelling(target_id)
            if self.waiting or spelling is None:
                written = self.map.target.writes(target_id)
                self.waiting += written
                if not written:  # after a special token, what waits never becomes a character
                    self.ids.extend(self._spell_waiting(last=True))
                else:
                    spelling = self._spell_waiting()
            self.ids.extend(spelling or ())
            if not self.waiting:
                self.marks.append((self._followed, len(self.ids)))

    def _spell_waiting(self, last: bool = False) -> tuple[int, ...]:
        """Ids of the waiting bytes. Half a character at their end goes on waiting, unless nothing more can come (`last`)."""
        spelled = self.map.drafter.spell(self.waiting)
        if spelled is not None:
            self.waiting = b""
            return spelled
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # bytes of no character become lone surrogates
        text = decoder.decode(self.waiting, last)
        self.waiting = decoder.getstate()[0]
        ids: list[int] = []
        for character in text:
            known = None if "\udc80" <= character <= "\udcff" else self.map.drafter.spell(character.encode())
            ids += self._unknown() if known is None else known
        return tuple(ids)

    def _unknown(self) -> tuple[int, ...]:
        self.lost += 1
        return self.map.drafter.roles.get("unknown", ())[:1]

    def spells(self, target_ids: Sequence[int]) -> bool:
        """Whether the invariant holds: for tests, and counted at run time."""
        return self.map.drafter.text_bytes(self.ids) + self.waiting == self.map.target.text_bytes(target_ids)

    def _begin(self, prompt: Sequence[int]) -> None:
        """Open with the drafter's own begin token where the target's prompt has none."""
        begin = self.map.drafter.roles.get("begin", ())
        if begin and (not prompt or self.map.drafters[prompt[0]] not in begin):
            self.ids.append(begin[0])

    def _translate(self, target_ids: Sequence[int]) -> None:
        """Follow a prompt: text between special tokens as the drafter's tokenizer itself would spell it, roles by their map."""
        text: list[int] = []

        def flush() -> None:
            if text:
                ids = self.map.drafter.encode(self.map.target.text_bytes(text))
                if ids is None:
                    self.follow(text)
                else:
                    self.ids.extend(ids)
                    self._followed += len(text)
                    self.marks.append((self._followed, len(self.ids)))
                text.clear()

        for target_id in target_ids:
            if self.map.target.writes(target_id):
                text.append(target_id)
            else:
                flush()
                self.follow([target_id])
        flush()

    def _slide(self) -> None:
        """Drop the older ids, keep half a window, and let the next pass read it again."""
        self._ahead = None
        self._dropped = max(0, len(self.ids) - self.cache.limit // 2)
        self.cache.trim(0)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length
