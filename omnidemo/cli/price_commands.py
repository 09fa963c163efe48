"""The command prices, and what `generate --explain` prints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnidemo.cli.common import loaded, read_settings, show
from omnidemo.cli.options import Drafter, KeptIn, Target

if TYPE_CHECKING:
    from omnidemo.core.records import Round
    from omnidemo.pair.pair import Pair

EXPLAINED = (
    "A source is taken where its expected tokens per price reach what is needed: 1, as without a guess, and a"
    " margin; for ids from memory also the drafter's. Chances are learned from earlier guesses. `prices`"
    " prints what a price is made of."
)


def prices(
    measure: Annotated[bool, typer.Option("--measure", help="Measure now, whatever is kept.")] = False,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Print the price of a target's pass by its rows, and of a drafter's step, beside the times of rounds.

    The list is kept in the storage folder, else in the user's cache. It is measured where there is none for
    this machine and the form of these weights.
    """
    settings = read_settings(target=target, drafter=drafter, storage=storage, training="off")
    pair = loaded(settings, storage, compiled=True)
    pair.prices.look()
    if measure or not pair.prices.list.known:
        pair.measure_prices()
    _print(pair)


def _print(pair: Pair) -> None:
    found = pair.prices.list
    took, plain = found.taken(), found.price(1)
    counts = sorted({*found.passes, *(rows for rows, _ in took)})

    def newest(rows: int, drafts: bool) -> str:
        count, seconds = took.get((rows, drafts), (0, 0.0))
        return f"{1e3 * seconds:.2f} ({count})" if count else "–"

    lines = [
        (str(rows), f"{1e3 * found.price(rows):.2f}", f"{found.price(rows) / plain:.2f}",
         newest(rows, False), newest(rows, True))
        for rows in counts
    ]  # fmt: skip
    show(
        ("rows", "price, ms", "in plain rounds", "rounds took, ms", "with drafts, ms"), lines,
        title=f"Prices of {pair.target.name} with {pair.drafter.name}",
    )  # fmt: skip
    since = datetime.fromtimestamp(found.at, UTC).strftime("%Y-%m-%d %H:%M UTC") if found.at else "never"
    typer.echo(
        f"A step of the drafter: {1e3 * found.step:.2f} ms. A draft besides: {1e3 * found.beside:.2f} ms."
        f" A thousand positions: {1e6 * found.attention:.2f} ms. The list is {found.origin}"
        f" (newest time: {since}) and corrected by {found.heard} rounds. In brackets: how many of the newest"
        " rounds. With drafts: the drafter's steps are in it."
    )


def explain(rounds: Sequence[Round]) -> None:
    """Print for each round the offers of each source, the taken one, and why nothing was proposed, if so."""
    lines = []
    for done in rounds:
        for place, offer in enumerate(done.offers):
            figures = (offer.chance, offer.tokens, offer.price, offer.rate, offer.needed)
            made = f"proposed {done.proposed}" if done.proposed else f"no guess ({_why_alone(done)})"
            made += f", {done.forced} of them forced" if done.forced else ""
            lines.append(
                ("" if place else str(done.index), offer.source, str(offer.length),
                 *(f"{figure:.2f}" for figure in figures),
                 f"took it, {made}, wrote {len(done.tokens)}" if offer.taken else "")
            )  # fmt: skip
    headings = ("round", "source", "tokens", "chance of all", "expected", "price", "per price", "needed", "")
    show(headings, lines, EXPLAINED, title="What each source offered; prices in plain rounds")


def _why_alone(done: Round) -> str:
    """Why a round proposed nothing."""
    taken = next(offer for offer in done.offers if offer.taken)
    if taken.length and not done.draft_length:
        return "no room for a guess"
    if taken.length:
        return f"{done.drafted} drafted, which spell no token"
    told = [f"{offer.source} {offer.rate:.2f} < {offer.needed:.2f}" for offer in done.offers if offer.length]
    memory = any(offer.source in ("copy", "fused") for offer in done.offers)
    return ", ".join([*told, *([] if memory else ["memory has nothing"])])
