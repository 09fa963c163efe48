"""The chat domain: every answer holds its facts, the everyday facts are right, and what is held out stays
out."""

from __future__ import annotations

import random
import re

import pytest

from lab.bundled.corpus import chat, mixer
from lab.bundled.corpus import chat_fact_tables as tables
from lab.bundled.corpus.base import Example
from lab.bundled.corpus.chat_held_out import HELD_OUT
from lab.bundled.corpus.chat_style import is_trained

NAMES = tuple(chat.PATTERNS)


def examples(name: str, count: int = 8) -> list[Example]:
    return [chat.PATTERNS[name](random.Random(f"{name} {seed}")) for seed in range(count)]


def task(name: str) -> str:
    return name.rsplit("/", 1)[0]


def words(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.lower()).split())


def answers(prompt: str, count: int = 40) -> set[str]:
    """What the single-turn patterns answer to exactly this prompt, whichever pattern makes it."""
    found = set()
    for name in NAMES:
        for example in examples(name, 3) if "chain" not in name and "follow" not in name else ():
            if words(example.turns[0][0]) == words(prompt):
                found |= {chat.PATTERNS[name](random.Random(seed)).turns[0][1] for seed in range(count)}
    return found


def test_every_answer_is_clean_and_contains_its_facts() -> None:
    for name in NAMES:
        for example in examples(name):
            assert example.facts and all(example.facts), name
            assert mixer.check(example, example.turns[-1][1]), (name, example)
            for text in (text for turn in example.turns for text in turn):
                assert text and text.isascii() and text == text.strip(), (name, text)
                assert not re.search(r"[{}]|  ", text), (name, text)
                assert "not know nothing" not in text.lower(), (name, text)
            for _, answer in example.turns:
                assert not re.search(
                    r"\b(?:a a|an an|the the|the a|cannot not|a [aeio]\w+ is)\b(?! one)", answer
                ), (name, answer)


def test_an_answer_to_something_else_does_not_pass() -> None:
    rng = random.Random(5)
    wrong = 0
    for name in NAMES:
        example, other = examples(name, 1)[0], examples(rng.choice(NAMES), 1)[0]
        wrong += task(other.pattern) != task(name) and mixer.check(example, other.turns[-1][1])
    assert wrong < 0.02 * len(NAMES)


def test_held_out_patterns_have_trained_siblings_and_are_said_nowhere_else() -> None:
    assert len(HELD_OUT) >= 14 and set(NAMES) >= HELD_OUT
    assert {task(name) for name in HELD_OUT} <= {task(name) for name in NAMES if name not in HELD_OUT}
    prompts = {words(example.turns[-1][0]) for name in HELD_OUT for example in examples(name, 30)}
    seen = {
        words(asked)
        for name in NAMES
        if name not in HELD_OUT
        for example in examples(name, 6)
        for asked, _ in example.turns
    }
    assert len(prompts & seen) <= 0.02 * len(prompts), prompts & seen


def test_held_out_names_mean_what_they_always_meant() -> None:
    # Fixed with the first training that left them out: a reworded or moved pattern would spoil every
    # comparison.
    held = {"greet/24": "Hellooo", "can/18": "Tell me what you can do.",
        "day_after/3": "What day follows {x}?",
            "out_capital/3": "Which city is the capital of {x}?",
            "out_weather/5": "Do I need an umbrella in {x}?"}  # fmt: skip
    for name, wording in held.items():
        assert f"chat/{name}" in HELD_OUT
        assert chat.TASKS[task(name)].prompts[int(name.rsplit("/", 1)[1])] == wording


def test_longer_chats_hold_no_prompt_of_another_split() -> None:
    """Refusals are divided by prompt, so one that belongs to the test must not be trained on late in a
    chat."""
    for name in NAMES:
        for example in examples(name, 4) if "chain" in name or "follow" in name else ():
            for asked, answer in example.turns:
                refused = re.search(r"I have not learned|I do not know|I am sorry, but", answer)
                alone = replace_turns(example, asked, answer)
                assert not refused or is_trained(asked) == (mixer.split_of(alone) == "train")
                assert not refused or is_trained(asked) or len(words(asked).split()) < 5, (name, asked)


