"""Early exit: the target's own first layers draft, and all of them verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lab.drafters.ceilings import Prices, Sums, simulate
from lab.drafters.guesses import Guesses
from lab.drafters.score import count_rounds
from lab.sources.outcome import LEAST, Outcome
from lab.sources.pass_bytes import Parts
from lab.sources.read_answers import Reading

LENGTHS = range(1, 7)  # guesses of a draft
PLACES = (0.1, 0.2, 1 / 3, 0.5, 2 / 3, 5 / 6)  # of all layers, where no exits are named


def usual_exits(layers: int) -> list[int]:
    return sorted({min(layers - 1, max(1, round(place * layers))) for place in PLACES}) if layers > 1 else []


def guesses_of(readings: Sequence[Reading], number: int) -> list[Guesses]:
    """What an exit, by its number, would have guessed at each token."""
    found = []
    for reading in readings:
        right = reading.choices[number] == np.array(reading.answer.ids)
        ones = np.ones(len(right), np.int32)
        found.append(Guesses(reading.answer, ones, right * 1.0, right * 1.0, right, reading.sure[number]))
    return found


def tokens_a_round(found: Sequence[Guesses], length: int) -> float:
    """The mean accepted length, with the token that the target writes itself."""
    return sum(len(one.right) for one in found) / sum(
        count_rounds(one.right.tolist(), length) for one in found
    )


def early_exit(
    readings: Sequence[Reading],
    exits: Sequence[int],
    parts: Parts,
    rows: Mapping[int, float],
    ends: Sequence[int],
) -> Outcome:
    """A draft of n guesses costs n steps of the exit and a pass of n + 1 rows; where what the first layers
    made of the guesses is kept, that pass has one row in them."""
    lines, best, most = list[list[str]](), (0.0, 0), 0.0
    for number, exit_after in enumerate(exits):
        found, first = guesses_of(readings, number), sum(parts.layers[:exit_after]) / parts.whole
        share = first + parts.head / parts.whole
        prices = Prices(rows, share * Prices(rows, 0.0).of_rows(1)[1])
        ms, means = prices.of_rows(LENGTHS[-1] + 1), [tokens_a_round(found, length) for length in LENGTHS]
        again = [
            mean * ms[1] / (length * prices.step + ms[length + 1])
            for length, mean in zip(LENGTHS, means, strict=True)
        ]
        kept = [
            mean * ms[1] / (length * prices.step + first * ms[1] + (1 - first) * ms[length + 1])
            for length, mean in zip(LENGTHS, means, strict=True)
        ]
        chosen = total(simulate(found, prices, ends, ("drafter",)), "drafter").speedup(ms[1])
        right = sum(int(one.right.sum()) for one in found) / sum(len(one.right) for one in found)
        best, most = max(best, (max(*again, *kept), exit_after)), max(most, chosen)
        lines.append([
            str(exit_after), f"{right:.3f}", *(f"{mean:.2f}" for mean in means), f"{share:.2f}",
            str(LENGTHS[int(np.argmax(again))]), f"{max(again):.2f}", f"{max(kept):.2f}", f"{chosen:.2f}",
        ])  # fmt: skip
    columns = [
        "layers", "right", *(f"tokens a round, n = {one}" for one in LENGTHS), "step ÷ pass", "best n",
        "× plain",
        "× plain, first layers kept", "× plain, lengths by the policy",
    ]  # fmt: skip
    brings = "brings nothing here" if max(best[0], most) < LEAST else "could bring something"
    says = (
        f"Early exit {brings}: always drafting it makes at most {best[0]:.2f} × plain decoding, with the"
        f" first {best[1]} of {len(parts.layers)} layers, and where the policy may leave it {most:.2f} ×."
    )
    return Outcome("early-exit", "Early exit", columns, lines, says)


def total(sums: Mapping[tuple[str, bool], Mapping[str, Sums]], way: str) -> Sums:
    """Of all sets together."""
    found = Sums()
    for ways in sums.values():
        found.add(ways[way])
    return found
