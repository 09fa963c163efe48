"""The commands learn and use: a drafter for one's own model."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidemo.cli.common import check_folder, duration, loaded, progress, read_settings, show, telling
from omnidemo.cli.options import Drafter, KeptIn, Target

if TYPE_CHECKING:
    from omnidemo.serving.measuring.learn import Gain, Learning

MEASURE_SECONDS = 240.0  # most of the time given that the last measurement takes
SHOWN = 60  # characters of a prompt


def learn(
    out: Annotated[Path, typer.Option(help="The file to be made, such as mine.zip.")],
    prompts: Annotated[
        Path | None,
        typer.Option(
            help='JSON Lines with {"prompt": "…"}, or an export of chats (ChatGPT, Claude, ShareGPT, OpenAI,'
            " or saved on the page), whose first questions are taken; default: 517 prompts of the project."
        ),
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="A folder: the first line of each text in it is a prompt, too.")
    ] = None,
    hours: Annotated[float, typer.Option(min=0.01, help="How long it may take.")] = 1.0,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Teach the drafter a model: it answers prompts, many at once, and one file has what was learned.

    A tenth of the prompts is kept to measure with. Ctrl-C keeps what is there and writes the file; the next
    call goes on. `omnidemo use FILE`, the page's Adapters in and out, or load_pair(…, learned=FILE) take it.
    """
    settings = read_settings(target=target, drafter=drafter, storage=storage, training="off")
    from omnidemo.serving.measuring import learn as learning
    from omnidemo.serving.measuring.chat_exports import first_lines
    from omnidemo.serving.measuring.prompt_files import check_writable, read_prompts

    check_writable(out)
    asked = [*(read_prompts(prompts) if prompts else ()), *(first_lines(texts) if texts else ())]
    asked = asked or learning.default_prompts()
    pair = loaded(settings, compiled=True)
    names = re.sub(r"[^\w.-]+", "-", f"{pair.target.name}-{pair.drafter.name}")
    folder = Path(settings.storage) / "learn" / names
    seconds = 3600 * hours
    with learning.begun(pair, settings, asked, folder) as going:
        typer.echo(going.needs(), err=True)
        stopped = False
        try:
            _follow(going, going.run(seconds), seconds)
        except KeyboardInterrupt:
            stopped = True
        if not stopped:
            with telling("measuring in turns with plain decoding"):
                gain = going.measure(min(MEASURE_SECONDS, 0.1 * seconds))
            going.write_file(
                out, agreement=[gain.before.overlap, gain.after.overlap], times_plain=gain.speeds
            )
            _tell(gain)
        else:
            going.write_file(out)
        typer.echo(
            f"{out}: {going.state.tokens:,} tokens of {pair.target.name} in {duration(going.seconds)}.",
            err=True,
        )
        if stopped:
            typer.echo("Stopped; the same call goes on from here.", err=True)
            raise typer.Exit(130)


def use(
    file: Annotated[Path, typer.Argument(help="A file of `omnidemo learn`, or an adapter in PEFT's format.")],
    line: Annotated[str, typer.Option(help="The adapter line that gets it.")] = "default",
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Draft by what a file has learned, from the next start of the app on."""
    settings = read_settings(target=target, drafter=drafter, storage=storage)
    check_folder(Path(settings.storage))
    from omnidemo.serving.measuring.learning_pair import learning

    pair = loaded(settings.model_copy(update={"training": "off"}))
    with learning(pair, settings, keep=True) as learner:
        number = learner.lines.adopt(line, file)
    typer.echo(f"Version {number} of the line {line} in {settings.storage} drafts for {pair.target.name}.")


def _follow(going: Learning, running: Iterable[Any], seconds: float) -> None:
    """Show how far a run is."""
    bars = sys.stderr.isatty()
    with telling("learning", on=not bars) as tell, progress(bars) as bar:
        task = bar.add_task("learning", total=int(seconds))
        for stage in running:
            bar.update(task, completed=int(going.elapsed), description=f"{stage.done:,} tokens{going.so_far}")
            tell(f"{stage.done:,} tokens{going.so_far}, {duration(going.elapsed)} of {duration(seconds)}")


def _tell(gain: Gain) -> None:
    """What was gained, measured on kept prompts."""
    typer.echo(
        f"Agreement on kept prompts: {gain.before.overlap:.3f} before, {gain.after.overlap:.3f} after; same"
        f" first choice {gain.before.same_first:.3f}, {gain.after.same_first:.3f}."
    )
    before, after = (f"{mid:.2f} × ({low:.2f}–{high:.2f})" for mid, low, high in gain.speeds)
    typer.echo(
        f"Speed at temperature 0, in turns with plain decoding at {gain.plain:.1f} tokens/s: {before} before,"
        f" {after} after."
    )
    rows = [[f"{up:+.3f}", text[:SHOWN].replace("\n", " ")] for text, up in (*gain.most, *gain.least)]
    show(("agreement", "prompts that gained most, and least"), rows)
