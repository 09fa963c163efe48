"""The figures of a generation: one definition each, used everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnidemo.records import STAGES, Round


def measure(
    rounds: Sequence[Round], seconds: float, first_token_seconds: float | None, plain_seconds: float | None = None
) -> Mapping[str, float | None]:
    """Metrics of one generation; the pair adds `context_mismatch`, 1 where the drafter's bytes did not spell the target's at the end,
    and `plain_at`, the UNIX time of the newest plain round that `plain_seconds` knows.

    `seconds` is the decoding time after the prompt was read; `plain_seconds` the time of one plain round (draft length 0),
    against which the speedup of a single chat is *estimated*, rounds against rounds: what a page does in between is no part of either. (To
    measure it the answer would have to be written twice; Compare does that.)
    Values are None where they are undefined.

    acceptance_rate: accepted / proposed target tokens, averaged over the rounds with a proposal.
    guesses_right: accepted / proposed target tokens over the whole answer.
    alpha: mean acceptance over the judged slots (those after a rejection are not judged).
    block_efficiency: target tokens emitted per target forward pass.
    ngram_hits: accepted n-grams per round.
    draft_length: drafter tokens drawn per round, rounds without a draft included.
    engine_overhead: fraction of the round time outside drafting and verifying.
    modelled_speedup: block efficiency / (1 + k·c), c = drafter seconds per token / verification seconds.
    estimated_speedup: at most the block efficiency, for no round is shorter than a plain one; a machine that has become faster since the
    newest plain rounds would otherwise be taken for a gain of drafting.
    """
    tokens = sum(len(r.tokens) for r in rounds)
    proposing = [r for r in rounds if r.proposed]
    judged = sum(r.judged for r in rounds)
    accepted = sum(r.accepted for r in rounds)
    drafted = sum(r.drafted for r in rounds)
    proposed = sum(r.proposed for r in rounds)
    split = {name: sum(r.seconds.get(name, 0.0) for r in rounds) for name in STAGES}
    total = sum(split.values())
    rate = tokens / seconds if seconds > 0 else None
    efficiency = tokens / len(rounds) if rounds else None
    cost = 1 + split["draft"] / split["verify"] if split["verify"] > 0 else None
    return {
        "tokens": float(tokens),
        "rounds": float(len(rounds)),
        "seconds": seconds,
        "tokens_per_second": rate,
        "time_to_first_token": first_token_seconds,
        "acceptance_rate": sum(r.accepted / r.proposed for r in proposing) / len(proposing) if proposing else None,
        "guesses_right": accepted / proposed if proposed else None,
        "alpha": accepted / judged if judged else None,
        "block_efficiency": efficiency,
        "ngram_hits": sum(r.ngram_hits for r in rounds) / len(rounds) if rounds else None,
        "draft_length": drafted / len(rounds) if rounds else None,
        "proposed": float(proposed),
        "accepted": float(accepted),
        "drafted": float(drafted),
        "draft_seconds": split["draft"],
        "verify_seconds": split["verify"],
        "settle_seconds": split["settle"],
        "other_seconds": split["other"],
        "engine_overhead": (split["settle"] + split["other"]) / total if total > 0 else None,
        "estimated_speedup": min(tokens / total * plain_seconds, efficiency) if efficiency and total > 0 and plain_seconds else None,
        "plain_seconds": plain_seconds,
        "modelled_speedup": efficiency / cost if efficiency is not None and cost is not None and drafted else None,
    }
