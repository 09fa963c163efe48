"""The messages between the app and the process that computes: pickled values with all that an answer depends
on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnidemo.core.records import Generation, Reading, Round, Trace
from omnidemo.decoding.cost_model import CostModel
from omnidemo.vocabulary.ngram_cache import NgramCache


@dataclass(frozen=True, slots=True)
class Adapter:
    """A published version. `serial` numbers publications, because version numbers begin anew where a line is
    reset; 0: the base drafter. `weights` and `head` are safetensors; `elsewhere` is a reference to both
    instead."""

    serial: int = 0
    version: int = 0
    weights: bytes = b""
    head: bytes = b""
    elsewhere: Any = None


@dataclass(frozen=True, slots=True)
class Insertions:
    """The n-grams of a cache from number `since` on, each a target id and the drafter ids that spell it, in
    the order of insertion. After a removal the `epoch` changes, and numbers begin anew."""

    epoch: str
    since: int
    added: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An answer to be written. `options`: of `GenerationConfig`. `traced`: whether a trace is wanted.
    `knowledge`: the line's `CostModel`. `stop`: a path; the answer ends when it exists. `begun`: first ids,
    written by a process that was lost. `conversation`: a name of the prompt's beginning, by which a process
    that has read it is found."""

    ids: tuple[int, ...]
    options: Mapping[str, Any]
    note: bool
    traced: bool
    adapter: Adapter
    ngrams: Insertions
    knowledge: CostModel
    stop: str = ""
    begun: tuple[int, ...] = ()
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer behind its readings and rounds; `generation` has no rounds."""

    generation: Generation
    traces: tuple[Trace, ...]
    knowledge: CostModel
    mismatches: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error as a value, because the text of a raised one would be lost. `mistake`: it was a ValueError."""

    text: str
    mistake: bool


@dataclass(frozen=True, slots=True)
class Behind:
    """Instead of an answer: the process lacks n-grams before those of the call, from `number` on."""

    number: int


Message = Reading | Round | Finished | Failed | Behind


def insertions(cache: NgramCache, since: int) -> Insertions:
    """The n-grams of a cache from a number on."""
    return Insertions(cache.epoch, since, cache.since(since))
