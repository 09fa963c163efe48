"""The drafter of one domain of a pair: base weights, or base and adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

import torch
from torch import Tensor

from omnidemo.backends.runner import Runner
from omnidemo.core.config import GenerationConfig
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Round
from omnidemo.decoding.cost_model import USUAL, CostModel
from omnidemo.decoding.cost_table import RoundTimes
from omnidemo.decoding.draft_policy import Head
from omnidemo.decoding.method import Method
from omnidemo.models.adapters.acceptance_head import NumpyHead

USUAL_DRAFT = 8  # slots of a draft, where no request says
LONGEST_DRAFT = 12


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a line drafts now. `length`: drafter tokens of the newest drafts. `speculating`: False where
    guessing would not be faster. `untrained`: whether the policy still waits for its acceptance head.
    `costs`: of a round with 0, 1, … LONGEST_DRAFT guesses, in plain rounds; empty where none was measured."""

    policy: Policy
    length: float
    speculating: bool
    untrained: bool
    costs: list[float]


@dataclass(slots=True, eq=False)
class DraftingLine:
    """The base drafter, or a copy with the adapter of a domain, and the `CostModel` of its newest answer."""

    runner: Runner
    version: int = 0
    head: Head | None = None
    cost_model: CostModel = field(default_factory=CostModel)
    # (version, weights, head, digest), swapped in before the next round
    published: tuple[int, Mapping[str, Tensor], Mapping[str, Tensor], str] | None = None
    digest: str = ""  # of the version's weights; empty for the base drafter

    def swap(self, base: Runner) -> bool:
        """Swap in published weights, if there are any; matrices that they lack are `base`'s. Returns whether
        there were."""
        if self.published is None:
            return False
        (version, weights, head, self.digest), self.published = self.published, None
        with torch.inference_mode(False):  # the copy must stay writable outside of rounds
            if self.runner is base:
                self.runner = base.copy()  # other pairs may use the base drafter
            self.runner.overwrite({**base.weights(), **weights})
        self.version, self.head = version, NumpyHead(head) if head else None
        self.cost_model.renew()
        return True

    @property
    def adapter(self) -> str:
        """A name of the version, unique even among versions with the same number."""
        return f"adapter-{self.version}" + (f"-{self.digest}" if self.version and self.digest else "")

    def note(self, done: Round, positions: int, at: float | None = None) -> None:
        """Take the round's times for the cost table. `positions`: ids that the target has read. `at`: the
        UNIX time. The first round of an answer does not count, because it reads the prompt."""
        if done.index:
            self.cost_model.prices.note(timed(done, positions), at)

    def drafting(self, policy: Policy, draft_length: int) -> Drafting:
        """How it drafts now by this policy."""
        costs = self.cost_model
        pays = policy != "cost" or costs.pays(costs.best_draft(USUAL_DRAFT))
        length = float(draft_length) if policy == "fixed" else costs.length
        table, plain = costs.prices, costs.prices.price(1, USUAL)
        shown = (
            [table.price(1 + n, USUAL, n) / plain for n in range(LONGEST_DRAFT + 1)] if table.known else []
        )
        return Drafting(policy, length, pays, policy == "head" and self.head is None, shown)

    def guessing(self, asked: GenerationConfig, method: Method) -> Literal["on", "none", "off", "alone"]:
        """Whether a generation that begins now will draft, and why not; see `Generation`."""
        if not (method.drafts or method.copies):
            return "none"
        if asked.draft_policy == "fixed" and not asked.draft_length:
            return "off"
        costs = CostModel(self.cost_model.prices)
        pays = costs.pays(costs.best_draft(asked.longest_draft))
        return "on" if pays or asked.draft_policy != "cost" else "alone"


def timed(done: Round, positions: int = 0) -> RoundTimes:
    """A round's times for the cost table."""
    return RoundTimes(
        done.proposed + 1, done.drafted, done.seconds["draft"], done.seconds["total"], positions
    )


def digest_of(*named: Mapping[str, Tensor]) -> str:
    """Eight hexadecimal digits of a version's weights and acceptance head. Hashing takes about a second for
    each GB, once for a version."""
    found = sha256()
    for name, tensor in ((name, part[name]) for part in named for name in sorted(part)):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()[:8]
