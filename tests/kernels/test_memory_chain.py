"""What memory proposes in compiled code: the same chains, the same lessons."""

from __future__ import annotations

import random

import numpy as np
import pytest

from omnidemo.backends import compile_kernels
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.text_index import BREAK, TextIndex

END = 99


@pytest.fixture(autouse=True)
def compiled() -> None:
    assert compile_kernels.wait(), compile_kernels.failure()


def phrases(draw: random.Random) -> list[list[int]]:
    """Texts of which most go on as others have."""
    known = [[draw.randrange(60) for _ in range(draw.randrange(2, 9))] for _ in range(12)]
    return [[token for _ in range(12) for token in draw.choice(known)] for _ in range(8)]


def sources(texts: list[list[int]], prompt: list[int], chances: CopyChances, memory: str) -> MemorySource:
    earlier, known = TextIndex(), Continuations(1 << 18)
    for text in texts:
        earlier.extend([*text, BREAK])
        known.learn(text)
    kept = earlier if "earlier" in memory else None, known if "known" in memory else None
    return MemorySource(TextIndex(), chances, (END,), len(prompt), *kept)


@pytest.mark.parametrize("memory", ["", "earlier", "known", "earlier and known"])
def test_chains_and_lessons_are_those_of_the_reference(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drafts, lengths = random.Random(5), 0, []
    fast, plain = CopyChances(), CopyChances()
    for _ in range(6):
        texts = phrases(draw)
        whole = [*texts.pop(), *texts.pop(), END]
        prompt, answer = whole[:40], whole[40:]
        pair = [sources(texts, prompt, chances, memory) for chances in (fast, plain)]
        ids, at = [*prompt], 0
        while at < len(answer):
            most = 1 + draw.randrange(16)
            made = pair[0].draft(ids, most)
            with monkeypatch.context() as patch:
                patch.setattr("omnidemo.decoding.sources.compiled.functions", None)
                wanted = pair[1].draft(ids, most)
            assert (made is None) == (wanted is None)
            kept = 1
            if made is not None and wanted is not None:
                drafts += 1
                lengths.append(len(made.ids))
                assert made.ids == wanted.ids and made.matches == wanted.matches
                assert made.chances == pytest.approx(wanted.chances, rel=1e-6)
                while (
                    kept <= len(made.ids)
                    and made.ids[:kept] == answer[at : at + kept]
                    and at + kept < len(answer)
                ):
                    kept += 1
                written = answer[at : at + kept]
                pair[0].learn(made, written)
                with monkeypatch.context() as patch:
                    patch.setattr("omnidemo.decoding.sources.compiled.functions", None)
                    pair[1].learn(wanted, written)
            ids += answer[at : at + kept]
            at += kept
    assert drafts > 50 and max(lengths) > 4
    for one, other in ((fast.weight, plain.weight), (fast.accepted, plain.accepted)):
        assert one == pytest.approx(other, rel=1e-6)
    assert not np.allclose(fast.weight, CopyChances().weight)


def test_ids_are_entered_as_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2)
    ids = [draw.randrange(30) for _ in range(3000)]
    fast, plain = TextIndex(), TextIndex()
    for text in (fast, plain):
        with monkeypatch.context() as patch:
            if text is plain:
                patch.setattr("omnidemo.decoding.sources.compiled.functions", None)
            for begin in range(0, 3000, 250):
                text.extend(ids[begin : begin + 250])
                if begin == 1000:
                    text.trim(700)
                if begin == 2000:
                    text.drop(400)
    assert list(fast.ids) == list(plain.ids) and len(fast) == 3000 - 550 - 400
    (_, previous, heads, size, begin), others = fast.arrays, plain.arrays
    assert np.array_equal(previous[:size], others[1][:size]) and np.array_equal(heads, others[2])
    assert (size, begin) == others[3:]
