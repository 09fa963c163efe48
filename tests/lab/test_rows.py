"""What a drafter learns from an answer, and how it is packed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lab.drafters.answers import Wanted, by_set, work
from lab.drafters.guesses import guess
from lab.drafters.prompt_sets import Prompt
from lab.drafters.rows import CHANNELS, Chat, pack, write_rows
from lab.drafters.shards import done, read_shards, save
from lab.drafters.spelling import WHOLE, Spelling
from omnidemo.backends.batched_writer import Order, WrittenAnswer, order_of
from omnidemo.core.config import Manner
from omnidemo.models.load import open_source
from omnidemo.vocabulary.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    target, drafter = (
        open_source(name, hub=False).tokenizer()[1] for name in ("bundled/large", "bundled/drafter")
    )
    return target, drafter


def recorded(target: Vocabulary, text: str, others: list[tuple[str, float]]) -> WrittenAnswer:
    """An answer whose tokens all have the same probable ones beside themselves."""
    prompt, ids = list(target.encode(b"Say it.") or ()), list(target.encode(text.encode()) or ())
    extra = [(target.encode(other.encode()) or (0,))[0] for other, _ in others]
    labels = np.array([[one, *extra] for one in ids], np.int32)
    probs = np.array([[0.5, *(p for _, p in others)]] * len(ids), np.float32)
    return WrittenAnswer("s", "0", 0.0, "end", prompt, ids, labels, probs)


def test_labels_are_what_the_target_might_write(vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    target, drafter = vocabularies
    answer = recorded(target, " A photographer waits near the lighthouse.", [(" the", 0.3), (" a", 0.1)])
    spelling = Spelling(target, drafter)
    spelled = spelling.spell(answer.prompt, answer.ids, answer.labels, answer.probs)
    assert drafter.text_bytes(spelled.ids[spelled.first :]) == target.text_bytes(answer.ids)
    assert (spelled.label_weights.sum(1, dtype=np.int64) == WHOLE).all()
    the = spelling.map.spelling(target.encode(b" the")[0])  # type: ignore[index]
    lengths = np.diff(spelled.starts)
    assert the is not None and len(the) == 1 and (lengths > 1).any()
    for place, length in zip(spelled.starts, lengths, strict=False):
        labels = dict(
            zip(
                spelled.label_ids[place].tolist(),
                (spelled.label_weights[place] / WHOLE).tolist(),
                strict=True,
            )
        )
        if spelled.ids[place] != the[0]:
            assert labels[the[0]] == pytest.approx(0.3 / 0.9, abs=1e-3)
        for inside in range(place + 1, place + length):  # of an n-gram: no other token begins like this one
            assert (
                spelled.label_ids[inside, 0] == spelled.ids[inside]
                and spelled.label_weights[inside, 0] == WHOLE
            )


def test_rows_hold_each_chat_once_in_every_epoch(tmp_path: Path) -> None:
    chats = [Chat("s", np.full((CHANNELS, size), size, np.uint16)) for size in (3, 5, 7, 11, 40)]
    rows = list(pack(chats, 16, 0, seed=1))
    found = sorted(int(row[0, at]) for row in rows for at in range(16) if at == row[2, at] and row[3, at])
    assert found == [3, 5, 7, 11, 40]
    assert all((row[0][row[3] > 0] == row[3][row[3] > 0]).all() for row in rows)
    count = write_rows(chats, tmp_path, 1 << 18, 0, epochs=2)
    assert count == 4 and np.load(tmp_path / f"{1 << 18}-00000.npy").shape == (4, CHANNELS, 1 << 18)


def test_shards_come_back_without_their_prompts(
    tmp_path: Path, vocabularies: tuple[Vocabulary, Vocabulary]
) -> None:
    written = [recorded(vocabularies[0], text, [(" a", 0.25)]) for text in ("A duck waits.", "Two ducks.")]
    written[1].id, written[1].temperature = "1", 0.8
    assert written[1].labels is not None and written[1].probs is not None
    written[1].labels[:, 1], written[1].probs[:, 1] = -1, 0
    facts = {"target": "t", "prompts": "here"}
    for answer in written:
        save(tmp_path, facts, [answer])
    save(tmp_path, facts | {"target": "another"}, written)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000.npz", "001.npz", "002.npz"]
    assert not any(b"Say it" in path.read_bytes() for path in tmp_path.iterdir())
    found = list(read_shards(tmp_path, "t", lambda *_: written[0].prompt))
    for one, other in zip(found, written, strict=True):
        for name in ("order", "prompt", "ids", "temperature"):
            assert getattr(one, name) == getattr(other, name)
        assert one.labels is not None and other.labels is not None and other.probs is not None
        kept = other.labels[:, : one.labels.shape[1]]
        assert one.labels.tolist() == kept.tolist() and one.probs == pytest.approx(
            other.probs[:, : kept.shape[1]], abs=2e-3
        )
    counts = {"s/0/greedy": len(written[0].ids), "s/1/drawn": len(written[1].ids)}
    assert done(tmp_path) == counts
    assert by_set(counts) == f"s: 2 answers, {sum(counts.values())} tokens"
    with pytest.raises(ValueError, match="take those of 'here'"):
        list(read_shards(tmp_path, "t", lambda *_: [1, 2]))


def test_each_prompt_is_answered_once_unless_both_ways_are_wanted() -> None:
    sets = {"a": [Prompt(f"{number}", "x") for number in range(40)], "b": [Prompt("0", "y")]}
    manner = Manner(temperature=0.2, top_k=20)

    def orders(wanted: Wanted, finished: tuple[str, ...] = ()) -> list[Order]:
        found = work(sets, lambda text: [ord(text)], finished, manner, wanted)
        return [one for _, some in found for one in some]

    halves = [order for part in (0, 1) for order in orders(Wanted(part=(part, 2)))]
    assert len(halves) == 41 and {(one.set, one.id) for one in halves} == {
        (name, prompt.id) for name, prompts in sets.items() for prompt in prompts
    }
    assert 10 < sum(one.temperature == 0 for one in halves) < 31
    assert {one.top_k for one in halves if one.temperature} == {20}
    first = halves[0]
    left = orders(Wanted(), (order_of(first.set, first.id, first.temperature),))
    assert len(left) == 40 and len(orders(Wanted(both=True))) == 82


def test_guesses_of_a_drafter_that_says_one_thing(vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    target, drafter = vocabularies
    answer = recorded(target, " the the the", [(" a", 0.25)])
    spelling = Spelling(target, drafter)
    the = spelling.map.spelling(answer.ids[0])

    class Model:
        def __call__(self, ids: torch.Tensor) -> object:
            logits = torch.full((*ids.shape, len(drafter)), -40.0)
            logits[..., the[0]] = -1.0  # type: ignore[index]
            return type("Output", (), {"logits": logits})()

    found = guess(Model(), answer, spelling)
    assert found is not None
    assert found.agreed == pytest.approx([0.5] * len(answer.ids), abs=1e-3) and found.same.tolist() == [
        1.0
    ] * len(answer.ids)
    assert found.right.all() and found.sure == pytest.approx([1.0] * len(answer.ids), abs=1e-3)
    answer.penalty = 1e6
    penalised = guess(Model(), answer, spelling)
    # its only word has been written
    assert penalised is not None and penalised.right.tolist() == [True, False, False]
    assert penalised.same.tolist() == [1.0] * len(answer.ids)
