"""Answers held to a JSON schema: plain decoding and guessing under the same masks, in turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from jsonschema import Draft202012Validator

from omnidemo.core.records import Generation, Prompt
from omnidemo.core.tasks import task
from omnidemo.decoding.constraint import Constraint
from omnidemo.models.answer_forms import FormError, GuidedConstraint
from omnidemo.pair.pair import Pair

LONGEST = 1_500  # characters of a schema of a public set, so that its prompt is short
ASK = "Write one JSON object with made-up values that this JSON schema describes, and nothing else.\n\n"


@dataclass(frozen=True, slots=True)
class FormRow:
    """One schema. `refused`: the sentence, or empty. `valid`: whether the guessed answer obeys it; None where
    the answer did not come to its end. Seconds are of rounds, `masks` of those of the guessed answer."""

    name: str
    refused: str = ""
    equal: bool = False
    valid: bool | None = None
    tokens: int = 0
    rounds: int = 0
    forced: int = 0
    changed: int = 0
    seconds: float = 0.0
    plain_seconds: float = 0.0
    masks: float = 0.0


class MaskClock:
    """Seconds within constraints."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for kind, names in ((Constraint, ("masked", "read", "legal")), (GuidedConstraint, ("forced",))):
            for name in names:
                setattr(kind, name, self._timed(getattr(kind, name)))

    def _timed(self, called: Any) -> Any:
        def timed(*given: Any) -> Any:
            began = perf_counter()
            try:
                return called(*given)
            finally:
                self.seconds += perf_counter() - began

        return timed


def of_task(count: int) -> Iterator[tuple[str, Prompt, str]]:
    """(name, prompt, schema) of the inputs of the JSON task."""
    given = task("json")
    for number, text in enumerate(given.inputs(count, 1), 1):
        yield str(number), given.messages(text), given.schema


def of_folder(folder: Path, count: int) -> Iterator[tuple[str, Prompt, str]]:
    """The same of `count` schemas of a folder, evenly over those that are short."""
    files = [path for path in sorted(folder.rglob("*.json")) if path.stat().st_size <= LONGEST]
    for path in files[:: max(1, len(files) // count)][:count]:
        text = path.read_text(encoding="utf-8")
        yield path.name, [{"role": "user", "content": ASK + text}], text


def race(pair: Pair, asked: Sequence[tuple[str, Prompt, str]], most: int, domain: str) -> Iterator[FormRow]:
    clock = MaskClock()
    options: dict[str, Any] = {
        "temperature": 0.0, "repetition_penalty": 1.0, "max_new_tokens": most, "domain": domain
    }  # fmt: skip
    for name, prompt, schema in asked:
        try:
            plain = pair.generate(prompt, method="autoregressive", learn=False, schema=schema, **options)
            before = clock.seconds
            made = pair.generate(prompt, draft_policy="chance", schema=schema, **options)
        except FormError as error:
            yield FormRow(name, str(error))
            continue
        metrics = made.metrics
        yield FormRow(
            name, "", made.token_ids == plain.token_ids, _valid(made, schema), len(made.token_ids),
            len(made.rounds), int(metrics["forced"] or 0), int(metrics["changed"] or 0),
            metrics["seconds"] or 0.0, plain.metrics["seconds"] or 0.0, clock.seconds - before,
        )  # fmt: skip


def _valid(made: Generation, schema: str) -> bool | None:
    if made.finish_reason != "end":
        return None
    return Draft202012Validator(json.loads(schema)).is_valid(json.loads(made.text))


def summary(rows: Sequence[FormRow]) -> str:
    """The figures of all rows, in a line."""
    made = [row for row in rows if not row.refused]
    ended = [row.valid for row in made if row.valid is not None]
    tokens, rounds = sum(row.tokens for row in made), sum(row.rounds for row in made)
    seconds = sum(row.seconds for row in made)
    plain, masks = sum(row.plain_seconds for row in made), sum(row.masks for row in made)
    forced, changed = sum(row.forced for row in made), sum(row.changed for row in made)
    first = made[0]
    return (
        f"{len(made)} answers, {len(rows) - len(made)} schemas refused; ids equal in"
        f" {sum(row.equal for row in made)}; {sum(ended)} of {len(ended)} that ended are valid;"
        f" {tokens / rounds:.2f} tokens a pass, the first {first.tokens / first.rounds:.2f};"
        f" {plain / seconds:.2f} × plain, the first {first.plain_seconds / first.seconds:.2f};"
        f" forced {forced / tokens:.2f} of the tokens, changed {changed} of {tokens:,};"
        f" masks {1e3 * masks / rounds:.2f} ms a round, {masks / seconds:.3f} of it"
    )
