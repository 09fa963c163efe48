"""How much of a conversation a model reads: as much as the catalogue says, within the model's window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnidemo.models.catalogue import ReadingLimits
from omnidemo.pair.pair import Pair
from omnidemo.pair.prompt_reader import TooLong

Message = Mapping[str, str]
LONGEST_TOKEN = 64  # characters per token of the window from which on a text is too long, uncounted


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that a target reads, and how many older ones were `dropped`."""

    messages: list[Message]
    dropped: int


def newest(
    pair: Pair, messages: Sequence[Message], reading: ReadingLimits, max_new_tokens: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> Window:  # fmt: skip
    """The newest exchanges of a chat, as many as the target was made for and as leave space for an answer; at
    least the last message. ValueError where the chat template refuses the messages.

    They begin with a question, or with a system message: the chat's own, else the catalogue's. An empty one
    counts as the chat's own, and leaves it to the chat template what it says by itself. A chat that has
    outgrown its space loses up to a quarter of the window at once: it begins alike for several turns, so the
    target need not read it again. The beginning depends on the messages alone. It is found by bisection, so
    that a long history is tokenised a few times at most; `cancelled` is called before each time.
    """
    if not any(message["role"] == "system" for message in messages) and reading.system:
        messages = [{"role": "system", "content": reading.system}, *messages]
    messages = [one for one in messages if one["role"] != "system" or one["content"].strip()]
    head = list(messages[:1]) if messages and messages[0]["role"] == "system" else []
    rest = messages[len(head) :]
    space = pair.target.context - min(max_new_tokens, pair.target.context // 2)
    space = min(space, reading.tokens or space)
    questions = [place for place, message in enumerate(rest) if message["role"] == "user"]
    # A token has about three bytes or more, so this many bytes are at most a quarter of the read tokens.
    block = max(1, min(pair.target.context, reading.tokens or pair.target.context) * 3 // 4)
    starts = questions[-reading.turns :] if reading.turns else list(_block_starts(rest, questions, block))
    starts.append(len(rest) - 1)

    def fits(start: int) -> bool:
        return not cancelled() and _fits(pair, [*head, *rest[start:]], space)

    first = 0 if fits(starts[0]) else bisect_left(starts, True, hi=len(starts) - 1, key=fits)
    kept = [*head, *rest[starts[first] :]]
    return Window(kept, len(messages) - len(kept))


def _block_starts(messages: Sequence[Message], questions: Sequence[int], block: int) -> Iterator[int]:
    """The places of questions with which a shortened chat may begin: the first of each block of `block`
    bytes, those whose exchange is half a block long, and all of the newest block, in case no other leaves
    enough space. They stay the same as a chat grows, but for the newest block."""
    before = [0]  # bytes before each message
    for message in messages:
        before.append(before[-1] + len(message["content"].encode("utf-8", "replace")))
    newest_block, last = (before[questions[-1]] // block if questions else 0), -1
    for place, after in zip(questions, [*questions[1:], len(messages)], strict=False):
        number = before[place] // block
        if number > last or number == newest_block or before[after] - before[place] >= block // 2:
            yield place
        last = number


def _fits(pair: Pair, messages: list[Message], space: int) -> bool:
    if sum(len(message["content"]) for message in messages) > space * LONGEST_TOKEN:
        return False
    try:
        return len(pair.prompt_ids(messages)) <= space
    except TooLong:
        return False
