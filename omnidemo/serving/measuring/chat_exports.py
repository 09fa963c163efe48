"""What people have asked elsewhere: the first question of a chat that a program has exported, and the first
lines of texts. A later question leans on what was said before it, so it is no prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omnidemo.core.config import check_text

# field of a chat with its messages → (who says one, a person there, what is said)
CHATS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "messages": ("role", ("user",), "content"),  # OpenAI's, and a chat that the page has saved
    "conversations": ("from", ("human", "user"), "value"),  # ShareGPT
    "chat_messages": ("sender", ("human",), "text"),  # Claude
}
MAPPING = "mapping"  # ChatGPT: messages by name, each with the name of the one before it
LONGEST_LINE = 2_000  # characters of a text's first line
READ = 100_000  # bytes of a text in which its first line is looked for


def first_question(chat: Mapping[str, Any]) -> str | None:
    """What a person asks first in a chat; "" where nobody asks anything in words. None for what is no
    chat."""
    if isinstance(chat.get(MAPPING), dict):
        return _first(_of_person(chat[MAPPING].values()))
    for field, (who, people, what) in CHATS.items():
        if isinstance(messages := chat.get(field), list):
            said = (one for one in messages if isinstance(one, dict) and one.get(who) in people)
            return _first(one.get(what) for one in said)
    return None


def _of_person(nodes: Any) -> Iterator[Any]:
    """What people say in ChatGPT's messages, the oldest first."""
    messages = [node.get("message") for node in nodes if isinstance(node, dict)]
    said = [
        one for one in messages
        if isinstance(one, dict) and (one.get("author") or {}).get("role") == "user"
    ]  # fmt: skip
    for one in sorted(said, key=lambda one: one.get("create_time") or 0):
        yield (one.get("content") or {}).get("parts")


def _first(contents: Any) -> str:
    """The first content with words. A content is a text, or a list of texts and of parts with texts; images
    and files are left out."""
    for content in contents:
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        if text := "\n".join(one for one in texts if isinstance(one, str)).strip():
            return check_text(text)
    return ""


def first_lines(folder: Path) -> list[str]:
    """The first line with words of each text of a folder and those below it, whose names do not begin with a
    dot; of other files nothing. ValueError, one sentence, where there is none."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name one with texts")
    found = list[str]()
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and (line := _first_line(path)):
            found.append(line)
    if not found:
        raise ValueError(f"{folder} has no texts; name a folder with files in UTF-8")
    return found


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            begins = file.read(READ)
    except OSError:
        return ""
    for line in begins.splitlines():
        try:
            text = line.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            return ""
        if "\0" in text:
            return ""
        if text:
            return text[:LONGEST_LINE]
    return ""
