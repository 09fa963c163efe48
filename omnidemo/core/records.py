"""Plain, picklable records that travel between packages. They are never changed. Records of every round are
not frozen dataclasses, which take three times as long to make (10 µs after a pass)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from omnidemo.core.offers import Copies, Offer

T = TypeVar("T")
# Where an emitted (or discarded) target token came from:
#   direct     proposed as one drafter token, by the direct vocabulary map, and accepted
#   ngram      proposed as several drafter tokens, by the n-gram cache (the string methods: by their text)
#   copied     proposed from memory (`Token.match`), and accepted
#   forced     proposed because the answer's form leaves no other token, and accepted
#   corrected  written by the target after it rejected the proposal (or the drafter had nothing to propose)
#   bonus      written by the target after it accepted everything that was proposed
#   plain      written by the target without any draft (`autoregressive`, or a round with draft length 0)
Source = Literal["direct", "ngram", "copied", "forced", "corrected", "bonus", "plain"]
PROPOSED: tuple[Source, ...] = ("direct", "ngram", "copied", "forced")  # the others are of the target alone
FinishReason = Literal["end", "stop", "length", "context", "cancelled"]
LONG_READING = 1.5  # seconds of prefill above which progress is shown


class Match(NamedTuple):
    """Why a token was copied: the newest `length` tokens also stand in the `origin` (the prompt, the answer
    so far, or an earlier answer), followed by this token; "phrase": it has often followed them in what the
    target wrote long ago. The origin "form" has length 0: the answer's form leaves no other token."""

    length: int
    origin: Literal["prompt", "answer", "earlier", "phrase", "form"]


@dataclass(slots=True)  # not frozen: see above
class Token:
    """One target token: emitted, or proposed and discarded.

    `text` is what the token adds to the decoded stream; it is empty while a UTF-8 character is incomplete, so
    the joined texts of all emitted tokens are the text of the generation. `p` is the target's probability of
    the token at temperature 1. `q` is the proposal's: an upper bound where the method uses one, at
    temperature 0 the drafter's at temperature 1. `accept` is the token's acceptance probability. `q` and
    `accept` are None for tokens that were not proposed. `pieces` are the drafter ids that spell the token:
    one for the source "direct", several for "ngram"; none where a string method has no drafter token that
    ends on the token's last byte. `match`: of a copied or forced token, which was not drawn and has `q` 1.
    """

    id: int
    text: str
    source: Source
    p: float
    q: float | None = None
    accept: float | None = None
    pieces: tuple[int, ...] = ()
    piece_texts: tuple[str, ...] = ()
    match: Match | None = None


STAGES = ("draft", "verify", "settle", "other")  # keys of `Round.seconds`, beside "total"


