"""The Compare tab: the same prompt, seed and budget for several methods, side by side; or a batch of prompts
in one table."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from omnidemo.decoding.methods import AUTO, BASELINE
from omnidemo.learning.lines import sample_prompts
from omnidemo.serving.comparison import FRESH, TODAY, Asked, turns_of
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.serving.services import MethodInfo
from omnidemo.ui import text
from omnidemo.ui.comparison_tables import MOST_PROMPTS, ComparisonView, read_batch
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import report
from omnidemo.ui.job import wire
from omnidemo.ui.shell import EXPERT, PRIVATE, QUIET, Shell, load_ready, script, widget

# In this order from the top: what a newcomer wants to see is ticked at first.
FIRST = (BASELINE, FRESH, TODAY)
NO_FILE = "There is no file: none was chosen, or it was refused. Choose one, or take the prompts of a topic."
BATCH_SECONDS = 0.25  # at most this often to the browser while a batch runs


def run(
    services: PublicServices,
    read: Callable[[], Sequence[Asked]],
    cancel: threading.Event,
    target: str,
    drafter: str,
    methods: Sequence[str],
    temperature: float,
    length: float,
    most: float,
    seed: float | None,
    likely: bool = False,
) -> Iterator[str]:
    """The states of a comparison, each a line; the last one has the rows of the CSV, also after a stop or an
    error."""
    prompts = read()
    chosen, left_out = _chosen(services, target, drafter, prompts, methods)
    options: dict[str, Any] = {
        "max_new_tokens": int(most),
        "temperature": float(temperature),
        "draft_length": int(length) or None,
        "seed": 0 if seed is None else int(seed),
    }
    common = {"target": target, "drafter": drafter} | options
    options["draft_policy"] = services.settings.policy(bool(likely))
    # the length, or the rule that finds it
    common["draft_length"] = options["draft_length"] or options["draft_policy"]
    view = ComparisonView(services, secrets.token_hex(8), prompts, chosen, common)
    yield view.json("running")
    end, error, shown_at = "done", "", 0.0
    try:
        asked: dict[str, Any] = {
            "target": target,
            "drafter": drafter,
            "prompts": prompts,
            "methods": chosen,
            "runs": view.runs,
        }
        for comparison in services.compare(**asked, cancel=cancel, **options):
            view.add(comparison)
            if view.single or time.monotonic() - shown_at >= BATCH_SECONDS:
                shown_at = time.monotonic()
                yield view.json("running")
        end = "stopped" if cancel.is_set() else "done"
    except Exception as caught:  # any cause: what was measured stays, the page says why it ended
        end, error = "error", report(caught, "a comparison")
    yield view.json(end, error or left_out, csv=view.csv)


def _chosen(
    services: PublicServices, target: str, drafter: str, prompts: Sequence[Asked], methods: Sequence[str]
) -> tuple[list[str], str]:
    """The methods to run, and a sentence on those that the pair refuses. `Refused` where nothing can be
    compared."""
    chosen = [info.name for info in _methods(services) if info.name in methods]
    if not chosen:
        raise Refused("No method is chosen. Tick at least one, plain decoding among them for speedups.")
    if not any(str(turn).strip() for asked in prompts for turn in turns_of(asked)):
        raise Refused("There is no prompt. Type one, or pick an example.")
    load_ready(services, target, drafter, "Run again when it is ready.")
    refused = {name: reason for name, reason in services.refusals(target, drafter).items() if name in chosen}
    left_out = " ".join(f"{name} was left out: {reason}." for name, reason in refused.items())
    chosen = [name for name in chosen if name not in refused]
    if not chosen:
        raise Refused(left_out)
    return chosen, left_out


def _methods(services: PublicServices) -> list[Any]:
    """What can be compared, from the top: plain decoding, the fresh drafter, then all methods but "auto",
    which is one of them."""
    infos = {info.name: info for info in services.methods() if info.name != AUTO}
    title, hint = text.FRESH
    infos[FRESH] = MethodInfo(FRESH, title, True, hint)
    return [infos[name] for name in dict.fromkeys([*FIRST, *infos]) if name in infos]


def _settings(services: PublicServices) -> list[Any]:
    """Methods, temperature, draft length, tokens, seed: in the order of `run`'s parameters."""
    own, names = services.settings, [(text.method_title(info), info.name) for info in _methods(services)]
    methods = gr.CheckboxGroup(
        names, value=[name for _, name in names if name in FIRST], label="Methods", elem_classes=EXPERT
    )
    with gr.Row(elem_classes=["omni-tight", EXPERT]):
        hint = (
            "With one seed lanes write one text, also above 0, but for block verification and what is not"
            " lossless. "
        )
        hint += "Top-p and the like are the model's own."
        temperature = gr.Slider(0, 1.5, value=0, step=0.05, label="Temperature", info=hint, min_width=140)
        hint = "Drafter tokens per round; 0: as long as in the chat."
        length = gr.Slider(0, 16, value=0, step=1, label="Draft length", info=hint, min_width=140)
    with gr.Row(elem_classes=["omni-tight", EXPERT]):
        hint, budget = "The same budget for all.", min(own.max_new_tokens, 128)
        most = gr.Slider(8, 512, value=budget, step=8, label="Most new tokens", info=hint, min_width=140)
        seed = gr.Number(0, label="Seed", precision=0, info="The same for all.", min_width=140)
    return [methods, temperature, length, most, seed]


