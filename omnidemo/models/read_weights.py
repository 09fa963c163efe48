"""Loading weights by `transformers`, one model at a time.

While it loads, `transformers` replaces a method of its own for the whole process
(`PreTrainedModel.tie_weights`) and restores what it found. The second of two concurrent loads finds the
replacement, and from then on no model's output layer is tied to its embedding.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, GenerationConfig

LOADING = threading.RLock()  # held by whoever loads a model


def read_model(folder: Path | str, **options: Any) -> Any:
    """`AutoModelForCausalLM.from_pretrained` from safetensors, never with code of a repository. It raises its
    errors. The model's generation settings stay unread, because a wrong value would be an error of the
    weights; `generation_config=None` reads them, for `generate`."""
    auto: Any = AutoModelForCausalLM
    options.setdefault("generation_config", GenerationConfig())
    with LOADING:
        return auto.from_pretrained(folder, use_safetensors=True, trust_remote_code=False, **options)
