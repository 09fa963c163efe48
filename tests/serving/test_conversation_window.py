"""What a target is given of a conversation: the newest exchanges it was made for, found in a few readings."""

from __future__ import annotations

import copy
import time
from dataclasses import replace

import pytest

from omnidemo import load_pair
from omnidemo.models.catalogue import ReadingLimits
from omnidemo.pair.pair import Pair
from omnidemo.serving.conversation_window import Window, newest
from tests.support.models import save

WHOLE = ReadingLimits()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("history")
    return load_pair(
        save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
    )


def chat(turns: int, words: str = "the small duck swims") -> list[dict[str, str]]:
    """`turns` questions with answers, and a last question."""
    said = [
        {"role": role, "content": f"{words} {turn} {role}"}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return [*said, {"role": "user", "content": "and now?"}]


@pytest.mark.parametrize(("turns", "kept"), [(1, 1), (2, 3), (3, 5), (None, 7)])
def test_so_many_turns_as_the_model_was_made_for(pair: Pair, turns: int | None, kept: int) -> None:
    messages = chat(3)
    given = newest(pair, messages, ReadingLimits(turns), 20)
    assert given.messages == messages[-kept:] and given.dropped == 7 - kept


def test_tokens_end_it_sooner_and_never_take_the_last_message(pair: Pair) -> None:
    messages = chat(6)
    given = newest(pair, messages, ReadingLimits(None, 60), 20).messages
    assert 1 < len(given) < len(messages) and len(pair.prompt_ids(given)) <= 60
    assert given == messages[-len(given) :] and given[0]["role"] == "user"
    assert newest(pair, messages, ReadingLimits(None, 1), 20) == Window(messages[-1:], 12)


def test_what_fits_leaves_room_for_the_answer(pair: Pair) -> None:
    messages = chat(40)
    given = newest(pair, messages, WHOLE, 50)
    used = len(pair.prompt_ids(given.messages))
    assert pair.target.context // 3 < used <= pair.target.context - 50
    assert given.dropped == len(messages) - len(given.messages) > 0


def test_a_pasted_page_stays_for_the_next_questions(pair: Pair) -> None:
    page = {"role": "user", "content": "the small duck swims in the pond " * 18}
    messages = [*chat(12)[:-1], page]
    assert newest(pair, messages, WHOLE, 20).messages[-1] == page
    for _ in range(2):
        messages += [
            {"role": "assistant", "content": "the duck"},
            {"role": "user", "content": "and the other ducks?"},
        ]
        assert page in newest(pair, messages, WHOLE, 20).messages


def test_what_the_template_refuses_is_told_and_loses_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = (
        "{% if messages|length > 1 and messages[0].role == messages[1].role %}{{ raise_exception('roles must"
        " alternate') }}{% endif %}"
    )
    monkeypatch.setattr(pair.target.tokenizer, "chat_template", strict + pair.target.tokenizer.chat_template)
    twice = [{"role": "user", "content": "the duck"}, {"role": "user", "content": "swims"}]
    with pytest.raises(ValueError, match="refuses these messages: roles must alternate"):
        newest(pair, twice, WHOLE, 20)
    assert newest(pair, chat(1), WHOLE, 20).dropped == 0


def test_the_system_prompt_is_the_templates_own_until_somebody_writes_one(pair: Pair) -> None:
    tokenizer = copy.deepcopy(pair.target.tokenizer)
    tokenizer.chat_template = (
        "{% if messages[0]['role'] != 'system' %}its own words. {% endif %}{% for one in messages %}{{"
        " one['content'] }}. {% endfor %}"
    )
    other = Pair(replace(pair.target, tokenizer=tokenizer, chat=True), pair.drafter)
    asked = [{"role": "user", "content": "the duck"}]
    written = [{"role": "system", "content": "be short"}, *asked]
    for messages, said in ((asked, "its own words. the duck. "), (written, "be short. the duck. ")):
        assert (
            tokenizer.decode(
                other.prompt_ids(newest(other, messages, WHOLE, 20).messages), skip_special_tokens=True
            )
            == said
        )


def test_the_catalogues_system_prompt_goes_before_a_chat_that_has_none(pair: Pair) -> None:
    asked, own = ReadingLimits(system="be kind"), {"role": "system", "content": "be short"}
    kind, empty = {"role": "system", "content": "be kind"}, {"role": "system", "content": " "}
    question = {"role": "user", "content": "the duck"}
    for given, read in (
        ([question], [kind, question]),
        ([own, question], [own, question]),
        ([empty, question], [question]),
        ([question, own, question], [question, own, question]),
    ):
        assert newest(pair, given, asked, 20) == Window(read, 0)
    long = newest(pair, chat(40), asked, 50)
    assert long.messages[0] == kind and len(long.messages) - 1 + long.dropped == len(chat(40))


def test_a_system_message_stays_and_half_an_exchange_does_not(pair: Pair) -> None:
    system = {"role": "system", "content": "be short"}
    messages = chat(40)
    given = newest(pair, [system, *messages], WHOLE, 50)
    assert (
        given.messages[0] == system
        and given.messages[1]["role"] == "user"
        and len(given.messages) + given.dropped == 82
    )
    assert given.messages[1:] == messages[given.dropped :] and given.dropped > 2
    assert newest(pair, messages[:2], WHOLE, 50) == Window(messages[:2], 0)
    assert newest(pair, messages[1:2], WHOLE, 50) == Window(messages[1:2], 0)
    assert newest(pair, [], WHOLE, 50) == Window([], 0)


def test_a_long_history_is_read_a_few_times_and_its_old_part_never(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    ids = pair.prompt_ids
    monkeypatch.setattr(pair, "prompt_ids", lambda messages: read.append(len(messages)) or ids(messages))
    messages = chat(5000)
    began = time.thread_time()
    assert len(newest(pair, messages, WHOLE, 50).messages) > 1
    assert time.thread_time() - began < 2  # it took minutes
    assert len(read) < 15 and max(read) < 1000


def test_a_huge_message_is_not_even_counted(pair: Pair) -> None:
    messages = chat(2)
    messages[1]["content"] = "duck " * 2_000_000
    began = time.thread_time()
    assert newest(pair, messages, WHOLE, 50) == Window(messages[2:], 2)
    assert time.thread_time() - began < 1


def test_nobody_counts_for_one_who_has_left(pair: Pair) -> None:
    assert newest(pair, chat(40), WHOLE, 50, cancelled=lambda: True).messages == chat(40)[-1:]
