"""The residual of `NgramExact`: the token that replaces a rejected slot, by rejection sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omnidemo.decoding.backend import Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.randomness import RowSampler
from omnidemo.decoding.row_ops import rest_of
from omnidemo.decoding.sampling import Probs, restricted, total
from omnidemo.vocabulary.ngram_cache import NgramCache

Path = tuple[int, ...]
# tokens with a close bound at first, after the plain attempts have failed
FEW = 16
LAST = 1 << 16


@dataclass(slots=True)
class Residual:
    """norm(p − A) of one slot; `probs` [T] is p. Computed values are kept until the slot is corrected."""

    context: RoundContext
    ngrams: NgramCache
    slot: Slot
    probs: Probs
    _bounds: dict[int, tuple[Path, int, float]] = field(default_factory=dict, init=False)
    _draws: dict[tuple[Path, str], RowSampler | None] = field(default_factory=dict, init=False)

    def token(self, attempts: int) -> int:
        """A token of the residual by rejection: draw t ~ p, and discard it with probability A(t)/p(t). After
        `attempts` discarded draws the residual is a tiny part of p, and tokens are drawn from a closer upper
        bound, see `_closer`."""
        rng, first = self.context.rng, self.slot.distributions[()]
        draws = RowSampler(rng, self.probs)

        def attempt() -> int | None:
            token, p = draws.draw()
            if token not in self._bounds:
                path = self._path(token)
                if not path:
                    return token
                q = float(first[path[0]])
                if 0.0 < q < p and draws.passes_over(q / p):
                    # the bound is at most the probability of the first drafter id
                    return token
                self._bounds[token] = self._bound(path, q)
            return self._judge(token, p)

        token, known = rng.first(attempt, attempts), FEW
        while token is None:
            token = self._closer(known, max(attempts, 1))
            known *= 4
        self.context.drafter.rollback(self.slot.base)
        return token

    def _judge(self, token: int, p: float) -> int | None:
        """A drawn token of probability p, or None where it is discarded."""
        path, node, bound = self._bound_of(token)
        if bound <= 0.0 or not self.context.rng.accept(min(1.0, bound / p)):
            return token
        return token if self._simulate(path, node) else None

    def _closer(self, known: int, attempts: int) -> int | None:
        """A token of the residual, or None after `attempts` attempts, by rejection from an upper bound E(t)
        of p(t) − A(t). Once `known` covers all tokens there are `LAST` attempts; if these fail too, the
        residual is below the rounding of float32.

        A token that begins no n-gram is proposed whenever it is drawn, so there E = p − q exactly. For the
        most probable `known` of the others E = p − min(p, B)·(1 − U), where U ≥ f is the probability that the
        walk's next step leads to a node that is no n-gram but can become one; for the rest E = p. So few
        draws are discarded, and drafter passes are made for `known` tokens only.
        """
        context, slot, rng = self.context, self.slot, self.context.rng
        direct, drafter_ids = context.map.mapped_targets, context.map.mapped_drafters
        probs = self.probs.astype(np.float64)
        upper, walks = probs.copy(), np.zeros(len(probs), np.bool_)
        upper[direct] -= np.minimum(slot.distributions[()][drafter_ids], probs[direct])
        walks[direct] = self.ngrams.begins(slot.limit)[drafter_ids]
        walks[self.ngrams.target_ids] = True
        upper = np.maximum(np.where(walks, probs, upper), 0.0)
        ranked = np.where(walks, probs, -1.0)
        best = np.argpartition(ranked, -min(known, len(ranked)))[-min(known, len(ranked)) :]
        # of the known tokens: the part of p that B leaves, and E
        parts: dict[int, tuple[float, float]] = {}
        for token in best[ranked[best] > 0.0].tolist():
            parts[token] = self._parts(token, float(probs[token]))
            upper[token] = parts[token][1]
        mass = float(upper.sum())
        if mass <= 0.0:
            return rng.draw(self.probs)  # nothing is left, but for rounding
        draws = RowSampler(rng, upper / mass)

        def attempt() -> int | None:
            token = draws.draw()[0]
            if not bool(walks[token]):
                return token
            if token in parts:
                sure, bound = parts[token]
                path, node, _ = self._bounds[token]
                return (
                    token if rng.accept(sure / bound) or self._simulate(path, node, entering=True) else None
                )
            return self._judge(token, float(probs[token]))

        token = rng.first(attempt, attempts if len(parts) == known else LAST)
        return token if token is not None or len(parts) == known else rng.draw(self.probs)

    def _parts(self, token: int, p: float) -> tuple[float, float]:
        """(p − min(p, B), that plus min(p, B)·U) of a token."""
        path, node, bound = self._bound_of(token)
        taken = min(p, bound)
        trie, limit = self.ngrams.trie, self.slot.limit
        if (
            taken <= 0.0
            or not trie.can_continue(node, limit)
            or not (inner := trie.children(node, limit, complete=False))
        ):
            return p - taken, p - taken
        others = rest_of(self._complete_mass(path, node))
        further = total(self._probs(path), inner) / others if others > 0.0 else 0.0
        return p - taken, p - taken + taken * min(1.0, further)

    def _path(self, token: int) -> Path:
        """The drafter tokens with which the slot could have proposed a target token; () for none."""
        context = self.context
        direct = context.map.drafters[token]
        path = self.ngrams.path(token) if direct < 0 else (direct,) if context.map.may_draft[direct] else None
        return path if path is not None and len(path) <= self.slot.limit else ()

    def _bound_of(self, token: int) -> tuple[Path, int, float]:
        if token not in self._bounds:
            self._bounds[token] = self._bound(self._path(token))
        return self._bounds[token]

    def _bound(self, path: Path, first: float | None = None) -> tuple[Path, int, float]:
        """(path, node (0: none), B) of the path's token; B is 0 for (). `first`: the probability of its first
        drafter id, if known."""
        if not path:
            return (), 0, 0.0
        trie = self.ngrams.trie
        bound = float(self.slot.distributions[()][path[0]]) if first is None else first
        node = trie.child(0, path[0])
        for depth in range(1, len(path)):
            if bound <= 0.0 or not node:
                return path, node, 0.0
            bound *= float(self._probs(path[:depth])[path[depth]])
            node = trie.child(node, path[depth])
        if bound > 0.0:
            bound *= rest_of(self._complete_mass(path, node))
        return path, node, bound

    def _simulate(self, path: Path, node: int, entering: bool = False) -> bool:
        """Walk on from a node, but not through its complete children, which B has excluded: does a longer
        complete node come? `entering`: the first step leads to a child that is no n-gram but can become
        one."""
        step, limit, trie = "entering" if entering else "avoiding", self.slot.limit, self.ngrams.trie
        while trie.can_continue(node, limit):
            draws = self._draws_after(path, node, step)
            if draws is None:
                return False
            drawn, step = draws.draw()[0], "free"
            node = trie.child(node, drawn)
            if trie.nearest(node) > limit:
                return False
            if trie.spells(node) >= 0:
                return True
            path = (*path, drawn)
        return False

    def _draws_after(self, path: Path, node: int, step: str) -> RowSampler | None:
        """Draws from the distribution after a path. `step`: "free" from all of it, "avoiding" without the
        complete children, "entering" only from children that are not complete but can become so. None where
        no longer n-gram is possible."""
        if (path, step) not in self._draws:
            probs: Probs | None = None
            inner = self.ngrams.trie.children(node, self.slot.limit, complete=False) if step != "free" else []
            if step == "free":
                found = self._probs(path)
                probs = found if float(found.sum()) > 0.0 else None
            elif inner and step == "avoiding":
                probs = restricted(
                    self._probs(path),
                    self.ngrams.trie.children(node, self.slot.limit, complete=True),
                    keep=False,
                )
            elif inner:
                probs = restricted(self._probs(path), inner, keep=True)
            self._draws[path, step] = None if probs is None else RowSampler(self.context.rng, probs)
        return self._draws[path, step]

    def _complete_mass(self, path: Path, node: int) -> float:
        """Σ q over the complete children that fit."""
        ids = self.ngrams.trie.children(node, self.slot.limit, complete=True)
        return total(self._probs(path), ids) if ids else 0.0

    def _probs(self, path: Path) -> Probs:
        return self.context.probs_after(self.slot, path)
