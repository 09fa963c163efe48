"""Generated chats as rows of tokens on disk, written ahead of the training by a process of its own."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from lab.drafters.training.row_files import SHARD_TOKENS, shard_path
from lab.drafters.training.tokenizers import BEGIN, END, ROLES, ids_of, respell
from omnidemo.private_folders import replacing

from .corpus import mixer
from .corpus.base import Example

# Parallel streams of one training have seeds far apart.
SEEDS = {
    "tokenizers": 11, "drafter": 1_000_000, "a": 2_000_000, "b": 3_000_000, "c": 4_000_000,
    "large": 5_000_000, "half": 6_000_000, "further": 7_000_000, "upper": 8_000_000,
}  # fmt: skip
# `large`, the target that people chat with, and `half`, which it grows from, read more chats: those are
# short, so by the usual mix of examples only 7 % of what a model learns from is chat. The rest it knows from
# its parent, and has to keep: with 11 % code it forgot some of that.
CHATTY: dict[str, float] = {
    "stories": 0.09,
    "maths": 0.24,
    "code": 0.18,
    "howto": 0.06,
    "news": 0.08,
    "chat": 0.35,
}
# After `half` and `large` it was right for 58 of 100 chat prompts of the very kinds that it had read: it had
# read too few.
CHATTIER: dict[str, float] = {
    "stories": 0.03,
    "maths": 0.10,
    "code": 0.07,
    "howto": 0.025,
    "news": 0.025,
    "chat": 0.75,
}
# The last part learns more of the facts, and brings back some of the code and the sums that `further` had
# cost.
LAST: dict[str, float] = {
    "stories": 0.03,
    "maths": 0.13,
    "code": 0.10,
    "howto": 0.02,
    "news": 0.02,
    "chat": 0.70,
}
MIXES = {"half": CHATTY, "large": CHATTY, "further": CHATTIER, "upper": LAST}
FACTS = {"upper": 0.15}  # of the chats
OTHER_SHARE = 0.01  # of the drafter's tokens: every domain but stories
TOKENIZER_TEXTS = 40_000


@dataclass(slots=True)
class Speller:
    """Turns chats into tokens and a mask of the answers. With `via`, texts are spelled as another tokenizer
    splits them."""

    tokenizer: PreTrainedTokenizerFast
    via: PreTrainedTokenizerFast | None = None
    _table: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.via is not None:
            self._table = respell(self.tokenizer, self.via)

    def _texts(self, texts: list[str]) -> list[list[int]]:
        if self.via is None:
            encodings = self.tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        encodings = self.via.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
        return [[token for index in encoding.ids for token in self._table[index]] for encoding in encodings]

    def chats(self, examples: Sequence[Example]) -> list[tuple[list[int], list[int]]]:
        """Tokens and loss mask (1 on answers and the end of turn after them) of every chat, as the chat
        template spells it."""
        begin, user, assistant, end = ids_of(self.tokenizer, [BEGIN, ROLES["user"], ROLES["assistant"], END])
        pieces = iter(self._texts([text for example in examples for turn in example.turns for text in turn]))
        chats = []
        for example in examples:
            tokens, mask = [begin], [0]
            for _ in example.turns:
                question, answer = next(pieces), next(pieces)
                tokens += [user, *question, end, assistant, *answer, end]
                mask += [0] * (len(question) + 3) + [1] * (len(answer) + 1)
            chats.append((tokens, mask))
        return chats


def pack(chats: Iterator[tuple[list[int], list[int]]], length: int, pad: int) -> Iterator[NDArray[np.uint16]]:
    """Rows of tokens, loss mask and, for every token, the place where its chat begins: shape (3, length).

    Every row begins with a chat; the one that does not fit is cut at the end and its rest dropped (generated
    text costs nothing), so that no answer is ever learned without its question.
    """
    while True:
        row = np.zeros((3, length), np.uint16)
        row[0] = pad
        at = 0
        while at < length:
            chat = next(chats, None)
            if chat is None:
                return
            size = min(len(chat[0]), length - at)
            row[0, at : at + size], row[1, at : at + size] = chat[0][:size], chat[1][:size]
            row[2, at : at + size] = at
            at += size
        yield row


def examples_for(name: str, seed: int) -> Iterator[Example]:
    """The endless stream of a model's training chats."""
    if name != "drafter":
        yield from mixer.stream(seed, "train", mix=MIXES.get(name), drills=True, facts=FACTS.get(name, 0.0))
        return
    # By characters, for tokens of the drafter's own vocabulary would make maths and code look longer than
    # they are.
    stories = mixer.stream(seed, "train", domains=("stories",))
    others = mixer.stream(
        seed + 1, "train", domains=tuple(domain for domain in mixer.DOMAINS if domain != "stories")
    )
    told = other = 0
    for story in stories:
        yield story
        told += _characters(story)
        while other < OTHER_SHARE / (1 - OTHER_SHARE) * told:
            example = next(others)
            other += _characters(example)
            yield example


def tokenizer_texts(drafter: bool, count: int = TOKENIZER_TEXTS) -> Iterator[str]:
    """Texts to learn a vocabulary from: all domains; for the drafter stories and 5 % of the rest.

    A vocabulary learned from the same text would nest inside the targets' and leave no n-grams to remember.
    """
    chooser = random.Random(SEEDS["tokenizers"])
    for example in itertools.islice(mixer.stream(SEEDS["tokenizers"], "train"), count):
        if not drafter or example.domain == "stories" or chooser.random() < 0.05:
            for turn in example.turns:
                yield from turn


def _characters(example: Example) -> int:
    return sum(len(text) for turn in example.turns for text in turn)


def produce(name: str, spellers: Sequence[Speller], folder: Path, plan: Sequence[tuple[int, int]]) -> None:
    """Write the shards that `plan` (row length, number of rows) needs and that are not there yet.

    Every shard has its own seed, so that its content does not depend on when it is made. The spellers take
    turns, row by row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = json.loads((folder / "stats.json").read_text()) if (folder / "stats.json").exists() else {}
    characters, chats, prompts = Counter[str](before.get("characters")), before.get("chats", 0), set[int]()
    pad = spellers[0].tokenizer.pad_token_id
    for length, rows in plan:
        each = SHARD_TOKENS // length
        for index in range(-(-rows // each)):
            path = shard_path(folder, length, index)
            if path.exists():
                continue
            stream = examples_for(name, SEEDS[name] + 1000 * length + 2 * index)

            def spelled(
                speller: Speller, stream: Iterator[Example] = stream
            ) -> Iterator[tuple[list[int], list[int]]]:
                nonlocal chats
                while True:
                    group = list(itertools.islice(stream, 64))
                    for example in group:
                        characters[example.domain] += _characters(example)
                        prompts.add(zlib.crc32(example.turns[0][0].encode()))
                    chats += len(group)
                    yield from speller.chats(group)

            rows_of = itertools.cycle([pack(spelled(speller), length, pad) for speller in spellers])
            data = np.stack([next(next(rows_of)) for _ in range(each)])
            with replacing(path) as partial, partial.open("wb") as file:
                np.save(file, data)
            stats = {
                "chats": chats,
                "distinct_prompts": before.get("distinct_prompts", 0) + len(prompts),
                "characters": dict(characters),
            }
            with replacing(folder / "stats.json") as partial:
                partial.write_text(json.dumps(stats))
