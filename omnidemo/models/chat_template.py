"""A prompt's ids, where only the chat template makes control tokens: typed text stays text."""

from __future__ import annotations

import json
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

from tokenizers import Tokenizer

from omnidemo.core.config import check_text
from omnidemo.vocabulary.vocabulary import Vocabulary

DEEPEST = 8  # levels of lists in a message's content
ROLE = re.compile(r"[\w-]{1,32}")

PROBE = [{"role": "user", "content": "Hello"}]
MARK = "omnidemo-probe"  # a text that no template writes of itself
PROBE_SECONDS, PROBE_CHARACTERS = 5.0, 1_000_000  # what a template may take for that, and write


class Speller:
    """The ids of texts and chats for one tokenizer.

    A message without a control token's name has exactly the ids of the tokenizer and of
    `apply_chat_template`. A text with one is read by a second tokenizer, made at first need, in which control
    tokens have random names: control tokens of the template are renamed to them, and typed ones are spelled
    in pieces.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
        control = {
            entry.content: entry
            for token_id, entry in added.items()
            if entry.content and (token_id >= len(vocabulary.tokens) or vocabulary.tokens[token_id] is None)
        }
        # Longest first, as the tokenizer itself takes them.
        self._names = sorted(control, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._names))) if control else None
        self._normalises = any(entry.normalized for entry in control.values())
        # Tokens that the tokenizer puts behind each text: an end that a text which goes on does not have.
        framed = tokenizer.backend_tokenizer.encode("a").special_tokens_mask
        self._behind = len(list(takewhile(bool, reversed(framed)))) % max(len(framed), 1)
        self._lock = threading.Lock()
        self._second: tuple[Tokenizer, dict[str, str], dict[str, str]] | None = None

    def text(self, text: str, control_tokens: bool = False) -> list[int]:
        """The ids of a text by the tokenizer, without an end token; names of control tokens become these with
        `control_tokens` only. ValueError for a text that cannot be encoded."""
        check_text(text)
        if control_tokens or not self._holds(text):
            # without `transformers`' warning of a long text, which `PromptReader` refuses in a sentence
            ids = list(self._tokenizer(text, verbose=False)["input_ids"])
            ids = ids[: len(ids) - self._behind]
            begin = self._tokenizer.bos_token
            twice = (
                control_tokens
                and begin
                and text.startswith(begin)
                and ids[:2] == [self._tokenizer.bos_token_id] * 2
            )
            return ids[1:] if twice else ids  # a template that somebody filled in has its own begin token
        ids = list(self._renamed()[0].encode(text, add_special_tokens=True).ids)
        return ids[: len(ids) - self._behind]

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of a chat with the beginning of an answer. ValueError for an invalid chat; other errors
        come from the template."""
        check_messages(messages)
        messages = [
            {**message, "content": text_of(message["content"])}
            if isinstance(message["content"], list)
            else message
            for message in messages
        ]
        if not any(_any_text(message, self._holds) for message in messages):
            found = self._tokenizer.apply_chat_template(
                self._shaped(messages), add_generation_prompt=True, tokenize=True, return_dict=False,
                tokenizer_kwargs={"verbose": False},
            )  # fmt: skip
            return list(found)
        second, names, marks = self._renamed()
        pattern = self._pattern
        assert pattern is not None
        marked = [
            _each_text(message, lambda text: pattern.sub(lambda found: marks[found[0]], text))
            for message in messages
        ]
        rendered = self._tokenizer.apply_chat_template(
            self._shaped(marked), add_generation_prompt=True, tokenize=False
        )
        rendered = pattern.sub(lambda found: names[found[0]], rendered)
        for name, mark in marks.items():
            rendered = rendered.replace(mark, name)
        return list(second.encode(rendered, add_special_tokens=False).ids)

    def _shaped(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return list(map(in_parts, messages)) if self._reads_parts else list(messages)

    @cached_property
    def _reads_parts(self) -> bool:
        return reads_parts(self._tokenizer)

    def _holds(self, text: str) -> bool:
        """Whether the tokenizer would find a control token in typed text."""
        if self._pattern is None:
            return False
        if self._pattern.search(text):
            return True
        normalizer = self._tokenizer.backend_tokenizer.normalizer if self._normalises else None
        return normalizer is not None and bool(self._pattern.search(normalizer.normalize_str(text)))

    def _renamed(self) -> tuple[Tokenizer, dict[str, str], dict[str, str]]:
        """(the tokenizer with renamed control tokens, the new names, the placeholders of typed names while a
        template is rendered)."""
        with self._lock:
            if self._second is None:
                # from a range of characters that no text has, and not to be guessed
                nonce = secrets.token_hex(8)
                names = {name: f"\ue000{nonce}{number}\ue001" for number, name in enumerate(self._names)}
                marks = {name: f"\ue002{nonce}{number}\ue003" for number, name in enumerate(self._names)}
                backend = self._tokenizer.backend_tokenizer
                second = Tokenizer.from_str(json.dumps(_with_names(json.loads(backend.to_str()), names)))
                second.no_truncation()
                second.no_padding()
                moved = next(
                    (name for name in names if second.token_to_id(names[name]) != backend.token_to_id(name)),
                    None,
                )
                if moved is not None:
                    raise ValueError(
                        f"this tokenizer cannot spell {moved!r} as a text; leave it out of the message"
                    )
                self._second = (second, names, marks)
            return self._second


def check_template(tokenizer: Any) -> None:
    """ValueError where the chat template takes more than `PROBE_SECONDS` for one short message, or writes too
    much for it: it would hold up every chat. Errors of the template are reported when a chat is written."""
    until = time.monotonic() + PROBE_SECONDS

    def watch(frame: Any, event: str, value: Any) -> Any:
        if time.monotonic() > until:
            raise TimeoutError
        # where Jinja says that its code stands
        return watch if frame.f_code.co_filename == "<template>" else None

    before, written = sys.gettrace(), ""
    sys.settrace(watch)
    try:
        written = tokenizer.apply_chat_template(PROBE, add_generation_prompt=True, tokenize=False)
    except TimeoutError:
        raise ValueError(
            f"its chat template has not ended after {PROBE_SECONDS:g} seconds with one message"
        ) from None
    except Exception:
        pass
    finally:
        sys.settrace(before)
    if len(written) > PROBE_CHARACTERS:
        raise ValueError(f"its chat template makes {len(written):,} characters of one short message")


def text_of(content: Any) -> str:
    """The text of a content: a text, or a list of text parts. ValueError for others."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping)
        and part.get("type", "text") in ("text", "input_text")
        and isinstance(part.get("text"), str)
        for part in content
    ):
        return "".join(part["text"] for part in content)
    raise ValueError(
        "a text or a list of text parts; there is nothing here that reads images, sounds or files"
    )


def in_parts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message whose content is a list of one text part."""
    text = message["content"]
    return {**message, "content": [{"type": "text", "text": text}]} if isinstance(text, str) else message


def reads_parts(tokenizer: Any) -> bool:
    """Whether a chat template writes a message only if its content is a list of parts."""
    return not _writes(tokenizer, "user", False) and bool(_writes(tokenizer, "user", True))


def dropped(tokenizer: Any) -> list[str]:
    """The roles whose text a chat template drops; refused roles do not count."""
    parts = reads_parts(tokenizer)
    roles = ("system", "user", "assistant")
    return [role for role in roles if _writes(tokenizer, role, parts) is False]


def _writes(tokenizer: Any, role: str, parts: bool) -> bool | None:
    """Whether a template writes the text of a message of this role; None where it refuses the role."""
    marked = [{"role": role, "content": MARK}]
    chat = {"system": [*marked, *PROBE], "user": marked, "assistant": [*PROBE, *marked, *PROBE]}[role]
    try:
        return MARK in tokenizer.apply_chat_template(
            list(map(in_parts, chat)) if parts else chat, add_generation_prompt=True, tokenize=False
        )
    except Exception:  # a template raises what it likes
        return None


def _with_names(described: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A tokenizer's description with other names for some tokens."""
    model = described["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(piece, piece): token_id for piece, token_id in model["vocab"].items()}
    else:
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in model["vocab"]]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    for entry in described["added_tokens"]:
        if entry["content"] in names:
            entry |= {"content": names[entry["content"]], "normalized": False}
    return described


def check_messages(messages: Any, texts: bool = False) -> None:
    """ValueError, one sentence, for an invalid list of messages; `texts`: also for contents of parts."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise ValueError("the messages are no list")
    for message in messages:
        if (
            not isinstance(message, Mapping)
            or not isinstance(message.get("role"), str)
            or "content" not in message
        ):
            raise ValueError('a message is an object such as {"role": "user", "content": "Hello"}')
        if not ROLE.fullmatch(message["role"]):
            raise ValueError(
                f"{message['role'][:40]!r} is no role of a message; write user, assistant or system"
            )
        if not isinstance(message["content"], str if texts else (str, list, type(None))):
            raise ValueError(f"the content of a message is a text, not {type(message['content']).__name__}")
        if isinstance(message["content"], list):
            try:
                text_of(message["content"])
            except ValueError as error:
                raise ValueError(f"the content of a message is {error}") from None
        _each_text(message, check_text)


def _any_text(message: Any, holds: Callable[[str], bool]) -> bool:
    """Whether `holds` is true for some text in a message."""
    found: list[bool] = []
    _each_text(message, lambda text: found.append(holds(text)))
    return any(found)


def _each_text(value: Any, change: Callable[[str], Any], depth: int = 0) -> Any:
    """The value with `change` applied to each text, except roles and field names."""
    if depth > DEEPEST:
        raise ValueError("the content of a message is nested too deeply; give a text")
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            key: part if key == "role" and not depth else _each_text(part, change, depth + 1)
            for key, part in value.items()
        }
    return (
        [_each_text(part, change, depth + 1) for part in value] if isinstance(value, (list, tuple)) else value
    )
