"""The tokenizer of a GGUF file as a fast tokenizer of `transformers`: from the file alone, or from a
tokenizer.json beside it with the same tokens."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf.end_ids import read_end_ids
from omnidemo.models.gguf.token_table import Kind, TokenTable, key, read_flag, read_id, read_tokens
from omnidemo.models.gguf.tokenizer_models import build_tokenizer

log = logging.getLogger(__name__)
ROLES = {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "padding_token_id", "unk": "unknown_token_id"}
# llama.cpp's ids for files that name none (Llama 2's and Falcon's); here they count only for control tokens
USUAL = {"llama": {"bos": 1, "eos": 2, "unk": 0}, "gpt2": {"bos": 11, "eos": 11}}


def read_tokenizer(
    metadata: Mapping[str, Any], folder: Path | None = None
) -> tuple[PreTrainedTokenizerBase, list[int]]:
    """(a fast tokenizer, all end ids, the tokenizer's own first) from the key-values of a GGUF file, which
    also have the begin, end, padding and unknown tokens and the chat template. `folder`: a tokenizer.json
    there cuts texts, if it has the file's tokens. ModelError, one sentence, for damaged or unknown values."""
    what = "the tokenizer in this GGUF file cannot be read"
    with explained(what, "download the file again, or choose another one of this model"):
        table = read_tokens(metadata)
        template = metadata.get("tokenizer.chat_template")
        if not isinstance(template, str | None):
            raise ValueError("its chat template is no text")
        roles = _roles(metadata, table)
        ends = read_end_ids(metadata, table, roles.get("eos"))
        backend = _beside(folder, table)
        if backend is None:
            backend, begins = build_tokenizer(metadata, table)
            _add_tokens(backend, metadata, table, {*roles.values(), *ends})
            _frame(backend, metadata, roles, begins)
        special = {f"{role}_token": table.texts[token_id] for role, token_id in roles.items()}
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=_AsItIs(backend), clean_up_tokenization_spaces=False, **special
        )
        tokenizer.chat_template = template
        return tokenizer, ends


class _AsItIs:
    """Passes a tokenizer to `transformers` without the copy by serialisation, which takes seconds for a large
    vocabulary."""

    truncation = padding = None

    def __init__(self, backend: Tokenizer) -> None:
        self.backend = backend

    def __deepcopy__(self, memo: Any) -> Tokenizer:
        return self.backend


def _roles(metadata: Mapping[str, Any], table: TokenTable) -> dict[str, int]:
    """Role → id, for the roles in the file."""
    usual = USUAL.get(str(metadata.get(key("model")))[:40], {})
    outside = table.ids_of(Kind.CONTROL, Kind.UNKNOWN)
    found = {role: read_id(metadata, name, table) for role, name in ROLES.items()}
    for role, token_id in usual.items():
        if found[role] is None and token_id in outside:
            found[role] = token_id
    return {role: token_id for role, token_id in found.items() if token_id is not None}


def _beside(folder: Path | None, table: TokenTable) -> Tokenizer | None:
    """The tokenizer.json of a folder; None where there is none, or it has another vocabulary."""
    path = None if folder is None else folder / "tokenizer.json"
    if path is None or not path.is_file():
        return None
    try:
        found = Tokenizer.from_file(str(path))
        if not _agrees(found.get_vocab(), table):
            raise ValueError("it is that of another vocabulary")
    except Exception as error:  # `tokenizers` raises plain ones
        log.warning(
            "the tokenizer.json beside the GGUF file is not used (%s); the file's own tokenizer is",
            str(error)[:160],
        )
        return None
    found.no_truncation()
    found.no_padding()
    return found


def _agrees(strings: Mapping[str, int], table: TokenTable) -> bool:
    """Whether a vocabulary has the file's tokens under the same ids. Converters rewrite user-defined tokens
    and fill holes."""
    ids = table.ids_of(Kind.NORMAL, Kind.BYTE, Kind.CONTROL, Kind.UNKNOWN)
    fits = max(strings.values(), default=0) < len(table) and len(strings) <= len(table)
    return fits and all(strings.get(table.texts[token_id]) == token_id for token_id in ids)


def _add_tokens(backend: Tokenizer, metadata: Mapping[str, Any], table: TokenTable, roles: set[int]) -> None:
    """Add the tokens that are found before a text is cut: control tokens and those of a role as special ones,
    user-defined ones as text."""
    control = {*table.ids_of(Kind.CONTROL, Kind.UNKNOWN), *roles}
    name = str(metadata.get("general.name"))[:256].lower()
    swallow = "phi-3" in name or "phi3" in name  # its template's line ends after tokens were not trained
    keep = ("<unk>", "<s>", "<|endoftext|>")
    special = [(table.texts[one], swallow and table.texts[one] not in keep) for one in sorted(control)]
    backend.add_special_tokens(
        [AddedToken(text, special=True, normalized=False, rstrip=strip) for text, strip in special]
    )
    plain = [table.texts[one] for one in table.ids_of(Kind.USER_DEFINED) if one not in control]
    backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in plain])


def _frame(backend: Tokenizer, metadata: Mapping[str, Any], roles: Mapping[str, int], begins: bool) -> None:
    """Begin and end tokens around a text. A chat has those of its template, and is read without these."""
    wanted = {
        "bos": read_flag(metadata, "add_bos_token", begins),
        "eos": read_flag(metadata, "add_eos_token", False),
    }
    for role, wants in wanted.items():
        if wants and role not in roles:
            if metadata.get(key(f"add_{role}_token")) is not None:
                raise ValueError(f"it frames a text by its {role} token and names none")
            wanted[role] = False
    used = [{"id": role, "ids": [roles[role]], "tokens": [role]} for role, wants in wanted.items() if wants]
    single = ["bos"] * wanted["bos"] + ["$A"] + ["eos"] * wanted["eos"]
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=[*single, "$B"], special_tokens=used
    )
