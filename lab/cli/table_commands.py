"""The commands that make tables: `compare` those of papers, `vocabularies` how well two tokenizers fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnidemo.cli.common import collected, command_line, loaded, names_in, read_settings, show, telling
from omnidemo.cli.options import Drafter, DraftLength, KeptIn, MaxNewTokens, Out, Target


def compare(
    csv: Out,
    prompts: Annotated[Path | None, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')] = None,
    spec_bench: Annotated[
        Path | None, typer.Option(help="Or Spec-Bench's file: question_id, category, turns on each line.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Names with commas between; autoregressive, the baseline, always runs.")
    ] = "ngram-exact",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use so many: the first prompts, or questions taken evenly.")
    ] = None,
    temperature: Annotated[str, typer.Option(help="0 is greedy; several with commas between.")] = "0",
    runs: Annotated[int, typer.Option(min=1, help="Interleaved runs of each method on each prompt.")] = 1,
    own_manner: Annotated[
        bool, typer.Option("--own-manner", help="Sample as the target's card says, whatever the temperature.")
    ] = False,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    draft_policy: Annotated[str, typer.Option(help="fixed, confidence, cost or head.")] = "fixed",
    copying: Annotated[
        bool, typer.Option("--copying/--no-copying", help="Whether drafts may be copied from the text, too.")
    ] = True,
    seed: int = 0,
    no_seed: Annotated[
        bool,
        typer.Option(
            "--no-seed",
            help="Above temperature 0 accept with min(1, p/q), as papers do: each method another text.",
        ),
    ] = False,
    fill_cache: Annotated[
        bool, typer.Option(help="First fill the n-gram cache with all that the drafter can spell.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the tables as Markdown, too.")] = None,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Measure methods on the same prompts, interleaved, and print the tables that papers print.

    Nothing is learned meanwhile. Without --storage the n-gram cache starts empty, unless --fill-cache is
    given.
    """
    settings = read_settings(
        target=target,
        drafter=drafter,
        max_new_tokens=max_new_tokens,
        draft_length=draft_length,
        training="off",
    )
    from lab.measured_rows import markdown_table
    from lab.measured_rows import report as page
    from lab.races import paper_tables
    from omnidemo.core.config import GREEDY, GenerationConfig
    from omnidemo.serving.measuring import compare_methods
    from omnidemo.serving.measuring.prompt_files import (
        check_writable,
        numbers,
        read_prompts,
        read_questions,
    )

    if (prompts is None) == (spec_bench is None):
        raise ValueError("give either --prompts or --spec-bench, a JSON Lines file")
    asked: list[Any] = (
        read_questions(spec_bench, limit) if spec_bench else read_prompts(prompts or Path(), limit)
    )
    temperatures = [None] if own_manner else numbers(temperature, "--temperature", float)
    options: dict[str, Any] = {} if own_manner else GREEDY.options
    options |= {"max_new_tokens": settings.max_new_tokens, "draft_length": settings.draft_length}
    options |= {"draft_policy": draft_policy, "copying": copying}
    for each in temperatures:
        GenerationConfig.of(**options | {"temperature": each})
    options.pop("temperature", None)
    names = compare_methods.check_methods(names_in(methods))
    for file in [csv, *([report] if report else [])]:
        check_writable(file)
    pair = loaded(settings, storage, compiled=True)
    if fill_cache or settings.warm_start:
        pair.fill_cache()
    if spec_bench:
        asked, given = paper_tables.fitting(pair, asked), len(asked)
        if not asked:
            raise ValueError(
                f"no question of {spec_bench} fits the window of {pair.target.name}; choose another target"
            )
        if len(asked) < given:
            typer.echo(
                f"{given - len(asked)} of {given} questions are left out, for they do not fit the window of"
                " the target.",
                err=True,
            )
    measured = compare_methods.run(
        pair, asked, names, csv, temperatures, runs, seed=None if no_seed else seed, **options
    )
    with collected(measured) as results:
        found = list(paper_tables.tables(results))
        for title, headings, lines in found:
            typer.echo(f"\n{title}")  # the table itself would wrap its title
            show(headings, lines)
        typer.echo(f"{paper_tables.NOTE} Rows: {csv}", err=True)
        if report and found:
            about = {
                "command": command_line("lab"),
                "target": pair.target.name,
                "drafter": pair.drafter.name,
                "asked": len(asked),
                "runs": runs,
            }
            sections = [
                f"## {title}\n\n{markdown_table(headings, lines)}" for title, headings, lines in found
            ]
            report.write_text(
                page("Methods side by side", paper_tables.NOTE, about, sections), encoding="utf-8"
            )


def vocabularies(
    target_tokenizer: Annotated[
        str, typer.Argument(help="Bundled name, Hub id, folder or GGUF file of the target's tokenizer.")
    ],
    drafter_tokenizer: Annotated[str, typer.Argument(help="The drafter's, likewise.")],
    prompts: Annotated[Path, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')],
    limit: Annotated[int | None, typer.Option(min=1, help="Texts at most.")] = None,
) -> None:
    """Measure how well two tokenizers fit: the direct map, and n-grams for the other tokens of some
    prompts."""
    settings = read_settings()
    from lab import vocabularies as fit
    from omnidemo.serving.measuring.prompt_files import read_prompts

    texts = read_prompts(prompts, limit)
    with telling("reading the tokenizers") as tell:
        reports = fit.compare(target_tokenizer, drafter_tokenizer, texts, settings.trust_hub, tell)
    show(
        fit.HEADINGS,
        [report.cells() for report in reports],
        "n-grams: parts of the tokens without a direct map.",
    )


def forms(
    schemas: Annotated[
        Path | None, typer.Option(help="A folder of JSON schemas; default: the JSON task.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Answers.")] = 40,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 160,
    csv: Annotated[Path | None, typer.Option(help="Where the rows go.")] = None,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Race guessing against plain decoding under the masks of JSON schemas, in turns: ids, validity, tokens a
    pass, seconds, and what masks cost."""
    from lab.races import forms_race
    from omnidemo.serving.measuring.report_tables import csv_table
    from omnidemo.serving.pair_loading import build_measured_pair

    settings = read_settings(target=target, drafter=drafter, training="off")
    pair = build_measured_pair(settings.target, settings.drafter, settings)
    given = forms_race.of_folder(schemas, count) if schemas else forms_race.of_task(count)
    rows = []
    for row in forms_race.race(pair, [*given], max_new_tokens, "forms"):
        rows.append(row)
        said = (
            row.refused or f"{row.tokens} tokens in {row.rounds} rounds, equal {row.equal}, valid {row.valid}"
        )
        typer.echo(f"{row.name}: {said}", err=True)
    if csv:
        with csv_table(csv, forms_race.FormRow) as append:
            for row in rows:
                append(row)
    typer.echo(forms_race.summary(rows))