def _prompts(shell: Shell) -> tuple[Any, ...]:
    """What is compared, in two tabs: one prompt with its examples and button; of a batch where its prompts
    come from, topic, count, file and button."""
    with gr.Tab("One prompt"):
        prompt = gr.Textbox(
            label="Prompt",
            lines=3,
            max_lines=8,
            placeholder="Type a prompt, or pick an example below.",
            elem_id="omni-compare-prompt",
        )
        chips = widget("examples", events=("pick",))
        shell.keep(
            chips, lambda target: for_browser(sample_prompts.examples(target)), [shell.target], "examples"
        )
        first = gr.Button("Run side by side", variant="primary", elem_id="omni-compare-run")
    with gr.Tab("Many prompts", elem_classes=EXPERT):
        ways = [("A topic", "topic"), ("A file", "file")]
        source = gr.Radio(ways, value="topic", label="Prompts of", elem_id="omni-compare-source")
        with gr.Row(elem_classes="omni-tight") as sampled:
            topic = gr.Dropdown(
                [(text.TOPICS.get(name, name), name) for name in sample_prompts.TOPICS],
                value=sample_prompts.TOPICS[0],
                label="Topic",
                filterable=False,
                min_width=140,
            )
            count = gr.Slider(2, 100, value=8, step=1, label="Prompts", min_width=140)
        file = gr.File(
            label='JSON Lines: {"prompt": "…"}, or Spec-Bench\'s {"turns": ["…", "…"]}',
            file_types=[".jsonl", ".json", ".txt"],
            type="filepath",
            height=140,
            elem_id="omni-compare-file",
            visible=False,
        )
        show = lambda way: (gr.update(visible=way != "file"), gr.update(visible=way == "file"))  # noqa: E731
        source.change(show, [source], [sampled, file], **QUIET)
        second = gr.Button("Run the batch", variant="primary", elem_id="omni-compare-batch")
    return prompt, chips, first, (source, topic, count, file), second


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the Compare tab."""
    with gr.Row(elem_id="omni-compare-row", elem_classes="omni-two", equal_height=False):
        with gr.Column(scale=5, min_width=320), gr.Tabs(elem_id="omni-compare-mode", elem_classes="omni-sub"):
            prompt, chips, first, batch, second = _prompts(shell)
        with gr.Column(scale=5, min_width=320, elem_classes=EXPERT):
            settings = [*_settings(services), shell.likely]
    panel = widget("compare", for_browser({"state": "empty"}), events=("one", "many", "halt"))
    chips.pick(None, None, [prompt], js=script("() => page.compare.picked()"), **PRIVATE)
    pair = [shell.target, shell.drafter]

    def one(
        asked: Any, cancel: threading.Event, target: str, drafter: str, prompt: str, *more: Any
    ) -> Iterator[str]:
        return run(services, lambda: [prompt or ""], cancel, target, drafter, *more)

    def many(
        asked: Any,
        cancel: threading.Event,
        target: str,
        drafter: str,
        source: str,
        topic: str,
        count: float,
        file: str | None,
        *more: Any,
    ) -> Iterator[str]:
        def read() -> Sequence[Asked]:
            if source != "file":
                return sample_prompts.sample(topic, min(MOST_PROMPTS, int(count or 1)))
            if not file:  # none was chosen, or the one chosen was refused: never a topic in its place
                raise Refused(NO_FILE)
            return read_batch(file)

        return run(services, read, cancel, target, drafter, *more)

    running = wire(services, panel, "one", one, [*pair, prompt, *settings], "compare")
    wire(services, panel, "many", many, [*pair, *batch, *settings], "compare_batch", running)
    for button, name in ((first, "one"), (second, "many")):
        button.click(
            None, None, None, js=script(f"() => {{ page.compare.start('{name}'); return []; }}"), **PRIVATE
        )
