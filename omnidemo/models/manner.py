"""A model's sampling defaults: temperature, top-p, top-k, min-p and repetition penalty, from the catalogue or
the model's files.

An impossible value gets a warning and is left out. It does not keep a model from loading.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnidemo.core.catalogue_file import entry_of
from omnidemo.core.config import GREEDY, SAMPLING, GenerationConfig, Manner, shortened
from omnidemo.core.config.refusals import explained

log = logging.getLogger(__name__)
SETTINGS_FILE = "generation_config.json"
LARGEST_FILE = 1 << 20  # bytes; real ones have a few hundred
IN_HEADER = {  # of a GGUF file, as llama.cpp calls them
    "temperature": "general.sampling.temp",
    "top_p": "general.sampling.top_p",
    "top_k": "general.sampling.top_k",
    "min_p": "general.sampling.min_p",
    "repetition_penalty": "general.sampling.penalty_repeat",
}
# defaults of `transformers` for a file with `do_sample`
SAMPLED: dict[str, Any] = {"temperature": 1.0, "top_k": 50}


def read_manner(name: str, folder: Path | None = None, metadata: Mapping[str, Any] | None = None) -> Manner:
    """The manner of a model: the catalogue's, else that of a GGUF file's header (`metadata`), else that of
    `generation_config.json` in its folder, else greedy. Only one source counts, so that no untested mixture
    arises.

    A file with `do_sample` has the defaults of `transformers` for a missing temperature or top-k (1 and 50);
    a file without it has temperature 0 and keeps its penalty. A header with filters and no temperature has
    temperature 1.
    """
    if said := entry_of(name).get("sampling"):
        scope, source = said.get("penalty_scope", "text"), str(said.get("from", ""))
        return Manner(**_numbers(said, "the catalogue"), penalty_scope=scope, source=source)
    if metadata is not None:
        found = _numbers(
            {own: metadata.get(key) for own, key in IN_HEADER.items()}, f"the header of {name}", IN_HEADER
        )
        if found:
            filters = {"top_p", "top_k", "min_p"} & found.keys()
            given = ({"temperature": 1.0} if filters else {}) | found
            return Manner(**given, source="As its GGUF file says.")
    if folder is not None:
        return _in_folder(name, folder)
    return GREEDY


def generation_settings(folder: Path) -> dict[str, Any]:
    """The contents of `generation_config.json`; {} without one. ModelError where it cannot be read: it may
    name the tokens that end an answer."""
    path = folder / SETTINGS_FILE
    if not path.exists():
        return {}
    with explained(f"{folder.name}/{SETTINGS_FILE} cannot be read", "correct it, or take it away"):
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError("it is far too long")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return found


def _in_folder(name: str, folder: Path) -> Manner:
    where = f"{SETTINGS_FILE} of {shortened(name, 80)}"
    said = generation_settings(folder)
    found = _numbers(said, where)
    source = f"As its {SETTINGS_FILE} says."
    if said.get("do_sample") is True:
        return Manner(**(SAMPLED | found), source=source)
    # without `do_sample` the other numbers are not used
    penalty = {key: value for key, value in found.items() if key == "repetition_penalty"}
    return Manner(**penalty, source=source) if penalty else GREEDY


def _numbers(said: Mapping[str, Any], where: str, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The usable numbers of a manner; a warning for each other value. `names`: their names in the source, if
    not ours."""
    found = {}
    for name in SAMPLING:
        value = said.get(name)
        if value is None:
            continue
        try:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError("no number")
            if isinstance(value, float):
                value = float(f"{value:.7g}")  # a header has four bytes for it: 0.2, not 0.20000000298
            if name == "top_k" and value == -1:  # how some files switch it off
                value = 0
            found[name] = getattr(GenerationConfig.of(**{name: value}), name)
        except (ValueError, OverflowError):
            log.warning(
                "%s of %s is %s, which is not possible; it is left out",
                (names or {}).get(name, name),
                where,
                shortened(repr(value), 80),
            )
    return found
