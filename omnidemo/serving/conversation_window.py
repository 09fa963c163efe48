"""How much of a conversation a model reads: what the catalogue says it was made for, and never more than its window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

from omnidemo.models.catalogue import Reading
from omnidemo.pair.pair import Pair

Message = Mapping[str, str]
_frames: WeakKeyDictionary[Pair, tuple[int, int]] = WeakKeyDictionary()  # of the templates; measured once, it takes a millisecond
LONGEST_TOKEN = 64  # characters; a text with more of them per free token is too long without counting its tokens


def newest(
    pair: Pair, messages: Sequence[Message], reading: Reading, max_new_tokens: int, cancelled: Callable[[], bool] = lambda: False
) -> list[Message]:
    """The newest exchanges of a chat: as many as the target was made for and as leave space for an answer; at least the last message.

    Each message is counted once, from the newest backwards, until the space is used up: a long history costs no more than the window.
    `cancelled` is called before each. A system message at the beginning stays.
    """
    head = list(messages[:1]) if messages and messages[0]["role"] == "system" else []
    space = pair.target.context - min(max_new_tokens, pair.target.context // 2)
    space = min(space, reading.tokens or space)
    if pair not in _frames:
        _frames[pair] = _template(pair)
    base, frame = _frames[pair]
    left = space - base - sum(_tokens(pair, message, space) + frame for message in head)
    kept: list[Message] = []
    turns = 0
    for message in reversed(messages[len(head) :]):
        if kept and (cancelled() or turns == reading.turns):
            break
        left -= _tokens(pair, message, left) + frame
        if kept and left < 0:
            break
        kept.insert(0, message)
        turns += message["role"] == "user"
    kept = _from_a_question(kept)
    while len(kept) > 1 and not cancelled() and _too_long(pair, [*head, *kept], space):  # the estimate of the template was too low
        kept = _from_a_question(kept[(len(kept) + 1) // 2 :])
    return head + kept


def _from_a_question(messages: list[Message]) -> list[Message]:
    """The messages from the first question on: an answer whose question was dropped is dropped too."""
    first = next((place for place, message in enumerate(messages) if message["role"] == "user"), len(messages) - 1)
    return messages[max(0, first) :]


def _tokens(pair: Pair, message: Message, space: int) -> int:
    """Target tokens of a message; more than `space` for a text that is surely too long to be counted."""
    if len(message["content"]) > max(1, space) * LONGEST_TOKEN:
        return max(0, space) + 1
    return len(pair.target.tokenizer(message["content"], add_special_tokens=False)["input_ids"])


def _template(pair: Pair) -> tuple[int, int]:
    """Tokens that the chat template writes once, and around each message."""
    user, assistant = {"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}
    try:
        one, three = (len(pair.prompt_ids(chat)) for chat in ([user], [user, assistant, user]))
    except ValueError:  # no template, or one that refuses these messages
        return 0, 0
    text = len(pair.target.tokenizer("x", add_special_tokens=False)["input_ids"])
    frame = max(0, -(-(three - one) // 2) - text)
    return max(0, one - frame - text), frame


def _too_long(pair: Pair, messages: list[Message], space: int) -> bool:
    try:
        return len(pair.prompt_ids(messages)) > space
    except ValueError:  # it does not fit the window
        return True
