"""Recorded rounds, by which the page replays an answer: JSON lines for the browser, packed for the database.

The lines of a round, in reading order, each a JSON object with a key `k`:

    t       an emitted token: i id, t text, s source, r round, n position, p, q, a (acceptance), g pieces,
            gi their ids; of a copied one, which has no q (it is 1), m [length of the match, where it is]
    x       a discarded draft: as `t`; j true for the one that was judged and rejected
    r       the round itself: r its index, d drafter tokens drawn, s microseconds of draft, verify, settle,
            other (only where it was timed), o what it chose from, where that is known: an `Offer` each, the
            plain round's first
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from omnidemo.core.offers import Offer
from omnidemo.core.records import PROPOSED, STAGES, Round, Token

MOST_BYTES = 20_000  # of a recording, packed


def json_line(kind: str, **fields: Any) -> str:
    """One JSON line: ASCII only, for lone surrogates and U+2028, and without `<`, so that it has no tag."""
    line = json.dumps({"k": kind, **fields}, separators=(",", ":"), allow_nan=False)
    return line.replace("<", "\\u003c") + "\n"


def finite(value: float | None, digits: int = 4) -> float | None:
    """A rounded number for JSON; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def _probability(value: float) -> float | None:
    """Four significant digits of a probability; None for NaN."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _token(kind: str, token: Token, round_index: int, position: int, **extra: Any) -> str:
    fields: dict[str, Any] = {
        "i": token.id, "t": token.text, "s": token.source, "r": round_index, "n": position,
    }  # fmt: skip
    fields["p"] = _probability(token.p)
    if token.match is not None:
        fields["m"] = list(token.match)
    elif token.q is not None:
        fields["q"] = _probability(token.q)
    if token.accept is not None:
        fields["a"] = _probability(token.accept)
    if token.pieces:
        fields["gi"] = list(token.pieces)
        fields["g"] = list(token.piece_texts)
    return json_line(kind, **fields, **extra)


def round_lines(record: Round) -> Iterator[str]:
    """The lines of one round in reading order: accepted tokens, discarded ones, the target's own, the
    round."""
    split = len(record.tokens)
    if record.discarded:
        split = next((i for i, token in enumerate(record.tokens) if token.source not in PROPOSED), split)
    for position, token in enumerate(record.tokens[:split]):
        yield _token("t", token, record.index, position)
    rejected = record.judged > record.accepted
    for offset, token in enumerate(record.discarded):
        yield _token("x", token, record.index, split + offset, j=rejected and offset == 0)
    for position, token in enumerate(record.tokens[split:], start=split):
        yield _token("t", token, record.index, position)
    times = [max(0, round(1e6 * (record.seconds.get(stage) or 0.0))) for stage in STAGES]
    more: dict[str, Any] = {"s": times} if any(times) else {}
    if record.offers:
        more["o"] = [_offer(offer) for offer in record.offers]
    yield json_line("r", r=record.index, d=record.drafted, **more)


def _offer(offer: Offer) -> list[Any]:
    source, length, tokens, price, chance, taken, _ = offer
    return [source, length, finite(tokens, 2), finite(price, 2), finite(chance, 2), int(taken)]


def pack(rounds: Sequence[Round]) -> tuple[bytes, int]:
    """The compressed lines of the first rounds that fit into MOST_BYTES, and the number of these rounds."""
    parts = ["".join(round_lines(done)).encode("ascii") for done in rounds]
    kept = len(parts)
    while len(packed := zlib.compress(b"".join(parts[:kept]))) > MOST_BYTES:
        kept = min(kept - 1, kept * MOST_BYTES // len(packed))
    return packed, kept


def unpack(packed: bytes) -> str:
    """The packed lines."""
    return zlib.decompress(packed).decode("ascii")
