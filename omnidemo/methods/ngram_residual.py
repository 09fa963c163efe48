"""The residual of `NgramExact`: what takes the place of a rejected slot, by rejection."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from omnidemo.decoding.randomness import BatchedSampler
from omnidemo.decoding.sampling import Probs, among, as_tensor, on_host, total, without
from omnidemo.methods.base import RoundContext, Slot
from omnidemo.vocab.ngram_cache import FAR, Node

Path = tuple[int, ...]
FEW = 16  # tokens whose part of the residual is bounded closely at first, once the plain attempts have come to nothing
LAST = 1 << 16


@dataclass(slots=True)
class Residual:
    """norm(p − A) of one slot, where `law` [T] is p. What was computed is kept until the slot is corrected."""

    context: RoundContext
    slot: Slot
    law: Probs
    _bounds: dict[int, tuple[Path, Node | None, float]] = field(default_factory=dict, init=False)
    _draws: dict[tuple[Path, str], BatchedSampler | None] = field(default_factory=dict, init=False)

    def token(self, attempts: int) -> int:
        """A token from it by rejection: draw t ~ p, and throw it away with probability A(t)/p(t). Where `attempts` of them came to nothing,
        p is what is hardly left anything of, and tokens are drawn from a closer bound: see `_closer`."""
        rng, first = self.context.rng, self.slot.laws[()]
        draws = BatchedSampler(rng, self.law, lambda: as_tensor(first)[self.context.map.to_drafter.clamp(min=0)])

        def attempt() -> int | None:
            token, p, q = draws.draw()
            if token not in self._bounds:
                path = self._path(token)
                if not path:
                    return token
                if q is None or len(path) > 1:
                    q = float(first[path[0]])
                if 0.0 < q < p and draws.passes_over(q / p):
                    return token  # however it goes on: the bound is at most the probability of the first piece
                self._bounds[token] = self._bound(path, q)
            return self._judge(token, p)

        token, known = rng.first(attempt, attempts), FEW
        while token is None:
            token = self._closer(known, max(attempts, 1))
            known *= 4
        self.context.drafter.rollback(self.slot.base)
        return token

    def _judge(self, token: int, p: float) -> int | None:
        """A token that was drawn with its probability p, or None where it is thrown away."""
        path, node, bound = self._bounds[token]
        if bound <= 0.0 or not self.context.rng.accept(min(1.0, bound / p)):
            return token
        return token if self._simulate(path, node) else None

    def _closer(self, known: int, attempts: int) -> int | None:
        """A token from the residual, or None after so many attempts, by rejection from an upper bound E(t) of p(t) − A(t). Once all tokens
        are known there are `LAST` attempts, and then what is left is less than what laws in float32 are rounded by.

        What begins no n-gram is proposed whenever it is drawn, so there E is p − q, which is what is left of it. For the most probable
        `known` of the others E = p − min(p, B)·(1 − U), where U ≥ f is the probability of a first step that leads to no n-gram yet but can;
        for the rest it is p. So hardly anything is drawn in vain, and passes are made for `known` tokens only.
        """
        context, slot, rng, law = self.context, self.slot, self.context.rng, as_tensor(self.law).double()
        direct, pieces = context.map.mapped_targets, context.map.mapped_drafters
        upper = law.index_add(0, direct, torch.minimum(as_tensor(slot.laws[()])[pieces].double(), law[direct]), alpha=-1)
        walks = torch.zeros_like(law, dtype=torch.bool)
        walks[direct] = context.ngrams.begins(slot.limit)[pieces]
        walks[torch.tensor(context.ngrams.target_ids, dtype=torch.long, device=law.device)] = True
        upper = torch.where(walks, law, upper).clamp_(min=0.0)
        ranked = torch.where(walks, law, -1.0)
        best = ranked.topk(min(known, len(ranked))).indices
        parts: dict[int, tuple[float, float]] = {}  # of those that are known: the part of p that B leaves, and E
        for token in best[ranked[best] > 0.0].tolist():
            parts[token] = self._parts(token, float(law[token]))
            upper[token] = parts[token][1]
        mass = float(upper.sum())
        if mass <= 0.0:
            return rng.draw(self.law)  # nothing is left, but for rounding
        draws = BatchedSampler(rng, upper / mass)

        def attempt() -> int | None:
            token = draws.draw()[0]
            if not bool(walks[token]):
                return token
            if token in parts:
                sure, bound = parts[token]
                path, node, _ = self._bounds[token]
                return token if rng.accept(sure / bound) or self._simulate(path, node, entering=True) else None
            if token not in self._bounds:
                self._bounds[token] = self._bound(self._path(token))
            return self._judge(token, float(law[token]))

        token = rng.first(attempt, attempts if len(parts) == known else LAST)
        return token if token is not None or len(parts) == known else rng.draw(self.law)

    def _parts(self, token: int, p: float) -> tuple[float, float]:
        """(p − min(p, B), that plus min(p, B)·U) of a token."""
        if token not in self._bounds:
            self._bounds[token] = self._bound(self._path(token))
        path, node, bound = self._bounds[token]
        taken = min(p, bound)
        if taken <= 0.0 or node is None or not can_continue(node, self.slot.limit) or not (inner := inner_children(node, self.slot.limit)):
            return p - taken, p - taken
        complete = self._complete_mass(path, node)
        further = total(self._law(path), inner) / (1.0 - complete) if complete < 1.0 else 0.0
        return p - taken, p - taken + taken * min(1.0, further)

    def _path(self, token: int) -> Path:
        """The drafter tokens with which the slot could have proposed a target token; () for one that it could not."""
        context = self.context
        direct = context.map.drafters[token]
        path = context.ngrams.path(token) if direct < 0 else (direct,) if context.map.may_draft[direct] else None
        return path if path is not None and len(path) <= self.slot.limit else ()

    def _bound(self, path: Path, first: float | None = None) -> tuple[Path, Node | None, float]:
        """(path, trie node, B) of what a path spells; B is 0 for (). `first`: the probability of its first piece, if known."""
        if not path:
            return (), None, 0.0
        limit = self.slot.limit
        bound = float(self.slot.laws[()][path[0]]) if first is None else first
        node = self.context.ngrams.root.children.get(path[0])
        for depth in range(1, len(path)):
            if bound <= 0.0 or node is None:
                return path, node, 0.0
            bound *= float(self._law(path[:depth])[path[depth]])
            node = node.children.get(path[depth])
        if bound > 0.0 and node is not None and complete_children(node, limit):
            bound *= 1.0 - self._complete_mass(path, node)
        return path, node, bound

    def _simulate(self, path: Path, node: Node | None, entering: bool = False) -> bool:
        """Walk on from a node, not through its complete children (B has taken them off): does a longer complete node come? `entering`: the
        first step leads to a child that is none but can become one."""
        step, limit = "entering" if entering else "avoiding", self.slot.limit
        while node is not None and can_continue(node, limit):
            draws = self._draws_after(path, node, step)
            if draws is None:
                return False
            drawn, step = draws.draw()[0], "free"
            node = node.children.get(drawn)
            if node is None or node.reach > limit:
                return False
            if node.target >= 0:
                return True
            path = (*path, drawn)
        return False

    def _draws_after(self, path: Path, node: Node, step: str) -> BatchedSampler | None:
        """Draws from the law after a path, freely, or avoiding complete children, or entering another one; None where no longer n-gram can
        come then."""
        if (path, step) not in self._draws:
            law: Probs | None = None
            inner = inner_children(node, self.slot.limit) if step != "free" else []
            if step == "free":
                found = self._law(path)
                law = found if not on_host(found) or float(found.sum()) > 0.0 else None
            elif inner and step == "avoiding":
                law = without(self._law(path), complete_children(node, self.slot.limit))
            elif inner:
                law = among(self._law(path), inner)
            self._draws[path, step] = None if law is None else BatchedSampler(self.context.rng, law)
        return self._draws[path, step]

    def _complete_mass(self, path: Path, node: Node) -> float:
        """Σ q over the complete children that fit."""
        ids = complete_children(node, self.slot.limit)
        return total(self._law(path), ids) if ids else 0.0

    def _law(self, path: Path) -> Probs:
        """The drafter's law [D] after the slot's base and `path`, remembered for the slot."""
        context, slot = self.context, self.slot
        law = slot.laws.get(path)
        if law is None:
            context.drafter.rollback(slot.base)
            for piece in path:
                context.drafter.push(piece)
            law = context.law(context.map.readable_logit_mask)
            # Where the numbers are not finite no walk goes on from here. On a device nobody waits to look at them.
            if not on_host(law):
                law = torch.nan_to_num(as_tensor(law), nan=0.0, posinf=0.0)
            elif not 0.0 < float(law.sum()) < float("inf"):
                law = torch.zeros_like(as_tensor(law))
            slot.laws[path] = law
        return law


def can_continue(node: Node, limit: int) -> bool:
    """Whether a walk draws on from here: some child can still become an n-gram within the limit. Depends on trie and budget alone."""
    return node.onward <= limit


def complete_children(node: Node, limit: int) -> list[int]:
    """The drafter tokens that lead to complete children that fit."""
    if node.depth + 1 > limit or node.depth + 1 >= FAR:
        return []
    return [drawn for drawn, child in node.children.items() if child.target >= 0]


def inner_children(node: Node, limit: int) -> list[int]:
    """The drafter tokens that lead to children that are no n-grams but can still become some that fit."""
    return [drawn for drawn, child in node.children.items() if child.target < 0 and child.reach <= limit]
