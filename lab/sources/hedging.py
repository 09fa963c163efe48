"""Which source drafts: drafter, copied text or nothing, chosen anew for each block of tokens by how all of
them would have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from lab.drafters.ceilings import Prices, Simulation, Sums
from lab.drafters.guesses import Guesses
from lab.sources.outcome import LEAST, Outcome
from omnidemo.copying.copier import LONGEST_COPY, CopiedDraft, Copier, CopyChances
from omnidemo.copying.text_index import TextIndex

BLOCK = 32  # tokens for which one source is chosen
DECAYS = (1.0, 0.9)  # of older regrets, with each block
WORST = 2.0  # times a plain pass, at which a loss is 1
FIXED = ("nothing", "copied text", "drafter")
CHOSEN = {"nothing": "", "copied text": "copy", "drafter": "drafter"}  # ways of `Simulation`
ORDERS = ("one set after the other", "sets in turns")


class NormalHedge:
    """Weights of sources without a rate to be set (Chaudhuri, Freund and Hsu, 2009), by regrets that fade."""

    def __init__(self, arms: int, decay: float) -> None:
        self.regrets, self.decay = np.zeros(arms), decay

    @property
    def weights(self) -> NDArray[np.float64]:
        """∝ R/c · exp(R² / 2c) of positive regrets R, where c makes the mean of exp(R² / 2c) be e."""
        positive = np.maximum(self.regrets, 0.0)
        largest = float(positive.max())
        if largest <= 1e-12:
            return np.full(len(positive), 1 / len(positive))
        low, high = largest**2 / (2 * (1 + np.log(len(positive)))), largest**2 / 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.exp(positive**2 / (2 * middle)).mean() > np.e else (low, middle)
        found = positive * np.exp(positive**2 / (2 * high))
        return np.asarray(found / found.sum())

    def learn(self, losses: NDArray[np.float64]) -> None:
        """Take what every source would have lost, from 0 to 1."""
        self.regrets = self.decay * self.regrets + (self.weights @ losses - losses)


@dataclass(slots=True)
class Ledger(Sums):
    """Sums, and the ms of each token: its part of its round's."""

    each: list[float] = field(default_factory=list)

    def add(self, other: Sums) -> None:
        Sums.add(self, other)
        self.each += [other.milliseconds / other.tokens] * other.tokens


def chosen_lengths(
    stream: Sequence[Guesses], prices: Prices, ends: Sequence[int], way: str
) -> NDArray[np.float64]:
    """ms of each token where rounds propose what is expected to save time, in one of the ways of
    `Simulation`."""
    ledger = Ledger()
    simulation = Simulation(prices, way, ledger)
    for guesses in stream:
        simulation.answer(guesses, ends)
    return np.array(ledger.each)


def fixed_lengths(
    stream: Sequence[Guesses], prices: Prices, ends: Sequence[int], arm: str, length: int
) -> NDArray[np.float64]:
    """ms of each token where every round proposes: `length` guesses of the drafter, or as many ids as can be
    copied."""
    rows, ledger = prices.of_rows(max(length, LONGEST_COPY) + 1), Ledger()
    for guesses in stream:
        ids, at = guesses.answer.ids, 0
        copies = copied(guesses, ends) if arm == "copied text" else []
        while at < len(ids):
            proposed, right, spent = 0, list[bool](), 0.0
            if arm == "drafter":
                proposed, right = length, guesses.right[at : at + length].tolist()
                spent = prices.step * float(np.maximum(1, guesses.lengths[at : at + length]).sum())
            elif arm == "copied text" and (draft := copies[at]) is not None:
                proposed, right = (
                    len(draft.ids),
                    [one == token for one, token in zip(draft.ids, ids[at:], strict=False)],
                )
            kept = min((right.index(False) if False in right else len(right)) + 1, len(ids) - at)
            ledger.add(Sums(kept, 1, rows[proposed + 1] + spent))
            at += kept
    return np.array(ledger.each)


def copied(guesses: Guesses, ends: Sequence[int]) -> list[CopiedDraft | None]:
    """What would be copied at each token of an answer."""
    ids, prompt, text = guesses.answer.ids, guesses.answer.prompt, TextIndex()
    copier = Copier(text, CopyChances(), ends, len(prompt))
    found = []
    for at in range(len(ids)):
        found.append(copier.draft([*prompt, *ids[:at]], LONGEST_COPY))
        if (draft := found[-1]) is not None:
            copier.learn_from(draft, ids[at:])
    return found


