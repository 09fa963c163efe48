"""The Chat tab. The browser keeps the conversation; the server gets it with each request and streams JSON lines back."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from omnidemo.records import Generation, Round
from omnidemo.ui import text, tokens
from omnidemo.ui.running import Running
from omnidemo.ui.shell import ENGINE, PRIVATE, QUIET, Shell, longest_answer, longest_draft, only_when_changed, widget

log = logging.getLogger(__name__)

UPDATE_SECONDS = 1 / 12  # at most this often to the browser
PROMPTS_PER_TOPIC = 12
CURVE_POINTS = 80


def conversation(history: Any, message: str) -> list[dict[str, str]]:
    """The messages of a request. `history` comes from the browser: anything but user and assistant texts is dropped."""
    messages = []
    for item in history if isinstance(history, list) else []:
        if isinstance(item, dict) and item.get("role") in ("user", "assistant") and isinstance(item.get("content"), str):
            messages.append({"role": item["role"], "content": item["content"]})
    return [*messages, {"role": "user", "content": message}]


def read_seed(value: str | int | None) -> int | None:
    """A whole number from 0 to 2**63 - 1, or None for an empty field; ValueError says what to write instead."""
    shown = "" if value is None else str(value).strip()
    if not shown:
        return None
    if not (shown.isascii() and shown.isdigit() and int(shown) < 2**63):
        raise ValueError(f"The seed “{shown[:40]}” is not a whole number from 0 up. Correct it under Advanced, or leave it empty.")
    return int(shown)


def stream(answer: Iterator[Round | Generation], started: float) -> Iterator[str]:
    """An answer as a growing string of JSON lines, at most 12 updates a second."""
    tally = tokens.Tally()
    value, shown_at = "", 0.0
    for item in answer:
        now = time.perf_counter()
        if isinstance(item, Generation):
            yield value + tally.line() + tokens.end_line(item, tally)
            return
        tally.add(item, now - started)
        value += "".join(tokens.round_lines(item))
        if now - shown_at >= UPDATE_SECONDS:
            value += tally.line()
            shown_at = now
            yield value
    yield value + tokens.line("error", text="The answer ended without its figures. Send the message again.")


def _chat(services: Any, running: Running) -> Any:
    def chat(
        message: str,
        history: list[dict[str, str]] | None,
        session: str,
        run: str,
        target: str,
        drafter: str,
        method: str,
        draft_length: int,
        temperature: float,
        top_p: float,
        max_new_tokens: int,
        seed: str | int | None,
        learn: bool,
        keep: bool,
    ) -> Iterator[str]:
        """Answer `message`; streams JSON lines (see omnidemo/ui/tokens.py), the last one holds the text and the figures."""
        message, session, run = message or "", session or f"api-{secrets.token_hex(8)}", run or secrets.token_hex(8)
        head = tokens.line("run", run=run, method=method, target=target, drafter=drafter)
        if not message.strip():
            yield head + tokens.line("error", text="The message is empty. Type a question first.")
            return
        try:
            number = read_seed(seed)
        except ValueError as error:
            yield head + tokens.line("error", text=str(error))
            return
        state = services.load(target, drafter)
        if state.stage != "ready":
            why = state.error or f"{target} is still loading ({text.STAGES.get(state.stage, state.stage)}). Send again when it is ready."
            yield head + tokens.line("error", text=why)
            return
        yield head
        cancel = running.start(session, run)
        try:
            answer = services.chat(
                session=session,
                target=target,
                drafter=drafter,
                messages=conversation(history, message),
                method=method,
                max_new_tokens=int(max_new_tokens),
                temperature=float(temperature),
                top_p=float(top_p),
                draft_length=int(draft_length),
                seed=number,
                learn=bool(learn),
                keep=bool(keep),
                cancel=cancel,
            )
            last = ""
            for last in stream(answer, time.perf_counter()):
                yield head + last
        except Exception as error:  # any cause: the page says it and lives on
            log.exception("an answer failed")
            yield head + last + tokens.line("error", text=f"{error or type(error).__name__}")
        finally:
            running.finish(session, run)

    return chat


def trainer_json(services: Any, target: str, drafter: str) -> str:
    """Trainer, acceptance curve and database line of one pair, as the value of the `trainer` widget."""
    status = services.trainer(target, drafter)
    store = services.store.status
    rows = services.store.curve(target, drafter, limit=CURVE_POINTS)[-CURVE_POINTS:]
    curve = [
        [tokens.finite(row.get("acceptance_rate")), row.get("adapter_version") or 0]
        for row in rows
        if row.get("acceptance_rate") is not None
    ]
    shown = {
        "state": status.state,
        "title": text.TRAINER.get(status.state, status.state),
        "why": status.why,
        "version": status.version,
        "step": status.step,
        "loss": tokens.finite(status.loss),
        "seen": status.requests_seen,
        "next": status.next_in,
        "swap": status.last_swap,
        "error": status.error,
        "curve": curve,
        "store": {"ok": store.ok, "message": store.message, "pending": store.pending, "lost": store.lost},
    }
    return json.dumps(shown)


def _prompts(services: Any) -> str:
    return json.dumps({topic: services.sample_prompts(topic, PROMPTS_PER_TOPIC) for topic in services.topics()})


def _bar(services: Any) -> list[Any]:
    """The row above the chat: method with its help, draft length, temperature."""
    settings = services.settings
    methods = [(info.title, info.name) for info in services.methods()]
    with gr.Row(elem_id="omni-controls", equal_height=False):
        method = gr.Dropdown(methods, value=settings.method, label="Method", elem_id="omni-method", filterable=False, min_width=180)
        widget("method", elem_id="omni-method-help")
        length = gr.Slider(
            0, longest_draft(settings), settings.draft_length, step=1, label="Draft length", elem_id="omni-length", min_width=160
        )
        temperature = gr.Slider(0, 1.5, 0, step=0.05, label="Temperature", elem_id="omni-temperature", min_width=160)
    method.change(None, [method], None, js="(name) => { omni.showMethod(name); return []; }", **PRIVATE)
    return [method, length, temperature]


def _advanced(services: Any) -> list[Any]:
    """The folded settings, in the order of `chat`'s last parameters."""
    settings = services.settings
    learns = settings.training != "off"
    with gr.Accordion("Advanced", open=False, elem_id="omni-advanced"):
        top_p = gr.Slider(0.05, 1, 1, step=0.05, label="Top-p", info=text.HELP["top_p"])
        most = gr.Slider(
            1, longest_answer(settings), settings.max_new_tokens, step=1, label="Longest answer", info=text.HELP["max_new_tokens"]
        )
        # A gr.Number turns "empty" into 0 as soon as it is shown.
        seed = gr.Textbox("", label="Seed", placeholder="a new one each time", max_lines=1, info=text.HELP["seed"])
        learn = gr.Checkbox(learns, label="Learn from this chat", info=text.HELP["learn"], interactive=learns)
        keep = gr.Checkbox(settings.keep_text, label="Store this chat", info=text.HELP["keep"], interactive=settings.keep_text)
    return [top_p, most, seed, learn, keep]


