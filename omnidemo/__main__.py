"""The command line, `python -m omnidemo --help`. Models and pages are imported when a command needs them."""

from __future__ import annotations

from omnidemo.core.processes import end_by_signal

if __name__ == "__main__":
    end_by_signal()  # before the other imports

import json
import os
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidemo.cli import check_commands, fetch_commands, learn_commands, measure_commands, price_commands
from omnidemo.cli.common import (
    Commands,
    check_folder,
    form_in,
    loaded,
    log_to_stderr,
    read_settings,
    run,
    show,
    standard_input,
    telling,
    whole,
)
from omnidemo.cli.options import (
    ApiKey,
    Drafter,
    KeptIn,
    Number,
    Schema,
    Storage,
    Target,
    answer_options,
    given,
)
from omnidemo.core import shell_network
from omnidemo.core.config import GenerationConfig, Settings

if TYPE_CHECKING:
    from omnidemo.core.records import Generation
    from omnidemo.serving.services import Cluster

COMPILING = "compiling passes, once on this machine; the answer waits for them"
END_SECONDS = 4.0  # for cancelled answers; a container is killed after ten
HELP = (
    "Online, cross-vocabulary speculative decoding: one small drafter for every target model."
    " docs/settings.md explains the settings."
)
app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP
)


@app.command()
@answer_options
def generate(
    prompt: Annotated[str, typer.Argument(help="What to answer; - reads it from standard input.")],
    target: Target = None,
    drafter: Drafter = None,
    arithmetic: Number = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object: text, ids, metrics, rounds, seed, conditions."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Draft by prices, and print what each round chose from.")
    ] = False,
    schema: Schema = None,
    storage: KeptIn = None,
    api_key: ApiKey = None,
    **options: Any,
) -> None:
    """Answer a prompt: the text on stdout as it is written, its figures on stderr.

    With --storage it drafts with the adapter of that folder and adds to its n-gram cache. One answer alone
    trains nothing.
    """
    ours = {name: value for name, value in options.items() if name in Settings.model_fields}
    settings = read_settings(
        target=target, drafter=drafter, arithmetic=arithmetic, training="off", api_keys=api_key, **ours
    )  # fmt: skip
    from omnidemo.backends import compile_kernels
    from omnidemo.backends.choice import conditions_of, waits
    from omnidemo.decoding.methods import check_method
    from omnidemo.models.weights_digest import weights_digest
    from omnidemo.pair.remote.target_link import LinkError

    check_method(settings.method)  # refuses a wrong method before a model is loaded
    by_prices = {"draft_policy": "cost"} if explain else {}
    asked = GenerationConfig.of(
        **given(options) | {name: getattr(settings, name) for name in ours} | by_prices | form_in(schema)
    )
    if storage is not None:
        check_folder(storage)
    prompt = standard_input() if prompt == "-" else prompt  # before the models are loaded
    pair = loaded(settings, storage)
    written: list[str] = []
    say: Any = written.append if as_json else lambda text: print(text, end="", flush=True)
    pair.round_listeners.append(lambda done: say(done.text))
    if waits(pair.target.runner) or waits(pair.drafter.runner):
        with telling(COMPILING) as tell:
            if not compile_kernels.kept():
                tell(COMPILING, now=True)
            compile_kernels.wait()
    asked = asked.in_manner(pair.target.manner).seeded()
    try:
        generation = whole(pair.parts(prompt, **dict(asked)))
    except LinkError as error:  # the text so far is not lost
        print(json.dumps({"text": "".join(written), "error": str(error)}) if as_json else "", flush=True)
        raise
    if as_json:
        conditions = getattr(pair, "conditions", "") or conditions_of(
            pair.target.runner, settings.dtype, weights_digest(pair.target.folder)
        )
        generation = replace(generation, conditions=conditions)
        about = {"target": pair.target.name, "drafter": pair.drafter.name, "options": asked.model_dump()}
        print(json.dumps(asdict(generation) | about, ensure_ascii=False), flush=True)
    else:
        print(flush=True)
    if explain and not as_json:
        price_commands.explain(generation.rounds)
    typer.echo(figures(generation), err=True)