def replace_turns(example: Example, asked: str, answer: str) -> Example:
    return Example("chat", "chat/out_topic/0", ((asked, answer),), example.facts)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("who are you", "OmniDemo"),
        ("what can you do", "Python"),
        ("thx", "welcome"),
        ("what is speculative decoding", "small model guesses"),
        ("what is the capital of france", "the capital of France"),
        ("how many legs does a spider have", "eight legs"),
        ("what day is it today", "no clock"),
        ("tell me a joke", "Here is a joke"),
        ("are you a robot", "computer program"),
    ],
)
def test_wordings_of_the_first_two_minutes(prompt: str, said: str) -> None:
    found = {answer for answer in answers(prompt) if "capital" not in prompt or "France" in answer}
    if "france" in prompt or "spider" in prompt:
        name = "chat/out_capital/0" if "france" in prompt else "chat/how_many/0"
        found = {
            turns[0][1]
            for turns in (chat.PATTERNS[name](random.Random(seed)).turns for seed in range(4000))
            if words(turns[0][0]) == prompt
        }
    assert found and all(said.lower() in answer.lower() for answer in found), found


def test_tables_of_facts_agree_with_themselves() -> None:
    assert (
        len(tables.DAYS) == 7
        and len(tables.MONTHS) == len(tables.MONTH_LENGTHS) == 12
        and sum(tables.MONTH_LENGTHS) == 365
    )
    for pairs in (
        tables.SOUNDS,
        tables.YOUNG,
        tables.THING_COLOURS,
        tables.EATS,
        tables.HOMES,
        tables.USES,
        tables.MADE_OF,
        tables.PLURALS,
    ):
        first = [row[0] for row in pairs]
        assert len(set(first)) == len(first), [word for word in first if first.count(word) > 1]
    once = [word for pair in tables.OPPOSITES for word in pair]
    assert len(set(once)) == len(once), [word for word in once if once.count(word) > 1]
    kinds = [word for group in tables.KINDS_OF.values() for word in group]
    assert len(set(kinds)) == len(kinds)
    whole = [row[:2] for row in (*tables.HOW_MANY, *tables.HOW_MANY_IN)]
    assert len(set(whole)) == len(whole)
    sizes = [word for row in tables.BY_SIZE for word in row]
    assert len(set(sizes)) == len(sizes)


def test_computed_facts() -> None:
    for name in ("spell/0", "letters/0", "parity/0", "greater/0", "number_after/0", "count/0"):
        for example in examples(f"chat/{name}", 40):
            asked, answer = example.turns[0]
            numbers = [int(text) for text in re.findall(r"\d+", asked)]
            if name == "spell/0":
                assert answer.replace("-", "").lower() == words(asked).split()[-1]
            elif name == "letters/0":
                word = re.search(r"the word (\w+) has (\d+) letters", answer)
                assert word and len(word[1]) == int(word[2])
            elif name == "parity/0":
                assert answer.endswith("odd." if numbers[0] % 2 else "even.")
            elif name == "greater/0":
                assert answer.startswith(str(max(numbers)))
            elif name == "number_after/0":
                assert answer.startswith(f"{numbers[0] + 1} ")
            elif numbers:
                assert answer.split(", ") == [str(n) for n in range(1, numbers[0] + 1)]


def test_follow_ups_lean_on_what_was_said() -> None:
    for example in examples("chat/follow_my_name/0", 20):
        assert (
            example.facts[0].lower() in example.turns[0][0].lower()
            and example.facts[0] in example.turns[-1][1]
        )
    for example in examples("chat/follow_yes/0", 20):
        request = example.turns[-1][1].split("for example: ")[1].rstrip("?.")
        told = example.turns[0][1]
        assert set(words(request).split()[-2:]) <= set(words(told).split()), (told, request)
    for example in examples("chat/follow_another_joke/0", 20):
        first, last = example.turns[0][1], example.turns[-1][1]
        assert first.split(": ", 1)[1] != last.split(": ", 1)[1]
    for example in examples("chat/follow_last_question/0", 20):
        assert example.turns[-2][0] in example.turns[-1][1]
