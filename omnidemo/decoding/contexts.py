"""The drafter's side of the text: the same bytes as the target's ids, in the drafter's own tokens."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.backend import KVCache
from omnidemo.decoding.rollout import Rollout
from omnidemo.decoding.sampling import Logits
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


class DrafterContext:
    """The drafter's ids, which its cache reads lazily, and the logits rows of this round.

    While `unk_count` is 0, the bytes of `ids` plus `pending_bytes` equal those of the target's ids
    (`spells`). `pending_bytes` cannot be spelled yet, such as half a character. A whole character that cannot
    be spelled becomes the unknown token (or nothing) and counts in `unk_count`. When the window is full, the
    older half of the ids is dropped and the rest is read again: O(1) a token on average.
    """

    def __init__(self, cache: KVCache, vocabulary_map: VocabularyMap) -> None:
        self.cache, self.map = cache, vocabulary_map
        self.ids: list[int] = []
        self.pending_bytes = b""
        self.unk_count = 0
        self._dropped = 0  # ids that have left the window
        # by number of ids: the logits [D] after them, and the output layer's input [H] if the model returns
        # it
        self._rows: dict[int, tuple[Logits, Any]] = {}
        self._ahead: tuple[int, Rollout] | None = None  # (number of ids, what a rollout has read after them)
        # (target ids, drafter ids) whose texts end at the same byte
        self.alignment: list[tuple[int, int]] = [(0, 0)]
        self._followed = 0  # target ids translated so far

    def start(self, prompt: Sequence[int], kept: int) -> None:
        """Begin with a prompt of target ids. Its first `kept` ids are those of the previous context."""
        while self.alignment[-1][0] > kept:
            self.alignment.pop()
        self._followed, length = self.alignment[-1]
        self.rollback(length)
        self.pending_bytes = b""
        self._rows.clear()
        self._ahead = None
        if not self.ids:
            self._begin(prompt)
            self.alignment = [(0, 0)]
        self._translate(prompt[self._followed :])
        if len(self.ids) - self._dropped >= self.cache.max_positions:
            self._slide()

    def read_again(self, cache: KVCache) -> None:
        """The drafter's weights have changed: continue with an empty cache, which reads all ids again."""
        self.cache = cache
        self._rows.clear()
        self._ahead = None

    @property
    def can_draft(self) -> bool:
        return bool(self.ids) and not self.pending_bytes

    def logits(self) -> Logits:
        """Logits [D] after all ids: a known row, or a forward pass over the unread ids."""
        end = len(self.ids)
        known = self._rows.get(end) or self._caught_up(end)
        if known is None:
            self._ahead = None  # the pass overwrites it
            if end - self._dropped >= self.cache.max_positions:
                self._slide()
            read = self.cache.forward(self.ids[self._dropped + self.cache.length :], 1)
            known = self._rows[end] = (read.logits[0], None if read.hidden is None else read.hidden[-1])
        return known[0]

    @property
    def unread(self) -> int:
        """Ids that the drafter has not read."""
        return max(0, len(self.ids) - self._dropped - self.cache.length)

    def state(self, position: int) -> NDArray[np.float32] | None:
        """The hidden state [H] (the output layer's input) after `position` ids; None where this round has not
        computed it."""
        return (self._rows.get(position) or self._caught_up(position) or (None, None))[1]

    def beginning(self) -> tuple[list[int], Logits | None, Any] | None:
        """What a rollout starts from: (unread ids, logits [D], hidden state), the latter two only without
        unread ids. None if the window is full, or was full and the remaining ids are unread."""
        end = len(self.ids)
        row, state = self._rows.get(end) or self._caught_up(end) or (None, None)
        if end - self._dropped >= self.cache.max_positions or (
            row is not None and self.cache.length != end - self._dropped
        ):
            return None
        return [] if row is not None else self.ids[self._dropped + self.cache.length :], row, state

    def read_ahead(self, rollout: Rollout) -> None:
        """Note what a rollout has read after all ids. It counts as read as far as the ids pushed later
        agree."""
        self.cache.length = len(self.ids) - self._dropped
        self._ahead = (len(self.ids), rollout)
        self._rows[len(self.ids)] = (rollout.rows[0], rollout.states[0])

    def _caught_up(self, position: int, last: bool = False) -> tuple[Logits, Any] | None:
        """Count as read what a rollout has read, as far as the ids agree. Returns the row after `position`
        ids if it is known. `last`: keep no other row."""
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

    def push(self, *drafter_ids: int) -> None:
        self.ids.extend(drafter_ids)

    def rollback(self, length: int) -> None:
        """Keep the first `length` ids and their rows."""
        if self._ahead is not None and length < self._ahead[0]:
            self._ahead = None
        if length < len(self.ids):
            del self.ids[length:]
            for position in [p for p in self._rows if p > length]:
                del self._rows[position]
            if length < self._dropped:
                self._dropped = 0
                self.cache.trim(0)
        # Unless the row after the last id is kept, leave one id to read again: its pass returns that row.
        readable = length - self._dropped if length in self._rows else length - self._dropped - 1
        if self.cache.length > max(0, readable):
            self.cache.trim(max(0, readable))

    def commit(self, start: int, lengths: Sequence[int], target_ids: Sequence[int]) -> None:
        """End a round that began at `start` drafter ids. The first `len(lengths)` target ids were accepted
        and keep `lengths` drafter ids each (0: a later token has them). The other target ids are spelled
        anew."""
        end = start + sum(lengths)
        self._caught_up(end, last=True)
        self._ahead = None
        self.rollback(end)
        for length in lengths:
            start += length
            self._followed += 1
            if length:
                self.alignment.append((self._followed, start))
        self.follow(target_ids[len(lengths) :])
        self._rows = {end: self._rows[end]} if len(self.ids) == end in self._rows else {}

    def follow(self, target_ids: Sequence[int]) -> None:
        """Append the drafter's spelling of tokens that the target wrote itself."""
        for target_id in target_ids:
            self._followed += 1
            spelling = self.map.spelling(target_id)
            if self.pending_bytes or spelling is None:
                written = self.map.target.writes(target_id)
                self.pending_bytes += written
                if not written:  # pending bytes before a special token never become a character
                    self.ids.extend(self._spell_pending(last=True))
                else:
                    spelling = self._spell_pending()
            self.ids.extend(spelling or ())
            if not self.pending_bytes:
                self.alignment.append((self._followed, len(self.ids)))

    def _spell_pending(self, last: bool = False) -> tuple[int, ...]:
        """Drafter ids of the pending bytes. Half a character at the end stays pending, unless `last`."""
        spelled = self.map.drafter.spell(self.pending_bytes)
        if spelled is not None:
            self.pending_bytes = b""
            return spelled
        # bytes that are no character become lone surrogates
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        text = decoder.decode(self.pending_bytes, last)
        self.pending_bytes = decoder.getstate()[0]
        ids: list[int] = []
        for character in text:
            known = None if "\udc80" <= character <= "\udcff" else self.map.drafter.spell(character.encode())
            ids += self._unknown() if known is None else known
        return tuple(ids)

    def _unknown(self) -> tuple[int, ...]:
        self.unk_count += 1
        return self.map.drafter.roles.get("unknown", ())[:1]

    def spells(self, target_ids: Sequence[int]) -> bool:
        """Whether the invariant holds; checked in tests, and after each answer (`Pair.mismatches`)."""
        return self.map.drafter.text_bytes(self.ids) + self.pending_bytes == self.map.target.text_bytes(
            target_ids
        )

    def _begin(self, prompt: Sequence[int]) -> None:
        """Begin with the drafter's BOS token if the target's prompt has none."""
        begin = self.map.drafter.roles.get("begin", ())
        if begin and (not prompt or self.map.drafters[prompt[0]] not in begin):
            self.ids.append(begin[0])

    def _translate(self, target_ids: Sequence[int]) -> None:
        """Translate a prompt: text by the drafter's tokenizer, special tokens by the vocabulary map."""
        for is_text, group in itertools.groupby(
            target_ids, key=lambda target_id: bool(self.map.target.writes(target_id))
        ):
            run = [*group]
            ids = self.map.drafter.encode(self.map.target.text_bytes(run)) if is_text else None
            if ids is None:
                self.follow(run)
                continue
            self.ids.extend(ids)
            self._followed += len(run)
            self.alignment.append((self._followed, len(self.ids)))

    def _slide(self) -> None:
        """Keep the newest half window of ids, which the next pass reads again."""
        self._ahead = None
        self._dropped = max(0, len(self.ids) - self.cache.max_positions // 2)
        self.cache.trim(0)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length
