"""The same rounds with copies or the drafter, by the policy `cost`: the product before the two shared a
round."""

from __future__ import annotations

from lab.sources.given_answers import Answer, Costs, Sums, leading
from omnidemo.decoding.cost_model import READING, CostModel
from omnidemo.decoding.cost_policy import CostPolicy
from omnidemo.decoding.price_list import PriceList
from omnidemo.decoding.sources.copier import Copier
from omnidemo.decoding.sources.text_index import BREAK, TextIndex
from omnidemo.pair.copy_memory import TAIL

SLOTS = 8  # drafter tokens of a draft


class Today:
    """The rounds of one set's answers. `memory`: whether earlier answers are copied from."""

    def __init__(self, costs: Costs, memory: bool) -> None:
        self.costs = costs
        passes = {count: costs.rows[count] for count in range(1, len(costs.rows))}
        self.known = CostModel(PriceList(passes, costs.step, origin="measured"))
        self.earlier = TextIndex() if memory else None
        self.read = 0

    def renew(self) -> None:
        """Forget what was written, and keep how often sources are right."""
        self.earlier = TextIndex() if self.earlier is not None else None

    def answer(self, given: Answer) -> Sums:
        text = TextIndex()
        text.extend(given.prompt)
        earlier = self.earlier if self.earlier is not None and len(self.earlier) else None
        copier = Copier(text, self.known.copies, given.ends, len(given.prompt), earlier)
        policy = CostPolicy(min(SLOTS, self.costs.longest), self.known)
        ids, at, sums, self.read = list(given.prompt), 0, Sums(), 0
        while at < len(given.ids):
            copied = copier.draft(ids, self.costs.longest)
            policy.begin_round(sums.rounds, len(ids), 0)
            count = policy.copies(sums.rounds, copied, True) if copied is not None else 0
            spent, accepted, true = 0.0, 0, given.ids[at:]
            if copied is not None and count:
                accepted = leading(copied.ids[:count], true)
                policy.count(0, count)
            elif longest := policy.budget(sums.rounds):
                count, accepted, spent = self._drafted(given, at, longest, policy)
            else:
                policy.count(0, 0)
            kept = min(accepted + 1, len(true))
            if copied is not None:
                copier.learn(copied, true[:kept])
            sums.tokens, sums.rounds = sums.tokens + kept, sums.rounds + 1
            sums.price += self.costs.rows[1 + count] + spent * self.costs.step
            sums.steps, sums.proposed = sums.steps + spent, sums.proposed + count
            ids += true[:kept]
            at += kept
        if self.earlier is not None:
            self.earlier.extend([*given.prompt[-TAIL:], *given.ids, BREAK])
        return sums

    def _drafted(
        self, given: Answer, at: int, longest: int, policy: CostPolicy
    ) -> tuple[int, int, float]:  # fmt: skip
        """(ids proposed, accepted, drafter tokens)."""
        base, depth, drafted, ids, probs = at, 0, 0.0, list[int](), list[float]()
        while drafted < longest and base < len(given.ids) and depth < len(given.chain[base]):
            token, sure = given.chain[base][depth], given.chances[base][depth]
            drafted += max(1.0, float(given.steps[base][depth]))
            if token < 0:
                break
            ids.append(token)
            probs.append(sure)
            if token in given.ends or not policy.keep_drafting([sure], []):
                break
            right = depth == 0 and token == given.ids[base]
            base, depth = (base + 1, 0) if right else (base, depth + 1)
        accepted = leading(ids, given.ids[at:])
        judges = judged(accepted, min(len(ids), len(given.ids) - at))
        policy.learn([[one] for one in probs], judges)
        policy.count(int(drafted), len(ids))
        spent = drafted + READING * max(0, at - self.read - 1)
        self.read = at + min(accepted, len(ids) - 1)  # its last id it has not read
        return len(ids), accepted, spent


def judged(accepted: int, count: int) -> list[float]:
    """What became of the judged ids of a draft."""
    return [1.0] * accepted + [0.0] * (accepted < count)
