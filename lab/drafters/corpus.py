"""Answers of targets, and what people wrote, as chats in a drafter's ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.drafters.prompt_sets import everything, training
from lab.drafters.rows import Chat, chat_of
from lab.drafters.shards import read_shards
from lab.drafters.spelling import Spelling
from omnidemo.backends.batched_writer import WrittenAnswer
from omnidemo.models.chat_template import Speller
from omnidemo.models.load import open_source
from omnidemo.vocabulary.vocabulary import Vocabulary


def tokenizer_of(model: str) -> tuple[Any, Vocabulary]:
    """The tokenizer of a model by any of its names, without its weights; that of a folder may stand there
    alone."""
    folder = Path(model)
    if (folder / "tokenizer.json").exists() and not (folder / "config.json").exists():
        from transformers import AutoTokenizer

        from omnidemo.vocabulary.vocabulary import read_vocabulary

        tokenizer = AutoTokenizer.from_pretrained(folder)
        return tokenizer, read_vocabulary(tokenizer)
    return open_source(model, hub=False).tokenizer()


def vocabulary_of(model: str) -> Vocabulary:
    return tokenizer_of(model)[1]


def human_texts(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(set, prompt, answer or an empty text) of each training prompt. Our own have no answers."""
    for name, prompts in training(folder).items():
        for prompt in prompts:
            yield name, prompt.text, prompt.answer.replace("\t", "    ").replace("\r", "")


def read_answers(shards: Path, name: str, place: str, prompts: Path) -> Iterator[WrittenAnswer]:
    """The answers of a target, a model by any of its names, to prompts of a folder."""
    tokenizer, vocabulary = tokenizer_of(place)
    speller, texts = Speller(tokenizer, vocabulary), everything(prompts)

    def ids(kind: str, prompt: str) -> list[int]:
        return speller.messages([{"role": "user", "content": texts.get((kind, prompt), "")}])

    return read_shards(shards, name, ids)


def as_answers(
    folder: Path, spell: Callable[[str], list[int]], encode: Callable[[str], list[int]], end: int
) -> Iterator[WrittenAnswer]:
    """The same in a target's ids."""
    for number, (name, prompt, answer) in enumerate(human_texts(folder)):
        ids = [*encode(answer), end] if answer else []
        yield WrittenAnswer(name, str(number), 0.0, "end", spell(prompt), ids)


def answer_texts(targets: Mapping[str, str], shards: Path, prompts: Path) -> Iterator[str]:
    """What targets have written."""
    for name, place in targets.items():
        vocabulary = vocabulary_of(place)
        for answer in read_answers(shards, name, place, prompts):
            yield vocabulary.text_bytes(answer.ids).decode(errors="ignore")


def chats(
    drafter_tokenizer: Path, targets: Mapping[str, str], prompts: Path, shards: Path | None
) -> tuple[list[Chat], int]:
    """Everything that is to be learned, and the drafter's padding id: targets' answers, or without `shards`
    people's texts, in the first target's spelling."""
    tokenizer, drafter = tokenizer_of(str(drafter_tokenizer))
    found: list[Chat] = []
    for number, (name, place) in enumerate(targets.items()):
        target_tokenizer, target = tokenizer_of(place)
        spelling = Spelling(target, drafter)
        if shards is None and number == 0:
            speller = Speller(target_tokenizer, target)

            def spell(text: str, speller: Speller = speller) -> list[int]:
                return speller.messages([{"role": "user", "content": text}])

            def encode(text: str, target: Vocabulary = target) -> list[int]:
                return list(target.encode(text.encode()) or ())

            for answer in as_answers(prompts, spell, encode, target.roles["end"][0]):
                found.append(chat_of(answer.set, spelling.spell(answer.prompt, answer.ids), whole=True))
        if shards is not None:
            for answer in read_answers(shards, name, place, prompts):
                spelled = spelling.spell(answer.prompt, answer.ids, answer.labels, answer.probs)
                found.append(chat_of(f"{name}/{answer.set}", spelled))
    return found, int(tokenizer.pad_token_id)


def few(answers: Iterable[WrittenAnswer], most: int) -> Iterator[WrittenAnswer]:
    """The first `most` greedy answers of each set, and as many drawn ones."""
    seen: Counter[tuple[str, bool]] = Counter()
    for answer in answers:
        kind = answer.set, answer.temperature > 0
        seen[kind] += 1
        if seen[kind] <= most:
            yield answer
