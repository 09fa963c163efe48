"""N-gram merging that is lossless at every temperature: a slot is a walk in the trie of n-grams."""

from __future__ import annotations

from functools import partial

import numpy as np

from omnidemo.decoding.backend import Draft, Slot
from omnidemo.decoding.engine import NotFinite, RoundContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.methods.ngram_residual import Path, Residual
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.row_ops import rest_of
from omnidemo.decoding.sampling import Logits, Probs, total
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import logit_mask


class NgramExact(Method):
    """Draw drafter tokens while the path can still become an n-gram; propose the longest complete node on it.

    With Q̄(v) = Π q(gⱼ) along the path of node v and f(v) = P(the walk goes on from v to a longer complete
    node), the slot proposes v with probability Q(v) = Q̄(v)·(1 − f(v)). It is accepted with min(1, p/B(v)),
    where the bound B subtracts only the part of f that needs no further drafter pass, the complete children:
    B(v) = Q̄(v)·(1 − Σ q(complete children)) ≥ Q(v).

    Lossless at every temperature. Expected acceptance Σ Q(v)·min(1, p/B(v)) ≤ Σ min(p, Q). Cost: one drafter
    pass per drawn token; a rejection above temperature 0 may add a few for the residual.
    """

    name = "ngram-exact"
    title = "n-gram merge, exact (ours)"
    lossless = True
    help = (
        "Merges drafter tokens like OmniDraft, but accepts and corrects with the right probabilities: exact"
        " at every temperature."
    )

    def __init__(self, overrun: int = 2, attempts: int = 1024) -> None:
        self.overrun = overrun  # drafter tokens by which an unfinished n-gram may exceed the budget
        # residual draws from p, microseconds each, before drafter passes find closer bounds
        self.attempts = attempts

    def ngrams(self, context: RoundContext) -> NgramCache:
        """The n-grams that may be proposed."""
        return context.ngrams

    def draft(self, context: RoundContext, budget: int) -> Draft:
        draft = Draft()
        left = budget
        # proposals that could have become longer, with the complete children they had
        open_slots: list[tuple[Slot, list[int]]] = []
        while left > 0:
            base, limit = len(context.drafter.ids), left + self.overrun
            context.begin_slot(self.drawing_rule, left, len(draft.slots))
            try:
                drawn, q, probs = context.draw(partial(self.first_mask, context, limit), len(draft.slots))
            except NotFinite:
                break
            slot = Slot(-1, (), 0.0, base, limit, {(): probs})
            draws, children = self._walk(context, slot, len(draft.slots), drawn, q)
            draft.drafted += 1 + draws
            if children:
                open_slots.append((slot, children))
            draft.slots.append(slot)
            # The slot's drafter ids begin the walk's path, so the drafter knows the distribution after them.
            context.drafter.rollback(base + len(slot.draft_ids))
            if slot.target_id < 0:
                break
            context.drafter.push(*slot.draft_ids[len(context.drafter.ids) - base :])
            left -= len(slot.draft_ids)
            if slot.target_id in context.end_ids or not context.keep_drafting(slot.base, slot.draft_probs):
                break
        for slot, children in open_slots:
            slot.q *= rest_of(total(slot.distributions[slot.draft_ids], children))
        return draft

    def drawing_rule(self, context: RoundContext) -> ProposalRule:
        """`draft` as data: `first` replaces `first_mask`, and the trie's table replaces `_walk`."""
        known, key = context.ngrams.derived, ("rule", self.overrun)
        if key not in known:
            first = np.where(context.map.draftable, np.int32(0), context.ngrams.nearest)
            inside = token_by_token(context.map.readable_logit_mask).inside
            known[key] = ProposalRule(first, inside, context.map.mapped, context.ngrams.trie, self.overrun)
        rule: ProposalRule = known[key]
        return rule

    def first_mask(self, context: RoundContext, limit: int) -> Logits:
        """The logit mask [D] of first draws: tokens that may be proposed directly, or that begin an n-gram of
        at most `limit` tokens."""
        known, key = context.ngrams.derived, ("mask", limit)
        if key not in known:
            known[key] = logit_mask(context.map.draftable | context.ngrams.begins(limit))
        mask: Logits = known[key]
        return mask

    def _walk(
        self, context: RoundContext, slot: Slot, index: int, first: int, q: float
    ) -> tuple[int, list[int]]:
        """Walk on from the first drawn token of the slot at place `index`, and fill the slot with the longest
        complete node. Returns (further draws, the complete children to which the walk could have gone on from
        there). The slot's q is Q̄."""
        path: Path = (first,)
        draft_probs = [q]
        draws = 0
        children: list[int] = []
        if context.map.targets[first] >= 0:
            slot.target_id = context.map.targets[first]
            slot.draft_ids = path
            slot.q = q
            slot.draft_probs = (q,)
        trie = self.ngrams(context).trie
        node = trie.child(0, first)
        while trie.can_continue(node, slot.limit):
            context.drafter.push(path[-1])
            try:
                completed = trie.completed(node, slot.limit) if context.rng.shared else None
                drawn, factor, slot.distributions[path] = context.draw(
                    context.readable_logit_mask, index, path, completed
                )
            # the walk ends here, for a correction too
            except NotFinite:
                break
            draws += 1
            if slot.draft_ids == path and not context.sampling.greedy and not context.rng.shared:
                children = trie.children(node, slot.limit, complete=True)
            node = trie.child(node, drawn)
            if trie.nearest(node) > slot.limit:
                break
            path, q = (*path, drawn), q * factor
            draft_probs.append(factor)
            if trie.spells(node) >= 0:
                slot.target_id = trie.spells(node)
                slot.draft_ids = path
                slot.q = q
                slot.draft_probs = tuple(draft_probs)
                children = []
        return draws, children

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        return Residual(context, self.ngrams(context), slot, probs).token(self.attempts)
