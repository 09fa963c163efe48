"""n-gram merging that is lossless at every temperature: a slot is a walk in the trie of n-grams."""

from __future__ import annotations

import torch
from torch import Tensor

from omnidemo.core.ahead import Course, least
from omnidemo.core.ngrams import FAR, NgramCache, Node
from omnidemo.core.sampling import Sampler, drawn_at, fetch_all, on_host, total, totals
from omnidemo.core.vocabulary import bars
from omnidemo.methods.base import Draft, Hand, Method, Slot

Path = tuple[int, ...]
BATCH = 32  # draws of a residual that are made at once on a device; it rarely needs as many


class NgramExact(Method):
    """Draw drafter tokens while the path can still become an n-gram; propose the longest complete node on it.

    With Q̄(v) = Π q(gⱼ) along the path of node v and f(v) = P(the walk goes on from v to a longer complete node), the slot
    proposes v with probability Q(v) = Q̄(v)·(1 − f(v)). It is accepted with min(1, p/B(v)), where the bound B takes off the
    part of f that is known for free, the complete children: B(v) = Q̄(v)·(1 − Σ q(complete children)) ≥ Q(v).

    Lossless at every temperature. Expected acceptance Σ Q(v)·min(1, p/B(v)) ≤ Σ min(p, Q). Cost: one drafter pass per drawn
    token; a rejection above temperature 0 may add a few for the residual.
    """

    name = "ngram-exact"
    title = "n-gram merge, exact (ours)"
    lossless = True
    help = "Merges drafter tokens like OmniDraft, but accepts and corrects with the right probabilities: exact at every temperature."

    def __init__(self, overrun: int = 2, attempts: int = 4096) -> None:
        self.overrun = overrun  # drafter tokens by which an open n-gram may exceed the budget
        # Residual draws before the residual is enumerated. A draw costs microseconds and an enumeration a drafter pass for every path of
        # the trie, so it is for the tail alone: of slots rejected once in n, a share of (1 − 1/n)^attempts.
        self.attempts = attempts
        # A trie, its version, the bars of first draws in it by their limit, and what a device is told of it.
        self._known: tuple[NgramCache | None, int, dict[int, Tensor], list[Course]] = (None, 0, {}, [])

    # draft ---------------------------------------------------------------------------------------------------------------

    def draft(self, hand: Hand, budget: int) -> Draft:
        draft = Draft()
        left = budget
        open_slots: list[tuple[Slot, list[int]]] = []  # proposals that could have become longer, with the complete children they had
        while left > 0:
            base, limit = len(hand.drafter.ids), left + self.overrun
            hand.look_ahead(self._course, left)
            drawn, q, law = hand.draw(self._bars(hand, limit))
            slot = Slot(-1, (), 0.0, base, limit, {(): law})
            draws, children = self._walk(hand, slot, drawn, q)
            draft.drafted += 1 + draws
            if children and not hand.warp.greedy:
                open_slots.append((slot, children))
            draft.slots.append(slot)
            # The pieces are where the walk began, so what it has read of them stays read: the next slot's first law is known already.
            hand.drafter.rollback(base + len(slot.pieces))
            if slot.target_id < 0:
                break
            for piece in slot.pieces[len(hand.drafter.ids) - base :]:
                hand.drafter.push(piece)
            left -= len(slot.pieces)
            if slot.target_id in hand.end_ids or not hand.goes_on(slot):
                break
        masses = totals([(slot.laws[slot.pieces], children) for slot, children in open_slots])
        for (slot, _), mass in zip(open_slots, masses, strict=True):
            slot.q *= 1.0 - mass
        return draft

    def _course(self, hand: Hand) -> Course:
        """This method's draws for a device: there `first` takes the place of `_bars`, and the trie's table that of `_walk`."""
        courses = self._of_trie(hand)[3]
        if not courses:
            first, inside = hand.ngrams.nearest.masked_fill(hand.map.draftable, 0), least(hand.map.readable_bars)
            courses.append(Course(first, inside, hand.map.to_target >= 0, hand.ngrams.on_device(), self.overrun))
        return courses[0]

    def _bars(self, hand: Hand, limit: int) -> Tensor:
        """Bars [D] of first draws: what may be proposed directly, and what begins an n-gram of at most `limit` tokens."""
        known = self._of_trie(hand)[2]
        if limit not in known:
            known[limit] = bars(hand.map.draftable | hand.ngrams.begins(limit))
        return known[limit]

    def _of_trie(self, hand: Hand) -> tuple[NgramCache | None, int, dict[int, Tensor], list[Course]]:
        if self._known[:2] != (hand.ngrams, hand.ngrams.version):
            self._known = (hand.ngrams, hand.ngrams.version, {}, [])
        return self._known

    def _walk(self, hand: Hand, slot: Slot, first: int, q: float) -> tuple[int, list[int]]:
        """Walk from the first drawn token, fill the slot with the longest complete node; returns the number of further draws, and the
        complete children to which the walk could have gone on from there. The slot's q is Q̄."""
        path: Path = (first,)
        draws = 0
        children: list[int] = []
        if hand.map.targets[first] >= 0:
            slot.target_id, slot.pieces, slot.q = hand.map.targets[first], path, q
        node = hand.ngrams.root.children.get(first)
        while node is not None and _goes_on(node, slot.limit):
            hand.drafter.push(path[-1])
            drawn, factor, slot.laws[path] = hand.draw(hand.map.readable_bars)
            draws += 1
            if slot.pieces == path:
                children = _complete_children(node, slot.limit)
            node = node.children.get(drawn)
            if node is None or node.reach > slot.limit:
                break
            path, q = (*path, drawn), q * factor
            if node.target >= 0:
                slot.target_id, slot.pieces, slot.q = node.target, path, q
                children = []
        return draws, children

    # residual ------------------------------------------------------------------------------------------------------------

    def residual(self, hand: Hand, slot: Slot, law: Tensor) -> int:
        """A token from norm(p − A) by rejection: draw t ~ p, and throw it away with probability A(t)/p(t)."""

        known: dict[int, tuple[Path, Node | None, float]] = {}
        foreseen = _Foreseen(hand, slot, law, hand.chooser) if isinstance(hand.chooser, Sampler) and not on_host(law) else None

        def attempt() -> int | None:
            token, p, first = foreseen.draw() if foreseen else (hand.chooser.draw(law), None, None)
            if foreseen and foreseen.rejects(p, first):
                return token
            if token not in known:
                known[token] = self._bound(hand, slot, token, first)
            path, node, bound = known[token]
            if bound <= 0.0 or not hand.chooser.accept(min(1.0, bound / (float(law[token]) if p is None else p))):
                return token
            return token if self._simulate(hand, slot, path, node) else None

        token = hand.chooser.first(attempt, self.attempts)
        if token is None:
            token = self._enumerate(hand, slot, law)
        hand.drafter.rollback(slot.base)
        return token

    def _bound(self, hand: Hand, slot: Slot, token: int, first: float | None = None) -> tuple[Path, Node | None, float]:
        """(path, trie node, B) of a target token in this slot; B is 0 for what the slot could not have proposed. `first`: the probability
        of the path's first piece, where it is known."""
        path = _path(hand, token)
        if path is None or len(path) > slot.limit:
            return (), None, 0.0
        bound = float(slot.laws[()][path[0]]) if first is None else first
        node = hand.ngrams.root.children.get(path[0])
        for depth in range(1, len(path)):
            if bound <= 0.0 or node is None:
                return path, node, 0.0
            bound *= float(self._law(hand, slot, path[:depth])[path[depth]])
            node = node.children.get(path[depth])
        if bound > 0.0 and node is not None and _has_complete_child(node, slot.limit):
            bound *= 1.0 - _complete_mass(node, slot.limit, self._law(hand, slot, path))
        return path, node, bound

    def _simulate(self, hand: Hand, slot: Slot, path: Path, node: Node | None) -> bool:
        """Walk on from a node, not through its complete children (B has taken them off): does a longer complete node come?"""
        avoiding = True
        while node is not None and _goes_on(node, slot.limit):
            open_children = [d for d, child in node.children.items() if child.reach <= slot.limit and child.target < 0]
            if avoiding and not open_children:
                return False
            law = self._law(hand, slot, path)
            if avoiding:
                complete = [d for d, child in node.children.items() if child.target >= 0 and child.reach <= slot.limit]
                law = law.clone()
                law[torch.tensor(complete, dtype=torch.long, device=law.device)] = 0.0
                mass = float(law.sum())
                if mass <= 0.0:
                    return False
                law = law / mass
                avoiding = False
            drawn = hand.chooser.draw(law)
            node = node.children.get(drawn)
            if node is None or node.reach > slot.limit:
                return False
            if node.target >= 0:
                return True
            path = (*path, drawn)
        return False

    def _enumerate(self, hand: Hand, slot: Slot, law: Tensor) -> int:
        """The residual in full: A(t) for each token of p. Only for the long tail, where proposal and target nearly agree."""
        law = law.double()
        direct, pieces = hand.map.mapped_targets, hand.map.mapped_drafters
        # What begins no n-gram is proposed whenever it is drawn; the rest is what the trie knows, and is walked.
        rest = law.index_add(0, direct, torch.minimum(slot.laws[()][pieces].double(), law[direct]), alpha=-1)
        begins = torch.tensor(list(hand.ngrams.root.children), dtype=torch.long, device=pieces.device)
        walked = set(direct[torch.isin(pieces, begins)].tolist()) | {entry.target_id for entry in hand.ngrams}
        for token in walked:
            path, node, bound = self._bound(hand, slot, token)
            taken = min(bound, float(law[token])) if bound > 0.0 else 0.0
            rest[token] = law[token] - (taken * (1.0 - self._onward(hand, slot, path, node, avoiding=True)) if taken else 0.0)
        rest.clamp_(min=0.0)
        mass = float(rest.sum())
        return hand.chooser.draw(rest / mass if mass > 0 else law)

    def _onward(self, hand: Hand, slot: Slot, path: Path, node: Node | None, avoiding: bool) -> float:
        """P(a walk on from `path` reaches a longer complete node), conditioned on avoiding complete children where asked."""
        if node is None or not _goes_on(node, slot.limit):
            return 0.0
        law = self._law(hand, slot, path)
        complete = _complete_mass(node, slot.limit, law)
        onward = 0.0 if avoiding else complete
        for drawn, child in node.children.items():
            if child.target < 0 and child.reach <= slot.limit and float(law[drawn]) > 0.0:
                onward += float(law[drawn]) * self._onward(hand, slot, (*path, drawn), child, avoiding=False)
        return (onward / (1.0 - complete) if complete < 1.0 else 0.0) if avoiding else onward

    def _law(self, hand: Hand, slot: Slot, path: Path) -> Tensor:
        """The drafter's law [D] after the slot's base and `path`, remembered for the slot."""
        law = slot.laws.get(path)
        if law is None:
            hand.drafter.rollback(slot.base)
            for piece in path:
                hand.drafter.push(piece)
            law = hand.law(hand.map.readable_bars)
            slot.laws[path] = law
        return law


