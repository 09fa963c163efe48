"""Export of adapters as a zip in PEFT's own format."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from omnidemo.core.private_folders import replacing
from omnidemo.models.adapters.adapter_state import CONFIG, PREFIX, WEIGHTS, StoredVersion, packed

CARD = "README.md"
PARTS = (".lora_A.weight", ".lora_B.weight")


def export_peft(stored: StoredVersion, file: Path) -> Path:
    """Write a version as a zip of adapter_model.safetensors, adapter_config.json and a README.md; returns
    `file`. ValueError, one sentence, for a full fine-tuning, which is no adapter. Raises OSError."""
    if stored.adapter.whole:
        raise ValueError(
            "This version is a full fine-tuning, not a LoRA adapter: reset the line and set a LoRA rank above"
            " 0 first."
        )
    config = dict(stored.adapter.config) | {
        "base_model_name_or_path": stored.info.drafter,
        "target_modules": modules_of(stored.adapter.weights),
        "inference_mode": True,
    }
    described = json.dumps(config, indent=2, sort_keys=True).encode()
    contents = {WEIGHTS: packed(stored.adapter.weights, format="pt"), CONFIG: described, CARD: _card(stored)}
    with replacing(file) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return file


def _card(stored: StoredVersion) -> bytes:
    info, config = stored.info, stored.adapter.config
    effect = info.effect
    measured = ""
    if "acceptance_before" in effect and "acceptance_after" in effect:
        measured = (
            f"\nOn answers that it had not learned from, {effect['acceptance_after']:.1%} of its guesses were"
            f" right ({effect['acceptance_before']:.1%} with the one trusted until then).\n"
        )
    origin = (
        "OmniDemo trained it on the target's own answers."
        if info.steps
        else "It was imported into OmniDemo, which has not trained it."
    )
    return f"""---
base_model: {json.dumps(info.drafter)}
library_name: peft
tags: [speculative-decoding, drafter, lora]
---
# Drafter adapter for {info.target}

A LoRA adapter that lets the drafter `{info.drafter}` guess what the target `{info.target}` writes next, for
faster speculative decoding.
{origin}

* base model (drafter): `{info.drafter}`
* target: `{info.target}`
* topic (adapter line): `{info.domain}`, version {info.version}
* requests that its line had seen: {info.requests_seen}; optimiser steps: {info.steps}
* rank {config.get("r")}, alpha {config.get("lora_alpha")}, {info.created_at}
{measured}
```python
from peft import PeftModel
from transformers import AutoModelForCausalLM

drafter = AutoModelForCausalLM.from_pretrained({json.dumps(info.drafter)})
drafter = PeftModel.from_pretrained(drafter, "folder of this file").merge_and_unload()
```
""".encode()


def modules_of(weights: Mapping[str, Tensor]) -> list[str]:
    """Full names of the layers that have an adapter: PEFT then looks for no other."""
    return sorted(
        name.removeprefix(PREFIX).removesuffix(PARTS[0]) for name in weights if name.endswith(PARTS[0])
    )
