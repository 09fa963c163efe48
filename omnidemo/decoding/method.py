"""The base of every decoding method: `draft` and `accept`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from omnidemo.decoding.backend import Acceptance, Draft, RoundPlan, Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.randomness import Randomness
from omnidemo.decoding.sampling import Logits, Probs, chosen, highest_each
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


class Method:
    """A decoding method. A subclass has `draft`, and `residual` for what replaces a rejected slot."""

    name: ClassVar[str]
    title: ClassVar[str]
    lossless: ClassVar[bool]
    # whether target and drafter share a seed's Gumbel noise, which then fixes the text
    coupled: ClassVar[bool] = True
    help: ClassVar[str]
    drafts: ClassVar[bool] = True  # whether it uses the drafter
    copies: ClassVar[bool] = True  # whether it takes drafts from memory

    @classmethod
    def refusal(cls, vocabulary: VocabularyMap) -> str | None:
        """Why this method cannot serve a pair; None where it can."""
        return None

    def draft(self, context: RoundContext, budget: int) -> Draft:
        """Draft target tokens from at most `budget` drafter tokens."""
        raise NotImplementedError

    def propose(self, context: RoundContext, plan: RoundPlan) -> Draft:
        """A round's draft: ids from memory, then the drafter's continuation of them. If the drafter cannot
        spell them, they stand alone."""
        draft = Draft([*plan.copied])
        if plan.draft_length and _spelled(context, draft.slots):
            context.lead = len(draft.slots)
            made = self.draft(context, plan.draft_length)
            context.lead, draft = 0, Draft(draft.slots + made.slots, made.drafted)
        del draft.slots[plan.max_tokens - 1 :]  # one drafter token may spell several of the target's
        return draft

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        """A token from norm(p − A), where `probs` [T] is p and A the accepted mass of a slot that the drafter
        drew."""
        raise NotImplementedError

    def _correction(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        """A token in place of a rejected one. A copied token is a point mass, so its whole p was accepted."""
        if slot.match is None:
            return self.residual(context, slot, probs)
        rest = probs.copy()
        rest[slot.target_id] = 0.0
        return context.rng.draw(rest / rest.sum())

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        """Accept each slot with min(1, p/`slot.q`), correct the first rejection, add a bonus token after full
        acceptance. With shared noise and at temperature 0 accept the slots that are the target's own tokens.

        `logits` [m + 1, T]: the target's rows at the draft tokens and after them.
        """
        if context.sampling.greedy:
            return self.accept_known(
                context, draft, context.stats.best() if context.stats is not None else highest_each(logits)
            )
        if context.rng.shared:
            return self._accept_equal(context, draft, logits)
        proposal = draft.proposal
        distribution, p = target_rows(context, proposal, logits)
        accepts: list[float] = []
        for index, slot in enumerate(draft.slots):
            if slot.target_id < 0:
                return Acceptance(index, self._correction(context, slot, distribution(index)), True, accepts)
            accepts.append(min(1.0, p[index] / slot.q) if slot.q > 0 else float(p[index] > 0))
            if not context.rng.accept(accepts[-1]):
                return Acceptance(index, self._correction(context, slot, distribution(index)), True, accepts)
            if slot.target_id in context.end_ids:
                return Acceptance(index + 1, None, False, accepts)
        return Acceptance(
            len(proposal), context.rng.draw(distribution(-1), context.place(len(proposal))), False, accepts
        )

    def _accept_equal(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        """Accept each slot that the target draws itself. The acceptance probability is 1 or 0 with shared
        noise, else p."""
        distribution: Callable[[int], Probs]
        if context.stats is not None and context.sampling.plain:
            distribution = context.stats.probs
        else:
            rows = context.sampling.probs(logits)
            distribution = rows.__getitem__
        accepts: list[float] = []
        for index in range(len(draft.slots) + 1):
            probs = distribution(index)
            token = context.rng.draw(probs, context.place(index))
            if index == len(draft.slots):
                break
            slot = draft.slots[index]
            if slot.target_id >= 0:
                accepts.append(
                    float(token == slot.target_id) if context.rng.shared else float(probs[slot.target_id])
                )
            if token != slot.target_id:
                return Acceptance(index, token, True, accepts)
            if token in context.end_ids:
                return Acceptance(index + 1, None, False, accepts)
        return Acceptance(len(draft.slots), token, False, accepts)

    def accept_known(self, context: RoundContext, draft: Draft, best: Sequence[int]) -> Acceptance:
        """Accept each slot that equals the target's own id in `best` [m + 1], as at temperature 0."""
        accepts: list[float] = []
        for index, slot in enumerate(draft.slots):
            if slot.target_id >= 0:
                accepts.append(float(slot.target_id == best[index]))
            if slot.target_id != best[index]:
                return Acceptance(index, best[index], True, accepts)
            if slot.target_id in context.end_ids:
                return Acceptance(index + 1, None, False, accepts)
        return Acceptance(len(draft.slots), best[-1], False, accepts)


def _spelled(context: RoundContext, slots: Sequence[Slot]) -> bool:
    """Push the drafter's spelling of copied slots, so that it can continue them. False if it cannot spell
    them, or if nothing may follow."""
    spellings = [context.map.spelling(slot.target_id) for slot in slots]
    if not all(spellings) or (slots and slots[-1].target_id in context.end_ids):
        return False
    for slot, spelling in zip(slots, spellings, strict=True):
        slot.base, slot.draft_ids = len(context.drafter.ids), tuple(spelling or ())
        context.drafter.push(*slot.draft_ids)
    return True


def target_rows(
    context: RoundContext, proposal: Sequence[int], logits: Logits
) -> tuple[Callable[[int], Probs], list[float]]:
    """(the target's distribution [T] of a row, computed when called; its probability of each draft token)."""
    if context.stats is not None and context.sampling.plain:
        return context.stats.probs, context.stats.tempered_probs(proposal)
    rows = context.sampling.probs(logits)
    return rows.__getitem__, chosen(rows, proposal)


def slot_of(
    target_id: int,
    start: int,
    drawn: list[int],
    q: list[float],
    distributions: list[Probs],
    first: int,
    stop: int,
) -> Slot:
    """The slot spelled by the tokens `first` … `stop` of `RoundContext.draw_freely`, which began at `start`
    drafter ids."""
    drafter_ids = tuple(drawn[first:stop])
    paths = {drafter_ids[:depth]: distributions[first + depth] for depth in range(len(drafter_ids))}
    draft_probs = q[first:stop]
    return Slot(
        target_id,
        drafter_ids,
        math.prod(draft_probs),
        start + first,
        distributions=paths,
        draft_probs=draft_probs,
    )


def subtract(rng: Randomness, probs: Probs, accepted: Probs) -> int:
    """A draw from norm(max(0, probs − accepted)); from `probs` where rounding leaves nothing."""
    rest = np.maximum(probs - accepted, 0.0)
    mass = float(rest.sum())
    return rng.draw(rest / mass) if mass > 0 else rng.draw(probs)
