"""Block verification (Sun et al., 2403.10444): judges the draft as a whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnidemo.decoding.backend import Acceptance, Draft, Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import target_rows
from omnidemo.decoding.methods.token_intersection import TokenIntersection
from omnidemo.decoding.sampling import Logits, Probs


class BlockVerification(TokenIntersection):
    """Drafts x₁…x_γ as token intersection does, of one vocabulary all that the drafter has. With p and q the
    rows after x≤ᵢ, this is the rule:

        P₀ = 1, Pᵢ = min(1, Pᵢ₋₁ · p(xᵢ)/q(xᵢ)); for i < γ: Zᵢ = Σₓ max(0, Pᵢ·p(x) − q(x)), hᵢ = Zᵢ / (Zᵢ + 1
        − Pᵢ); h_γ = P_γ.

    Each i succeeds with hᵢ by itself, and the last that does is the length τ (0 where none does); then comes
    a token from norm(max(0, P_τ·p − q)), after the whole draft from p. Lossless, and τ is on average at least
    what judging token by token accepts. γ may depend on the tokens drafted so far, as with a draft policy:
    whether a position is the last is known from what stands up to it.

    A copied draft proposes each token with q = 1. There Pᵢ is the probability of what has been copied, which
    no rule can accept more often than token by token does, so it is judged so. At temperature 0 nothing
    differs. Cost: γ − 1 sums over the vocabulary.
    """

    name = "block-verification"
    title = "Block verification"
    coupled = False
    help = (
        "Judges a draft as a whole (Sun et al. 2024), so that above temperature 0 no fewer guesses are kept"
        " than token by token. Exact at every temperature; a seed repeats its text, which is not that of the"
        " other methods."
    )

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        if context.sampling.greedy or context.rng.shared or draft.slots[0].match is not None:
            return super().accept(context, draft, logits)
        row, p = target_rows(context, draft.proposal, logits)
        joint = [1.0]
        for slot, probability in zip(draft.slots, p, strict=True):
            joint.append(min(1.0, joint[-1] * probability / slot.q))
        successes = [
            1.0 if at >= 1.0 else left / (left + 1.0 - at)
            for at, left in self._left(context, draft, row, joint)
        ]
        successes.append(joint[-1])
        length = next(
            (count for count in range(len(successes), 0, -1) if context.rng.accept(successes[count - 1])), 0
        )
        accepts = one_by_one(successes)[: length + 1]
        if length == len(draft.slots):
            ended = draft.slots[-1].target_id in context.end_ids
            return Acceptance(
                length,
                None if ended else context.rng.draw(row(length), context.place(length)),
                False,
                accepts,
            )
        rest = remaining(context, draft.slots[length], row(length), joint[length])
        mass = float(rest.sum())
        return Acceptance(length, context.rng.draw(rest / mass if mass > 0.0 else row(length)), True, accepts)

    def _left(
        self, context: RoundContext, draft: Draft, row: Callable[[int], Probs], joint: list[float]
    ) -> list[tuple[float, float]]:
        """(Pᵢ, Zᵢ) of every position but the last."""
        inner = list(enumerate(draft.slots))[1:]
        if not inner:
            return []
        sums = [float(remaining(context, slot, row(place), joint[place]).sum()) for place, slot in inner]
        return list(zip(joint[1:-1], sums, strict=True))


def remaining(context: RoundContext, slot: Slot, probs: Probs, joint: float) -> Probs:
    """max(0, P·p − q) [T], where `probs` [T] is p and the slot was drawn from q over the tokens that both
    vocabularies have."""
    rest = probs * joint
    rest[context.map.mapped_targets] -= slot.distributions[()][context.map.mapped_drafters]
    return np.maximum(rest, 0.0)


def one_by_one(successes: list[float]) -> list[float]:
    """The probability that each position is kept if the one before it is; the length is the last position
    that succeeds."""
    kept, fails = [], 1.0
    for success in reversed(successes):
        fails *= 1.0 - success
        kept.append(1.0 - fails)
    kept.reverse()
    return [now / before if before > 0.0 else 0.0 for before, now in zip([1.0, *kept], kept, strict=False)]
