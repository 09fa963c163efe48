"""The commands that make drafters: answers of targets, vocabulary, rows, training, scores."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

PASSES = "1=3.9,2=3.8,4=4.3,6=5.1,8=6.2,12=8.9"  # SmolLM2 in int8, two cores
Prompts = Annotated[Path, typer.Option(help="The folder of prompt files.", exists=True, file_okay=False)]
Shards = Annotated[Path, typer.Option(help="The folder of answers.", exists=True, file_okay=False)]
Targets = Annotated[
    list[str],
    typer.Option(help="NAME=MODEL: whose answers NAME in the shards are, and where its tokenizer is."),
]
Pause = Annotated[Path | None, typer.Option(help="Compute nothing while there is this file.")]
Tokenizer = Annotated[Path, typer.Option(help="The folder of the drafter's tokenizer.")]


def costs_of(rows: str) -> dict[int, float]:
    """Rows → ms of a pass, of ROWS=MS,… . ValueError, one sentence, for anything else."""
    try:
        return {int(count): float(ms) for count, ms in (one.split("=") for one in rows.split(","))}
    except ValueError as error:
        raise ValueError(f"{rows!r} is not ROWS=MS,…; write prices such as 1=4.2,4=8.1") from error


def answers(
    target: Annotated[str, typer.Option(help="The model that answers, by any of its names.")],
    name: Annotated[str, typer.Option(help="Its name in the shards.")],
    prompts: Prompts,
    out: Annotated[Path, typer.Option(help="The folder of the shards.")],
    sets: Annotated[str, typer.Option(help="Sets, with commas between; default: all.")] = "",
    kept: Annotated[
        bool, typer.Option(help="Answer the prompts that are kept to score with, and never teach, both ways.")
    ] = False,
    most: Annotated[int, typer.Option(help="Prompts of a set at most, evenly from all of it.")] = 1_000_000,
    tokens: Annotated[
        int, typer.Option(help="Stop where the folder has so many tokens, at the end of a shard.")
    ] = 2_000_000,
    rows: Annotated[int, typer.Option(help="Answers at once.")] = 48,
    part: Annotated[str, typer.Option(help="I/N: every Nth prompt from the Ith on, a process each.")] = "0/1",
    length: Annotated[int, typer.Option(help="Tokens of an answer.")] = 256,
    pause: Pause = None,
) -> None:
    """Write a target's answers to the training prompts, greedy ones and those of its own manner by turns,
    from where the last run stopped."""
    from lab.drafters import prompt_sets
    from lab.drafters.answers import Wanted, by_set, write_answers
    from lab.drafters.shards import done
    from omnidemo.models.load import load_model

    found = prompt_sets.kept(prompts) if kept else prompt_sets.training(prompts)
    chosen = [one for one in sets.split(",") if one] or list(found)
    if unknown := sorted(set(chosen) - set(found)):
        raise typer.BadParameter(
            f"{unknown[0]!r} is no set; there are {', '.join(found)}", param_hint="--sets"
        )
    number, count = map(int, part.split("/"))
    asked = {one: prompt_sets.some(found[one], most) for one in chosen}
    typer.echo(", ".join(f"{one}: {len(texts)} prompts" for one, texts in asked.items()))
    model = load_model(target, device="cpu", packed=True)
    # stopped by `kill`, too, it keeps what is finished
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = Wanted(length, 16 if kept else 4, kept, (number, count))
    write_answers(model, name, asked, prompts.name, out, rows, tokens, wanted, typer.echo, pause)
    typer.echo(by_set(done(out)))


def tokenizer(
    prompts: Prompts,
    out: Annotated[Path, typer.Option(help="The folder of the tokenizer.")],
    size: Annotated[int, typer.Option(help="Pieces, the special ones among them.")] = 5000,
    shards: Annotated[
        Path | None, typer.Option(help="The folder of answers of targets, if they count too.")
    ] = None,
    target: Targets = [],  # noqa: B006
) -> None:
    """Learn a drafter's vocabulary from the training prompts and the answers of their data sets, and from
    those of targets."""
    from lab.drafters.corpus import answer_texts, human_texts
    from lab.drafters.drafter_tokenizer import learn

    texts = [text for _, prompt, answer in human_texts(prompts) for text in (prompt, answer)]
    if shards is not None:
        texts += answer_texts(dict(one.split("=", 1) for one in target), shards, prompts)
    learned = learn(texts, size)
    learned.save_pretrained(out)
    typer.echo(f"{len(learned):,} pieces")


def rows(
    drafter_tokenizer: Tokenizer,
    target: Targets,
    prompts: Prompts,
    out: Annotated[Path, typer.Option(help="The folder of the rows.")],
    shards: Annotated[
        Path | None, typer.Option(help="The folder of answers; without: texts that people wrote.")
    ] = None,
    length: Annotated[int, typer.Option(help="Tokens of a row.")] = 1024,
    epochs: Annotated[int, typer.Option(help="How often each answer is read.")] = 3,
) -> None:
    """Write the rows that a drafter is trained on."""
    from lab.drafters.corpus import chats
    from lab.drafters.rows import write_rows

    found, pad = chats(drafter_tokenizer, dict(one.split("=", 1) for one in target), prompts, shards)
    count = write_rows(found, out, length, pad, epochs)
    typer.echo(f"{len(found):,} chats, {sum(chat.block.shape[1] for chat in found):,} tokens, {count:,} rows")


def train(
    rows: Annotated[Path, typer.Option(help="The folder of the rows.", exists=True, file_okay=False)],
    drafter_tokenizer: Tokenizer,
    out: Annotated[Path, typer.Option(help="The folder of checkpoint and model.")],
    shape: Annotated[str, typer.Option(help="One of those that `steps` times.")] = "small",
    start: Annotated[Path | None, typer.Option(help="A model to begin with.")] = None,
    tokens: Annotated[int, typer.Option(help="Most tokens; the rows may be fewer.")] = 1_000_000_000,
    minutes: Annotated[float | None, typer.Option(help="Most minutes.")] = None,
    batch: Annotated[int, typer.Option(help="Tokens a step.")] = 8192,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    muon: Annotated[float, typer.Option(help="Peak rate of matrices.")] = 0.02,
    adam: Annotated[float, typer.Option(help="Peak rate of the embedding and norms.")] = 5e-3,
    decay: Annotated[float, typer.Option(help="Share of the run in which the rate falls to zero.")] = 0.3,
    pause: Pause = None,
) -> None:
    """Train a drafter, from where the last run stopped."""
    from lab.drafters.drafter_training import train_drafter
    from lab.drafters.training.optimiser import Rates

    rates = Rates(muon=muon, adam=adam, warmup=40, decay=decay)
    facts = train_drafter(
        rows, drafter_tokenizer, shape, out, start, tokens, minutes, batch, workers, rates, pause=pause
    )
    typer.echo(f"loss {facts['loss']} after {facts['tokens']:,} tokens in {facts['minutes']} min")


def ceilings(
    drafter: Annotated[list[str], typer.Option(help="Drafters, by any of their names.")],
    target: Targets,
    shards: Shards,
    prompts: Prompts,
    most: Annotated[int, typer.Option(help="Answers of a set at most, greedy and drawn ones each.")] = 60,
    rows: Annotated[str, typer.Option(help="ROWS=MS,…: what a pass of the target costs.")] = PASSES,
    step: Annotated[list[float], typer.Option(help="Milliseconds of a step of each drafter.")] = [0.08],  # noqa: B006
) -> None:
    """How well drafters guess recorded answers, and how fast copying and they would make the target at given
    prices; and what each of them changes against the first."""
    from lab.drafters.scoring import score_all

    costs = costs_of(rows)
    if len(step) not in (1, len(drafter)):
        raise typer.BadParameter("name one for all drafters, or one for each", param_hint="--step")
    targets = dict(one.split("=", 1) for one in target)
    score_all(drafter, targets, shards, prompts, most, costs, step * (len(drafter) // len(step)), typer.echo)


def learning(
    target: Annotated[str, typer.Option(help="Whose answers teach, by any of its names.")],
    prompts: Prompts,
    drafter: Annotated[
        str, typer.Option(help="The drafter that learns; default: the target's own.")
    ] = "auto",
    sets: Annotated[
        str, typer.Option(help="Sets that teach, with commas between; task-json: a repeated task.")
    ] = "gsm8k,mbpp,dolly,summaries,tasks,sql",
    told: Annotated[
        str, typer.Option(help="Sets whose kept prompts are scored; default: those that teach.")
    ] = "",
    requests: Annotated[int, typer.Option(min=1, help="Answers that teach.")] = 60,
    every: Annotated[int, typer.Option(min=1, help="Answers between two readings.")] = 30,
    then: Annotated[
        str, typer.Option(metavar="SET:N", help="After them N answers of one set, on the same line.")
    ] = "",
    epochs: Annotated[int, typer.Option(min=0, help="Offline instead: passes over all answers.")] = 0,
    seed: Annotated[int, typer.Option(help="Another order of the answers.")] = 0,
    taught: Annotated[int, typer.Option(min=1, help="Answers of a set to learn from.")] = 60,
    kept: Annotated[int, typer.Option(min=1, help="Scored answers of a set.")] = 20,
    length: Annotated[int, typer.Option(min=2, help="Tokens of an answer.")] = 96,
    answers: Annotated[Path | None, typer.Option(help="A folder that keeps the answers.")] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="OmniDraft's labels: the directly mapped tokens alone.")
    ] = False,
) -> None:
    """How a drafter's guesses change as it learns from answers of several kinds. The settings
    (OMNIDEMO_LEARNING_RATE, _DIVERGENCE and so on; _LORA_RANK=0 for all weights) say how it learns."""
    from lab.drafters import learning as learner
    from lab.drafters import prompt_sets
    from omnidemo.api import load_pair
    from omnidemo.cli.common import names_in, read_settings
    from omnidemo.models.names import at_its_pace

    settings = read_settings(target=target, drafter=drafter)
    teaching, telling = prompt_sets.taught_and_told(prompts, taught, kept)
    names, shown = names_in(sets), names_in(told) or names_in(sets)
    both = set(teaching) & set(telling)
    if unknown := sorted({*names, *shown} - both):
        raise typer.BadParameter(
            f"{unknown[0]!r} is no set; there are {', '.join(sorted(both))}", param_hint="--sets"
        )
    last, _, after = then.partition(":")
    if then and not (last in names and after.isdecimal()):
        raise typer.BadParameter(f"{then!r} is not SET:N with a set that teaches", param_hint="--then")
    pair = load_pair(settings=settings)
    typer.echo("the answers are written", err=True)
    given = {name: learner.recorded(pair, teaching[name], taught, length, answers) for name in names}
    probes = {name: learner.recorded(pair, telling[name], kept, length, answers) for name in shown}
    settings, folder = at_its_pace(settings, pair.drafter.name, pair.target.name), pair.drafter.folder
    found = []
    for reading in learner.learn(
        folder, settings, given, probes, requests, every, seed, direct, (last, int(after or 0)), epochs
    ):
        found.append(reading)
        typer.echo(" | ".join(reading.cells()), err=True)
    typer.echo(learner.table(found))


def phrases(target: Targets, prompts: Prompts, shards: Shards) -> None:
    """Write the known phrases of targets, which ship with the project, out of their recorded answers."""
    from lab.drafters.corpus import read_answers
    from lab.drafters.phrases import count_phrases, write_phrases
    from omnidemo.core.config import Settings
    from omnidemo.models.known_phrases import file_of
    from omnidemo.models.names import resolve

    for each in target:
        name, _, place = each.partition("=")
        arrays = count_phrases(read_answers(shards, name, place, prompts))
        write_phrases(path := file_of(resolve(place, Settings()).name), arrays)
        typer.echo(f"{path}: {len(arrays['weights']):,} contexts, {path.stat().st_size / 1e6:.1f} MB")


def steps(
    vocabulary: Annotated[int, typer.Option(help="Pieces of the vocabulary.")] = 5000,
    context: Annotated[int, typer.Option(help="Tokens before the step.")] = 400,
    turns: Annotated[int, typer.Option(help="Turns of eight steps.")] = 60,
) -> None:
    """Time one step of a drafter of each shape, by compiled passes over random weights."""
    from lab.drafters.shapes import SHAPES, parameters, step_times

    for shape, milliseconds in step_times(list(SHAPES), vocabulary, context, turns).items():
        typer.echo(f"{shape:8} {parameters(shape, vocabulary) / 1e6:5.2f} M parameters {milliseconds:.3f} ms")
