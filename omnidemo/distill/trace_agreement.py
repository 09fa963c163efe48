"""What the drafter would propose at the positions of a trace, and whether the target would accept it; pure functions of logits.

Teacher-forced: the drafter reads the target's own text. `at` and the logits, [m, D] of the directly mapped positions and [s, D]
of the n-grams' sub-tokens, are those of `distill/losses.py`. q is over all of the drafter's tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from omnidemo.distill.losses import Positions, first_of_each

NOTHING = 1e-30  # smallest probability before a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """t drafted tokens of m + g slots, one per position (the directly mapped ones first).

    `rows` [t] are the rows of the joined logits [m + s] that the tokens come from, `slot` [t] the slots they belong to, `log_q` [t]
    their log-probabilities before temperature, `labels` [m + g] the probabilities that the target accepts the slots.
    """

    rows: Tensor
    slot: Tensor
    log_q: Tensor
    labels: Tensor


def target_probs(top_ids: Tensor, top_p: Tensor, ngram_p: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """The target's probabilities at its temperature: of the top tokens [n, K] (0 at padding), and of an n-gram beside them [n].

    The rest bucket is warped like one token. At temperature 0 everything is raw.
    """
    p = torch.where(top_ids >= 0, top_p.float(), 0.0)
    rest = (1 - p.sum(-1) - ngram_p).clamp(min=0.0)
    probs = torch.cat([p, ngram_p[:, None], rest[:, None]], dim=-1).clamp(min=0.0)
    temperature = torch.where(temperature > 0, temperature, 1.0)[:, None]
    warped = (probs.clamp(min=NOTHING).log() / temperature).masked_fill(probs <= 0, -torch.inf).softmax(-1)
    return warped[:, :-2], warped[:, -2]


def slots(direct_logits: Tensor, sub_logits: Tensor, at: Positions, generator: torch.Generator | None = None) -> Slots:
    """Let the drafter propose at every position: its most probable token at temperature 0, else one drawn from q.

    A token is accepted with min(1, p/q), at temperature 0 where it is the target's. In the place of an n-gram the slot goes on as long
    as the drafter follows it, and is accepted as a whole with min(1, p/Π q); if it leaves the path after the first sub-token, it is
    rejected. Tokens outside the target's top count as rejected.
    """
    logits = torch.cat([direct_logits, sub_logits]).float()
    m, s = len(direct_logits), len(sub_logits)
    temperature = torch.cat([at.temperature[:m], at.temperature[m:][at.owner]])
    log_q_raw = logits.log_softmax(-1)
    log_q_tempered = (logits / torch.where(temperature > 0, temperature, 1.0)[:, None]).log_softmax(-1)
    drawn = logits.argmax(-1)
    if bool((temperature > 0).any()):
        drawn = torch.where(temperature > 0, torch.multinomial(log_q_tempered.exp(), 1, generator=generator).squeeze(1), drawn)
    log_q, log_q_drawn = (log.gather(1, drawn[:, None]).squeeze(1) for log in (log_q_raw, log_q_tempered))

    first = first_of_each(at.owner) + m
    starts = torch.cat([torch.arange(m, device=logits.device), first])  # rows that begin a slot
    follows = drawn == torch.cat([at.direct_ids, at.sub_ids])
    p_ngram = torch.cat([at.sub_p.new_zeros(m), at.sub_p[first - m]])
    p_top, p_merged = target_probs(
        torch.cat([at.top_ids, at.ngram_top_ids]), torch.cat([at.top_p, at.ngram_top_p]), p_ngram, at.temperature
    )
    matches = torch.cat([at.top_ids, at.ngram_top_ids]) == drawn[starts][:, None]
    alone = torch.where(matches, p_top, 0.0).sum(-1) / log_q_drawn[starts].exp().clamp(min=NOTHING)
    greedy = at.temperature <= 0
    labels = torch.where(greedy, follows[starts].float(), alone)  # of slots of one token

    # A sub-token is drafted where no earlier one of its n-gram was missed.
    missed = (~follows[m:]).long()
    earlier = missed.cumsum(0) - missed
    drafted = earlier == earlier[first - m][at.owner] if s else missed.bool()
    misses = missed.new_zeros(at.ngrams).index_add(0, at.owner, missed)
    log_product = log_q_drawn.new_zeros(at.ngrams).index_add(0, at.owner, log_q_drawn[m:])
    whole = torch.where(greedy[m:], 1.0, p_merged[m:] / log_product.exp().clamp(min=NOTHING))
    left_later = torch.where(follows[first], 0.0, labels[m:])
    labels = torch.cat([labels[:m], torch.where(misses == 0, whole, left_later)])

    slot = torch.cat([torch.arange(m, device=logits.device), at.owner + m])
    kept = torch.cat([torch.ones(m, dtype=torch.bool, device=logits.device), drafted])
    rows = torch.nonzero(kept, as_tuple=True)[0]
    return Slots(rows, slot[rows], log_q[rows], labels.clamp(0.0, 1.0))


def expected(direct_logits: Tensor, sub_logits: Tensor, at: Positions) -> Tensor:
    """Probability [m + g], in reading order, that the drafter's proposal would be accepted at each position.

    Temperature 0: 1 where the most probable tokens spell the target's token, else 0. Above: Σ min(p, q) over the target's top tokens,
    and in the place of an n-gram with equation 2's q' and the n-gram itself.
    """
    m = len(direct_logits)
    found = direct_logits.new_zeros(len(at))
    if m:
        found[:m] = _expected_direct(direct_logits.float(), at)
    if at.ngrams:
        found[m:] = _expected_ngram(sub_logits.float(), at, m)
    return torch.empty_like(found).index_copy(0, at.order, found)


def agreement(direct_logits: Tensor, sub_logits: Tensor, at: Positions) -> tuple[Tensor, Tensor]:
    """How far drafter and target agree at each position, whatever the request's temperature and draft policy: ([m + g], [m + g]), in
    reading order.

    First Σ min(p, q), both at temperature 1: `expected` there. It is a lower bound where the kept tokens do not cover p. Second 1 where
    the drafter's most probable token, or in the place of an n-gram its most probable tokens one after another, spell the target's most
    probable one, else 0; 0 too where that one may be among those that were not kept.
    """
    at_one = replace(at, temperature=torch.ones_like(at.temperature))
    m = len(direct_logits)
    same = direct_logits.new_zeros(len(at))
    same[:m] = _same_first(direct_logits, at.top_ids, at.top_p, at.temperature[:m], 0.0)
    if at.ngrams:
        first = first_of_each(at.owner)
        missed = (sub_logits.argmax(-1) != at.sub_ids).float()
        followed = missed.new_zeros(at.ngrams).index_add(0, at.owner, missed) == 0
        p, highest = at.sub_p[first], at.ngram_top_p.amax(-1)
        rest = 1 - at.ngram_top_p.sum(-1) - p
        own = (p >= highest) & ((p >= rest) | (at.temperature[m:] <= 0))  # the n-gram itself is what the target finds most probable
        other = _same_first(sub_logits[first], at.ngram_top_ids, at.ngram_top_p, at.temperature[m:], p)
        same[m:] = torch.where(own, followed.float(), torch.where(p >= highest, 0.0, other))
    return expected(direct_logits, sub_logits, at_one), torch.empty_like(same).index_copy(0, at.order, same)


def _same_first(logits: Tensor, top_ids: Tensor, top_p: Tensor, temperature: Tensor, besides: Tensor | float) -> Tensor:
    """Whether the drafter's most probable token is the most probable of the kept ones, which no other of the target's tokens exceeds;
    `besides` is the probability of a token that is known and not kept. At temperature 0 the token that was written is the most probable."""
    p = torch.where(top_ids >= 0, top_p.float(), 0.0)
    highest, place = p.max(-1)
    sure = (highest >= 1 - p.sum(-1) - besides) | (temperature <= 0)
    return (sure & (logits.argmax(-1) == top_ids.gather(1, place[:, None]).squeeze(1))).float()


def _expected_direct(logits: Tensor, at: Positions) -> Tensor:
    temperature = at.temperature[: len(logits)]
    p, _ = target_probs(at.top_ids, at.top_p, at.top_p.new_zeros(len(logits)), temperature)
    q = _of_top(_softmax(logits, temperature), at.top_ids)
    return torch.where(temperature > 0, torch.minimum(p, q).sum(-1), (logits.argmax(-1) == at.direct_ids).float())


def _expected_ngram(logits: Tensor, at: Positions, m: int) -> Tensor:
    temperature, first = at.temperature[m:], first_of_each(at.owner)
    probs = _softmax(logits, temperature[at.owner])
    own = probs.gather(1, at.sub_ids[:, None]).squeeze(1).clamp(min=NOTHING).log()
    product = own.new_zeros(at.ngrams).index_add(0, at.owner, own).exp()
    p, p_merged = target_probs(at.ngram_top_ids, at.ngram_top_p, at.sub_p[first], temperature)
    q = _of_top(probs[first], at.ngram_top_ids)
    q = torch.where(at.ngram_top_ids == at.sub_ids[first][:, None], (q - product[:, None]).clamp(min=0.0), q)
    sampled = torch.minimum(p, q).sum(-1) + torch.minimum(p_merged, product)
    missed = (logits.argmax(-1) != at.sub_ids).float()
    greedy = (own.new_zeros(at.ngrams).index_add(0, at.owner, missed) == 0).float()
    return torch.where(temperature > 0, sampled, greedy)


def _softmax(logits: Tensor, temperature: Tensor) -> Tensor:
    return (logits / torch.where(temperature > 0, temperature, 1.0)[:, None]).softmax(-1)


def _of_top(probs: Tensor, top_ids: Tensor) -> Tensor:
    return torch.where(top_ids >= 0, probs.gather(1, top_ids.clamp(min=0)), 0.0)
