"""The tokens of a GGUF file that end an answer: those in its header and, because few headers have all, those
with the names that llama.cpp treats as ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnidemo.models.gguf.token_table import Kind, TokenTable, key, named_id, read_id

# names of ends of any kind; "</s>" is HTML too, so it has to be a control token
END_NAMES = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>",
    "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>",
    "<turn|>", "<|tool_response>",
    "<｜end▁of▁sentence｜>", "[e~[",
)  # fmt: skip
CONTROL_END_NAMES = ("</s>",)
# separators of files in training, after which a code model begins another file: the header's key, and names
FILE_NAMES = {
    "fim_pad_token_id": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep_token_id": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep_token_id": ("<|file_sep|>",),
}


def read_end_ids(metadata: Mapping[str, Any], table: TokenTable, end: int | None) -> list[int]:
    """All ids that end an answer; `end`, the tokenizer's own, comes first. A list in the header is complete:
    names add nothing."""
    listed = metadata.get(key("eos_token_ids"))
    more = _named(metadata, table, end) if listed is None else [named_id(one, table) for one in list(listed)]
    ids = [end, *(read_id(metadata, name, table) for name in ("eot_token_id", "eom_token_id")), *more]
    return list(dict.fromkeys(one for one in ids if one is not None))


def _named(metadata: Mapping[str, Any], table: TokenTable, end: int | None) -> list[int]:
    wanted = {*END_NAMES, *CONTROL_END_NAMES, *(name for names in FILE_NAMES.values() for name in names)}
    found = {text: token_id for token_id, text in enumerate(table.texts) if text in wanted}
    found = {
        text: one
        for text, one in found.items()
        if text not in CONTROL_END_NAMES or table.kinds[one] == Kind.CONTROL
    }
    ends = {name: found[name] for name in (*END_NAMES, *CONTROL_END_NAMES) if name in found}
    calls = not ends.keys().isdisjoint(("<|call|>", "<|calls|>"))
    if calls and not ends.keys().isdisjoint(("<|return|>", "<|flush|>")) and ends.get("<|end|>") != end:
        ends.pop("<|end|>", None)  # it ends a message there, and another one follows
    if "<|tool_response>" in ends and ends.get("</s>") != end:
        ends.pop("</s>", None)
    files = []
    for name_of_id, names in FILE_NAMES.items():
        named = read_id(metadata, name_of_id, table)
        files.append(next((found[name] for name in names if name in found), None) if named is None else named)
    return sorted({*ends.values(), *(one for one in files if one is not None)})
