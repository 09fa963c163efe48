"""The tokens of a GGUF file that end an answer: those in its header and, because few headers have all, those
with the names that llama.cpp treats as ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnidemo.models.gguf.tokenizer import Tokens

# names of ends of any kind; "</s>" is HTML too, so it has to be a control token
END_NAMES = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>",
    "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>",
    "<turn|>", "<|tool_response>",
    "<｜end▁of▁sentence｜>", "[e~[",
)  # fmt: skip
CONTROL_END, CONTROL = "</s>", 3
# separators of files in training, after which a code model begins another file: the header's key, and names
FILE_NAMES = {
    "fim_pad_token_id": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep_token_id": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep_token_id": ("<|file_sep|>",),
}


def end_ids(table: Tokens, end: int | None) -> list[int]:
    """All ids that end an answer; `end`, the tokenizer's own, comes first. A list in the header is complete:
    names add nothing."""
    listed = table.get("eos_token_ids")
    more = _named(table, end) if listed is None else [table.as_id(one) for one in list(listed)]
    ids = [end, table.id("eot_token_id"), table.id("eom_token_id"), *more]
    return list(dict.fromkeys(one for one in ids if one is not None))


def _named(table: Tokens, end: int | None) -> list[int]:
    wanted = {*END_NAMES, CONTROL_END, *(name for names in FILE_NAMES.values() for name in names)}
    found = {text: token_id for token_id, text in enumerate(table.texts) if text in wanted}
    if CONTROL_END in found and table.kinds[found[CONTROL_END]] != CONTROL:
        del found[CONTROL_END]
    ends = {name: found[name] for name in (*END_NAMES, CONTROL_END) if name in found}
    calls = not ends.keys().isdisjoint(("<|call|>", "<|calls|>"))
    if calls and not ends.keys().isdisjoint(("<|return|>", "<|flush|>")) and ends.get("<|end|>") != end:
        ends.pop("<|end|>", None)  # it ends a message there, and another one follows
    if "<|tool_response>" in ends and ends.get(CONTROL_END) != end:
        ends.pop(CONTROL_END, None)
    files = []
    for key, names in FILE_NAMES.items():
        named = table.id(key)
        files.append(next((found[name] for name in names if name in found), None) if named is None else named)
    return sorted({*ends.values(), *(one for one in files if one is not None)})