class _Foreseen:
    """Draws from p on a device, of which each would wait: so it is asked at once what all of the sampler's next numbers draw."""

    def __init__(self, hand: Hand, slot: Slot, law: Tensor, sampler: Sampler) -> None:
        self.hand, self.slot, self.law, self.sampler = hand, slot, law, sampler
        self._known: dict[float, tuple[int, float, float | None]] = {}

    def draw(self) -> tuple[int, float, float | None]:
        """(token, its p, the probability of the first piece by which the slot could have proposed it; None where that is not known)."""
        number = self.sampler.uniform()
        if number not in self._known:
            numbers = [number, *self.sampler.look_ahead(BATCH - 1)]
            tokens, p, q = self._ask(torch.tensor(numbers, dtype=torch.float64).to(self.law.device, non_blocking=True))
            self._known = dict(zip(numbers, zip(tokens, p, map(self._first, tokens, q), strict=True), strict=True))
        return self._known[number]

    def _ask(self, numbers: Tensor) -> tuple[list[int], list[float], list[float]]:
        drawn, p = drawn_at(self.law, numbers)
        q = self.slot.laws[()].gather(-1, self.hand.map.to_drafter.gather(-1, drawn).clamp_(min=0))
        return fetch_all(drawn, p, q)

    def _first(self, token: int, q: float) -> float | None:
        path = _path(self.hand, token)
        return 0.0 if path is None or len(path) > self.slot.limit else q if len(path) == 1 else None

    def rejects(self, p: float | None, first: float | None) -> bool:
        """Whether the sampler's next number rejects a token already because its first piece was so improbable. The number is used then."""
        if p is None or not first or self.sampler.look_ahead(1)[0] < first / p:
            return False
        self.sampler.uniform()
        return True


def _path(hand: Hand, token: int) -> Path | None:
    """The drafter tokens with which a slot may propose a target token; None for one that it cannot propose."""
    direct = hand.map.drafters[token]
    return hand.ngrams.path(token) if direct < 0 else (direct,) if hand.map.may_draft[direct] else None


def _goes_on(node: Node, limit: int) -> bool:
    """Whether a walk draws on from here: some child can still become an n-gram within the limit. Depends on trie and budget alone."""
    return node.depth < limit and any(child.reach <= limit for child in node.children.values())


def _has_complete_child(node: Node, limit: int) -> bool:
    return node.depth < limit and any(child.target >= 0 for child in node.children.values())


def _complete_children(node: Node, limit: int) -> list[int]:
    """The drafter tokens that lead to complete children that fit."""
    if node.depth + 1 > limit or node.depth + 1 >= FAR:
        return []
    return [drawn for drawn, child in node.children.items() if child.target >= 0]


def _complete_mass(node: Node, limit: int, law: Tensor) -> float:
    """Σ q over the complete children that fit."""
    ids = _complete_children(node, limit)
    return total(law, ids) if ids else 0.0
