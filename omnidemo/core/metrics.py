"""The figures of a generation: one definition each, used everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from omnidemo.core.records import STAGES, Round


@dataclass(frozen=True, slots=True)
class Speed:
    """How many times as fast as plain decoding guessing was: an answer's tokens per step ÷ the cost of a step
    in plain steps. Both lanes wrote `tokens` of the answer in turns, after its `first` tokens: all of it, or
    its middle. `speedup` is that of the median run, with the rounds `guessed` and `plain`; the median lies
    between `low` and `high` (`in_turns.spread`)."""

    speedup: float
    low: float
    high: float
    first: int
    tokens: int
    guessed: tuple[Round, ...]
    plain: tuple[Round, ...]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of what rounds accepted, of any number of rounds and answers, copies included.

    `rounds[n]`: rounds that wrote n tokens, the target's own (bonus or correction) included; an answer that
    ends within a round counts what it kept. `judged[i]` and `accepted[i]`: rounds whose proposal at position
    i, from 0, was judged, and accepted. `proposed`: all proposed tokens.
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
        """Accepted ÷ judged tokens; those after a rejection are not judged."""
        return sum(self.accepted) / sum(self.judged) if sum(self.judged) else None

    @property
    def by_position(self) -> list[float]:
        """The accepted share at each position, of the rounds in which everything before it was accepted."""
        return [right / count for right, count in zip(self.accepted, self.judged, strict=True)]

    def __str__(self) -> str:
        """The histogram: "1:20 3:4" is 20 rounds of one token and 4 of three."""
        return " ".join(f"{n}:{count}" for n, count in enumerate(self.rounds) if count)


def measure(rounds: Sequence[Round], first_token_seconds: float | None) -> Mapping[str, float | None]:
    """Metrics of one generation. The pair adds `context_mismatch`, 1 where the drafter's bytes did not spell
    the target's at the end. An answer's speedup is measured (`serving/speed.py`), not computed. Undefined
    values are None.

    seconds: the sum over the rounds, from which every speed is computed; time between rounds (other answers'
    turns, a slow reader) is not decoding. block_efficiency: target tokens per target pass, the mean accepted
    length τ (MAT) with the bonus token. time_per_output_token: seconds per token after the first round, which
    `time_to_first_token` contains. total_variation: mean over the tokens of the distance between the law by
    which each was written and the target's own, given the text before; the text as a whole is at most the sum
    away. Only for methods that measure it because they are not lossless.
    """
    tokens = sum(len(done.tokens) for done in rounds)
    later = tokens - len(rounds[0].tokens) if rounds else 0
    took = [done.seconds.get("total", 0.0) for done in rounds]
    seconds, later_seconds = sum(took), sum(took[1:])
    variations = [done.variation for done in rounds if done.variation is not None]
    return {
        "tokens": float(tokens),
        "rounds": float(len(rounds)),
        "seconds": seconds,
        "tokens_per_second": tokens / seconds if seconds > 0 else None,
        "time_to_first_token": first_token_seconds,
        "time_per_output_token": later_seconds / later if later and later_seconds > 0 else None,
        "block_efficiency": _share(tokens, len(rounds)),
        "total_variation": sum(variations) / tokens if variations else None,
        **_guesses(rounds),
        **_copies(rounds, tokens),
        **_form(rounds, tokens),
        **_times(rounds),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _guesses(rounds: Sequence[Round]) -> Mapping[str, float | None]:
    """proposed, accepted: all proposals, copies and forced tokens included; the other figures are the
    drafter's alone. acceptance_rate: accepted ÷ proposed target tokens, mean over the rounds with a proposal.
    guesses_right: the same over the answer. alpha: accepted ÷ judged slots (those after a rejection are not
    judged). ngram_hits: accepted n-grams per round. drafted: drafter tokens drawn. draft_length: the same per
    round, of all rounds."""
    own = [
        (done.accepted - forced - copies.accepted, done.proposed - forced - copies.proposed)
        for done in rounds
        if done.proposed > (forced := done.forced) + (copies := done.copies).proposed
    ]
    accepted, proposed = sum(right for right, _ in own), sum(made for _, made in own)
    judged = sum(done.judged - done.forced - done.copies.judged for done in rounds)
    drafted = sum(done.drafted for done in rounds)
    return {
        "acceptance_rate": _share(sum(right / made for right, made in own), len(own)),
        "guesses_right": _share(accepted, proposed),
        "alpha": _share(accepted, judged),
        "ngram_hits": _share(sum(done.ngram_hits for done in rounds), len(rounds)),
        "draft_length": _share(drafted, len(rounds)),
        "proposed": float(sum(done.proposed for done in rounds)),
        "accepted": float(sum(done.accepted for done in rounds)),
        "drafted": float(drafted),
    }


def _copies(rounds: Sequence[Round], tokens: int) -> Mapping[str, float | None]:
    """copied: accepted copies. copied_earlier: those from an earlier answer; the others are from prompt and
    answer. copied_share: their share of the answer's tokens. copies_proposed: proposed copies."""
    proposed = sum(done.copies.proposed for done in rounds)
    copied = sum(done.copies.accepted for done in rounds)
    return {
        "copied": float(copied),
        "copied_earlier": float(
            sum(
                token.source == "copied" and token.match is not None and token.match.origin == "earlier"
                for done in rounds
                for token in done.tokens
            )
        ),
        "copied_share": _share(copied, tokens),
        "copies_proposed": float(proposed),
        "copies_right": _share(copied, proposed),
    }


def _form(rounds: Sequence[Round], tokens: int) -> Mapping[str, float | None]:
    """forced: tokens that the answer's form wrote, since it left no other. forced_share: their share.
    changed: tokens where the form ruled out the target's likeliest one, forced ones included."""
    forced = sum(done.forced for done in rounds)
    return {
        "forced": float(forced),
        "forced_share": _share(forced, tokens),
        "changed": float(sum(done.changed for done in rounds)),
    }


def _times(rounds: Sequence[Round]) -> Mapping[str, float | None]:
    """engine_overhead: the share of the rounds' time outside drafting and verifying. cost_ratio: c, the
    drafter's seconds per drafted token ÷ the target's per pass, planning and draws included."""
    draft, verify, settle, other = (sum(done.seconds.get(name, 0.0) for done in rounds) for name in STAGES)
    drafted = sum(done.drafted for done in rounds)
    return {
        "draft_seconds": draft,
        "verify_seconds": verify,
        "settle_seconds": settle,
        "other_seconds": other,
        "engine_overhead": _share(settle + other, draft + verify + settle + other),
        "cost_ratio": draft / drafted / (verify / len(rounds)) if drafted and verify > 0 else None,
    }
