"""Repeated tasks: one system prompt, many inputs. Five ship with the project (`assets/tasks`); users may add
their own.

A task that ships has inputs written by hand and a grammar for more. A rule is a list of texts; in a text,
`{city}` is replaced by a text of the rule `city`, the same throughout one input, `{city_2}` by another one,
`{City}` by the first with a capital, and `{2-9}` by a number.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from omnidemo.core.asset_files import ASSETS
from omnidemo.core.config import check_text

FOLDER = ASSETS / "tasks"
TASKS = ("json", "sql", "cards", "handbook", "commits")
LONGEST = 1_000_000  # characters of a task of one's own
TRIES = 50  # repeated inputs in a row after which the grammar counts as exhausted
PLACE = re.compile(r"\{(?:(\d+)-(\d+)|([A-Za-z]+)((?:_\d+)?))\}")
FORM = 'write a text or {"input": "…"}'
Rules = Mapping[str, Sequence[str | Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Task:
    """`name`: its own, and that of its adapter line. `title`, `sentence`: for people. `system`: the prompt of
    every answer; empty: none. `written`: inputs written by hand. `rules`: the grammar of more; empty: none.
    `max_new_tokens`: longest answer."""

    name: str
    title: str
    sentence: str
    system: str
    written: tuple[str, ...]
    rules: Rules = field(default_factory=dict)
    max_new_tokens: int = 128
    ask: str = ""  # text before each input: small models forget the system prompt
    json: bool = False  # whether each answer has to be one JSON object
    schema: str = ""  # the JSON schema that its answers may be held to, as text; empty: none

    def inputs(self, count: int, seed: int = 0, first: int = 0) -> list[str]:
        """`count` different inputs in the order of a seed, from number `first` on: those written by hand, in
        file order for seed 0, then made ones. Fewer where there are no more."""
        return list(islice(self._all(seed), first, first + count))

    def messages(self, text: str) -> list[dict[str, str]]:
        """The chat that asks for an answer to an input."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.ask + text}]

    def valid(self, answer: str) -> bool | None:
        """Whether an answer is one JSON object; None where the task asks for something else."""
        if not self.json:
            return None
        try:
            return isinstance(json.loads(answer), dict)
        except (ValueError, RecursionError):
            return False

    def prompt(self, text: str) -> str:
        """The same for a target without a chat template."""
        return "".join(f"{part}\n\n" for part in (self.system, self.ask + text) if part)

    def _all(self, seed: int) -> Iterator[str]:
        rng, written = random.Random(seed), list(self.written)
        if seed:
            rng.shuffle(written)
        yield from written
        known, vain = set(written), 0
        while self.rules and vain < TRIES:
            made, vain = _expanded("input", self.rules, rng), vain + 1
            if made not in known:
                known.add(made)
                vain = 0
                yield made


@cache
def task(name: str) -> Task:
    """A task that ships with the project. ValueError for another name."""
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; choose one of {', '.join(TASKS)}, or give a file")
    read = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    read |= {"system": _text(read["system"]), "written": tuple(map(_text, read.pop("inputs")))}
    schema = ASSETS / "schemas" / f"{name}.json"
    read |= {"schema": schema.read_text(encoding="utf-8") if schema.exists() else ""}
    return Task(**read)


def own_task(text: str, system: str = "", name: str = "own", where: str = "the inputs") -> Task:
    """A user's task. text: an input on each line, plain or as JSON, `{"input": "…"}`; a line `{"system":
    "…"}` is the system prompt, unless one is given. Equal inputs count once. ValueError, one sentence with
    the line number, for an invalid line, and where there is no input. where: the name of the text in that
    sentence."""
    if len(text) > LONGEST:
        raise ValueError(f"{where} has more than {LONGEST:,} characters; give fewer inputs")
    found, said = list[str](), ""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            given = _line(line.strip())
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}") from None
        said = given.get("system", said)
        found += [given["input"]] if "input" in given else []
    if not found:
        raise ValueError(f"{where} has no inputs; {FORM} on each line")
    written = tuple(dict.fromkeys(found))
    return Task(name, "Your own", f"{len(written)} inputs of your own.", check_text(system or said), written)


def read_task(path: Path, system: str = "") -> Task:
    """`own_task` of a file, whose name becomes the task's. ValueError also for a file that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; give a JSON Lines file") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a JSON Lines file") from None
    return own_task(text, system, path.stem[:40], str(path))


def _line(line: str) -> dict[str, str]:
    """The contents of a line: an input, a system prompt, or nothing. ValueError says why it is invalid."""
    if not line.startswith("{"):
        return {"input": check_text(line)} if line else {}
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        said = f"this is not JSON ({error.msg.removesuffix(' at')} at column {error.colno})"
        raise ValueError(f"{said}; {FORM}") from None
    except RecursionError:
        raise ValueError(f"this is nested too deeply; {FORM}") from None
    given = {name: text for name, text in value.items() if name in ("input", "system")}
    if not given:
        raise ValueError(f"there is no input; {FORM}")
    for name, text in given.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"the {name} is no text; {FORM}")
        check_text(text)
    return given


def _text(lines: str | Sequence[str]) -> str:
    return lines if isinstance(lines, str) else "\n".join(lines)


def _expanded(rule: str, rules: Rules, rng: random.Random) -> str:
    """A text of the grammar."""
    chosen: dict[str, str] = {}

    def expand(text: str) -> str:
        return PLACE.sub(put, text)

    def put(place: re.Match[str]) -> str:
        low, high, name, number = place.groups()
        if low:
            return str(rng.randint(int(low), int(high)))
        own = name.lower()
        if own not in rules:
            return place[0]  # a brace of the text itself
        if own + number not in chosen:
            chosen[own + number] = expand(_text(rng.choice(rules[own])))
        value = chosen[own + number]
        return value if own == name else value[:1].upper() + value[1:]

    return expand(_text(rng.choice(rules[rule])))