@app.command()
def models(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """List the models on this machine (bundled, fetched, the Hub's cache, Ollama, LM Studio,
    OMNIDEMO_MODEL_FOLDERS), and those that can be fetched.

    The note of an unusable model names the reason.
    """
    settings = read_settings()
    from omnidemo.models.catalogue import list_models

    cards = list_models(settings)
    if as_json:
        print(json.dumps([asdict(card) for card in cards], ensure_ascii=False, indent=2))
        return
    lines = []
    for card in cards:
        size = "–" if card.parameters is None else f"{card.parameters / 1e6:,.1f} M"
        disk, memory = (
            "–" if count is None else f"{count / 1e6:,.0f} MB" for count in (card.bytes, card.memory_bytes)
        )
        lines.append([card.name, card.source, card.type, disk, size, memory, card.availability, card.note])
    show(("name", "source", "type", "on disk", "parameters", "in memory", "availability", "note"), lines)


app.command()(fetch_commands.fetch)
app.command()(check_commands.check_backend)
app.command()(measure_commands.compare)
app.command()(measure_commands.adapt)
app.command()(learn_commands.learn)
app.command()(learn_commands.use)
app.command()(price_commands.prices)


@app.command()
def export(
    csv: Annotated[Path, typer.Option("--csv", help="The file to write.")],
    kind: Annotated[str, typer.Option(help="requests, rounds or steps (of training).")] = "requests",
    target: Annotated[str | None, typer.Option(help="Only of this target.")] = None,
    drafter: Annotated[str | None, typer.Option(help="Only of this drafter.")] = None,
    storage: Storage = None,
) -> None:
    """Write the history as CSV."""
    settings = read_settings(storage=storage)
    from omnidemo.serving.measuring.prompt_files import check_writable
    from omnidemo.serving.pair_loading import open_store

    check_writable(csv)
    if not settings.database_url and not (settings.storage / "omnidemo.db").exists():
        raise ValueError(
            f"{settings.storage} holds no history; use the app first, or name another folder with --storage"
        )
    store = open_store(settings)
    try:
        count = store.export_csv(kind, csv, target=target, drafter=drafter)  # type: ignore[arg-type]
    finally:
        store.close()
    typer.echo(f"{count} rows in {csv}", err=True)


@app.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; 0.0.0.0 for every interface.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 picks a free one.")] = None,
    share: Annotated[bool | None, typer.Option(help="Ask Gradio for a public link.")] = None,
    target: Target = None,
    drafter: Drafter = None,
    arithmetic: Number = None,
    storage: Storage = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Let replicas answer, kept by Ray on this machine or in a cluster.")
    ] = False,
    replicas: Annotated[int, typer.Option(min=1, help="With --ray: replicas of each pair.")] = 2,
    address: Annotated[
        str | None, typer.Option(help="With --ray: the cluster that this machine is a node of, or auto.")
    ] = None,
) -> None:
    """Start the app and serve its page; Ctrl-C ends it."""
    settings = read_settings(
        host=host, port=port, share=share, target=target, drafter=drafter, storage=storage,
        arithmetic=arithmetic,
    )  # fmt: skip
    check_folder(settings.storage)
    if not ray:
        return run_app(settings)
    from omnidemo.serving.replicas.ray_cluster import RayCluster

    with RayCluster(settings, replicas, address) as cluster:
        run_app(settings, cluster)


def run_app(settings: Settings, cluster: Cluster | None = None) -> None:
    """Serve the pages until Ctrl-C or SIGTERM, then stop the trainers and back up by the settings."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # Gradio reads it when it is imported
    from omnidemo.pair.zerogpu import sign

    if sign.on():
        from omnidemo.pair.zerogpu.start import start

        settings = start(settings)
    from omnidemo.serving import gc_pauses

    # Gradio makes HTTP clients when it is imported, and calls itself when it starts.
    local = nullcontext if settings.share else shell_network.hidden
    with gc_pauses.off(), local():
        from omnidemo.serving.services import Services
        from omnidemo.ui.app import build_app, in_url, launch_options
        from omnidemo.ui.tabs.visitor_panel import public_services

    log_to_stderr()
    everything = Services(settings, cluster)
    services = public_services(everything)
    page = build_app(services)
    try:
        try:
            with local():
                page.launch(**launch_options(services), prevent_thread_lock=True)
        except OSError as error:
            where = f"{in_url(settings.host)}:{settings.port}"
            raise ValueError(
                f"the app cannot listen on {where}; choose another --port, or 0 for a free one"
            ) from error
        everything.better.start()  # fetches while the page answers
        threading.Event().wait()
    finally:
        until = time.monotonic() + END_SECONDS
        everything.end_answers(END_SECONDS)
        while services.line and time.monotonic() < until:
            time.sleep(0.02)  # for the ends of answers to reach the page
        page.close(verbose=False)
        services.close()


def figures(generation: Generation) -> str:
    metrics = generation.metrics
    shown = {name: "–" if value is None else f"{value:.2f}" for name, value in metrics.items()}
    forced = f" forced {shown['forced_share']} ·" if metrics.get("forced") else ""
    return (
        f"{len(generation.token_ids)} tokens in {len(generation.rounds)} rounds ({shown['block_efficiency']}"
        f" a round) · acceptance {shown['acceptance_rate']} · copied {shown['copied_share']} ·{forced}"
        f" {shown['tokens_per_second']} tokens/s · first after {shown['time_to_first_token']} s ·"
        f" {generation.method} · adapter {generation.adapter_version} · ended by {generation.finish_reason}"
    )


def main() -> None:
    run(app, "omnidemo")


def program() -> None:
    end_by_signal()
    main()


if __name__ == "__main__":
    program()
