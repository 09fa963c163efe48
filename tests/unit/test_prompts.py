"""The prompts that ship: enough of each topic, no two alike, and nothing that is measured shares a text, a
paragraph or a schema with what is played."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest

from omnidemo.learning.lines.sample_prompts import FOLDER, TOPICS, prompts
from omnidemo.serving.comparison import turns_of
from omnidemo.serving.measuring.prompt_files import read_prompts, read_questions
from omnidemo.ui import text
from tests.support.kept_prompts import kept_prompts

RUN = 8  # words in a row that two prompts have in common only where one was made of the other
ALIKE = 0.7  # share of common words from which on two prompts ask the same
OTHERS = ("examples", "examples_large", "edits", "free")  # files that are of no topic
TABLE = re.compile(r"(\w+)\s*\(([\w\s,()]+?)\)(?=[\s,;.]|$)")


def words(prompt: str) -> list[str]:
    return re.findall(r"\w+", prompt.casefold())


def runs(prompt: str) -> set[tuple[str, ...]]:
    """All runs of RUN words; of a shorter prompt all its words."""
    found = words(prompt)
    return {tuple(found[start : start + RUN]) for start in range(max(1, len(found) - RUN + 1))}


def tables(prompt: str) -> set[frozenset[str]]:
    """The column names of each table of a schema."""
    return {
        frozenset(part.split()[0] for part in columns.split(",") if part.strip())
        for _, columns in TABLE.findall(prompt)
        if columns.count(",") > 1
    }


def everything(found: Iterable[str]) -> set[object]:
    return {part for prompt in found for part in (*runs(prompt), *tables(prompt))}


def measured(topic: str) -> tuple[str, ...]:
    return (*prompts(topic), *kept_prompts(topic))


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_enough_prompts_and_a_name(topic: str) -> None:
    assert (
        60 <= len(prompts(topic, "train")) <= 120
        and len(prompts(topic)) == 30
        and len(kept_prompts(topic)) == 7
    )
    assert topic in text.TOPICS
    for prompt in (*prompts(topic, "train"), *measured(topic)):
        assert prompt == prompt.strip() and words(prompt), prompt


@pytest.mark.parametrize("topic", TOPICS)
def test_what_is_measured_shares_nothing_with_what_is_played(topic: str) -> None:
    played = everything(prompt for one in TOPICS for prompt in prompts(one, "train"))
    for prompt in measured(topic):
        assert not everything([prompt]) & played, prompt


def test_free_questions_edits_and_examples_are_not_played() -> None:
    played = everything(prompt for topic in TOPICS for prompt in prompts(topic, "train"))
    for name in OTHERS:
        for question in read_questions(FOLDER / f"{name}.jsonl"):
            for turn in turns_of(question):
                assert not everything([turn]) & played, turn


def test_probes_are_in_no_other_file() -> None:
    """What is measured is played and pressed by nobody."""
    known = {prompt for topic in TOPICS for kind in ("test", "train") for prompt in prompts(topic, kind)}
    known |= {prompt for name in OTHERS for prompt in read_prompts(FOLDER / f"{name}.jsonl")}
    assert not known & {prompt for topic in TOPICS for prompt in kept_prompts(topic)}


def asked(topic: str, found: Sequence[str]) -> list[str]:
    """The prompts; of SQL without the schema, which several questions have in common."""
    if topic != "sql":
        return list(found)
    parts = [prompt.split("\n\n") for prompt in found]
    common = [part for each in parts for part in each]
    return ["\n\n".join(part for part in each if common.count(part) == 1) for each in parts]


@pytest.mark.parametrize("topic", TOPICS)
def test_no_two_prompts_are_alike(topic: str) -> None:
    found = asked(topic, (*prompts(topic, "train"), *measured(topic)))
    assert all(found)
    for one, other in combinations(found, 2):
        mine, yours = set(words(one)), set(words(other))
        assert len(mine & yours) < ALIKE * len(mine | yours), (one, other)


def test_an_unknown_topic_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown topic 'stories'; choose one of maths, code"):
        prompts("stories")
