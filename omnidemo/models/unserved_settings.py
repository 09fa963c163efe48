"""Options of a model's generation settings that nothing here computes."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnidemo.backends.runner import ModelError
from omnidemo.models.manner import SETTINGS_FILE, generation_settings

log = logging.getLogger(__name__)
# options that change the logits of an answer or end it, with the values besides null that are off
TOKENS: dict[str, tuple[Any, ...]] = {
    "suppress_tokens": ([],), "begin_suppress_tokens": ([],), "bad_words_ids": ([],),
    "sequence_bias": ([], {}), "force_words_ids": ([],), "constraints": ([],),
    "forced_bos_token_id": (), "forced_eos_token_id": (),
    "forced_decoder_ids": ([],), "no_repeat_ngram_size": (0,), "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,), "exponential_decay_length_penalty": (), "min_length": (0,),
    "min_new_tokens": (0,), "guidance_scale": (1,), "watermarking_config": (), "stop_strings": ([], ""),
    "token_healing": (False,),
}  # fmt: skip
SAMPLED: dict[str, tuple[Any, ...]] = {
    "typical_p": (1,), "epsilon_cutoff": (0,), "eta_cutoff": (0,), "top_h": (),
}  # fmt: skip
# another search, which is ignored with a warning
SEARCHES: dict[str, tuple[Any, ...]] = {
    "num_beams": (1,), "num_beam_groups": (1,), "penalty_alpha": (0,), "dola_layers": (),
}  # fmt: skip


def check_settings(name: str, folder: Path | None) -> None:
    """ModelError, one sentence, where a model's `generation_config.json` (without one its `config.json`, as
    `transformers` does) names an option that would change its text and is not computed here. A warning for
    another search than sampling. Nothing for a GGUF file, and for a drafter (None)."""
    if folder is None or folder.is_file():
        return
    where, said = SETTINGS_FILE, generation_settings(folder)
    if not (folder / SETTINGS_FILE).exists():
        where, said = "config.json", json.loads((folder / "config.json").read_text(encoding="utf-8"))
    fields = TOKENS | (SAMPLED if said.get("do_sample") is True else {})
    if found := _asked(said, fields):
        raise ModelError(
            f"{name} asks for {found} in {where}, which is not offered here and would change its text in"
            " silence; choose another model, or take it out of the file"
        )
    if found := _asked(said, SEARCHES):
        log.warning("%s asks for %s in %s; here it writes one token after another", name, found, where)


def _asked(said: Mapping[str, Any], fields: Mapping[str, tuple[Any, ...]]) -> str:
    """The first of the fields that asks for something, with its value; empty for none."""
    for field, nothing in fields.items():
        value = said.get(field)
        if value is not None and value not in nothing:
            return f"{field} {repr(value)[:40]}"
    return ""
