"""The Compare tab: the same prompt, seed and budget for several methods, side by side; or a batch of prompts in one table."""

from __future__ import annotations

import json
import logging
import secrets
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gradio as gr

from omnidemo.ui import charts, serving, text
from omnidemo.ui.chat import Running
from omnidemo.ui.serving import for_browser
from omnidemo.ui.shell import ENGINE, PRIVATE, Shell, widget
from omnidemo.ui.tokens import finite, round_lines

log = logging.getLogger(__name__)

MOST_PROMPTS = 500
UPDATE_SECONDS = 0.25
BASE = "autoregressive"
# CSV: column → key of Generation.metrics; units are in the names.
MEASURED = {
    "seconds": "seconds",
    "tokens_per_second": "tokens_per_second",
    "acceptance_rate": "acceptance_rate",
    "alpha": "alpha",
    "block_efficiency_tokens_per_round": "block_efficiency",
    "ngram_hits_per_round": "ngram_hits",
    "time_to_first_token_seconds": "time_to_first_token",
    "draft_seconds": "draft_seconds",
    "verify_seconds": "verify_seconds",
    "settle_seconds": "settle_seconds",
    "other_seconds": "other_seconds",
    "engine_overhead_share": "engine_overhead",
}
HEADER = ["run", "created_at_utc", "target", "drafter", "adapter_version", "method", "prompt_index", "seed", "temperature", "draft_length", "max_new_tokens"]
HEADER += ["tokens", "rounds", *MEASURED, "measured_speedup", "identical_to_autoregressive", "finish_reason", "prompt", "answer"]
SUMMARY = ("tokens_per_second", "speedup", "acceptance_rate", "block_efficiency", "time_to_first_token")


class BadBatch(ValueError):
    """An uploaded batch that cannot be used; the message names the line, the cause and the next step."""


