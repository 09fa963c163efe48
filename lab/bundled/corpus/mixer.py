"""Puts the domains together: held-out patterns, splits by prompt, the endless stream of examples, and the checker of answers."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from secrets import token_hex

from . import chat, chat_held_out, code, held_out, howto, howto_everyday, maths, maths_drills, news, news_quotes, stories
from .base import Example, Pattern

DOMAINS = ("stories", "maths", "code", "howto", "news", "chat")
MIX: dict[str, float] = {"stories": 0.14, "maths": 0.30, "code": 0.20, "howto": 0.10, "news": 0.09, "chat": 0.17}
# With drills, a drawn maths example is a list of bare sums this often: a small model must meet each sum many times, and word problems
# are long. Drills are for training alone: nobody is shown them or scored on them.
DRILL_SHARE = 0.25
SPLITS = ("train", "validation", "test")

MULTI_TURN_SHARE = 0.15  # of the chats are joined from several examples; they are longer, so nearly half of the text
PARTS = (2, 3, 4, 5, 6, 8, 10, 12)  # examples in a joined chat, and how often each number is drawn
PARTS_WEIGHTS = (20, 18, 15, 12, 10, 10, 8, 7)
OPENING_SHARE = 0.35  # of the joined chats begin with a greeting,
CLOSING_SHARE = 0.2  # and so many end with thanks or a goodbye
STAYING_SHARE = 0.35  # of the further examples are of the topic before: people change topics, but not always
REMEMBERED = 200_000
RETRIES = 20  # of one domain for an example not seen lately, before another domain has its turn
# So many draws in a row without an example to give mean that the split has none, or that all are remembered.
MAX_MISSES = 40_000
CODE_TIMEOUT_S = 5.0
CODE_MEMORY_BYTES = 1 << 30

_TABLES: dict[str, Mapping[str, Pattern]] = {
    "stories": stories.PATTERNS,
    "maths": {**maths.PATTERNS, **maths_drills.PATTERNS},
    "code": code.PATTERNS,
    "howto": {**howto.PATTERNS, **howto_everyday.PATTERNS},
    "news": {**news.PATTERNS, **news_quotes.PATTERNS},
    "chat": chat.PATTERNS,
}
# Beginnings of the names of chat's tasks that say where in a joined chat they may stand, and which prompts the splits divide.
_OPENING = ("chat/greet", "chat/how_are")
_CLOSING = ("chat/thanks", "chat/bye")
_OUT_OF_TOPIC = ("chat/out_",)
# Tasks whose answers are tables of words: each of them is drawn as often as a greeting, and has hundreds of answers to remember.
_FACTS = tuple(f"chat/{task}/" for task in ("opposite", "spell", "plural", "bigger", "smaller", "rhyme", "kind_of", "how_many"))
_DRILL = "maths/drill"

_NOT_WORDS = re.compile(r"[^a-z0-9]+")
_NUMBERS = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_FENCED = re.compile(r"```[a-z]*\n(.*?)(?:```|\Z)", re.DOTALL)


def _task(pattern: str) -> str:
    return pattern.rsplit("/", 1)[0]


def _is_held_out(pattern: str) -> bool:
    return pattern in held_out.NAMES or pattern in chat_held_out.HELD_OUT


def patterns(domain: str, held_out: bool) -> list[str]:
    """The names of a domain's patterns that are held out of training, or else all the others."""
    return [name for name in _TABLES[domain] if _is_held_out(name) == held_out]


