"""Train the family from nothing: drafter, `a`, then `b`, `c` and `large` from the body of `a`, each evaluated
and written to assets/.

`large` begins as `half`: `a` reads its chats first, more than twice as fast, and is then grown to twice the
width. Then comes `further`, in which six tokens of ten are of chats, and last `upper`, which trains the two
highest layers alone: that is twice as fast, and it changes a fifth of what the repository holds. With
`--from-assets` the committed weights go through that last part alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
import typer
from torch import Tensor
from transformers import AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from lab.drafters.training import family, tokenizers
from lab.drafters.training.family import ASSETS, NAMES, RUNS, SHIPPED, Shape, shape_of
from lab.drafters.training.optimiser import Rates
from lab.drafters.training.plan import Clock, Plan
from lab.drafters.training.training_loop import Job, train

from . import data
from .transplant import grown, transplanted

# Tokens at most; a budget file (budget.json in the folder of the runs) may say others, and minutes. The
# default target, which people chat with, has long rows.
PLANS = {
    "drafter": Plan(24_000_000),
    "a": Plan(48_000_000),
    "b": Plan(12_000_000),
    "c": Plan(12_000_000),
    "half": Plan(16_000_000, short=1024, long_share=0.0),
    "large": Plan(20_000_000, short=1024, long=2048, long_share=0.2, micro=2048),
    "further": Plan(10_000_000, short=1024, long=2048, long_share=0.2, micro=2048),
    "upper": Plan(16_000_000, short=1024, long=2048, long_share=0.1, micro=2048),
}
# A transplanted body is nearly right: a lower rate keeps what it knows.
RATES = {
    "drafter": Rates(muon=0.02, adam=5e-3, warmup=30),
    "a": Rates(),
    "b": Rates(muon=0.015, warmup=40),
    "c": Rates(muon=0.015, warmup=40),
    "half": Rates(muon=0.015, warmup=40, decay=0.0),
    "large": Rates(muon=0.015, warmup=40, decay=0.75),  # `half` has had the constant phase
    "further": Rates(muon=0.02, warmup=40, decay=0.75),
    "upper": Rates(muon=0.02, warmup=40, decay=0.75),
}
PARTS = {"large": ("half", "large", "further", "upper")}  # of a member that is not trained in one
PARENT = {"b": "a", "c": "a", "half": "a"}
SPELLS_AS = {"c": "drafter", "half": "a", "large": "a", "further": "a", "upper": "a"}  # whose tokenizer
FROZEN = {"upper": 6}  # layers, from below
SEED = 7
# So much of the weights of `large` before its last part is `a` at twice the width, where it came from: what a
# short training on chats had spoiled of what `a` can do, such as repeating a prompt's words, comes back
# (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).
KEPT = 0.15
# for the same reason, so much of the weights after `further`, and again after `upper`, is what they were
# before it
EARLIER = 0.3


def tokenizer_of(name: str, runs: Path = RUNS) -> PreTrainedTokenizerFast:
    """The tokenizer of a model (`c` shares the drafter's, `large` that of `a`): the committed one if it is
    there, else trained now."""
    name = SPELLS_AS.get(name, name)
    for folder in (runs / "tokenizers" / name, ASSETS / name):
        if (folder / "tokenizer.json").exists():
            return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder))
    texts = data.tokenizer_texts(drafter=name == "drafter")
    learn = tokenizers.train_spaces if name == "b" else tokenizers.train_byte_level
    tokenizer = learn(texts, tokenizers.SIZES[name])
    tokenizer.save_pretrained(runs / "tokenizers" / name)
    return tokenizer


def spellers_of(name: str, runs: Path = RUNS) -> list[data.Speller]:
    """The drafter reads text spelled by itself, by `a` and by `b` in turn, for it drafts in contexts that
    those have spelled."""
    tokenizer = tokenizer_of(name, runs)
    if name != "drafter":
        return [data.Speller(tokenizer)]
    return [
        data.Speller(tokenizer),
        *(data.Speller(tokenizer, tokenizer_of(other, runs)) for other in ("a", "b")),
    ]


def _produce(name: str, runs: Path, rows: list[tuple[int, int]]) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.nice(5)
    data.produce(name, spellers_of(name, runs), runs / name / "data", rows)


def start_weights(
    name: str, shape: Shape, tokenizer: PreTrainedTokenizerFast, runs: Path
) -> tuple[Tensor, str]:
    """Weights to begin with and, for the model card, where they come from."""
    if name not in PARENT:
        return family.initial(shape, SEED), "random weights"
    parent = PARENT[name]
    other = tokenizer_of(parent, runs)
    flat = _committed(parent, shape_of(parent, len(other)))
    if name == "half":
        return flat, f"the weights of `{parent}`"
    return (
        transplanted(flat, shape_of(parent, len(other)), other, shape, tokenizer),
        f"the trained body of `{parent}`",
    )


def _committed(name: str, shape: Shape) -> Tensor:
    return family.from_transformers(
        shape, LlamaForCausalLM.from_pretrained(ASSETS / name, dtype=torch.float32)
    )


def _train_part(
    workers: int,
    resume: bool,
    compiled: bool,
    runs: Path,
    budget: Path | None,
    part: str,
    shape: Shape,
    plan: Plan,
    flat: Tensor,
) -> tuple[Tensor, Clock]:
    """Train one part of a member from these weights, on rows that a process of its own makes."""
    folder = runs / part
    if not resume:
        for leftover in ("checkpoint.pt", "plateau.pt"):
            (folder / leftover).unlink(missing_ok=True)
    data, frozen = folder / "data", FROZEN.get(part, 0)
    job = Job(shape, plan, RATES[part], data, folder / "checkpoint.pt", part, compiled, frozen, budget=budget)
    job.data.mkdir(parents=True, exist_ok=True)
    producer = multiprocessing.get_context("spawn").Process(target=_produce, args=(part, runs, plan.rows()))
    producer.start()
    try:
        return train(job, flat, workers)
    finally:
        producer.kill()


def train_one(
    name: str, plan: Plan, workers: int, resume: bool = True, from_assets: bool = False,
    compiled: bool = True, runs: Path = RUNS,
    budget: Path | None = None,
) -> dict[str, object]:  # fmt: skip
    """Train one member and save it to assets/; returns what its card says about the run."""
    tokenizer = tokenizer_of(name, runs)
    shape = shape_of(name, len(tokenizer))

    run = partial(_train_part, workers, resume, compiled, runs, budget)
    plans, part = plans_of(name, plan, budget), name
    wanted = [[part_plan.tokens, part_plan.minutes] for part_plan in plans.values()]
    committed = from_assets and (ASSETS / name / "config.json").exists()
    if committed:
        flat, origin = _committed(name, shape), "the committed weights"
    elif name == "large":
        half = shape_of("half", len(tokenizer))
        first, origin = start_weights("half", half, tokenizer, runs)
        narrow, before = run("half", half, plans["half"], first)
        wide, after = run("large", shape, plan, grown(narrow, half, SEED))
        flat = torch.lerp(wide, grown(first, half, SEED), KEPT)
        chatty, then = run("further", shape, plans["further"], flat)
        flat = torch.lerp(chatty, flat, EARLIER)
        origin += (
            f", trained on {_read(before)} of the same kind at a constant rate, grown to twice the width,"
            f" trained on {_read(after)}"
        )
        origin += f" more and averaged: {1 - KEPT:.0%} of that and {KEPT:.0%} of `a`, grown in the same way"
        origin += (
            f"; then trained on {_read(then)}, chats above all, and averaged: {1 - EARLIER:.0%} of that and"
            f" {EARLIER:.0%} of before"
        )
    else:
        flat, origin = start_weights(name, shape, tokenizer, runs)
    if name == "large":
        part, plan = "upper", plans["upper"]
    final, clock = run(part, shape, plan, flat)
    if name == "large":
        final = torch.lerp(final, flat, EARLIER)
    stats = json.loads((runs / part / "data" / "stats.json").read_text())
    last = clock.losses[-50:]
    facts: dict[str, object] = {
        "name": name, "origin": origin, "parameters": shape.numel(), "vocabulary": shape.vocab,
        "steps": clock.step,
        "tokens": clock.step * plan.batch, "wanted": wanted, "loss": round(sum(last) / max(1, len(last)), 4),
        "minutes": round(clock.seconds / 60, 1), "workers": workers,
        "rows": [plan.short, plan.long, plan.long_share],
        "muon": RATES[part].muon, "adam": RATES[part].adam, "decay": RATES[part].decay, "data": stats,
        "losses": clock.losses[::10],
    }  # fmt: skip
    family.save(name, shape, final, tokenizer)
    if committed:  # these weights are the committed ones now: to train once more is to begin with them
        for leftover in ("checkpoint.pt", "plateau.pt"):
            (runs / part / leftover).unlink(missing_ok=True)
    (runs / name).mkdir(exist_ok=True)
    (runs / name / "facts.json").write_text(json.dumps(facts))
    return facts


def plans_of(name: str, plan: Plan, budget: Path | None) -> dict[str, Plan]:
    """The plan of each part of a member: `plan`, and for its other parts the limits of the budget file, or
    else of `plan`."""

    def other(part: str) -> Plan:
        return (
            PLANS[part].amended(budget, part)
            if budget
            else replace(PLANS[part], tokens=plan.tokens, minutes=plan.minutes)
        )

    return {part: plan if part == name else other(part) for part in PARTS.get(name, (name,))}


def _read(clock: Clock) -> str:
    return f"{clock.step * PLANS['large'].batch / 1e6:.1f} M tokens ({clock.seconds / 60:.0f} min)"


def train_bundled(
    models: Sequence[str] = SHIPPED,
    tokens: int | None = None,
    minutes: float | None = None,
    workers: int | None = None,
    resume: bool = True,
    from_assets: bool = False,
    evaluate: bool = True,
    runs: Path = RUNS,
) -> None:
    """Train, evaluate and write the given members in the order of the family. `runs` holds rows, checkpoints
    and budgets."""
    budget = runs / "budget.json"
    compiled = shutil.which(os.environ.get("CXX", "g++")) is not None or shutil.which("clang++") is not None
    if not compiled:
        typer.echo("no C++ compiler found: training without torch.compile, more slowly")
    for name in [name for name in NAMES if name in models]:
        # The file may be edited while earlier models train, and while this one does.
        asked = replace(PLANS[name], tokens=tokens or PLANS[name].tokens, minutes=minutes)
        plan = asked if tokens or minutes else asked.amended(budget, name)
        live = None if tokens or minutes else budget
        plans = plans_of(name, plan, live)
        if resume and not from_assets and _finished(name, plans, runs):
            typer.echo(f"== {name}: already trained")
        else:
            # committed weights go through the last part alone
            for part, part_plan in list(plans.items())[-1 if from_assets else 0 :]:
                typer.echo(
                    f"== {part}: at most {part_plan.tokens:,} tokens"
                    + (f" or {part_plan.minutes:g} minutes" if part_plan.minutes else "")
                )
            facts = train_one(
                name, plan, workers or os.cpu_count() or 1, resume, from_assets, compiled, runs, live
            )
            typer.echo(f"== {name}: loss {facts['loss']} after {facts['minutes']} min")
        if evaluate and not (ASSETS / name / "README.md").exists():  # `family.save` leaves no card
            _score(name, runs)


def _finished(name: str, plans: dict[str, Plan], runs: Path) -> bool:
    facts = runs / name / "facts.json"
    done = facts.exists() and (ASSETS / name / "config.json").exists()
    return done and json.loads(facts.read_text())["wanted"] == [
        [plan.tokens, plan.minutes] for plan in plans.values()
    ]


def _score(name: str, runs: Path) -> None:
    # In a process of its own: a model that cannot be scored is still a model, and the next one must begin.
    subprocess.run(
        [sys.executable, "-m", "lab", "evaluate", name, "--runs", str(runs.resolve())],
        check=False,
        cwd=family.ROOT,
    )
