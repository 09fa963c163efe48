"""The figures of a generation: one definition each, used everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from omnidemo.records import STAGES, Round


@dataclass(frozen=True, slots=True)
class Speed:
    """How many times as fast as plain decoding guessing was, by passes in which both wrote the first `tokens`
    of an answer in turns: median, least and most. `guessed` and `plain` are the rounds of the pass nearest to
    the median."""

    speedup: float
    low: float
    high: float
    tokens: int
    guessed: tuple[Round, ...]
    plain: tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long what rounds accepted was, of any number of rounds and answers, copied tokens with the
    drafter's own.

    `rounds[n]`: rounds that wrote n tokens, the target's own (bonus or correction) among them; an answer that
    ends within a round counts what it kept. `judged[i]` and `accepted[i]`: rounds whose proposal at position
    i, from 0, was judged, and accepted. `proposed`: tokens that were proposed in all.
    """

    rounds: tuple[int, ...]
    judged: tuple[int, ...]
    accepted: tuple[int, ...]
    proposed: int

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Lengths:
        facts = [(len(r.tokens), r.judged, r.accepted, r.proposed) for r in rounds]
        written, judged, accepted, proposed = zip(*facts, strict=True) if facts else ((), (), (), ())
        reached = range(max(judged, default=0))
        return cls(
            rounds=tuple(written.count(n) for n in range(max(written, default=-1) + 1)),
            judged=tuple(sum(count > i for count in judged) for i in reached),
            accepted=tuple(sum(count > i for count in accepted) for i in reached),
            proposed=sum(proposed),
        )

    @property
    def mean(self) -> float | None:
        """Mean accepted length τ, also called MAT: tokens per pass of the target, its own included."""
        total = sum(self.rounds)
        return sum(n * count for n, count in enumerate(self.rounds)) / total if total else None

    @property
    def pooled(self) -> float | None:
        """Accepted ÷ proposed tokens."""
        return sum(self.accepted) / self.proposed if self.proposed else None

    @property
    def alpha(self) -> float | None:
        """Accepted ÷ judged tokens: those after a rejection are not judged."""
        return sum(self.accepted) / sum(self.judged) if sum(self.judged) else None

    @property
    def by_position(self) -> list[float]:
        """The share that was accepted at each position, of the rounds in which everything before it was."""
        return [right / count for right, count in zip(self.accepted, self.judged, strict=True)]

    def __str__(self) -> str:
        """The histogram: "1:20 3:4" is 20 rounds of one token and 4 of three."""
        return " ".join(f"{n}:{count}" for n, count in enumerate(self.rounds) if count)


def measure(
    rounds: Sequence[Round],
    seconds: float,
    first_token_seconds: float | None,
    plain_seconds: float | None = None,
) -> Mapping[str, float | None]:
    """Metrics of one generation; the pair adds `context_mismatch`, 1 where the drafter's bytes did not spell
    the target's at the end, and `plain_at`, the UNIX time of the newest plain round that `plain_seconds`
    knows.

    `seconds` is the decoding time after the prompt was read; `plain_seconds` the time of one plain round
    (draft length 0), known from the policy "cost", for replays on the page; how much faster an answer was is
    measured (`serving/speed.py`), not computed. Values are None where they are undefined.

    `proposed` and `accepted` count all proposals, also those that were copied. How good the drafter guesses
    is computed without these:

    acceptance_rate: accepted / proposed of the drafter's target tokens, averaged over the rounds where it
    proposed one. guesses_right: accepted / proposed of the drafter's target tokens over the whole answer.
    alpha: mean acceptance over the drafter's judged slots (those after a rejection are not judged). copied:
    target tokens that were copied, which are the accepted copies. copied_share: their share of the answer's
    tokens. copies_proposed: copied tokens that were proposed. copies_right: copied / copies_proposed.
    block_efficiency: target tokens emitted per target forward pass, which is the mean accepted length τ (MAT)
    with the bonus token. time_per_output_token: seconds per token after the first round, which
    `time_to_first_token` has. cost_ratio: c, the drafter's seconds per drafted token / the target's per pass,
    planning and draws included. total_variation: mean over the answer's tokens of how far the law by which
    each was written is from the target's own, given what stands
        before; the text as a whole is at most the sum away. Of a method that measures it because it is not
        lossless.
    ngram_hits: accepted n-grams per round.
    draft_length: drafter tokens drawn per round, rounds without a draft included.
    engine_overhead: fraction of the round time outside drafting and verifying.
    modelled_speedup: block efficiency / (1 + k·c), c = drafter seconds per token / verification seconds.
    """
    tokens = sum(len(r.tokens) for r in rounds)
    copies = [r.copies for r in rounds]
    copied, copies_proposed = sum(c.accepted for c in copies), sum(c.proposed for c in copies)
    own = [
        (r.accepted - c.accepted, r.proposed - c.proposed)
        for r, c in zip(rounds, copies, strict=True)
        if r.proposed > c.proposed
    ]
    own_accepted, own_proposed = sum(right for right, _ in own), sum(made for _, made in own)
    own_judged = sum(r.judged - c.judged for r, c in zip(rounds, copies, strict=True))
    accepted = sum(r.accepted for r in rounds)
    drafted = sum(r.drafted for r in rounds)
    proposed = sum(r.proposed for r in rounds)
    split = {name: sum(r.seconds.get(name, 0.0) for r in rounds) for name in STAGES}
    total = sum(split.values())
    rate = tokens / seconds if seconds > 0 else None
    efficiency = tokens / len(rounds) if rounds else None
    cost = 1 + split["draft"] / split["verify"] if split["verify"] > 0 else None
    later = tokens - len(rounds[0].tokens) if rounds else 0
    later_seconds = seconds - rounds[0].seconds.get("total", 0.0) if rounds else 0.0
    return {
        "tokens": float(tokens),
        "rounds": float(len(rounds)),
        "seconds": seconds,
        "tokens_per_second": rate,
        "time_to_first_token": first_token_seconds,
        "time_per_output_token": later_seconds / later if later and later_seconds > 0 else None,
        "acceptance_rate": sum(right / made for right, made in own) / len(own) if own else None,
        "guesses_right": own_accepted / own_proposed if own_proposed else None,
        "alpha": own_accepted / own_judged if own_judged else None,
        "block_efficiency": efficiency,
        "total_variation": sum(known) / tokens
        if (known := [r.variation for r in rounds if r.variation is not None])
        else None,
        "ngram_hits": sum(r.ngram_hits for r in rounds) / len(rounds) if rounds else None,
        "draft_length": drafted / len(rounds) if rounds else None,
        "proposed": float(proposed),
        "accepted": float(accepted),
        "drafted": float(drafted),
        "copied": float(copied),
        "copied_share": copied / tokens if tokens else None,
        "copies_proposed": float(copies_proposed),
        "copies_right": copied / copies_proposed if copies_proposed else None,
        "draft_seconds": split["draft"],
        "verify_seconds": split["verify"],
        "settle_seconds": split["settle"],
        "other_seconds": split["other"],
        "engine_overhead": (split["settle"] + split["other"]) / total if total > 0 else None,
        "cost_ratio": split["draft"] / drafted / (split["verify"] / len(rounds))
        if drafted and split["verify"] > 0
        else None,
        "plain_seconds": plain_seconds,
        "modelled_speedup": efficiency / cost
        if efficiency is not None and cost is not None and drafted
        else None,
    }
