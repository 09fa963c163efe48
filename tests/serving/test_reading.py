"""A long prompt is read chunk by chunk, which is told, and which can be stopped: what was read by then is not
read again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from omnidemo import load_pair
from omnidemo.backends import fused_llama
from omnidemo.core.config import Settings
from omnidemo.core.records import Generation, Reading, Round
from omnidemo.decoding.state import CHUNK
from omnidemo.pair import conversation_pool
from omnidemo.pair.pair import Pair
from omnidemo.serving.services import Services
from tests.support.chats import ready
from tests.support.models import PROMPT, save

LONG, OTHER = ", ".join([PROMPT] * 8), ", ".join([PROMPT[::-1]] * 8)
AT_ONCE = 16  # ids of a chunk, as of a large model
ANSWER = 12
ASKED: dict[str, Any] = {"max_new_tokens": ANSWER, "method": "ngram-exact", "learn": False}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("reading")
    target = save(root / "target", "byte-level", window=4096, ends=False)
    return target, save(root / "drafter", "sentence-piece", seed=1, window=4096)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_pool, "chunk_size", lambda runner: AT_ONCE)


@pytest.fixture
def pair(models: tuple[str, str], small_pieces: None) -> Pair:
    return load_pair(*models)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """(the model, how many ids) of each pass that reads a prompt."""
    read: list[tuple[Any, int]] = []
    forward = fused_llama.FusedCache.forward

    def counted(self: Any, ids: Any, last: int, *more: Any) -> Any:
        if not last:
            read.append((self.runner, len(ids)))
        return forward(self, ids, last, *more)

    monkeypatch.setattr(fused_llama.FusedCache, "forward", counted)
    return read


def counted(rows: list[tuple[Any, int]], pair: Pair) -> int:
    """The rows of prompts that the target has read since this was asked before."""
    found = sum(count for model, count in rows if model is pair.target.runner)
    rows.clear()
    return found


def split(answer: Any) -> tuple[list[Reading], list[Round], Generation]:
    """The readings, the rounds and the generation of `Pair.parts`; the readings come first."""
    made: list[Generation] = []

    def whole() -> Iterator[Reading | Round]:
        made.append((yield from answer))

    parts = list(whole())
    readings = [part for part in parts if isinstance(part, Reading)]
    rounds = [part for part in parts if isinstance(part, Round)]
    assert parts == [*readings, *rounds]
    return readings, rounds, made[0]


def stopping(after: int) -> Any:
    """`cancelled`, True after so many pieces."""
    looks = iter(range(10**6))
    return lambda: next(looks) >= after


def test_each_piece_is_told_and_the_answer_is_the_same(pair: Pair, models: tuple[str, str]) -> None:
    total = len(pair.prompt_ids(LONG)) - 1
    readings, rounds, made = split(pair.parts(LONG, **ASKED))
    assert total > 5 * AT_ONCE
    told = [(reading.read, reading.total, reading.kept) for reading in readings]
    assert told == [(min(read, total), total, 0) for read in range(0, total + AT_ONCE, AT_ONCE)]
    assert "".join(done.text for done in rounds) == made.text and len(made.token_ids) == ANSWER
    alone = list(pair.stream(LONG, reuse=False, **ASKED))
    assert alone and all(isinstance(done, Round) for done in alone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversation_pool, "chunk_size", lambda runner: CHUNK)
        at_once = load_pair(*models)
    assert split(at_once.parts(LONG, **ASKED))[2].token_ids == made.token_ids


def test_what_is_read_at_once_or_known_is_not_told(pair: Pair) -> None:
    short = PROMPT[:12]
    assert len(pair.prompt_ids(short)) <= AT_ONCE + 1
    assert split(pair.parts(short, **ASKED))[0] == []
    made = split(pair.parts(LONG, **ASKED))[2]
    assert split(pair.parts(LONG, **ASKED))[0] == []
    ids = [*pair.prompt_ids(LONG), *made.token_ids]
    readings = split(pair.parts([*ids, *pair.prompt_ids(OTHER)], **ASKED))[0]
    assert {reading.kept for reading in readings} == {len(ids) - 1}
    assert [readings[0].read, readings[-1].read] == [0, len(pair.prompt_ids(OTHER))]


def test_a_stopped_reading_is_kept_and_goes_on(pair: Pair, rows: list[tuple[Any, int]]) -> None:
    total = len(pair.prompt_ids(LONG)) - 1
    readings, rounds, made = split(pair.parts(LONG, cancelled=stopping(3), **ASKED))
    assert made.finish_reason == "cancelled" and not rounds and readings[-1].read == 3 * AT_ONCE
    assert counted(rows, pair) == 3 * AT_ONCE and pair.in_flight == 0
    again, _, made = split(pair.parts(LONG, **ASKED))
    assert (again[0], again[-1]) == (
        Reading(0, total - 3 * AT_ONCE, 3 * AT_ONCE),
        Reading(total - 3 * AT_ONCE, total - 3 * AT_ONCE, 3 * AT_ONCE),
    )
    assert counted(rows, pair) == total - 3 * AT_ONCE
    assert made.token_ids == pair.generate(LONG, reuse=False, **ASKED).token_ids
    assert counted(rows, pair) == total


def test_who_leaves_while_a_prompt_is_read_leaves_it_to_the_next(
    pair: Pair, rows: list[tuple[Any, int]]
) -> None:
    parts = pair.parts(LONG, **ASKED)
    for _ in range(4):
        next(parts)
    parts.close()
    assert counted(rows, pair) == 3 * AT_ONCE and pair.in_flight == 0
    assert split(pair.parts(LONG, **ASKED))[0][0].kept == 3 * AT_ONCE


def test_of_two_that_begin_alike_the_one_that_has_read_more_goes_on(
    pair: Pair, rows: list[tuple[Any, int]]
) -> None:
    whole = pair.parts(LONG, **ASKED)
    next(whole)
    split(pair.parts(LONG, cancelled=stopping(1), **ASKED))
    split(whole)
    counted(rows, pair)
    assert split(pair.parts(LONG, **ASKED))[0] == [] and counted(rows, pair) == 0
    # and what was hardly read is no other chat's
    split(pair.parts(OTHER, cancelled=stopping(1), reuse=False, **ASKED))
    assert len(pair._conversations._idle) == 3
    split(pair.parts([*pair.prompt_ids(OTHER)[: AT_ONCE // 2], *pair.prompt_ids(PROMPT)], **ASKED))
    assert len(pair._conversations._idle) == 3


def test_a_stopped_reading_that_may_not_be_reused_is_begun_anew(pair: Pair) -> None:
    split(pair.parts(LONG, cancelled=stopping(3), **ASKED))
    assert split(pair.parts(LONG, reuse=False, **ASKED))[0][0].kept == 0


@pytest.fixture
def services(tmp_path: Path, quick_loads: None, small_pieces: None) -> Iterator[Services]:
    made = Services(Settings(storage=tmp_path / "storage", training="off"))
    yield made
    made.close()


def test_a_chat_that_is_stopped_while_it_is_read_goes_on(
    services: Services, models: tuple[str, str], rows: list[tuple[Any, int]]
) -> None:
    ready(services, models)
    stop = threading.Event()
    names: dict[str, Any] = {"session": "s", "target": models[0], "drafter": models[1], "cancel": stop}
    messages = [{"role": "user", "content": LONG}]
    with services.pool.using(*models) as (pair, _):
        counted(rows, pair)
    told: list[Reading] = []
    for item in services.chats.chat(messages=messages, **names, **ASKED):
        if isinstance(item, Reading):
            told.append(item)
            if item.read == 2 * AT_ONCE:
                stop.set()
    assert isinstance(item, Generation) and item.finish_reason == "cancelled" and not item.token_ids
    assert told[-1].read == 2 * AT_ONCE == counted(rows, pair)
    assert services.store.flush() and services.store.requests() == []
    stop.clear()
    items = list(services.chats.chat(messages=messages, **names, **ASKED))
    assert all(before.read < after.read for before, after in pairwise(items) if isinstance(after, Reading))
    assert isinstance(items[0], Reading) and items[0].kept == 2 * AT_ONCE
    assert counted(rows, pair) == items[0].total and len(items[-1].token_ids) == ANSWER
    assert (items[-1].metrics["time_to_first_token"] or 0) > 0
    # a page that closes meanwhile
    messages[0]["content"] = OTHER
    answer = services.chats.chat(messages=messages, **names, **ASKED)
    for _ in range(3):
        next(answer)
    answer.close()
    assert counted(rows, pair) == 2 * AT_ONCE and pair.in_flight == 0