def build(services: Any, shell: Shell) -> None:
    """Everything inside the Chat tab."""
    running = Running()
    controls = _bar(services)
    with gr.Row(elem_id="omni-chat-row", equal_height=False):
        with gr.Column(scale=7, min_width=320, elem_id="omni-main"):
            page = widget("chat", events=("ask", "halt"))
            widget("prompts", _prompts(services), visible="hidden")
            widget("notice", json.dumps(text.notice(services.settings.keep_text, services.settings.training != "off")))
        with gr.Column(scale=3, min_width=300, elem_id="omni-side"):
            widget("answer")
            trainer = widget("trainer", events=("pause", "resume", "reset"))
            controls += _advanced(services)
    message, history, run = (
        gr.Textbox(visible=False, label="message"),
        gr.JSON(visible=False, label="history"),
        gr.Textbox(visible=False, label="run"),
    )
    page.ask(
        _chat(services, running),
        [message, history, shell.session, run, shell.target, shell.drafter, *controls],
        [page],
        js="(...values) => omni.chat.request(values)",
        api_name="chat",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        trigger_mode="multiple",  # the browser lets one through at a time; one that got lost must not block the next
        show_progress="minimal",  # hidden by our css; the browser reads the queue position from it
    ).then(None, [page], None, js="(value) => { omni.chat.settled(value); return []; }", **PRIVATE)

    def stop(session: str, run_id: str) -> None:
        running.stop(session, run_id)

    page.halt(stop, [shell.session, run], None, js="() => omni.chat.current()", api_name="stop", queue=False, **PRIVATE)
    _trainer_events(services, shell, trainer)


def _trainer_events(services: Any, shell: Shell, trainer: gr.HTML) -> None:
    names, seen = [shell.target, shell.drafter], gr.State("")

    def show(target: str, drafter: str) -> str:
        return trainer_json(services, target, drafter)

    gr.on([shell.page.load, shell.tick.tick], only_when_changed(show), [*names, seen], [trainer, seen], api_name="trainer_state", **QUIET)
    for name, act in (("pause", services.pause), ("resume", services.resume), ("reset", services.reset)):

        def run(target: str, drafter: str, act: Any = act) -> tuple[str, str]:
            act(target, drafter)
            shown = show(target, drafter)
            return shown, shown

        getattr(trainer, name)(run, names, [trainer, seen], api_name=f"trainer_{name}", **QUIET)
