"""What the store keeps of a pair and its adapter lines: n-grams, versions, training steps, and what was
measured of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, insert, update

from omnidemo.core.metrics import Speed
from omnidemo.core.records import Agreement, NgramEntry, Probe, Replayed, TrainStep
from omnidemo.storage.database import Rows
from omnidemo.storage.tables import (
    LINE_TABLES,
    NGRAMS,
    PROBES,
    REQUESTS,
    STEPS,
    columns_of,
    latest,
    of_line,
    of_pair,
    pair_id,
    utc,
)
from omnidemo.storage.version_files import VersionTable

CHUNK = 500  # ids in one statement; databases limit its parameters


class LineStore(VersionTable):
    """The part of `Store` that pairs and trainers use."""

    def save_ngrams(
        self, target: str, drafter: str, entries: Iterable[NgramEntry], removed: Iterable[int] = ()
    ) -> None:
        """Write n-grams over those of the same target id, and drop the `removed` target ids (an entry wins
        over its removal)."""
        new = {entry.target_id: entry for entry in entries}
        gone = [int(target_id) for target_id in {*removed, *new}]
        if not gone:
            return

        def write(connection: Connection) -> None:
            pair = pair_id(connection, target, drafter)
            for start in range(0, len(gone), CHUNK):
                chunk = gone[start : start + CHUNK]
                connection.execute(
                    delete(NGRAMS).where(NGRAMS.c.pair_id == pair, NGRAMS.c.target_id.in_(chunk))
                )
            if new:
                connection.execute(
                    insert(NGRAMS), [{"pair_id": pair} | asdict(entry) for entry in new.values()]
                )

        self.submit(write)

    def load_ngrams(self, target: str, drafter: str) -> list[NgramEntry]:
        """The n-grams of a pair, least recently inserted first."""
        query = of_pair(NGRAMS, target, drafter, *columns_of(NGRAMS, "pair_id"))
        rows = self.rows(query.order_by(NGRAMS.c.inserted_at, NGRAMS.c.target_id))
        return [NgramEntry(**row | {"drafter_ids": tuple(row["drafter_ids"])}) for row in rows]

    def forget_line(self, target: str, drafter: str, domain: str) -> None:
        """Reset a line: its versions, their probes and its training steps go."""

        def write(connection: Connection) -> None:
            pair = pair_id(connection, target, drafter)
            for table in LINE_TABLES:
                connection.execute(delete(table).where(*of_line(table, pair, domain)))

        self.submit(write)

    def forget_domain(self, domain: str) -> None:
        """Delete the versions, steps and probes of the lines of that name, of all pairs; from their answers
        nothing is copied again."""

        def write(connection: Connection) -> None:
            for table in LINE_TABLES:
                connection.execute(delete(table).where(table.c.domain == domain))
            connection.execute(update(REQUESTS).where(REQUESTS.c.domain == domain).values(remembered=False))

        self.submit(write)

    def copied_from(self, target: str, drafter: str, domain: str, tokens: int) -> list[tuple[str, str]]:
        """(prompt, answer) of a line's newest answers that later ones may copy from, the newest first, about
        so many tokens of them."""
        query = of_pair(REQUESTS, target, drafter, REQUESTS.c.tokens, REQUESTS.c.prompt, REQUESTS.c.answer)
        query = query.where(
            REQUESTS.c.domain == domain, REQUESTS.c.remembered, REQUESTS.c.answer.is_not(None)
        )

        def read(connection: Connection) -> list[tuple[str, str]]:
            answers, room = list[tuple[str, str]](), tokens
            for row in connection.execution_options(yield_per=100).execute(
                query.order_by(REQUESTS.c.id.desc())
            ):
                room -= row.tokens
                if room < 0:
                    break
                answers.append((row.prompt or "", row.answer))
            return answers

        return self.read(read, [])

    def forget_copied(self, domain: str, target: str | None = None, drafter: str | None = None) -> None:
        """Let no answer of a line (without a pair: of the lines of that name) be copied from again; the
        answers stay. Waits for it."""

        def write(connection: Connection) -> None:
            which = [REQUESTS.c.domain == domain, REQUESTS.c.remembered]
            if target is not None and drafter is not None:
                which.append(REQUESTS.c.pair_id == pair_id(connection, target, drafter))
            connection.execute(update(REQUESTS).where(*which).values(remembered=False))

        self.submit(write)
        self.flush(while_ok=True)

    def record_steps(
        self, target: str, drafter: str, domain: str, version: int, steps: Sequence[TrainStep]
    ) -> None:
        """Append optimiser steps of a line to its loss curve; `version` is the adapter version they went
        into."""
        now, taken = utc(), [asdict(step) for step in steps]
        if not taken:
            return

        def write(connection: Connection) -> None:
            line = {
                "pair_id": pair_id(connection, target, drafter),
                "domain": domain,
                "version": version,
                "created_at": now,
            }
            connection.execute(insert(STEPS), [step | line for step in taken])

        self.submit(write)

    def steps(self, target: str, drafter: str, domain: str = "default", limit: int | None = 1000) -> Rows:
        """The newest `limit` training steps of a line, oldest first."""
        query = of_pair(STEPS, target, drafter, *columns_of(STEPS, "id", "pair_id")).where(
            STEPS.c.domain == domain
        )
        return self.rows(latest(query, STEPS.c.id, limit))[::-1]

    def set_agreement(self, key: str, agreement: Agreement) -> None:
        """Note how far drafter and target agree on the answer whose generation has this key; nothing where it
        was not stored."""
        query = update(REQUESTS).where(REQUESTS.c.key == key).values(**_measured(agreement))
        self.submit(lambda connection: connection.execute(query))

    def set_speed(self, key: str, speed: Speed) -> None:
        """Note how fast guessing was on the answer whose generation has this key; nothing where it was not
        stored."""
        values = {"speedup": speed.speedup, "speedup_low": speed.low, "speedup_high": speed.high}
        query = update(REQUESTS).where(REQUESTS.c.key == key).values(**values)
        self.submit(lambda connection: connection.execute(query))

    def record_probe(self, probe: Probe) -> None:
        """Store how a version does on the probe prompts of a topic; a second call replaces the first. Rounds
        are kept of the line's version probed last. Probes of other recordings of the topic are deleted:
        nothing can be compared with them."""

        def write(connection: Connection) -> None:
            pair = pair_id(connection, probe.target, probe.drafter)
            topic = (PROBES.c.pair_id == pair, PROBES.c.topic == probe.topic)
            own = (*topic, PROBES.c.domain == probe.domain)
            connection.execute(delete(PROBES).where(*topic, PROBES.c.recording != probe.recording))
            connection.execute(delete(PROBES).where(*own, PROBES.c.version == probe.version))
            if probe.shown:
                connection.execute(update(PROBES).where(*own).values(shown=None))
            names = ("domain", "topic", "recording", "version", "examples", "counts")
            row: dict[str, Any] = {name: getattr(probe, name) for name in names}
            row |= {
                "created_at": utc(probe.created_at or None),
                "shown": [asdict(each) for each in probe.shown] or None,
                "prompts": len(probe.counts),
                "tokens": sum(tokens for tokens, _ in probe.counts),
                "passes": sum(passes for _, passes in probe.counts),
            }
            connection.execute(insert(PROBES).values(pair_id=pair, **row, **_measured(probe.agreement)))

        self.submit(write)

    def probes(
        self, target: str, drafter: str, domain: str = "default", topic: str | None = None, *,
        shown: bool = False,
    ) -> Rows:  # fmt: skip
        """The probes of a line and of the fresh drafter (version 0), by version; `shown`: with the rounds of
        some prompts."""
        columns = columns_of(PROBES, "id", "pair_id", *(() if shown else ("shown",)))
        query = of_pair(PROBES, target, drafter, *columns).where(PROBES.c.domain.in_(("", domain)))
        query = query if topic is None else query.where(PROBES.c.topic == topic)
        return self.rows(query.order_by(PROBES.c.version))


def _measured(agreement: Agreement | None) -> dict[str, float]:
    return {"agreement": agreement.overlap, "same_first": agreement.same_first} if agreement else {}


def replayed(stored: Iterable[Mapping[str, Any]]) -> list[Replayed]:
    """The rounds that the `shown` of a probe's row holds."""
    return TypeAdapter(list[Replayed]).validate_python(stored)
