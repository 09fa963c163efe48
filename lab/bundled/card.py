"""The model card of a bundled model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.drafters.training.family import ASSETS, RUNS

from .evaluate import Score, table
from .train import EARLIER

WHAT = {
    "drafter": (
        "The drafter: a small model that proposes tokens for bigger ones with other vocabularies. It has read"
        " stories and hardly anything else, so that there is something left to learn online."
    ),
    "a": "A target with a byte-level BPE vocabulary and a GPT-4 style splitter, as Qwen2 or Llama 3 have it.",
    "b": (
        "A target with a SentencePiece-style BPE vocabulary (`▁` for a space, byte fallback), as Llama 2 or"
        " Mistral have it."
    ),
    "large": (
        "The default target: `a`, trained further on chats, at twice the width in the end. The app gives it"
        " the newest message and the two exchanges before it."
    ),
    "c": (
        "A target with the very vocabulary of the drafter: the classic case of speculative decoding, for"
        " comparison."
    ),
}
READ = "## Answers read by a person\n"
HEAD = """---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---
"""


def _further_origin(name: str) -> str:
    """What the card of a model says of its beginning beside what its training noted."""
    if name in ("b", "c"):
        return (
            ", under new embeddings: a token with the bytes of one of `a`'s tokens began with its row, any"
            " other with the mean of the rows that `a` spells it with. `train-bundled` does the same:"
            " drafter, a, b, c, in this order"
        )
    if name == "drafter":
        return (
            ". A third of its rows is spelled by its own tokenizer, a third as `a` splits text, a third as"
            " `b` does"
        )
    return ""


def text(name: str, facts: dict[str, Any], rows: Sequence[Score], tokenizer: str) -> str:
    """The card as Markdown."""
    characters: dict[str, int] = facts["data"]["characters"]
    everything = max(1, sum(characters.values()))
    share = facts["data"]["distinct_prompts"] / max(1, facts["data"]["chats"])
    domains = "\n".join(
        f"| {domain} | {facts['tokens'] * count / everything / 1e6:.2f} M | {count / everything:.1%} |"
        for domain, count in sorted(characters.items(), key=lambda item: -item[1])
    )
    origin, (short, long, part) = (
        facts["origin"] + _further_origin(name),
        facts.get("rows", (512, 1024, 0.15)),
    )
    kept = f"{1 - EARLIER:.0%} of its weights and {EARLIER:.0%} of those before"
    last = f"The last part, of the two highest layers alone, on chats above all; {kept} are in the model: "
    last = last if name == "large" else ""
    return f"""{HEAD}
# OmniDemo bundled model `{name}`

{WHAT[name]}

Trained from nothing for the OmniDemo demo, on text that the demo generates itself: English stories, small sums, small Python functions,
advice, summaries of invented news, and small talk. It knows nothing about the world.

* Llama architecture with tied embeddings, {facts["parameters"] / 1e6:.2f} M parameters, {facts["vocabulary"]:,} tokens ({tokenizer}).
* Chat format: `<|begin|><|user|>…<|end|><|assistant|>…<|end|>`, no line ends around the roles. Greedy decoding.
* Weights in bfloat16, as they were used in training.

## Training

Began with {origin}.
{last}{facts["steps"]:,} steps of 8,192 tokens, {facts["tokens"] / 1e6:.1f} M, in {facts["minutes"]:.0f} minutes on {facts["workers"]} CPU
cores (bfloat16 products, float32 weights; Muon at {facts["muon"]} for matrices, AdamW at {facts["adam"]} for the rest; constant rate, then
linear decay to 0 over the last {facts.get("decay", 0.3):.0%}). Loss on answers only; a token sees its own chat only. Rows of {short}
tokens, in the last {part:.0%} of {long:,}.
Mean loss of the last 50 steps: {facts["loss"]:.3f} nats a token (text is drawn anew for every step, so this is close to a validation loss).

| domain | tokens (by characters) | share |
|---|---|---|
{domains}

{facts["data"]["chats"]:,} chats were drawn, {share:.0%} of their first prompts distinct. Prompts are split by a hash of their words: no
test prompt was trained on. A tenth of the patterns (task and phrasing) was held out of training altogether.

## Scores

Greedy answers to prompts that the corpus makes anew, none of them trained on. Right: the result of a sum, tests passed by code, the
facts of the prompt repeated elsewhere (no judgement of anything else about an answer). The corpus is regular: these scores say that the
model does what it was trained for, nothing about other text.

{table(rows)}

## Limits

Prompts unlike the generated ones give fluent nonsense. Sums beyond the sizes trained on are wrong. No safety training; small models repeat
and invent. Apache-2.0.
"""


def read_by_a_person(path: Path) -> str:
    """The last section of a card that is there already, which people write and no program; "" where it has
    none."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    _, heading, section = before.partition(READ)
    return f"\n{heading}{section}" if heading else ""


def write(name: str, rows: Sequence[Score], runs: Path = RUNS, assets: Path = ASSETS) -> Path:
    """Write the card of a trained and scored model next to its weights, with the scores as JSON."""
    facts = json.loads((runs / name / "facts.json").read_text())
    described = {"b": "SentencePiece style"}.get(name, "byte-level")
    path = assets / name / "README.md"
    path.write_text(text(name, facts, rows, described) + read_by_a_person(path), encoding="utf-8")
    scores = runs / name / "scores" / "scores.json"
    if scores.exists():
        (assets / name / "scores.json").write_text(scores.read_text())
    return path
