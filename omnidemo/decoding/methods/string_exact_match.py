"""String-level exact match (Timor et al., algorithm 2, SLEM; `transformers`' universal assisted
generation)."""

from __future__ import annotations

from itertools import accumulate

from omnidemo.decoding.backend import Acceptance, Draft
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import Method, slot_of
from omnidemo.decoding.sampling import Logits


class StringExactMatch(Method):
    """Draft freely, spell the draft's text in the target's tokens, and keep those that the target draws
    itself.

    Lossless for any pair: every emitted token is drawn from p. Expected acceptance Σ p·q' (that two draws
    agree), so it falls with the temperature. Cost: one drafter pass per token, and a call of the target's
    tokenizer per round.
    """

    name = "string-exact-match"
    title = "String match (SLEM)"
    lossless = True
    help = (
        "The draft is spelled again in the target's tokens and kept as far as the target writes the same"
        " (Timor et al. 2025). Exact."
    )

    def draft(self, context: RoundContext, budget: int) -> Draft:
        start = len(context.drafter.ids)
        drawn, q, distributions = context.draw_freely(budget)
        if not drawn:
            return Draft()
        last = context.map.targets[drawn[-1]]
        end = last if last in context.end_ids else -1
        texts = [context.map.drafter.writes(token) for token in drawn]
        # bytes → drafter tokens up to there
        ends = dict(zip(accumulate(map(len, texts)), range(1, len(drawn) + 1), strict=True))
        draft = Draft(drafted=len(drawn))
        position = written = 0
        spelled = context.map.target.spell(b"".join(texts))
        if spelled is None:
            return draft
        for target_id in spelled:
            written += len(context.map.target.writes(target_id))
            # Where both spellings end on the same byte, the drafter tokens since they last did belong to this
            # slot.
            stop = (
                ends.get(written, position) if end < 0 else min(ends.get(written, position), len(drawn) - 1)
            )
            draft.slots.append(slot_of(target_id, start, drawn, q, distributions, position, stop))
            position = stop
        if end >= 0:
            draft.slots.append(slot_of(end, start, drawn, q, distributions, len(drawn) - 1, len(drawn)))
        return draft

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        if context.sampling.greedy:
            return super().accept(context, draft, logits)
        return self._accept_equal(context, draft, logits)
