"""What the store keeps of learning beside the versions: probes of each version, the agreement of each answer, the banner's count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from omnidemo.records import Agreement, Probe, Replayed, Round, Token
from omnidemo.store.tables import ProbeRow, RequestRow, columns_of, number, of_pair, utc


def write_agreement(connection: Connection, key: str, found: Agreement) -> None:
    """Note the agreement of the answer with this key; nothing where it was not stored."""
    values = {"agreement": number(found.overlap), "same_first": number(found.same_first)}
    connection.execute(update(RequestRow).where(RequestRow.key == key).values(**values))


def write_probe(connection: Connection, pair: int, one: Probe) -> None:
    """Put a probe in the place of an earlier one of the same version and topic. Rounds stay only of the newest version of the line, and
    probes of other recordings of the topic go: they can be compared with nothing any more."""
    topic = (ProbeRow.pair_id == pair, ProbeRow.topic == one.topic)
    own = (*topic, ProbeRow.domain == one.domain)
    connection.execute(delete(ProbeRow).where(*topic, ProbeRow.recording != one.recording))
    connection.execute(delete(ProbeRow).where(*own, ProbeRow.version == one.version))
    if one.shown:
        connection.execute(update(ProbeRow).where(*own).values(shown=None))
    counts = {name: int(getattr(one, name)) for name in ("version", "examples", "prompts", "tokens", "passes")}
    agreed = one.agreement
    row = {"pair_id": pair, "domain": one.domain, "topic": one.topic, "recording": one.recording, "created_at": utc(one.created_at or None)}
    row |= {"agreement": number(agreed.overlap) if agreed else None, "same_first": number(agreed.same_first) if agreed else None}
    connection.execute(insert(ProbeRow).values(**row, **counts, shown=[asdict(each) for each in one.shown] or None))


def probes_query(target: str, drafter: str, domain: str, topic: str | None, shown: bool) -> Select[Any]:
    """The probes of a line and of the fresh drafter, by version; `shown`: with their rounds."""
    columns = columns_of(ProbeRow, "id", "pair_id", *(() if shown else ("shown",)))
    query = of_pair(select(*columns), ProbeRow.pair_id, target, drafter).where(ProbeRow.domain.in_(("", domain)))
    query = query if topic is None else query.where(ProbeRow.topic == topic)
    return query.order_by(ProbeRow.version)


def replayed(stored: Iterable[Mapping[str, Any]]) -> list[Replayed]:
    """The rounds that a row's `shown` holds."""
    return [Replayed(one["prompt"], tuple(_round(each) for each in one["rounds"])) for one in stored]


def _round(stored: Mapping[str, Any]) -> Round:
    def tokens(name: str) -> tuple[Token, ...]:
        return tuple(Token(**{**one, **{part: tuple(one[part]) for part in ("pieces", "piece_texts")}}) for one in stored[name])

    return Round(**{**stored, "tokens": tokens("tokens"), "discarded": tokens("discarded"), "inserts": ()})
