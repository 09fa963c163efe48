"""Passes of several rows, engine beside engine: what is asked, what is written, and who is left out. Times
are only asked to be there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.equality import tiny
from lab.races import engine_process, rows_race
from lab.races.engine_process import EngineFailed, EngineProcess, Timed
from lab.races.engines import LLAMA_CPP, MAKERS, OURS, TRANSFORMERS, LlamaCppEngine
from lab.races.rows_race import Race, Raced, RaceRequest
from omnidemo.core.config import Settings
from omnidemo.serving.measuring.report_tables import Stage
from tests.support.gguf_files import TOKENS, tiny_model, write_gguf

# A double of the parts of llama-cpp-python that are used, as strict as the library: what it has read has to
# lie before what it reads.
DOUBLE = """
import ctypes
from types import SimpleNamespace
__version__ = "0.0.double"

class Llama:
    def __init__(self, model_path, n_ctx, n_batch, n_threads, n_threads_batch, verbose):
        assert open(model_path, "rb").read(4) == b"GGUF" and n_threads == n_threads_batch and verbose is False
        self.ctx, self.read, self.n_ctx, self.n_batch = self, [], n_ctx, n_batch
        self.rows, self.calls = None, []
    def n_vocab(self):
        return VOCABULARY

def llama_batch_init(tokens, embd, most):
    assert embd == 0 and most == 1
    empty = [None] * tokens
    return SimpleNamespace(
        n_tokens=0, token=[*empty], pos=[*empty], n_seq_id=[*empty],
        seq_id=[[None] for _ in empty], logits=[*empty])

def llama_decode(context, batch):
    assert 0 < batch.n_tokens <= context.n_batch
    if len(context.read) + batch.n_tokens > context.n_ctx:
        return 1
    rows = []
    for place in range(batch.n_tokens):
        assert batch.pos[place] == len(context.read)
        assert batch.n_seq_id[place] == 1 and batch.seq_id[place] == [0]
        assert 0 <= batch.token[place] < VOCABULARY
        context.read.append(batch.token[place])
        if batch.logits[place]:
            rows.append([float((token * 7 + sum(context.read)) % 31) for token in range(VOCABULARY)])
    context.rows = (ctypes.c_float * (len(rows) * VOCABULARY))(*[value for row in rows for value in row])
    context.calls.append((len(context.read) - batch.n_tokens, batch.n_tokens, len(rows)))
    return 0

def llama_get_logits(context):
    return ctypes.cast(context.rows, ctypes.POINTER(ctypes.c_float))

def llama_get_memory(context):
    return context

def llama_memory_seq_rm(memory, sequence, begin, end):
    assert sequence == -1 and end == -1 and 0 <= begin <= len(memory.read)
    del memory.read[begin:]
    return True
"""


@pytest.fixture(scope="module")
def gguf_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(
        tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf", tiny_model(max_position_embeddings=600), "Q8_0"
    )


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("models") / "drafter", "llama", "byte-level", seed=2))


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The double in place of the package, here and in processes that are started."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "llama_cpp.py").write_text(DOUBLE.replace("VOCABULARY", str(len(TOKENS))))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "llama_cpp", raising=False)
    monkeypatch.setattr(rows_race, "REST", 0.0)
    monkeypatch.setattr(engine_process, "WAKE", 0.0)
    yield folder
    sys.modules.pop("llama_cpp", None)  # the double: other tests of this process mean the package


class Here:
    """An engine in this process, in place of one that has to load its libraries anew."""

    def __init__(self, kind: str, **given: Any) -> None:
        try:
            timed = Timed(MAKERS[kind](**given), 0.0)
        except Exception as error:
            raise EngineFailed(" ".join(str(error).split())) from error
        self.facts = timed.engine.facts
        self.passes, self.prompt, self.decode = timed.passes, timed.prompt, timed.decode

    def close(self) -> None:
        pass


@pytest.fixture
def here(double: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The double, and engines in this process."""
    monkeypatch.setattr(rows_race, "EngineProcess", Here)
    return double


def settings(drafter: str) -> Settings:
    return Settings(drafter=drafter, device="cpu", threads=1)


def raced(order: RaceRequest, chosen: Settings) -> tuple[Race, list[Stage]]:
    *stages, race = rows_race.run(order, chosen)
    assert isinstance(race, Race)
    return race, [stage for stage in stages if isinstance(stage, Stage)]


def test_each_engine_reads_the_same_in_turns(
    gguf_target: Path, drafter: str, here: Path, tmp_path: Path
) -> None:
    other = tmp_path / "tiny.Q4_0.gguf"
    other.write_bytes(gguf_target.read_bytes())
    order = RaceRequest(
        str(gguf_target),
        tmp_path / "out",
        peer_files=[str(other), str(gguf_target)],
        passes=6,
        tokens=8,
        command="it",
    )
    race, stages = raced(order, settings(drafter))
    assert [one.engine for one in race.found] == [
        OURS,
        f"{LLAMA_CPP}, tiny.Q8_0",
        f"{LLAMA_CPP}, tiny.Q4_0",
        TRANSFORMERS,
    ]
    assert not race.left_out and stages[-1].done == stages[-1].total == 4 * (5 * len(rows_race.ROWS) + 5 + 3)
    ours, _, _, theirs = race.found
    for one in race.found:
        # 1,024 do not fit the window
        assert list(one.passes) == [64] and list(one.passes[64]) == list(rows_race.ROWS)
        # at least 6, as many in each turn
        assert all(len(times) == 10 and min(times) > 0 for times in one.passes[64].values())
        assert (
            len(one.prompt) == 5
            and len(one.answers) == 3
            and one.tokens == 8
            and (one.tokens_per_second or 0) > 0
        )
    assert (
        ours.same == theirs.same == 8
        and ours.weights.startswith(("packed", "bfloat16", "float32"))
        and "float32" in theirs.weights
    )
    said = json.loads((tmp_path / "out" / "rows.json").read_text())
    assert said["command"] == "it" and said["threads"] == 1 and said["left out"] == []
    assert [one["engine"] for one in said["engines"]] == [one.engine for one in race.found]
    assert said["engines"][0]["pass_ms"]["64"]["6"] == ours.pass_ms(64, 6)
    text = (tmp_path / "out" / "rows.md").read_text()
    assert text.count("| ours ÷ ") == 3 and "llama-cpp-python 0.0.double" in text and "Command: `it`" in text


