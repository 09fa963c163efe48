"""The commands that measure what endpoint, replicas and long runs cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collect, collected, read_settings, show
from omnidemo.cli.options import Drafter, Out, Target

Topic = Annotated[str, typer.Option(help="The prompts' topic; explanations are long.")]
Sample = Annotated[int, typer.Option(min=2, help="Bundled prompts.")]
Passes = Annotated[int, typer.Option(min=1, help="Times that every prompt is answered.")]
Longest = Annotated[int, typer.Option(min=2, help="Longest answer.")]


def bench_endpoint(
    target: Target = None,
    drafter: Drafter = None,
    passes: Passes = 3,
    prompts: Sample = 20,
    domain: Topic = "explain",
    max_new_tokens: Longest = 128,
) -> None:
    """Time streamed answers of the endpoint, from another process, against calls of the Python API, in turns,
    on the same rounds."""
    settings = read_settings(target=target, drafter=drafter)
    from lab.overhead.endpoint_overhead import run, summary
    from omnidemo.learning.lines.sample_prompts import sample

    pairs = collect(run(settings, sample(domain, prompts), passes, max_new_tokens))
    count, ratio, (low, high) = summary(pairs, max_new_tokens)
    typer.echo(f"{count} of {len(pairs)} answers had {max_new_tokens} tokens and the same text both ways.")
    typer.echo(
        f"The endpoint's tokens/s over the Python API's: median {ratio:.3f}, quartiles {low:.3f} to"
        f" {high:.3f}."
    )


def link(
    target: Target = None,
    drafter: Drafter = None,
    delay: Annotated[
        str, typer.Option(help="Milliseconds there and back, with commas between.")
    ] = "1,5,20,50,100,200",
    loss: Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of chunks that come late.")] = 0.0,
    prompts: Sample = 8,
    domain: Topic = "explain",
    max_new_tokens: Longest = 96,
    longest_draft: Annotated[int, typer.Option(min=1, max=32, help="Longest draft.")] = 32,
    by_list: Annotated[
        bool, typer.Option("--charged", help="No server and no clock: rounds are charged by a list.")
    ] = False,
) -> None:
    """Time drafts that are made here for a target at an address, by the simulated delay of the link, beside
    the server that writes alone and streams."""
    settings = read_settings(target=target, drafter=drafter, longest_draft=longest_draft, training="off")
    from lab.overhead.link import HEADINGS, Delayed, charged, run
    from omnidemo.learning.lines.sample_prompts import sample
    from omnidemo.serving.measuring.prompt_files import numbers

    delays = [each / 1000 for each in numbers(delay, "--delay")]
    asked = sample(domain, prompts)
    made = (
        charged(settings, asked, delays, max_new_tokens)
        if by_list
        else run(settings, asked, delays, loss, max_new_tokens)
    )
    with collected(made) as found:
        show(HEADINGS, [one.cells() for one in found if isinstance(one, Delayed)], f"Loss: {loss:g}.")


def bench_replicas(
    target: Target = None,
    drafter: Drafter = None,
    replicas: Annotated[
        str, typer.Option(help="Numbers of replicas, with commas between, each on a node of its own.")
    ] = "1,2",
    clients: Annotated[int, typer.Option(min=1, help="Answers at once.")] = 4,
    passes: Passes = 3,
    prompts: Sample = 24,
    domain: Topic = "explain",
    max_new_tokens: Longest = 128,
) -> None:
    """Time replicas of a pair, run by Ray on this machine, beside one process; and weigh what goes between
    them and the app."""
    settings = read_settings(target=target, drafter=drafter)
    from lab.overhead.replica_speed import HEADINGS, Served, Sizes, Task, run
    from omnidemo.learning.lines.sample_prompts import sample
    from omnidemo.serving.measuring.prompt_files import numbers

    found = collect(
        run(
            Task(settings, sample(domain, prompts), clients, passes, max_new_tokens),
            numbers(replicas, "--replicas"),
        )
    )
    show(HEADINGS, [one.cells() for one in found if isinstance(one, Served)])
    typer.echo("\n".join(str(one) for one in found if isinstance(one, Sizes)))


def bench_memory(
    csv: Out,
    target: Target = None,
    drafter: Drafter = None,
    domain: Topic = "maths",
    prompts: Annotated[Path | None, typer.Option(help="JSON Lines instead.")] = None,
    requests: Annotated[int, typer.Option(min=1)] = 1000,
    every: Annotated[int, typer.Option(min=1, help="Requests between two samples.")] = 100,
    max_new_tokens: Longest = 64,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimiser steps of an update.")] = None,
    public: Annotated[bool, typer.Option(help="Each is a visitor of a public app.")] = False,
) -> None:
    """Start the app and come as a new browser for each request, with training on; watch the app's memory.
    Ends with 1 if it grows."""
    settings = read_settings(
        target=target, drafter=drafter, max_new_tokens=max_new_tokens, steps_per_update=steps
    )
    from lab.overhead import memory
    from omnidemo.learning.lines.sample_prompts import sample
    from omnidemo.serving.measuring.prompt_files import read_prompts

    texts = read_prompts(prompts) if prompts else sample(domain, requests, 0, "train")
    with collected(memory.over_browsers(settings, texts, requests, every, csv, public)) as found:
        show(memory.HEADINGS, [one.cells() for one in found], f"Rows: {csv}")
    grown, since = memory.flat(found), f"request {memory.SETTLED} on"
    if grown is None:
        typer.echo(f"Memory is compared from {since}; give --requests more than that.", err=True)
        return
    typer.echo(
        f"From {since} memory went at most {grown:+.1%} above what it was then; {memory.FLAT:.0%} is"
        " allowed.",
        err=True,
    )
    if grown > memory.FLAT:
        raise typer.Exit(1)
