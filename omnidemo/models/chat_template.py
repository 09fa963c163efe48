"""A prompt's ids, where only the chat template makes control tokens: typed text stays text."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

from tokenizers import Tokenizer

from omnidemo.core.config import check_text
from omnidemo.vocabulary.vocabulary import Vocabulary

ROLE = re.compile(r"[\w-]{1,32}")
# a template that strips letters, such as those of a control token's name, from the ends of a content
STRIPS = re.compile(r"(?:strip|trim)\(\s*([\"'])(?=[^\"']*[^\s\"'\\])")
PROBE = [{"role": "user", "content": "omnidemo-probe"}]  # a text that no template writes of itself


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
        self._pattern = re.compile("|".join(map(re.escape, self._names)) or r"(?!)")
        self._normalises = any(entry.normalized for entry in control.values())
        # Tokens that the tokenizer puts behind each text: an end that a text which goes on does not have.
        framed = tokenizer.backend_tokenizer.encode("a").special_tokens_mask
        self._behind = len(list(takewhile(bool, reversed(framed)))) % max(len(framed), 1)
        self._strips = bool(STRIPS.search(str(tokenizer.chat_template)))
        self._lock = threading.Lock()
        self._second: tuple[Tokenizer, dict[str, str], dict[str, str]] | None = None

    def text(self, text: str, control_tokens: bool = False) -> list[int]:
        """The ids of a text by the tokenizer, without an end token; names of control tokens become these with
        `control_tokens` only. ValueError for a text that cannot be encoded."""
        check_text(text)
        if not control_tokens and self._holds(text):
            ids = list(self._renamed()[0].encode(text, add_special_tokens=True).ids)
            return ids[: len(ids) - self._behind]
        # without `transformers`' warning of a long text, which `PromptReader` refuses in a sentence
        ids = list(self._tokenizer(text, verbose=False)["input_ids"])
        ids = ids[: len(ids) - self._behind]
        begin = self._tokenizer.bos_token
        twice = begin and text.startswith(begin) and ids[:2] == [self._tokenizer.bos_token_id] * 2
        # a template that somebody filled in has its own begin token
        return ids[1:] if control_tokens and twice else ids

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of a chat with the beginning of an answer. ValueError for an invalid chat; other errors
        come from the template."""
        chat = plain_messages(messages)
        if not self._strips and not any(self._holds(message["content"]) for message in chat):
            rendered = self._rendered(chat)
            return list(self._tokenizer(rendered, add_special_tokens=False, verbose=False)["input_ids"])
        second, names, marks = self._renamed()
        marks, nonce = dict(marks), secrets.token_hex(8)
        for number, message in enumerate(chat):
            if self._strips:
                marks[message["content"]] = message["content"] = f"\ue004{nonce}{number}\ue005"
            else:
                message["content"] = self._pattern.sub(lambda found: marks[found[0]], message["content"])
        rendered = self._pattern.sub(lambda found: names[found[0]], self._rendered(chat))
        for name, mark in marks.items():
            rendered = rendered.replace(mark, name)
        return list(second.encode(rendered, add_special_tokens=False).ids)

    def _rendered(self, chat: Sequence[Mapping[str, str]]) -> str:
        return rendered(self._tokenizer, chat, self._reads_parts)

    @cached_property
    def _reads_parts(self) -> bool:
        """Whether the chat template writes a message only if its content is a list of parts."""
        for parts in (False, True):
            try:
                if PROBE[0]["content"] in rendered(self._tokenizer, PROBE, parts):
                    return parts
            except Exception:  # a template raises what it likes
                continue
        return False

    def _holds(self, text: str) -> bool:
        """Whether the tokenizer would find a control token in typed text."""
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
                for name in names:
                    if second.token_to_id(names[name]) != backend.token_to_id(name):
                        raise ValueError(
                            f"this tokenizer cannot spell {name!r} as a text; leave it out of the message"
                        )
                self._second = (second, names, marks)
            return self._second


def rendered(tokenizer: Any, chat: Sequence[Mapping[str, str]], parts: bool) -> str:
    """A chat by the tokenizer's template, contents as texts or as lists of one text part."""
    shaped: list[Any] = [
        {**message, "content": [{"type": "text", "text": message["content"]}]} if parts else message
        for message in chat
    ]
    return str(tokenizer.apply_chat_template(shaped, add_generation_prompt=True, tokenize=False))


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


def plain_messages(messages: Any) -> list[dict[str, str]]:
    """Roles and texts of a chat, which are all that a template gets. ValueError, one sentence, for an invalid
    list of messages."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise ValueError("the messages are no list")
    chat = []
    for message in messages:
        if (
            not isinstance(message, Mapping)
            or not isinstance(message.get("role"), str)
            or "content" not in message
        ):
            raise ValueError('a message is an object such as {"role": "user", "content": "Hello"}')
        if not ROLE.fullmatch(role := message["role"]):
            raise ValueError(f"{role[:40]!r} is no role of a message; write user, assistant or system")
        try:
            text = text_of(message["content"])
        except ValueError as error:
            raise ValueError(f"the content of a message is {error}") from None
        chat.append({"role": role, "content": check_text(text)})
    return chat
