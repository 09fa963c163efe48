"""What a drafter learns from an answer, and how it is packed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lab.drafters.answers import by_set, done, save
from lab.drafters.batched import Answer, Order
from lab.drafters.corpus import answer_texts
from lab.drafters.guesses import guess
from lab.drafters.rows import CHANNELS, Chat, pack, write_rows
from lab.drafters.shards import Recorded, read_shards
from lab.drafters.spelling import LABELS, WHOLE, Spelling
from lab.drafters.training.training_llama import labels_of
from omnidemo.models.load import open_source
from omnidemo.vocabulary.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    target, drafter = (
        open_source(name, hub=False).tokenizer()[1] for name in ("bundled/large", "bundled/drafter")
    )
    return target, drafter


def recorded(target: Vocabulary, text: str, others: list[tuple[str, float]]) -> Recorded:
    """An answer whose tokens all have the same probable ones beside themselves."""
    prompt, ids = list(target.encode(b"Say it.") or ()), list(target.encode(text.encode()) or ())
    extra = [(target.encode(other.encode()) or (0,))[0] for other, _ in others]
    top = np.array([[one, *extra] for one in ids], np.int32)
    logprobs = np.log(np.array([[0.5, *(p for _, p in others)]] * len(ids))).astype(np.float16)
    return Recorded("s", "t/s/0", "t", 0.0, "end", prompt, ids, top, logprobs)


def test_labels_are_what_the_target_might_write(vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    target, drafter = vocabularies
    answer = recorded(target, " A photographer waits near the lighthouse.", [(" the", 0.3), (" a", 0.1)])
    spelling = Spelling(target, drafter)
    spelled = spelling.spell(answer.prompt, answer.ids, answer.top, answer.logprobs)
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


@pytest.mark.parametrize("name", ["t", "one-1.5b"])  # a point in a name begins no suffix
def test_shards_come_back(tmp_path: Path, name: str) -> None:
    top, logprobs = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros((3, 4), np.float16)
    greedy, drawn = (Order(f"{name}/s/{number}/0", heat, 1, 9) for number, heat in enumerate((0.0, 0.8)))
    save(tmp_path, name, [Answer(greedy, [1], [2, 3], top[:2], logprobs[:2], "end")])
    save(tmp_path, name, [Answer(drawn, [1], [4], top[2:], logprobs[2:], "length")])
    first, second = read_shards(tmp_path, name)
    assert (first.ids, second.ids) == ([2, 3], [4]) and second.temperature == 0.8
    assert second.top is not None and second.top.tolist() == top[2:].tolist()
    assert done(tmp_path, name) == {greedy.id: 2, drawn.id: 1}


def test_what_was_written_is_counted_by_set_and_read_as_text(
    tmp_path: Path, vocabularies: tuple[Vocabulary, Vocabulary]
) -> None:
    target, none = vocabularies[0], np.zeros((0, 4))
    for number, text in enumerate(("A duck waits.", "Two ducks.")):
        ids = list(target.encode(text.encode()) or ())
        order = Order(f"t/{'xy'[number]}/{number}/0", 0.0, 1, 9)
        save(tmp_path, "t", [Answer(order, [1], ids, none, none, "end")])
    assert list(answer_texts({"t": "bundled/large"}, tmp_path)) == ["A duck waits.", "Two ducks."]
    counts = [len(target.encode(text) or ()) for text in (b"A duck waits.", b"Two ducks.")]
    assert by_set(done(tmp_path, "t")).splitlines() == [
        f"{name}: 1 answers, {count} tokens" for name, count in zip("xy", counts, strict=True)
    ]


def test_labels_of_rows() -> None:
    rows = torch.zeros(2, CHANNELS, 4, dtype=torch.int64)
    rows[:, 3], rows[:, 3 + LABELS] = 7, WHOLE
    labels, weights = labels_of(rows)
    assert labels.shape == weights.shape == (2, 4, LABELS)
    assert (labels[..., 0] == 7).all() and (weights.sum(-1) == 1).all()


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
