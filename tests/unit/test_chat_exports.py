"""Prompts out of the files that people have: JSON Lines, chats as programs export them, texts."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from omnidemo.serving.measuring.chat_exports import first_lines
from omnidemo.serving.measuring.prompt_files import read_prompts


def said(role: str, at: float | None, *parts: Any, parent: str | None = None) -> dict[str, Any]:
    """A message of ChatGPT's export."""
    content = {"content_type": "text", "parts": list(parts)}
    return {"parent": parent, "message": {"author": {"role": role}, "create_time": at, "content": content}}


CHATGPT = [
    {
        "title": "Ducks",
        "mapping": {
            "root": {"parent": None, "message": None},
            "b": said("user", 3.0, "And geese?", parent="a"),
            "system": said("system", None, "", parent="root"),
            "a": said("user", 1.5, {"content_type": "image_asset_pointer"}, "What is a duck?", parent="root"),
            "answer": said("assistant", 2.0, "A bird.", parent="a"),
        },
    },
    {"title": "Nothing", "mapping": {"root": {"parent": None, "message": None}}},
]
SHAREGPT = [
    {"id": "1", "conversations": [{"from": "system", "value": "Be short."},
                                  {"from": "human", "value": " What is a duck?\n"},
                                  {"from": "gpt", "value": "A bird."}, {"from": "human", "value": "And?"}]},
]  # fmt: skip
CLAUDE = [{"name": "Ducks", "chat_messages": [{"sender": "human", "text": "What is a duck?"}]}]
OURS = {
    "name": "Ducks", "exported_at": "2026-11-29T11:00:00Z", "answers": [{"question": "What is a duck?"}],
    "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is a duck?"},
                 {"role": "assistant", "content": "A bird."}, {"role": "user", "content": "And geese?"}],
}  # fmt: skip
PARTS = [{"type": "image_url", "image_url": {"url": "…"}}, {"type": "text", "text": "What is a duck?"}]
OPENAI = {"messages": [{"role": "user", "content": PARTS}]}
FILES: dict[str, str] = {
    "ChatGPT": json.dumps(CHATGPT),
    "ChatGPT, on many lines": "\ufeff" + json.dumps(CHATGPT, indent=2),
    "ShareGPT": json.dumps(SHAREGPT),
    "ShareGPT by lines": json.dumps(SHAREGPT[0]) + "\n",
    "Claude": json.dumps(CLAUDE),
    "a chat of the page": json.dumps(OURS, indent=1) + "\n",
    "OpenAI by lines": "\n" + json.dumps(OPENAI) + "\n",
    "a list of prompts": json.dumps([{"prompt": "What is a duck?"}]),
    "a list of texts": json.dumps(["What is a duck?"], indent=1),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_the_first_question_of_each_chat_is_a_prompt(tmp_path: Path, text: str) -> None:
    file = tmp_path / "chats.json"
    file.write_text(text, encoding="utf-8")
    assert read_prompts(file) == ["What is a duck?"]


def test_lines_of_several_kinds_are_read(tmp_path: Path) -> None:
    lines = [{"prompt": "one"}, "two", {"messages": [{"role": "user", "content": "three"}]}, OPENAI]
    file = tmp_path / "mixed.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert read_prompts(file) == ["one", "two", "three", "What is a duck?"]
    assert read_prompts(file, 3) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"mapping": {}}', "this is not JSON (Expecting ',' delimiter at column 17); mend it"),
        ('{\n "messages": [}', "this is not JSON (Expecting value at line 2, column 15); mend it"),
        ("[" * 100_000, "this is nested too deeply; mend it"),
        ("[]", "has no prompts; write"),
        (json.dumps([{"mapping": {"a": said("assistant", 1.0, "A bird.")}}]), "has no prompts; write"),
        ('[{"prompt": "one"}, {"title": "Ducks"}]', "entry 2: there is no prompt; write"),
        ('{"messages": "What is a duck?"}', "line 1: there is no prompt; write"),
        ('[{"messages": [{"role": "user", "content": "\\ud800"}]}]', "entry 1: the text holds half"),
        ("\ud83e", "is not UTF-8 text; give"),
    ],
)  # fmt: skip
def test_what_has_no_questions_is_refused_in_a_sentence(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "chats.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ValueError) as refused:
        read_prompts(file)
    found = str(refused.value)
    assert found.startswith(str(file)) and why in found and "\n" not in found


def test_a_zip_is_to_be_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", json.dumps(CHATGPT * 50))
    with pytest.raises(ValueError, match="unpack it, and give the file of its chats"):
        read_prompts(file)


def test_texts_give_their_first_lines(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / ".hidden").mkdir()
    files = {
        "a.txt": "\n  The duck swims.  \nIt is small.\n", "more/b.md": "\ufeff# Geese\r\n", "c.txt": " \n",
        ".hidden/d.txt": "no", "e.txt": "x" * 3_000,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "f.png").write_bytes(b"\x89PNG\r\n\x00")
    (tmp_path / "g.bin").write_bytes(b"PK\x00\x01")
    assert first_lines(tmp_path) == ["The duck swims.", "x" * 2_000, "# Geese"]
    for place, why in ((tmp_path / "f.png", "is no folder"), (tmp_path / ".hidden" / "none", "is no folder")):
        with pytest.raises(ValueError, match=why):
            first_lines(place)
    with pytest.raises(ValueError, match="has no texts"):
        first_lines((tmp_path / "empty").mkdir() or tmp_path / "empty")
