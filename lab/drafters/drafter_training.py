"""Train a drafter of a shape on rows, from where its last run stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import torch
from transformers import AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from lab.drafters.shapes import shape_named
from lab.drafters.training import flat_llama
from lab.drafters.training.optimiser import Rates
from lab.drafters.training.plan import Plan
from lab.drafters.training.training_loop import Job, train

RATES = Rates(muon=0.02, adam=5e-3, warmup=40)


def train_drafter(
    rows: Path, tokenizer_folder: Path, shape_name: str, out: Path, start: Path | None, tokens: int,
    minutes: float | None, batch: int,
    workers: int, rates: Rates = RATES, compiled: bool = True, pause: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train, and write the model to `out`/model; returns what is said of the run. `start`: a model to begin
    with. `pause`: nothing is computed while this file exists."""
    tokenizer = cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(tokenizer_folder))
    shape = shape_named(shape_name, len(tokenizer))
    stats = json.loads((rows / "stats.json").read_text())
    length = int(stats["length"])
    plan = Plan(min(tokens, stats["rows"] * length), length, minutes, batch)
    out.mkdir(parents=True, exist_ok=True)
    job = Job(shape, plan, rates, rows, out / "checkpoint.pt", out.name, compiled, pause)
    if start is None:
        flat = flat_llama.initial(shape, 7)
    else:
        model = LlamaForCausalLM.from_pretrained(start, dtype=torch.float32)
        flat = flat_llama.from_transformers(shape, model)
    final, clock = train(job, flat, workers)
    flat_llama.save(shape, final, tokenizer, out / "model")
    last = clock.losses[-50:]
    facts = {
        "shape": shape_name, "parameters": shape.numel(), "vocabulary": shape.vocab,
        "start": str(start) if start else "random weights",
        "steps": clock.step, "tokens": clock.step * batch, "minutes": round(clock.seconds / 60, 1),
        "workers": workers,
        "loss": round(sum(last) / max(1, len(last)), 4), "rates": [rates.muon, rates.adam], "data": stats,
        "losses": clock.losses[::10],
    }  # fmt: skip
    (out / "facts.json").write_text(json.dumps(facts))
    return facts