def hedged(
    blocks: NDArray[np.float64],
    tokens: NDArray[np.int64],
    plain: float,
    watch: NDArray[np.float64],
    decay: float,
) -> float:
    """Expected ms of a learner that draws the source of each block by its weights. `blocks` [arms, blocks]:
    ms of each; `watch` [arms]: ms a token for reading along with a source that was not drawn."""
    learner, spent = NormalHedge(len(blocks), decay), 0.0
    for costs, count in zip(blocks.T, tokens, strict=True):
        weights = learner.weights
        spent += float(weights @ costs + count * ((1 - weights) @ watch))
        learner.learn(np.minimum(1.0, costs / (WORST * plain * count)))
    return spent


def in_turns(found: Sequence[Guesses]) -> list[Guesses]:
    """One answer of each set after the other."""
    sets: dict[str, list[Guesses]] = {}
    for one in found:
        sets.setdefault(one.answer.set, []).append(one)
    return [one for some in zip_longest(*sets.values()) for one in some if one is not None]


def speeds(
    stream: Sequence[Guesses], prices: Prices, ends: Sequence[int], length: int, watch: float
) -> dict[str, float]:
    """× plain decoding of each source and each way to choose among them."""
    plain = prices.of_rows(1)[1]
    today = chosen_lengths(stream, prices, ends, "both")
    starts = np.arange(0, len(today), BLOCK)
    tokens, everything = np.diff([*starts, len(today)]), len(today) * plain
    reading = np.array([watch if arm == "drafter" else 0.0 for arm in FIXED])
    found: dict[str, float] = {}
    for manner in ("always", "by the policy"):
        each = []
        for arm in FIXED:
            if manner == "always" or not CHOSEN[arm]:
                each.append(fixed_lengths(stream, prices, ends, arm, length))
            else:
                each.append(chosen_lengths(stream, prices, ends, CHOSEN[arm]))
        blocks = np.add.reduceat(np.array(each), starts, axis=1)
        found |= {
            f"{arm}, {manner}" if CHOSEN[arm] else arm: everything / float(one.sum())
            for arm, one in zip(FIXED, each, strict=True)
        }
        for decay in DECAYS:
            found[f"NormalHedge, decay {decay}, {manner}"] = everything / hedged(
                blocks, tokens, plain, reading, decay
            )
        found[f"best source in hindsight, {manner}"] = everything / float(blocks.sum(1).min())
        found[f"best source of each block, {manner}"] = everything / float(blocks.min(0).sum())
    found["today's policy, which chooses each round"] = everything / float(today.sum())
    return found


def hedging(
    found: Sequence[Guesses], prices: Prices, ends: Sequence[int], length: int, watch: float
) -> Outcome:
    """`length`: guesses of the drafter where it always drafts. `watch`: ms a token for reading along with a
    drafter that was not drawn."""
    streams = dict(zip(ORDERS, (found, in_turns(found)), strict=True))
    every = {order: speeds(stream, prices, ends, length, watch) for order, stream in streams.items()}
    tokens = sum(len(one.right) for one in found)
    firsts = [
        draft.ids[0] == token
        for one in found
        for draft, token in zip(copied(one, ends), one.answer.ids, strict=True)
        if draft
    ]
    right = {
        "copied text": sum(firsts) / tokens,
        "drafter": sum(int(one.right.sum()) for one in found) / tokens,
    }
    names, lines = list(every[ORDERS[0]]), list[list[str]]()
    for name in names:
        arm = name.split(",")[0]
        lines.append(
            [
                name,
                f"{right[arm]:.3f}" if arm in right else "",
                *(f"{every[order][name]:.2f}" for order in ORDERS),
            ]
        )
    learned = [name for name in names if name.startswith("NormalHedge")]
    gain = {order: max(every[order][name] for name in learned) / every[order][names[-1]] for order in ORDERS}
    said = "beside today's policy the best learner makes " + ", ".join(
        f"{one:.2f} × ({order})" for order, one in gain.items()
    )
    brings = "brings nothing here" if max(gain.values()) < LEAST else "could bring something"
    says = f"Choosing a source for each block {brings}: {said}."
    return Outcome(
        "arms",
        "Which source drafts",
        ["source", "right", *(f"× plain, {order}" for order in ORDERS)],
        lines,
        says,
    )
