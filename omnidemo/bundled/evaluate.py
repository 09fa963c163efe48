"""Greedy answers of a bundled model to the committed prompts, checked: sums, tests of code, copied facts."""

from __future__ import annotations

import ast
import csv
import json
import re
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from transformers import AutoTokenizer, LlamaForCausalLM

from . import prompts
from .corpus import mixer
from .family import ASSETS, NAMES, RUNS

BATCH, LIMIT = 40, 400
_FENCE = re.compile(r"```[a-z]*\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Score:
    """Shares over the prompts of a domain; `parses` is for code alone."""

    model: str
    domain: str
    held_out: bool
    prompts: int
    right: float
    ended: float
    parses: float | None
    mean_tokens: float


@dataclass(frozen=True, slots=True)
class Answer:
    record: dict[str, object]
    text: str
    tokens: int
    ended: bool
    right: bool


@torch.inference_mode()
def answers(folder: Path, records: list[dict[str, object]], limit: int = LIMIT) -> list[Answer]:
    """Greedy answers in float32, in batches of prompts of like length, in the order of the records."""
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    order = sorted(range(len(records)), key=lambda index: (str(records[index]["domain"]), len(str(records[index]["prompt"]))))
    found: dict[int, Answer] = {}
    for low in range(0, len(order), BATCH):
        part = order[low : low + BATCH]
        chats = [[{"role": "user", "content": str(records[index]["prompt"])}] for index in part]
        texts = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
        inputs = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
        out = model.generate(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=limit, do_sample=False)
        for index, row in zip(part, out[:, inputs["input_ids"].shape[1] :].tolist(), strict=True):
            ended = tokenizer.eos_token_id in row
            row = row[: row.index(tokenizer.eos_token_id)] if ended else row
            text = str(tokenizer.decode(row, skip_special_tokens=True))
            right = mixer.check(prompts.from_record(records[index]), text)
            found[index] = Answer(records[index], text, len(row) + ended, ended, right)
    return [found[index] for index in range(len(records))]


def parses(text: str) -> bool:
    """Whether the code of an answer is Python."""
    fenced = _FENCE.search(text)
    try:
        ast.parse(fenced.group(1) if fenced else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def score(model: str, given: Iterable[Answer], held_out: bool) -> list[Score]:
    """One row a domain, in the order of the corpus."""
    rows, answered = [], list(given)
    for domain in mixer.DOMAINS:
        mine = [answer for answer in answered if answer.record["domain"] == domain]
        if mine:
            count = len(mine)
            code = sum(parses(answer.text) for answer in mine) / count if domain == "code" else None
            right, ended = sum(answer.right for answer in mine) / count, sum(answer.ended for answer in mine) / count
            rows.append(Score(model, domain, held_out, count, right, ended, code, sum(answer.tokens for answer in mine) / count))
    return rows


def table(rows: Iterable[Score]) -> str:
    """The scores as Markdown."""
    rows = list(rows)
    lines = ["| domain | right, test prompts | right, held-out patterns | answers that end | tokens an answer |", "|---|---|---|---|---|"]
    for row in (row for row in rows if not row.held_out):
        other = next((unseen for unseen in rows if unseen.held_out and unseen.domain == row.domain), None)
        right = f"{row.right:.0%} of {row.prompts}" + (f" ({row.parses:.0%} parse)" if row.parses is not None else "")
        unseen = f"{other.right:.0%} of {other.prompts}" if other else "–"
        lines.append(f"| {row.domain} | {right} | {unseen} | {row.ended:.0%} | {row.mean_tokens:.0f} |")
    return "\n".join(lines)


def evaluate(name: str, folder: Path, out: Path, every: int = 1, samples: int = 2) -> list[Score]:
    """Score one model and write `scores.csv`, `scores.json`, `answers.jsonl`; prints the table and some answers unedited."""
    began = time.monotonic()
    test = [record for domain in mixer.DOMAINS for record in prompts.read(prompts.FOLDER / f"{domain}.jsonl")[::every]]
    given, rows = [], []
    for held_out, records in ((False, test), (True, prompts.read(prompts.FOLDER / "held_out.jsonl")[::every])):
        answered = answers(folder, records)
        given += answered
        rows += score(name, answered, held_out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "scores.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    with (out / "scores.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(rows[0])))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    kept = [{"id": answer.record["id"], "answer": answer.text, "right": answer.right, "tokens": answer.tokens} for answer in given]
    (out / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    typer.echo(table(rows))
    for domain in mixer.DOMAINS:
        for answer in [answer for answer in given if answer.record["domain"] == domain][:samples]:
            typer.echo(f"--- {answer.record['id']} {'right' if answer.right else 'WRONG'}\n> {answer.record['prompt']}\n{answer.text}")
    typer.echo(f"{name}: scored in {(time.monotonic() - began) / 60:.1f} min")
    return rows


def main(
    models: Annotated[list[str] | None, typer.Argument(help="members of the family, all that are there by default")] = None,
    every: Annotated[int, typer.Option(help="take every n-th prompt, for a quick look")] = 1,
    card: Annotated[bool, typer.Option(help="write the model card (not when prompts are left out)")] = True,
) -> None:
    """Score bundled models on the committed prompts."""
    from .card import write

    for name in models or [name for name in NAMES if (ASSETS / name / "config.json").exists()]:
        rows = evaluate(name, ASSETS / name, RUNS / name / "scores", every)
        if card and every == 1:
            write(name, rows)


if __name__ == "__main__":
    typer.run(main)
