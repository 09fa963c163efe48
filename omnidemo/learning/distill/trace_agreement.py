"""Would the target accept the drafter's proposals at the positions of a trace? Pure functions of logits.

Teacher-forced: the drafter reads the target's text. `at` and the logits [r, D] of its rows are those of
`losses.py`. q is over all of the drafter's tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from omnidemo.learning.distill.losses import Positions

NOTHING = 1e-30  # smallest probability before a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """t drafted tokens of n slots, one slot per position. `rows` [t]: the rows of the logits [r, D] that the
    tokens come from. `slot` [t]: the slots of the tokens. `log_q` [t]: their log-probabilities before
    temperature. `labels` [n]: the probabilities that the target accepts the slots."""

    rows: Tensor
    slot: Tensor
    log_q: Tensor
    labels: Tensor


def target_probs(
    top_ids: Tensor, top_p: Tensor, ngram_p: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """The target's probabilities at its temperature (raw at 0): of the top tokens [n, K] (0 at padding), and
    of the n-gram beside them [n]. The rest bucket is warped like one token."""
    p = torch.where(top_ids >= 0, top_p.float(), 0.0)
    rest = (1 - p.sum(-1) - ngram_p).clamp(min=0.0)
    probs = torch.cat([p, ngram_p[:, None], rest[:, None]], dim=-1).clamp(min=0.0)
    temperature = torch.where(temperature > 0, temperature, 1.0)[:, None]
    warped = (probs.clamp(min=NOTHING).log() / temperature).masked_fill(probs <= 0, -torch.inf).softmax(-1)
    return warped[:, :-2], warped[:, -2]


def slots(logits: Tensor, at: Positions, generator: torch.Generator | None = None) -> Slots:
    """Let the drafter propose at every position: its most probable token at temperature 0, else a draw from
    q.

    A token is accepted with min(1, p/q), at temperature 0 where it is the target's. At an n-gram the slot
    grows while the drafter follows it, and is accepted as a whole with min(1, p/Π q); a slot that leaves the
    n-gram after its first sub-token is rejected. Tokens outside the target's top count as rejected.
    """
    logits = logits.float()
    temperature = at.temperature[at.owner]
    log_q_tempered = _tempered(logits, temperature).log_softmax(-1)
    drawn = logits.argmax(-1)
    if bool((temperature > 0).any()):
        drawn = torch.where(
            temperature > 0, torch.multinomial(log_q_tempered.exp(), 1, generator=generator).squeeze(1), drawn
        )
    log_q, log_q_drawn = (
        log.gather(1, drawn[:, None]).squeeze(1) for log in (logits.log_softmax(-1), log_q_tempered)
    )

    follows = drawn == at.ids
    p_top, p_ngram = target_probs(at.top_ids, at.top_p, at.ngram_p, at.temperature)
    p_drawn = torch.where(at.top_ids == drawn[at.first][:, None], p_top, 0.0).sum(-1)
    greedy = at.temperature <= 0
    # acceptance of one token
    alone = torch.where(
        greedy, follows[at.first].float(), p_drawn / log_q_drawn[at.first].exp().clamp(min=NOTHING)
    )
    log_product = log_q_drawn.new_zeros(len(at)).index_add(0, at.owner, log_q_drawn)
    whole = torch.where(greedy, 1.0, p_ngram / log_product.exp().clamp(min=NOTHING))
    ngram = torch.where(_spelled(drawn, at), whole, torch.where(follows[at.first], 0.0, alone))
    labels = torch.cat([alone[: at.direct], ngram[at.direct :]])

    # A sub-token is drafted where no earlier one of its n-gram was missed.
    missed = (~follows).long()
    earlier = missed.cumsum(0) - missed
    rows = torch.nonzero(earlier == earlier[at.first][at.owner], as_tuple=True)[0]
    return Slots(rows, at.owner[rows], log_q[rows], labels.clamp(0.0, 1.0))


def expected(logits: Tensor, at: Positions) -> Tensor:
    """Probability [n] that the drafter's proposal would be accepted at each position. Temperature 0: 1 where
    its most probable tokens spell the target's token, else 0. Above: Σ min(p, q) over the target's top
    tokens; at an n-gram with equation 2's q', and with the n-gram itself."""
    logits = logits.float()
    probs = _tempered(logits, at.temperature[at.owner]).softmax(-1)
    own = probs.gather(1, at.ids[:, None]).squeeze(1).clamp(min=NOTHING).log()
    product = own.new_zeros(len(at)).index_add(0, at.owner, own).exp()
    product[: at.direct] = 0.0
    p, p_ngram = target_probs(at.top_ids, at.top_p, at.ngram_p, at.temperature)
    q = torch.where(at.top_ids >= 0, probs[at.first].gather(1, at.top_ids.clamp(min=0)), 0.0)
    q = torch.where(at.top_ids == at.ids[at.first][:, None], (q - product[:, None]).clamp(min=0.0), q)
    sampled = torch.minimum(p, q).sum(-1) + torch.minimum(p_ngram, product)
    return torch.where(at.temperature > 0, sampled, _spelled(logits.argmax(-1), at).float())


def agreement(logits: Tensor, at: Positions) -> tuple[Tensor, Tensor]:
    """How far drafter and target agree at each position, whatever the request's temperature: ([n], [n]).

    First `expected` at temperature 1, Σ min(p, q), which is a lower bound where the kept tokens do not cover
    p. Second 1 where the drafter's most probable token (at an n-gram its most probable tokens in a row)
    spells the target's most probable one, else 0; 0 too where that one may be among the tokens that were not
    kept.
    """
    chosen = logits.argmax(-1)
    p = torch.where(at.top_ids >= 0, at.top_p, 0.0)
    highest, place = p.max(-1)
    # Whether every token that was not kept is less probable; at temperature 0 the emitted one is the most
    # probable.
    rest, greedy = 1 - p.sum(-1) - at.ngram_p, at.temperature <= 0
    top = ((highest >= rest) | greedy) & (chosen[at.first] == at.top_ids.gather(1, place[:, None]).squeeze(1))
    ngram = ((at.ngram_p >= rest) | greedy) & _spelled(chosen, at)
    same = torch.where(at.ngram_p >= highest, ngram, top).float()
    return expected(logits, replace(at, temperature=torch.ones_like(at.temperature))), same


def _spelled(chosen: Tensor, at: Positions) -> Tensor:
    """Whether these drafter tokens [r] are those of each position [n]."""
    missed = (chosen != at.ids).long()
    return missed.new_zeros(len(at)).index_add(0, at.owner, missed) == 0


def _tempered(logits: Tensor, temperature: Tensor) -> Tensor:
    return logits / torch.where(temperature > 0, temperature, 1.0)[:, None]
