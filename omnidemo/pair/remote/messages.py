"""What goes between the app and the process that computes: plain values, pickled, that carry everything an
answer depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnidemo.core.records import Generation, Reading, Round, Trace
from omnidemo.decoding.cost_model import CostModel
from omnidemo.vocabulary.ngram_cache import NgramCache


@dataclass(frozen=True, slots=True)
class Adapter:
    """A published version. `serial` tells publications apart, for version numbers begin anew where a line is
    reset; 0 is the base drafter. `weights` and `head` are safetensors, or what stands for them (`elsewhere`):
    a reference by which they can be had."""

    serial: int = 0
    version: int = 0
    weights: bytes = b""
    head: bytes = b""
    elsewhere: Any = None


@dataclass(frozen=True, slots=True)
class Insertions:
    """The n-grams of a cache, each a target id and the drafter's ids that spell it, from number `since` on,
    in the order in which they came. After anything was removed the `epoch` is another one, and numbers begin
    anew."""

    epoch: str
    since: int
    added: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An answer to be written. `options` are those of `GenerationConfig`; `traced`: whether somebody learns
    from it; `stop`: a path, and the answer ends when there is a file; `begun`: its first ids, which another
    process wrote before it was lost; `conversation`: the same for prompts that begin alike, so that whoever
    has read that beginning may be asked again."""

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
    """The end of an answer, whose readings and rounds went before it: `generation` is without them."""

    generation: Generation
    traces: tuple[Trace, ...]
    knowledge: CostModel
    mismatches: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error as a value: raised over there, its text would be lost. `mistake`: whoever asked can mend it (a
    ValueError)."""

    text: str
    mistake: bool


@dataclass(frozen=True, slots=True)
class Behind:
    """In place of an answer: the process has the n-grams of that epoch up to a smaller number than the call
    begins with."""

    number: int


Message = Reading | Round | Finished | Failed | Behind


def insertions(cache: NgramCache, since: int) -> Insertions:
    """What has come into a cache since a number."""
    return Insertions(cache.epoch, since, cache.since(since))