def test_an_engine_in_a_process_of_its_own_says_what_it_says_here(
    gguf_target: Path, drafter: str, double: Path
) -> None:
    given = {"target": str(gguf_target), "threads": 1, "settings": settings(drafter).model_dump_json()}
    given["text"] = "the other ducks"
    ours, peer = EngineProcess(OURS, **given), EngineProcess(LLAMA_CPP, path=str(gguf_target), threads=1)
    try:
        wanted = Here(OURS, **given)
        assert peer.facts == Here(LLAMA_CPP, path=str(gguf_target), threads=1).facts
        assert ours.facts.prompt == wanted.facts.prompt and ours.facts.vocabulary == len(TOKENS)
        assert ours.decode(ours.facts.prompt, 8)[0] == wanted.decode(wanted.facts.prompt, 8)[0]
        for one in (ours, peer):
            found = one.passes([1, 2, 3], {2: [4, 5], 1: [6]}, 2)
            assert {rows: len(times) for rows, times in found.items()} == {2: 2, 1: 2}
            assert one.prompt([1] * 9) > 0
    finally:
        ours.close()
        peer.close()


def test_llama_reads_in_pieces_and_gives_the_rows_that_are_asked_for(double: Path, gguf_target: Path) -> None:
    engine = LlamaCppEngine(str(gguf_target), 2)
    logits = engine.read([1 + place % 200 for place in range(700)], 3)
    assert logits.shape == (3, len(TOKENS)) and engine._llama.calls == [(0, 512, 0), (512, 188, 3)]
    engine.trim(100)
    assert engine.read([5, 6], 2).shape == (2, len(TOKENS)) and engine._llama.calls[-1] == (100, 2, 2)
    with pytest.raises(RuntimeError, match="could not read 464 tokens behind 1638"):
        engine.read([1] * 2000, 1)


def test_who_cannot_take_part_is_told_in_a_sentence(
    gguf_target: Path, drafter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, order = settings(drafter), RaceRequest(str(gguf_target), tmp_path)
    monkeypatch.setattr(rows_race, "find_spec", lambda name: None)
    assert Race(order, chosen).left_out == [
        "llama.cpp is not installed; `pip install llama-cpp-python` adds it"
    ]
    monkeypatch.setattr(rows_race, "find_spec", lambda name: SimpleNamespace())
    folder = RaceRequest(drafter, tmp_path)
    assert (
        "needs a GGUF file" in Race(folder, chosen).left_out[0]
        and "--peer-file" in Race(folder, chosen).left_out[0]
    )
    with pytest.raises(ValueError, match="is no GGUF file"):
        Race(RaceRequest(drafter, tmp_path, peer_files=[drafter]), chosen)
    with pytest.raises(ValueError, match="no peer 'vllm'; choose from"):
        next(iter(rows_race.run(RaceRequest(drafter, tmp_path, peers=["vllm"]), chosen)))


def test_another_models_file_is_refused(gguf_target: Path, drafter: str, here: Path, tmp_path: Path) -> None:
    (here / "llama_cpp.py").write_text(DOUBLE.replace("VOCABULARY", "17"))
    race = Race(RaceRequest(str(gguf_target), tmp_path, peers=[LLAMA_CPP]), settings(drafter))
    with pytest.raises(ValueError, match=r"has 17 tokens where .* has 265; name a file of the same model"):
        list(race.run())


def test_a_library_that_fails_is_left_out_and_the_race_goes_on(
    gguf_target: Path, drafter: str, here: Path, tmp_path: Path
) -> None:
    (here / "llama_cpp.py").write_text("raise ImportError('no such\\nsymbol')")
    race, _ = raced(
        RaceRequest(str(gguf_target), tmp_path, peers=[LLAMA_CPP], passes=1, tokens=2), settings(drafter)
    )
    assert [one.engine for one in race.found] == [OURS]
    assert race.left_out == ["llama.cpp, tiny.Q8_0 does not take part: no such symbol"]
    with pytest.raises(EngineFailed, match="no such symbol"):
        EngineProcess(LLAMA_CPP, path=str(gguf_target), threads=1)


def test_ratios_are_of_medians() -> None:
    ours = Raced(OURS, "packed", "", {64: {1: [1.0, 2.0, 9.0]}}, [1.0], [2.0], 10, 10)
    other = Raced("llama.cpp", "its file", "", {64: {1: [4.0]}}, [2.0], [4.0], 10, 7)
    lines = rows_race.table([ours, other])
    assert lines[0][:4] == [OURS, "packed", "64", "2000.0"] and lines[0][-3:] == ["1000", "5.0", ""]
    assert (
        lines[1][-1] == "7/10"
        and lines[2][:4] == ["ours ÷ llama.cpp", "", "64", "0.50"]
        and lines[2][-3:] == ["0.50", "2.00", ""]
    )
    assert lines[0][4] == "–" == lines[2][4]
