"""The seam between a generation and whatever computes its rounds faster: the input and the result of one
round, and the protocols.

A round drafts, verifies and accepts; `decoding.engine.make_round` defines it. A `Backend` makes the draws
of a draft or judges a proposal faster, with equal results; where it returns None, the reference does. A
faster pass belongs into a `KVCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from omnidemo.core.records import Match
from omnidemo.decoding.row_ops import RowStats
from omnidemo.decoding.sampling import Logits, Probs

if TYPE_CHECKING:
    from omnidemo.decoding.engine import RoundContext
    from omnidemo.decoding.method import Method
    from omnidemo.decoding.rollout import ProposalRule

Clock = Callable[[], float]  # seconds from some moment on


@dataclass(slots=True, eq=False)
class Pass:
    """The output of a forward pass for its last rows: `logits` [rows, V] in float32; row statistics, None
    where not requested or not supported; and the output layer's input [rows or more, H], None where the model
    does not return it. All are numpy arrays on the host."""

    logits: Logits
    stats: RowStats | None = None
    hidden: Any = None


class KVCache(Protocol):
    """A model's key-value cache for one context, with two verbs."""

    length: int  # tokens that count as read; a backend that has read further sets a larger number
    max_positions: int  # the most positions that the model can hold

    @property
    def nbytes(self) -> int:
        """Bytes of its keys and values, reserved ones included."""
        ...

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """Read `ids` (at least one) and return the rows after the last `last` of them. `stats_at`: the
        temperature of the row statistics, None for none. ValueError for ids outside the model's vocabulary,
        and where the window is full."""
        ...

    def trim(self, length: int) -> int:
        """Forget all positions from `length` on; returns the positions kept. A model that cannot go back
        exactly keeps fewer, and the caller reads the rest again."""
        ...


@dataclass(slots=True)
class Slot:
    """One proposed target token."""

    target_id: int  # −1: the drafter drew, but no complete target token came of it
    # Drafter ids that spell it; () where no drafter token ends on its last byte: then they are in the next
    # slot that has any.
    draft_ids: tuple[int, ...]
    # the probability with which the slot proposes the token, or an upper bound of it; unused at temperature 0
    q: float
    base: int  # drafter ids before the slot
    limit: int = 0  # drafter tokens that the slot may use
    distributions: dict[tuple[int, ...], Probs] = field(
        default_factory=dict
    )  # the drafter's distributions [D] after `base`, by path of drafter ids
    # the drafter's probability of each of `draft_ids`; () where it did not draw these
    draft_probs: Sequence[float] = ()
    # of a copied token, which is proposed with q = 1; None where the drafter proposed it
    match: Match | None = None


@dataclass(slots=True)
class Draft:
    """The proposal of a method, and the drafter tokens drawn for it, discarded ones included. Without slots
    the round's token is the target's own."""

    slots: list[Slot] = field(default_factory=list)
    drafted: int = 0

    @property
    def proposal(self) -> list[int]:
        return [slot.target_id for slot in self.slots if slot.target_id >= 0]


@dataclass(slots=True)
class Acceptance:
    """`accepted` slots are kept. `token` is the target's own token after them, None after an accepted end
    token. `accepts`: the acceptance probability of each judged slot. `rejected`: `token` is a correction, not
    a bonus token. `variation`: for a rule that is not lossless, the total variation between the law of each
    judged position and the target's, summed; None: not measured."""

    accepted: int
    token: int | None
    rejected: bool
    accepts: list[float]
    variation: float | None = None


@dataclass(slots=True, eq=False)
class RoundPlan:
    """The limits of a round. `copied`: slots from memory, which are proposed first. `draft_length`: drafter
    tokens that may be drafted after them, 0 for none; a round with neither is plain decoding. `max_tokens`:
    target tokens that may be emitted, by the answer's limit and the window."""

    draft_length: int
    max_tokens: int
    copied: list[Slot] = field(default_factory=list)


class StageSeconds(NamedTuple):
    """Seconds of a round by stage."""

    draft: float = 0.0
    verify: float = 0.0
    accept: float = 0.0


@dataclass(slots=True, eq=False)
class RoundResult:
    """The result of a round; `DecodingState.commit` applies it to both contexts."""

    slots: list[Slot]
    accepted: int  # the first so many slots are emitted
    next_token: int | None  # the target's own token after them; None after an accepted end token
    rejected: bool  # `next_token` is a correction and not a bonus token
    accept_probs: list[float]  # of each slot that was judged
    # the target's probability of each proposed token, then of `next_token`, before temperature
    target_probs: list[float]
    drafted: int  # drafter tokens that were drawn
    logits: Logits  # [proposed + 1 or more, T], the target's, before penalties
    seconds: StageSeconds
    variation: float | None = None  # as in `Acceptance`

    @property
    def ids(self) -> list[int]:
        """What is emitted."""
        own = [] if self.next_token is None else [self.next_token]
        return [*(slot.target_id for slot in self.slots[: self.accepted]), *own]


class Draws(Protocol):
    """Draws of a round that a backend makes early, with the reference's random numbers."""

    def fill(
        self, context: RoundContext, rule: Callable[[RoundContext], ProposalRule], budget: int, index: int
    ) -> None:
        """Called between two slots: the slots from place `index` on are drawn by this rule, for at most
        `budget` drafter tokens."""
        ...

    def pop(self, context: RoundContext) -> tuple[int, float, Probs] | None:
        """The next draw in the form of `RoundContext.draw`, with its random number used up; None where it was
        not made."""
        ...


# An acceptance, and the target's probability of each proposed token and of the last one that was written
Judged = tuple[Acceptance, list[float]]


class Backend(Protocol):
    """Computes parts of the rounds of one generation. None: the reference does, and nothing has changed."""

    def draws(self, context: RoundContext, plan: RoundPlan) -> Draws | None:
        """The early draws of a round that drafts."""
        ...

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        """Judge a proposal, of which there may be nothing, by the target's pass, in place of the method.
        With a `context.constraint` the rows have to be masked first."""
        ...