@dataclass(slots=True)  # not frozen: see above
class Round:
    """One round: draft → translate → verify → correct.

    `tokens` were emitted, in order. `discarded` were proposed and not emitted: the rejected one first, then
    those that were never judged; their `source` says how they were proposed. `drafted` counts all drafter
    tokens drawn. `ngram_hits` counts accepted proposals with the source "ngram". `seconds` splits the wall
    time: draft (with planning, draws and translation), verify (the target's pass), settle (accepting and
    committing), other; `total` is their sum. `inserts` are new n-grams: (target id, drafter ids). `proposed`,
    `accepted` and `judged` include copies and forced tokens. `variation`: as in `Acceptance`. `offers`: the
    choices of the policies "cost" and "chance". `changed`: tokens where the answer's form ruled out the
    target's likeliest one.
    """

    index: int
    tokens: tuple[Token, ...]
    discarded: tuple[Token, ...]
    draft_length: int
    drafted: int
    proposed: int
    accepted: int
    judged: int
    ngram_hits: int
    seconds: Mapping[str, float]
    inserts: tuple[tuple[int, tuple[int, ...]], ...] = ()
    finish_reason: FinishReason | None = None
    variation: float | None = None
    offers: tuple[Offer, ...] = ()
    changed: int = 0

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def copies(self) -> Copies:
        accepted = sum(token.source == "copied" for token in self.tokens)
        lost = [token.source == "copied" for token in self.discarded]
        return Copies(
            accepted + sum(lost), accepted, accepted + sum(lost[: max(0, self.judged - self.accepted)])
        )

    @property
    def forced(self) -> int:
        """Tokens that the answer's form forced; each is accepted."""
        return sum(token.source == "forced" for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Reading:
    """The progress of prefill: `read` of `total` tokens, after `kept` tokens from an earlier answer."""

    read: int
    total: int
    kept: int

    def is_long(self, seconds: float) -> bool:
        """Whether the whole prefill takes LONG_READING, by the seconds so far."""
        return self.read > 0 and seconds * self.total >= LONG_READING * self.read


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished (or cancelled) answer. `metrics` has the names of `metrics.py`. Prompt and answer take
    `context_tokens` of the `context_limit` tokens of the target's window (0: unknown)."""

    token_ids: tuple[int, ...]
    text: str
    rounds: tuple[Round, ...]
    metrics: Mapping[str, float | None]
    finish_reason: FinishReason
    method: str
    prompt_tokens: int
    seed: int | None = None
    adapter_version: int = 0  # 0: the base drafter
    cache_entries: int = 0
    domain: str = "default"  # the adapter line that drafted
    key: str = ""  # by which `Pair.agreement` finds what is measured of it later
    context_limit: int = 0
    dropped_messages: int = 0  # of the chat, its oldest, which the target no longer read
    # at its beginning: "none" by its method, "off" by its length, "alone" by the policy "cost"
    guessing: Literal["on", "none", "off", "alone"] = "on"
    # the conditions of the target's numbers, see `PairPool.conditions`
    conditions: str = ""
    # The conditions of the guesses at its beginning: drafter, adapter version, n-grams and earlier answers,
    # each with a digest, and the draft policy.
    guesses: str = ""
    topic: str = ""  # of the prompt, where a router knows; why it is that
    topic_why: str = ""

    @property
    def context_tokens(self) -> int:
        return self.prompt_tokens + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a drafter and its target agree on a text, by the drafter's own distribution, whatever draft
    policy and temperature.

    `overlap` is the mean of Σ min(p, q) over all `positions`, 0 for those that the drafter cannot spell;
    `same_first` is the fraction of positions with the same most probable token. Both are lower bounds where
    the kept tokens do not cover p.
    """

    overlap: float
    same_first: float
    positions: int


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What an answer leaves for distillation, on the CPU; n answer positions.

    The drafter read `drafter_ids` [length]; the target token at position i is spelled by
    `drafter_ids[starts[i] : starts[i] + lengths[i]]` (length 1: direct map; ≥ 2: n-gram; 0: cannot be
    spelled). `accepted[i]`: whether it was an accepted proposal. `top_ids`/`top_p` [n, K] are the drafter ids
    and raw target probabilities (before temperature and top-p) of the K most probable directly mapped tokens;
    1 − Σ top_p is the rest. `p` [n] is the raw probability of the emitted token. `copied` [n]: which accepted
    tokens were copied, not drafted; None: none. `first_ids`/`first_p` [n, F]: drafter ids (−1: padding), the
    most probable first, and the raw probability of all tokens whose spelling begins with each, n-grams
    included; None: not kept.
    """

    drafter_ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    accepted: np.ndarray
    p: np.ndarray
    top_ids: np.ndarray
    top_p: np.ndarray
    temperature: float = 0.0  # of the request
    domain: str = "default"  # the adapter line that drafted, and that learns from it
    version: int = 0  # of that line, when the answer began
    key: str = ""  # of the answer's `Generation`
    copied: np.ndarray | None = None
    first_ids: np.ndarray | None = None
    first_p: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        values = (getattr(self, name) for name in self.__slots__)
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    @property
    def own(self) -> np.ndarray:
        """[n]: positions that were the drafter's to guess."""
        return np.ones(len(self.accepted), dtype=bool) if self.copied is None else ~self.copied

    @property
    def acceptance(self) -> float:
        """The share of accepted proposals among the `own` positions; 0 for none."""
        return float(np.mean(self.accepted[self.own])) if self.own.any() else 0.0


@dataclass(frozen=True, slots=True)
class TrainStep:
    """One optimiser step of the distiller. Losses are nats per position; `seconds` is wall time."""

    step: int
    loss: float
    loss_direct: float
    loss_ngram: float
    grad_norm: float
    learning_rate: float
    seconds: float
    loss_head: float = float("nan")  # of the acceptance head, where it is trained


@dataclass(slots=True)  # not frozen: the cache counts in its own, and gives copies away
class NgramEntry:
    """An n-gram of the cache with its counters: `hits` counts judged proposals, `accepts` the accepted ones
    (`Round.ngram_hits`); `inserted_at` and `last_used` count requests of the pair."""

    target_id: int
    drafter_ids: tuple[int, ...]
    hits: int
    accepts: int
    inserted_at: int
    last_used: int


Part = Reading | Round | Generation  # what an answer is given in, in this order
Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]


def drain(steps: Generator[Any, None, T]) -> T:
    """Run a generator to its end; returns its value."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            value: T = finished.value
            return value
