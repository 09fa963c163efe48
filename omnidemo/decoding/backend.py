"""The interface between the engine and faster code: the input and result of one round, and two protocols.

`make_round` in `engine.py` defines a round. A `Backend` may draw or judge in its place, with equal results;
where it returns None, the reference does. A faster forward pass is a `KVCache`.
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

Clock = Callable[[], float]  # seconds


@dataclass(slots=True, eq=False)
class Pass:
    """What a forward pass returns for its last rows, as numpy arrays on the host: `logits` [rows, V] in
    float32; row statistics, if requested and supported; the output layer's input [rows or more, H], if the
    model returns it."""

    logits: Logits
    stats: RowStats | None = None
    hidden: Any = None


class KVCache(Protocol):
    """A model with its key-value cache for one context: two verbs."""

    length: int  # tokens that count as read; a rollout that has read further sets it
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
        """Drop all positions from `length` on; returns the positions kept. A model that cannot be rolled back
        exactly keeps fewer, and the caller reads the rest again."""
        ...


@dataclass(slots=True)
class Slot:
    """One draft token: a target id, and the drafter ids that spell it."""

    target_id: int  # −1: what the drafter drew completes no target token
    # () if no drafter token ends on the target token's last byte: then the next slot that has ids has them
    draft_ids: tuple[int, ...]
    q: float  # the probability of proposing the token, or an upper bound of it; unused at temperature 0
    base: int  # drafter ids before the slot
    limit: int = 0  # most drafter tokens of the slot
    distributions: dict[tuple[int, ...], Probs] = field(
        default_factory=dict
    )  # the drafter's distributions [D] after `base`, by path of drafter ids
    draft_probs: Sequence[float] = ()  # the drafter's, of each of `draft_ids`; () if it did not draw them
    match: Match | None = None  # where a copied token comes from (q = 1); None if the drafter proposed it


@dataclass(slots=True)
class Draft:
    """What a method proposes, and how many drafter tokens it drew for that, discarded ones included. Without
    slots the round is plain decoding."""

    slots: list[Slot] = field(default_factory=list)
    drafted: int = 0

    @property
    def proposal(self) -> list[int]:
        return [slot.target_id for slot in self.slots if slot.target_id >= 0]


@dataclass(slots=True)
class Acceptance:
    """What became of a draft."""

    accepted: int  # the first so many slots are kept
    token: int | None  # the target's own token after them; None after an accepted EOS token
    rejected: bool  # `token` is a correction, not a bonus token
    accepts: list[float]  # the acceptance probability of each judged slot
    # of a rule that is not lossless: total variation to the target's distribution, summed over judged
    # positions
    variation: float | None = None


@dataclass(slots=True, eq=False)
class RoundPlan:
    """What a round may draft. Neither copied slots nor drafter tokens: plain decoding."""

    draft_length: int  # most drafter tokens, after the copied slots
    max_tokens: int  # most target tokens, by the answer's limit and the window
    copied: list[Slot] = field(default_factory=list)  # from memory; proposed first


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
    next_token: int | None  # the target's own token after them; None after an accepted EOS token
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
        """The emitted target ids."""
        own = [] if self.next_token is None else [self.next_token]
        return [*(slot.target_id for slot in self.slots[: self.accepted]), *own]


class Draws(Protocol):
    """Draws that a backend makes in one rollout, with the random numbers that the reference would use."""

    def fill(
        self, context: RoundContext, rule: Callable[[RoundContext], ProposalRule], budget: int, index: int
    ) -> None:
        """Called between two slots: those from `index` on are drawn by this rule, for at most `budget`
        drafter tokens."""
        ...

    def pop(self, context: RoundContext) -> tuple[int, float, Probs] | None:
        """The next draw, as `RoundContext.draw` returns it, with its random number used up; None if it was
        not made."""
        ...


# An acceptance; the target's probability of each draft token and of the last emitted one
Judged = tuple[Acceptance, list[float]]


class Backend(Protocol):
    """Computes parts of a generation's rounds. None: nothing has changed, and the reference does the part."""

    def draws(self, context: RoundContext, plan: RoundPlan) -> Draws | None:
        """The draws of a round that drafts."""
        ...

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        """Judge a draft, which may be empty, by the target's pass `read`, in place of the method. With a
        `context.constraint` mask the rows first."""
        ...
