"""String-level exact match (Timor et al., algorithm 2, SLEM; `transformers`' universal assisted generation)."""

from __future__ import annotations

import math
from itertools import accumulate

from omnidemo.core.sampling import Law
from omnidemo.methods.base import Draft, Hand, Method, Settlement, Slot


class StringExactMatch(Method):
    """Draft freely, spell the draft's text in the target's tokens, and keep those that the target draws itself.

    Lossless for any pair: every emitted token is drawn from p. Expected acceptance Σ p·q' (that two draws agree), so it falls with the
    temperature. Cost: one drafter pass per token, and a call of the target's tokenizer per round.
    """

    name = "string-exact-match"
    title = "String match (SLEM)"
    lossless = True
    help = "The draft is spelled again in the target's tokens and kept as far as the target writes the same (Timor et al. 2025). Exact."

    def draft(self, hand: Hand, budget: int) -> Draft:
        start = len(hand.drafter.ids)
        drawn, q, laws = hand.draw_freely(budget)
        if not drawn:
            return Draft()
        last = hand.map.targets[drawn[-1]]
        end = last if last in hand.end_ids else -1
        texts = [hand.map.drafter.writes(token) for token in drawn]
        ends = dict(zip(accumulate(map(len, texts)), range(1, len(drawn) + 1), strict=True))  # bytes → drafter tokens up to there
        draft = Draft(drafted=len(drawn))
        position = written = 0
        spelled = hand.map.target.spell(b"".join(texts))
        if spelled is None:
            return draft
        for target_id in spelled:
            written += len(hand.map.target.writes(target_id))
            # Where both spellings end on the same byte, the drafter tokens since they last did belong to this slot.
            stop = ends.get(written, position) if end < 0 else min(ends.get(written, position), len(drawn) - 1)
            draft.slots.append(_slot(target_id, start, drawn, q, laws, position, stop))
            position = stop
        if end >= 0:
            draft.slots.append(_slot(end, start, drawn, q, laws, len(drawn) - 1, len(drawn)))
        return draft

    def settle(self, hand: Hand, draft: Draft, logits: Law) -> Settlement:
        if hand.warp.greedy:
            return super().settle(hand, draft, logits)
        laws = hand.warp.law(logits)
        accepts: list[float] = []
        for index, slot in enumerate(draft.slots):
            accepts.append(float(laws[index][slot.target_id]))
            token = hand.chooser.draw(laws[index])
            if token != slot.target_id:
                return Settlement(index, token, True, accepts)
            if token in hand.end_ids:
                return Settlement(index + 1, None, False, accepts)
        return Settlement(len(draft.slots), hand.chooser.draw(laws[-1]), False, accepts)


def _slot(target_id: int, start: int, drawn: list[int], q: list[float], laws: list[Law], first: int, stop: int) -> Slot:
    pieces = tuple(drawn[first:stop])
    paths = {pieces[:depth]: laws[first + depth] for depth in range(len(pieces))}
    sure = q[first:stop]
    return Slot(target_id, pieces, math.prod(sure), start + first, laws=paths, sure=sure)
