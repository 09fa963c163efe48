"""The residual of `NgramExact`: what takes the place of a rejected slot, by rejection or in full."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from omnidemo.core.ngrams import FAR, Node
from omnidemo.core.sampling import Draws, Law, as_tensor, total, without
from omnidemo.methods.base import Hand, Slot

Path = tuple[int, ...]


@dataclass(slots=True)
class Residual:
    """norm(p − A) of one slot, where `law` [T] is p. What was computed is kept until the slot is corrected."""

    hand: Hand
    slot: Slot
    law: Law
    _bounds: dict[int, tuple[Path, Node | None, float]] = field(default_factory=dict, init=False)
    _draws: dict[tuple[Path, bool], Draws | None] = field(default_factory=dict, init=False)

    def token(self, attempts: int) -> int:
        """A token from it by rejection: draw t ~ p, and throw it away with probability A(t)/p(t). After `attempts` of them it is
        enumerated."""
        chooser, first = self.hand.chooser, self.slot.laws[()]
        draws = Draws(chooser, self.law, lambda: as_tensor(first)[self.hand.map.to_drafter.clamp(min=0)])

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
            path, node, bound = self._bounds[token]
            if bound <= 0.0 or not chooser.accept(min(1.0, bound / p)):
                return token
            return token if self._simulate(path, node) else None

        token = chooser.first(attempt, attempts)
        if token is None:
            token = self._enumerate()
        self.hand.drafter.rollback(self.slot.base)
        return token

    def _path(self, token: int) -> Path:
        """The drafter tokens with which the slot could have proposed a target token; () for one that it could not."""
        hand = self.hand
        direct = hand.map.drafters[token]
        path = hand.ngrams.path(token) if direct < 0 else (direct,) if hand.map.may_draft[direct] else None
        return path if path is not None and len(path) <= self.slot.limit else ()

    def _bound(self, path: Path, first: float | None = None) -> tuple[Path, Node | None, float]:
        """(path, trie node, B) of what a path spells; B is 0 for (). `first`: the probability of its first piece, if known."""
        if not path:
            return (), None, 0.0
        limit = self.slot.limit
        bound = float(self.slot.laws[()][path[0]]) if first is None else first
        node = self.hand.ngrams.root.children.get(path[0])
        for depth in range(1, len(path)):
            if bound <= 0.0 or node is None:
                return path, node, 0.0
            bound *= float(self._law(path[:depth])[path[depth]])
            node = node.children.get(path[depth])
        if bound > 0.0 and node is not None and complete_children(node, limit):
            bound *= 1.0 - self._complete_mass(path, node)
        return path, node, bound

    def _simulate(self, path: Path, node: Node | None) -> bool:
        """Walk on from a node, not through its complete children (B has taken them off): does a longer complete node come?"""
        avoiding, limit = True, self.slot.limit
        while node is not None and goes_on(node, limit):
            draws = self._draws_after(path, node, avoiding)
            if draws is None:
                return False
            drawn, avoiding = draws.draw()[0], False
            node = node.children.get(drawn)
            if node is None or node.reach > limit:
                return False
            if node.target >= 0:
                return True
            path = (*path, drawn)
        return False

    def _draws_after(self, path: Path, node: Node, avoiding: bool) -> Draws | None:
        """Draws from the law after a path, among what is no complete child where asked; None where no longer n-gram can come then."""
        if (path, avoiding) not in self._draws:
            law: Law | None = None
            if not avoiding:
                law = self._law(path)
            elif any(child.reach <= self.slot.limit and child.target < 0 for child in node.children.values()):
                law = without(self._law(path), complete_children(node, self.slot.limit))
            self._draws[path, avoiding] = None if law is None else Draws(self.hand.chooser, law)
        return self._draws[path, avoiding]

    def _enumerate(self) -> int:
        """The residual in full: A(t) for each token of p. Only for the long tail, where proposal and target nearly agree."""
        hand, slot, law = self.hand, self.slot, as_tensor(self.law).double()
        direct, pieces = hand.map.mapped_targets, hand.map.mapped_drafters
        # What begins no n-gram is proposed whenever it is drawn; the rest is what the trie knows, and is walked.
        rest = law.index_add(0, direct, torch.minimum(as_tensor(slot.laws[()])[pieces].double(), law[direct]), alpha=-1)
        begins = torch.tensor(list(hand.ngrams.root.children), dtype=torch.long, device=pieces.device)
        walked = set(direct[torch.isin(pieces, begins)].tolist()) | {entry.target_id for entry in hand.ngrams}
        for token in walked:
            path, node, bound = self._bound(self._path(token))
            taken = min(bound, float(law[token])) if bound > 0.0 else 0.0
            rest[token] = law[token] - (taken * (1.0 - self._onward(path, node, avoiding=True)) if taken else 0.0)
        rest.clamp_(min=0.0)
        mass = float(rest.sum())
        return hand.chooser.draw(rest / mass if mass > 0 else law)

    def _onward(self, path: Path, node: Node | None, avoiding: bool) -> float:
        """P(a walk on from `path` reaches a longer complete node), conditioned on avoiding complete children where asked."""
        if node is None or not goes_on(node, self.slot.limit):
            return 0.0
        law = self._law(path)
        complete = self._complete_mass(path, node)
        onward = 0.0 if avoiding else complete
        for drawn, child in node.children.items():
            if child.target < 0 and child.reach <= self.slot.limit and float(law[drawn]) > 0.0:
                onward += float(law[drawn]) * self._onward((*path, drawn), child, avoiding=False)
        return (onward / (1.0 - complete) if complete < 1.0 else 0.0) if avoiding else onward

    def _complete_mass(self, path: Path, node: Node) -> float:
        """Σ q over the complete children that fit."""
        ids = complete_children(node, self.slot.limit)
        return total(self._law(path), ids) if ids else 0.0

    def _law(self, path: Path) -> Law:
        """The drafter's law [D] after the slot's base and `path`, remembered for the slot."""
        hand, slot = self.hand, self.slot
        law = slot.laws.get(path)
        if law is None:
            hand.drafter.rollback(slot.base)
            for piece in path:
                hand.drafter.push(piece)
            law = hand.law(hand.map.readable_bars)
            slot.laws[path] = law
        return law


def goes_on(node: Node, limit: int) -> bool:
    """Whether a walk draws on from here: some child can still become an n-gram within the limit. Depends on trie and budget alone."""
    return node.onward <= limit


def complete_children(node: Node, limit: int) -> list[int]:
    """The drafter tokens that lead to complete children that fit."""
    if node.depth + 1 > limit or node.depth + 1 >= FAR:
        return []
    return [drawn for drawn, child in node.children.items() if child.target >= 0]