def read_batch(path: str | Path) -> list[str]:
    """The prompts of a JSON Lines file: one object with a text field `prompt` per line. Raises BadBatch."""
    prompts = []
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadBatch("The file is not UTF-8 text. Save it as JSON Lines in UTF-8 and upload it again.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise BadBatch(f'Line {number} is not JSON. Every line has to look like {{"prompt": "What is 17 plus 25?"}}.') from error
        prompt = item.get("prompt") if isinstance(item, dict) else None
        if not isinstance(prompt, str) or not prompt.strip():
            raise BadBatch(f'Line {number} has no text in the field "prompt". Every line has to look like {{"prompt": "What is 17 plus 25?"}}.')
        prompts.append(prompt)
    if not prompts:
        raise BadBatch('The file holds no prompts. Every line has to look like {"prompt": "What is 17 plus 25?"}.')
    if len(prompts) > MOST_PROMPTS:
        raise BadBatch(f"The file holds {len(prompts)} prompts, more than {MOST_PROMPTS}. Split it and run the parts one after another.")
    return prompts


def summary(results: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Per method: n and, for each figure, mean and standard deviation over the prompts where it is defined."""
    table = []
    for method in methods:
        own = [result for result in results if result["method"] == method]
        row: dict[str, Any] = {"method": method, "n": len(own)}
        for name in SUMMARY:
            seen = [result[name] for result in own if result.get(name) is not None]
            row[name] = [finite(statistics.fmean(seen)), finite(statistics.stdev(seen)) if len(seen) > 1 else None] if seen else [None, None]
        checked = [result["identical"] for result in own if result["identical"] is not None]
        table.append(row | {"identical": sum(checked), "checked": len(checked)})
    return table


def bar_charts(table: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Speed and block efficiency of the methods that were measured, as bar charts; whiskers are one standard deviation."""
    rows = [row for row in table if row["n"]]
    names, colours = [titles.get(row["method"], row["method"]) for row in rows], [charts.method_colour(row["method"]) for row in rows]
    plain = next((row["tokens_per_second"][0] for row in rows if row["method"] == BASE), None)
    out = []
    for key, title, unit, form, base in (
        ("tokens_per_second", "Speed", "tokens per second", ".0f", plain),
        ("block_efficiency", "Block efficiency", "tokens per pass of the target", ".2f", 1.0),
    ):
        figure = charts.bars(names, [row[key][0] for row in rows], colours=colours, spread=[row[key][1] for row in rows], base=base, form=form, unit=unit)
        out.append({"key": key, "title": title, "figure": figure})
    return out if rows else []


class Board:
    """The results of one run: what the page shows and the rows of the CSV."""

    def __init__(self, services: Any, run: str, prompts: Sequence[str], methods: Sequence[str], common: Mapping[str, Any], plotly: str) -> None:
        self.infos = {info.name: info for info in services.methods()}
        self.prompts, self.methods, self.common = list(prompts), list(methods), dict(common, run=run)
        self.results: list[dict[str, Any]] = []
        self.csv: list[dict[str, Any]] = []
        self.head = {"run": run, "plotly": plotly, "prompt": prompts[0] if len(prompts) == 1 else "", "prompts": len(prompts), "total": len(prompts) * len(methods)}

    def add(self, comparison: Any) -> None:
        """Take one `Comparison` (prompt_index, method, generation, identical, speedup)."""
        generation, method = comparison.generation, comparison.method
        metrics = generation.metrics
        result = {key: finite(value) for key, value in metrics.items()}
        result |= {"method": method, "prompt": comparison.prompt_index, "identical": comparison.identical, "speedup": finite(comparison.speedup)}
        result |= {"version": generation.adapter_version, "finish": generation.finish_reason}
        if len(self.prompts) == 1:
            result["lines"] = "".join(line for one in generation.rounds for line in round_lines(one))
        self.results.append(result)
        row = dict(self.common) | {column: finite(metrics.get(key), 6) for column, key in MEASURED.items()}
        row |= {"created_at_utc": datetime.now(UTC).isoformat(timespec="milliseconds"), "method": method, "prompt_index": comparison.prompt_index}
        row |= {"adapter_version": generation.adapter_version, "tokens": len(generation.token_ids), "rounds": len(generation.rounds)}
        row |= {"measured_speedup": finite(comparison.speedup), "identical_to_autoregressive": comparison.identical}
        row |= {"finish_reason": generation.finish_reason, "prompt": self.prompts[comparison.prompt_index], "answer": generation.text}
        self.csv.append(row)

    def json(self, state: str, error: str = "") -> str:
        """The value of the `compare` widget."""
        table = summary(self.results, self.methods)
        titles = {name: info.title for name, info in self.infos.items()}
        lanes = self.results if len(self.prompts) == 1 else []
        methods = [{"name": name, "title": titles.get(name, name), "colour": charts.method_colour(name)} for name in self.methods]
        methods = [item | {"lossless": getattr(self.infos.get(item["name"]), "lossless", False)} for item in methods]
        value = self.head | {"state": state, "error": error, "done": len(self.results), "methods": methods, "lanes": lanes, "table": table}
        return for_browser(value | {"temperature": self.common["temperature"], "charts": bar_charts(table, titles), "base": BASE in self.methods})


def problem(state: str) -> str:
    """A widget value that only says what is wrong."""
    return for_browser({"state": "error", "error": state, "methods": [], "lanes": [], "table": [], "charts": [], "done": 0, "total": 0, "prompts": 0})


def _run(services: Any, running: Running, plotly: str) -> Any:
    def run(
        session: str, run_id: str, target: str, drafter: str, prompts: Sequence[str], methods: Sequence[str], temperature: float, length: float, most: float, seed: float | None
    ) -> Iterator[tuple[Any, Any]]:
        """Yields (widget value, rows for the CSV); the rows come once, at the end, also after a stop or an error."""
        methods = [info.name for info in services.methods() if info.name in methods]
        why = "" if methods else "No method is chosen. Tick at least one, plain decoding among them for speedups."
        why = why or ("" if any(prompt.strip() for prompt in prompts) else "There is no prompt. Type one, or pick an example.")
        state = services.load(target, drafter) if not why else None
        if state is not None and state.stage != "ready":
            why = state.error or f"{target} is still loading ({text.STAGES.get(state.stage, state.stage)}). Run again when it is ready."
        if why:
            yield problem(why), gr.skip()
            return
        options = {"max_new_tokens": int(most), "temperature": float(temperature), "draft_length": int(length), "seed": 0 if seed is None else int(seed)}
        board = Board(services, run_id, prompts, methods, {"target": target, "drafter": drafter} | options, plotly)
        yield board.json("running"), []
        cancel = running.start(session, run_id)
        end, error, shown_at = "done", "", 0.0
        try:
            for comparison in services.compare(target=target, drafter=drafter, prompts=list(prompts), methods=methods, cancel=cancel, **options):
                if comparison.generation.finish_reason == "cancelled":
                    continue  # a part of an answer compares with nothing
                board.add(comparison)
                if len(prompts) == 1 or time.monotonic() - shown_at >= UPDATE_SECONDS:
                    shown_at = time.monotonic()
                    yield board.json("running"), gr.skip()
            end = "stopped" if cancel.is_set() else "done"
        except Exception as caught:  # any cause: what was measured stays, the page says why it ended
            log.exception("a comparison failed")
            end, error = "error", str(caught) or type(caught).__name__
        finally:
            running.finish(session, run_id)
        yield board.json(end, error), board.csv

    return run


def _events(services: Any, shell: Shell, board: gr.HTML, settings: list[Any], one: list[Any], many: list[Any], rows: gr.State) -> None:
    """Run on one prompt, run on a batch, stop. `one`: prompt, button; `many`: topic, count, file, button."""
    running, plotly = Running(), serving.serve_plotly()
    run = _run(services, running, plotly)
    run_id = gr.Textbox(visible=False, label="run")
    engine: dict[str, Any] = {"concurrency_id": ENGINE, "concurrency_limit": 1, "show_progress": "hidden"}
    common = [shell.session, run_id, shell.target, shell.drafter]

    def compare(session: str, run_id: str, target: str, drafter: str, prompt: str, *more: Any) -> Iterator[Any]:
        yield from run(session or f"api-{secrets.token_hex(8)}", run_id or secrets.token_hex(8), target, drafter, [prompt or ""], *more)

    def compare_batch(session: str, run_id: str, target: str, drafter: str, topic: str, count: float, file: str | None, *more: Any) -> Iterator[Any]:
        try:
            prompts = read_batch(file) if file else services.sample_prompts(topic, min(MOST_PROMPTS, int(count or 1)))
        except BadBatch as error:
            yield problem(str(error)), gr.skip()
            return
        yield from run(session or f"api-{secrets.token_hex(8)}", run_id or secrets.token_hex(8), target, drafter, prompts, *more)

    *prompt, first = one
    *batch, second = many
    js = "(...values) => omni.compare.request(values)"
    settled = {"fn": None, "js": "() => { omni.compare.settled(); return []; }", **PRIVATE}
    outputs = [board, rows]
    first.click(compare, [*common, *prompt, *settings], outputs, js=js, api_name="compare", **engine).then(**settled)
    second.click(compare_batch, [*common, *batch, *settings], outputs, js=js, api_name="compare_batch", **engine).then(**settled)

    def stop(session: str, run_id: str) -> None:
        running.stop(session, run_id)

    board.halt(stop, [shell.session, run_id], None, js="() => omni.compare.current()", api_name="stop_compare", queue=False, **PRIVATE)


def _settings(services: Any) -> list[Any]:
    """Methods, temperature, draft length, tokens, seed: in the order of `run`'s parameters."""
    own, names = services.settings, [(info.title, info.name) for info in services.methods()]
    methods = gr.CheckboxGroup(names, value=[name for _, name in names], label="Methods")
    with gr.Row(elem_classes="omni-tight"):
        temperature = gr.Slider(0, 1.5, value=0, step=0.05, label="Temperature", info="Identical output is checked at 0.", min_width=140)
        length = gr.Slider(1, 16, value=max(1, min(own.draft_length, 16)), step=1, label="Draft length", info="Drafter tokens per round.", min_width=140)
    with gr.Row(elem_classes="omni-tight"):
        most = gr.Slider(8, 512, value=min(own.max_new_tokens, 128), step=8, label="Most new tokens", info="The same budget for all.", min_width=140)
        seed = gr.Number(0, label="Seed", precision=0, info="The same for all.", min_width=140)
    return [methods, temperature, length, most, seed]


def build(services: Any, shell: Shell) -> None:
    """Everything inside the Compare tab."""
    topics = services.topics()
    examples = for_browser({topic: services.sample_prompts(topic, 6, seed=1) for topic in topics})
    with gr.Row(elem_id="omni-compare-row", elem_classes="omni-two", equal_height=False):
        with gr.Column(scale=5, min_width=320), gr.Tabs(elem_id="omni-compare-mode", elem_classes="omni-sub"):
            with gr.Tab("One prompt"):
                prompt = gr.Textbox(label="Prompt", lines=3, max_lines=8, placeholder="Type a prompt, or pick an example below.", elem_id="omni-compare-prompt")
                chips = widget("examples", examples, events=("pick",))
                first = gr.Button("Run side by side", variant="primary", elem_id="omni-compare-run")
            with gr.Tab("Many prompts"):
                with gr.Row(elem_classes="omni-tight"):
                    topic = gr.Dropdown(topics, value=topics[0] if topics else None, label="Topic", filterable=False, min_width=140)
                    count = gr.Slider(2, 100, value=8, step=1, label="Prompts", min_width=140)
                file = gr.File(label='…or JSON Lines: {"prompt": "…"} per line', file_types=[".jsonl", ".json", ".txt"], type="filepath", height=140, elem_id="omni-compare-file")
                second = gr.Button("Run the batch", variant="primary", elem_id="omni-compare-batch")
        with gr.Column(scale=5, min_width=320):
            settings = _settings(services)
    board = widget("compare", for_browser({"state": "empty"}), events=("halt",))
    rows = gr.State([])
    chips.pick(None, None, [prompt], js="() => omni.compare.picked()", **PRIVATE)
    _events(services, shell, board, settings, [prompt, first], [topic, count, file, second], rows)

    def make(measured: list[dict[str, Any]]) -> Path | None:
        return serving.write_csv(serving.temporary("omnidemo-compare.csv"), HEADER, measured) if measured else None

    with gr.Row(elem_classes="omni-files"):
        serving.download_button("↓ All rows as CSV", "compare_csv", make, [rows], empty="There are no rows yet. They are ready when a run has ended or was stopped.", size="sm")
