"""The seam: what one round is given, what comes of it, and who may make it.

A round drafts, verifies and accepts. `decoding.round.reference_round` is what that means, written plainly. A `Backend` makes the same round
by other means, or declines, and then nothing has changed. How many rounds it makes in one call, and what it keeps of them, is its own
matter. A single pass made faster is not its matter but that of a `KVCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from omnidemo.decoding.rollout import ProposalRule
from omnidemo.decoding.row_ops import RowStats
from omnidemo.decoding.sampling import Law

if TYPE_CHECKING:
    from omnidemo.decoding.round import RoundContext

Clock = Callable[[], float]  # seconds from some moment on


@dataclass(slots=True, eq=False)
class Pass:
    """What a model says after the last tokens of a pass: the `logits` [rows, V] in float32, of each row its statistics where they were
    asked for and are known, and what the output layer read [rows, H], where the model shows it."""

    logits: Law
    stats: RowStats | None = None
    hidden: Any = None


class KVCache(Protocol):
    """A model's key-value cache for one context. Two verbs, and nothing that one cache may have and another not."""

    length: int  # tokens that count as read; a backend that has read further tells so by a larger number
    limit: int  # the most positions that the model can hold

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """Read `ids` (at least one) and return what is said after each of the `last` of them. `stats_at`: a temperature at which their
        statistics are of use. ValueError for ids that the model does not have, and where the window is full."""
        ...

    def trim(self, length: int) -> int:
        """Forget all positions from `length` on; returns how many are kept. Fewer than that where a model cannot go back so exactly: what
        is missing is read again."""
        ...


@dataclass(slots=True)
class Slot:
    """One proposed target token. `target_id` is −1 for ∅: the drafter drew, but nothing complete came of it.

    `pieces` are the drafter ids that spell the token; none where its end falls inside a drafter token, whose ids then belong to a
    later slot. `q` is the probability (or an upper bound of it) with which the slot proposes the token, above temperature 0; `base` the
    number of drafter ids before the slot; `laws` the drafter's laws [D] along the paths that have been looked at, by path; `sure` the
    drafter's probability of each piece, nothing where the token is spelled otherwise than it was drawn.
    """

    target_id: int
    pieces: tuple[int, ...]
    q: float
    base: int
    limit: int = 0
    laws: dict[tuple[int, ...], Law] = field(default_factory=dict)
    sure: Sequence[float] = ()


@dataclass(slots=True)
class Draft:
    """What is proposed, and how many drafter tokens were drawn for it."""

    slots: list[Slot] = field(default_factory=list)
    drafted: int = 0

    @property
    def proposal(self) -> list[int]:
        return [slot.target_id for slot in self.slots if slot.target_id >= 0]


@dataclass(slots=True)
class Acceptance:
    """`accepted` slots were kept; `token` is what the target wrote after them, None after an accepted end token.

    `accepts` holds the acceptance probability of each judged slot; `rejected` tells a correction from a bonus token.
    """

    accepted: int
    token: int | None
    rejected: bool
    accepts: list[float]


@dataclass(slots=True, eq=False)
class RoundPlan:
    """What a round may be. `draft_length`: drafter tokens that its draft may use, 0 for plain decoding. `max_tokens`: target tokens that
    may be emitted, by the limit of the answer and the window. `lookahead`: how many rounds after it will probably be planned alike; 0 for
    the first round of an answer, whose token waits for no other."""

    draft_length: int
    max_tokens: int
    lookahead: int


class StageSeconds(NamedTuple):
    """What a round spent on drafting, on verifying, and on accepting and correcting. A backend charges to each round what was done for
    it, whenever that was, and work that was done in vain to the round that found it so."""

    draft: float = 0.0
    verify: float = 0.0
    accept: float = 0.0


@dataclass(slots=True, eq=False)
class RoundResult:
    """What came of a round. Both contexts have read what they need to take it in by `DecodingState.commit`.

    The first `accepted` of its `slots` stay; `next_token` is what the target writes after them, None after an accepted end. `rejected`: it
    is a correction and no bonus. `accept_probs`: of each slot that was judged. `target_probs`: the target's probability of each proposed
    token, then of the next one, before temperature. `drafted`: drafter tokens that were drawn. `logits` [proposed + 1 or more, V]: the
    target's, before penalties.
    """

    slots: list[Slot]
    accepted: int
    next_token: int | None
    rejected: bool
    accept_probs: list[float]
    target_probs: list[float]
    drafted: int
    logits: Law
    seconds: StageSeconds


@dataclass(slots=True)
class StateKey:
    """Everything that a round depends on besides its plan: a round made early is the round that is wanted if and only if these are equal.

    Ids on both sides with the last one, how many random numbers were used, the drafter's weights, how drafts are drawn (a new n-gram makes
    a new rule), and how many passes others have made through the two caches.
    """

    target_len: int
    draft_len: int
    last_id: int
    rng_position: int
    weights: int
    rule: ProposalRule | None
    cache_epoch: tuple[int, int]


class DecodingMethod(Protocol):
    """What a round asks of a method; see `omnidemo.methods`."""

    name: ClassVar[str]
    drafts: ClassVar[bool]

    def draft(self, context: RoundContext, budget: int) -> Draft:
        """Propose target tokens for at most `budget` drafter tokens."""
        ...

    def accept(self, context: RoundContext, draft: Draft, logits: Law) -> Acceptance:
        """Judge a draft by the target's rows [proposed + 1, V]."""
        ...

    def proposal_rule(self, context: RoundContext) -> ProposalRule | None:
        """Its drafting as data that compiled code can follow; None where it cannot be put so."""
        ...


class Backend(Protocol):
    """Makes rounds of one generation."""

    def run_round(self, context: RoundContext, method: DecodingMethod, plan: RoundPlan) -> RoundResult | None:
        """The next round. None where it does not serve such a round: then nothing has changed."""
        ...