@cache
def _tasks(domain: str, held_out: bool, drills: bool = False, only: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
    """The same names grouped by task, drills or all but drills; with `only`, the tasks whose names begin so."""
    tasks: dict[str, list[str]] = {}
    for name in patterns(domain, held_out):
        if name.startswith(only or "") and name.startswith(_DRILL) == drills:
            tasks.setdefault(_task(name), []).append(name)
    return tuple(map(tuple, tasks.values()))


def split_of(example: Example) -> str:
    """97 % train, 1 % validation, 2 % test, by the words of the first prompt, so that no prompt is in two splits.

    Chat belongs to training, for there are not many ways to say hello; only its out-of-topic prompts are divided like the rest. What is
    held out as a pattern is never trained on, so all of its small talk may be asked in a test.
    """
    if example.domain == "chat" and not example.pattern.startswith(_OUT_OF_TOPIC):
        return "test" if _is_held_out(example.pattern) else "train"
    prompt = " ".join(_NOT_WORDS.sub(" ", example.turns[0][0].lower()).split())
    bucket = zlib.crc32(prompt.encode()) % 100
    return "validation" if bucket == 0 else "test" if bucket < 3 else "train"


def make(rng: random.Random, pattern: str) -> Example:
    """An example of the pattern of this name."""
    return _TABLES[pattern.split("/", 1)[0]][pattern](rng)


def _draw(rng: random.Random, domain: str, tasks: Sequence[Sequence[str]]) -> Example:
    return _TABLES[domain][rng.choice(rng.choice(tasks))](rng)


def sample(rng: random.Random, domain: str, held_out: bool = False, drills: bool = False, facts: float = 0.0) -> Example:
    """One example as its pattern makes it: a task is drawn uniformly, then one of its phrasings. `facts` is as in `stream`."""
    if facts and domain == "chat" and rng.random() < facts:  # a stream without them stays what it was
        return _draw(rng, domain, _tasks(domain, held_out, only=_FACTS))
    drill = drills and domain == "maths" and rng.random() < DRILL_SHARE
    return _draw(rng, domain, _tasks(domain, held_out, drill))


def _joined(parts: Sequence[Example]) -> Example:
    """One chat of several; the last turn is the one that is asked about, so everything but the turns is its own."""
    return replace(parts[-1], turns=tuple(turn for part in parts for turn in part.turns))


class _Source:
    """Draws examples of one split from the given domains."""

    def __init__(self, rng: random.Random, split: str, weights: Mapping[str, float], held_out: bool, drills: bool, facts: float) -> None:
        self.rng, self.split, self.held_out, self.drills, self.facts = rng, split, held_out, drills, facts
        self.names = tuple(weights)
        self.bounds = tuple(accumulate(weights.values()))
        self.talks = [name for name in self.names if name != "chat"]
        self.has_chat = "chat" in weights and split == "train" and not held_out

    def domain(self) -> str:
        return self.rng.choices(self.names, cum_weights=self.bounds)[0]

    def one(self, domain: str) -> Example | None:
        example = sample(self.rng, domain, self.held_out, self.drills, self.facts)
        return example if split_of(example) == self.split else None

    def _some(self, domain: str) -> Example:
        """One more turn for a chat; outside of training most draws belong to another split."""
        for _ in range(MAX_MISSES):
            if example := self.one(domain):
                return example
        raise LookupError(f"no example of {domain!r} in split {self.split!r}")

    def _talk(self) -> str:
        while (domain := self.domain()) == "chat":
            pass
        return domain

    def several(self) -> Example:
        """Two to twelve examples as one chat with changing topics, a greeting only at its beginning and a goodbye only at its end."""
        domain, parts = self._talk(), []
        for _ in range(self.rng.choices(PARTS, PARTS_WEIGHTS)[0]):
            parts.append(self._some(domain))
            domain = domain if self.rng.random() < STAYING_SHARE else self.domain()
        if self.has_chat:
            opening, closing = _tasks("chat", False, only=_OPENING), _tasks("chat", False, only=_CLOSING)
            if opening and self.rng.random() < OPENING_SHARE:
                parts[0] = _draw(self.rng, "chat", opening)
            if closing and self.rng.random() < CLOSING_SHARE:
                parts[-1] = _draw(self.rng, "chat", closing)
        return _joined(parts)


def stream(
    seed: int,
    split: str,
    domains: Sequence[str] | None = None,
    held_out: bool = False,
    mix: Mapping[str, float] | None = None,
    drills: bool = False,
    facts: float = 0.0,
) -> Iterator[Example]:
    """Endless examples of one split, none like one of the last 200,000; `held_out` draws from the held-out patterns alone.

    facts: this share of the chats is of tasks whose answers are tables of words, beside what the draw of a task gives.

    Every turn of a joined chat is of the split, not the first alone: a test prompt must not turn up late in a training chat.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    weights = {name: (mix or MIX).get(name, 0.0) for name in domains or DOMAINS}
    weights = {name: weight for name, weight in weights.items() if weight > 0 and patterns(name, held_out)}
    if not weights:
        raise ValueError("no domain to draw from")
    return _stream(_Source(random.Random(seed), split, weights, held_out, drills, facts))


def _stream(source: _Source) -> Iterator[Example]:
    seen: OrderedDict[bytes, None] = OrderedDict()
    while True:
        # Decided before the search: a single example misses the split far more often, which must not change the share.
        many = bool(source.talks) and source.rng.random() < MULTI_TURN_SHARE
        domain, repeats = source.domain(), 0
        for _ in range(MAX_MISSES):
            example = source.several() if many else source.one(domain)
            if example is None or split_of(example) != source.split:
                # Another domain at once, or else one that is rare in this split would be drawn until it is found.
                domain, repeats = source.domain(), 0
                continue
            key = blake2b(json.dumps(example.turns).encode(), digest_size=8).digest()
            if key not in seen:
                seen[key] = None
                if len(seen) > REMEMBERED:
                    seen.popitem(last=False)
                yield example
                break
            repeats += 1
            if repeats == RETRIES:
                domain, repeats = source.domain(), 0
        else:
            if not seen:
                raise LookupError(f"no example of {', '.join(source.names)} in split {source.split!r}")
            # Everything there is has been given: begin again rather than never give one more.
            seen.clear()


def check(example: Example, answer: str) -> bool:
    """Whether `answer` is right as an answer to the last turn."""
    if not answer.strip():
        return False
    if example.number is not None:
        return _same_number(answer, example.number)
    if example.tests:
        return _passes(answer, example.tests)
    return all(_occurs(fact, answer) for fact in example.facts)


def _occurs(fact: str, answer: str) -> bool:
    """Whether the answer repeats the fact; a number only as a whole one, so that 5 is not found in 250 or 1,500."""
    before = r"(?<!\d)(?<!\d,)" if fact[:1].isdigit() else ""
    after = r"(?!,?\d)" if fact[-1:].isdigit() else ""
    return re.search(before + re.escape(fact) + after, answer, re.IGNORECASE) is not None


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip().replace(",", "").removesuffix("."))
    except InvalidOperation:
        return None


def _same_number(answer: str, number: str) -> bool:
    """Whether the number behind "####" is the right one, or else, where there is no such mark, the last number of the answer."""
    _, mark, last = answer.rpartition("####")
    if not mark:
        last = next(reversed(_NUMBERS.findall(answer)), "")
    result = _number(last)
    return result is not None and result == _number(number)


# The answer is run in a namespace of its own before its tests; the word it prints at last, which the answer
# cannot know, proves that it came that far and did not just exit.
_RUNNER = """
import json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
except (ImportError, ValueError, OSError):
    pass
answer, tests = json.load(sys.stdin)
space = {{"__name__": "answer"}}
exec(compile(answer, "answer", "exec"), space)
for test in tests:
    exec(test, space)
print({done!r})
"""


def _passes(answer: str, tests: Sequence[str]) -> bool:
    """Whether the code of an answer compiles and passes its tests in a Python of its own.

    This is isolation against accidents (an endless loop, an exit, a crash), not against malice: a subprocess is no sandbox.
    Only text of our own models is run here, never text of a visitor.
    """
    fenced = _FENCED.search(answer)
    source = fenced.group(1) if fenced else answer
    passed = token_hex(8)
    try:
        compile(source, "answer", "exec")
        done = subprocess.run(
            [sys.executable, "-I", "-c", _RUNNER.format(memory=CODE_MEMORY_BYTES, done=passed)],
            input=json.dumps([source, list(tests)]),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            text=True,
            timeout=CODE_TIMEOUT_S,
            check=False,
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and done.stdout.rstrip().endswith(passed)
