"""How much of a conversation a model reads: what the catalogue says it was made for, and never more than its window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from omnidemo.models.catalogue import Reading
from omnidemo.pair.pair import Pair

Message = Mapping[str, str]
LONGEST_TOKEN = 64  # characters; a text with more of them per token of the window is too long without counting its tokens


def newest(
    pair: Pair, messages: Sequence[Message], reading: Reading, max_new_tokens: int, cancelled: Callable[[], bool] = lambda: False
) -> list[Message]:
    """The newest exchanges of a chat: as many as the target was made for and as leave space for an answer; at least the last message.

    They begin with a question, as an answer without its question means little; a system message at the beginning stays. Where they begin is
    found by halving, so that a long history is tokenised a few times at most; `cancelled` is called before each time.
    """
    head = list(messages[:1]) if messages and messages[0]["role"] == "system" else []
    rest = messages[len(head) :]
    space = pair.target.context - min(max_new_tokens, pair.target.context // 2)
    space = min(space, reading.tokens or space)
    questions = [place for place, message in enumerate(rest) if message["role"] == "user"]
    starts = [*questions[-(reading.turns or len(rest)) :], len(rest) - 1]

    def fits(start: int) -> bool:
        return not cancelled() and _fits(pair, [*head, *rest[start:]], space)

    found = 0 if fits(starts[0]) else bisect_left(starts, True, hi=len(starts) - 1, key=fits)
    return [*head, *rest[starts[found] :]]


def _fits(pair: Pair, messages: list[Message], space: int) -> bool:
    if sum(len(message["content"]) for message in messages) > space * LONGEST_TOKEN:
        return False
    try:
        return len(pair.prompt_ids(messages)) <= space
    except ValueError:  # it does not fit the window, or the template refuses it
        return False
